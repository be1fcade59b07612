//! Tries the edges of an HTTP endpoint: other addresses, other headers, broken and hostile bodies, lost
//! sessions, requests that share an id. Each is one small request; nothing is repeated.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::SurveySession;
use crate::connection::OutgoingRequest;
use crate::exchange::{ExchangeError, ReceivedResponse, RecordedExchange, SentRequest};
use crate::request_builder::McpRequestBuilder;

/// What no server has handed out.
const NO_SUCH_SESSION: &str = "00000000-0000-4000-8000-000000000000";
/// A page that no server has to trust.
pub(crate) const STRANGER: &str = "https://stranger.example";
/// A body that is larger than any call of a tool has to be.
const LARGE: usize = 6 * 1024 * 1024;
/// Deep enough to overflow a parser that counts nothing, in a body of a hundred kilobytes.
const DEEP: usize = 50_000;
/// How often two requests are sent at once.
const ROUNDS: usize = 5;
/// The wait for what may rightly stay open.
const BRIEF_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) fn probe(visit: &mut SurveySession) {
    let Some(main) = visit.main.take() else {
        return;
    };
    if visit.wire.as_http().is_some() {
        variants(visit, &main);
        let other = visit.other.take();
        for voice in [Some(&main), other.as_ref()].into_iter().flatten() {
            if voice.is_modern() {
                headers_of_requests(visit, voice);
            } else {
                sessions(visit, voice);
                same_id(visit, voice);
            }
        }
        visit.other = other;
        edges(visit, &main);
        hostile(visit, &main);
        if visit.options.slow {
            (visit.progress)("a slow request");
            slow_request(visit);
        }
    } else {
        visit.probe(
            "deep",
            OutgoingRequest {
                id: Some(json!("deep")),
                ..OutgoingRequest::post(deep())
            }
            .with_timeout(BRIEF_TIMEOUT),
        );
        visit.probe("alive", main.request("tools/list", json!({})));
    }
    visit.main = Some(main);
}

fn list_tools(voice: &McpRequestBuilder) -> OutgoingRequest {
    voice.request("tools/list", json!({}))
}

/// The same question under other addresses and with other wishes for the answer.
fn variants(visit: &mut SurveySession, main: &McpRequestBuilder) {
    visit.probe(
        "accept-events",
        list_tools(main).with_header("Accept", "text/event-stream"),
    );
    visit.probe(
        "accept-json",
        list_tools(main).with_header("Accept", "application/json"),
    );
    visit.probe("accept-any", list_tools(main).with_header("Accept", "*/*"));
    let Some(http) = visit.wire.as_http() else {
        return;
    };
    let (origin, path) = (http.origin(), http.path());
    if path.len() > 1 {
        let other = match path.strip_suffix('/') {
            Some(shorter) => format!("{origin}{shorter}"),
            None => format!("{origin}{path}/"),
        };
        visit.probe("slash", at_url(list_tools(main), other));
        visit.probe("root", at_url(list_tools(main), format!("{origin}/")));
    }
    let challenge = format!("{origin}/.well-known/openai-apps-challenge");
    visit.probe(
        "apps-challenge",
        OutgoingRequest::get(&challenge).anonymous(),
    );
}

fn at_url(ask: OutgoingRequest, url: String) -> OutgoingRequest {
    OutgoingRequest {
        url: Some(url),
        ..ask
    }
}

