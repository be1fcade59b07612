//! A run into JSON, for programs and for later runs to be compared with.

use serde_json::{Map, Value, json};

use super::quality_gate::QualityGate;
use super::query_runner::{ExpectedDocument, QueryOutcome};
use super::run_comparison::{QueryDelta, RunComparison};
use super::scoring::{MEASURES, MeanScores, RunSummary, millis};

/// Counts the changes of this shape that make older files unreadable.
pub(crate) const FORMAT: u32 = 1;

/// Everything a run has to tell.
pub(crate) struct EvalRun<'a> {
    /// What people call the documents.
    pub(crate) title: &'a str,
    /// How many documents there are.
    pub(crate) documents: usize,
    /// Queries that were left out, because nothing is relevant to them.
    pub(crate) unjudged: usize,
    /// Bad lines that were left out.
    pub(crate) skipped: usize,
    /// How many judged documents are not in the index.
    pub(crate) unknown: usize,
    /// The scores.
    pub(crate) summary: &'a RunSummary,
    /// Each query.
    pub(crate) outcomes: &'a [QueryOutcome],
    /// The demands and whether they are met.
    pub(crate) gates: &'a [QualityGate],
    /// What changed since an earlier run.
    pub(crate) change: Option<&'a RunComparison>,
}

/// The run as JSON.
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

/// Six places are more than any score means, and files stay readable.
fn rounded(number: f64) -> f64 {
    (number * 1e6).round() / 1e6
}
