//! The failures of one node into whether it is asked at all.
//!
//! A node that is gone costs a timeout for every question that tries it first. After a few failures in a
//! row it is left alone for a while; then one question finds out whether it is back. One that is late is asked
//! all the same where no other is left: were all of them left alone, a slow cluster would be one that is away.

use std::time::{Duration, Instant};

/// So many failures in a row, and a node is left alone.
const FAILURE_THRESHOLD: u32 = 5;

/// For so long.
const OPEN_DURATION: Duration = Duration::from_secs(10);

/// What a node did in place of answering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeFailure {
    /// Nothing: it could not be reached, or ended.
    Unreachable,
    /// It took the request, and too long.
    TimedOut,
}

/// What is known about one node.
#[derive(Debug, Default)]
pub(super) struct CircuitBreaker {
    failures: u32,
    last: Option<NodeFailure>,
    open_until: Option<Instant>,
}

impl CircuitBreaker {
    /// Whether the node may be asked now. After a pause one may, and the others wait for what becomes of it.
    pub(super) fn allows(&mut self, now: Instant) -> bool {
        match self.open_until {
            None => true,
            Some(until) if now < until => false,
            Some(_) => {
                self.open_until = Some(now + OPEN_DURATION);
                true
            }
        }
    }

    /// Whether the node is left alone.
    pub(super) fn is_open(&self, now: Instant) -> bool {
        self.open_until.is_some_and(|until| now < until)
    }

    /// Whether the node may be asked where no other may.
    pub(super) fn last_timed_out(&self) -> bool {
        self.last == Some(NodeFailure::TimedOut)
    }

    /// When the node may be asked again, if not now.
    pub(super) fn open_until(&self) -> Option<Instant> {
        self.open_until
    }

    pub(super) fn succeeded(&mut self) {
        *self = Self::default();
    }

    pub(super) fn failed(&mut self, how: NodeFailure, now: Instant) {
        self.last = Some(how);
        self.failures = self.failures.saturating_add(1);
        if self.failures >= FAILURE_THRESHOLD {
            self.open_until = Some(now + OPEN_DURATION);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_fails_is_left_alone_and_tried_again() {
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let mut breaker = CircuitBreaker::default();
        for _ in 1..FAILURE_THRESHOLD {
            breaker.failed(NodeFailure::Unreachable, at(0));
            assert!(breaker.allows(at(0)));
        }
        breaker.failed(NodeFailure::Unreachable, at(0));
        assert!(!breaker.allows(at(0)) && !breaker.allows(at(9)));
        assert!(breaker.allows(at(10)), "one question finds out");
        assert!(!breaker.allows(at(10)), "the others wait for it");
        breaker.failed(NodeFailure::Unreachable, at(11));
        assert!(!breaker.allows(at(20)));
        assert!(breaker.allows(at(21)));
        breaker.succeeded();
        assert!(breaker.allows(at(21)) && breaker.allows(at(21)));
        breaker.failed(NodeFailure::Unreachable, at(22));
        assert!(breaker.allows(at(22)), "counted from nothing again");
        assert!(!breaker.last_timed_out());
        breaker.failed(NodeFailure::TimedOut, at(22));
        assert!(breaker.last_timed_out());
        breaker.succeeded();
        assert!(!breaker.last_timed_out());
    }
}
