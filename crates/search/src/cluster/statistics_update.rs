//! How the writer keeps the word statistics: a link with every commit, a new base when the chain is long, and a
//! count of all documents where an index has no statistics yet.

use std::sync::{Arc, PoisonError};
use std::time::Instant;

use serde_json::{Value, json};

use super::ClusterInner;
use super::head::IndexHead;
use super::layout::{COUNTED, TERMS};
use super::qdrant_filter::QdrantFilter;
use super::qdrant_response::ScoredPoint;
use super::view::ClusterView;
use super::word_statistics::{FrequencyChanges, MAX_COUNTED_TERMS, link_points};
use crate::error::SearchError;
use crate::reader_identity::ReaderIdentity;

/// After how many links the writer replaces the chain by a base. A replica that starts reads them all, sixteen in a
/// request.
const MAX_LINKS: usize = 64;

/// How many documents' lists of terms are read with one request: long documents have tens of thousands of terms, and
/// a response has a limit.
pub(super) const TERM_LISTS_AT_ONCE: usize = 128;

/// The version in the head of an index with more terms than are counted.
const TOO_MANY_TERMS: u64 = u32::MAX as u64;

/// The ids of the terms in a version of a document.
pub(super) fn term_ids(point: &ScoredPoint) -> impl Iterator<Item = u32> {
    let ids = point.payload.get(TERMS).and_then(Value::as_array);
    let ids = ids.into_iter().flatten();
    ids.filter_map(|id| u32::try_from(id.as_u64()?).ok())
}

/// Adds a document with these terms to the changes, or takes it away.
pub(super) fn count_document(
    changes: &mut FrequencyChanges,
    term_ids: impl IntoIterator<Item = u32>,
    by: i32,
) {
    for id in term_ids {
        let sum = changes.entry(id).or_default();
        *sum = sum.saturating_add(by);
    }
}

impl ClusterInner {
    /// Writes the link of the next generation, unless the statistics of this one are unknown.
    pub(super) fn write_statistics(
        &self,
        head: &IndexHead,
        next: &mut IndexHead,
        changes: FrequencyChanges,
    ) -> Result<(), SearchError> {
        let Some(version) = head.statistics_version() else {
            return Ok(());
        };
        let points = link_points(next.generation, Some(version), changes);
        self.put_points(&self.names.terms, points.into_iter())?;
        next.counted = [next.generation; 2];
        Ok(())
    }

    /// Called when every document has been applied: replaces a long chain by a base, and counts the documents of
    /// an index that has no statistics. What fails is tried again at the next scan, and until then nodes are asked.
    pub(super) fn maintain_statistics(self: &Arc<Self>, head: &IndexHead) {
        let done = match head.statistics_version() {
            Some(version) => {
                let shortened = self.shorten_chain(head, version);
                // A chain with a missing link, or one that grew past the limit, would be read in vain for ever.
                match shortened.is_ok() && self.caches.statistics.is_incomplete(version) {
                    true => self.count_all_documents(head),
                    false => shortened,
                }
            }
            None if head.counted == [TOO_MANY_TERMS, 0] => Ok(()),
            None => self.count_all_documents(head),
        };
        if let Err(error) = done {
            tracing::warn!(%error, "could not update the word statistics, retried at the next scan");
        }
    }

    /// Writes a base in place of a long chain, and removes the chain. Whatever a replica reads meanwhile, it finds
    /// a whole chain, or none and asks the nodes.
    fn shorten_chain(&self, head: &IndexHead, version: u64) -> Result<(), SearchError> {
        let statistics = self.word_statistics(head, self.write_deadline());
        let Some(statistics) = statistics.filter(|known| known.links > MAX_LINKS) else {
            return Ok(());
        };
        let base = link_points(version, None, statistics.as_changes());
        self.put_points(&self.names.terms, base.into_iter())?;
        let older = json!({"must": [{"key": COUNTED, "range": {"lt": version}}]});
        let body = json!({"filter": older}).to_string();
        self.change(
            &self.names.terms,
            "points/delete",
            body,
            self.write_deadline(),
        )?;
        self.caches.statistics.forget_links();
        Ok(())
    }

    /// Counts the terms of all documents and writes a base, if no other change was committed meanwhile.
    fn count_all_documents(self: &Arc<Self>, head: &IndexHead) -> Result<(), SearchError> {
        let live = QdrantFilter::live(head).json();
        let shared = Arc::new(head.clone());
        let (mut counts, mut offset) = (FrequencyChanges::new(), Value::Null);
        loop {
            let view = ClusterView::new(
                self,
                shared.clone(),
                ReaderIdentity::owner(),
                self.write_deadline(),
            );
            let page = view.page(&live, &[TERMS], TERM_LISTS_AT_ONCE, &offset)?;
            for point in &page.points {
                count_document(&mut counts, term_ids(point), 1);
            }
            match page.next(&offset) {
                Some(next) if counts.len() <= MAX_COUNTED_TERMS => offset = next,
                _ => break,
            }
        }
        let mut lease = self.lease.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.acquire_lease(&mut lease)?;
        if now.generation != head.generation {
            return Ok(());
        }
        let mut next = now.clone();
        if counts.len() > MAX_COUNTED_TERMS {
            next.counted = [TOO_MANY_TERMS, 0];
        } else {
            let base = link_points(now.generation, None, counts);
            self.put_points(&self.names.terms, base.into_iter())?;
            next.counted = [now.generation; 2];
        }
        if !now.replace(&next, &self.nodes, &self.names, self.write_deadline())? {
            return Err(self.locked_error());
        }
        self.publish_head(next, Instant::now());
        tracing::info!(
            generation = now.generation,
            "counted the words of all documents"
        );
        Ok(())
    }
}
