//! Probes the edge cases of an endpoint: other paths and headers, malformed and hostile bodies, unknown sessions, and
//! concurrent requests that share an id.
//!
//! Each probe is one request. Only the pair that shares an id is repeated, up to five times, because it is a race.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::SurveySession;
use crate::connection::OutgoingRequest;
use crate::exchange::{ExchangeError, ReceivedResponse, RecordedExchange, SentRequest};
use crate::request_builder::McpRequestBuilder;

/// A session id that no server has issued.
const NO_SUCH_SESSION: &str = "00000000-0000-4000-8000-000000000000";
/// A foreign origin, which no server has to trust.
pub(crate) const STRANGER: &str = "https://stranger.example";
/// The size of the large body: larger than any tool call has to be.
const LARGE: usize = 6 * 1024 * 1024;
/// The nesting of the deep body: it overflows the stack of a parser without a depth limit, in 100 kB.
const DEEP: usize = 50_000;
/// How often the pair of concurrent requests is sent.
const ROUNDS: usize = 5;
/// The timeout of requests whose response may legitimately stay open.
const BRIEF_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) fn probe(ctx: &mut SurveySession) {
    let Some(main) = ctx.main.take() else {
        return;
    };
    if ctx.wire.as_http().is_some() {
        variants(ctx, &main);
        let other = ctx.other.take();
        for builder in [Some(&main), other.as_ref()].into_iter().flatten() {
            if builder.is_modern() {
                headers_of_requests(ctx, builder);
            } else {
                sessions(ctx, builder);
                same_id(ctx, builder);
            }
        }
        ctx.other = other;
        edges(ctx, &main);
        hostile(ctx, &main);
        if ctx.options.slow {
            (ctx.progress)("a slow request");
            slow_request(ctx);
        }
    } else {
        ctx.probe(
            "deep",
            OutgoingRequest {
                id: Some(json!("deep")),
                ..OutgoingRequest::post(deep())
            }
            .with_timeout(BRIEF_TIMEOUT),
        );
        ctx.probe("alive", main.request("tools/list", json!({})));
    }
    ctx.main = Some(main);
}

fn list_tools(builder: &McpRequestBuilder) -> OutgoingRequest {
    builder.request("tools/list", json!({}))
}

/// Sends `tools/list` with other `Accept` headers and to other paths.
fn variants(ctx: &mut SurveySession, main: &McpRequestBuilder) {
    ctx.probe(
        "accept-events",
        list_tools(main).with_header("Accept", "text/event-stream"),
    );
    ctx.probe(
        "accept-json",
        list_tools(main).with_header("Accept", "application/json"),
    );
    ctx.probe("accept-any", list_tools(main).with_header("Accept", "*/*"));
    let Some(http) = ctx.wire.as_http() else {
        return;
    };
    let (origin, path) = (http.origin(), http.path());
    if path.len() > 1 {
        let other = match path.strip_suffix('/') {
            Some(shorter) => format!("{origin}{shorter}"),
            None => format!("{origin}{path}/"),
        };
        ctx.probe("slash", at_url(list_tools(main), other));
        ctx.probe("root", at_url(list_tools(main), format!("{origin}/")));
    }
    let challenge = format!("{origin}/.well-known/openai-apps-challenge");
    ctx.probe(
        "apps-challenge",
        OutgoingRequest::get(&challenge).anonymous(),
    );
}

fn at_url(request: OutgoingRequest, url: String) -> OutgoingRequest {
    OutgoingRequest {
        url: Some(url),
        ..request
    }
}

/// Sends requests of 2026-07-28 whose headers and bodies contradict each other.
fn headers_of_requests(ctx: &mut SurveySession, modern: &McpRequestBuilder) {
    ctx.probe(
        "method-differs",
        list_tools(modern).with_header("Mcp-Method", "prompts/list"),
    );
    ctx.probe(
        "no-version-header",
        list_tools(modern).with_header("MCP-Protocol-Version", ""),
    );
    let bare = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}});
    let request = OutgoingRequest {
        id: Some(json!(1)),
        ..OutgoingRequest::post(bare.to_string())
    };
    ctx.probe(
        "no-meta",
        modern.with_protocol_headers(request, "tools/list", None),
    );
    let later = McpRequestBuilder::new(ctx.identity, "2099-01-01");
    let meta = later.meta();
    let body =
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {"_meta": meta}});
    let request = OutgoingRequest {
        id: Some(json!(2)),
        ..OutgoingRequest::post(body.to_string())
    };
    let request = later
        .with_protocol_headers(request, "tools/list", None)
        .with_header("Mcp-Method", "tools/list");
    ctx.probe("later-version", request);
    ctx.probe(
        "modern-unknown-method",
        modern.request("docent/no-such-method", json!({})),
    );
}

/// Probes what the legacy revisions prescribe: the GET stream, unknown versions, missing and unknown sessions.
fn sessions(ctx: &mut SurveySession, legacy: &McpRequestBuilder) {
    let get = OutgoingRequest {
        verb: Some("GET"),
        ..OutgoingRequest::default()
    };
    let get = get
        .with_header("Accept", "text/event-stream")
        .with_timeout(BRIEF_TIMEOUT);
    let mut get = get.with_header("MCP-Protocol-Version", &legacy.version);
    if let Some(session) = &legacy.session {
        get = get.with_header("Mcp-Session-Id", session);
    }
    ctx.probe("get", get);
    ctx.probe(
        "old-version",
        list_tools(legacy).with_header("MCP-Protocol-Version", "1999-01-01"),
    );
    if legacy.session.is_some() {
        ctx.probe(
            "no-session",
            list_tools(legacy).with_header("Mcp-Session-Id", ""),
        );
        ctx.probe(
            "lost-session",
            list_tools(legacy).with_header("Mcp-Session-Id", NO_SUCH_SESSION),
        );
    }
}

