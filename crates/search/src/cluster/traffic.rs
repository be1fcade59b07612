//! What an engine asks of others into counts: how often, how it ended, how long it took, and which node
//! is left alone.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The ends of the buckets for how long a call takes, in microseconds.
pub const CALL_BUCKETS: [u64; 13] = [
    1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
    5_000_000, 10_000_000,
];

/// What a request to the cluster is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestKind {
    /// Words or meanings are searched, and words are looked up.
    Search,
    /// Documents are read as a whole.
    Fetch,
    /// Documents are listed by their fields.
    List,
    /// Documents are counted.
    Count,
    /// Values of fields are counted.
    Facets,
    /// Points are written or removed.
    Write,
    /// The state of the index is read or changed.
    State,
    /// Collections are looked at, made or removed.
    Collections,
}

impl RequestKind {
    const ALL: [(Self, &'static str); 8] = [
        (Self::Search, "search"),
        (Self::Fetch, "fetch"),
        (Self::List, "list"),
        (Self::Count, "count"),
        (Self::Facets, "facets"),
        (Self::Write, "write"),
        (Self::State, "state"),
        (Self::Collections, "collections"),
    ];
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeCallOutcome {
    Answered,
    Refused,
    Failed,
}

/// What an engine has asked of others so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterTraffic {
    /// By what was asked.
    pub calls: Vec<CallTraffic>,
    /// By who was asked.
    pub nodes: Vec<NodeTraffic>,
}

impl ClusterTraffic {
    /// How many requests were sent, to whichever node.
    pub fn requests(&self) -> u64 {
        self.nodes.iter().map(|node| node.requests).sum()
    }
}

/// The calls of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct CallTraffic {
    /// Which kind, such as `search`.
    pub call: &'static str,
    /// Those that were answered.
    pub answered: u64,
    /// Those to which a node said no.
    pub refused: u64,
    /// Those that no node answered in time.
    pub failed: u64,
    /// Requests that had to be sent again, most of them to another node.
    pub retries: u64,
    /// Calls that took no longer than each of [`CALL_BUCKETS`] and longer than the one before; the last
    /// took longer than all.
    pub took: [u64; CALL_BUCKETS.len() + 1],
    /// The time that all of them took.
    pub spent: Duration,
}

impl CallTraffic {
    /// How many there were, however they ended.
    pub fn count(&self) -> u64 {
        self.answered + self.refused + self.failed
    }
}

/// The requests to one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeTraffic {
    /// Its address.
    pub address: String,
    /// Requests that were sent to it.
    pub requests: u64,
    /// Those that brought no answer.
    pub failures: u64,
    /// Whether it is left alone for a while because it failed too often.
    pub is_circuit_open: bool,
}

/// The counts of all kinds of calls.
#[derive(Debug, Default)]
pub(super) struct TrafficCounters([CallCounters; RequestKind::ALL.len()]);

#[derive(Debug, Default)]
struct CallCounters {
    answered: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
    retries: AtomicU64,
    took: [AtomicU64; CALL_BUCKETS.len() + 1],
    micros: AtomicU64,
}

impl TrafficCounters {
    /// Counts a call that ended, with how often it had to be sent again.
    pub(super) fn count(
        &self,
        call: RequestKind,
        ended: NodeCallOutcome,
        retries: u64,
        took: Duration,
    ) {
        let at = RequestKind::ALL
            .iter()
            .position(|(known, _)| *known == call);
        let Some(counts) = at.and_then(|at| self.0.get(at)) else {
            return;
        };
        let counter = match ended {
            NodeCallOutcome::Answered => &counts.answered,
            NodeCallOutcome::Refused => &counts.refused,
            NodeCallOutcome::Failed => &counts.failed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        counts.retries.fetch_add(retries, Ordering::Relaxed);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        counts.micros.fetch_add(micros, Ordering::Relaxed);
        let bucket = CALL_BUCKETS.partition_point(|end| *end < micros);
        if let Some(bucket) = counts.took.get(bucket) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn snapshot(&self) -> Vec<CallTraffic> {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let kinds = RequestKind::ALL.iter().zip(&self.0);
        let told = kinds.map(|(&(_, call), counts)| CallTraffic {
            call,
            answered: of(&counts.answered),
            refused: of(&counts.refused),
            failed: of(&counts.failed),
            retries: of(&counts.retries),
            took: std::array::from_fn(|at| counts.took.get(at).map_or(0, of)),
            spent: Duration::from_micros(of(&counts.micros)),
        });
        told.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_kind_end_and_time() {
        let counts = TrafficCounters::default();
        let micros = Duration::from_micros;
        counts.count(
            RequestKind::Search,
            NodeCallOutcome::Answered,
            0,
            micros(1_000),
        );
        counts.count(
            RequestKind::Search,
            NodeCallOutcome::Answered,
            2,
            micros(1_001),
        );
        counts.count(
            RequestKind::Search,
            NodeCallOutcome::Failed,
            1,
            micros(10_000_001),
        );
        counts.count(
            RequestKind::Collections,
            NodeCallOutcome::Refused,
            0,
            micros(0),
        );
        let told = counts.snapshot();
        let search = &told[0];
        assert_eq!(
            (search.call, search.count(), search.retries),
            ("search", 3, 3)
        );
        assert_eq!((search.answered, search.refused, search.failed), (2, 0, 1));
        assert_eq!((search.took[0], search.took[1], search.took[13]), (1, 1, 1));
        assert_eq!(search.spent, micros(10_002_002));
        assert_eq!(told[7].refused, 1);
        assert_eq!(told.iter().map(CallTraffic::count).sum::<u64>(), 4);
    }
}
