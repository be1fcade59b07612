//! Requests over HTTP into exchanges: JSON or an event stream comes back, every wait and every answer
//! bounded, no redirect followed.

use std::io::{self, BufReader, Read};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use ureq::http::{Request, Response, Uri};
use ureq::{Agent, Body};

use super::Ask;
use crate::exchange::{Exchange, Failure, Received, Sent};
use crate::sse::next_data;

/// The most bytes of one answer; the most that a host is known to take.
pub(crate) const MAX_ANSWER: u64 = 8 * 1024 * 1024;
/// The most bytes that are read of what is neither JSON nor events, and that are kept for showing.
const MAX_OTHER: u64 = 64 * 1024;
/// The most messages of one stream.
const MAX_MESSAGES: usize = 1_000;
/// A pause before each request to somebody else's machine.
const PAUSE: Duration = Duration::from_millis(20);

/// A client of one address.
pub(crate) struct Http {
    pub url: String,
    pub is_local: bool,
    agent: Agent,
    user_agent: &'static str,
    token: Mutex<Option<String>>,
}

/// Why an address is none.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadUrl;

impl Http {
    pub(crate) fn new(
        url: &str,
        call_timeout: Duration,
        user_agent: &'static str,
        token: Option<String>,
    ) -> Result<Self, BadUrl> {
        let uri: Uri = url.parse().map_err(|_| BadUrl)?;
        let host = uri.host().filter(|host| !host.is_empty()).ok_or(BadUrl)?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) {
            return Err(BadUrl);
        }
        let is_local = matches!(host, "localhost" | "[::1]") || host.starts_with("127.");
        let mut config = Agent::config_builder()
            .timeout_global(Some(call_timeout))
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(user_agent);
        // A proxy cannot reach this machine, and a check of it must not leave it.
        if is_local {
            config = config.proxy(None);
        }
        Ok(Self {
            url: url.to_owned(),
            is_local,
            agent: config.build().new_agent(),
            user_agent,
            token: Mutex::new(token),
        })
    }

    /// The address without its path.
    pub(crate) fn origin(&self) -> String {
        let (scheme, rest) = self.url.split_once("://").unwrap_or(("http", &self.url));
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        format!("{scheme}://{authority}")
    }

    /// The path alone, without query.
    pub(crate) fn path(&self) -> String {
        let rest = self.url.get(self.origin().len()..).unwrap_or_default();
        rest.split(['?', '#']).next().unwrap_or_default().to_owned()
    }

    /// Sends this token with every request from now on.
    pub(crate) fn sign_in(&self, token: &str) {
        let mut known = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Some(token.to_owned());
    }

    /// Whether it is spoken to under encryption.
    pub(crate) fn is_https(&self) -> bool {
        self.url.starts_with("https://")
    }

    pub(super) fn send(&self, ask: Ask) -> Exchange {
        if !self.is_local {
            std::thread::sleep(PAUSE);
        }
        let headers = self.headers(&ask);
        let verb = ask.verb.unwrap_or("POST");
        let url = ask.url.unwrap_or_else(|| self.url.clone());
        let began = Instant::now();
        let outcome = self.outcome(
            (verb, &url),
            &headers,
            ask.body.as_deref(),
            (ask.timeout, ask.id.as_ref()),
        );
        let quiet = ["authorization", "user-agent", "x-docent-check"];
        let shown =
            |(name, _): &(String, String)| !quiet.contains(&name.to_ascii_lowercase().as_str());
        Exchange {
            took: began.elapsed(),
            sent: Sent {
                verb: verb.to_owned(),
                url,
                headers: headers.into_iter().filter(shown).collect(),
                body: clipped(&ask.body.unwrap_or_default()),
                id: ask.id,
            },
            outcome,
        }
    }

    /// The usual headers, with those of the request in their place.
    fn headers(&self, ask: &Ask) -> Vec<(String, String)> {
        let mut headers = vec![
            ("User-Agent".to_owned(), self.user_agent.to_owned()),
            // The identity is that of a host, so who really asks is said here.
            (
                "X-Docent-Check".to_owned(),
                env!("CARGO_PKG_VERSION").to_owned(),
            ),
        ];
        if ask.body.is_some() {
            headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
            let both = "application/json, text/event-stream";
            headers.push(("Accept".to_owned(), both.to_owned()));
        }
        let token = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(token) = token.as_ref().filter(|_| !ask.anonymous) {
            headers.push(("Authorization".to_owned(), format!("Bearer {token}")));
        }
        for (name, value) in &ask.headers {
            headers.retain(|(key, _)| !key.eq_ignore_ascii_case(name));
            if !value.is_empty() {
                headers.push((name.clone(), value.clone()));
            }
        }
        headers
    }

    fn outcome(
        &self,
        (verb, url): (&str, &str),
        headers: &[(String, String)],
        body: Option<&str>,
        (timeout, id): (Option<Duration>, Option<&Value>),
    ) -> Result<Received, Failure> {
        let mut request = Request::builder().method(verb).uri(url);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let unbuilt = |error: ureq::http::Error| Failure::Unreachable(error.to_string());
        let response = match body {
            Some(body) => {
                let request = request.body(body.to_owned()).map_err(unbuilt)?;
                let request = self.agent.configure_request(request);
                self.agent.run(timed(request, timeout))
            }
            None => {
                let request = request.body(()).map_err(unbuilt)?;
                let request = self.agent.configure_request(request);
                self.agent.run(timed(request, timeout))
            }
        };
        read(response.map_err(|error| failed(&error))?, id)
    }
}

