//! One request to the cluster, and how long its answer is waited for.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use ureq::http::Method;

use super::traffic::RequestKind;

/// Less time than this is not worth another request.
const MIN_REMAINING: Duration = Duration::from_millis(20);

/// How long a node may work on a read before it gives it up. While a node makes or removes a collection its requests
/// wait, and those of two nodes that wait for each other would wait for minutes.
const MAX_NODE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long an answer is waited for.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestDeadline {
    pub end: Instant,
    /// The longest that one node may take.
    pub per_node: Duration,
}

impl RequestDeadline {
    /// For something that takes at most `total`. One node gets half of it, so that another one can help.
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

/// One request.
#[derive(Debug)]
pub(super) struct ClusterRequest {
    pub kind: RequestKind,
    /// What is done, for logs and messages.
    pub action: &'static str,
    pub method: Method,
    pub path: String,
    pub body: String,
    /// Whether a node may give it up after a while.
    pub is_read: bool,
}

impl ClusterRequest {
    pub(super) fn get(call: RequestKind, what: &'static str, path: String) -> Self {
        Self::with(call, what, Method::GET, (path, String::new()))
    }

    pub(super) fn post(call: RequestKind, what: &'static str, path: String, body: String) -> Self {
        Self::with(call, what, Method::POST, (path, body))
    }

    /// A question that changes nothing.
    pub(super) fn read(call: RequestKind, what: &'static str, path: String, body: String) -> Self {
        Self {
            is_read: true,
            ..Self::post(call, what, path, body)
        }
    }

    pub(super) fn put(call: RequestKind, what: &'static str, path: String, body: String) -> Self {
        Self::with(call, what, Method::PUT, (path, body))
    }

    pub(super) fn patch(call: RequestKind, what: &'static str, path: String, body: String) -> Self {
        Self::with(call, what, Method::PATCH, (path, body))
    }

    pub(super) fn delete(call: RequestKind, what: &'static str, path: String) -> Self {
        Self::with(call, what, Method::DELETE, (path, String::new()))
    }

    fn with(call: RequestKind, what: &'static str, method: Method, sent: (String, String)) -> Self {
        let (path, body) = sent;
        Self {
            kind: call,
            action: what,
            method,
            path,
            body,
            is_read: false,
        }
    }

    /// The path for a node that has so long for its answer.
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
    fn who_reads_says_how_long_in_whole_seconds() {
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
