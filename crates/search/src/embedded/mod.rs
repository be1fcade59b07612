//! The search engine for one machine: an index in a folder, written and searched by one process.

mod candidate_set;
mod checksums;
mod date_ranges;
mod digest;
mod doc_bitset;
mod document_cache;
mod document_frequencies;
mod durable_directory;
mod exhaustive_scoring;
mod id_order;
mod index_folder;
mod index_view;
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
use self::writer::{CommitWriter, WritableIndex};
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

/// The size of the cache of displayable documents, in bytes, before eviction.
const CACHE_BYTES: usize = 64 * 1024 * 1024;

/// Up to this many documents a search takes less time than handing it to another thread and back.
const MAX_DOCUMENTS_IN_PLACE: u64 = 20_000;

/// An index in a folder. Cloning is cheap and gives another handle of the same index.
#[derive(Clone)]
pub struct EmbeddedEngine(Arc<EmbeddedInner>);

/// The parts of an open index. `semantic` is `None` without an embedding model, `writer` when opened read-only.
/// `embedding_lock` is held while vectors are computed. The file lock is dropped last, after the writer.
struct EmbeddedInner {
    dir: PathBuf,
    index: Index,
    fields: IndexFields,
    reader: IndexReader,
    snapshot: RwLock<Arc<IndexSnapshot>>,
    cache: DocumentCache,
    pools: EnginePools,
    semantic: Option<SemanticIndex>,
    embedding_lock: Mutex<()>,
    writer: Option<Mutex<CommitWriter>>,
    quarantine: Quarantine,
    _lock: Option<File>,
}

impl EmbeddedEngine {
    /// Opens the index in `dir` for searching and writing, or creates an empty one there. Only one process can have an
    /// index open this way; another one gets [`SearchError::Locked`]. Whatever fails its checksum is quarantined, so the
    /// documents in it are missing until they are applied again; see [`quarantined`](Self::quarantined). An index of
    /// another format version stays, and a new one is begun.
    pub fn open(dir: &Path) -> Result<Self, SearchError> {
        Self::with_access(dir, AccessMode::Write, None)
    }

    /// Like [`open`](Self::open), with an embedding model for semantic search.
    pub fn open_with(dir: &Path, embedder: Arc<dyn Embedder>) -> Result<Self, SearchError> {
        Self::open_with_previous(dir, embedder, Vec::new)
    }

    /// Like [`open_with`](Self::open_with), with a factory for embedding models that the index may have used
    /// before. Their vectors answer until those of the new model are computed.
    pub fn open_with_previous(
        dir: &Path,
        embedder: Arc<dyn Embedder>,
        previous: impl FnOnce() -> Vec<Arc<dyn Embedder>>,
    ) -> Result<Self, SearchError> {
        let models = IndexModels {
            newest: embedder,
            previous: Box::new(previous),
        };
        Self::with_access(dir, AccessMode::Write, Some(models))
    }

