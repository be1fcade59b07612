//! The seam between those who ask and those who search: one trait, several engines.

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

/// The target of the spans of engines, for whoever keeps traces. They hold numbers and no text.
pub const SPAN_TARGET: &str = "docent_span";

/// The most changes one batch may hold.
pub const MAX_CHANGES: usize = 100_000;

/// The most stretches of days that are counted at a time.
pub const MAX_DATE_RANGES: usize = 100;

/// Something that holds documents and finds them again.
///
/// All engines pass one contract suite, so callers keep an `Arc<dyn Engine>` and do not ask which
/// one it is.
pub trait Engine: Send + Sync + 'static {
    /// The best hits for a query, best first; equal scores are in the order of their ids. One
    /// answer comes from one generation, and from those of its documents that the reader sees
    /// ([`Reader::sees`]): what it finds, counts and completes is what an engine would that holds no
    /// others. How rare a word is, and so a score, may be told from all.
    fn search(&self, query: Query) -> BoxFuture<'_, Result<SearchResults, SearchError>>;

    /// How many of the documents that a query counts have a day of this field in each stretch, its first and
    /// last day included; the first [`MAX_STRETCHES`] of them.
    fn count_date_ranges(
        &self,
        query: Query,
        field: String,
        stretches: Vec<(Day, Day)>,
    ) -> BoxFuture<'_, Result<Vec<u64>, SearchError>> {
        async move {
            let mut counts = Vec::new();
            for (from, to) in stretches.into_iter().take(MAX_DATE_RANGES) {
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

    /// Which fields the documents have that the reader may see.
    fn catalog(&self, reader: ReaderIdentity) -> BoxFuture<'_, Result<Arc<Catalog>, SearchError>>;

    /// The whole document of this id, if there is one that the reader may see.
    fn fetch(
        &self,
        id: DocId,
        reader: ReaderIdentity,
    ) -> BoxFuture<'_, Result<Option<Arc<Document>>, SearchError>>;

    /// Applies changes in their order, all of them or none. Once this has returned they are seen by
    /// every later call and survive a loss of power. A batch without changes makes no generation.
    fn apply(&self, changes: Vec<DocumentChange>)
    -> BoxFuture<'_, Result<Generation, SearchError>>;

    /// Makes documents findable by their meaning that are not yet, about `most` of them, and says
    /// how far that is. Words are found as soon as changes are applied; meanings take longer to
    /// work out, so whoever keeps the engine calls this until nothing is left.
    fn embed_pending(&self, most: usize) -> BoxFuture<'_, Result<EmbeddingProgress, SearchError>>;

    /// What is held, one entry a document, in the order of the ids. It is the owner's to know, and so
    /// are [`Engine::holdings`] and [`Engine::status`]: no reader is asked for.
    fn inventory(&self) -> BoxFuture<'_, Result<Vec<InventoryEntry>, SearchError>>;

    /// The passages of a document with their vectors, in their order, for who carries an index to another
    /// engine; nothing where there are none of the model in use. It is the owner's to know.
    fn vectors(&self, _id: DocId) -> BoxFuture<'_, Result<Vec<PassageVector>, SearchError>> {
        ready(Ok(Vec::new())).boxed()
    }

    /// Whether changes of this process are taken. Where several processes share an index one of them
    /// writes; asking makes this one the writer where nobody is.
    fn acquire_leadership(&self) -> BoxFuture<'_, Result<bool, SearchError>> {
        ready(Ok(true)).boxed()
    }

    /// Says that everything there is to hold is held. What was kept only until then is removed.
    fn mark_complete(&self) -> BoxFuture<'_, Result<(), SearchError>> {
        ready(Ok(())).boxed()
    }

    /// Shows what is held, one entry a document, in no order. Unlike an inventory it takes no memory for
    /// each. An engine on disk works on the thread that polls it.
    fn visit_inventory<'a>(
        &'a self,
        each: &'a mut (dyn FnMut(InventoryEntryRef<'_>) + Send),
    ) -> BoxFuture<'a, Result<(), SearchError>> {
        async move {
            for held in self.inventory().await? {
                each(InventoryEntryRef {
                    id: held.id.as_str(),
                    source: &held.source,
                    hash: &held.hash,
                });
            }
            Ok(())
        }
        .boxed()
    }

    /// How the engine is.
    fn status(&self) -> BoxFuture<'_, Result<EngineStatus, SearchError>>;

    /// What it has asked of other machines so far; nothing where it needs none.
    fn traffic(&self) -> Option<ClusterTraffic> {
        None
    }
}

/// One change to what an engine holds.
#[derive(Clone, Debug)]
pub enum DocumentChange {
    /// Adds a document, in place of the one with the same id if there is one.
    Put(Document),
    /// Removes the document of this id; nothing happens when there is none.
    Remove(DocId),
}

/// Refuses a batch that is over a limit before anything of it is applied.
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

/// Counts the batches applied so far. What two answers of one generation show is the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(pub u64);

impl Generation {
    /// The generation after this one.
    pub(crate) fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A document as the one who keeps folder and index in step needs to know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InventoryEntry {
    /// The document's id.
    pub id: DocId,
    /// The path inside the corpus it came from.
    pub source: String,
    /// The hash of the content it came from.
    pub hash: String,
}

/// The same, in passing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InventoryEntryRef<'h> {
    /// The document's id.
    pub id: &'h str,
    /// The path inside the corpus it came from.
    pub source: &'h str,
    /// The hash of the content it came from.
    pub hash: &'h str,
}

/// A passage of a document with its vector.
#[derive(Clone, Debug, PartialEq)]
pub struct PassageVector {
    /// The bytes of the document's text that it stands for.
    pub range: std::ops::Range<usize>,
    /// The vector, of length one.
    pub vector: Vec<f32>,
}

/// Everything that `show` shows.
pub(crate) fn collect_inventory(
    show: impl FnOnce(&mut (dyn FnMut(InventoryEntryRef<'_>) + Send)) -> Result<(), SearchError>,
) -> Result<Vec<InventoryEntry>, SearchError> {
    let mut held = Vec::new();
    show(&mut |one| {
        held.push(DocId::parse(one.id).map(|id| InventoryEntry {
            id,
            source: one.source.to_owned(),
            hash: one.hash.to_owned(),
        }));
    })?;
    held.into_iter().collect()
}

/// How an engine is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineStatus {
    /// How many documents it holds.
    pub documents: u64,
    /// The last batch it shows.
    pub generation: Generation,
    /// Whether it finds words.
    pub lexical: PartState,
    /// Whether it finds meanings.
    pub vectors: PartState,
}

/// How many documents can be found by their meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EmbeddingProgress {
    /// How many can.
    pub done: u64,
    /// How many cannot yet.
    pub left: u64,
}

/// Whether one part of an engine can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartState {
    /// It answers.
    Ready,
    /// It answers for some of the documents.
    Building(EmbeddingProgress),
    /// This engine has no such part.
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
