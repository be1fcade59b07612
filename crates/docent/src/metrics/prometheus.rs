//! The Prometheus exporter: all metrics in the text exposition format.

use std::fmt::Write as _;

use super::process_stats::ProcessStats;
use super::{BUCKETS, OUTCOMES, ServerMetrics, ToolMetrics, load_counter};

/// Renders the answer of `/metrics`: gauges of the index, counters and latency histograms of the tools, trace spans,
/// cluster and process.
pub(super) fn write(metrics: &ServerMetrics) -> String {
    let mut out = String::with_capacity(8 * 1024);
    let readiness = metrics.readiness.numbers();
    let gauge = |out: &mut String, name: &str, help: &str, value: f64| {
        let _ = writeln!(
            out,
            "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}"
        );
    };
    let ready = f64::from(u8::from(readiness.ready));
    gauge(
        &mut out,
        "docent_ready",
        "Whether the server can answer.",
        ready,
    );
    gauge(
        &mut out,
        "docent_documents",
        "Documents that can be found by their words.",
        readiness.documents as f64,
    );
    gauge(
        &mut out,
        "docent_documents_with_vectors",
        "Documents that can be found by their meaning.",
        readiness.with_vectors as f64,
    );
    gauge(
        &mut out,
        "docent_generation",
        "Batches of changes applied to the index.",
        readiness.generation as f64,
    );
    calls(&mut out, &metrics.tools);
    times(&mut out, &metrics.tools);
    spans(&mut out, metrics);
    if let Some(traffic) = metrics.engine.traffic() {
        super::cluster_traffic::write(&mut out, &traffic);
    }
    process(&mut out, metrics);
    out
}

fn calls(out: &mut String, tools: &[ToolMetrics]) {
    const NAME: &str = "docent_tool_calls_total";
    let _ = writeln!(
        out,
        "# HELP {NAME} Tool calls by outcome.\n# TYPE {NAME} counter"
    );
    for tool in tools {
        for ((_, outcome), count) in OUTCOMES.iter().zip(&tool.outcomes) {
            let (name, count) = (&tool.name, load_counter(count));
            let _ = writeln!(
                out,
                "{NAME}{{tool=\"{name}\",outcome=\"{outcome}\"}} {count}"
            );
        }
    }
}

fn times(out: &mut String, tools: &[ToolMetrics]) {
    const NAME: &str = "docent_tool_seconds";
    let _ = writeln!(
        out,
        "# HELP {NAME} Duration of tool calls.\n# TYPE {NAME} histogram"
    );
    for tool in tools {
        let name = &tool.name;
        let mut so_far = 0;
        for (end, count) in BUCKETS.iter().zip(&tool.took) {
            so_far += load_counter(count);
            let end = *end as f64 / 1e6;
            let _ = writeln!(
                out,
                "{NAME}_bucket{{tool=\"{name}\",le=\"{end}\"}} {so_far}"
            );
        }
        let (all, sum) = (tool.calls(), load_counter(&tool.micros) as f64 / 1e6);
        let _ = writeln!(
            out,
            "{NAME}_bucket{{tool=\"{name}\",le=\"+Inf\"}} {all}\n\
             {NAME}_sum{{tool=\"{name}\"}} {sum}\n{NAME}_count{{tool=\"{name}\"}} {all}"
        );
    }
}

fn spans(out: &mut String, metrics: &ServerMetrics) {
    const NAME: &str = "docent_spans_total";
    let Some(counts) = &metrics.spans else { return };
    let _ = writeln!(
        out,
        "# HELP {NAME} Trace spans, sent to the collector or dropped.\n# TYPE {NAME} counter"
    );
    for (outcome, count) in [("sent", &counts.sent), ("dropped", &counts.dropped)] {
        let _ = writeln!(
            out,
            "{NAME}{{outcome=\"{outcome}\"}} {}",
            load_counter(count)
        );
    }
}

fn process(out: &mut String, metrics: &ServerMetrics) {
    let now = ProcessStats::now();
    let uptime = metrics.started.elapsed().as_secs_f64();
    let rows = [
        ("docent_uptime_seconds", "gauge", Some(uptime)),
        (
            "process_resident_memory_bytes",
            "gauge",
            now.memory_bytes.map(|bytes| bytes as f64),
        ),
        ("process_cpu_seconds_total", "counter", now.cpu_seconds),
        (
            "process_open_fds",
            "gauge",
            now.open_files.map(|files| files as f64),
        ),
    ];
    for (name, kind, value) in rows {
        if let Some(value) = value {
            let _ = writeln!(out, "# TYPE {name} {kind}\n{name} {value}");
        }
    }
}
