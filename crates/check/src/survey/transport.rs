//! Tries the edges of an HTTP endpoint: other addresses, other headers, broken and hostile bodies, lost
//! sessions, requests that share an id. Each is one small request; nothing is repeated.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Visit;
use crate::exchange::{Exchange, Failure, Received, Sent};
use crate::voice::Voice;
use crate::wire::Ask;

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
const BRIEF: Duration = Duration::from_secs(5);

pub(super) fn probe(visit: &mut Visit) {
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
            slow(visit);
        }
    } else {
        visit.probe(
            "deep",
            Ask {
                id: Some(json!("deep")),
                ..Ask::post(deep())
            }
            .within(BRIEF),
        );
        visit.probe("alive", main.request("tools/list", json!({})));
    }
    visit.main = Some(main);
}

fn list(voice: &Voice) -> Ask {
    voice.request("tools/list", json!({}))
}

/// The same question under other addresses and with other wishes for the answer.
fn variants(visit: &mut Visit, main: &Voice) {
    visit.probe(
        "accept-events",
        list(main).with("Accept", "text/event-stream"),
    );
    visit.probe("accept-json", list(main).with("Accept", "application/json"));
    visit.probe("accept-any", list(main).with("Accept", "*/*"));
    let Some(http) = visit.wire.as_http() else {
        return;
    };
    let (origin, path) = (http.origin(), http.path());
    if path.len() > 1 {
        let other = match path.strip_suffix('/') {
            Some(shorter) => format!("{origin}{shorter}"),
            None => format!("{origin}{path}/"),
        };
        visit.probe("slash", at(list(main), other));
        visit.probe("root", at(list(main), format!("{origin}/")));
    }
    let challenge = format!("{origin}/.well-known/openai-apps-challenge");
    visit.probe("apps-challenge", Ask::get(&challenge).anonymous());
}

fn at(ask: Ask, url: String) -> Ask {
    Ask {
        url: Some(url),
        ..ask
    }
}

/// Headers and bodies of the newer revision that do not fit each other.
fn headers_of_requests(visit: &mut Visit, modern: &Voice) {
    visit.probe(
        "method-differs",
        list(modern).with("Mcp-Method", "prompts/list"),
    );
    visit.probe(
        "no-version-header",
        list(modern).with("MCP-Protocol-Version", ""),
    );
    let bare = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}});
    let ask = Ask {
        id: Some(json!(1)),
        ..Ask::post(bare.to_string())
    };
    visit.probe("no-meta", modern.headed(ask, "tools/list", None));
    let later = Voice::new(visit.identity, "2099-01-01");
    let meta = later.meta();
    let body =
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {"_meta": meta}});
    let ask = Ask {
        id: Some(json!(2)),
        ..Ask::post(body.to_string())
    };
    let ask = later
        .headed(ask, "tools/list", None)
        .with("Mcp-Method", "tools/list");
    visit.probe("later-version", ask);
    visit.probe(
        "modern-unknown-method",
        modern.request("docent/no-such-method", json!({})),
    );
}

/// What the older revisions say of sessions, streams and versions.
fn sessions(visit: &mut Visit, legacy: &Voice) {
    let get = Ask {
        verb: Some("GET"),
        ..Ask::default()
    };
    let get = get.with("Accept", "text/event-stream").within(BRIEF);
    let mut get = get.with("MCP-Protocol-Version", &legacy.version);
    if let Some(session) = &legacy.session {
        get = get.with("Mcp-Session-Id", session);
    }
    visit.probe("get", get);
    visit.probe(
        "old-version",
        list(legacy).with("MCP-Protocol-Version", "1999-01-01"),
    );
    if legacy.session.is_some() {
        visit.probe("no-session", list(legacy).with("Mcp-Session-Id", ""));
        visit.probe(
            "lost-session",
            list(legacy).with("Mcp-Session-Id", NO_SUCH_SESSION),
        );
    }
}

