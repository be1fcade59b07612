//! The JSON output of an evaluation run, for programs and as the baseline of later runs.

use serde_json::{Map, Value, json};

use super::quality_gate::QualityGate;
use super::query_runner::{ExpectedDocument, QueryOutcome};
use super::run_comparison::{QueryDelta, RunComparison};
use super::scoring::{MEASURES, MeanScores, RunSummary, millis};

/// The format version, raised with every incompatible change.
pub(crate) const FORMAT: u32 = 1;

/// A complete run, as the text, JSON and HTML outputs need it.
pub(crate) struct EvalRun<'a> {
    /// The title of the corpus.
    pub(crate) title: &'a str,
    /// The number of documents in the index.
    pub(crate) documents: usize,
    /// Queries that were skipped because they have no relevant document.
    pub(crate) unjudged: usize,
    /// Invalid lines that were skipped.
    pub(crate) skipped: usize,
    /// The number of judged documents that the index does not contain.
    pub(crate) unknown: usize,
    /// The aggregated scores and latencies.
    pub(crate) summary: &'a RunSummary,
    /// The result of each query.
    pub(crate) outcomes: &'a [QueryOutcome],
    /// The quality gates with their measured values.
    pub(crate) gates: &'a [QualityGate],
    /// The comparison with a baseline, if one was given.
    pub(crate) change: Option<&'a RunComparison>,
}

/// Renders the run in the format that [`BaselineRun`](super::run_comparison::BaselineRun) reads.
pub(crate) fn json(run: &EvalRun<'_>) -> Value {
    let RunSummary {
        queries,
        scores: means,
        margin,
        kinds,
        p50,
        p99,
    } = run.summary;
    let kind = |(kind, count, means): &(String, usize, MeanScores)| json!({"kind": kind, "queries": count, "scores": scores(means)});
    let mut value = json!({
        "format": FORMAT,
        "title": run.title,
        "documents": run.documents,
        "asked": queries,
        "unjudged": run.unjudged,
        "skipped_lines": run.skipped,
        "unknown_documents": run.unknown,
        "scores": scores(means),
        "ndcg_margin": margin.map(rounded),
        "latency_ms": {"p50": rounded(*p50), "p99": rounded(*p99)},
        "kinds": kinds.iter().map(kind).collect::<Vec<_>>(),
        "gates": run.gates.iter().map(gate).collect::<Vec<_>>(),
        "queries": run.outcomes.iter().map(query).collect::<Vec<_>>(),
    });
    if let (Some(change), Some(all)) = (run.change, value.as_object_mut()) {
        all.insert("compared".to_owned(), compared(change));
    }
    value
}

fn scores(means: &MeanScores) -> Map<String, Value> {
    let named = means
        .each()
        .map(|(measure, mean)| (measure.key.to_owned(), json!(rounded(mean))));
    named.collect()
}

fn query(outcome: &QueryOutcome) -> Value {
    let value = |of: fn(&QueryOutcome) -> Option<f64>| json!(of(outcome).map(rounded));
    let scores: Map<_, _> = MEASURES
        .iter()
        .map(|measure| (measure.key.to_owned(), value(measure.of)))
        .collect();
    let expected =
        |one: &ExpectedDocument| json!({"id": one.id, "grade": one.grade, "rank": one.rank});
    json!({
        "id": outcome.judged.id,
        "query": outcome.judged.query,
        "kind": outcome.judged.kind,
        "scores": scores,
        "ms": rounded(millis(outcome.time)),
        "relevant": outcome.judged.relevant.len(),
        "expected": outcome.expected.iter().map(expected).collect::<Vec<_>>(),
        "found": outcome.found.iter().map(|id| id.as_str()).collect::<Vec<_>>(),
    })
}

fn gate(gate: &QualityGate) -> Value {
    json!({
        "flag": gate.flag,
        "least": gate.least,
        "found": rounded(gate.found),
        "passed": gate.passed(),
    })
}

fn compared(change: &RunComparison) -> Value {
    let pair = |before: f64, now: f64| json!({"before": rounded(before), "now": rounded(now)});
    let scores: Map<_, _> = change
        .scores
        .iter()
        .map(|(measure, before, now)| (measure.key.to_owned(), pair(*before, *now)))
        .collect();
    let moves = |moves: &[QueryDelta]| -> Vec<Value> {
        let one = |m: &QueryDelta| json!({"id": m.id, "query": m.query, "before": rounded(m.before), "now": rounded(m.now)});
        moves.iter().map(one).collect()
    };
    json!({
        "queries": change.both,
        "only_now": change.only_now,
        "only_before": change.only_before,
        "scores": scores,
        "latency_ms": {"p50": pair(change.p50.0, change.p50.1), "p99": pair(change.p99.0, change.p99.1)},
        "better": change.better,
        "worse": change.worse,
        "same": change.both - change.better - change.worse,
        "chance": rounded(change.p_value),
        "gains": moves(&change.gains),
        "losses": moves(&change.losses),
    })
}

/// Rounds to six decimal places, which is below any meaningful difference and keeps the file readable.
fn rounded(number: f64) -> f64 {
    (number * 1e6).round() / 1e6
}