fn timed<S: ureq::AsSendBody>(
    request: ureq::config::ConfigBuilder<ureq::typestate::HttpCrateScope<S>>,
    timeout: Option<Duration>,
) -> Request<S> {
    match timeout {
        Some(timeout) => request.timeout_global(Some(timeout)).build(),
        None => request.build(),
    }
}

/// A response into what was received. A stream is read until the answer is there, since the server may
/// keep it open.
fn read(response: Response<Body>, id: Option<&Value>) -> Result<Received, Failure> {
    let headers: Vec<(String, String)> = response
        .headers()
        .iter()
        .take(100)
        .map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            (name.to_string(), value)
        })
        .collect();
    let mut received = Received {
        status: response.status().as_u16(),
        headers,
        ..Received::default()
    };
    let kind = received.header("content-type").unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    received.kind = kind.to_ascii_lowercase();
    let mut body = BufReader::new(response.into_body().into_reader().take(MAX_ANSWER + 1));
    match received.kind.as_str() {
        "text/event-stream" if id.is_some() => read_events(&mut body, &mut received, id)?,
        // Nobody waits for the end of a stream that answers nothing.
        "text/event-stream" => {}
        kind if kind == "application/json" || kind.ends_with("+json") => {
            let mut bytes = Vec::new();
            body.read_to_end(&mut bytes).map_err(broken)?;
            within_limit(&body)?;
            received.bytes = bytes.len();
            received.text = clipped(&String::from_utf8_lossy(&bytes));
            match serde_json::from_slice(&bytes) {
                Ok(Value::Array(messages)) => received.messages = messages,
                Ok(message) => received.messages.push(message),
                Err(_) => received.garbled = !bytes.is_empty(),
            }
        }
        _ => {
            let mut bytes = Vec::new();
            // What is not understood need not arrive in full.
            let _ = body.take(MAX_OTHER).read_to_end(&mut bytes);
            received.bytes = bytes.len();
            received.text = String::from_utf8_lossy(&bytes).into_owned();
        }
    }
    Ok(received)
}

fn read_events<R: Read>(
    body: &mut BufReader<io::Take<R>>,
    received: &mut Received,
    id: Option<&Value>,
) -> Result<(), Failure> {
    while received.messages.len() < MAX_MESSAGES {
        let data = next_data(body).map_err(broken)?;
        within_limit(body)?;
        let Some(data) = data else { break };
        received.bytes += data.len();
        if received.text.len() < data.len().max(MAX_OTHER as usize) {
            received.text = clipped(&data);
        }
        // A first event without data is how newer SDKs prime a stream.
        if data.trim().is_empty() {
            continue;
        }
        match serde_json::from_str::<Value>(&data) {
            Ok(Value::Array(messages)) => received.messages.extend(messages),
            Ok(message) => received.messages.push(message),
            Err(_) => received.garbled = true,
        }
        let answers = |message: &Value| message.get("id") == id && message.get("method").is_none();
        let refuses = |message: &Value| message.get("error").is_some();
        if received
            .messages
            .last()
            .is_some_and(|m| answers(m) || refuses(m))
        {
            break;
        }
    }
    Ok(())
}

fn within_limit<R: Read>(body: &BufReader<io::Take<R>>) -> Result<(), Failure> {
    if body.get_ref().limit() == 0 {
        return Err(Failure::TooLarge(MAX_ANSWER));
    }
    Ok(())
}

fn clipped(text: &str) -> String {
    let most = MAX_OTHER as usize;
    match text.char_indices().find(|(at, _)| *at >= most) {
        Some((at, _)) => text.get(..at).unwrap_or_default().to_owned(),
        None => text.to_owned(),
    }
}

fn failed(error: &ureq::Error) -> Failure {
    match error {
        ureq::Error::Timeout(_) => Failure::TimedOut,
        other => Failure::Unreachable(other.to_string()),
    }
}

fn broken(error: io::Error) -> Failure {
    failed(&ureq::Error::from(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_apart() {
        let http = |url: &str| Http::new(url, Duration::from_secs(1), "x", None);
        let found = http("https://a.example:8443/mcp/x?y=1").ok().unwrap();
        assert_eq!(found.origin(), "https://a.example:8443");
        assert_eq!(found.path(), "/mcp/x");
        assert!(found.is_https() && !found.is_local);
        assert!(http("http://[::1]:1/").ok().unwrap().is_local);
        for url in [
            "",
            "ftp://a.example/",
            "a.example",
            "http://",
            "/mcp",
            "file:///etc/passwd",
        ] {
            assert!(http(url).is_err(), "{url}");
        }
    }
}
