//! A CORS proxy for the preview page: forwards MCP messages to a server of another origin, which the browser would
//! not let the page call.
//!
//! A proxy can be abused for server-side request forgery (SSRF). Therefore only `docent preview` has it, on the
//! loopback interface, and requests need the page's token. A preview of one server calls only that server.

use std::io::{BufRead, BufReader, Read};
use std::time::Duration;

use docent_mcp::Failure;
use docent_mcp::http::{Route, RouteRequest, RouteResponse};
use ureq::Agent;
use url::Url;

use super::require_token;

/// The size limit of a forwarded response.
const MAX_ANSWER: u64 = 16 * 1024 * 1024;
/// The timeout of one call. Hosts give up after one to four minutes.
const CALL_TIMEOUT: Duration = Duration::from_secs(100);

/// The allowlist of request headers that are forwarded to the server.
const REQUEST_HEADERS: [&str; 7] = [
    "accept",
    "authorization",
    "content-type",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
];
/// The allowlist of response headers that are passed back, beside the content type.
const RESPONSE_HEADERS: [&str; 2] = ["mcp-session-id", "www-authenticate"];

/// The route `POST /preview/proxy`, with the server's URL in `x-docent-target`. When the preview was started for one
/// server, any other URL is refused.
pub(super) fn route(token: String, only: Option<String>) -> Route {
    Route::post("/preview/proxy", move |incoming: RouteRequest| {
        let requested = incoming.header("x-docent-target").unwrap_or_default();
        let url =
            require_token(&incoming, &token).and_then(|()| target(requested, only.as_deref()));
        async move {
            let url = url?;
            tokio::task::spawn_blocking(move || forward(&url, &incoming)).await?
        }
    })
}

fn target(text: &str, only: Option<&str>) -> Result<Url, Failure> {
    let bad = || Failure::caller("the server's address is not a web address");
    let url = Url::parse(text).map_err(|_| bad())?;
    let is_web = matches!(url.scheme(), "http" | "https") && url.has_host();
    if !is_web {
        return Err(bad());
    }
    match only.map(Url::parse) {
        None => Ok(url),
        Some(Ok(only)) if only == url => Ok(url),
        Some(_) => Err(Failure::refused(
            "the preview was started for another server",
        )),
    }
}

/// The content type of a forwarded response. Anything but the two types of MCP becomes plain text, so that a server
/// cannot serve HTML from the preview's own origin.
fn safe_content_type(kind: &str) -> &'static str {
    let kind = kind.split(';').next().unwrap_or_default().trim();
    match kind.to_ascii_lowercase().as_str() {
        "application/json" => "application/json",
        "text/event-stream" => "text/event-stream",
        _ => "text/plain; charset=utf-8",
    }
}

fn forward(url: &Url, incoming: &RouteRequest) -> Result<RouteResponse, Failure> {
    let mut config = Agent::config_builder()
        .timeout_global(Some(CALL_TIMEOUT))
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .user_agent(concat!("docent-preview/", env!("CARGO_PKG_VERSION")));
    // Loopback addresses bypass the configured HTTP proxy.
    let host = url.host_str().unwrap_or_default();
    if matches!(host, "localhost" | "[::1]") || host.starts_with("127.") {
        config = config.proxy(None);
    }
    let mut request = config.build().new_agent().post(url.as_str());
    for name in REQUEST_HEADERS {
        if let Some(value) = incoming.header(name) {
            request = request.header(name, value);
        }
    }
    let unreachable = |error: &dyn std::fmt::Display| {
        RouteResponse::new(
            502,
            "text/plain; charset=utf-8",
            format!("the server cannot be reached: {error}"),
        )
    };
    let mut response = match request.send(incoming.body()) {
        Ok(response) => response,
        Err(error) => return Ok(unreachable(&error)),
    };
    let header = |name: &str| {
        let value = response.headers().get(name)?.to_str().ok()?;
        Some(value.to_owned())
    };
    let headers = RESPONSE_HEADERS.map(|name| (name, header(name)));
    let kind = safe_content_type(&header("content-type").unwrap_or_default());
    let is_stream = kind == "text/event-stream";
    let status = response.status().as_u16();
    let body = match read(response.body_mut().as_reader(), is_stream) {
        Ok(body) => body,
        Err(error) => return Ok(unreachable(&error)),
    };
    let page = RouteResponse::new(status, kind, body);
    let given = headers
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)));
    Ok(given.fold(page, |page, (name, value)| page.header(name, value)))
}

