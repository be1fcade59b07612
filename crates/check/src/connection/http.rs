//! HTTP transport of the check: sends a request and reads JSON or an event stream (SSE).
//!
//! The server is untrusted: every wait has a timeout, every response a size limit, redirects are not followed, and the
//! access token goes to the server's own origin only.

use std::io::{self, BufReader, Read};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use ureq::http::{Request, Response, Uri};
use ureq::unversioned::transport::DefaultConnector;
use ureq::{Agent, Body};

use super::OutgoingRequest;
use super::bounded_json;
use super::budget::CheckBudget;
use super::network::{BlockedAddress, GuardedResolver, TargetHost, TargetResolver};
use crate::exchange::{ExchangeError, ReceivedResponse, RecordedExchange, SentRequest};
use crate::sse::next_data;

/// The size limit of one response, 8 MiB: the most that a host (Codex) is known to accept.
pub(crate) const MAX_ANSWER: u64 = 8 * 1024 * 1024;
/// The most bytes that are read of a body that is neither JSON nor events, and that are kept as evidence of any body.
const MAX_OTHER: u64 = 64 * 1024;
/// The most messages that are read from one response.
const MAX_MESSAGES: usize = 1_000;
/// The size limit of all response headers together, and the most headers that are kept.
const MAX_HEADER_BYTES: usize = 64 * 1024;
const MAX_HEADERS: usize = 100;
/// The pause before each request to a remote server, which keeps the rate at fifty a second at most.
const PAUSE: Duration = Duration::from_millis(20);

/// The HTTP client for one endpoint. `agent` calls the URL that the user named; `guarded` calls URLs that the server
/// names, with the SSRF guard of [`GuardedResolver`].
#[derive(Clone)]
pub(crate) struct HttpTarget {
    pub url: String,
    pub is_local: bool,
    host: Arc<TargetHost>,
    agent: Agent,
    guarded: Agent,
    user_agent: &'static str,
    token: Arc<Mutex<Option<String>>>,
    budget: Arc<CheckBudget>,
}

/// One HTTP request as it is sent, with all headers.
struct HttpRequest<'a> {
    verb: &'a str,
    url: &'a str,
    headers: &'a [(String, String)],
    body: Option<&'a str>,
    /// `None` for the timeout of the agent.
    timeout: Option<Duration>,
    /// The id of the JSON-RPC request in the body.
    id: Option<&'a Value>,
}

/// The text is not an http or https URL with a host.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadUrl;

