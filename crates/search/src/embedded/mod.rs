//! The engine for one machine: an index in a folder, changed and searched by one process.

mod candidate_set;
mod checksums;
mod date_ranges;
mod digest;
mod doc_bitset;
mod document_cache;
mod document_frequencies;
mod durable_directory;
mod exhaustive_scoring;
mod hybrid_search;
mod id_order;
mod index_folder;
mod ledger;
mod lexical;
mod listing;
mod previous_model;
mod quarantine;
mod reconcile;
mod recovery;
mod schema;
mod semantic_index;
mod set_digest;
mod snapshot;
mod term_dictionary;
mod tokenizer;
mod visibility_cache;
mod writer;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use futures::future::{BoxFuture, FutureExt, ready};
use tantivy::{DocAddress, Index, IndexReader, ReloadPolicy, TantivyDocument, TantivyError};

use self::document_cache::DocumentCache;
use self::quarantine::Quarantine;
use self::recovery::{AccessMode, RecoveredIndex};
use self::schema::IndexFields;
use self::semantic_index::{IndexModels, SemanticIndex};
use self::snapshot::IndexSnapshot;
use self::writer::CommitWriter;
use crate::blocking::{EnginePools, Lane};
use crate::calendar::Day;
use crate::catalog::Catalog;
use crate::document::{DocId, Document};
use crate::embedder::Embedder;
use crate::engine::{
    self, DocumentChange, EmbeddingProgress, Engine, EngineStatus, Generation, InventoryEntry,
    InventoryEntryRef, PartState, PassageVector, SPAN_TARGET,
};
use crate::error::SearchError;
use crate::hit::SearchResults;
use crate::query::Query;
use crate::reader_identity::ReaderIdentity;
use crate::snippet::DisplayDocument;

/// How many bytes of documents are kept ready to be shown again.
const CACHE_BYTES: usize = 64 * 1024 * 1024;

/// Up to this many documents a search is shorter than the way to another thread and back is worth.
const MAX_DOCUMENTS_IN_PLACE: u64 = 20_000;

/// An index in a folder.
///
/// Cloning is cheap and gives another handle of the same index.
#[derive(Clone)]
pub struct EmbeddedEngine(Arc<EmbeddedInner>);

struct EmbeddedInner {
    dir: PathBuf,
    index: Index,
    fields: IndexFields,
    reader: IndexReader,
    snapshot: RwLock<Arc<IndexSnapshot>>,
    cache: DocumentCache,
    pools: EnginePools,
    /// Nothing when the index was opened without a model.
    semantic: Option<SemanticIndex>,
    /// Held by the one who makes vectors.
    embedding_lock: Mutex<()>,
    /// Nothing when the index was opened to be read only.
    writer: Option<Mutex<CommitWriter>>,
    /// What was damaged when the index was opened.
    quarantine: Quarantine,
    /// Dropped last, when nobody can write any more.
    _lock: Option<File>,
}

impl EmbeddedEngine {
    /// Opens the index in `dir` to be searched and changed, or makes an empty one there.
    ///
    /// Only one process can have an index open this way; another is refused with
    /// [`Error::Locked`]. What is not byte for byte as it was written is set aside, so that the
    /// documents in it are missing until somebody brings them again; see [`Embedded::damaged`]. An
    /// index of another version is left as it is, and a new one begun beside it.
    pub fn open(dir: &Path) -> Result<Self, SearchError> {
        Self::with_access(dir, AccessMode::Write, None)
    }

    /// The same, with a model that makes documents findable by their meaning.
    pub fn open_with(dir: &Path, embedder: Arc<dyn Embedder>) -> Result<Self, SearchError> {
        Self::open_with_previous(dir, embedder, Vec::new)
    }

    /// The same, where one of the models that `former` makes may have been in use before. Its
    /// vectors answer until those of the new model are made.
    pub fn open_with_previous(
        dir: &Path,
        embedder: Arc<dyn Embedder>,
        former: impl FnOnce() -> Vec<Arc<dyn Embedder>>,
    ) -> Result<Self, SearchError> {
        let models = IndexModels {
            newest: embedder,
            former: Box::new(former),
        };
        Self::with_access(dir, AccessMode::Write, Some(models))
    }

    /// Opens the index in `dir` to be searched. It may be open for writing elsewhere; what is
    /// committed there later is not seen. A damaged index is refused with [`Error::Corrupt`].
    pub fn open_read_only(
        dir: &Path,
        embedder: Option<Arc<dyn Embedder>>,
    ) -> Result<Self, SearchError> {
        let models = embedder.map(|newest| IndexModels {
            newest,
            former: Box::new(Vec::new),
        });
        Self::with_access(dir, AccessMode::Read, models)
    }

