//! The small reference engine: documents in memory, every query over all of them.
//!
//! It says what the other engines must do in the plainest way there is, and serves where an index
//! on disk would be too much.

mod ranked_entry;
mod visible_entries;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};

use futures::future::{BoxFuture, FutureExt};

use self::visible_entries::{EmbeddedQuery, VisibleEntries};
use crate::analysis::LanguageId;
use crate::catalog::Catalog;
use crate::document::{DocId, Document};
use crate::embedder::Embedder;
use crate::engine::{
    self, DocumentChange, EmbeddingProgress, Engine, EngineStatus, Generation, InventoryEntry,
    PartState,
};
use crate::error::SearchError;
use crate::fusion::CosineScale;
use crate::hit::SearchResults;
use crate::passage::embeddable_passages;
use crate::query::{Query, RankingMethod, query_language};
use crate::reader_identity::ReaderIdentity;
use crate::snippet::DisplayDocument;
use crate::term_positions::{self, TermPositions};

/// An engine that holds everything in memory and forgets it when dropped.
#[derive(Default)]
pub struct MemoryEngine {
    state: RwLock<MemoryState>,
    embedder: Option<Arc<dyn Embedder>>,
}

impl MemoryEngine {
    /// An engine without documents.
    pub fn new() -> Self {
        Self::default()
    }

    /// An engine without documents, with a model that makes them findable by their meaning.
    pub fn with_embedder(embedder: Arc<dyn Embedder>) -> Self {
        let shelf = MemoryState {
            scale: Some(embedder.scale()),
            ..MemoryState::default()
        };
        Self {
            state: RwLock::new(shelf),
            embedder: Some(embedder),
        }
    }

    fn read<T>(&self, work: impl FnOnce(&MemoryState) -> T) -> T {
        work(&self.state.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Engine for MemoryEngine {
    fn search(&self, query: Query) -> BoxFuture<'_, Result<SearchResults, SearchError>> {
        async move {
            let embedder = self
                .embedder
                .as_ref()
                .filter(|_| query.method != RankingMethod::Lexical);
            let language = |model: &Arc<dyn Embedder>| query_language(&query, model.languages());
            let known = embedder.filter(|model| language(model) != LanguageId::Foreign);
            let vector =
                known.and_then(|model| Some((model.query(&query.text).ok()?, language(model))));
            let question = vector.as_ref().map(|(vector, language)| EmbeddedQuery {
                vector,
                language: *language,
            });
            Ok(self.read(|shelf| {
                VisibleEntries::new(shelf, query.reader()).search(&query, question.as_ref())
            }))
        }
        .boxed()
    }

    fn catalog(&self, reader: ReaderIdentity) -> BoxFuture<'_, Result<Arc<Catalog>, SearchError>> {
        let catalog = move |shelf: &MemoryState| VisibleEntries::new(shelf, &reader).catalog();
        async move { Ok(Arc::new(self.read(catalog))) }.boxed()
    }

    fn embed_pending(&self, most: usize) -> BoxFuture<'_, Result<EmbeddingProgress, SearchError>> {
        async move {
            let mut shelf = self.state.write().unwrap_or_else(PoisonError::into_inner);
            if let Some(model) = &self.embedder {
                shelf.embed_pending(model.as_ref(), most)?;
            }
            Ok(shelf.embedding_progress(self.embedder.is_some()))
        }
        .boxed()
    }

    fn fetch(
        &self,
        id: DocId,
        reader: ReaderIdentity,
    ) -> BoxFuture<'_, Result<Option<Arc<Document>>, SearchError>> {
        async move { Ok(self.read(|shelf| shelf.fetch(&id, &reader))) }.boxed()
    }

    fn apply(
        &self,
        changes: Vec<DocumentChange>,
    ) -> BoxFuture<'_, Result<Generation, SearchError>> {
        async move {
            engine::check_batch(&changes)?;
            let mut shelf = self.state.write().unwrap_or_else(PoisonError::into_inner);
            Ok(shelf.apply(changes))
        }
        .boxed()
    }

    fn inventory(&self) -> BoxFuture<'_, Result<Vec<InventoryEntry>, SearchError>> {
        async move { Ok(self.read(MemoryState::inventory)) }.boxed()
    }

    fn status(&self) -> BoxFuture<'_, Result<EngineStatus, SearchError>> {
        async move { Ok(self.read(|shelf| shelf.status(self.embedder.is_some()))) }.boxed()
    }
}

#[derive(Default)]
struct MemoryState {
    entries: BTreeMap<DocId, MemoryEntry>,
    generation: Generation,
    /// What the cosines of the model are worth.
    scale: Option<CosineScale>,
}

struct MemoryEntry {
    /// Each passage with its vector, once they are made.
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

/// What BM25 has to know about one field of all documents.
struct Bm25Statistics {
    documents: u64,
    mean_length: f32,
}

impl Bm25Statistics {
    fn idf(&self, documents_with: usize) -> f32 {
        term_positions::idf(self.documents, documents_with as u64)
    }

    fn bm25(&self, rarity: f32, occurrences: usize, length: usize) -> f32 {
        rarity * term_positions::term_frequency_weight(occurrences, length, self.mean_length)
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
        let settled = self.embedding_progress(has_model);
        EngineStatus {
            documents: self.entries.len() as u64,
            generation: self.generation,
            lexical: PartState::Ready,
            vectors: match settled.left {
                _ if !has_model => PartState::Absent,
                0 => PartState::Ready,
                _ => PartState::Building(settled),
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

    fn embed_pending(&mut self, model: &dyn Embedder, most: usize) -> Result<(), SearchError> {
        let open = self
            .entries
            .values_mut()
            .filter(|entry| entry.vectors.is_none());
        for entry in open.take(most.max(1)) {
            let document = &entry.mapped.document;
            let cut = embeddable_passages(document, model.languages());
            let texts: Vec<_> = cut.iter().map(|(_, text)| text.as_str()).collect();
            let ranges = cut.iter().map(|(passage, _)| passage.range.clone());
            entry.vectors = Some(ranges.zip(model.passages(&texts)?).collect());
        }
        Ok(())
    }
}