impl HttpTarget {
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
        let host = TargetHost::new(host);
        let is_local = host.is_loopback();
        let config = || {
            Agent::config_builder()
                .timeout_global(Some(call_timeout))
                .http_status_as_error(false)
                .max_redirects(0)
                .max_redirects_will_error(false)
                .max_response_header_size(MAX_HEADER_BYTES)
                .user_agent(user_agent)
        };
        // A proxy cannot reach loopback addresses, and a check of them must not leave this machine.
        let own = if is_local {
            config().proxy(None).build()
        } else {
            config().build()
        };
        let resolver = TargetResolver(Arc::clone(&host));
        let agent = Agent::with_parts(own, DefaultConnector::new(), resolver);
        // A proxy would resolve names itself, which would bypass the SSRF guard.
        let resolver = GuardedResolver(Arc::clone(&host));
        let guarded = config().proxy(None).build();
        let guarded = Agent::with_parts(guarded, DefaultConnector::new(), resolver);
        Ok(Self {
            url: url.to_owned(),
            is_local,
            host,
            agent,
            guarded,
            user_agent,
            token: Arc::new(Mutex::new(token)),
            budget: Arc::default(),
        })
    }

    /// The same client with another URL of the server; the resolved addresses and the token are shared.
    pub(crate) fn with_url(&self, url: &str) -> Self {
        Self {
            url: url.to_owned(),
            ..self.clone()
        }
    }

    /// The network addresses of the server, as its name was first resolved.
    pub(crate) fn addresses(&self) -> Vec<std::net::SocketAddr> {
        self.host.addresses()
    }

    /// Whether a URL has the origin of the server that the user named: scheme, host and port.
    pub(crate) fn is_own(&self, url: &str) -> bool {
        let authority = |text: &str| {
            let uri: Uri = text.parse().ok()?;
            let scheme = uri.scheme_str()?.to_ascii_lowercase();
            let default = if scheme == "https" { 443 } else { 80 };
            let host = uri.host()?.to_ascii_lowercase();
            Some((scheme, host, uri.port_u16().unwrap_or(default)))
        };
        authority(url).is_some_and(|found| Some(found) == authority(&self.url))
    }

    /// Whether the check may request a URL that the server names: https only, except on the server's own origin and,
    /// for a server on this machine, on loopback addresses.
    pub(crate) fn may_request(&self, url: &str) -> bool {
        // The URL is printed as well, so control characters are rejected.
        let is_plain = url.bytes().all(|byte| (0x21..0x7f).contains(&byte));
        let Ok(uri) = url.parse::<Uri>() else {
            return false;
        };
        if !is_plain {
            return false;
        }
        let is_near = |host: &str| self.is_local && TargetHost::new(host).is_loopback();
        match uri.scheme_str() {
            Some("https") => uri.host().is_some_and(|host| !host.is_empty()),
            Some("http") => self.is_own(url) || uri.host().is_some_and(is_near),
            _ => false,
        }
    }

    pub(super) fn budget(&self) -> &CheckBudget {
        &self.budget
    }

    /// The origin of the endpoint: the URL without its path.
    pub(crate) fn origin(&self) -> String {
        let (scheme, rest) = self.url.split_once("://").unwrap_or(("http", &self.url));
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        format!("{scheme}://{authority}")
    }

    /// The path of the endpoint, without query and fragment.
    pub(crate) fn path(&self) -> String {
        let rest = self.url.get(self.origin().len()..).unwrap_or_default();
        rest.split(['?', '#']).next().unwrap_or_default().to_owned()
    }

    /// Sets the access token that every later request to the server carries.
    pub(crate) fn sign_in(&self, token: &str) {
        let mut known = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Some(token.to_owned());
    }

    pub(crate) fn is_https(&self) -> bool {
        self.url.starts_with("https://")
    }

    pub(super) fn send(&self, request: OutgoingRequest) -> RecordedExchange {
        if !self.is_local {
            std::thread::sleep(PAUSE);
        }
        let verb = request.verb.unwrap_or("POST");
        let url = request.url.clone().unwrap_or_else(|| self.url.clone());
        let headers = self.headers(&request, self.is_own(&url));
        let began = Instant::now();
        let outcome = self.outcome(&HttpRequest {
            verb,
            url: &url,
            headers: &headers,
            body: request.body.as_deref(),
            timeout: request.timeout,
            id: request.id.as_ref(),
        });
        let hidden = ["authorization", "user-agent", "x-docent-check"];
        let shown =
            |(name, _): &(String, String)| !hidden.contains(&name.to_ascii_lowercase().as_str());
        RecordedExchange {
            took: began.elapsed(),
            sent: SentRequest {
                verb: verb.to_owned(),
                url,
                headers: headers.into_iter().filter(shown).collect(),
                body: truncate_evidence(&request.body.unwrap_or_default()),
                id: request.id,
            },
            outcome,
        }
    }

    /// The default headers, overridden by those of the request.
    fn headers(&self, request: &OutgoingRequest, is_own: bool) -> Vec<(String, String)> {
        let mut headers = vec![
            ("User-Agent".to_owned(), self.user_agent.to_owned()),
            // The user agent is that of a host, so this header lets operators recognize a check in their logs.
            (
                "X-Docent-Check".to_owned(),
                env!("CARGO_PKG_VERSION").to_owned(),
            ),
        ];
        if request.body.is_some() {
            headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
            let both = "application/json, text/event-stream";
            headers.push(("Accept".to_owned(), both.to_owned()));
        }
        let token = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        // The token never goes to another origin.
        if let Some(token) = token.as_ref().filter(|_| is_own && !request.anonymous) {
            headers.push(("Authorization".to_owned(), format!("Bearer {token}")));
        }
        for (name, value) in &request.headers {
            headers.retain(|(key, _)| !key.eq_ignore_ascii_case(name));
            if !value.is_empty() {
                headers.push((name.clone(), value.clone()));
            }
        }
        headers
    }

    fn outcome(&self, sent: &HttpRequest<'_>) -> Result<ReceivedResponse, ExchangeError> {
        let mut request = Request::builder().method(sent.verb).uri(sent.url);
        for (name, value) in sent.headers {
            request = request.header(name, value);
        }
        let agent = if self.is_own(sent.url) {
            &self.agent
        } else {
            &self.guarded
        };
        let invalid_request =
            |error: ureq::http::Error| ExchangeError::Unreachable(error.to_string());
        let response = match sent.body {
            Some(body) => {
                let request = request.body(body.to_owned()).map_err(invalid_request)?;
                let request = agent.configure_request(request);
                agent.run(timed(request, sent.timeout))
            }
            None => {
                let request = request.body(()).map_err(invalid_request)?;
                let request = agent.configure_request(request);
                agent.run(timed(request, sent.timeout))
            }
        };
        let response = response.map_err(|error| exchange_error(&error))?;
        read(response, sent.id, &self.budget)
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

/// A reader that counts bytes against the budget as they are read, so that abandoned responses count too.
struct CountedBody<'a, R> {
    body: R,
    budget: &'a CheckBudget,
}