    fn with_access(
        dir: &Path,
        access: AccessMode,
        models: Option<IndexModels>,
    ) -> Result<Self, SearchError> {
        let RecoveredIndex {
            index,
            disk,
            fields,
            words,
            quarantine: mut aside,
            lock,
        } = recovery::open(dir, access)?;
        let known = |source| recovery::map_tantivy_error(dir, source);
        let reader = index
            .reader_builder()
            .reload_policy(ReloadPolicy::Manual)
            .try_into()
            .map_err(known)?;
        let is_read_only = access == AccessMode::Read;
        let writer = if is_read_only {
            None
        } else {
            let parts = (&reader, fields);
            Some(reconcile::open_reconciled_writer(
                &words,
                (index.clone(), disk),
                parts,
                &mut aside,
            )?)
        };
        let pools = match &models {
            Some(models) if models.newest.is_remote() => EnginePools::for_network(),
            _ => EnginePools::for_processors(),
        };
        let meaning = match models {
            None => None,
            Some(models) => {
                match SemanticIndex::open(dir, models, is_read_only, &mut aside.reasons) {
                    // Nobody has made vectors yet, and a reader does not.
                    Err(SearchError::Missing { .. }) if is_read_only => None,
                    other => Some(other?),
                }
            }
        };
        let mut snapshot = IndexSnapshot::newest(&index, &reader).map_err(known)?;
        if let Some(meaning) = &meaning {
            snapshot.vectors = Some(Arc::new(meaning.views(&snapshot.live_documents())));
        }
        Ok(Self(Arc::new(EmbeddedInner {
            dir: dir.to_owned(),
            index,
            fields,
            reader,
            snapshot: RwLock::new(Arc::new(snapshot)),
            cache: DocumentCache::new(CACHE_BYTES),
            pools,
            semantic: meaning,
            embedding_lock: Mutex::new(()),
            writer: writer.map(Mutex::new),
            quarantine: aside,
            _lock: lock,
        })))
    }

    /// What was not as it was written when the index was opened, in words. It has been set aside and
    /// has to be brought again.
    pub fn quarantined(&self) -> &[String] {
        &self.0.quarantine.reasons
    }

    /// Whether the folder has an index of another version, kept until this one is complete.
    pub fn has_other_versions(&self) -> bool {
        !index_folder::leftovers(&self.0.dir).is_empty()
    }

    /// Lets the writer hold at most about so many bytes in memory before it writes them.
    #[must_use]
    pub fn with_writer_bytes(self, bytes: usize) -> Self {
        if let Some(writer) = &self.0.writer {
            writer
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .limit(bytes);
        }
        self
    }

    fn run<T: Send + 'static>(
        &self,
        lane: Lane,
        work: impl FnOnce(&EmbeddedInner) -> Result<T, SearchError> + Send + 'static,
    ) -> BoxFuture<'_, Result<T, SearchError>> {
        let inner = self.0.clone();
        self.0.pools.run(lane, move || work(&inner)).boxed()
    }

    fn is_small(&self) -> bool {
        self.0.snapshot().searcher.num_docs() <= MAX_DOCUMENTS_IN_PLACE
    }
}

