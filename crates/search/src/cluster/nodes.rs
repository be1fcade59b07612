//! One request into one answer, from whichever node can give it in time.
//!
//! Every node answers for the whole cluster. A node that cannot be reached, does not answer in time or
//! says that it failed is passed over for the next one, until there is an answer or no time is left. What
//! a node refuses, all of them would refuse, so that is final.

use std::io::Read as _;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use ureq::Agent;
use ureq::http::{HeaderValue, Method, Request, Uri};

use super::breaker::Breaker;
use super::settings::{ClusterSettings, unusable};
use crate::error::Error;

/// The most bytes of one answer: the largest document there may be, with every character escaped twice.
const MAX_ANSWER_BYTES: u64 = 128 * 1024 * 1024;

/// The wait between two rounds over all nodes; it doubles up to the second.
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Less time than this is not worth another request.
const LEAST: Duration = Duration::from_millis(20);

/// The most characters of what a node says about a failure.
const MAX_REASON_CHARS: usize = 300;

const DOWN: &str =
    "check that the nodes run and can be reached from here; answers come again by themselves";

/// How long an answer is waited for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline {
    end: Instant,
    /// The longest that one node may take.
    each: Duration,
}

impl Deadline {
    /// For something that takes at most `total`. One node gets half of it, so that another one can help.
    pub(super) fn within(total: Duration) -> Self {
        Self {
            end: Instant::now() + total,
            each: total / 2,
        }
    }

    fn left(&self) -> Option<Duration> {
        let left = self.end.checked_duration_since(Instant::now())?;
        (left >= LEAST).then_some(left)
    }
}

/// One request.
#[derive(Debug)]
pub(super) struct Ask {
    /// What is done, for logs and messages.
    pub what: &'static str,
    pub method: Method,
    pub path: String,
    pub body: String,
}

impl Ask {
    pub(super) fn get(what: &'static str, path: String) -> Self {
        Self {
            what,
            method: Method::GET,
            path,
            body: String::new(),
        }
    }

    pub(super) fn post(what: &'static str, path: String, body: String) -> Self {
        Self {
            what,
            method: Method::POST,
            path,
            body,
        }
    }

    pub(super) fn put(what: &'static str, path: String, body: String) -> Self {
        Self {
            what,
            method: Method::PUT,
            path,
            body,
        }
    }
}

/// What a node said, yes or no.
pub(super) struct Reply {
    pub status: u16,
    pub body: Vec<u8>,
}

/// How often nodes were asked, and how that went.
#[derive(Debug, Default)]
struct Calls {
    asked: AtomicU64,
    failed: AtomicU64,
    micros: AtomicU64,
}

/// How the nodes of a cluster were asked so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallCounts {
    /// Requests to single nodes.
    pub asked: u64,
    /// Those that brought no answer, so that another node was asked or the call failed.
    pub failed: u64,
    /// The time that all of them took.
    pub spent: Duration,
}

/// All nodes.
pub(super) struct Nodes {
    nodes: Vec<Node>,
    key: Option<HeaderValue>,
    turn: AtomicUsize,
    calls: Calls,
}

struct Node {
    base: String,
    agent: Agent,
    breaker: Mutex<Breaker>,
}

