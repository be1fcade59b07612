//! A long first way: nodes make no graphs of a model's passages before all of them are there.
//!
//! A node makes the graph of every segment that has grown, joins segments, and makes the graphs of those. While
//! vectors come by the hundred thousand, all graphs but the last are made for nothing, and searching what has
//! none takes longer than an answer may. So documents are found by their words meanwhile. It is the collection
//! that knows of it, because whoever goes on after a crash is another process.

use serde_json::{Value, json};

use super::ClusterInner;
use super::head::IndexHead;
use super::lease::WriterLease;
use super::request::ClusterRequest;
use super::traffic::RequestKind;
use crate::error::SearchError;

/// From how many kilobytes of vectors on nodes make the graph of a segment: what they do unless told otherwise.
const INDEXING_THRESHOLD_KB: u64 = 10_000;

/// What tells them to make none.
const INDEXING_DISABLED: u64 = 0;

impl ClusterInner {
    /// Whether a model has so long a way to go that its graphs wait for the end of it.
    pub(super) fn defers_indexing(&self, head: &IndexHead, model: &str) -> bool {
        let is_whole = head.whole && head.model == model;
        !is_whole && head.documents >= self.settings.many
    }

    /// Has nodes wait with the graphs of a model that has a long way to go.
    pub(super) fn defer_hnsw(&self, lease: &mut WriterLease, head: &IndexHead, model: &str) {
        if !self.defers_indexing(head, model) || !lease.deferred.insert(model.to_owned()) {
            return;
        }
        if let Err(error) = self.set_indexing_threshold(model, INDEXING_DISABLED) {
            // It takes longer then, and that is all.
            tracing::warn!(%error, "nodes make graphs while vectors are still coming");
        }
    }

    /// Has nodes make the graphs of a model that has come to the end of its way. What somebody has set by hand
    /// stays as it is.
    pub(super) fn build_hnsw(&self, lease: &WriterLease, model: &str) -> Result<(), SearchError> {
        if lease.deferred.contains(model) {
            // The node that is asked may not know of it yet.
            return self.set_indexing_threshold(model, INDEXING_THRESHOLD_KB);
        }
        let path = format!("/collections/{}", self.names.passages(model));
        let ask = ClusterRequest::get(RequestKind::Collections, "look for a collection", path);
        let known: Value = self.nodes.request(&ask, self.write_deadline())?;
        let now = known.pointer("/config/optimizer_config/indexing_threshold");
        if now.and_then(Value::as_u64) == Some(INDEXING_DISABLED) {
            self.set_indexing_threshold(model, INDEXING_THRESHOLD_KB)?;
        }
        Ok(())
    }

    fn set_indexing_threshold(&self, model: &str, kilobytes: u64) -> Result<(), SearchError> {
        let body = json!({"optimizers_config": {"indexing_threshold": kilobytes}}).to_string();
        let path = format!("/collections/{}?timeout=30", self.names.passages(model));
        let ask = ClusterRequest::patch(
            RequestKind::Collections,
            "say when graphs are made",
            path,
            body,
        );
        self.nodes
            .request::<Value>(&ask, self.write_deadline())
            .map(drop)
    }
}
