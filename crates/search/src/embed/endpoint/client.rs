//! One list of inputs into its vectors: the request, its answer, and when to ask again.

use std::io::{self, Read};
use std::net::Ipv4Addr;
use std::time::Duration;

use serde_json::{Value, json};
use ureq::http::{HeaderValue, Response, Uri};
use ureq::{Agent, Body};

use super::EndpointSettings;
use super::response;
use crate::error::SearchError;

/// The most bytes of one answer: 64 vectors of 4,096 numbers written out in full are six million.
pub(super) const MAX_ANSWER_BYTES: u64 = 16 * 1024 * 1024;
/// The most bytes that are looked at of an answer that says no.
const MAX_REFUSAL_BYTES: u64 = 16 * 1024;
/// The wait after the first failure; it doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_millis(500);

/// The cure for answers that do not fit the question.
pub(super) const WRONG: &str = "check that the address is that of an OpenAI-compatible `/embeddings` call and that the model embeds texts";
const DOWN: &str = "check that the endpoint runs and can be reached from here, then try again";
const ADDRESS: &str =
    "give an address such as `http://localhost:11434/v1`, without user, password, `?` and `#`";

/// Waits for as long as it is told.
pub(super) type WaitFn = Box<dyn Fn(Duration) + Send + Sync>;

/// How often and how long an answer is waited for.
pub(super) struct RetryPolicy {
    /// The most requests for one answer.
    tries: u32,
    /// The most requests that may end without any answer in time; each costs a whole timeout.
    timeouts: u32,
    /// The longest wait between requests, all of them together.
    pause: Duration,
    /// The longest that one request may take.
    timeout: Duration,
}

impl RetryPolicy {
    /// For passages, which nobody is waiting for.
    pub(super) fn for_passages(timeout: Duration) -> Self {
        Self {
            tries: 5,
            timeouts: 2,
            pause: Duration::from_secs(60),
            timeout,
        }
    }

    /// For questions: a search without vectors now is worth more than one with them in a minute.
    pub(super) fn for_queries(timeout: Duration) -> Self {
        Self {
            tries: 2,
            timeouts: 1,
            pause: Duration::from_secs(1),
            timeout,
        }
    }
}

/// A client of one model at one endpoint.
pub(super) struct EndpointClient {
    agent: Agent,
    url: String,
    model: String,
    authorization: Option<HeaderValue>,
    dimensions: Option<usize>,
    wait: WaitFn,
}

/// Why there is no answer, and whether asking again may bring one.
struct RequestFailure {
    error: SearchError,
    retry: RetryAdvice,
}

