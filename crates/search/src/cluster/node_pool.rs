//! Load balancing and failover: sends a request to whichever node can answer it in time.
//!
//! Every node answers for the whole cluster. A node that cannot be reached, times out or reports a server
//! error is passed over for the next one, with backoff between rounds, until there is a response or the
//! deadline has passed. A client error is final: every node would refuse the request alike.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use ureq::http::HeaderValue;

use super::node::{ClusterNode, NodeError, NodeReply, error_message};
use super::request::{ClusterRequest, RequestDeadline};
use super::settings::ClusterSettings;
use super::tls_roots;
use super::traffic::{ClusterTraffic, NodeCallOutcome, TrafficCounters};
use crate::error::SearchError;

/// The backoff between two rounds over all nodes; it doubles up to a second. The first is short, because a moment
/// without any node is usually a failover; later ones grow, so that waiting processes do not keep a cluster busy that
/// is just coming back.
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(1);

const DOWN: &str =
    "check that the nodes run and can be reached from here; answers come again by themselves";
/// All nodes of the cluster, tried in turn (round robin), with the API key for all of them.
pub(super) struct NodePool {
    nodes: Vec<ClusterNode>,
    key: Option<HeaderValue>,
    next_node: AtomicUsize,
    counts: TrafficCounters,
}

