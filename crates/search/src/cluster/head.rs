//! The index head: which generation readers see, which process holds the writer lease, and totals over all
//! documents.
//!
//! The head is one point on three nodes, and it is changed by compare-and-set: a write carries the condition
//! that the stored head is not newer than the one the writer read. The cluster checks this where the point
//! lies, so of two writers one succeeds and the other finds out.
//!
//! Of two competing changes, each node applies the one that reaches it first. A change has succeeded once a
//! quorum of the nodes, two of three, reports it. A node that is cut off from the others therefore decides
//! nothing. It may apply a change that no other node has, but the condition also accepts older states, so the
//! next successful change replaces that one.
//!
//! Qdrant's own write ordering is not used. With `strong`, one node handles all writes permanently, so its
//! death would stop all writing. With any ordering, a node waits for another node that in turn waits for it,
//! which takes minutes while a collection is created or removed.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::layout::{CollectionNames, point_id};
use super::node_pool::NodePool;
use super::qdrant_response::ScoredPoint;
use super::request::{ClusterRequest, RequestDeadline};
use super::traffic::RequestKind;
use crate::analysis::Language;
use crate::error::SearchError;

/// How many aborted generations the head remembers. The garbage of older ones has been collected.
pub(super) const MAX_ABORTED: usize = 16;

/// The pause before a quorum read is repeated when the nodes disagree. They disagree while a write is on its way to the
/// last of them, which takes milliseconds; a longer pause would add to every commit that meets a heartbeat.
const QUORUM_RETRY: Duration = Duration::from_millis(20);

/// The state of an index, stored as a single Qdrant point. The stored names of the fields are part of the
/// index format.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct IndexHead {
    pub format: u32,
    /// The fencing token: how often the lease changed hands. A writer with a smaller epoch changes nothing
    /// any more.
    pub epoch: u64,
    /// The name of the process that holds the writer lease; empty when none does.
    pub holder: String,
    /// The heartbeat counter, which the holder raises while it is alive.
    #[serde(rename = "beat")]
    pub heartbeat_count: u64,
    /// The last committed generation, the one that readers see.
    pub generation: u64,
    /// Aborted generations up to that one: begun, but never committed.
    #[serde(rename = "void")]
    pub aborted_generations: Vec<u64>,
    pub documents: u64,
    /// How many of them are restricted, that is, not readable by everyone.
    pub restricted: u64,
    /// The total number of terms in all bodies and in all titles.
    pub lengths: [u64; 2],
    /// The mean lengths that BM25 weights are computed with, and how often they were replaced.
    pub means: [f32; 2],
    #[serde(default, rename = "weighing")]
    pub means_version: u64,
    /// The number of documents by language code.
    pub languages: BTreeMap<String, u64>,
    /// The metadata fields by name, each with the marks of the index kinds that exist for it.
    pub fields: BTreeMap<String, String>,
    /// The model whose vectors answer; empty when there is none. Changing it is what swaps models.
    #[serde(default)]
    pub model: String,
    /// Whether that model has had vectors of all documents once, so that only later changes lack some.
    #[serde(default, rename = "whole")]
    pub vectors_complete: bool,
    /// How many documents the index of an older format had when this one was begun beside it; set until the
    /// migration is complete.
    #[serde(default, rename = "awaited")]
    pub documents_to_migrate: Option<u64>,
    /// The last link of the word statistics, and the generation that they hold for. A program that knows no
    /// statistics raises the generation alone, so they hold no longer.
    #[serde(default, skip_serializing_if = "is_unset")]
    pub counted: [u64; 2],
}

/// Whether there are no statistics, as in an index of an earlier version.
fn is_unset(counted: &[u64; 2]) -> bool {
    *counted == [0; 2]
}

/// The part of the head that every index format has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct HeadSummary {
    pub documents: u64,
    pub epoch: u64,
    #[serde(rename = "beat")]
    pub heartbeat_count: u64,
}

impl IndexHead {
    /// The languages of the documents, the most frequent first.
    pub(super) fn languages(&self) -> Vec<Language> {
        let known = |code: &str| Language::ALL.into_iter().find(|one| one.code() == code);
        let counts = self.languages.iter();
        Language::by_document_count(counts.filter_map(|(code, count)| Some((known(code)?, *count))))
    }

    fn id() -> String {
        point_id(&["head"])
    }

