//! HTTP client of one embeddings endpoint: sends a batch of inputs, classifies failures, and retries those that may
//! pass, with exponential backoff and the endpoint's own `Retry-After`.

use std::io::{self, Read};
use std::net::Ipv4Addr;
use std::time::Duration;

use serde_json::{Value, json};
use ureq::http::{HeaderValue, Response, Uri};
use ureq::{Agent, Body};

use super::EndpointSettings;
use super::response;
use crate::error::SearchError;

/// The largest response in bytes: 64 vectors of 4,096 numbers written out in full are six million.
pub(super) const MAX_ANSWER_BYTES: u64 = 16 * 1024 * 1024;
/// How many bytes of an error response are read, in search of its error code.
const MAX_ERROR_BYTES: u64 = 16 * 1024;
/// The backoff after the first failure. It doubles with each further one: services limit the rate of requests, and
/// clients that retry at a fixed interval keep a service at its limit.
const FIRST_WAIT: Duration = Duration::from_millis(500);

/// The hint for responses that do not fit the request.
pub(super) const WRONG: &str = "check that the address is that of an OpenAI-compatible `/embeddings` call and that the model embeds texts";
const DOWN: &str = "check that the endpoint runs and can be reached from here, then try again";
const ADDRESS: &str =
    "give an address such as `http://localhost:11434/v1`, without user, password, `?` and `#`";

/// Sleeps before a retry. It is passed in, so that tests need no clock.
pub(super) type WaitFn = Box<dyn Fn(Duration) + Send + Sync>;

/// How often a request is retried, and how long to wait for its response.
pub(super) struct RetryPolicy {
    /// The most attempts, the first one included.
    tries: u32,
    /// The most attempts that may time out. They have a limit of their own, because each costs a whole timeout.
    timeouts: u32,
    /// The total time that may be spent sleeping between attempts.
    pause: Duration,
    /// The timeout of a single attempt.
    timeout: Duration,
}

impl RetryPolicy {
    /// The policy for passages: indexing runs in the background, so it can afford to be patient.
    pub(super) fn for_passages(timeout: Duration) -> Self {
        Self {
            tries: 5,
            timeouts: 2,
            pause: Duration::from_secs(60),
            timeout,
        }
    }

    /// The policy for questions: lexical results now are worth more than semantic ones in a minute.
    pub(super) fn for_queries(timeout: Duration) -> Self {
        Self {
            tries: 2,
            timeouts: 1,
            pause: Duration::from_secs(1),
            timeout,
        }
    }
}

/// A client for one model at one endpoint. It keeps connections open between requests.
pub(super) struct EndpointClient {
    agent: Agent,
    url: String,
    model: String,
    authorization: Option<HeaderValue>,
    dimensions: Option<usize>,
    wait: WaitFn,
}

/// A failed attempt, and whether a retry may succeed.
struct RequestFailure {
    error: SearchError,
    retry: RetryAdvice,
}

/// Whether a failure is worth a retry. `After` holds the endpoint's own `Retry-After`, if it sent one.
enum RetryAdvice {
    Never,
    After(Option<Duration>),
    TimedOut,
}