impl Nodes {
    pub(super) fn new(settings: &ClusterSettings) -> Result<Self, Error> {
        let key = settings.key.as_ref().map(|key| {
            let value = HeaderValue::from_str(key.reveal());
            // The reason is not passed on: it might show a part of the key.
            value.map_err(|_| Error::Cluster {
                what: "the cluster's API key has characters that no header can carry".to_owned(),
                hint: "check the key for line ends and control characters",
                source: None,
            })
        });
        let key = key.transpose()?;
        let nodes = settings
            .addresses
            .iter()
            .map(|address| Node::new(address, key.is_some()));
        Ok(Self {
            nodes: nodes.collect::<Result<_, _>>()?,
            key,
            turn: AtomicUsize::new(0),
            calls: Calls::default(),
        })
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn counts(&self) -> CallCounts {
        CallCounts {
            asked: self.calls.asked.load(Ordering::Relaxed),
            failed: self.calls.failed.load(Ordering::Relaxed),
            spent: Duration::from_micros(self.calls.micros.load(Ordering::Relaxed)),
        }
    }

    /// The result in the answer to a request that all nodes are expected to take.
    pub(super) fn ask<T: DeserializeOwned>(
        &self,
        ask: &Ask,
        deadline: Deadline,
    ) -> Result<T, Error> {
        let reply = self.reply(ask, deadline)?;
        if !(200..300).contains(&reply.status) {
            return Err(refused(ask, &reply));
        }
        let answer: Answer<T> =
            serde_json::from_slice(&reply.body).map_err(|source| Error::Cluster {
                what: format!("the cluster's answer to `{}` cannot be read", ask.what),
                hint: "check that the addresses are those of Qdrant, version 1.16 or newer",
                source: Some(Box::new(source)),
            })?;
        Ok(answer.result)
    }

    /// What the first node says that says anything but that it failed.
    pub(super) fn reply(&self, ask: &Ask, deadline: Deadline) -> Result<Reply, Error> {
        let mut wait = FIRST_WAIT;
        let mut last = None;
        loop {
            let mut asked = 0;
            let first = self.turn.fetch_add(1, Ordering::Relaxed);
            for step in 0..self.nodes.len() {
                let Some(left) = deadline.left() else {
                    return Err(self.down(ask, last));
                };
                let Some(node) = self.nodes.get((first + step) % self.nodes.len()) else {
                    continue;
                };
                if !node.breaker().admits(Instant::now()) {
                    continue;
                }
                asked += 1;
                match self.once(node, ask, left.min(deadline.each)) {
                    Ok(reply) => return Ok(reply),
                    Err(reason) => last = Some(reason),
                }
            }
            let now = Instant::now();
            let pause = if asked > 0 {
                wait
            } else {
                self.closed_for(now)
            };
            if now + pause >= deadline.end {
                return Err(self.down(ask, last));
            }
            std::thread::sleep(pause);
            wait = LONGEST_WAIT.min(wait * 2);
        }
    }

    /// How long it takes until one of the nodes may be asked again.
    fn closed_for(&self, now: Instant) -> Duration {
        let until = self
            .nodes
            .iter()
            .filter_map(|node| node.breaker().closed_until());
        until.min().map_or(FIRST_WAIT, |until| {
            until.saturating_duration_since(now).max(FIRST_WAIT)
        })
    }

    fn once(&self, node: &Node, ask: &Ask, timeout: Duration) -> Result<Reply, Reason> {
        let start = Instant::now();
        let outcome = node.send(ask, self.key.as_ref(), timeout);
        let took = start.elapsed();
        self.calls.asked.fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.calls.micros.fetch_add(micros, Ordering::Relaxed);
        match &outcome {
            Ok(_) => node.breaker().succeeded(),
            Err(reason) => {
                self.calls.failed.fetch_add(1, Ordering::Relaxed);
                // One that says that it failed is there, and may do better with another request.
                if matches!(reason, Reason::Sent(_)) {
                    node.breaker().failed(Instant::now());
                }
                tracing::warn!(node = node.base, what = ask.what, ?took, %reason, "a node of the cluster failed");
            }
        }
        tracing::debug!(
            node = node.base,
            what = ask.what,
            ?took,
            ok = outcome.is_ok(),
            "asked a node"
        );
        outcome
    }

    fn down(&self, ask: &Ask, last: Option<Reason>) -> Error {
        let nodes = self.nodes.len();
        let what = match &last {
            Some(Reason::Said(_)) => format!(
                "the cluster cannot answer for all of the index (`{}`)",
                ask.what
            ),
            _ => format!(
                "none of the cluster's {nodes} nodes answers in time (`{}`)",
                ask.what
            ),
        };
        Error::Cluster {
            what,
            hint: DOWN,
            source: last.map(|reason| Box::new(reason) as _),
        }
    }
}

/// Why a node brought no answer.
#[derive(Debug, thiserror::Error)]
enum Reason {
    #[error(transparent)]
    Sent(#[from] ureq::Error),
    #[error("{0}")]
    Said(String),
}

impl Node {
    fn new(address: &str, has_key: bool) -> Result<Self, Error> {
        let base = address.trim().trim_end_matches('/');
        // The address is not shown: it may hold a password.
        let wrong = || unusable("an address of the cluster cannot be used".to_owned());
        let uri: Uri = base.parse().map_err(|_| wrong())?;
        let host = uri.host().unwrap_or_default();
        let is_web = matches!(uri.scheme_str(), Some("http" | "https"));
        if host.is_empty() || !is_web || base.contains(['@', '?', '#']) {
            return Err(wrong());
        }
        let ip = host.parse::<Ipv4Addr>();
        let here = matches!(host, "localhost" | "[::1]") || ip.is_ok_and(|ip| ip.is_loopback());
        if has_key && !here && uri.scheme_str() == Some("http") {
            tracing::warn!("the API key of the cluster travels unencrypted; use https");
        }
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .max_idle_connections(256)
            .max_idle_connections_per_host(256)
            .user_agent(concat!("docent/", env!("CARGO_PKG_VERSION")));
        if here {
            config = config.proxy(None);
        }
        Ok(Self {
            base: base.to_owned(),
            agent: config.build().new_agent(),
            breaker: Mutex::default(),
        })
    }

