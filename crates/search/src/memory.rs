//! The in-memory reference engine: scores every visible document for every query, without an index.
//!
//! It defines the contract of the other engines in the simplest code that fulfils it, and serves where an index on
//! disk would be too much.

mod visible_entries;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};

use futures::future::{BoxFuture, FutureExt};

use self::visible_entries::VisibleEntries;
use crate::catalog::Catalog;
use crate::document::{DocId, Document};
use crate::embedder::Embedder;
use crate::engine::{
    self, DocumentChange, EmbeddingProgress, Engine, EngineStatus, Generation, InventoryEntry,
    PartState,
};
use crate::error::SearchError;
use crate::hit::SearchResults;
use crate::passage::embeddable_passages;
use crate::pipeline;
use crate::query::Query;
use crate::reader_identity::ReaderIdentity;
use crate::snippet::DisplayDocument;
use crate::term_positions::{self, TermPositions};

/// An [`Engine`] that keeps all documents in memory and loses them when it is dropped.
#[derive(Default)]
pub struct MemoryEngine {
    state: RwLock<MemoryState>,
    embedder: Option<Arc<dyn Embedder>>,
}

impl MemoryEngine {
    /// An empty engine that searches by words alone.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty engine with an embedding model for hybrid search.
    pub fn with_embedder(embedder: Arc<dyn Embedder>) -> Self {
        Self {
            embedder: Some(embedder),
            ..Self::default()
        }
    }

    fn read<T>(&self, f: impl FnOnce(&MemoryState) -> T) -> T {
        f(&self.state.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Engine for MemoryEngine {
    fn search(&self, query: Query) -> BoxFuture<'_, Result<SearchResults, SearchError>> {
        async move {
            let embedder = self.embedder.as_deref();
            self.read(|state| {
                pipeline::search(
                    &VisibleEntries::new(state, query.reader(), embedder),
                    &query,
                )
            })
        }
        .boxed()
    }

    fn catalog(&self, reader: ReaderIdentity) -> BoxFuture<'_, Result<Arc<Catalog>, SearchError>> {
        let catalog =
            move |state: &MemoryState| VisibleEntries::new(state, &reader, None).catalog();
        async move { Ok(Arc::new(self.read(catalog))) }.boxed()
    }

    fn embed_pending(&self, limit: usize) -> BoxFuture<'_, Result<EmbeddingProgress, SearchError>> {
        async move {
            let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
            if let Some(model) = &self.embedder {
                state.embed_pending(model.as_ref(), limit)?;
            }
            Ok(state.embedding_progress(self.embedder.is_some()))
        }
        .boxed()
    }

    fn fetch(
        &self,
        id: DocId,
        reader: ReaderIdentity,
    ) -> BoxFuture<'_, Result<Option<Arc<Document>>, SearchError>> {
        async move { Ok(self.read(|state| state.fetch(&id, &reader))) }.boxed()
    }

    fn apply(
        &self,
        changes: Vec<DocumentChange>,
    ) -> BoxFuture<'_, Result<Generation, SearchError>> {
        async move {
            engine::check_batch(&changes)?;
            let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
            Ok(state.apply(changes))
        }
        .boxed()
    }

    fn inventory(&self) -> BoxFuture<'_, Result<Vec<InventoryEntry>, SearchError>> {
        async move { Ok(self.read(MemoryState::inventory)) }.boxed()
    }

    fn status(&self) -> BoxFuture<'_, Result<EngineStatus, SearchError>> {
        async move { Ok(self.read(|state| state.status(self.embedder.is_some()))) }.boxed()
    }
}

#[derive(Default)]
struct MemoryState {
    entries: BTreeMap<DocId, MemoryEntry>,
    generation: Generation,
}

struct MemoryEntry {
    /// The range and the vector of each passage; `None` while the document is not embedded.
    vectors: Option<Vec<(Range<usize>, Vec<f32>)>>,
    mapped: DisplayDocument,
    title: TermPositions,
    body: TermPositions,
}

impl MemoryEntry {
    fn new(document: Document) -> Self {
        let mapped = DisplayDocument::new(document);
        let (title, body) = TermPositions::of(&mapped.document, mapped.language);
        Self {
            vectors: None,
            mapped,
            title,
            body,
        }
    }
}

/// Corpus statistics of one field for BM25: the number of documents and the mean length.
struct Bm25Statistics {
    documents: u64,
    mean_length: f32,
}

impl Bm25Statistics {
    fn idf(&self, documents_with: usize) -> f32 {
        term_positions::idf(self.documents, documents_with as u64)
    }

    fn bm25(&self, idf: f32, occurrences: usize, length: usize) -> f32 {
        idf * term_positions::term_frequency_weight(occurrences, length, self.mean_length)
    }
}

impl MemoryState {
    fn apply(&mut self, changes: Vec<DocumentChange>) -> Generation {
        if changes.is_empty() {
            return self.generation;
        }
        for change in changes {
            match change {
                DocumentChange::Put(document) => {
                    self.entries
                        .insert(document.id.clone(), MemoryEntry::new(document));
                }
                DocumentChange::Remove(id) => {
                    self.entries.remove(&id);
                }
            }
        }
        self.generation = self.generation.next();
        self.generation
    }

    fn fetch(&self, id: &DocId, reader: &ReaderIdentity) -> Option<Arc<Document>> {
        let document = self.entries.get(id).map(|entry| &entry.mapped.document);
        document
            .filter(|document| reader.can_see(document))
            .cloned()
    }

    fn status(&self, has_model: bool) -> EngineStatus {
        let progress = self.embedding_progress(has_model);
        EngineStatus {
            documents: self.entries.len() as u64,
            generation: self.generation,
            lexical: PartState::Ready,
            vectors: match progress.left {
                _ if !has_model => PartState::Absent,
                0 => PartState::Ready,
                _ => PartState::Building(progress),
            },
        }
    }

    fn inventory(&self) -> Vec<InventoryEntry> {
        let documents = self.entries.values().map(|entry| &entry.mapped.document);
        documents
            .map(|document| InventoryEntry {
                id: document.id.clone(),
                source: document.source.clone(),
                hash: document.hash.clone(),
            })
            .collect()
    }

    fn embedding_progress(&self, has_model: bool) -> EmbeddingProgress {
        let left = self
            .entries
            .values()
            .filter(|entry| entry.vectors.is_none());
        let left = if has_model { left.count() as u64 } else { 0 };
        EmbeddingProgress {
            done: self.entries.len() as u64 - left,
            left,
        }
    }

    fn embed_pending(&mut self, model: &dyn Embedder, limit: usize) -> Result<(), SearchError> {
        let unembedded = self
            .entries
            .values_mut()
            .filter(|entry| entry.vectors.is_none());
        for entry in unembedded.take(limit.max(1)) {
            let document = &entry.mapped.document;
            let passages = embeddable_passages(document, model.languages());
            let texts: Vec<_> = passages.iter().map(|(_, text)| text.as_str()).collect();
            let ranges = passages.iter().map(|(passage, _)| passage.range.clone());
            entry.vectors = Some(ranges.zip(model.passages(&texts)?).collect());
        }
        Ok(())
    }
}
