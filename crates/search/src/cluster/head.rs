//! The state of an index: which generation counts, who writes, and what is known about all documents.
//!
//! There is one point with it, on three nodes. It changes only under the condition that it is not newer than
//! what the writer read, which the cluster checks where the point lies, so of two writers one succeeds and
//! the other finds out.
//!
//! Each node takes the first change that it sees, and what two of them say afterwards is what counts. So a
//! node that is cut off from the others changes nothing, and because older states are replaced too, what it may
//! have written alone does not stay. Qdrant's own order of writes is not used: `strong` sends all of them
//! through one node for ever, so that its death would stop all writing, and with every order a node waits for
//! another that asks it back, which is for minutes where a collection is made or removed meanwhile.

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

/// The most generations that are remembered as never finished. Older ones have been swept.
pub(super) const MAX_ABORTED: usize = 16;

/// How long nodes get that do not agree, before they are asked again.
const QUORUM_RETRY: Duration = Duration::from_millis(20);

/// The state of an index.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct IndexHead {
    pub format: u32,
    /// How often the writer changed. One with a smaller number changes nothing any more.
    pub epoch: u64,
    /// Who writes; empty when nobody does.
    pub holder: String,
    /// Counts up while the writer lives.
    pub beat: u64,
    /// The last generation that counts.
    pub generation: u64,
    /// Generations up to that one which were begun and never finished.
    pub void: Vec<u64>,
    pub documents: u64,
    /// How many of them are not for everyone.
    pub restricted: u64,
    /// How many terms all bodies and all titles have.
    pub lengths: [u64; 2],
    /// The mean lengths that the weights of terms are worked out with, and how often these were chosen anew.
    pub means: [f32; 2],
    #[serde(default)]
    pub weighing: u64,
    /// How many documents are in which language.
    pub languages: BTreeMap<String, u64>,
    /// The names of the fields, each with the marks of the kinds it has indexes for.
    pub fields: BTreeMap<String, String>,
    /// The model whose vectors answer; empty when there is none. This is what swaps models.
    #[serde(default)]
    pub model: String,
    /// Whether all documents have had its vectors once, so that only what changes lacks some.
    #[serde(default)]
    pub whole: bool,
    /// How many documents an older format had when this one was begun beside it, until all are here too.
    #[serde(default)]
    pub awaited: Option<u64>,
}

/// What can be told of the state of an index in any format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct HeadSummary {
    pub documents: u64,
    pub epoch: u64,
    pub beat: u64,
}

impl IndexHead {
    /// The languages of the documents, those of most documents first.
    pub(super) fn languages(&self) -> Vec<Language> {
        let known = |code: &str| Language::ALL.into_iter().find(|one| one.code() == code);
        let counts = self.languages.iter();
        Language::by_document_count(counts.filter_map(|(code, count)| Some((known(code)?, *count))))
    }

    fn id() -> String {
        point_id(&["head"])
    }

    /// Reads the state; nothing when there is no index. Any node may answer: an older state is one that
    /// counted a moment ago, and to ask for a majority would wait for a node that has just died.
    pub(super) fn read(
        nodes: &NodePool,
        names: &CollectionNames,
        deadline: RequestDeadline,
    ) -> Result<Option<Self>, SearchError> {
        Self::read_with("", nodes, names, deadline)
    }

    /// Reads the state that more than half of the nodes have. Those that are asked differ while something is
    /// written, a sign of life perhaps, so this waits until they do not; nothing where they never agree.
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
        whom: &str,
        nodes: &NodePool,
        names: &CollectionNames,
        deadline: RequestDeadline,
    ) -> Result<Option<Self>, SearchError> {
        let Some(payload) = Self::payload(whom, nodes, names, deadline)? else {
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

    /// What can be told of an index in another format.
    pub(super) fn read_summary(
        nodes: &NodePool,
        names: &CollectionNames,
        deadline: RequestDeadline,
    ) -> Result<Option<HeadSummary>, SearchError> {
        let payload = Self::payload("", nodes, names, deadline)?;
        let glance = payload.map(|payload| serde_json::from_value(payload).unwrap_or_default());
        Ok(glance)
    }

    fn payload(
        whom: &str,
        nodes: &NodePool,
        names: &CollectionNames,
        deadline: RequestDeadline,
    ) -> Result<Option<Value>, SearchError> {
        let path = format!("/collections/{}/points{whom}", names.head);
        let body = json!({"ids": [Self::id()], "with_payload": true}).to_string();
        let ask = ClusterRequest::read(
            RequestKind::State,
            "read the state of the index",
            path,
            body,
        );
        let reply = nodes.reply(&ask, deadline)?;
        if reply.status == 404 {
            return Ok(None);
        }
        if reply.status != 200 {
            let said = super::node::error_message(&reply.body);
            return Err(unreadable(names, Some(said.into())));
        }
        let unread = |error: serde_json::Error| unreadable(names, Some(error.into()));
        let answer: Value = serde_json::from_slice(&reply.body).map_err(unread)?;
        let points = answer.get("result").cloned().unwrap_or_default();
        let points: Vec<ScoredPoint> = serde_json::from_value(points).map_err(unread)?;
        Ok(points.into_iter().next().map(|point| point.payload))
    }

    /// Writes the state of an empty index, unless there is one.
    pub(super) fn create(
        nodes: &NodePool,
        names: &CollectionNames,
        awaited: Option<u64>,
        deadline: RequestDeadline,
    ) -> Result<(), SearchError> {
        let head = Self {
            format: names.format,
            awaited,
            ..Self::default()
        };
        let never = json!({"must": [{"key": "epoch", "range": {"lt": 0}}]});
        let body = json!({
            "points": [{"id": Self::id(), "vector": {}, "payload": head}],
            "update_filter": never,
        });
        let path = format!("/collections/{}/points?wait=true", names.head);
        let ask = ClusterRequest::put(RequestKind::State, "begin an index", path, body.to_string());
        nodes.request::<Value>(&ask, deadline).map(drop)
    }

    /// Puts `next` in place of this one; says no when somebody else was faster.
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
        let ask = ClusterRequest::post(RequestKind::State, "commit", path, body.to_string());
        let written = nodes.request::<Value>(&ask, deadline);
        // Whatever was said about the writing, what more than half of the nodes have now is the truth.
        let now = Self::read_quorum(nodes, names, deadline)?;
        let is_done = now.is_some_and(|now| {
            let numbers = |head: &Self| (head.epoch, head.generation, head.weighing, head.whole);
            numbers(&now) == numbers(next)
                && now.holder == next.holder
                && now.model == next.model
                && now.awaited == next.awaited
        });
        match written {
            Err(error) if !is_done => Err(error),
            _ => Ok(is_done),
        }
    }

    /// Shows that the writer lives; says no when it is another one by now.
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
            "payload": {"beat": now.beat + 1},
            "filter": {"must": [
                {"has_id": [Self::id()]},
                {"key": "epoch", "match": {"value": self.epoch}},
            ]},
        });
        let path = format!("/collections/{}/points/payload?wait=true", names.head);
        let ask = ClusterRequest::post(RequestKind::State, "show life", path, body.to_string());
        nodes.request::<Value>(&ask, deadline).map(|_| true)
    }

    /// Lets go of being the writer.
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
        let ask = ClusterRequest::post(RequestKind::State, "let go", path, body.to_string());
        nodes.request::<Value>(&ask, deadline).map(drop)
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
