//! One node of the cluster: sends a request once, and records the outcome in the node's circuit breaker.

use std::io::Read as _;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use ureq::Agent;
use ureq::http::{HeaderValue, Request, Uri};
use ureq::tls::TlsConfig;

use super::breaker::{CircuitBreaker, NodeFailure};
use super::request::ClusterRequest;
use super::settings::invalid_address;
use super::traffic::NodeTraffic;
use crate::error::SearchError;

/// The most bytes of one response: the largest document there may be, with every character escaped twice.
const MAX_ANSWER_BYTES: u64 = 128 * 1024 * 1024;

/// How many characters of a node's error message are kept.
const MAX_REASON_CHARS: usize = 300;

const CERTIFICATE: &str = "untrusted certificate: name the authority that signed the nodes' certificates in \
                           `engine.ca_file`, and the nodes in `engine.addresses` as their certificates do";
const NO_TLS: &str = "check whether the nodes speak TLS: `engine.addresses` say `https://`, but the answer is not TLS";

/// A node's response, whether it accepted the request or not.
pub(super) struct NodeReply {
    pub status: u16,
    pub body: Vec<u8>,
}

/// A node with its HTTP client, its circuit breaker and its counters.
pub(super) struct ClusterNode {
    base: String,
    agent: Agent,
    breaker: Mutex<CircuitBreaker>,
    requests: AtomicU64,
    failures: AtomicU64,
}

/// Why a request to a node brought no response that counts.
#[derive(Debug, thiserror::Error)]
pub(super) enum NodeError {
    #[error(transparent)]
    Transport(#[from] ureq::Error),
    #[error("{0}")]
    Response(String),
}

impl NodeError {
    /// The hint where the TLS handshake failed; `None` for any other failure.
    pub(super) fn tls_hint(&self) -> Option<&'static str> {
        let Self::Transport(error) = self else {
            return None;
        };
        // The library wraps the same failure in several types; the text is the same in all.
        let text = error.to_string();
        if text.contains("certificate") {
            Some(CERTIFICATE)
        } else if text.contains("corrupt message") {
            Some(NO_TLS)
        } else {
            None
        }
    }
}

impl ClusterNode {
    pub(super) fn new(address: &str, has_key: bool, tls: TlsConfig) -> Result<Self, SearchError> {
        let base = address.trim().trim_end_matches('/');
        // The address is not part of the message: it may contain a password.
        let invalid = || invalid_address("an address of the cluster cannot be used".to_owned());
        let uri: Uri = base.parse().map_err(|_| invalid())?;
        let host = uri.host().unwrap_or_default();
        let is_web = matches!(uri.scheme_str(), Some("http" | "https"));
        if host.is_empty() || !is_web || base.contains(['@', '?', '#']) {
            return Err(invalid());
        }
        let ip = host.parse::<Ipv4Addr>();
        let is_local = matches!(host, "localhost" | "[::1]") || ip.is_ok_and(|ip| ip.is_loopback());
        if has_key && !is_local && uri.scheme_str() == Some("http") {
            tracing::warn!("the cluster's API key is sent unencrypted, use `https`");
        }
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .max_idle_connections(256)
            .max_idle_connections_per_host(256)
            .tls_config(tls)
            .user_agent(concat!("docent/", env!("CARGO_PKG_VERSION")));
        if is_local {
            config = config.proxy(None);
        }
        Ok(Self {
            base: base.to_owned(),
            agent: config.build().new_agent(),
            breaker: Mutex::default(),
            requests: AtomicU64::new(0),
            failures: AtomicU64::new(0),
        })
    }

    /// Whether a request may go to this node: its circuit allows it or, as a last resort, its last failure
    /// was a timeout.
    pub(super) fn allows(&self, is_last_resort: bool) -> bool {
        let mut breaker = self.breaker();
        if is_last_resort {
            breaker.last_timed_out()
        } else {
            breaker.allows(Instant::now())
        }
    }

