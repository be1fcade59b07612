//! The [`Engine`] trait: the seam between callers and the search engines that implement it.

use std::fmt;
use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt as _, ready};

use crate::calendar::Day;
use crate::catalog::Catalog;
use crate::cluster::ClusterTraffic;
use crate::document::{DocId, Document};
use crate::error::SearchError;
use crate::filter::{FieldTest, Filter};
use crate::hit::SearchResults;
use crate::query::Query;
use crate::reader_identity::ReaderIdentity;

/// The `tracing` target of engine spans, by which exporters select them. Spans hold numbers and no text of
/// documents or queries.
pub const SPAN_TARGET: &str = "docent_span";

/// The most changes of one batch. A batch is one commit, so all of it is in memory until it is durable, and after a
/// crash it is either there as a whole or read from the files again.
pub const MAX_CHANGES: usize = 100_000;

/// The most date ranges that one call counts.
pub const MAX_DATE_RANGES: usize = 100;

/// A search engine: stores documents and finds them again.
///
/// All engines pass one contract suite, so callers hold an `Arc<dyn Engine>` and do not ask which one it is.
pub trait Engine: Send + Sync + 'static {
    /// Searches; the best hits come first, equal scores in the order of their ids. One answer comes from one
    /// generation, and from the documents that the reader may see ([`ReaderIdentity::can_see`]): hits, counts and
    /// spelling corrections are what an engine without any other document would give. Only document frequencies,
    /// and so scores, may be computed over all documents.
    fn search(&self, query: Query) -> BoxFuture<'_, Result<SearchResults, SearchError>>;

    /// Counts the documents of a query by date: how many have a date of this field within each range, both ends
    /// included. Only the first [`MAX_DATE_RANGES`] ranges are counted.
    fn count_date_ranges(
        &self,
        query: Query,
        field: String,
        ranges: Vec<(Day, Day)>,
    ) -> BoxFuture<'_, Result<Vec<u64>, SearchError>> {
        async move {
            let mut counts = Vec::new();
            for (from, to) in ranges.into_iter().take(MAX_DATE_RANGES) {
                let test = FieldTest::Date {
                    from: Some(from.to_string()),
                    to: Some(to.to_string()),
                };
                let name = field.clone();
                let within = query.clone().filter(Filter::Field { name, test });
                let found = self.search(within.count_total()).await?;
                counts.push(found.total.unwrap_or(0));
            }
            Ok(counts)
        }
        .boxed()
    }

    /// The catalog of the fields of all documents that the reader may see.
    fn catalog(&self, reader: ReaderIdentity) -> BoxFuture<'_, Result<Arc<Catalog>, SearchError>>;

    /// The full document with this id, if it exists and the reader may see it.
    fn fetch(
        &self,
        id: DocId,
        reader: ReaderIdentity,
    ) -> BoxFuture<'_, Result<Option<Arc<Document>>, SearchError>>;

    /// Applies a batch of changes atomically and in order. Once this returns, every later call sees them and they
    /// survive a power failure. An empty batch makes no generation.
    fn apply(&self, changes: Vec<DocumentChange>)
    -> BoxFuture<'_, Result<Generation, SearchError>>;

    /// Embeds about `limit` of the documents that have no vectors yet, and returns the progress. Lexical search
    /// sees changes at once; embedding takes longer, so the owner of an engine calls this until nothing is left.
    fn embed_pending(&self, limit: usize) -> BoxFuture<'_, Result<EmbeddingProgress, SearchError>>;

    /// Lists every stored document in the order of the ids. Only the owner may know this, as with
    /// [`Engine::visit_inventory`] and [`Engine::status`], so these take no reader.
    fn inventory(&self) -> BoxFuture<'_, Result<Vec<InventoryEntry>, SearchError>>;

    /// The passages of a document with their vectors, for migration to another engine; empty where there are no
    /// vectors of the current model. Only the owner may know them.
    fn vectors(&self, _id: DocId) -> BoxFuture<'_, Result<Vec<PassageVector>, SearchError>> {
        ready(Ok(Vec::new())).boxed()
    }

    /// Tries to become the writer, and returns whether this process is it. Where several processes share an index,
    /// one of them is the leader (holds the lease) and applies changes.
    fn acquire_leadership(&self) -> BoxFuture<'_, Result<bool, SearchError>> {
        ready(Ok(true)).boxed()
    }

    /// Marks the index as complete after a full synchronization; whatever was kept only until then is removed.
    fn mark_complete(&self) -> BoxFuture<'_, Result<(), SearchError>> {
        ready(Ok(())).boxed()
    }

    /// Visits every stored document, in no order. Unlike [`Engine::inventory`] it allocates nothing for each
    /// document. An engine on disk runs this on the thread that polls it.
    fn visit_inventory<'a>(
        &'a self,
        each: &'a mut (dyn FnMut(InventoryEntryRef<'_>) + Send),
    ) -> BoxFuture<'a, Result<(), SearchError>> {
        async move {
            for entry in self.inventory().await? {
                each(InventoryEntryRef {
                    id: entry.id.as_str(),
                    source: &entry.source,
                    hash: &entry.hash,
                });
            }
            Ok(())
        }
        .boxed()
    }

    /// Reports the number of documents, the generation and which parts are ready.
    fn status(&self) -> BoxFuture<'_, Result<EngineStatus, SearchError>>;

    /// Counters of the calls to other machines; `None` for engines without any.
    fn traffic(&self) -> Option<ClusterTraffic> {
        None
    }
}

