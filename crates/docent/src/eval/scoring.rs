//! Aggregation: mean scores of all queries and of each query kind, latency percentiles, and the worst queries.

use std::collections::BTreeMap;
use std::time::Duration;

use super::metrics;
use super::query_runner::{DEEP, QueryOutcome};

/// The most query kinds with scores of their own; the rest is scored as `other`.
const MAX_KINDS: usize = 20;

/// A metric that is computed for each query; its mean over the queries is a score.
#[derive(Debug)]
pub(crate) struct EvalMetric {
    /// The key in JSON output and baseline files.
    pub(crate) key: &'static str,
    /// The label in text and HTML output.
    pub(crate) label: &'static str,
    /// A definition in one line.
    pub(crate) meaning: &'static str,
    /// Reads the value of one query; `None` where it is undefined.
    pub(crate) of: fn(&QueryOutcome) -> Option<f64>,
}

/// The number of metrics in [`MEASURES`].
const COUNT: usize = 6;

/// All metrics, the primary one first.
pub(crate) static MEASURES: [EvalMetric; COUNT] = [
    EvalMetric {
        key: "ndcg_at_10",
        label: "nDCG@10",
        meaning: "how near the first ten come to the best possible order",
        of: |outcome| Some(outcome.ndcg),
    },
    EvalMetric {
        key: "recall_at_10",
        label: "recall@10",
        meaning: "how many of the relevant documents are in the first ten",
        of: |outcome| Some(outcome.recall),
    },
    EvalMetric {
        key: if DEEP == 100 {
            "recall_at_100"
        } else {
            "recall_at_50"
        },
        label: if DEEP == 100 {
            "recall@100"
        } else {
            "recall@50"
        },
        meaning: "how many of them are found at all, further down",
        of: |outcome| Some(outcome.deep_recall),
    },
    EvalMetric {
        key: "mrr_at_10",
        label: "MRR@10",
        meaning: "one divided by the rank of the first relevant document",
        of: |outcome| Some(outcome.reciprocal_rank),
    },
    EvalMetric {
        key: "diversity_at_10",
        label: "diversity@10",
        meaning: "how many of the first ten do not repeat an earlier one",
        of: |outcome| outcome.diversity,
    },
    EvalMetric {
        key: "coverage",
        label: "coverage",
        meaning: "how many queries find anything",
        of: |outcome| Some(if outcome.found.is_empty() { 0.0 } else { 1.0 }),
    },
];

/// The means of all metrics, in the order of [`MEASURES`].
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MeanScores(pub(crate) [f64; COUNT]);

impl MeanScores {
    fn of(outcomes: &[&QueryOutcome]) -> Self {
        let mean = |measure: &EvalMetric| {
            let values: Vec<f64> = outcomes
                .iter()
                .filter_map(|outcome| (measure.of)(outcome))
                .collect();
            metrics::mean(&values)
        };
        Self(MEASURES.each_ref().map(mean))
    }

    /// Iterates over the metrics with their means.
    pub(crate) fn each(&self) -> impl Iterator<Item = (&'static EvalMetric, f64)> {
        MEASURES.iter().zip(self.0)
    }

    /// The mean of the metric with this key, 0 for an unknown key.
    pub(crate) fn get(&self, key: &str) -> f64 {
        let found = self.each().find(|(measure, _)| measure.key == key);
        found.map_or(0.0, |(_, value)| value)
    }
}

/// The aggregated result of a run.
#[derive(Clone, Debug)]
pub(crate) struct RunSummary {
    /// The number of queries that ran.
    pub(crate) queries: usize,
    /// The mean scores of all queries.
    pub(crate) scores: MeanScores,
    /// Margin of error of the mean nDCG; `None` for fewer than two queries.
    pub(crate) margin: Option<f64>,
    /// Query count and scores of each query kind; empty when no query has a kind.
    pub(crate) kinds: Vec<(String, usize, MeanScores)>,
    /// The median of the latency in milliseconds.
    pub(crate) p50: f64,
    /// The 99th percentile of the latency in milliseconds.
    pub(crate) p99: f64,
}

impl RunSummary {
    /// Aggregates the outcomes of a run.
    pub(crate) fn new(outcomes: &[QueryOutcome]) -> Self {
        let mut times: Vec<f64> = outcomes
            .iter()
            .map(|outcome| millis(outcome.time))
            .collect();
        times.sort_unstable_by(f64::total_cmp);
        let at = |percent| metrics::percentile(&times, percent).unwrap_or(0.0);
        let ndcg: Vec<f64> = outcomes.iter().map(|outcome| outcome.ndcg).collect();
        Self {
            queries: outcomes.len(),
            scores: MeanScores::of(&outcomes.iter().collect::<Vec<_>>()),
            margin: metrics::confidence_margin(&ndcg),
            kinds: kinds(outcomes),
            p50: at(50),
            p99: at(99),
        }
    }
}

/// Converts a duration to fractional milliseconds.
pub(crate) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

fn kinds(outcomes: &[QueryOutcome]) -> Vec<(String, usize, MeanScores)> {
    let mut by_kind: BTreeMap<&str, Vec<&QueryOutcome>> = BTreeMap::new();
    for outcome in outcomes {
        let kind = outcome.judged.kind.as_deref().unwrap_or("other");
        let known = by_kind.contains_key(kind) || by_kind.len() < MAX_KINDS - 1;
        let kind = if known { kind } else { "other" };
        by_kind.entry(kind).or_default().push(outcome);
    }
    let named = outcomes.iter().any(|outcome| outcome.judged.kind.is_some());
    let scored = by_kind.into_iter().map(|(kind, of_kind)| {
        let scores = MeanScores::of(&of_kind);
        (kind.to_owned(), of_kind.len(), scores)
    });
    scored.filter(|_| named).collect()
}

