//! Scans for documents that lack vectors of a model, a page at a time.
//!
//! A document is embedded when its first passage exists, because that one is written last. Nothing is noted
//! at the document itself: when any part of a point changes, a node rewrites the whole point, and a
//! document's includes all its terms.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use serde_json::{Value, json};

use super::ClusterInner;
use super::layout::{FIRST, FROM, SIZE};
use super::model::ClusterModel;
use super::point::passage_id;
use super::qdrant_filter::QdrantFilter;
use super::qdrant_response::{CountResult, ScoredPoint};
use super::request::ClusterRequest;
use super::traffic::RequestKind;
use super::view::{ClusterView, PAGE};
use crate::error::SearchError;

/// The most bytes of documents that are embedded at once. A larger document is read alone.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// How many documents one batch has: at first, and at least or at most after adapting to the model's speed. Models
/// differ in speed by orders of magnitude, from a table of word vectors to a service on the network, so no fixed number
/// suits all of them.
const FIRST_DOCUMENTS: usize = 32;
const MIN_DOCUMENTS: usize = 8;
const MAX_DOCUMENTS: usize = 512;

/// A batch that took longer than the one halves the batch size, one that took less than the other doubles it. The band
/// between them is wider than a factor of two, so that a size that fits is not left again at once.
const SLOW: Duration = Duration::from_millis(500);
const FAST: Duration = Duration::from_millis(200);

/// The repeated passes over the documents for one model.
pub(super) struct UnembeddedScan {
    /// All documents up to this generation have vectors, so the next pass skips them.
    done: u64,
    pass: Option<ScanPass>,
    /// The number of documents in a batch, adapted to the model's speed.
    batch_size: usize,
}

impl Default for UnembeddedScan {
    fn default() -> Self {
        Self {
            done: 0,
            pass: None,
            batch_size: FIRST_DOCUMENTS,
        }
    }
}

/// One pass over all documents, ordered by point id: the generation in which it began, the offset of the next
/// page (`None` after the last), the documents of the last page that lack vectors, and the generation in
/// which that page was listed.
struct ScanPass {
    since: u64,
    next: Option<Value>,
    pending: VecDeque<UnembeddedVersion>,
    listed: u64,
    has_found: bool,
}

struct UnembeddedVersion {
    version: String,
    bytes: u64,
}

/// A batch of documents without vectors.
#[derive(Default)]
pub(super) struct ScanBatch {
    pub versions: Vec<String>,
    /// The generation in which all of them were live.
    pub listed: u64,
}

impl UnembeddedScan {
    /// Up to `most` documents without vectors; an empty batch at the end of a pass.
    pub(super) fn next_batch(
        &mut self,
        view: &ClusterView<'_>,
        model: &ClusterModel,
        most: usize,
    ) -> Result<ScanBatch, SearchError> {
        let pass = match &mut self.pass {
            Some(pass) => pass,
            None if view.inner.unembedded_count(view, &model.name)? == 0 => {
                return Ok(ScanBatch::default());
            }
            none => none.insert(ScanPass::starting_at(view.head.generation)),
        };
        while pass.pending.is_empty() {
            let Some(offset) = pass.next.take() else {
                self.finish_pass(view, model)?;
                return Ok(ScanBatch::default());
            };
            pass.next_page(view, model, self.done, &offset)?;
        }
        Ok(pass.next_batch(most.min(self.batch_size)))
    }

    /// Adapts the batch size to how long the last batch took.
    pub(super) fn adapt_batch_size(&mut self, time: Duration) {
        if time > SLOW {
            self.batch_size = (self.batch_size / 2).max(MIN_DOCUMENTS);
        } else if time < FAST {
            self.batch_size = (self.batch_size * 2).min(MAX_DOCUMENTS);
        }
    }

    /// Ends a pass, and decides where the next one begins.
    fn finish_pass(
        &mut self,
        view: &ClusterView<'_>,
        model: &ClusterModel,
    ) -> Result<(), SearchError> {
        let Some(pass) = self.pass.take() else {
            return Ok(());
        };
        // Another process may have computed the vectors meanwhile.
        let is_inconsistent = !pass.has_found
            && pass.since == view.head.generation
            && view.inner.unembedded_count(view, &model.name)? > 0;
        if is_inconsistent && self.done == 0 {
            let documents = &view.inner.names.documents;
            return Err(SearchError::Cluster {
                what: format!("`{documents}` has fewer documents than were written to it"),
                hint: "points were removed by hand: remove the collections of this index and build it again",
                source: None,
            });
        }
        // When some lack vectors and the pass found none, vectors were removed by hand, so the next pass
        // starts over.
        self.done = if is_inconsistent { 0 } else { pass.since };
        Ok(())
    }
}

impl ScanPass {
    fn starting_at(generation: u64) -> Self {
        Self {
            since: generation,
            next: Some(Value::Null),
            pending: VecDeque::new(),
            listed: generation,
            has_found: false,
        }
    }

