//! Removes versions that nobody can see any more.

use std::slice::from_ref;
use std::sync::{Arc, PoisonError};

use serde_json::{Value, json};

use super::ClusterInner;
use super::head::IndexHead;
use super::layout::{FROM, UNTIL};
use super::lease::WriterLease;
use super::qdrant_filter;
use super::request::RequestDeadline;
use crate::error::SearchError;

impl ClusterInner {
    /// Removes what went so long ago that no answer is under way that could need it. What is not removed
    /// now is removed later, so a failure is no failure of the batch.
    pub(super) fn collect_garbage(&self, lease: &mut WriterLease, head: &IndexHead) {
        let mut old = None;
        while let Some((generation, _)) = lease
            .commits
            .front()
            .filter(|(_, since)| since.elapsed() >= self.settings.keep)
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
            tracing::warn!(%error, "what is gone could not be removed yet");
            lease
                .commits
                .push_front((generation, std::time::Instant::now()));
        }
    }

    /// Removes what generations left behind that were never finished, and takes the ends back they gave.
    pub(super) fn remove_aborted(
        &self,
        head: &IndexHead,
        deadline: RequestDeadline,
    ) -> Result<(), SearchError> {
        if head.void.is_empty() {
            return Ok(());
        }
        let begun = json!({"must": [{"key": FROM, "match": {"any": head.void}}]});
        // Passages are made of versions that count, so none began there.
        self.remove(from_ref(&self.names.documents), &begun, deadline)?;
        let ended = json!({"must": [{"key": UNTIL, "match": {"any": head.void}}]});
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

    /// The collections whose points are versions: documents, and the passages of each model that counts.
    pub(super) fn versioned_collections(&self, head: &IndexHead) -> Vec<String> {
        let mut all = vec![self.names.documents.clone()];
        all.extend(self.passage_collections(head));
        all
    }

    /// The passages of the model that answers, and of the one of this process where that is another one.
    pub(super) fn passage_collections(&self, head: &IndexHead) -> Vec<String> {
        let own = self.models.own.as_ref().map(|own| own.passages.clone());
        let serving = (!head.model.is_empty()).then(|| self.names.passages(&head.model));
        let mut all: Vec<String> = own.into_iter().chain(serving).collect();
        all.dedup();
        all
    }

    /// Everything there is to hold is held.
    pub(super) fn mark_complete(self: &Arc<Self>) -> Result<(), SearchError> {
        let mut lease = self.lease.lock().unwrap_or_else(PoisonError::into_inner);
        let head = self.acquire_lease(&mut lease)?;
        self.collect_garbage(&mut lease, &head);
        let head = self.finish_migration(&mut lease, head)?;
        drop(lease);
        self.reweight_drifted(&head)
    }
}
