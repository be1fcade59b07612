//! Garbage collection: deletes versions that no reader can see any more.

use std::slice::from_ref;
use std::sync::{Arc, PoisonError};

use serde_json::{Value, json};

use super::ClusterInner;
use super::head::IndexHead;
use super::layout::{COUNTED, FROM, PREVIOUS, UNTIL};
use super::lease::WriterLease;
use super::qdrant_filter;
use super::request::RequestDeadline;
use crate::error::SearchError;

impl ClusterInner {
    /// Deletes the versions that ended so long ago that no running answer can need them. What is not deleted
    /// now is deleted later, so a failure here does not fail the batch.
    pub(super) fn collect_garbage(&self, lease: &mut WriterLease, head: &IndexHead) {
        let mut old = None;
        while let Some((generation, _)) = lease
            .commits
            .front()
            .filter(|(_, since)| since.elapsed() >= self.settings.garbage_collection_grace)
        {
            old = Some(*generation);
            lease.commits.pop_front();
        }
        let Some(generation) = old else {
            return;
        };
        let gone = qdrant_filter::ended(head, generation);
        if let Err(error) = self.remove(
            &self.versioned_collections(head),
            &gone,
            self.write_deadline(),
        ) {
            tracing::warn!(%error, "garbage collection failed, it is retried later");
            lease
                .commits
                .push_front((generation, std::time::Instant::now()));
        }
    }

    /// Rolls back aborted generations: deletes the versions they added, and takes the end back from those
    /// they ended.
    pub(super) fn remove_aborted(
        &self,
        head: &IndexHead,
        deadline: RequestDeadline,
    ) -> Result<(), SearchError> {
        if head.aborted_generations.is_empty() {
            return Ok(());
        }
        let begun = json!({"must": [{"key": FROM, "match": {"any": head.aborted_generations}}]});
        // Passages belong to committed versions, so none can have begun in an aborted generation.
        self.remove(from_ref(&self.names.documents), &begun, deadline)?;
        // A base counts what is committed, so it stays, even if a later takeover aborted its generation.
        let counted = json!({
            "must": [{"key": COUNTED, "match": {"any": head.aborted_generations}}],
            "must_not": [{"is_empty": {"key": PREVIOUS}}],
        });
        self.remove(from_ref(&self.names.terms), &counted, deadline)?;
        let ended = json!({"must": [{"key": UNTIL, "match": {"any": head.aborted_generations}}]});
        let body = json!({"keys": [UNTIL], "filter": ended}).to_string();
        for collection in self.versioned_collections(head) {
            self.change(&collection, "points/payload/delete", body.clone(), deadline)?;
        }
        Ok(())
    }

    fn remove(
        &self,
        collections: &[String],
        filter: &Value,
        deadline: RequestDeadline,
    ) -> Result<(), SearchError> {
        let body = json!({"filter": filter}).to_string();
        for collection in collections {
            self.change(collection, "points/delete", body.clone(), deadline)?;
        }
        Ok(())
    }

    /// The collections whose points are versions: the documents, and the passages of each model in use.
    pub(super) fn versioned_collections(&self, head: &IndexHead) -> Vec<String> {
        let mut all = vec![self.names.documents.clone()];
        all.extend(self.passage_collections(head));
        all
    }

    /// The passage collections of the model that answers and, where it is another one, of this process's
    /// model.
    pub(super) fn passage_collections(&self, head: &IndexHead) -> Vec<String> {
        let own = self.models.own.as_ref().map(|own| own.passages.clone());
        let serving = (!head.model.is_empty()).then(|| self.names.passages(&head.model));
        let mut all: Vec<String> = own.into_iter().chain(serving).collect();
        all.dedup();
        all
    }

    /// Called when every document has been applied: runs garbage collection, completes a migration from an
    /// older format, and recomputes BM25 weights that have drifted.
    pub(super) fn mark_complete(self: &Arc<Self>) -> Result<(), SearchError> {
        let mut lease = self.lease.lock().unwrap_or_else(PoisonError::into_inner);
        let head = self.acquire_lease(&mut lease)?;
        self.collect_garbage(&mut lease, &head);
        let head = self.finish_migration(&mut lease, head)?;
        drop(lease);
        self.maintain_statistics(&head);
        self.reweight_drifted(&head)
    }
}
