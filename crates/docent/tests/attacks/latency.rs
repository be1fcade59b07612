//! Latencies of honest clients under attack: always printed, and compared with their bounds where `ASSERT_LATENCY` is
//! set.
//!
//! `bench/attacks/run` sets it, for a release build with nothing beside it. Beside other tests on two cores, a p99
//! mostly measures the scheduler, and so does any ratio of two of them.

use std::time::Duration;

/// Sorted latencies of one client.
pub(crate) struct Latencies(Vec<Duration>);

impl Latencies {
    pub(crate) fn new(mut waits: Vec<Duration>) -> Self {
        assert!(!waits.is_empty());
        waits.sort();
        Self(waits)
    }

    fn percentile(&self, percent: usize) -> Duration {
        self.0[(self.0.len() * percent / 100).min(self.0.len() - 1)]
    }

    pub(crate) fn p99(&self) -> Duration {
        self.percentile(99)
    }

    /// Prints them under a name, and asserts where it is asked for that the p99 is at most `bound`.
    #[allow(clippy::print_stderr, reason = "a measurement for people")]
    pub(crate) fn report(&self, name: &str, bound: Option<Duration>) {
        let (p50, p99) = (self.percentile(50), self.p99());
        eprintln!(
            "{name}: {} calls, p50 {p50:?}, p99 {p99:?}, bound {bound:?}",
            self.0.len()
        );
        if let Some(bound) = bound.filter(|_| std::env::var_os("ASSERT_LATENCY").is_some()) {
            assert!(p99 <= bound, "{name}: p99 {p99:?}, at most {bound:?}");
        }
    }
}
