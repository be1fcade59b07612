//! Metrics of the traffic to the cluster: how many requests of each kind, their outcomes and durations, and
//! which nodes' circuits are open.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The upper bounds of the histogram buckets for the duration of a call, in microseconds.
pub const CALL_BUCKETS: [u64; 13] = [
    1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
    5_000_000, 10_000_000,
];

/// The kind of a request to the cluster, a label of its metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestKind {
    /// Lexical and vector queries, and term lookups.
    Search,
    /// Reads of whole documents or vectors.
    Fetch,
    /// Lists of documents by their fields.
    List,
    /// Counts of documents or passages.
    Count,
    /// Facet counts: how frequent the values of a field are.
    Facets,
    /// Writes and deletions of points.
    Write,
    /// Reads and changes of the index head, and reads of word statistics.
    State,
    /// Reads and changes of collections and aliases.
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

    /// Whether answers wait for it. The state of the index is cached, and nobody waits for a change.
    fn is_part_of_an_answer(self) -> bool {
        !matches!(self, Self::Write | Self::State | Self::Collections)
    }
}

/// The outcome of a call, after all retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeCallOutcome {
    Answered,
    Refused,
    Failed,
}

/// The traffic between an engine and its cluster since it was opened.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterTraffic {
    /// The calls by their kind, each with retries included.
    pub calls: Vec<CallTraffic>,
    /// The requests by the node they went to.
    pub nodes: Vec<NodeTraffic>,
    /// How often a read of documents or passages began while no other was in flight: for one query at a time, the
    /// number of its rounds.
    pub rounds: u64,
}

impl ClusterTraffic {
    /// The number of requests sent, over all nodes.
    pub fn requests(&self) -> u64 {
        self.nodes.iter().map(|node| node.requests).sum()
    }
}

/// The metrics of the calls of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct CallTraffic {
    /// The kind as metrics name it, such as `search`.
    pub call: &'static str,
    /// Calls that a node answered with success.
    pub answered: u64,
    /// Calls that a node refused with a client error.
    pub refused: u64,
    /// Calls that no node answered before the deadline.
    pub failed: u64,
    /// Requests that were retried, mostly on another node.
    pub retries: u64,
    /// A histogram: calls by the first of [`CALL_BUCKETS`] that they did not exceed; the last number counts
    /// those above all.
    pub took: [u64; CALL_BUCKETS.len() + 1],
    /// The total duration of all calls.
    pub spent: Duration,
}

impl CallTraffic {
    /// The number of calls with any outcome.
    pub fn count(&self) -> u64 {
        self.answered + self.refused + self.failed
    }
}

/// The metrics of the requests to one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeTraffic {
    /// The address of the node, as in the settings.
    pub address: String,
    /// Requests that were sent to it.
    pub requests: u64,
    /// Requests that it did not answer, or answered with a server error.
    pub failures: u64,
    /// Whether its circuit breaker is open, so that no requests are sent to it for a while.
    pub is_circuit_open: bool,
}

/// The counters behind [`CallTraffic`], one set for each kind of call.
#[derive(Debug, Default)]
pub(super) struct TrafficCounters {
    kinds: [CallCounters; RequestKind::ALL.len()],
    in_flight: AtomicU64,
    rounds: AtomicU64,
}

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
    /// Notes that a call begins.
    pub(super) fn begin(&self, kind: RequestKind) {
        if kind.is_part_of_an_answer() && self.in_flight.fetch_add(1, Ordering::Relaxed) == 0 {
            self.rounds.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many rounds of reads there were.
    pub(super) fn rounds(&self) -> u64 {
        self.rounds.load(Ordering::Relaxed)
    }

    /// Counts a finished call with the number of its retries.
    pub(super) fn count(
        &self,
        kind: RequestKind,
        outcome: NodeCallOutcome,
        retries: u64,
        took: Duration,
    ) {
        let at = RequestKind::ALL
            .iter()
            .position(|(known, _)| *known == kind);
        if kind.is_part_of_an_answer() {
            self.in_flight.fetch_sub(1, Ordering::Relaxed);
        }
        let Some(counts) = at.and_then(|at| self.kinds.get(at)) else {
            return;
        };
        let counter = match outcome {
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
        let kinds = RequestKind::ALL.iter().zip(&self.kinds);
        let traffic = kinds.map(|(&(_, call), counts)| CallTraffic {
            call,
            answered: of(&counts.answered),
            refused: of(&counts.refused),
            failed: of(&counts.failed),
            retries: of(&counts.retries),
            took: std::array::from_fn(|at| counts.took.get(at).map_or(0, of)),
            spent: Duration::from_micros(of(&counts.micros)),
        });
        traffic.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_kind_end_and_time() {
        let counts = TrafficCounters::default();
        let micros = Duration::from_micros;
        for _ in 0..3 {
            counts.begin(RequestKind::Search);
        }
        counts.begin(RequestKind::Collections);
        assert_eq!(counts.rounds(), 1);
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
        let traffic = counts.snapshot();
        let search = &traffic[0];
        assert_eq!(
            (search.call, search.count(), search.retries),
            ("search", 3, 3)
        );
        assert_eq!((search.answered, search.refused, search.failed), (2, 0, 1));
        assert_eq!((search.took[0], search.took[1], search.took[13]), (1, 1, 1));
        assert_eq!(search.spent, micros(10_002_002));
        assert_eq!(traffic[7].refused, 1);
        assert_eq!(traffic.iter().map(CallTraffic::count).sum::<u64>(), 4);
        counts.begin(RequestKind::Fetch);
        assert_eq!(counts.rounds(), 2);
    }
}
