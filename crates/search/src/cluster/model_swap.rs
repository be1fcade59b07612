//! Swaps the embedding model, for every reader at the same moment.
//!
//! The head names the model that answers, so a commit that changes the name swaps models atomically. Two
//! aliases follow it, for other programs. The previous model's collection is removed once no running answer
//! can need it.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::collections;
use super::head::IndexHead;
use super::lease::WriterLease;
use super::qdrant_response::AliasList;
use super::request::{ClusterRequest, RequestDeadline};
use super::traffic::RequestKind;
use super::view::ClusterView;
use super::{ClusterInner, MAX_HEAD_AGE};
use crate::engine::EmbeddingProgress;
use crate::error::SearchError;
use crate::reader_identity::ReaderIdentity;

/// The deadline for updating the aliases: only other programs depend on them, no answer does.
const ALIAS_TIMEOUT: Duration = Duration::from_secs(5);

impl ClusterInner {
    /// Runs once when a process becomes the writer: repairs the aliases, and queues collections for removal
    /// that an interrupted swap left behind.
    pub(super) fn reconcile_collections(&self, lease: &mut WriterLease, head: &IndexHead) {
        self.update_aliases(head);
        // A writer that was presumed dead may have come back just long enough to defer the graphs again.
        if head.vectors_complete
            && let Err(error) = self.build_hnsw(lease, &head.model)
        {
            tracing::warn!(%error, "could not check whether nodes build HNSW graphs");
        }
        let kept = self.passage_collections(head);
        let found = collections::list_all(&self.nodes, RequestDeadline::within(ALIAS_TIMEOUT));
        let found = found.unwrap_or_else(|error| {
            tracing::warn!(%error, "could not list the cluster's collections");
            Vec::new()
        });
        let left = found.into_iter().filter(|name| {
            let is_ours = self.names.model_of(name).is_some();
            is_ours && !kept.contains(name)
        });
        let now = Instant::now();
        lease.retired = left.map(|name| (name, now)).collect();
    }

    /// Makes this process's model the serving one when its vectors are complete, or when they cover at least
    /// as many documents as those of a serving model that was never complete. Returns the progress; `None`
    /// when another process is the writer, which then does the swap.
    pub(super) fn swap_model(self: &Arc<Self>) -> Result<Option<EmbeddingProgress>, SearchError> {
        let Some(own) = &self.models.own else {
            return Ok(None);
        };
        let mut lease = self.lease.lock().unwrap_or_else(PoisonError::into_inner);
        let head = match self.try_acquire_lease(&mut lease) {
            Err(SearchError::Locked { .. }) => return Ok(None),
            other => other?,
        };
        let view = ClusterView::new(
            self,
            Arc::new(head.clone()),
            ReaderIdentity::owner(),
            self.write_deadline(),
        );
        let left = self.unembedded_count(&view, &own.name)?;
        let is_whole = left == 0 && head.documents > 0;
        let is_swap = head.model != own.name;
        let is_due = match (is_swap, head.vectors_complete) {
            (true, true) => left == 0,
            // The serving model was never complete: the one that covers more documents answers.
            (true, false) => left == 0 || left <= self.unembedded_count(&view, &head.model)?,
            (false, vectors_complete) => is_whole && !vectors_complete,
        };
        let progress = Some(EmbeddingProgress {
            done: head.documents.saturating_sub(left),
            left,
        });
        if !is_due {
            return Ok(progress);
        }
        if is_whole {
            // The graphs are built before any reader relies on complete vectors.
            self.build_hnsw(&lease, &own.name)?;
        }
        let mut next = head.clone();
        next.model.clone_from(&own.name);
        next.vectors_complete = is_whole;
        if is_swap {
            next.advance();
        }
        if !head.replace(&next, &self.nodes, &self.names, self.write_deadline())? {
            return Err(self.locked_error());
        }
        self.publish_head(next.clone(), Instant::now());
        if is_swap {
            tracing::info!(generation = next.generation, "swapped the embedding model");
            if !head.model.is_empty() {
                let gone = self.names.passages(&head.model);
                lease.retired.push((gone, Instant::now()));
            }
            self.update_aliases(&next);
        }
        Ok(progress)
    }

    /// Removes retired collections once every answer that may read them is over. Blocks until then.
    pub(super) fn remove_retired(self: &Arc<Self>) -> Result<(), SearchError> {
        let keep = self
            .settings
            .garbage_collection_grace
            .max(self.settings.timeout + MAX_HEAD_AGE);
        loop {
            let mut lease = self.lease.lock().unwrap_or_else(PoisonError::into_inner);
            let Some((name, since)) = lease.retired.first().cloned() else {
                return Ok(());
            };
            let left = keep.saturating_sub(since.elapsed());
            if !left.is_zero() {
                drop(lease);
                std::thread::sleep(left);
                continue;
            }
            let head = match self.try_acquire_lease(&mut lease) {
                Err(SearchError::Locked { .. }) => return Ok(()),
                other => other?,
            };
            if !self.passage_collections(&head).contains(&name) {
                collections::remove(&self.nodes, &name, self.write_deadline())?;
                tracing::info!(
                    collection = name,
                    "removed the collection of the previous model"
                );
            }
            lease.retired.retain(|(one, _)| *one != name);
        }
    }

    /// Points the aliases at what answers. A failure is only logged: no answer of this program needs them.
    pub(super) fn update_aliases(&self, head: &IndexHead) {
        if let Err(error) = self.try_update_aliases(head) {
            tracing::warn!(%error, "could not update the aliases of the index");
        }
    }

    fn try_update_aliases(&self, head: &IndexHead) -> Result<(), SearchError> {
        let deadline = RequestDeadline::within(ALIAS_TIMEOUT);
        let request = ClusterRequest::get(
            RequestKind::Collections,
            "list aliases",
            "/aliases".to_owned(),
        );
        let known: AliasList = self.nodes.request(&request, deadline)?;
        let [documents, passages] = self.names.aliases();
        let mut wanted = vec![(documents, self.names.documents.clone())];
        if !head.model.is_empty() {
            wanted.push((passages, self.names.passages(&head.model)));
        }
        let target = |alias: &str| {
            let known = known.aliases.iter().find(|one| one.alias_name == alias);
            known.map(|one| one.collection_name.as_str())
        };
        // During a migration, and where a newer program's index is complete, the aliases are not ours to
        // change.
        let is_newer = |name: &str| self.names.is_of_a_newer_format(name);
        if head.documents_to_migrate.is_some()
            || wanted
                .iter()
                .any(|(alias, _)| target(alias).is_some_and(is_newer))
        {
            return Ok(());
        }
        let mut actions = Vec::new();
        for (alias, collection) in &wanted {
            match target(alias) {
                Some(now) if now == collection => continue,
                Some(_) => actions.push(json!({"delete_alias": {"alias_name": alias}})),
                None => {}
            }
            actions.push(
                json!({"create_alias": {"alias_name": alias, "collection_name": collection}}),
            );
        }
        if actions.is_empty() {
            return Ok(());
        }
        // The cluster applies all of these actions or none.
        let body = json!({"actions": actions}).to_string();
        let request = ClusterRequest::post(
            RequestKind::Collections,
            "set aliases",
            "/collections/aliases".to_owned(),
            body,
        );
        self.nodes.request::<Value>(&request, deadline).map(drop)
    }
}