    /// Opens the index in `dir` for searching only. Another process may have it open for writing; what that
    /// one commits later is not seen. A damaged index fails with [`SearchError::Corrupt`].
    pub fn open_read_only(
        dir: &Path,
        embedder: Option<Arc<dyn Embedder>>,
    ) -> Result<Self, SearchError> {
        let models = embedder.map(|newest| IndexModels {
            newest,
            previous: Box::new(Vec::new),
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
            lexical_dir,
            mut quarantine,
            lock,
        } = recovery::open(dir, access)?;
        let map_error = |source| recovery::map_tantivy_error(dir, source);
        let reader = index
            .reader_builder()
            .reload_policy(ReloadPolicy::Manual)
            .try_into()
            .map_err(map_error)?;
        let is_read_only = access == AccessMode::Read;
        let writer = if is_read_only {
            None
        } else {
            let target = WritableIndex {
                index: index.clone(),
                disk,
                fields,
            };
            Some(reconcile::open_reconciled_writer(
                &lexical_dir,
                target,
                &reader,
                &mut quarantine,
            )?)
        };
        let pools = match &models {
            Some(models) if models.newest.is_remote() => EnginePools::for_network(),
            _ => EnginePools::for_processors(),
        };
        let semantic = match models {
            None => None,
            Some(models) => {
                match SemanticIndex::open(dir, models, is_read_only, &mut quarantine.reasons) {
                    // No vectors were computed yet, and a read-only engine computes none.
                    Err(SearchError::Missing { .. }) if is_read_only => None,
                    other => Some(other?),
                }
            }
        };
        let mut snapshot = IndexSnapshot::newest(&index, &reader).map_err(map_error)?;
        if let Some(semantic) = &semantic {
            snapshot.vectors = Some(Arc::new(semantic.views(&snapshot.live_documents())));
        }
        Ok(Self(Arc::new(EmbeddedInner {
            dir: dir.to_owned(),
            index,
            fields,
            reader,
            snapshot: RwLock::new(Arc::new(snapshot)),
            cache: DocumentCache::new(CACHE_BYTES),
            pools,
            semantic,
            embedding_lock: Mutex::new(()),
            writer: writer.map(Mutex::new),
            quarantine,
            _lock: lock,
        })))
    }

    /// What failed its checks when the index was opened, in words. Vectors were discarded and are computed again.
    /// Everything else was quarantined, and its documents have to be applied again.
    pub fn quarantined(&self) -> &[String] {
        &self.0.quarantine.reasons
    }

    /// Whether the folder holds an index of another format version, kept until this one is complete.
    pub fn has_other_versions(&self) -> bool {
        !index_folder::leftovers(&self.0.dir).is_empty()
    }

    /// Limits the memory that the writer may use, approximately, before it writes a segment.
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
        // Embedding a query that is not in the cache takes milliseconds, which belong on another thread.
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
        date_ranges: Vec<(Day, Day)>,
    ) -> BoxFuture<'_, Result<Vec<u64>, SearchError>> {
        let is_short = self.is_small();
        self.run(Lane::answer(is_short), move |inner| {
            inner.count_date_ranges(&query, &field, &date_ranges)
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
    /// The snapshot of the newest generation, taken once for each answer, so that all of it sees the same.
    fn snapshot(&self) -> Arc<IndexSnapshot> {
        self.snapshot
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn index_error(&self, source: TantivyError) -> SearchError {
        recovery::map_tantivy_error(&self.dir, source)
    }

    /// The catalog of the fields that a reader may see in the newest generation.
    fn catalog(&self, reader: &ReaderIdentity) -> Result<Arc<Catalog>, SearchError> {
        let snapshot = self.snapshot();
        let visibility = snapshot.visibility(reader);
        let catalog = visibility.and_then(|visibility| visibility.catalog(&snapshot, &self.fields));
        catalog.map_err(|source| self.index_error(source))
    }

    /// Computes vectors for some documents that lack them, and publishes these.
    fn embed_pending(&self, most: usize) -> Result<EmbeddingProgress, SearchError> {
        let Some(semantic) = self.semantic.as_ref().filter(|one| !one.is_read_only()) else {
            return Ok(semantic_index::embedding_progress(&self.snapshot()));
        };
        let _guard = self
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
            semantic.embed_pending(some, |ordinal| {
                let Some(at) = snapshot.address(ordinal) else {
                    return Ok(None);
                };
                self.read(&snapshot, at)
                    .map(|document| Some(Arc::new(document)))
            })?;
            let progress = self.publish_vectors(semantic);
            if progress.left > 0 {
                return Ok(progress);
            }
            semantic.compact(&self.snapshot().live_documents())?;
        }
        Ok(self.publish_vectors(semantic))
    }

    /// Publishes the vectors that exist with a snapshot of the newest generation.
    fn publish_vectors(&self, semantic: &SemanticIndex) -> EmbeddingProgress {
        loop {
            // With many documents this takes a while, during which no search may block on the lock.
            let newest = self.snapshot();
            let mut snapshot = IndexSnapshot::clone(&newest);
            snapshot.vectors = Some(Arc::new(semantic.views(&snapshot.live_documents())));
            let progress = semantic_index::embedding_progress(&snapshot);
            let mut published = self
                .snapshot
                .write()
                .unwrap_or_else(PoisonError::into_inner);
            if Arc::ptr_eq(&published, &newest) {
                *published = Arc::new(snapshot);
                return progress;
            }
        }
    }

    fn fetch(
        &self,
        id: &DocId,
        reader: &ReaderIdentity,
    ) -> Result<Option<Arc<Document>>, SearchError> {
        let snapshot = self.snapshot();
        let map_error = |source| self.index_error(source);
        let visibility = snapshot.visibility(reader).map_err(map_error)?;
        let is_visible = |at: &DocAddress| {
            let visible = visibility.documents();
            visible.is_none_or(|visible| visible.contains(at.segment_ord, at.doc_id))
        };
        // A restricted document is not read at all, so that timing does not tell it from one that does not
        // exist.
        let found = snapshot.find(id, &self.fields).map_err(map_error)?;
        match found.filter(is_visible) {
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

    /// The displayable document at an address, from the cache or the index.
    fn displayable(
        &self,
        snapshot: &IndexSnapshot,
        at: DocAddress,
    ) -> Result<Arc<DisplayDocument>, SearchError> {
        let segment = snapshot
            .searcher
            .segment_reader(at.segment_ord)
            .segment_id();
        let address = (segment, at.doc_id);
        if let Some(mapped) = self.cache.get(address) {
            return Ok(mapped);
        }
        let mapped = Arc::new(DisplayDocument::new(self.read(snapshot, at)?));
        self.cache.put(address, &mapped);
        Ok(mapped)
    }

    /// Reads and decodes the document at an address of the index.
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
        let map_error = |source| self.index_error(source);
        let next = writer.commit(&self.dir, changes)?;
        let mut snapshot = IndexSnapshot::newest(&self.index, &self.reader).map_err(map_error)?;
        if let Some(semantic) = &self.semantic {
            snapshot.vectors = Some(Arc::new(semantic.views(&snapshot.live_documents())));
        }
        tracing::debug!(generation = next.0, changes = changes.len(), "committed");
        *self
            .snapshot
            .write()
            .unwrap_or_else(PoisonError::into_inner) = Arc::new(snapshot);
        Ok(next)
    }

    fn mark_complete(&self) {
        if self.writer.is_none() {
            return;
        }
        index_folder::remove_leftovers(&self.dir);
        if let Err(error) = self.quarantine.clear() {
            tracing::warn!(%error, "could not remove quarantined files");
        }
    }
}