impl Engine for EmbeddedEngine {
    fn search(&self, query: Query) -> BoxFuture<'_, Result<SearchResults, SearchError>> {
        // A question that was not asked before costs milliseconds, which another thread can spend.
        let is_short = self.is_small() && self.0.is_cheap(&query);
        self.run(Lane::answer(is_short), move |inner| {
            let span =
                tracing::info_span!(target: SPAN_TARGET, "search", hits = tracing::field::Empty);
            let found = span.in_scope(|| inner.search(&query))?;
            span.record("hits", found.hits.len());
            Ok(found)
        })
    }

    fn count_date_ranges(
        &self,
        query: Query,
        field: String,
        stretches: Vec<(Day, Day)>,
    ) -> BoxFuture<'_, Result<Vec<u64>, SearchError>> {
        let is_short = self.is_small();
        self.run(Lane::answer(is_short), move |inner| {
            inner.count_date_ranges(&query, &field, &stretches)
        })
    }

    fn catalog(&self, reader: ReaderIdentity) -> BoxFuture<'_, Result<Arc<Catalog>, SearchError>> {
        self.run(Lane::answer(self.is_small()), move |inner| {
            inner.catalog(&reader)
        })
    }

    fn embed_pending(&self, most: usize) -> BoxFuture<'_, Result<EmbeddingProgress, SearchError>> {
        self.run(Lane::Maintenance, move |inner| inner.embed_pending(most))
    }

    fn fetch(
        &self,
        id: DocId,
        reader: ReaderIdentity,
    ) -> BoxFuture<'_, Result<Option<Arc<Document>>, SearchError>> {
        self.run(Lane::answer(self.is_small()), move |inner| {
            let _span = tracing::info_span!(target: SPAN_TARGET, "fetch").entered();
            inner.fetch(&id, &reader)
        })
    }

    fn apply(
        &self,
        changes: Vec<DocumentChange>,
    ) -> BoxFuture<'_, Result<Generation, SearchError>> {
        self.run(Lane::Maintenance, move |inner| inner.apply(&changes))
    }

    fn inventory(&self) -> BoxFuture<'_, Result<Vec<InventoryEntry>, SearchError>> {
        self.run(Lane::Maintenance, EmbeddedInner::inventory)
    }

    fn vectors(&self, id: DocId) -> BoxFuture<'_, Result<Vec<PassageVector>, SearchError>> {
        self.run(Lane::Maintenance, move |inner| inner.vectors(&id))
    }

    fn mark_complete(&self) -> BoxFuture<'_, Result<(), SearchError>> {
        self.run(Lane::Maintenance, |inner| {
            inner.mark_complete();
            Ok(())
        })
    }

    fn visit_inventory<'a>(
        &'a self,
        each: &'a mut (dyn FnMut(InventoryEntryRef<'_>) + Send),
    ) -> BoxFuture<'a, Result<(), SearchError>> {
        ready(self.0.visit_inventory(each)).boxed()
    }

    fn status(&self) -> BoxFuture<'_, Result<EngineStatus, SearchError>> {
        let snapshot = self.0.snapshot();
        let status = EngineStatus {
            documents: snapshot.searcher.num_docs(),
            generation: snapshot.generation,
            lexical: PartState::Ready,
            vectors: match &snapshot.vectors {
                None => PartState::Absent,
                Some(views) if views.own.missing().is_empty() => PartState::Ready,
                Some(_) => PartState::Building(semantic_index::embedding_progress(&snapshot)),
            },
        };
        ready(Ok(status)).boxed()
    }
}