/// Headers and bodies of the newer revision that do not fit each other.
fn headers_of_requests(visit: &mut SurveySession, modern: &McpRequestBuilder) {
    visit.probe(
        "method-differs",
        list_tools(modern).with_header("Mcp-Method", "prompts/list"),
    );
    visit.probe(
        "no-version-header",
        list_tools(modern).with_header("MCP-Protocol-Version", ""),
    );
    let bare = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}});
    let ask = OutgoingRequest {
        id: Some(json!(1)),
        ..OutgoingRequest::post(bare.to_string())
    };
    visit.probe(
        "no-meta",
        modern.with_protocol_headers(ask, "tools/list", None),
    );
    let later = McpRequestBuilder::new(visit.identity, "2099-01-01");
    let meta = later.meta();
    let body =
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {"_meta": meta}});
    let ask = OutgoingRequest {
        id: Some(json!(2)),
        ..OutgoingRequest::post(body.to_string())
    };
    let ask = later
        .with_protocol_headers(ask, "tools/list", None)
        .with_header("Mcp-Method", "tools/list");
    visit.probe("later-version", ask);
    visit.probe(
        "modern-unknown-method",
        modern.request("docent/no-such-method", json!({})),
    );
}

/// What the older revisions say of sessions, streams and versions.
fn sessions(visit: &mut SurveySession, legacy: &McpRequestBuilder) {
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
    visit.probe("get", get);
    visit.probe(
        "old-version",
        list_tools(legacy).with_header("MCP-Protocol-Version", "1999-01-01"),
    );
    if legacy.session.is_some() {
        visit.probe(
            "no-session",
            list_tools(legacy).with_header("Mcp-Session-Id", ""),
        );
        visit.probe(
            "lost-session",
            list_tools(legacy).with_header("Mcp-Session-Id", NO_SUCH_SESSION),
        );
    }
}

/// Two requests with one id at the same time: each must get the answer to its own question. Which comes
/// first is chance, so it is tried a few times.
fn same_id(visit: &mut SurveySession, legacy: &McpRequestBuilder) {
    let wire = visit.wire;
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
        visit.survey.probes.insert("same-id-list", list);
        visit.survey.probes.insert("same-id-ping", ping);
        if mixed {
            return;
        }
    }
}

/// What is not quite a request, and who is not quite a client.
fn edges(visit: &mut SurveySession, main: &McpRequestBuilder) {
    let id = Some(json!("edge"));
    let post = |body: &str| OutgoingRequest {
        id: id.clone(),
        ..OutgoingRequest::post(body)
    };
    let headed = |ask: OutgoingRequest| main.with_protocol_headers(ask, "tools/list", None);
    visit.probe(
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
    visit.probe("shouted-method", headed(post(&shouted.to_string())));
    visit.probe(
        "text-plain",
        list_tools(main).with_header("Content-Type", "text/plain"),
    );
    visit.probe("origin", list_tools(main).with_header("Origin", STRANGER));
    if visit.survey.is_local {
        visit.probe(
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
    visit.probe("preflight", preflight.anonymous());
}

/// Bodies that attack, one of each, and the question whether anybody is still there.
fn hostile(visit: &mut SurveySession, main: &McpRequestBuilder) {
    let id = Some(json!("deep"));
    let ask = main.with_protocol_headers(
        OutgoingRequest {
            id,
            ..OutgoingRequest::post(deep())
        },
        "tools/list",
        None,
    );
    visit.probe("deep", ask);
    let mut large = list_tools(main);
    if let Some(body) = &mut large.body {
        body.push_str(&" ".repeat(LARGE));
    }
    visit.probe("large", large);
    visit.probe("alive", list_tools(main));
}

fn deep() -> String {
    let (open, close) = ("[".repeat(DEEP), "]".repeat(DEEP));
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":\"deep\",\"method\":\"tools/list\",\"params\":{{\"x\":{open}{close}}}}}"
    )
}

/// Half a request, to see whether the server waits for the rest for ever.
fn slow_request(visit: &mut SurveySession) {
    let Some(http) = visit.wire.as_http() else {
        return;
    };
    let origin = http.origin();
    let Some(authority) = origin.strip_prefix("http://") else {
        return;
    };
    // The very machine that was talked to so far, whatever its name leads to now.
    let Some(address) = http.addresses().first().copied() else {
        return;
    };
    let began = Instant::now();
    let wait = visit.options.slow_wait;
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
    visit.survey.probes.insert("slow", Arc::new(exchange));
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