    /// Reads the head; `None` when there is no index. Any node may answer: an older head is one that was
    /// valid a moment ago, and a quorum read would wait for a node that has just died.
    pub(super) fn read(
        nodes: &NodePool,
        names: &CollectionNames,
        deadline: RequestDeadline,
    ) -> Result<Option<Self>, SearchError> {
        Self::read_with("", nodes, names, deadline)
    }

    /// Reads the head that a quorum of the nodes holds. Nodes differ while something is written, a heartbeat
    /// perhaps, so this retries until they agree; `None` when they do not before the deadline.
    fn read_quorum(
        nodes: &NodePool,
        names: &CollectionNames,
        deadline: RequestDeadline,
    ) -> Result<Option<Self>, SearchError> {
        loop {
            let found = Self::read_with("?consistency=quorum", nodes, names, deadline)?;
            let is_over = deadline.remaining().is_none_or(|left| left <= QUORUM_RETRY);
            if found.is_some() || is_over {
                return Ok(found);
            }
            std::thread::sleep(QUORUM_RETRY);
        }
    }

    fn read_with(
        consistency: &str,
        nodes: &NodePool,
        names: &CollectionNames,
        deadline: RequestDeadline,
    ) -> Result<Option<Self>, SearchError> {
        let Some(payload) = Self::payload(consistency, nodes, names, deadline)? else {
            return Ok(None);
        };
        let head: Self =
            serde_json::from_value(payload).map_err(|e| unreadable(names, Some(e.into())))?;
        if head.format != names.format {
            return Err(SearchError::Format {
                path: names.head.clone().into(),
                found: head.format.to_string(),
                expected: names.format,
            });
        }
        Ok(Some(head))
    }

    /// Reads the summary of an index in another format.
    pub(super) fn read_summary(
        nodes: &NodePool,
        names: &CollectionNames,
        deadline: RequestDeadline,
    ) -> Result<Option<HeadSummary>, SearchError> {
        let payload = Self::payload("", nodes, names, deadline)?;
        let summary = payload.map(|payload| serde_json::from_value(payload).unwrap_or_default());
        Ok(summary)
    }

    fn payload(
        consistency: &str,
        nodes: &NodePool,
        names: &CollectionNames,
        deadline: RequestDeadline,
    ) -> Result<Option<Value>, SearchError> {
        let path = format!("/collections/{}/points{consistency}", names.head);
        let body = json!({"ids": [Self::id()], "with_payload": true}).to_string();
        let request = ClusterRequest::read(
            RequestKind::State,
            "read the state of the index",
            path,
            body,
        );
        let reply = nodes.reply(&request, deadline)?;
        if reply.status == 404 {
            return Ok(None);
        }
        if reply.status != 200 {
            let reason = super::node::error_message(&reply.body);
            return Err(unreadable(names, Some(reason.into())));
        }
        let unread = |error: serde_json::Error| unreadable(names, Some(error.into()));
        let answer: Value = serde_json::from_slice(&reply.body).map_err(unread)?;
        let points = answer.get("result").cloned().unwrap_or_default();
        let points: Vec<ScoredPoint> = serde_json::from_value(points).map_err(unread)?;
        Ok(points.into_iter().next().map(|point| point.payload))
    }

    /// Writes the state of an empty index, unless there is one. The condition of the update never holds: it lets the
    /// cluster insert the point if it is missing and refuses to change it otherwise. So of two processes that start at
    /// once, neither overwrites what the other has begun.
    pub(super) fn create(
        nodes: &NodePool,
        names: &CollectionNames,
        documents_to_migrate: Option<u64>,
        deadline: RequestDeadline,
    ) -> Result<(), SearchError> {
        let head = Self {
            format: names.format,
            documents_to_migrate,
            ..Self::default()
        };
        let never_matches = json!({"must": [{"key": "epoch", "range": {"lt": 0}}]});
        let body = json!({
            "points": [{"id": Self::id(), "vector": {}, "payload": head}],
            "update_filter": never_matches,
        });
        let path = format!("/collections/{}/points?wait=true", names.head);
        let request = ClusterRequest::put(
            RequestKind::State,
            "create the index head",
            path,
            body.to_string(),
        );
        nodes.request::<Value>(&request, deadline).map(drop)
    }