enum RetryAdvice {
    Never,
    /// The endpoint failed, and may have said when it wants to be asked again.
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
                    // The reason is not passed on: it might show a part of the key.
                    error(
                        "the endpoint's key has characters that no header can carry",
                        "check the key for line ends and control characters",
                    )
                })?;
                Some(value)
            }
        };
        let uri: Uri = url.parse().map_err(|_| unusable())?;
        let here = uri.host().is_some_and(is_this_machine);
        if authorization.is_some() && !here && uri.scheme_str() == Some("http") {
            tracing::warn!("the key of the embeddings endpoint travels unencrypted; use https");
        }
        Ok(Self {
            agent: agent(here),
            url,
            model: settings.model.clone(),
            authorization,
            dimensions: settings.dimensions,
            wait,
        })
    }

    /// Where requests go.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// The vectors of the inputs, in their order and of length one; of `dimensions` numbers, where
    /// that is known.
    pub(super) fn embed(
        &self,
        inputs: &[&str],
        dimensions: Option<usize>,
        patience: &RetryPolicy,
    ) -> Result<Vec<Vec<f32>>, SearchError> {
        let mut request = json!({"model": self.model, "input": inputs});
        if let (Some(fields), Some(dimensions)) = (request.as_object_mut(), self.dimensions) {
            fields.insert("dimensions".to_owned(), json!(dimensions));
        }
        let body = self.send_with_retries(&request.to_string(), patience)?;
        response::read(&body, inputs.len(), dimensions)
            .map_err(|reason| error(format!("the endpoint answered with {reason}"), WRONG))
    }

    /// The body of an answer that says yes, asked for as often as patience allows.
    fn send_with_retries(
        &self,
        request: &str,
        patience: &RetryPolicy,
    ) -> Result<Vec<u8>, SearchError> {
        let mut left = patience.pause;
        let mut timeouts = 0;
        let mut backoff = FIRST_WAIT;
        for tried in 1.. {
            let failure = match self.send_once(request, patience.timeout) {
                Ok(body) => return Ok(body),
                Err(failure) => failure,
            };
            let pause = match failure.retry {
                RetryAdvice::Never => return Err(failure.error),
                RetryAdvice::After(asked) => asked.unwrap_or(backoff),
                RetryAdvice::TimedOut => {
                    timeouts += 1;
                    backoff
                }
            };
            // An endpoint that asks for more time than there is will not answer any sooner.
            if tried >= patience.tries || timeouts >= patience.timeouts || pause > left {
                return Err(failure.error);
            }
            (self.wait)(pause);
            left = left.saturating_sub(pause);
            backoff *= 2;
        }
        Err(error("the endpoint was never asked", DOWN))
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
        let body = bytes(response, MAX_REFUSAL_BYTES).unwrap_or_default();
        let what = match self.code(&body) {
            Some(code) => format!("the endpoint refuses with status {status}, `{code}`"),
            None => format!("the endpoint refuses with status {status}"),
        };
        let hint = match status {
            401 | 403 => "check the endpoint's key",
            404 => {
                "check the address and the model's name; the endpoint may have to load the model first"
            }
            413 => "let the endpoint take longer inputs or cut them itself",
            408 | 429 => "slow down, or raise the endpoint's limits",
            500..=599 => DOWN,
            _ => WRONG,
        };
        let again = match status {
            408 | 429 | 500..=599 => RetryAdvice::After(after),
            _ => RetryAdvice::Never,
        };
        RequestFailure {
            error: error(what, hint),
            retry: again,
        }
    }

    /// The short code in a refusal. Its message is left out, because endpoints quote the input and
    /// even the key there, and neither belongs into a log.
    fn code(&self, body: &[u8]) -> Option<String> {
        let refusal: Value = serde_json::from_slice(body).ok()?;
        let details = refusal.get("error")?;
        let code = details
            .get("code")
            .and_then(Value::as_str)
            .or_else(|| details.get("type").and_then(Value::as_str))?;
        let plain = |c: char| c.is_ascii_lowercase() || c == '_';
        let header = self.authorization.as_ref().map(HeaderValue::as_bytes);
        let header = String::from_utf8_lossy(header.unwrap_or_default());
        let shown = code.len() <= 40 && code.chars().all(plain) && !header.contains(code);
        shown.then(|| code.to_owned())
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

/// The address that requests go to.
fn address(base: &str) -> Result<String, SearchError> {
    let base = base.trim().trim_end_matches('/');
    let url = if base.ends_with("/embeddings") {
        base.to_owned()
    } else {
        format!("{base}/embeddings")
    };
    let uri: Uri = url.parse().map_err(|_| unusable())?;
    let named = uri.host().is_some_and(|host| !host.is_empty());
    let web = matches!(uri.scheme_str(), Some("http" | "https"));
    if !named || !web || url.contains(['@', '?', '#']) {
        return Err(unusable());
    }
    Ok(url)
}

/// The address is not shown, because it may hold a password.
fn unusable() -> SearchError {
    error("the endpoint's address cannot be used", ADDRESS)
}

fn is_this_machine(host: &str) -> bool {
    let address = host.parse::<Ipv4Addr>();
    matches!(host, "localhost" | "[::1]") || address.is_ok_and(|address| address.is_loopback())
}

/// A client that follows no redirect: texts and key go where the settings say and nowhere else.
fn agent(here: bool) -> Agent {
    let mut config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .user_agent(concat!("docent/", env!("CARGO_PKG_VERSION")));
    // A proxy cannot reach this machine, and texts meant for it must not leave it.
    if here {
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

/// How long the endpoint wants to be left alone; a date instead of seconds is as good as nothing,
/// since clocks differ.
fn retry_after(response: &Response<Body>) -> Option<Duration> {
    let value = response.headers().get("retry-after")?.to_str().ok()?;
    value.trim().parse().ok().map(Duration::from_secs)
}

fn transport_failure(failed: ureq::Error) -> RequestFailure {
    let again = match &failed {
        ureq::Error::Timeout(_) => RetryAdvice::TimedOut,
        ureq::Error::Io(_) | ureq::Error::ConnectionFailed | ureq::Error::HostNotFound => {
            RetryAdvice::After(None)
        }
        _ => RetryAdvice::Never,
    };
    let what = match &again {
        RetryAdvice::TimedOut => "the endpoint did not answer in time",
        _ => "the endpoint cannot be reached",
    };
    RequestFailure {
        error: SearchError::Embedder {
            what: what.to_owned(),
            hint: DOWN,
            source: Some(Box::new(failed)),
        },
        retry: again,
    }
}

pub(super) fn error(what: impl Into<String>, hint: &'static str) -> SearchError {
    SearchError::Embedder {
        what: what.into(),
        hint,
        source: None,
    }
}
