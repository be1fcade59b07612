//! The counts as Prometheus reads them.

use std::fmt::Write as _;

use super::process_stats::ProcessStats;
use super::{BUCKETS, OUTCOMES, ServerMetrics, ToolMetrics, load_counter};

/// The page of all numbers.
pub(super) fn write(meter: &ServerMetrics) -> String {
    let mut out = String::with_capacity(8 * 1024);
    let standing = meter.readiness.numbers();
    let gauge = |out: &mut String, name: &str, help: &str, value: f64| {
        let _ = writeln!(
            out,
            "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}"
        );
    };
    let ready = f64::from(u8::from(standing.ready));
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
        standing.documents as f64,
    );
    gauge(
        &mut out,
        "docent_documents_with_vectors",
        "Documents that can be found by their meaning.",
        standing.with_vectors as f64,
    );
    gauge(
        &mut out,
        "docent_generation",
        "Batches of changes applied to the index.",
        standing.generation as f64,
    );
    calls(&mut out, &meter.tools);
    times(&mut out, &meter.tools);
    spans(&mut out, meter);
    if let Some(traffic) = meter.engine.traffic() {
        super::cluster_traffic::write(&mut out, &traffic);
    }
    process(&mut out, meter);
    out
}

fn calls(out: &mut String, tools: &[ToolMetrics]) {
    const NAME: &str = "docent_tool_calls_total";
    let _ = writeln!(
        out,
        "# HELP {NAME} Calls of tools, by how they ended.\n# TYPE {NAME} counter"
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
        "# HELP {NAME} How long calls of tools took.\n# TYPE {NAME} histogram"
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

fn spans(out: &mut String, meter: &ServerMetrics) {
    const NAME: &str = "docent_spans_total";
    let Some(counts) = &meter.spans else { return };
    let _ = writeln!(
        out,
        "# HELP {NAME} Spans of traces, by what became of them.\n# TYPE {NAME} counter"
    );
    for (outcome, count) in [("sent", &counts.sent), ("dropped", &counts.dropped)] {
        let _ = writeln!(
            out,
            "{NAME}{{outcome=\"{outcome}\"}} {}",
            load_counter(count)
        );
    }
}

fn process(out: &mut String, meter: &ServerMetrics) {
    let now = ProcessStats::now();
    let uptime = meter.started.elapsed().as_secs_f64();
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