impl<R: Read> Read for CountedBody<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.body.read(buffer)?;
        self.budget.count_read(length);
        Ok(length)
    }
}

/// Reads a response within the size limits. An event stream is read only up to the JSON-RPC response, since the server
/// may keep the stream open.
fn read(
    response: Response<Body>,
    id: Option<&Value>,
    budget: &CheckBudget,
) -> Result<ReceivedResponse, ExchangeError> {
    let headers: Vec<(String, String)> = response
        .headers()
        .iter()
        .take(MAX_HEADERS)
        .map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            (name.to_string(), value)
        })
        .collect();
    let mut received = ReceivedResponse {
        status: response.status().as_u16(),
        headers,
        ..ReceivedResponse::default()
    };
    let kind = received.header("content-type").unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    received.kind = kind.to_ascii_lowercase();
    let counted = CountedBody {
        body: response.into_body().into_reader(),
        budget,
    };
    let mut body = BufReader::new(counted.take(MAX_ANSWER + 1));
    match received.kind.as_str() {
        "text/event-stream" if id.is_some() => read_events(&mut body, &mut received, id, budget)?,
        // A stream opened without a request has no response to wait for.
        "text/event-stream" => {}
        kind if kind == "application/json" || kind.ends_with("+json") => {
            let mut bytes = Vec::new();
            body.read_to_end(&mut bytes).map_err(read_error)?;
            within_limit(&body)?;
            received.bytes = bytes.len();
            received.text = truncate_evidence(&String::from_utf8_lossy(&bytes));
            received.garbled = !bytes.is_empty() && !received.take(&bytes, budget)?;
        }
        _ => {
            let mut bytes = Vec::new();
            // An error is ignored: a body of another type need not arrive in full.
            let _ = body.take(MAX_OTHER).read_to_end(&mut bytes);
            received.bytes = bytes.len();
            received.text = String::from_utf8_lossy(&bytes).into_owned();
        }
    }
    Ok(received)
}

