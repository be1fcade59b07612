//! A message of the page to an MCP server elsewhere, and its answer back: the hop that a browser
//! refuses to a page of another origin.
//!
//! Only `docent preview` has it, on the loopback interface, for a page that knows the secret: whoever can
//! call this can make requests from here.

use std::io::{BufRead, BufReader, Read};
use std::time::Duration;

use docent_mcp::Failure;
use docent_mcp::http::{Page, Route, Visit};
use ureq::Agent;
use url::Url;

use super::trusted;

/// The largest answer that is passed on.
const MAX_ANSWER: u64 = 16 * 1024 * 1024;
/// How long one call may take; hosts give up after a minute or four.
const PATIENCE: Duration = Duration::from_secs(100);

/// The headers of MCP that pass from the page to the server.
const SENT: [&str; 7] = [
    "accept",
    "authorization",
    "content-type",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
];
/// Those that pass back.
const RETURNED: [&str; 3] = ["content-type", "mcp-session-id", "www-authenticate"];

/// `POST /preview/proxy`, with the server's address in `x-docent-target`.
pub(super) fn route(token: String) -> Route {
    Route::post("/preview/proxy", move |visit: Visit| {
        let allowed = trusted(&visit, &token);
        async move {
            allowed?;
            let url = target(visit.header("x-docent-target").unwrap_or_default())?;
            tokio::task::spawn_blocking(move || forward(&url, &visit)).await?
        }
    })
}

fn target(text: &str) -> Result<Url, Failure> {
    let bad = || Failure::caller("the server's address is not a web address");
    let url = Url::parse(text).map_err(|_| bad())?;
    let is_web = matches!(url.scheme(), "http" | "https") && url.has_host();
    if is_web { Ok(url) } else { Err(bad()) }
}

fn forward(url: &Url, visit: &Visit) -> Result<Page, Failure> {
    let mut config = Agent::config_builder()
        .timeout_global(Some(PATIENCE))
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .user_agent(concat!("docent-preview/", env!("CARGO_PKG_VERSION")));
    // What listens on this machine is not behind a proxy.
    let host = url.host_str().unwrap_or_default();
    if matches!(host, "localhost" | "[::1]") || host.starts_with("127.") {
        config = config.proxy(None);
    }
    let mut request = config.build().new_agent().post(url.as_str());
    for name in SENT {
        if let Some(value) = visit.header(name) {
            request = request.header(name, value);
        }
    }
    let unreachable = |error: &dyn std::fmt::Display| {
        Page::new(
            502,
            "text/plain; charset=utf-8",
            format!("the server cannot be reached: {error}"),
        )
    };
    let mut response = match request.send(visit.body()) {
        Ok(response) => response,
        Err(error) => return Ok(unreachable(&error)),
    };
    let header = |name: &str| {
        let value = response.headers().get(name)?.to_str().ok()?;
        Some(value.to_owned())
    };
    let headers = RETURNED.map(|name| (name, header(name)));
    let is_stream =
        header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
    let status = response.status().as_u16();
    let body = match read(response.body_mut().as_reader(), is_stream) {
        Ok(body) => body,
        Err(error) => return Ok(unreachable(&error)),
    };
    let page = Page::new(status, "application/json", body);
    let given = headers
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)));
    Ok(given.fold(page, |page, (name, value)| page.header(name, value)))
}

/// The whole answer; of a stream, what comes until the answer has, since some servers leave it open.
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

/// True for a line of a stream that holds a result or an error, after which nothing more is due.
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
            assert_eq!(target(text).is_ok(), good, "{text}");
        }
    }
}
