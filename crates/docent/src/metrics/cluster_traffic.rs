//! Metrics of the requests to an engine cluster: calls, retries, latencies and the circuit breaker of each node, as
//! Prometheus text and as a table for the status page.

use std::fmt::Write as _;

use docent_mcp::escape_html;
use docent_search::{CALL_BUCKETS, CallTraffic, ClusterTraffic, NodeTraffic};

/// Writes the Prometheus lines of a cluster.
pub(super) fn write(out: &mut String, traffic: &ClusterTraffic) {
    calls(out, &traffic.calls);
    times(out, &traffic.calls);
    nodes(out, &traffic.nodes);
}

fn head(out: &mut String, name: &str, help: &str, kind: &str) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn calls(out: &mut String, calls: &[CallTraffic]) {
    const NAME: &str = "docent_engine_calls_total";
    head(out, NAME, "Cluster calls by outcome.", "counter");
    for one in calls {
        let ended = [
            ("answered", one.answered),
            ("refused", one.refused),
            ("failed", one.failed),
        ];
        for (outcome, count) in ended {
            let call = one.call;
            let _ = writeln!(
                out,
                "{NAME}{{call=\"{call}\",outcome=\"{outcome}\"}} {count}"
            );
        }
    }
    const RETRIES: &str = "docent_engine_retries_total";
    head(
        out,
        RETRIES,
        "Requests that were retried, most of them on another node.",
        "counter",
    );
    for one in calls {
        let _ = writeln!(out, "{RETRIES}{{call=\"{}\"}} {}", one.call, one.retries);
    }
}

fn times(out: &mut String, calls: &[CallTraffic]) {
    const NAME: &str = "docent_engine_call_seconds";
    head(
        out,
        NAME,
        "Duration of cluster calls, retries included.",
        "histogram",
    );
    for one in calls {
        let call = one.call;
        let mut so_far = 0;
        for (end, count) in CALL_BUCKETS.iter().zip(&one.took) {
            so_far += count;
            let end = *end as f64 / 1e6;
            let _ = writeln!(
                out,
                "{NAME}_bucket{{call=\"{call}\",le=\"{end}\"}} {so_far}"
            );
        }
        let (all, sum) = (one.count(), one.spent.as_secs_f64());
        let _ = writeln!(
            out,
            "{NAME}_bucket{{call=\"{call}\",le=\"+Inf\"}} {all}\n\
             {NAME}_sum{{call=\"{call}\"}} {sum}\n{NAME}_count{{call=\"{call}\"}} {all}"
        );
    }
}

/// A metric that every node has.
struct NodeMetric {
    name: &'static str,
    help: &'static str,
    /// The Prometheus type: `counter` or `gauge`.
    kind: &'static str,
    value: fn(&NodeTraffic) -> u64,
}

fn nodes(out: &mut String, nodes: &[NodeTraffic]) {
    let rows: [NodeMetric; 3] = [
        NodeMetric {
            name: "docent_engine_node_requests_total",
            help: "Requests sent to a node.",
            kind: "counter",
            value: |node| node.requests,
        },
        NodeMetric {
            name: "docent_engine_node_failures_total",
            help: "Requests that a node did not answer.",
            kind: "counter",
            value: |node| node.failures,
        },
        NodeMetric {
            name: "docent_engine_node_left_alone",
            help: "1 while the circuit breaker of the node is open and no request is sent.",
            kind: "gauge",
            value: |node| u64::from(node.is_circuit_open),
        },
    ];
    for metric in rows {
        let name = metric.name;
        head(out, name, metric.help, metric.kind);
        for node in nodes {
            // A URL contains neither quotes nor backslashes. The label is sanitised all the same, so that no
            // address can inject a metric.
            let address: String = node.address.replace(['"', '\\', '\n'], "_");
            let _ = writeln!(out, "{name}{{node=\"{address}\"}} {}", (metric.value)(node));
        }
    }
}

/// Renders the nodes and the calls as two HTML tables.
pub(super) fn page(traffic: &ClusterTraffic) -> String {
    let mut out = String::from(
        "<table><tr><th>node</th><th>requests</th><th>failures</th><th>asked now</th></tr>",
    );
    for node in &traffic.nodes {
        let asked = if node.is_circuit_open { "no" } else { "yes" };
        let _ = write!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{asked}</td></tr>",
            escape_html(&node.address),
            node.requests,
            node.failures
        );
    }
    out.push_str("</table><table><tr><th>cluster</th><th>calls</th><th>retries</th><th>refused</th><th>failed</th><th>mean</th></tr>");
    for one in traffic.calls.iter().filter(|one| one.count() > 0) {
        let mean = one.spent.as_secs_f64() * 1e3 / one.count() as f64;
        let _ = write!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{mean:.1} ms</td></tr>",
            one.call,
            one.count(),
            one.retries,
            one.refused,
            one.failed
        );
    }
    out.push_str("</table>");
    out
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn calls_and_nodes_are_reported() {
        let mut took = [0; CALL_BUCKETS.len() + 1];
        (took[0], took[1]) = (2, 1);
        let traffic = ClusterTraffic {
            calls: vec![CallTraffic {
                call: "search",
                answered: 2,
                refused: 0,
                failed: 1,
                retries: 4,
                took,
                spent: Duration::from_millis(5),
            }],
            nodes: vec![NodeTraffic {
                address: "http://a:6333".to_owned(),
                requests: 7,
                failures: 5,
                is_circuit_open: true,
            }],
            rounds: 1,
        };
        let mut out = String::new();
        write(&mut out, &traffic);
        for line in [
            "docent_engine_calls_total{call=\"search\",outcome=\"answered\"} 2",
            "docent_engine_calls_total{call=\"search\",outcome=\"failed\"} 1",
            "docent_engine_retries_total{call=\"search\"} 4",
            "docent_engine_call_seconds_bucket{call=\"search\",le=\"0.001\"} 2",
            "docent_engine_call_seconds_bucket{call=\"search\",le=\"10\"} 3",
            "docent_engine_call_seconds_bucket{call=\"search\",le=\"+Inf\"} 3",
            "docent_engine_call_seconds_sum{call=\"search\"} 0.005",
            "docent_engine_node_requests_total{node=\"http://a:6333\"} 7",
            "docent_engine_node_failures_total{node=\"http://a:6333\"} 5",
            "docent_engine_node_left_alone{node=\"http://a:6333\"} 1",
        ] {
            assert!(out.lines().any(|found| found == line), "{line}\n{out}");
        }
        let page = page(&traffic);
        assert!(
            page.contains("<td>http://a:6333</td><td>7</td><td>5</td><td>no</td>"),
            "{page}"
        );
    }
}
