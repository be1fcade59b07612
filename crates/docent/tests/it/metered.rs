//! Metrics of a real server in the Prometheus format, on a separate address.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::json;

use crate::process::{ServerProcess, TestDir};

pub(crate) fn get(address: &str, path: &str, host: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn calls_are_counted_on_an_address_of_their_own() {
    let dir = TestDir::small();
    let server = ServerProcess::start(&dir, &["docs", "--metrics", "127.0.0.1:0"]);
    server.wait_until_synced();
    let address = server.metrics();
    let address = address.as_str();
    server.call("search", &json!({"query": "ferry"}));
    server.call("fetch", &json!({"id": "no such document"}));
    let metrics = get(address, "/metrics", address);
    for line in [
        "docent_ready 1",
        "docent_documents 3",
        "docent_tool_calls_total{tool=\"search\",outcome=\"done\"} 1",
        "docent_tool_calls_total{tool=\"fetch\",outcome=\"mistaken\"} 1",
        "docent_tool_seconds_count{tool=\"search\"} 1",
    ] {
        assert!(
            metrics.lines().any(|found| found == line),
            "{line}\n{metrics}"
        );
    }
    assert!(!metrics.contains("ferry") && !metrics.contains("no such"));
    let page = get(address, "/", address);
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("<td>search</td><td>1</td>"));
    // DNS rebinding is refused by the `Host` check, and the public address has no `/metrics`.
    assert!(get(address, "/metrics", "evil.example").starts_with("HTTP/1.1 403"));
    assert_eq!(
        server.raw("GET", "/metrics", None, "").0.split(' ').nth(1),
        Some("404")
    );
}

#[test]
fn a_metrics_address_in_use_stops_the_start() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let dir = TestDir::small();
    let ran = dir.run(&[
        "serve",
        "docs",
        "--listen",
        "127.0.0.1:0",
        "--metrics",
        &address,
    ]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("is in use"), "{ran:?}");
}