impl EmbeddedInner {
    /// The newest generation. Taken once per answer.
    fn snapshot(&self) -> Arc<IndexSnapshot> {
        self.snapshot
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn index_error(&self, source: TantivyError) -> SearchError {
        recovery::map_tantivy_error(&self.dir, source)
    }

    /// The fields of the newest generation that a reader may know of.
    fn catalog(&self, reader: &ReaderIdentity) -> Result<Arc<Catalog>, SearchError> {
        let snapshot = self.snapshot();
        let sight = snapshot.visibility(reader);
        let catalog = sight.and_then(|sight| sight.catalog(&snapshot, &self.fields));
        catalog.map_err(|source| self.index_error(source))
    }

    /// Makes vectors for some documents and shows them.
    fn embed_pending(&self, most: usize) -> Result<EmbeddingProgress, SearchError> {
        let Some(meaning) = self.semantic.as_ref().filter(|one| !one.is_read_only()) else {
            return Ok(semantic_index::embedding_progress(&self.snapshot()));
        };
        let _one = self
            .embedding_lock
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let snapshot = self.snapshot();
        let views = snapshot.vectors.as_ref();
        if let Some(view) = views
            .map(|views| &views.own)
            .filter(|view| !view.missing().is_empty())
        {
            let missing = view.missing();
            let some = missing.get(..most.max(1)).unwrap_or(missing);
            meaning.embed_pending(some, |ordinal| {
                let Some(at) = snapshot.address(ordinal) else {
                    return Ok(None);
                };
                self.read(&snapshot, at)
                    .map(|document| Some(Arc::new(document)))
            })?;
            let settled = self.publish_vectors(meaning);
            if settled.left > 0 {
                return Ok(settled);
            }
            meaning.compact(&self.snapshot().live_documents())?;
        }
        Ok(self.publish_vectors(meaning))
    }

    /// Shows the vectors there are with the newest generation.
    fn publish_vectors(&self, meaning: &SemanticIndex) -> EmbeddingProgress {
        loop {
            // With many documents this takes a while, in which nobody shall wait for an answer.
            let newest = self.snapshot();
            let mut snapshot = IndexSnapshot::clone(&newest);
            snapshot.vectors = Some(Arc::new(meaning.views(&snapshot.live_documents())));
            let settled = semantic_index::embedding_progress(&snapshot);
            let mut shown = self
                .snapshot
                .write()
                .unwrap_or_else(PoisonError::into_inner);
            if Arc::ptr_eq(&shown, &newest) {
                *shown = Arc::new(snapshot);
                return settled;
            }
        }
    }

    fn fetch(
        &self,
        id: &DocId,
        reader: &ReaderIdentity,
    ) -> Result<Option<Arc<Document>>, SearchError> {
        let snapshot = self.snapshot();
        let known = |source| self.index_error(source);
        let sight = snapshot.visibility(reader).map_err(known)?;
        let is_seen = |at: &DocAddress| {
            let seen = sight.documents();
            seen.is_none_or(|seen| seen.contains(at.segment_ord, at.doc_id))
        };
        // What is not seen is not read either, so that it takes no longer than what is not there.
        let found = snapshot.find(id, &self.fields).map_err(known)?;
        match found.filter(is_seen) {
            Some(at) => Ok(Some(self.displayable(&snapshot, at)?.document.clone())),
            None => Ok(None),
        }
    }

    fn vectors(&self, id: &DocId) -> Result<Vec<PassageVector>, SearchError> {
        let snapshot = self.snapshot();
        let found = snapshot.find(id, &self.fields);
        let found = found.map_err(|source| self.index_error(source))?;
        let (Some(at), Some(views)) = (found, &snapshot.vectors) else {
            return Ok(Vec::new());
        };
        let passages = views.own.vectors(snapshot.ordinal(at)).into_iter();
        Ok(passages
            .map(|passage| PassageVector {
                range: passage.start as usize..passage.end as usize,
                vector: passage.vector,
            })
            .collect())
    }

    /// The document at a place, out of the cache or the index.
    fn displayable(
        &self,
        snapshot: &IndexSnapshot,
        at: DocAddress,
    ) -> Result<Arc<DisplayDocument>, SearchError> {
        let segment = snapshot
            .searcher
            .segment_reader(at.segment_ord)
            .segment_id();
        let place = (segment, at.doc_id);
        if let Some(mapped) = self.cache.get(place) {
            return Ok(mapped);
        }
        let mapped = Arc::new(DisplayDocument::new(self.read(snapshot, at)?));
        self.cache.put(place, &mapped);
        Ok(mapped)
    }

    /// The document at a place, out of the index.
    fn read(&self, snapshot: &IndexSnapshot, at: DocAddress) -> Result<Document, SearchError> {
        let entry: TantivyDocument = snapshot
            .searcher
            .doc(at)
            .map_err(|source| self.index_error(source))?;
        self.fields
            .read(&entry)
            .ok_or_else(|| SearchError::corrupt(&self.dir, "a stored document cannot be read"))
    }

    fn apply(&self, changes: &[DocumentChange]) -> Result<Generation, SearchError> {
        engine::check_batch(changes)?;
        let Some(writer) = &self.writer else {
            return Err(SearchError::ReadOnly {
                path: self.dir.clone(),
            });
        };
        let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
        let present = self.snapshot().generation;
        if changes.is_empty() {
            return Ok(present);
        }
        let known = |source| self.index_error(source);
        let next = writer.commit(&self.dir, changes)?;
        let mut snapshot = IndexSnapshot::newest(&self.index, &self.reader).map_err(known)?;
        if let Some(meaning) = &self.semantic {
            snapshot.vectors = Some(Arc::new(meaning.views(&snapshot.live_documents())));
        }
        tracing::debug!(generation = next.0, changes = changes.len(), "committed");
        *self
            .snapshot
            .write()
            .unwrap_or_else(PoisonError::into_inner) = Arc::new(snapshot);
        Ok(next)
    }

    fn inventory(&self) -> Result<Vec<InventoryEntry>, SearchError> {
        let mut held = engine::collect_inventory(|each| self.visit_inventory(each))?;
        held.sort_by(|left, right| left.id.cmp(&right.id));
        Ok(held)
    }

    /// What is held: as the ledger says for the one who keeps it, and as the words say for others.
    fn visit_inventory(
        &self,
        each: &mut (dyn FnMut(InventoryEntryRef<'_>) + Send),
    ) -> Result<(), SearchError> {
        let Some(writer) = &self.writer else {
            let shown = self.snapshot().visit_inventory(each);
            return shown.map_err(|source| self.index_error(source));
        };
        let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
        let present = self.snapshot().generation;
        writer.visit_inventory(present, each)
    }

    fn mark_complete(&self) {
        if self.writer.is_none() {
            return;
        }
        index_folder::remove_leftovers(&self.dir);
        if let Err(error) = self.quarantine.clear() {
            tracing::warn!(%error, "what was damaged stays on disk");
        }
    }
}
