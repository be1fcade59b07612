//! Traces of a real server, as a collector on this machine receives them.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::process::{Dir, Server, until};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const ABOVE: &str = "b7ad6b7169203331";

/// A collector: every span that was posted to it, and the head of the last request.
#[derive(Clone, Default)]
struct Collector {
    spans: Arc<Mutex<Vec<Value>>>,
    head: Arc<Mutex<String>>,
}

impl Collector {
    /// Starts one; gives its address too.
    fn start() -> (Self, String) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let collector = Self::default();
        let this = collector.clone();
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
                this.take(&serde_json::from_slice(&body).unwrap());
                *this.head.lock().unwrap() = head;
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

    /// Waits for spans of one trace, as many as there should be.
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

fn start(dir: &Dir, endpoint: &str) -> Server {
    let mut command = dir.serve(&["docs", "--metrics", "127.0.0.1:0"]);
    command
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
        .env("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=quay")
        .env("OTEL_SERVICE_NAME", "harbour");
    let server = Server::of(command);
    server.wait_until_synced();
    // Only then does a question need the model.
    server.wait_until_settled();
    server
}

fn search(server: &Server, query: &str, meta: &Value, headers: &str) {
    let call = json!({"name": "search", "arguments": {"query": query}, "_meta": meta});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call});
    let (head, body) = server.raw("POST", "/mcp", Some(&message), headers);
    assert!(head.starts_with("HTTP/1.1 200"), "{head}\n{body}");
}

#[test]
fn a_request_is_part_of_the_callers_trace() {
    let (collector, address) = Collector::start();
    let dir = Dir::small();
    let server = start(&dir, &address);
    let header = format!("traceparent: 00-{TRACE}-{ABOVE}-01\r\n");
    search(&server, "ferry zebrafish", &json!({}), &header);
    let spans = collector.of(TRACE, 4);
    let (request, tool) = (named(&spans, "request"), named(&spans, "tool"));
    let (engine, embed) = (named(&spans, "search"), named(&spans, "embed"));
    assert_eq!(request["parentSpanId"], ABOVE);
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
    // Nothing of the question or of a document is in a trace.
    let all = Value::Array(collector.all()).to_string();
    for word in ["zebrafish", "ferry", "sails", "Levee"] {
        assert!(!all.contains(word), "{word} in {all}");
    }
}

/// Hosts say it in the body, and a call that reports progress runs on another way through the server.
#[test]
fn the_body_names_the_trace_too_and_streams_stay_in_it() {
    let (collector, address) = Collector::start();
    let dir = Dir::small();
    let server = start(&dir, &address);
    let meta = json!({"traceparent": format!("00-{TRACE}-{ABOVE}-01"), "progressToken": "p"});
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
fn what_is_no_trace_is_ignored_and_one_that_is_not_kept_is_not_sent() {
    let (collector, address) = Collector::start();
    let dir = Dir::small();
    let mut server = start(&dir, &address);
    let zeros = "0".repeat(32);
    let long = format!("00-{TRACE}-{ABOVE}-01-{}", "x".repeat(5_000));
    for bad in [
        "nonsense".to_owned(),
        format!("00-{zeros}-{ABOVE}-01"),
        format!("00-{TRACE}-{}-01", "0".repeat(16)),
        format!("ff-{TRACE}-{ABOVE}-01"),
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
    let unkept = format!("00-{TRACE}-{ABOVE}-00");
    search(&server, "ferry", &json!({"traceparent": unkept}), "");
    #[cfg(unix)]
    {
        // What waits when the server ends is sent before it does.
        server.signal("-TERM");
        assert_eq!(server.wait(), Some(0), "{}", server.said());
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

/// A collector that is not there costs nobody anything but its spans, which are counted.
#[test]
fn a_dead_collector_is_counted_and_told_once() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", gone.local_addr().unwrap());
    drop(gone);
    let dir = Dir::small();
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
    let dir = Dir::small();
    dir.write(
        "docs/docent.toml",
        "[telemetry]\notlp_endpoint = \"collector:4318\"\n",
    );
    let ran = dir.run(&["serve", "docs", "--listen", "127.0.0.1:0"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("`telemetry.otlp_endpoint`"), "{ran:?}");
}