impl EndpointClient {
    pub(super) fn new(settings: &EndpointSettings, wait: WaitFn) -> Result<Self, SearchError> {
        let url = address(&settings.url)?;
        let authorization = match &settings.key {
            None => None,
            Some(key) => {
                let value = HeaderValue::from_str(&format!("Bearer {}", key.0)).map_err(|_| {
                    // The parser's error is not kept as source: it might quote a part of the key.
                    error(
                        "the endpoint's API key has characters that an HTTP header cannot carry",
                        "check the key for line breaks and control characters",
                    )
                })?;
                Some(value)
            }
        };
        let uri: Uri = url.parse().map_err(|_| unusable())?;
        let is_local = uri.host().is_some_and(is_this_machine);
        if authorization.is_some() && !is_local && uri.scheme_str() == Some("http") {
            tracing::warn!("the API key is sent unencrypted to the embeddings endpoint; use https");
        }
        Ok(Self {
            agent: agent(is_local),
            url,
            model: settings.model.clone(),
            authorization,
            dimensions: settings.dimensions,
            wait,
        })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Embeds a batch of inputs: one unit vector each, in their order. Where `dimensions` is known, vectors of another
    /// length are refused.
    pub(super) fn embed(
        &self,
        inputs: &[&str],
        dimensions: Option<usize>,
        policy: &RetryPolicy,
    ) -> Result<Vec<Vec<f32>>, SearchError> {
        let mut request = json!({"model": self.model, "input": inputs});
        if let (Some(fields), Some(dimensions)) = (request.as_object_mut(), self.dimensions) {
            fields.insert("dimensions".to_owned(), json!(dimensions));
        }
        let body = self.send_with_retries(&request.to_string(), policy)?;
        response::read(&body, inputs.len(), dimensions)
            .map_err(|reason| error(format!("the endpoint answered with {reason}"), WRONG))
    }

    /// Sends a request with retries and exponential backoff, within the attempts and the time that `policy` allows.
    /// Returns the body of the first successful response.
    fn send_with_retries(
        &self,
        request: &str,
        policy: &RetryPolicy,
    ) -> Result<Vec<u8>, SearchError> {
        let mut left = policy.pause;
        let mut timeouts = 0;
        let mut backoff = FIRST_WAIT;
        for attempt in 1.. {
            let failure = match self.send_once(request, policy.timeout) {
                Ok(body) => return Ok(body),
                Err(failure) => failure,
            };
            let pause = match failure.retry {
                RetryAdvice::Never => return Err(failure.error),
                RetryAdvice::After(requested) => requested.unwrap_or(backoff),
                RetryAdvice::TimedOut => {
                    timeouts += 1;
                    backoff
                }
            };
            // A retry before the `Retry-After` that does not fit into the remaining time would only fail again.
            if attempt >= policy.tries || timeouts >= policy.timeouts || pause > left {
                return Err(failure.error);
            }
            (self.wait)(pause);
            left = left.saturating_sub(pause);
            backoff *= 2;
        }
        Err(error("no request was sent to the endpoint", DOWN))
    }

    fn send_once(&self, request: &str, timeout: Duration) -> Result<Vec<u8>, RequestFailure> {
        let mut call = self
            .agent
            .post(&self.url)
            .header("Content-Type", "application/json")
            .header("Accept", "application/json");
        if let Some(authorization) = &self.authorization {
            call = call.header("Authorization", authorization);
        }
        let call = call.config().timeout_global(Some(timeout)).build();
        let response = call.send(request).map_err(transport_failure)?;
        if !response.status().is_success() {
            return Err(self.status_failure(response));
        }
        let body = bytes(response, MAX_ANSWER_BYTES + 1)
            .map_err(|failed| transport_failure(ureq::Error::from(failed)))?;
        if body.len() as u64 > MAX_ANSWER_BYTES {
            let what =
                format!("the endpoint's answer is over the limit of {MAX_ANSWER_BYTES} bytes");
            return Err(RequestFailure::permanent(what, WRONG));
        }
        Ok(body)
    }

    fn status_failure(&self, response: Response<Body>) -> RequestFailure {
        let status = response.status().as_u16();
        let after = retry_after(&response);
        if (300..400).contains(&status) {
            let what = format!("the endpoint answers with a redirect, status {status}");
            return RequestFailure::permanent(what, "give the address that the redirect leads to");
        }
        let body = bytes(response, MAX_ERROR_BYTES).unwrap_or_default();
        let what = match self.code(&body) {
            Some(code) => format!("the endpoint refuses with status {status}, `{code}`"),
            None => format!("the endpoint refuses with status {status}"),
        };
        let hint = match status {
            401 | 403 => "check the endpoint's key",
            404 => {
                "check the address and the model's name; the endpoint may have to load the model first"
            }
            413 => "raise the endpoint's input limit, or have it truncate long inputs",
            408 | 429 => "raise the endpoint's rate limit, or try again later",
            500..=599 => DOWN,
            _ => WRONG,
        };
        let retry = match status {
            408 | 429 | 500..=599 => RetryAdvice::After(after),
            _ => RetryAdvice::Never,
        };
        RequestFailure {
            error: error(what, hint),
            retry,
        }
    }

    /// The error code of an error response. The error message is left out, because endpoints quote the input and even
    /// the key in it, and neither belongs in a log. For the same reason a code that may be part of the key is dropped.
    fn code(&self, body: &[u8]) -> Option<String> {
        let response: Value = serde_json::from_slice(body).ok()?;
        let details = response.get("error")?;
        let code = details
            .get("code")
            .and_then(Value::as_str)
            .or_else(|| details.get("type").and_then(Value::as_str))?;
        let plain = |c: char| c.is_ascii_lowercase() || c == '_';
        let header = self.authorization.as_ref().map(HeaderValue::as_bytes);
        let header = String::from_utf8_lossy(header.unwrap_or_default());
        let is_safe = code.len() <= 40 && code.chars().all(plain) && !header.contains(code);
        is_safe.then(|| code.to_owned())
    }
}

impl RequestFailure {
    fn permanent(what: String, hint: &'static str) -> Self {
        Self {
            error: error(what, hint),
            retry: RetryAdvice::Never,
        }
    }
}

/// The URL of the embeddings call below a base URL. It has to be http or https with a host; credentials, a query and a
/// fragment are refused.
fn address(base: &str) -> Result<String, SearchError> {
    let base = base.trim().trim_end_matches('/');
    let url = if base.ends_with("/embeddings") {
        base.to_owned()
    } else {
        format!("{base}/embeddings")
    };
    let uri: Uri = url.parse().map_err(|_| unusable())?;
    let has_host = uri.host().is_some_and(|host| !host.is_empty());
    let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
    if !has_host || !is_http || url.contains(['@', '?', '#']) {
        return Err(unusable());
    }
    Ok(url)
}

/// The message does not quote the address, because it may contain a password.
fn unusable() -> SearchError {
    error("the endpoint's address cannot be used", ADDRESS)
}

fn is_this_machine(host: &str) -> bool {
    let address = host.parse::<Ipv4Addr>();
    matches!(host, "localhost" | "[::1]") || address.is_ok_and(|address| address.is_loopback())
}

/// An HTTP client that follows no redirect: texts and key go where the settings say and nowhere else.
fn agent(is_local: bool) -> Agent {
    let mut config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .user_agent(concat!("docent/", env!("CARGO_PKG_VERSION")));
    // Requests to the loopback interface bypass the proxy: it could not reach this machine, and texts that are meant
    // to stay here must not leave it.
    if is_local {
        config = config.proxy(None);
    }
    config.build().new_agent()
}

fn bytes(response: Response<Body>, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut body = response.into_body().into_reader().take(limit);
    body.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The `Retry-After` of a response in seconds. The form with a date is ignored, because clocks differ.
fn retry_after(response: &Response<Body>) -> Option<Duration> {
    let value = response.headers().get("retry-after")?.to_str().ok()?;
    value.trim().parse().ok().map(Duration::from_secs)
}

fn transport_failure(failed: ureq::Error) -> RequestFailure {
    let retry = match &failed {
        ureq::Error::Timeout(_) => RetryAdvice::TimedOut,
        ureq::Error::Io(_) | ureq::Error::ConnectionFailed | ureq::Error::HostNotFound => {
            RetryAdvice::After(None)
        }
        _ => RetryAdvice::Never,
    };
    let what = match &retry {
        RetryAdvice::TimedOut => "the endpoint did not answer in time",
        _ => "the endpoint cannot be reached",
    };
    RequestFailure {
        error: SearchError::Embedder {
            what: what.to_owned(),
            hint: DOWN,
            source: Some(Box::new(failed)),
        },
        retry,
    }
}

pub(super) fn error(what: impl Into<String>, hint: &'static str) -> SearchError {
    SearchError::Embedder {
        what: what.into(),
        hint,
        source: None,
    }
}
