//! Server metrics: counters and latency histograms of tool calls, as a Prometheus endpoint and as a status page.
//!
//! They have a listener of their own, so that the public address cannot expose them by accident.

mod cluster_traffic;
mod page;
mod process_stats;
mod prometheus;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use docent_mcp::http::{Route, RouteRequest, RouteResponse};
use docent_mcp::{CallKind, CallObserver, CallRecord, CallStatus, Failure};
use docent_search::Engine;

use crate::readiness::Readiness;
use crate::telemetry::SpanCounts;

/// The cardinality limit of the `tool` label. Calls of further tools, or of unknown names, count as `other`.
const MAX_TOOLS: usize = 64;

/// The label value for calls of unknown tools.
const OTHER: &str = "other";

/// The upper bounds of the latency histogram, in microseconds.
const BUCKETS: [u64; 13] = [
    1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
    5_000_000, 10_000_000,
];

/// The outcomes of a call with their label values.
const OUTCOMES: [(CallStatus, &str); 6] = [
    (CallStatus::Done, "done"),
    (CallStatus::Mistaken, "mistaken"),
    (CallStatus::Failed, "failed"),
    (CallStatus::Forbidden, "forbidden"),
    (CallStatus::TooSoon, "too_soon"),
    (CallStatus::Abandoned, "abandoned"),
];

/// Counters since the start of the server. They are atomics, so that counting never locks.
pub(crate) struct ServerMetrics {
    title: String,
    started: Instant,
    readiness: Arc<Readiness>,
    engine: Arc<dyn Engine>,
    /// One per tool, and one for unknown names at the end.
    tools: Vec<ToolMetrics>,
    /// Counters of exported and dropped trace spans, if tracing is on.
    spans: Option<Arc<SpanCounts>>,
}

/// The counters of one tool.
struct ToolMetrics {
    name: String,
    outcomes: [AtomicU64; OUTCOMES.len()],
    /// Calls by latency bucket; the last bucket is unbounded. Not cumulative, unlike the Prometheus output.
    took: [AtomicU64; BUCKETS.len() + 1],
    micros: AtomicU64,
}

impl ToolMetrics {
    fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            outcomes: Default::default(),
            took: Default::default(),
            micros: AtomicU64::new(0),
        }
    }

    fn count(&self, outcome: CallStatus, took: Duration) {
        let add = |counter: Option<&AtomicU64>, more: u64| {
            if let Some(counter) = counter {
                counter.fetch_add(more, Ordering::Relaxed);
            }
        };
        let index = OUTCOMES.iter().position(|(known, _)| *known == outcome);
        add(index.and_then(|at| self.outcomes.get(at)), 1);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        add(
            self.took.get(BUCKETS.partition_point(|end| *end < micros)),
            1,
        );
        add(Some(&self.micros), micros);
    }

    fn calls(&self) -> u64 {
        self.took.iter().map(load_counter).sum()
    }

    fn ended(&self, outcome: CallStatus) -> u64 {
        let at = OUTCOMES.iter().position(|(known, _)| *known == outcome);
        at.and_then(|at| self.outcomes.get(at))
            .map_or(0, load_counter)
    }
}

fn load_counter(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

impl ServerMetrics {
    /// Creates the counters for these tools, all at zero.
    pub(crate) fn new(
        title: &str,
        tools: &[String],
        readiness: Arc<Readiness>,
        engine: Arc<dyn Engine>,
    ) -> Self {
        let names = tools.iter().take(MAX_TOOLS).map(String::as_str);
        Self {
            title: title.to_owned(),
            started: Instant::now(),
            readiness,
            engine,
            tools: names.chain([OTHER]).map(ToolMetrics::new).collect(),
            spans: None,
        }
    }

    /// Adds the counters of the span exporter.
    pub(crate) fn with_spans(mut self, spans: Option<Arc<SpanCounts>>) -> Self {
        self.spans = spans;
        self
    }

    fn count(&self, tool: &str, outcome: CallStatus, took: Duration) {
        let known = self.tools.iter().find(|known| known.name == tool);
        if let Some(tool) = known.or(self.tools.last()) {
            tool.count(outcome, took);
        }
    }

    /// The routes: `/metrics` for Prometheus, and the status page at `/`.
    pub(crate) fn routes(self: &Arc<Self>) -> Vec<Route> {
        let (numbers, page) = (self.clone(), self.clone());
        let answer = |page: RouteResponse| std::future::ready(Ok::<_, Failure>(page));
        vec![
            Route::get("/metrics", move |_: RouteRequest| {
                let kind = "text/plain; version=0.0.4; charset=utf-8";
                answer(RouteResponse::new(200, kind, prometheus::write(&numbers)))
            }),
            Route::get("/", move |_: RouteRequest| answer(page::write(&page))),
        ]
    }
}

impl CallObserver for ServerMetrics {
    fn on_call(&self, call: &CallRecord<'_>) {
        if call.what == CallKind::Tool {
            self.count(call.tool, call.outcome, call.took);
        }
    }
}

#[cfg(test)]
mod tests;
