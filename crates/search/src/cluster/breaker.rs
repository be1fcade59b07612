//! A circuit breaker for one node of the cluster.
//!
//! A node that is gone costs a timeout for every request that tries it first. After [`FAILURE_THRESHOLD`]
//! failures in a row its circuit opens, and no request goes there for [`OPEN_DURATION`]; then a single
//! request probes it (half-open). A node that merely timed out is still used when no other is left: if all of
//! them were skipped, a slow cluster would look like one that is down.

use std::time::{Duration, Instant};

/// How many failures in a row open the circuit. A single failure can be a connection that was closed while idle, or one
/// slow request; five without a success between them are a node that is gone. Until then each of them has cost a
/// request its first attempt.
const FAILURE_THRESHOLD: u32 = 5;

/// How long the circuit stays open before a request may probe the node again. A probe is a real request, and waits for
/// its timeout if the node is still gone, so probes have to be rare. A node that is back is used again at most this
/// much later.
const OPEN_DURATION: Duration = Duration::from_secs(10);

/// How a request to a node failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeFailure {
    /// The connection failed or broke off.
    Unreachable,
    /// The node took the request, but did not answer before the deadline.
    TimedOut,
}

/// The state of one node's circuit: the failures in a row, the last of them, and until when the circuit is
/// open. One that is half-open has an `open_until` in the past.
#[derive(Debug, Default)]
pub(super) struct CircuitBreaker {
    failures: u32,
    last: Option<NodeFailure>,
    open_until: Option<Instant>,
}

impl CircuitBreaker {
    /// Whether a request may go to the node now. When the open period is over, one request may probe the
    /// node, and the others wait for its outcome.
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

    /// Whether the circuit is open, so that the node is skipped.
    pub(super) fn is_open(&self, now: Instant) -> bool {
        self.open_until.is_some_and(|until| now < until)
    }

    /// Whether the last failure was a timeout: such a node may be used where no other is left.
    pub(super) fn last_timed_out(&self) -> bool {
        self.last == Some(NodeFailure::TimedOut)
    }

    /// When the node may be probed, unless the circuit is closed.
    pub(super) fn open_until(&self) -> Option<Instant> {
        self.open_until
    }

    pub(super) fn succeeded(&mut self) {
        *self = Self::default();
    }

    pub(super) fn failed(&mut self, failure: NodeFailure, now: Instant) {
        self.last = Some(failure);
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
        assert!(
            breaker.allows(at(10)),
            "half-open: one request probes the node"
        );
        assert!(!breaker.allows(at(10)), "the others wait for the probe");
        breaker.failed(NodeFailure::Unreachable, at(11));
        assert!(!breaker.allows(at(20)));
        assert!(breaker.allows(at(21)));
        breaker.succeeded();
        assert!(breaker.allows(at(21)) && breaker.allows(at(21)));
        breaker.failed(NodeFailure::Unreachable, at(22));
        assert!(breaker.allows(at(22)), "a success resets the count");
        assert!(!breaker.last_timed_out());
        breaker.failed(NodeFailure::TimedOut, at(22));
        assert!(breaker.last_timed_out());
        breaker.succeeded();
        assert!(!breaker.last_timed_out());
    }
}