/// Sends two concurrent requests with the same id: each must get its own response. The order is a race, so this is
/// tried a few times.
fn same_id(ctx: &mut SurveySession, legacy: &McpRequestBuilder) {
    let wire = ctx.wire;
    for _ in 0..ROUNDS {
        let list = legacy
            .request_as(json!(1), "tools/list", json!({}))
            .with_timeout(BRIEF_TIMEOUT);
        let ping = legacy
            .request_as(json!(1), "ping", json!({}))
            .with_timeout(BRIEF_TIMEOUT);
        let both = std::thread::scope(|scope| {
            let first = scope.spawn(move || wire.send(list));
            let second = wire.send(ping);
            first.join().ok().map(|first| (first, second))
        });
        let Some((list, ping)) = both else { return };
        let is_list =
            |result: Option<&Value>| result.is_some_and(|result| result.get("tools").is_some());
        let mixed = !is_list(list.result()) || ping.result().is_none() || is_list(ping.result());
        ctx.survey.probes.insert("same-id-list", list);
        ctx.survey.probes.insert("same-id-ping", ping);
        if mixed {
            return;
        }
    }
}

/// Sends malformed requests, and requests with a foreign `Origin` or `Host`.
fn edges(ctx: &mut SurveySession, main: &McpRequestBuilder) {
    let id = Some(json!("edge"));
    let post = |body: &str| OutgoingRequest {
        id: id.clone(),
        ..OutgoingRequest::post(body)
    };
    let headed = |request: OutgoingRequest| main.with_protocol_headers(request, "tools/list", None);
    ctx.probe(
        "broken-json",
        headed(post("{\"jsonrpc\": \"2.0\", \"id\": \"edge\", \"method\":")),
    );
    let meta = if main.is_modern() {
        main.meta()
    } else {
        Value::Null
    };
    let mut params = json!({});
    if main.is_modern() {
        params = json!({"_meta": meta});
    }
    let shouted = json!({"jsonrpc": "2.0", "id": "edge", "METHOD": "tools/list", "params": params});
    ctx.probe("shouted-method", headed(post(&shouted.to_string())));
    ctx.probe(
        "text-plain",
        list_tools(main).with_header("Content-Type", "text/plain"),
    );
    ctx.probe("origin", list_tools(main).with_header("Origin", STRANGER));
    if ctx.survey.is_local {
        ctx.probe(
            "host",
            list_tools(main).with_header("Host", "stranger.example"),
        );
    }
    let preflight = OutgoingRequest {
        verb: Some("OPTIONS"),
        ..OutgoingRequest::default()
    };
    let preflight = preflight
        .with_header("Origin", STRANGER)
        .with_header("Access-Control-Request-Method", "POST")
        .with_header(
            "Access-Control-Request-Headers",
            "content-type,mcp-protocol-version",
        );
    ctx.probe("preflight", preflight.anonymous());
}

/// Sends a deep and a large body, and then checks that the server still responds.
fn hostile(ctx: &mut SurveySession, main: &McpRequestBuilder) {
    let id = Some(json!("deep"));
    let request = main.with_protocol_headers(
        OutgoingRequest {
            id,
            ..OutgoingRequest::post(deep())
        },
        "tools/list",
        None,
    );
    ctx.probe("deep", request);
    let mut large = list_tools(main);
    if let Some(body) = &mut large.body {
        body.push_str(&" ".repeat(LARGE));
    }
    ctx.probe("large", large);
    ctx.probe("alive", list_tools(main));
}

fn deep() -> String {
    let (open, close) = ("[".repeat(DEEP), "]".repeat(DEEP));
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":\"deep\",\"method\":\"tools/list\",\"params\":{{\"x\":{open}{close}}}}}"
    )
}

/// Sends a partial request, to see whether the server ever times it out (slowloris).
fn slow_request(ctx: &mut SurveySession) {
    let Some(http) = ctx.wire.as_http() else {
        return;
    };
    let origin = http.origin();
    let Some(authority) = origin.strip_prefix("http://") else {
        return;
    };
    // The pinned address of the earlier requests, whatever the name resolves to now.
    let Some(address) = http.addresses().first().copied() else {
        return;
    };
    let began = Instant::now();
    let wait = ctx.options.slow_wait;
    let path = http.path();
    let outcome = send_partial_request(
        address,
        &format!("POST {path} HTTP/1.1\r\nHost: {authority}\r\nContent-"),
        wait,
    );
    let exchange = RecordedExchange {
        sent: SentRequest {
            verb: "POST".to_owned(),
            url: format!("{} (half a header, then nothing)", http.url),
            ..SentRequest::default()
        },
        outcome,
        took: began.elapsed(),
    };
    ctx.survey.probes.insert("slow", Arc::new(exchange));
}

fn send_partial_request(
    address: SocketAddr,
    half: &str,
    wait: Duration,
) -> Result<ReceivedResponse, ExchangeError> {
    let unreachable = |error: std::io::Error| ExchangeError::Unreachable(error.to_string());
    let mut stream = TcpStream::connect_timeout(&address, BRIEF_TIMEOUT).map_err(unreachable)?;
    stream.set_read_timeout(Some(wait)).map_err(unreachable)?;
    stream.write_all(half.as_bytes()).map_err(unreachable)?;
    let mut answer = [0; 64];
    match stream.read(&mut answer) {
        Ok(length) => {
            let text = answer.get(..length).unwrap_or_default();
            Ok(ReceivedResponse {
                text: String::from_utf8_lossy(text).into_owned(),
                ..ReceivedResponse::default()
            })
        }
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {
            Ok(ReceivedResponse::default())
        }
        Err(_) => Err(ExchangeError::timed_out()),
    }
}