/// The worst outcomes, worst first: those with an nDCG below 1, ordered by nDCG and then by the rank of the first
/// relevant document.
pub(crate) fn worst(outcomes: &[QueryOutcome], most: usize) -> Vec<&QueryOutcome> {
    let mut imperfect: Vec<_> = outcomes
        .iter()
        .filter(|outcome| outcome.ndcg < 1.0 - f64::EPSILON)
        .collect();
    imperfect.sort_by(|a, b| {
        let depth = |outcome: &QueryOutcome| outcome.first.unwrap_or(usize::MAX);
        a.ndcg.total_cmp(&b.ndcg).then(depth(b).cmp(&depth(a)))
    });
    imperfect.truncate(most);
    imperfect
}

#[cfg(test)]
pub(crate) mod tests {
    use docent_search::DocId;

    use super::super::judged_queries::JudgedQuery;
    use super::super::query_runner::ExpectedDocument;
    use super::*;

    /// A test fixture: an outcome with the relevant document at this rank.
    pub(crate) fn outcome(query: &str, rank: Option<usize>, kind: Option<&str>) -> QueryOutcome {
        let top = rank.filter(|rank| *rank <= 10);
        let ids = |rank: Option<usize>| match rank {
            Some(rank) => (1..=10)
                .map(|n| {
                    if n == rank {
                        "r".to_owned()
                    } else {
                        format!("n{n}")
                    }
                })
                .collect(),
            None => Vec::<String>::new(),
        };
        QueryOutcome {
            judged: JudgedQuery {
                id: query.to_owned(),
                query: query.to_owned(),
                kind: kind.map(str::to_owned),
                relevant: BTreeMap::from([("r".to_owned(), 1)]),
            },
            found: ids(rank)
                .iter()
                .map(|id| DocId::parse(id).unwrap())
                .collect(),
            expected: vec![ExpectedDocument {
                id: "r".to_owned(),
                grade: 1,
                rank,
            }],
            first: rank,
            ndcg: top.map_or(0.0, |rank| 1.0 / ((rank + 1) as f64).log2()),
            recall: f64::from(u8::from(top.is_some())),
            deep_recall: f64::from(u8::from(rank.is_some())),
            reciprocal_rank: top.map_or(0.0, |rank| 1.0 / rank as f64),
            diversity: rank.map(|_| 0.9),
            time: Duration::from_millis(rank.unwrap_or(50) as u64),
        }
    }

    #[test]
    fn a_summary_is_the_mean_of_its_queries() {
        let outcomes = [
            outcome("a", Some(1), None),
            outcome("b", Some(3), None),
            outcome("c", Some(20), None),
            outcome("d", None, None),
        ];
        let summary = RunSummary::new(&outcomes);
        let near = |key: &str, expected: f64| {
            let found = summary.scores.get(key);
            assert!((found - expected).abs() < 1e-9, "{key}: {found}");
        };
        near("ndcg_at_10", (1.0 + 0.5) / 4.0);
        near("recall_at_10", 0.5);
        near(MEASURES[2].key, 0.75);
        near("mrr_at_10", (1.0 + 1.0 / 3.0) / 4.0);
        // A query without results has no diversity and does not lower the mean.
        near("diversity_at_10", 0.9);
        near("coverage", 0.75);
        assert_eq!((summary.p50, summary.p99), (3.0, 50.0));
        assert!(summary.kinds.is_empty());
        assert_eq!(summary.queries, 4);
    }

    #[test]
    fn kinds_are_scored_one_by_one_up_to_a_bound() {
        let few = [outcome("a", Some(1), Some("x")), outcome("b", None, None)];
        let summary = RunSummary::new(&few);
        let kinds: Vec<_> = summary
            .kinds
            .iter()
            .map(|(kind, count, scores)| (kind.as_str(), *count, scores.get("recall_at_10")))
            .collect();
        assert_eq!(kinds, [("other", 1, 0.0), ("x", 1, 1.0)]);
        let many = |count: usize| {
            let kind = |n: usize| outcome("a", Some(1), Some(&format!("k{n:02}")));
            RunSummary::new(&(0..count).map(kind).collect::<Vec<_>>()).kinds
        };
        assert_eq!(many(MAX_KINDS - 1).len(), MAX_KINDS - 1);
        assert_eq!(many(MAX_KINDS).len(), MAX_KINDS);
        let more = many(MAX_KINDS + 1);
        assert_eq!(more.len(), MAX_KINDS);
        assert!(
            more.iter()
                .any(|(kind, count, _)| kind == "other" && *count == 2)
        );
    }

    #[test]
    fn the_worst_come_first_and_perfect_ones_are_omitted() {
        let outcomes = [
            outcome("fine", Some(1), None),
            outcome("second", Some(2), None),
            outcome("deep", Some(30), None),
            outcome("lost", None, None),
        ];
        let names: Vec<_> = worst(&outcomes, 9)
            .iter()
            .map(|o| o.judged.query.clone())
            .collect();
        assert_eq!(names, ["lost", "deep", "second"]);
        assert_eq!(worst(&outcomes, 2).len(), 2);
    }
}