    fn breaker(&self) -> std::sync::MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(
        &self,
        ask: &Ask,
        key: Option<&HeaderValue>,
        timeout: Duration,
    ) -> Result<Reply, Reason> {
        let mut request = Request::builder()
            .method(&ask.method)
            .uri(format!("{}{}", self.base, ask.path))
            .header("Content-Type", "application/json");
        if let Some(key) = key {
            request = request.header("api-key", key);
        }
        let request = request
            .body(ask.body.as_bytes())
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
            return Err(Reason::Said(format!(
                "its answer has more than {MAX_ANSWER_BYTES} bytes"
            )));
        }
        // Too many requests, or a failure of its own or of the nodes behind it: another may do better.
        if status >= 500 || status == 429 || status == 408 {
            return Err(Reason::Said(format!("status {status}: {}", told(&body))));
        }
        Ok(Reply { status, body })
    }
}

#[derive(Deserialize)]
struct Answer<T> {
    result: T,
}

/// What a node says about its failure, cut to what a log can take.
pub(super) fn told(body: &[u8]) -> String {
    let said: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    let error = said
        .as_ref()
        .and_then(|said| said.pointer("/status/error")?.as_str());
    let text = error.map_or_else(|| String::from_utf8_lossy(body).into_owned(), str::to_owned);
    text.chars()
        .filter(|c| !c.is_control())
        .take(MAX_REASON_CHARS)
        .collect()
}

/// What is final.
fn refused(ask: &Ask, reply: &Reply) -> Error {
    let status = reply.status;
    let hint = match status {
        401 | 403 => "check the cluster's API key and what it may do",
        404 => "build the index first with `docent index`",
        413 => "raise `service.max_request_size_mb` of the cluster",
        _ => "check that the cluster runs Qdrant 1.16 or newer, and look into its log",
    };
    Error::Cluster {
        what: format!("the cluster refuses `{}` with status {status}", ask.what),
        hint,
        source: Some(told(&reply.body).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(addresses: &[&str]) -> Result<Nodes, Error> {
        let addresses = addresses.iter().map(|one| (*one).to_owned()).collect();
        Nodes::new(&ClusterSettings::new(addresses))
    }

    #[test]
    fn addresses_are_checked_and_never_shown() {
        for good in ["http://a:6333", "https://a.example/", " http://[::1]:1 "] {
            assert!(nodes(&[good]).is_ok(), "{good}");
        }
        for bad in [
            "a:6333",
            "ftp://a",
            "http://user:secret@a",
            "http://a/?x",
            "http://",
        ] {
            let error = nodes(&[bad]).err().unwrap().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }

    /// Nothing listens there: the port was just given back.
    fn nowhere() -> String {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    }

    #[test]
    fn a_dead_cluster_is_a_clear_error_in_time_and_left_alone() {
        let (one, two) = (nowhere(), nowhere());
        let nodes = nodes(&[&one, &two]).unwrap();
        let ask = Ask::get("look", "/".to_owned());
        let start = Instant::now();
        let error = nodes
            .reply(&ask, Deadline::within(Duration::from_secs(1)))
            .err()
            .unwrap();
        assert!(start.elapsed() < Duration::from_secs(2));
        assert!(
            error
                .to_string()
                .starts_with("none of the cluster's 2 nodes answers"),
            "{error}"
        );
        // By now both have failed often enough to be left alone.
        let asked = nodes.counts().asked;
        assert!(asked >= 10, "{asked}");
        assert!(
            nodes
                .reply(&ask, Deadline::within(Duration::from_secs(1)))
                .is_err()
        );
        assert_eq!(nodes.counts().asked, asked);
    }
}