/// One change of the stored documents.
#[derive(Clone, Debug)]
pub enum DocumentChange {
    /// Adds a document, or replaces the one with the same id.
    Put(Document),
    /// Removes the document with this id; idempotent.
    Remove(DocId),
}

/// Rejects a batch that exceeds a limit, before any change is applied.
pub(crate) fn check_batch(changes: &[DocumentChange]) -> Result<(), SearchError> {
    if changes.len() > MAX_CHANGES {
        return Err(SearchError::TooLarge {
            what: "the batch of changes".to_owned(),
            size: changes.len(),
            limit: MAX_CHANGES,
        });
    }
    changes.iter().try_for_each(|change| match change {
        DocumentChange::Put(document) => document.check(),
        DocumentChange::Remove(_) => Ok(()),
    })
}

/// The number of batches applied so far. Two answers of the same generation see the same documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(pub u64);

impl Generation {
    /// The generation that the next batch makes.
    pub(crate) fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A stored document as synchronization needs it: to compare it with its source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InventoryEntry {
    /// The document's id.
    pub id: DocId,
    /// The path inside the corpus it came from.
    pub source: String,
    /// The hash of the content it came from.
    pub hash: String,
}

/// A borrowed [`InventoryEntry`], valid during the visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InventoryEntryRef<'h> {
    /// The document's id.
    pub id: &'h str,
    /// The path inside the corpus it came from.
    pub source: &'h str,
    /// The hash of the content it came from.
    pub hash: &'h str,
}

/// A passage of a document with its embedding.
#[derive(Clone, Debug, PartialEq)]
pub struct PassageVector {
    /// The byte range of the passage in the text of the document.
    pub range: std::ops::Range<usize>,
    /// The unit vector of the passage.
    pub vector: Vec<f32>,
}

/// Collects everything that `visit` yields into a list, and validates the ids.
pub(crate) fn collect_inventory(
    visit: impl FnOnce(&mut (dyn FnMut(InventoryEntryRef<'_>) + Send)) -> Result<(), SearchError>,
) -> Result<Vec<InventoryEntry>, SearchError> {
    let mut entries = Vec::new();
    visit(&mut |one| {
        entries.push(DocId::parse(one.id).map(|id| InventoryEntry {
            id,
            source: one.source.to_owned(),
            hash: one.hash.to_owned(),
        }));
    })?;
    entries.into_iter().collect()
}

/// The state of an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineStatus {
    /// The number of documents.
    pub documents: u64,
    /// The last visible generation.
    pub generation: Generation,
    /// Whether lexical search is ready.
    pub lexical: PartState,
    /// Whether vector search is ready.
    pub vectors: PartState,
}

/// The progress of embedding, in documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EmbeddingProgress {
    /// Documents that are embedded.
    pub done: u64,
    /// Documents that have no vectors yet.
    pub left: u64,
}

/// The state of one part of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartState {
    /// It is complete and covers all documents.
    Ready,
    /// It covers a part of the documents so far.
    Building(EmbeddingProgress),
    /// The engine has no such part.
    Absent,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_over_the_limit_is_refused() {
        let id = DocId::parse("a").unwrap();
        let mut changes = vec![DocumentChange::Remove(id); MAX_CHANGES];
        assert!(check_batch(&changes).is_ok());
        changes.extend(changes.first().cloned());
        assert!(matches!(
            check_batch(&changes),
            Err(SearchError::TooLarge { .. })
        ));
    }
}
