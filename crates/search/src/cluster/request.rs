//! One request to the cluster, and its deadline.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use ureq::http::Method;

use super::traffic::RequestKind;

/// With less time than this left, another request is not worth sending. It would most likely end in a timeout, and the
/// error would report that timeout instead of the failure that came before.
const MIN_REMAINING: Duration = Duration::from_millis(20);

/// How long a node may work on a read before it gives up. While a node creates or removes a collection its
/// requests wait, and two nodes that wait for each other would do so for minutes.
const MAX_NODE_TIMEOUT: Duration = Duration::from_secs(10);

/// The deadline of a request, retries included.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestDeadline {
    pub end: Instant,
    /// The timeout of each attempt at one node.
    pub per_node: Duration,
}

impl RequestDeadline {
    /// The deadline for something that takes at most `total`. Each attempt at a node gets half of it: with the whole,
    /// one node that hangs would use up the time in which another could still have answered.
    pub(super) fn within(total: Duration) -> Self {
        Self {
            end: Instant::now() + total,
            per_node: total / 2,
        }
    }

    pub(super) fn remaining(&self) -> Option<Duration> {
        let left = self.end.checked_duration_since(Instant::now())?;
        (left >= MIN_REMAINING).then_some(left)
    }
}

/// A request to the cluster, whichever node it goes to.
#[derive(Debug)]
pub(super) struct ClusterRequest {
    pub kind: RequestKind,
    /// What the request does, for logs and messages.
    pub action: &'static str,
    pub method: Method,
    pub path: String,
    pub body: String,
    /// Whether it only reads, so that a node may give it up at a timeout.
    pub is_read: bool,
}

impl ClusterRequest {
    pub(super) fn get(kind: RequestKind, action: &'static str, path: String) -> Self {
        Self::with(kind, action, Method::GET, path, String::new())
    }

    pub(super) fn post(
        kind: RequestKind,
        action: &'static str,
        path: String,
        body: String,
    ) -> Self {
        Self::with(kind, action, Method::POST, path, body)
    }

    /// A request that changes nothing, although it is a POST.
    pub(super) fn read(
        kind: RequestKind,
        action: &'static str,
        path: String,
        body: String,
    ) -> Self {
        Self {
            is_read: true,
            ..Self::post(kind, action, path, body)
        }
    }

    pub(super) fn put(kind: RequestKind, action: &'static str, path: String, body: String) -> Self {
        Self::with(kind, action, Method::PUT, path, body)
    }

    pub(super) fn patch(
        kind: RequestKind,
        action: &'static str,
        path: String,
        body: String,
    ) -> Self {
        Self::with(kind, action, Method::PATCH, path, body)
    }

    pub(super) fn delete(kind: RequestKind, action: &'static str, path: String) -> Self {
        Self::with(kind, action, Method::DELETE, path, String::new())
    }

    fn with(
        kind: RequestKind,
        action: &'static str,
        method: Method,
        path: String,
        body: String,
    ) -> Self {
        Self {
            kind,
            action,
            method,
            path,
            body,
            is_read: false,
        }
    }

    /// The path, for a read with the timeout after which the node shall give up.
    pub(super) fn path_within(&self, timeout: Duration) -> Cow<'_, str> {
        if !self.is_read {
            return Cow::Borrowed(&self.path);
        }
        let mark = if self.path.contains('?') { '&' } else { '?' };
        let seconds = timeout
            .min(MAX_NODE_TIMEOUT)
            .as_millis()
            .div_ceil(1_000)
            .max(1);
        Cow::Owned(format!("{}{mark}timeout={seconds}", self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_requests_state_their_timeout_in_whole_seconds() {
        let of = |path: &str| {
            ClusterRequest::read(RequestKind::List, "", path.to_owned(), String::new())
        };
        for (path, millis, expected) in [
            ("/a", 750, "/a?timeout=1"),
            ("/a", 1_001, "/a?timeout=2"),
            ("/a?b=c", 0, "/a?b=c&timeout=1"),
            ("/a", 60_000, "/a?timeout=10"),
        ] {
            let within = Duration::from_millis(millis);
            assert_eq!(of(path).path_within(within), expected);
        }
        let write = ClusterRequest::post(RequestKind::Write, "", "/a".to_owned(), String::new());
        assert_eq!(write.path_within(MAX_NODE_TIMEOUT), "/a");
    }
}
