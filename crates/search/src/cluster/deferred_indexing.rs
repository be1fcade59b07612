//! Deferred indexing: nodes build no HNSW graphs of a model's passages until all of them are written.
//!
//! A node builds a graph for every segment that has grown, merges segments, and builds graphs for those.
//! While vectors arrive by the hundred thousand, all graphs but the last are wasted, and searching without a
//! graph takes longer than an answer may. So documents are found by their words meanwhile. The collection
//! itself records the state, because after a crash another process continues.

use serde_json::{Value, json};

use super::ClusterInner;
use super::head::IndexHead;
use super::lease::WriterLease;
use super::request::ClusterRequest;
use super::traffic::RequestKind;
use crate::error::SearchError;

/// Minimum kilobytes of vectors before nodes build the graph of a segment: Qdrant's default.
const INDEXING_THRESHOLD_KB: u64 = 10_000;

/// The threshold that makes nodes build no graphs at all.
const INDEXING_DISABLED: u64 = 0;

impl ClusterInner {
    /// Whether a model lacks so many vectors that its graphs are deferred.
    pub(super) fn defers_indexing(&self, head: &IndexHead, model: &str) -> bool {
        let is_whole = head.vectors_complete && head.model == model;
        !is_whole && head.documents >= self.settings.large_index_documents
    }

    /// Makes nodes defer the graphs of a model that lacks many vectors.
    pub(super) fn defer_hnsw(&self, lease: &mut WriterLease, head: &IndexHead, model: &str) {
        if !self.defers_indexing(head, model) || !lease.deferred.insert(model.to_owned()) {
            return;
        }
        if let Err(error) = self.set_indexing_threshold(model, INDEXING_DISABLED) {
            // A failure only costs time: graphs are built more than once.
            tracing::warn!(%error, "could not defer HNSW indexing, nodes build graphs while vectors are written");
        }
    }

    /// Makes nodes build the graphs of a model whose vectors are complete. A threshold that an operator has
    /// set by hand is kept.
    pub(super) fn build_hnsw(&self, lease: &WriterLease, model: &str) -> Result<(), SearchError> {
        if lease.deferred.contains(model) {
            // Set without asking: the node that would answer may not know of the change yet.
            return self.set_indexing_threshold(model, INDEXING_THRESHOLD_KB);
        }
        let path = format!("/collections/{}", self.names.passages(model));
        let request = ClusterRequest::get(RequestKind::Collections, "describe a collection", path);
        let known: Value = self.nodes.request(&request, self.write_deadline())?;
        let now = known.pointer("/config/optimizer_config/indexing_threshold");
        if now.and_then(Value::as_u64) == Some(INDEXING_DISABLED) {
            self.set_indexing_threshold(model, INDEXING_THRESHOLD_KB)?;
        }
        Ok(())
    }

    fn set_indexing_threshold(&self, model: &str, kilobytes: u64) -> Result<(), SearchError> {
        let body = json!({"optimizers_config": {"indexing_threshold": kilobytes}}).to_string();
        let path = format!("/collections/{}?timeout=30", self.names.passages(model));
        let request = ClusterRequest::patch(
            RequestKind::Collections,
            "set the indexing threshold",
            path,
            body,
        );
        self.nodes
            .request::<Value>(&request, self.write_deadline())
            .map(drop)
    }
}