/// Two requests with one id at the same time: each must get the answer to its own question. Which comes
/// first is chance, so it is tried a few times.
fn same_id(visit: &mut Visit, legacy: &Voice) {
    let wire = visit.wire;
    for _ in 0..ROUNDS {
        let list = legacy
            .request_as(json!(1), "tools/list", json!({}))
            .within(BRIEF);
        let ping = legacy.request_as(json!(1), "ping", json!({})).within(BRIEF);
        let both = std::thread::scope(|scope| {
            let first = scope.spawn(move || wire.send(list));
            let second = wire.send(ping);
            first.join().ok().map(|first| (first, second))
        });
        let Some((list, ping)) = both else { return };
        let is_list =
            |result: Option<&Value>| result.is_some_and(|result| result.get("tools").is_some());
        let mixed = !is_list(list.result()) || ping.result().is_none() || is_list(ping.result());
        visit.seen.probes.insert("same-id-list", list);
        visit.seen.probes.insert("same-id-ping", ping);
        if mixed {
            return;
        }
    }
}

/// What is not quite a request, and who is not quite a client.
fn edges(visit: &mut Visit, main: &Voice) {
    let id = Some(json!("edge"));
    let post = |body: &str| Ask {
        id: id.clone(),
        ..Ask::post(body)
    };
    let headed = |ask: Ask| main.headed(ask, "tools/list", None);
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
    visit.probe("text-plain", list(main).with("Content-Type", "text/plain"));
    visit.probe("origin", list(main).with("Origin", STRANGER));
    if visit.seen.is_local {
        visit.probe("host", list(main).with("Host", "stranger.example"));
    }
    let preflight = Ask {
        verb: Some("OPTIONS"),
        ..Ask::default()
    };
    let preflight = preflight
        .with("Origin", STRANGER)
        .with("Access-Control-Request-Method", "POST")
        .with(
            "Access-Control-Request-Headers",
            "content-type,mcp-protocol-version",
        );
    visit.probe("preflight", preflight.anonymous());
}

/// Bodies that attack, one of each, and the question whether anybody is still there.
fn hostile(visit: &mut Visit, main: &Voice) {
    let id = Some(json!("deep"));
    let ask = main.headed(
        Ask {
            id,
            ..Ask::post(deep())
        },
        "tools/list",
        None,
    );
    visit.probe("deep", ask);
    let mut large = list(main);
    if let Some(body) = &mut large.body {
        body.push_str(&" ".repeat(LARGE));
    }
    visit.probe("large", large);
    visit.probe("alive", list(main));
}

fn deep() -> String {
    let (open, close) = ("[".repeat(DEEP), "]".repeat(DEEP));
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":\"deep\",\"method\":\"tools/list\",\"params\":{{\"x\":{open}{close}}}}}"
    )
}

/// Half a request, to see whether the server waits for the rest for ever.
fn slow(visit: &mut Visit) {
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
    let outcome = hold(
        address,
        &format!("POST {path} HTTP/1.1\r\nHost: {authority}\r\nContent-"),
        wait,
    );
    let exchange = Exchange {
        sent: Sent {
            verb: "POST".to_owned(),
            url: format!("{} (half a header, then nothing)", http.url),
            ..Sent::default()
        },
        outcome,
        took: began.elapsed(),
    };
    visit.seen.probes.insert("slow", Arc::new(exchange));
}

fn hold(address: SocketAddr, half: &str, wait: Duration) -> Result<Received, Failure> {
    let unreachable = |error: std::io::Error| Failure::Unreachable(error.to_string());
    let mut stream = TcpStream::connect_timeout(&address, BRIEF).map_err(unreachable)?;
    stream.set_read_timeout(Some(wait)).map_err(unreachable)?;
    stream.write_all(half.as_bytes()).map_err(unreachable)?;
    let mut answer = [0; 64];
    match stream.read(&mut answer) {
        Ok(length) => {
            let text = answer.get(..length).unwrap_or_default();
            Ok(Received {
                text: String::from_utf8_lossy(text).into_owned(),
                ..Received::default()
            })
        }
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {
            Ok(Received::default())
        }
        Err(_) => Err(Failure::timed_out()),
    }
}