/// Reads a response. An event stream is read up to its JSON-RPC response, because some servers leave it open.
fn read(body: impl Read, is_stream: bool) -> std::io::Result<Vec<u8>> {
    let mut body = BufReader::new(body.take(MAX_ANSWER + 1));
    let mut all = Vec::new();
    if is_stream {
        loop {
            let start = all.len();
            if body.read_until(b'\n', &mut all)? == 0 {
                break;
            }
            if all.get(start..).is_some_and(is_answer) {
                all.extend_from_slice(b"\n");
                break;
            }
        }
    } else {
        body.read_to_end(&mut all)?;
    }
    if all.len() as u64 > MAX_ANSWER {
        return Err(std::io::Error::other("its answer is too large"));
    }
    Ok(all)
}

/// Whether a line of the stream is a JSON-RPC response, the last message to wait for.
fn is_answer(line: &[u8]) -> bool {
    let Some(data) = line.strip_prefix(b"data:") else {
        return false;
    };
    let message: serde_json::Value = serde_json::from_slice(data).unwrap_or_default();
    message.get("result").is_some() || message.get("error").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_ends_with_its_answer() {
        let progress = "data: {\"method\":\"notifications/progress\"}\n\n";
        let stream =
            format!(":\n\n{progress}data: {{\"id\":1,\"result\":{{}}}}\n\ndata: never\n\n");
        let read = String::from_utf8(read(stream.as_bytes(), true).unwrap()).unwrap();
        assert_eq!(read, stream.split("data: never").next().unwrap());
    }

    #[test]
    fn an_answer_has_a_bound() {
        let most = usize::try_from(MAX_ANSWER).unwrap();
        assert!(read(vec![b'x'; most].as_slice(), false).is_ok());
        assert!(read(vec![b'x'; most + 1].as_slice(), false).is_err());
    }

    #[test]
    fn only_web_addresses_are_called() {
        for (text, good) in [
            ("http://127.0.0.1:8787/mcp", true),
            ("https://docs.example.org/mcp", true),
            ("file:///etc/passwd", false),
            ("/mcp", false),
            ("", false),
        ] {
            assert_eq!(target(text, None).is_ok(), good, "{text}");
        }
    }

    #[test]
    fn a_preview_of_one_server_calls_no_other() {
        let only = Some("http://127.0.0.1:8787/mcp");
        assert!(target("http://127.0.0.1:8787/mcp", only).is_ok());
        for other in [
            "http://127.0.0.1:8787/",
            "http://127.0.0.1:8787/mcp?x",
            "http://127.0.0.1:8788/mcp",
            "http://127.0.0.1:8787@evil.example/mcp",
            "http://169.254.169.254/mcp",
        ] {
            assert!(target(other, only).is_err(), "{other}");
        }
        assert!(target("http://a.example/", Some("no address")).is_err());
    }

    #[test]
    fn nothing_is_passed_on_as_a_page() {
        for (kind, passed) in [
            ("application/json; charset=utf-8", "application/json"),
            ("Text/Event-Stream", "text/event-stream"),
            ("text/html", "text/plain; charset=utf-8"),
            ("text/html, application/json", "text/plain; charset=utf-8"),
            ("", "text/plain; charset=utf-8"),
        ] {
            assert_eq!(safe_content_type(kind), passed, "{kind}");
        }
    }
}