    pub(super) fn breaker(&self) -> std::sync::MutexGuard<'_, CircuitBreaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The metrics of this node so far.
    pub(super) fn traffic(&self, now: Instant) -> NodeTraffic {
        NodeTraffic {
            address: self.base.clone(),
            requests: self.requests.load(Ordering::Relaxed),
            failures: self.failures.load(Ordering::Relaxed),
            is_circuit_open: self.breaker().is_open(now),
        }
    }

    /// Sends a request once and records the outcome in the circuit breaker.
    pub(super) fn request(
        &self,
        call: &ClusterRequest,
        key: Option<&HeaderValue>,
        timeout: Duration,
    ) -> Result<NodeReply, NodeError> {
        let start = Instant::now();
        let outcome = self.send(call, key, timeout);
        let took = start.elapsed();
        self.requests.fetch_add(1, Ordering::Relaxed);
        match &outcome {
            Ok(_) => self.breaker().succeeded(),
            Err(reason) => {
                self.failures.fetch_add(1, Ordering::Relaxed);
                // A node that reports a failure is up, and may do better with another request, so its circuit
                // stays closed.
                if let NodeError::Transport(error) = reason {
                    self.breaker().failed(failure_kind(error), Instant::now());
                }
                tracing::warn!(node = self.base, what = call.action, ?took, %reason, "request to a cluster node failed");
            }
        }
        tracing::debug!(
            node = self.base,
            what = call.action,
            ?took,
            ok = outcome.is_ok(),
            "sent a request to a cluster node"
        );
        outcome
    }

    fn send(
        &self,
        call: &ClusterRequest,
        key: Option<&HeaderValue>,
        timeout: Duration,
    ) -> Result<NodeReply, NodeError> {
        let mut request = Request::builder()
            .method(&call.method)
            .uri(format!("{}{}", self.base, call.path_within(timeout)))
            .header("Content-Type", "application/json");
        if let Some(key) = key {
            request = request.header("api-key", key);
        }
        let request = request
            .body(call.body.as_bytes())
            .map_err(ureq::Error::from)?;
        let request = self.agent.configure_request(request);
        let request = request.timeout_global(Some(timeout)).build();
        let response = self.agent.run(request)?;
        let status = response.status().as_u16();
        let mut body = Vec::new();
        let mut reader = response
            .into_body()
            .into_reader()
            .take(MAX_ANSWER_BYTES + 1);
        reader.read_to_end(&mut body).map_err(ureq::Error::from)?;
        if body.len() as u64 > MAX_ANSWER_BYTES {
            return Err(NodeError::Response(format!(
                "the response has more than {MAX_ANSWER_BYTES} bytes"
            )));
        }
        // Overload, or a failure of the node or of those behind it: another node may do better, so this is
        // retried.
        if status >= 500 || status == 429 || status == 408 {
            return Err(NodeError::Response(format!(
                "status {status}: {}",
                error_message(&body)
            )));
        }
        Ok(NodeReply { status, body })
    }
}

/// The kind of failure, as the circuit breaker distinguishes them.
fn failure_kind(error: &ureq::Error) -> NodeFailure {
    use ureq::Timeout::{Connect, Resolve};
    match error {
        ureq::Error::Timeout(at) if !matches!(at, Resolve | Connect) => NodeFailure::TimedOut,
        _ => NodeFailure::Unreachable,
    }
}

/// A node's own error message, cut to a length that fits a log line.
pub(super) fn error_message(body: &[u8]) -> String {
    let json: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    let error = json
        .as_ref()
        .and_then(|json| json.pointer("/status/error")?.as_str());
    let text = error.map_or_else(|| String::from_utf8_lossy(body).into_owned(), str::to_owned);
    text.chars()
        .filter(|c| !c.is_control())
        .take(MAX_REASON_CHARS)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(address: &str) -> Result<ClusterNode, SearchError> {
        ClusterNode::new(address, true, TlsConfig::default())
    }

    #[test]
    fn addresses_are_checked_and_never_shown() {
        for good in ["http://a:6333", "https://a.example/", " http://[::1]:1 "] {
            assert!(node(good).is_ok(), "{good}");
        }
        for bad in [
            "a:6333",
            "ftp://a",
            "http://user:secret@a",
            "http://a/?x",
            "http://",
        ] {
            let error = node(bad).err().unwrap().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
