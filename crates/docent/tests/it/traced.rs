//! OpenTelemetry traces of a real server, received by a mock OTLP collector.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::process::{ServerProcess, TestDir, until};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

/// Mock OTLP collector that keeps every span posted to it, and the head of the last request.
#[derive(Clone, Default)]
struct TraceCollector {
    spans: Arc<Mutex<Vec<Value>>>,
    head: Arc<Mutex<String>>,
}

impl TraceCollector {
    /// Starts a collector, and returns it with its address.
    fn start() -> (Self, String) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let collector = Self::default();
        let receiver = collector.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let mut reader = BufReader::new(stream);
                let mut head = String::new();
                while reader.read_line(&mut head).unwrap_or(0) > 2 {}
                let length = head.to_lowercase();
                let length = length.split("content-length: ").nth(1).unwrap();
                let length: usize = length.lines().next().unwrap().trim().parse().unwrap();
                let mut body = vec![0; length];
                reader.read_exact(&mut body).unwrap();
                receiver.take(&serde_json::from_slice(&body).unwrap());
                *receiver.head.lock().unwrap() = head;
                let answer = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
                reader.get_mut().write_all(answer.as_bytes()).unwrap();
            }
        });
        (collector, address)
    }

    fn take(&self, body: &Value) {
        let resource = &body["resourceSpans"][0];
        let name = json!({"key": "service.name", "value": {"stringValue": "harbour"}});
        assert_eq!(resource["resource"]["attributes"][0], name, "{body}");
        let spans = resource["scopeSpans"][0]["spans"].as_array().unwrap();
        self.spans.lock().unwrap().extend(spans.iter().cloned());
    }

    fn all(&self) -> Vec<Value> {
        self.spans.lock().unwrap().clone()
    }

    /// Waits until this number of spans of one trace has arrived, and returns them.
    fn of(&self, trace: &str, count: usize) -> Vec<Value> {
        let found = || {
            let all = self.all();
            let own: Vec<_> = all
                .into_iter()
                .filter(|span| span["traceId"] == trace)
                .collect();
            (own.len() >= count).then_some(own)
        };
        until(found).unwrap_or_else(|| panic!("{count} spans of {trace} in {:#?}", self.all()))
    }
}

fn named<'s>(spans: &'s [Value], name: &str) -> &'s Value {
    let found = spans.iter().find(|span| span["name"] == name);
    found.unwrap_or_else(|| panic!("no span `{name}` in {spans:#?}"))
}

fn attribute<'s>(span: &'s Value, name: &str) -> &'s Value {
    let all = span["attributes"].as_array().unwrap();
    let found = all.iter().find(|attribute| attribute["key"] == name);
    found.map_or(&Value::Null, |attribute| &attribute["value"])
}

fn start(dir: &TestDir, endpoint: &str) -> ServerProcess {
    let mut command = dir.serve(&["docs", "--metrics", "127.0.0.1:0"]);
    command
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
        .env("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=quay")
        .env("OTEL_SERVICE_NAME", "harbour");
    let server = ServerProcess::of(command);
    server.wait_until_synced();
    // Only with vectors does a query need the model, and a span for it.
    server.wait_until_embedded();
    server
}

fn search(server: &ServerProcess, query: &str, meta: &Value, headers: &str) {
    let call = json!({"name": "search", "arguments": {"query": query}, "_meta": meta});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call});
    let (head, body) = server.raw("POST", "/mcp", Some(&message), headers);
    assert!(head.starts_with("HTTP/1.1 200"), "{head}\n{body}");
}

#[test]
fn a_request_is_part_of_the_callers_trace() {
    let (collector, address) = TraceCollector::start();
    let dir = TestDir::small();
    let server = start(&dir, &address);
    let header = format!("traceparent: 00-{TRACE}-{PARENT}-01\r\n");
    search(&server, "ferry zebrafish", &json!({}), &header);
    let spans = collector.of(TRACE, 4);
    let (request, tool) = (named(&spans, "request"), named(&spans, "tool"));
    let (engine, embed) = (named(&spans, "search"), named(&spans, "embed"));
    assert_eq!(request["parentSpanId"], PARENT);
    assert_eq!(request["kind"], 2);
    assert_eq!(attribute(request, "method")["stringValue"], "tools/call");
    assert_eq!(tool["parentSpanId"], request["spanId"]);
    assert_eq!(attribute(tool, "tool")["stringValue"], "search");
    assert_eq!(attribute(tool, "outcome")["stringValue"], "done");
    assert_eq!(engine["parentSpanId"], tool["spanId"]);
    assert!(attribute(engine, "hits")["intValue"].is_string());
    assert_eq!(embed["parentSpanId"], engine["spanId"]);
    let head = collector.head.lock().unwrap().to_lowercase();
    assert!(head.starts_with("post /v1/traces http/1.1"), "{head}");
    assert!(head.contains("x-tenant: quay"), "{head}");
    // No word of the query or of a document may be in a span.
    let all = Value::Array(collector.all()).to_string();
    for word in ["zebrafish", "ferry", "sails", "Levee"] {
        assert!(!all.contains(word), "{word} in {all}");
    }
}

