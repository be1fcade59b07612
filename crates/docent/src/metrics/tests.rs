//! Counting calls, and the cardinality limits that no client can exceed.

use docent_search::{EngineStatus, Generation, MemoryEngine, PartState};

use super::*;
use crate::readiness::SyncState;

fn metrics(tools: &[&str]) -> ServerMetrics {
    let status = EngineStatus {
        documents: 7,
        generation: Generation(3),
        lexical: PartState::Ready,
        vectors: PartState::Ready,
    };
    let names: Vec<_> = tools.iter().map(|&name| name.to_owned()).collect();
    let readiness = Readiness::new(status, SyncState::Done);
    let engine = Arc::new(MemoryEngine::new());
    ServerMetrics::new("Notes & <more>", &names, Arc::new(readiness), engine)
}

fn call(metrics: &ServerMetrics, tool: &str, outcome: CallStatus, micros: u64) {
    metrics.count(tool, outcome, Duration::from_micros(micros));
}

#[test]
fn calls_are_counted_by_tool_outcome_and_time() {
    let metrics = metrics(&["search"]);
    call(&metrics, "search", CallStatus::Done, 1_000);
    call(&metrics, "search", CallStatus::Done, 1_001);
    call(&metrics, "search", CallStatus::Failed, 99_000_000);
    // A tool name that a client invents creates no new time series.
    call(&metrics, "x\"} 1\nevil", CallStatus::Mistaken, 1);
    let text = prometheus::write(&metrics);
    for line in [
        "docent_ready 1",
        "docent_documents 7",
        "docent_documents_with_vectors 7",
        "docent_generation 3",
        "docent_tool_calls_total{tool=\"search\",outcome=\"done\"} 2",
        "docent_tool_calls_total{tool=\"search\",outcome=\"failed\"} 1",
        "docent_tool_calls_total{tool=\"other\",outcome=\"mistaken\"} 1",
        "docent_tool_seconds_bucket{tool=\"search\",le=\"0.001\"} 1",
        "docent_tool_seconds_bucket{tool=\"search\",le=\"0.0025\"} 2",
        "docent_tool_seconds_bucket{tool=\"search\",le=\"10\"} 2",
        "docent_tool_seconds_bucket{tool=\"search\",le=\"+Inf\"} 3",
        "docent_tool_seconds_count{tool=\"search\"} 3",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    assert!(!text.contains("evil"));
    assert!(
        !text.contains("docent_engine"),
        "an engine in this process has no cluster metrics"
    );
}

#[test]
fn tools_end_at_their_bound() {
    let names: Vec<String> = (0..=MAX_TOOLS).map(|n| format!("t{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let metrics = metrics(&names);
    call(
        &metrics,
        &format!("t{}", MAX_TOOLS - 1),
        CallStatus::Done,
        1,
    );
    call(&metrics, &format!("t{MAX_TOOLS}"), CallStatus::Done, 1);
    let counted: Vec<_> = metrics
        .tools
        .iter()
        .filter(|tool| tool.calls() > 0)
        .collect();
    let counted: Vec<_> = counted.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(counted, [format!("t{}", MAX_TOOLS - 1).as_str(), OTHER]);
}
