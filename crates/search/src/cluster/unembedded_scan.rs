//! The documents that have no vectors of a model yet, found a page at a time.
//!
//! A document has its vectors when its first passage is there, because that one is written last. Nothing is
//! noted at the document itself: where a node changes the least of a point, it writes the whole point anew,
//! and a document's has all its words.

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

/// The most bytes that are read at once to be turned into vectors. A larger document is read alone.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// How many documents are read at once: at first, and where the model is slow or fast.
const FIRST_DOCUMENTS: usize = 32;
const MIN_DOCUMENTS: usize = 8;
const MAX_DOCUMENTS: usize = 512;

/// What takes longer than the one is done in smaller parts, what takes less than the other in larger ones.
const SLOW: Duration = Duration::from_millis(500);
const FAST: Duration = Duration::from_millis(200);

/// The ways over the documents for one model, one after another.
pub(super) struct UnembeddedScan {
    /// All documents up to this generation have vectors, so the next way leaves them out.
    done: u64,
    pass: Option<ScanPass>,
    /// How many documents are read at once.
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

/// One way over all documents, in the order of their points.
struct ScanPass {
    /// The generation in which it began.
    since: u64,
    /// Where its next page begins; nothing after the last one.
    next: Option<Value>,
    /// The documents of the last page that have no vectors, and the generation that counted then.
    open: VecDeque<UnembeddedVersion>,
    listed: u64,
    has_found: bool,
}

struct UnembeddedVersion {
    version: String,
    bytes: u64,
}

/// Some documents without vectors.
#[derive(Default)]
pub(super) struct ScanBatch {
    pub versions: Vec<String>,
    /// The generation in which all of them were there.
    pub listed: u64,
}

impl UnembeddedScan {
    /// Up to `most` documents without vectors; none at the end of a way.
    pub(super) fn next_batch(
        &mut self,
        view: &ClusterView<'_>,
        model: &ClusterModel,
        most: usize,
    ) -> Result<ScanBatch, SearchError> {
        let way = match &mut self.pass {
            Some(way) => way,
            None if view.inner.unembedded_count(view, &model.name)? == 0 => {
                return Ok(ScanBatch::default());
            }
            none => none.insert(ScanPass::starting_at(view.head.generation)),
        };
        while way.open.is_empty() {
            let Some(offset) = way.next.take() else {
                self.finish_pass(view, model)?;
                return Ok(ScanBatch::default());
            };
            way.next_page(view, model, (self.done, offset))?;
        }
        Ok(way.next_batch(most.min(self.batch_size)))
    }

    /// Minds how long it took to make the vectors of what was taken last.
    pub(super) fn adapt_batch_size(&mut self, time: Duration) {
        if time > SLOW {
            self.batch_size = (self.batch_size / 2).max(MIN_DOCUMENTS);
        } else if time < FAST {
            self.batch_size = (self.batch_size * 2).min(MAX_DOCUMENTS);
        }
    }

    /// The end of a way.
    fn finish_pass(
        &mut self,
        view: &ClusterView<'_>,
        model: &ClusterModel,
    ) -> Result<(), SearchError> {
        let Some(way) = self.pass.take() else {
            return Ok(());
        };
        // Another process may have made them meanwhile.
        let is_lost = !way.has_found
            && way.since == view.head.generation
            && view.inner.unembedded_count(view, &model.name)? > 0;
        if is_lost && self.done == 0 {
            let documents = &view.inner.names.documents;
            return Err(SearchError::Cluster {
                what: format!("`{documents}` has fewer documents than were written to it"),
                hint: "somebody has removed points by hand: remove the collections of this index and build it again",
                source: None,
            });
        }
        // Where some are without vectors and none was found, somebody has removed vectors by hand.
        self.done = if is_lost { 0 } else { way.since };
        Ok(())
    }
}

impl ScanPass {
    fn starting_at(generation: u64) -> Self {
        Self {
            since: generation,
            next: Some(Value::Null),
            open: VecDeque::new(),
            listed: generation,
            has_found: false,
        }
    }

    /// Turns to the next page.
    fn next_page(
        &mut self,
        view: &ClusterView<'_>,
        model: &ClusterModel,
        (done, offset): (u64, Value),
    ) -> Result<(), SearchError> {
        let new = json!({"key": FROM, "range": {"gt": done}});
        let new = QdrantFilter::live(&view.head).and(new).json();
        let page = view.page(&new, &[SIZE], PAGE, &offset)?;
        let made = view.embedded_passage_ids(model, &page.points)?;
        let open = page.points.iter().map(|point| UnembeddedVersion {
            version: point.name(),
            bytes: point.number(SIZE),
        });
        self.open = open
            .filter(|one| !made.contains(&passage_id(&one.version, 0)))
            .collect();
        self.has_found |= !self.open.is_empty();
        self.listed = view.head.generation;
        self.next = page.next_page_offset;
        Ok(())
    }

    fn next_batch(&mut self, most: usize) -> ScanBatch {
        let mut versions = Vec::new();
        let mut bytes = 0;
        while let Some(one) = self.open.front()
            && versions.len() < most
            && (versions.is_empty() || bytes + one.bytes <= MAX_BYTES)
        {
            bytes += one.bytes;
            versions.extend(self.open.pop_front().map(|one| one.version));
        }
        ScanBatch {
            versions,
            listed: self.listed,
        }
    }
}

impl ClusterView<'_> {
    /// The first passages of these documents that are there.
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
        let ask = ClusterRequest::read(RequestKind::List, "look for vectors", path, body);
        let found: Option<Vec<ScoredPoint>> =
            self.inner.nodes.request_optional(&ask, self.deadline)?;
        Ok(found.iter().flatten().map(ScoredPoint::name).collect())
    }
}

impl ClusterInner {
    /// How many documents have no vectors of a model.
    pub(super) fn unembedded_count(
        &self,
        view: &ClusterView<'_>,
        model: &str,
    ) -> Result<u64, SearchError> {
        let first = json!({"key": FIRST, "match": {"value": true}});
        let made = QdrantFilter::not_ended(&view.head).and(first).json();
        let body = json!({"filter": made, "exact": true}).to_string();
        let path = format!("/collections/{}/points/count", self.names.passages(model));
        let ask = ClusterRequest::read(RequestKind::Count, "count vectors", path, body);
        let made: Option<CountResult> = self.nodes.request_optional(&ask, view.deadline)?;
        let made = made.map_or(0, |made| made.count);
        Ok(view.head.documents.saturating_sub(made))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_much_is_read_as_fits() {
        let way = |sizes: &[u64]| ScanPass {
            open: sizes
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
            let mut way = way(sizes);
            assert_eq!(way.next_batch(most).versions.len(), expected);
            assert_eq!(way.open.len(), sizes.len() - expected);
        }
    }

    #[test]
    fn a_slow_model_gets_less_at_once_and_a_fast_one_more() {
        let mut walk = UnembeddedScan::default();
        for (time, expected) in [
            (FAST, FIRST_DOCUMENTS),
            (SLOW, FIRST_DOCUMENTS),
            (FAST - Duration::from_millis(1), 2 * FIRST_DOCUMENTS),
            (SLOW + Duration::from_millis(1), FIRST_DOCUMENTS),
        ] {
            walk.adapt_batch_size(time);
            assert_eq!(walk.batch_size, expected, "{time:?}");
        }
        for (time, bound) in [(Duration::ZERO, MAX_DOCUMENTS), (SLOW * 2, MIN_DOCUMENTS)] {
            (0..20).for_each(|_| walk.adapt_batch_size(time));
            assert_eq!(walk.batch_size, bound);
        }
    }
}