/// Hosts send `traceparent` in the body, and a call with progress takes the streaming path of the server.
#[test]
fn the_body_names_the_trace_too_and_streams_stay_in_it() {
    let (collector, address) = TraceCollector::start();
    let dir = TestDir::small();
    let server = start(&dir, &address);
    let meta = json!({"traceparent": format!("00-{TRACE}-{PARENT}-01"), "progressToken": "p"});
    search(&server, "ferry", &meta, "");
    let call = json!({"name": "fetch", "arguments": {"id": "ferry.md"}, "_meta": meta});
    server.mcp("tools/call", &call);
    let spans = collector.of(TRACE, 7);
    let fetch = named(&spans, "fetch");
    let tools: Vec<_> = spans.iter().filter(|span| span["name"] == "tool").collect();
    assert_eq!(tools.len(), 2);
    assert!(
        tools
            .iter()
            .any(|tool| tool["spanId"] == fetch["parentSpanId"])
    );
}

#[test]
fn an_invalid_trace_is_ignored_and_an_unsampled_one_is_not_exported() {
    let (collector, address) = TraceCollector::start();
    let dir = TestDir::small();
    let mut server = start(&dir, &address);
    let zeros = "0".repeat(32);
    let long = format!("00-{TRACE}-{PARENT}-01-{}", "x".repeat(5_000));
    for bad in [
        "nonsense".to_owned(),
        format!("00-{zeros}-{PARENT}-01"),
        format!("00-{TRACE}-{}-01", "0".repeat(16)),
        format!("ff-{TRACE}-{PARENT}-01"),
        TRACE.to_uppercase(),
        long,
    ] {
        search(
            &server,
            "ferry",
            &json!({}),
            &format!("traceparent: {bad}\r\n"),
        );
        search(&server, "ferry", &json!({"traceparent": bad}), "");
    }
    search(&server, "ferry", &json!({"traceparent": 7}), "");
    let unsampled = format!("00-{TRACE}-{PARENT}-00");
    search(&server, "ferry", &json!({"traceparent": unsampled}), "");
    #[cfg(unix)]
    {
        // Shutdown flushes the spans that are still queued.
        server.signal("-TERM");
        assert_eq!(server.wait(), Some(0), "{}", server.log());
    }
    let roots = || {
        let all = collector.all();
        let roots = all.into_iter().filter(|span| span["name"] == "request");
        let roots: Vec<_> = roots.collect();
        (roots.len() >= 13).then_some(roots)
    };
    let roots = until(roots).unwrap();
    assert_eq!(roots.len(), 13, "{roots:#?}");
    for root in roots {
        assert!(root.get("parentSpanId").is_none(), "{root}");
        assert!(
            root["traceId"] != TRACE && root["traceId"] != zeros,
            "{root}"
        );
    }
}

/// An unreachable collector costs only its spans, which are counted as dropped; requests are not delayed.
#[test]
fn an_unreachable_collector_is_counted_and_logged_once() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", gone.local_addr().unwrap());
    drop(gone);
    let dir = TestDir::small();
    let server = start(&dir, &address);
    search(&server, "ferry", &json!({}), "");
    server.wait_for("traces cannot be sent");
    let metrics = server.metrics();
    let numbers = crate::metered::get(&metrics, "/metrics", &metrics);
    let dropped = numbers
        .lines()
        .find_map(|line| line.strip_prefix("docent_spans_total{outcome=\"dropped\"} "));
    assert!(dropped.unwrap().parse::<u64>().unwrap() >= 3, "{numbers}");
    assert!(
        numbers.contains("docent_spans_total{outcome=\"sent\"} 0"),
        "{numbers}"
    );
}

#[test]
fn a_bad_endpoint_is_refused_with_a_hint() {
    let dir = TestDir::small();
    dir.write(
        "docs/docent.toml",
        "[telemetry]\notlp_endpoint = \"collector:4318\"\n",
    );
    let ran = dir.run(&["serve", "docs", "--listen", "127.0.0.1:0"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("`telemetry.otlp_endpoint`"), "{ran:?}");
}
