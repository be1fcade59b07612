//! The status page: the metrics as HTML for people, without scripts, reloaded every ten seconds.

use std::fmt::Write as _;

use docent_mcp::http::RouteResponse;
use docent_mcp::{CallStatus, escape_html};

use super::process_stats::ProcessStats;
use super::{ServerMetrics, ToolMetrics, load_counter};

const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:2rem auto;padding:0 1rem}\
h1{font-size:1.4rem;margin:0}\
p{margin:.2rem 0 1.5rem;opacity:.75}\
table{border-collapse:collapse;width:100%;margin:0 0 1.5rem}\
th,td{text-align:right;padding:.3rem .5rem;border-bottom:1px solid #8884}\
th:first-child,td:first-child{text-align:left}\
th{font-weight:600}";

/// Renders the status page under a CSP that allows inline styles and nothing else.
pub(super) fn write(metrics: &ServerMetrics) -> RouteResponse {
    let policy =
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'";
    RouteResponse::html(html(metrics))
        .header("content-security-policy", policy)
        .header("cache-control", "no-store")
}

fn html(metrics: &ServerMetrics) -> String {
    let mut out = String::with_capacity(4 * 1024);
    let title = escape_html(&metrics.title);
    let _ = write!(
        out,
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><meta http-equiv=\"refresh\" content=\"10\">\
         <title>{title}</title><style>{STYLE}</style><h1>{title}</h1><p>{}</p><table>",
        state(metrics)
    );
    for (name, value) in facts(metrics) {
        let _ = write!(out, "<tr><td>{name}</td><td>{value}</td></tr>");
    }
    out.push_str(
        "</table><table><tr><th>tool</th><th>calls</th><th>mistaken</th><th>failed</th><th>refused</th>\
         <th>mean</th></tr>",
    );
    for tool in metrics.tools.iter().filter(|tool| tool.calls() > 0) {
        out.push_str(&row(tool));
    }
    out.push_str("</table>");
    if let Some(traffic) = metrics.engine.traffic() {
        out.push_str(&super::cluster_traffic::page(&traffic));
    }
    out.push_str("<p><a href=\"/metrics\">/metrics</a> has the same for Prometheus.</p></html>");
    out
}

fn state(metrics: &ServerMetrics) -> &'static str {
    if metrics.readiness.numbers().ready {
        "The server answers."
    } else {
        "The server is not ready yet."
    }
}

fn facts(metrics: &ServerMetrics) -> Vec<(&'static str, String)> {
    let (readiness, now) = (metrics.readiness.numbers(), ProcessStats::now());
    let mut facts = vec![
        ("documents", readiness.documents.to_string()),
        (
            "of these found by meaning",
            readiness.with_vectors.to_string(),
        ),
        ("generation of the index", readiness.generation.to_string()),
        ("up for", span(metrics.started.elapsed().as_secs())),
    ];
    let memory = now.memory_bytes.map(|bytes| format!("{} MiB", bytes >> 20));
    facts.extend(memory.map(|memory| ("memory", memory)));
    facts
}

fn row(tool: &ToolMetrics) -> String {
    let calls = tool.calls();
    let refused = tool.ended(CallStatus::Forbidden) + tool.ended(CallStatus::TooSoon);
    let mean = load_counter(&tool.micros) as f64 / 1e3 / calls.max(1) as f64;
    format!(
        "<tr><td>{}</td><td>{calls}</td><td>{}</td><td>{}</td><td>{refused}</td><td>{mean:.1} ms</td></tr>",
        escape_html(&tool.name),
        tool.ended(CallStatus::Mistaken),
        tool.ended(CallStatus::Failed),
    )
}

/// A duration in one unit, as people say it.
fn span(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_said_in_one_unit() {
        for (seconds, expected) in [
            (119, "119 s"),
            (120, "2 min"),
            (7_199, "119 min"),
            (7_200, "2 h"),
            (172_800, "2 days"),
        ] {
            assert_eq!(span(seconds), expected);
        }
        assert_eq!(escape_html("<a & \"b\">"), "&lt;a &amp; &quot;b&quot;&gt;");
    }
}