    /// Reads the next page and keeps the documents that lack vectors.
    fn next_page(
        &mut self,
        view: &ClusterView<'_>,
        model: &ClusterModel,
        done: u64,
        offset: &Value,
    ) -> Result<(), SearchError> {
        let unscanned = json!({"key": FROM, "range": {"gt": done}});
        let unscanned = QdrantFilter::live(&view.head).and(unscanned).json();
        let page = view.page(&unscanned, &[SIZE], PAGE, offset)?;
        let embedded = view.embedded_passage_ids(model, &page.points)?;
        let pending = page.points.iter().map(|point| UnembeddedVersion {
            version: point.name(),
            bytes: point.number(SIZE),
        });
        self.pending = pending
            .filter(|one| !embedded.contains(&passage_id(&one.version, 0)))
            .collect();
        self.has_found |= !self.pending.is_empty();
        self.listed = view.head.generation;
        self.next = page.next_page_offset;
        Ok(())
    }

    fn next_batch(&mut self, most: usize) -> ScanBatch {
        let mut versions = Vec::new();
        let mut bytes = 0;
        while let Some(one) = self.pending.front()
            && versions.len() < most
            && (versions.is_empty() || bytes + one.bytes <= MAX_BYTES)
        {
            bytes += one.bytes;
            versions.extend(self.pending.pop_front().map(|one| one.version));
        }
        ScanBatch {
            versions,
            listed: self.listed,
        }
    }
}

impl ClusterView<'_> {
    /// The ids of the first passages of these documents, as far as they exist.
    fn embedded_passage_ids(
        &self,
        model: &ClusterModel,
        documents: &[ScoredPoint],
    ) -> Result<HashSet<String>, SearchError> {
        let first: Vec<String> = documents
            .iter()
            .map(|point| passage_id(&point.name(), 0))
            .collect();
        let body = json!({"ids": first, "with_payload": false}).to_string();
        let path = format!("/collections/{}/points", model.passages);
        let request = ClusterRequest::read(RequestKind::List, "look for vectors", path, body);
        let found: Option<Vec<ScoredPoint>> =
            self.inner.nodes.request_optional(&request, self.deadline)?;
        Ok(found.iter().flatten().map(ScoredPoint::name).collect())
    }
}

impl ClusterInner {
    /// How many documents lack vectors of a model.
    pub(super) fn unembedded_count(
        &self,
        view: &ClusterView<'_>,
        model: &str,
    ) -> Result<u64, SearchError> {
        let first = json!({"key": FIRST, "match": {"value": true}});
        let embedded = QdrantFilter::not_ended(&view.head).and(first).json();
        let body = json!({"filter": embedded, "exact": true}).to_string();
        let path = format!("/collections/{}/points/count", self.names.passages(model));
        let request = ClusterRequest::read(RequestKind::Count, "count vectors", path, body);
        let embedded: Option<CountResult> = self.nodes.request_optional(&request, view.deadline)?;
        let embedded = embedded.map_or(0, |embedded| embedded.count);
        Ok(view.head.documents.saturating_sub(embedded))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_much_is_read_as_fits() {
        let pass = |sizes: &[u64]| ScanPass {
            pending: sizes
                .iter()
                .map(|bytes| UnembeddedVersion {
                    version: String::new(),
                    bytes: *bytes,
                })
                .collect(),
            ..ScanPass::starting_at(1)
        };
        for (sizes, most, expected) in [
            (&[1, 1, 1][..], 2, 2),
            (&[1, 1, 1], 9, 3),
            (&[MAX_BYTES - 1, 1, 1], 9, 2),
            (&[MAX_BYTES, 1], 9, 1),
            (&[MAX_BYTES + 1, 1], 9, 1),
            (&[1, MAX_BYTES], 9, 1),
            (&[], 9, 0),
        ] {
            let mut pass = pass(sizes);
            assert_eq!(pass.next_batch(most).versions.len(), expected);
            assert_eq!(pass.pending.len(), sizes.len() - expected);
        }
    }

    #[test]
    fn a_slow_model_gets_less_at_once_and_a_fast_one_more() {
        let mut scan = UnembeddedScan::default();
        for (time, expected) in [
            (FAST, FIRST_DOCUMENTS),
            (SLOW, FIRST_DOCUMENTS),
            (FAST - Duration::from_millis(1), 2 * FIRST_DOCUMENTS),
            (SLOW + Duration::from_millis(1), FIRST_DOCUMENTS),
        ] {
            scan.adapt_batch_size(time);
            assert_eq!(scan.batch_size, expected, "{time:?}");
        }
        for (time, bound) in [(Duration::ZERO, MAX_DOCUMENTS), (SLOW * 2, MIN_DOCUMENTS)] {
            (0..20).for_each(|_| scan.adapt_batch_size(time));
            assert_eq!(scan.batch_size, bound);
        }
    }
}