fn read_events<R: Read>(
    body: &mut BufReader<io::Take<R>>,
    received: &mut ReceivedResponse,
    id: Option<&Value>,
    budget: &CheckBudget,
) -> Result<(), ExchangeError> {
    while received.messages.len() < MAX_MESSAGES {
        let data = next_data(body).map_err(read_error)?;
        within_limit(body)?;
        let Some(data) = data else { break };
        received.bytes += data.len();
        if received.text.len() < data.len().max(MAX_OTHER as usize) {
            received.text = truncate_evidence(&data);
        }
        // Newer SDKs prime a stream with an event that has empty data.
        if data.trim().is_empty() {
            continue;
        }
        received.garbled |= !received.take(data.as_bytes(), budget)?;
        if received.ends_with_answer(id) {
            break;
        }
    }
    Ok(())
}

fn within_limit<R: Read>(body: &BufReader<io::Take<R>>) -> Result<(), ExchangeError> {
    if body.get_ref().limit() == 0 {
        return Err(ExchangeError::TooLarge(MAX_ANSWER));
    }
    Ok(())
}

impl ReceivedResponse {
    /// Parses a text and appends its messages; false where it is not JSON. A text that would exceed the memory limits
    /// is never parsed.
    pub(super) fn take(
        &mut self,
        text: &[u8],
        budget: &CheckBudget,
    ) -> Result<bool, ExchangeError> {
        let bytes = bounded_json::memory(text);
        let sum = self.parsed_bytes.saturating_add(bytes);
        if sum > bounded_json::MAX_PARSED {
            return Err(ExchangeError::TooMuchJson(bounded_json::MAX_PARSED));
        }
        budget.reserve(bytes)?;
        let Ok(value) = serde_json::from_slice(text) else {
            budget.release(bytes);
            return Ok(false);
        };
        self.parsed_bytes = sum;
        match value {
            Value::Array(messages) => {
                let room = MAX_MESSAGES.saturating_sub(self.messages.len());
                self.messages.extend(messages.into_iter().take(room));
            }
            message => self.messages.push(message),
        }
        Ok(true)
    }

    /// Whether the last message is the response to the request, or an error without an id.
    pub(super) fn ends_with_answer(&self, id: Option<&Value>) -> bool {
        let answers = |message: &Value| message.get("id") == id && message.get("method").is_none();
        let refuses = |message: &Value| message.get("error").is_some();
        self.messages
            .last()
            .is_some_and(|message| answers(message) || refuses(message))
    }
}

/// The beginning of a body that is kept as evidence, cut between characters.
fn truncate_evidence(text: &str) -> String {
    let end = text.ceil_char_boundary(MAX_OTHER as usize);
    text.get(..end).unwrap_or(text).to_owned()
}

fn exchange_error(error: &ureq::Error) -> ExchangeError {
    match error {
        ureq::Error::Timeout(_) => ExchangeError::timed_out(),
        ureq::Error::HostNotFound => ExchangeError::NoSuchHost,
        ureq::Error::Other(inner) if inner.is::<BlockedAddress>() => ExchangeError::BlockedAddress,
        ureq::Error::Io(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            ExchangeError::ConnectionRefused
        }
        // rustls reports every handshake failure, untrusted certificates included, as invalid data.
        ureq::Error::Io(error) if error.kind() == io::ErrorKind::InvalidData => {
            ExchangeError::Tls(error.to_string())
        }
        ureq::Error::Tls(_) | ureq::Error::Rustls(_) => ExchangeError::Tls(error.to_string()),
        ureq::Error::Protocol(error) => ExchangeError::NotHttp(error.to_string()),
        other => ExchangeError::Unreachable(other.to_string()),
    }
}