impl NodePool {
    pub(super) fn new(settings: &ClusterSettings) -> Result<Self, SearchError> {
        let key = settings.key.as_ref().map(|key| {
            let value = HeaderValue::from_str(key.reveal());
            // The reason is not passed on: it might show a part of the key.
            value.map_err(|_| SearchError::Cluster {
                what: "the cluster's API key has characters that are not allowed in a header"
                    .to_owned(),
                hint: "check the key for line ends and control characters",
                source: None,
            })
        });
        let key = key.transpose()?;
        let tls = tls_roots::tls_config(settings.ca_file.as_deref())?;
        let nodes = settings
            .addresses
            .iter()
            .map(|address| ClusterNode::new(address, key.is_some(), tls.clone()));
        Ok(Self {
            nodes: nodes.collect::<Result<_, _>>()?,
            key,
            next_node: AtomicUsize::new(0),
            counts: TrafficCounters::default(),
        })
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The metrics of all calls and nodes so far.
    pub(super) fn traffic(&self) -> ClusterTraffic {
        let now = Instant::now();
        let nodes = self.nodes.iter().map(|node| node.traffic(now));
        ClusterTraffic {
            calls: self.counts.snapshot(),
            nodes: nodes.collect(),
            rounds: self.counts.rounds(),
        }
    }

    /// Sends a request that every node is expected to accept, and returns its result.
    pub(super) fn request<T: DeserializeOwned>(
        &self,
        request: &ClusterRequest,
        deadline: RequestDeadline,
    ) -> Result<T, SearchError> {
        Self::result(request, &self.reply(request, deadline)?)
    }

    /// The same for a collection that may not exist; `None` when it does not.
    pub(super) fn request_optional<T: DeserializeOwned>(
        &self,
        request: &ClusterRequest,
        deadline: RequestDeadline,
    ) -> Result<Option<T>, SearchError> {
        let reply = self.reply(request, deadline)?;
        if reply.status == 404 {
            return Ok(None);
        }
        Self::result(request, &reply).map(Some)
    }

    fn result<T: DeserializeOwned>(
        request: &ClusterRequest,
        reply: &NodeReply,
    ) -> Result<T, SearchError> {
        if !(200..300).contains(&reply.status) {
            return Err(request_rejected(request, reply));
        }
        let answer: QdrantEnvelope<T> =
            serde_json::from_slice(&reply.body).map_err(|source| SearchError::Cluster {
                what: format!(
                    "the cluster's response to `{}` cannot be read",
                    request.action
                ),
                hint: "check that the addresses are those of Qdrant, version 1.16 or newer",
                source: Some(Box::new(source)),
            })?;
        Ok(answer.result)
    }

    /// The first response of any node that is not a server error. A rejected API key is an error whatever the
    /// request was.
    pub(super) fn reply(
        &self,
        request: &ClusterRequest,
        deadline: RequestDeadline,
    ) -> Result<NodeReply, SearchError> {
        let start = Instant::now();
        let mut sent = 0;
        self.counts.begin(request.kind);
        let outcome = self.reply_with_retries(request, deadline, &mut sent);
        let call_outcome = match &outcome {
            Ok(reply) if reply.status < 400 => NodeCallOutcome::Answered,
            Ok(_) => NodeCallOutcome::Refused,
            Err(_) => NodeCallOutcome::Failed,
        };
        let retries = u64::saturating_sub(sent, 1);
        self.counts
            .count(request.kind, call_outcome, retries, start.elapsed());
        match outcome {
            Ok(reply) if matches!(reply.status, 401 | 403) => {
                Err(self.key_rejected(request, &reply))
            }
            other => other,
        }
    }

    fn reply_with_retries(
        &self,
        request: &ClusterRequest,
        deadline: RequestDeadline,
        sent: &mut u64,
    ) -> Result<NodeReply, SearchError> {
        let mut wait = FIRST_WAIT;
        let mut last = None;
        loop {
            let (mut tried, mut tls_failures) = (0, 0);
            let first = self.next_node.fetch_add(1, Ordering::Relaxed);
            let count = self.nodes.len();
            // One round over all nodes and, if every circuit was open, a second round with those that merely
            // timed out.
            for step in 0..2 * count {
                if step >= count && tried > 0 {
                    break;
                }
                let Some(left) = deadline.remaining() else {
                    return Err(self.unavailable(request, last));
                };
                let Some(node) = self.nodes.get((first + step) % count) else {
                    continue;
                };
                if !node.allows(step >= count) {
                    continue;
                }
                tried += 1;
                *sent += 1;
                match node.request(request, self.key.as_ref(), left.min(deadline.per_node)) {
                    Ok(reply) => return Ok(reply),
                    Err(reason) => {
                        tls_failures += usize::from(reason.tls_hint().is_some());
                        last = Some(reason);
                    }
                }
            }
            // An untrusted certificate does not improve with retries.
            if tls_failures == self.nodes.len() {
                return Err(self.unavailable(request, last));
            }
            let now = Instant::now();
            let pause = if tried > 0 {
                wait
            } else {
                self.time_until_retry(now)
            };
            if now + pause >= deadline.end {
                return Err(self.unavailable(request, last));
            }
            std::thread::sleep(pause);
            wait = LONGEST_WAIT.min(wait * 2);
        }
    }

    /// The time until the first open circuit allows a probe.
    fn time_until_retry(&self, now: Instant) -> Duration {
        let until = self
            .nodes
            .iter()
            .filter_map(|node| node.breaker().open_until());
        until.min().map_or(FIRST_WAIT, |until| {
            until.saturating_duration_since(now).max(FIRST_WAIT)
        })
    }

    fn unavailable(&self, request: &ClusterRequest, last: Option<NodeError>) -> SearchError {
        let nodes = self.nodes.len();
        let about_tls = last.as_ref().and_then(NodeError::tls_hint);
        let what = match &last {
            Some(NodeError::Response(_)) => format!(
                "the cluster cannot reach all of the index (`{}`)",
                request.action
            ),
            _ if about_tls.is_some() => "TLS connection to the cluster failed".to_owned(),
            _ => format!(
                "none of the cluster's {nodes} nodes answers in time (`{}`)",
                request.action
            ),
        };
        SearchError::Cluster {
            what,
            hint: about_tls.unwrap_or(DOWN),
            source: last.map(|reason| Box::new(reason) as _),
        }
    }

    fn key_rejected(&self, request: &ClusterRequest, reply: &NodeReply) -> SearchError {
        let status = reply.status;
        let (what, hint) = match (&self.key, status) {
            (None, 401) => (
                "the cluster requires an API key, and none is set".to_owned(),
                "set `engine.key`, best as `DOCENT_ENGINE_KEY` in the environment",
            ),
            (_, 401) => (
                "the cluster rejects the API key".to_owned(),
                "check `engine.key`; `DOCENT_ENGINE_KEY` in the environment overrides docent.toml",
            ),
            _ => (
                format!(
                    "the cluster's API key does not permit `{}` (status {status})",
                    request.action
                ),
                "use a key in `engine.key` that may read and write",
            ),
        };
        SearchError::Cluster {
            what,
            hint,
            source: Some(error_message(&reply.body).into()),
        }
    }
}

#[derive(Deserialize)]
struct QdrantEnvelope<T> {
    result: T,
}

/// The error for a response that is final: no node would accept this request.
fn request_rejected(request: &ClusterRequest, reply: &NodeReply) -> SearchError {
    let status = reply.status;
    let hint = match status {
        404 => "build the index first with `docent index`",
        413 => "raise `service.max_request_size_mb` of the cluster",
        _ => "check that the cluster runs Qdrant 1.16 or newer, and look into its log",
    };
    SearchError::Cluster {
        what: format!(
            "the cluster refuses `{}` with status {status}",
            request.action
        ),
        hint,
        source: Some(error_message(&reply.body).into()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use super::super::traffic::RequestKind;
    use super::*;

    fn nodes(addresses: &[&str]) -> Result<NodePool, SearchError> {
        let addresses = addresses.iter().map(|one| (*one).to_owned()).collect();
        NodePool::new(&ClusterSettings::new(addresses))
    }

    /// The address of a port that was just released, so nothing listens there.
    fn nowhere() -> String {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    }

    #[test]
    fn a_dead_cluster_is_a_clear_error_in_time_and_left_alone() {
        let (one, two) = (nowhere(), nowhere());
        let nodes = nodes(&[&one, &two]).unwrap();
        let request = ClusterRequest::get(RequestKind::State, "look", "/".to_owned());
        let start = Instant::now();
        let error = nodes
            .reply(&request, RequestDeadline::within(Duration::from_secs(1)))
            .err()
            .unwrap();
        assert!(start.elapsed() < Duration::from_secs(2));
        assert!(
            error
                .to_string()
                .starts_with("none of the cluster's 2 nodes answers"),
            "{error}"
        );
        // By now both circuits are open.
        let tried = nodes.traffic().requests();
        assert!(tried >= 10, "{tried}");
        assert!(
            nodes
                .reply(&request, RequestDeadline::within(Duration::from_secs(1)))
                .is_err()
        );
        assert_eq!(nodes.traffic().requests(), tried);
    }

    /// A node that accepts requests, but answers only once `is_fast` is set.
    fn slow(is_fast: &Arc<AtomicBool>) -> String {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let is_fast = is_fast.clone();
        std::thread::spawn(move || {
            let mut unanswered = Vec::new();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let _read = stream.read(&mut [0; 1_024]).unwrap();
                if is_fast.load(Ordering::Relaxed) {
                    let answer =
                        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
                    stream.write_all(answer).unwrap();
                } else {
                    unanswered.push(stream);
                }
            }
        });
        address
    }

    #[test]
    fn nodes_that_were_late_are_asked_where_no_other_is_left() {
        let is_fast = Arc::new(AtomicBool::new(false));
        let nodes = nodes(&[&slow(&is_fast), &slow(&is_fast)]).unwrap();
        let request = ClusterRequest::get(RequestKind::State, "look", "/".to_owned());
        let soon = || RequestDeadline::within(Duration::from_millis(100));
        for _ in 0..10 {
            assert!(nodes.reply(&request, soon()).is_err());
        }
        let now = Instant::now();
        assert!(nodes.nodes.iter().all(|node| node.breaker().is_open(now)));
        is_fast.store(true, Ordering::Relaxed);
        let reply = nodes.reply(&request, RequestDeadline::within(Duration::from_secs(5)));
        assert_eq!(reply.unwrap().status, 200);
    }
}
