//! Recomputes BM25 weights when the mean document length has drifted.
//!
//! A stored weight contains the mean length of all documents, so it cannot follow every change. It is kept
//! while the mean stays about the same, and recomputed for all documents when it does not.

use std::sync::{Arc, PoisonError};
use std::time::Instant;

use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::ClusterInner;
use super::head::IndexHead;
use super::layout::{STORED, WEIGHED};
use super::point::{self, PreparedDocument};
use super::qdrant_filter::QdrantFilter;
use super::request::ClusterRequest;
use super::traffic::RequestKind;
use super::view::ClusterView;
use crate::error::SearchError;
use crate::reader_identity::ReaderIdentity;

/// The ratio by which the mean length may drift. A fifth moves the weight of a word in a document of average
/// length by less than a tenth.
const MAX_LENGTH_DRIFT: f32 = 1.2;

/// How many documents are reweighted at a time. They are read whole and analysed again, so this bounds the memory of a
/// pass over the index; a pass is rare and nobody waits for it, so larger batches would gain nothing.
const BATCH_DOCUMENTS: usize = 64;

/// The recomputed sparse vector of a document.
#[derive(Serialize)]
struct ReweightedPoint {
    id: String,
    vector: Box<RawValue>,
}

#[derive(Serialize)]
struct VectorUpdate {
    points: Vec<ReweightedPoint>,
}

impl IndexHead {
    /// The mean lengths of body and title as of now.
    pub(super) fn current_mean_lengths(&self) -> [f32; 2] {
        let documents = self.documents.max(1) as f32;
        self.lengths.map(|sum| (sum as f32 / documents).max(1.0))
    }

    /// Whether the mean lengths have drifted from those that the weights were computed with.
    fn has_drifted(&self) -> bool {
        let far = |(now, then): (&f32, &f32)| {
            let (less, more) = if now < then { (now, then) } else { (then, now) };
            *more > *less * MAX_LENGTH_DRIFT
        };
        self.documents > 0 && self.current_mean_lengths().iter().zip(&self.means).any(far)
    }
}

impl ClusterInner {
    /// Reweights all documents after a drift, and those that an interrupted run has left. Readers see a
    /// mixture of old and new weights meanwhile.
    pub(super) fn reweight_drifted(self: &Arc<Self>, head: &IndexHead) -> Result<(), SearchError> {
        if head.has_drifted() {
            let mut lease = self.lease.lock().unwrap_or_else(PoisonError::into_inner);
            let head = self.acquire_lease(&mut lease)?;
            let next = IndexHead {
                means: head.current_mean_lengths(),
                means_version: head.means_version + 1,
                ..head.clone()
            };
            if !head.replace(&next, &self.nodes, &self.names, self.write_deadline())? {
                return Err(self.locked_error());
            }
            tracing::info!(means = ?next.means, "mean document length has drifted, recomputing BM25 weights");
            self.publish_head(next, Instant::now());
        } else if head.means_version == 0 {
            return Ok(());
        }
        while self.reweight_batch()? > 0 {}
        Ok(())
    }

    /// Reweights one batch of documents and returns their number.
    fn reweight_batch(self: &Arc<Self>) -> Result<usize, SearchError> {
        let mut lease = self.lease.lock().unwrap_or_else(PoisonError::into_inner);
        let head = self.acquire_lease(&mut lease)?;
        let (means, means_version) = (head.means, head.means_version);
        let view = ClusterView::new(
            self,
            Arc::new(head),
            ReaderIdentity::owner(),
            self.write_deadline(),
        );
        let stale = QdrantFilter::live(&view.head)
            .not(json!({"key": WEIGHED, "match": {"value": means_version}}));
        let found = view.list(&stale.json(), &[STORED], BATCH_DOCUMENTS)?;
        let mut points = Vec::new();
        for one in &found {
            let Some(document) = point::read_document(&one.payload) else {
                return Err(SearchError::engine("a stored document cannot be read"));
            };
            let vector = PreparedDocument::new(&document).sparse_vector(means)?;
            let id = one.name();
            points.extend(vector.map(|vector| ReweightedPoint { id, vector }));
        }
        let documents = &self.names.documents;
        if !points.is_empty() {
            let path = format!("/collections/{documents}/points/vectors?wait=true");
            let body =
                serde_json::to_string(&VectorUpdate { points }).map_err(SearchError::engine)?;
            let request = ClusterRequest::put(RequestKind::Write, "write BM25 weights", path, body);
            self.nodes
                .request::<serde_json::Value>(&request, self.write_deadline())?;
        }
        let names: Vec<String> = found
            .iter()
            .map(super::qdrant_response::ScoredPoint::name)
            .collect();
        if !names.is_empty() {
            let body = json!({"payload": {WEIGHED: means_version}, "points": names}).to_string();
            self.change(documents, "points/payload", body, self.write_deadline())?;
        }
        Ok(names.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_follow_when_documents_become_longer_or_shorter_by_a_fifth() {
        let head = |body: u64, title: u64| IndexHead {
            documents: 10,
            lengths: [body, title],
            means: [100.0, 5.0],
            ..IndexHead::default()
        };
        for (body, title, is_far) in [
            (1_000, 50, false),
            (1_190, 50, false),
            (1_210, 50, true),
            (840, 50, false),
            (830, 50, true),
            (1_000, 61, true),
        ] {
            assert_eq!(head(body, title).has_drifted(), is_far, "{body} {title}");
        }
        assert!(
            !IndexHead::default().has_drifted(),
            "no documents, no drift"
        );
    }
}