    /// Compare-and-set: puts `next` in place of this head. Returns false when another writer was faster.
    ///
    /// The reply to the write does not decide, because it may be lost on a network that delivered the request. The head
    /// is read back from a quorum and compared: if the change is there it has succeeded, whatever was reported.
    pub(super) fn replace(
        &self,
        next: &Self,
        nodes: &NodePool,
        names: &CollectionNames,
        deadline: RequestDeadline,
    ) -> Result<bool, SearchError> {
        let body = json!({
            "payload": next,
            "filter": {"must": [
                {"has_id": [Self::id()]},
                {"key": "epoch", "range": {"lte": self.epoch}},
                {"key": "generation", "range": {"lte": self.generation}},
            ]},
        });
        let path = format!("/collections/{}/points/payload?wait=true", names.head);
        let request = ClusterRequest::post(RequestKind::State, "commit", path, body.to_string());
        let written = nodes.request::<Value>(&request, deadline);
        // Whatever the reply to the write was, what a quorum of the nodes holds now is the truth.
        let now = Self::read_quorum(nodes, names, deadline)?;
        let is_done = now.is_some_and(|now| {
            let numbers = |head: &Self| (head.epoch, head.generation, head.means_version);
            numbers(&now) == numbers(next)
                && now.vectors_complete == next.vectors_complete
                && now.holder == next.holder
                && now.model == next.model
                && now.counted == next.counted
                && now.documents_to_migrate == next.documents_to_migrate
        });
        match written {
            Err(error) if !is_done => Err(error),
            _ => Ok(is_done),
        }
    }

    /// Renews the lease by raising the heartbeat counter. Returns false when another process holds the lease by now.
    /// The write has the epoch as its condition and no quorum: a heartbeat that arrives late or on one node alone
    /// changes nothing that a commit depends on.
    pub(super) fn heartbeat(
        &self,
        nodes: &NodePool,
        names: &CollectionNames,
        deadline: RequestDeadline,
    ) -> Result<bool, SearchError> {
        let Some(now) = Self::read(nodes, names, deadline)? else {
            return Ok(false);
        };
        if now.epoch != self.epoch || now.holder != self.holder {
            return Ok(false);
        }
        let body = json!({
            "payload": {"beat": now.heartbeat_count + 1},
            "filter": {"must": [
                {"has_id": [Self::id()]},
                {"key": "epoch", "match": {"value": self.epoch}},
            ]},
        });
        let path = format!("/collections/{}/points/payload?wait=true", names.head);
        let request = ClusterRequest::post(
            RequestKind::State,
            "renew the lease",
            path,
            body.to_string(),
        );
        nodes.request::<Value>(&request, deadline).map(|_| true)
    }

    /// Releases the writer lease, provided that this process still holds it under this epoch.
    pub(super) fn release(
        &self,
        nodes: &NodePool,
        names: &CollectionNames,
        deadline: RequestDeadline,
    ) -> Result<(), SearchError> {
        let body = json!({
            "payload": {"holder": ""},
            "filter": {"must": [
                {"has_id": [Self::id()]},
                {"key": "epoch", "match": {"value": self.epoch}},
                {"key": "holder", "match": {"value": self.holder}},
            ]},
        });
        let path = format!("/collections/{}/points/payload?wait=true", names.head);
        let request = ClusterRequest::post(
            RequestKind::State,
            "release the lease",
            path,
            body.to_string(),
        );
        nodes.request::<Value>(&request, deadline).map(drop)
    }
}

type ErrorSource = Option<Box<dyn std::error::Error + Send + Sync>>;

fn unreadable(names: &CollectionNames, source: ErrorSource) -> SearchError {
    SearchError::Cluster {
        what: format!("the state of the index in `{}` cannot be read", names.head),
        hint: "check that the addresses are those of Qdrant, and that no other program uses this collection",
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_names_stay() {
        let stored = r#"{"format":0,"epoch":0,"holder":"","beat":0,"generation":0,"void":[],"documents":0,"restricted":0,"lengths":[0,0],"means":[0.0,0.0],"weighing":0,"languages":{},"fields":{},"model":"","whole":false,"awaited":null}"#;
        let head = IndexHead::default();
        assert_eq!(serde_json::to_string(&head).unwrap(), stored);
        assert_eq!(serde_json::from_str::<IndexHead>(stored).unwrap(), head);
        let summary: HeadSummary = serde_json::from_value(json!({"beat": 7})).unwrap();
        assert_eq!(summary.heartbeat_count, 7);
    }
}