fn read_error(error: io::Error) -> ExchangeError {
    exchange_error(&ureq::Error::from(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_apart() {
        let http = |url: &str| HttpTarget::new(url, Duration::from_secs(1), "x", None);
        let found = http("https://a.example:8443/mcp/x?y=1").ok().unwrap();
        assert_eq!(found.origin(), "https://a.example:8443");
        assert_eq!(found.path(), "/mcp/x");
        assert!(found.is_https() && !found.is_local);
        assert!(http("http://[::1]:1/").ok().unwrap().is_local);
        assert!(http("http://127.0.0.1/").ok().unwrap().is_local);
        assert!(!http("http://127.evil.example/").ok().unwrap().is_local);
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

    #[test]
    fn an_answer_takes_only_so_much_memory() {
        let budget = CheckBudget::default();
        let list = |bytes: usize| {
            let item = br#"{"a":0},"#;
            let count = bytes / (bounded_json::memory(item) + 150);
            let mut text = b"[".to_vec();
            text.extend(item.repeat(count));
            text.extend(b"0]");
            text
        };
        let mut received = ReceivedResponse::default();
        assert_eq!(received.take(b"{", &budget), Ok(false));
        let large = list(2 * bounded_json::MAX_PARSED);
        let refused = Err(ExchangeError::TooMuchJson(bounded_json::MAX_PARSED));
        assert_eq!(received.take(&large, &budget), refused);
        // The messages of one answer count together, and so do all answers.
        let half = list(bounded_json::MAX_PARSED / 2);
        let mut taken = 0;
        while received.take(&half, &budget) == Ok(true) {
            taken += 1;
        }
        assert!((1..4).contains(&taken), "{taken}");
        assert_eq!(received.take(&half, &budget), refused);
        let answers = (0..20).take_while(|_| {
            let mut received = ReceivedResponse::default();
            received.take(&half, &budget) == Ok(true)
        });
        assert!(answers.count() < 6);
        let spent = ReceivedResponse::default().take(&half, &budget);
        assert_eq!(spent, Err(ExchangeError::BudgetSpent));
        assert_eq!(ReceivedResponse::default().take(b"{}", &budget), Ok(true));
    }

    #[test]
    fn only_the_same_origin_is_the_servers_own() {
        let http = HttpTarget::new("https://a.example/mcp", Duration::from_secs(1), "x", None);
        let http = http.ok().unwrap();
        for own in [
            "https://a.example/x",
            "https://A.example:443",
            "https://a.example?y",
        ] {
            assert!(http.is_own(own), "{own}");
        }
        for other in [
            "http://a.example/",
            "https://a.example:8443/",
            "https://a.example.evil.example/",
            "https://a.example@evil.example/",
            "//a.example/",
            "",
        ] {
            assert!(!http.is_own(other), "{other}");
        }
    }

    #[test]
    fn only_encrypted_addresses_of_others_are_asked() {
        let http = |url: &str| {
            HttpTarget::new(url, Duration::from_secs(1), "x", None)
                .ok()
                .unwrap()
        };
        let (public, local) = (http("http://a.example/mcp"), http("http://127.0.0.1:1/mcp"));
        for (url, by_public, by_local) in [
            ("https://b.example/x", true, true),
            ("http://a.example/x", true, false),
            ("http://b.example/x", false, false),
            ("http://localhost:9/x", false, true),
            ("http://127.0.0.1.evil.example/x", false, false),
            ("http://127.0.0.1@evil.example/x", false, false),
            ("file:///etc/passwd", false, false),
            ("javascript:alert(1)", false, false),
            ("https://b.example/\u{9b}2J", false, false),
            ("https://", false, false),
            ("", false, false),
        ] {
            assert_eq!(public.may_request(url), by_public, "{url}");
            assert_eq!(local.may_request(url), by_local, "{url}");
        }
    }

    #[test]
    fn a_token_goes_to_its_server_alone() {
        let token = Some("secret".to_owned());
        let http = HttpTarget::new("https://a.example/mcp", Duration::from_secs(1), "x", token);
        let http = http.ok().unwrap();
        let has_token = |is_own: bool| {
            let headers = http.headers(&OutgoingRequest::post("{}"), is_own);
            headers.iter().any(|(name, _)| name == "Authorization")
        };
        assert!(has_token(true) && !has_token(false));
    }
}
