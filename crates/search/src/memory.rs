//! The small reference engine: documents in memory, every query over all of them.
//!
//! It says what the other engines must do in the plainest way there is, and serves where an index
//! on disk would be too much.

mod ranked;
mod seen;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};

use futures::future::{BoxFuture, FutureExt};

use self::seen::{Question, Seen};
use crate::analysis::LanguageId;
use crate::catalog::Catalog;
use crate::document::{DocId, Document};
use crate::embedder::Embedder;
use crate::engine::{self, Change, Engine, Generation, Held, PartState, Settled, Status};
use crate::error::Error;
use crate::fuse::Scale;
use crate::hit::Found;
use crate::passage::embeddable_passages;
use crate::postings::{self, Postings};
use crate::query::{Method, Query, query_language};
use crate::reader::Reader;
use crate::snippet::Mapped;

/// An engine that holds everything in memory and forgets it when dropped.
#[derive(Default)]
pub struct Memory {
    state: RwLock<Shelf>,
    embedder: Option<Arc<dyn Embedder>>,
}

impl Memory {
    /// An engine without documents.
    pub fn new() -> Self {
        Self::default()
    }

    /// An engine without documents, with a model that makes them findable by their meaning.
    pub fn with_embedder(embedder: Arc<dyn Embedder>) -> Self {
        let shelf = Shelf {
            scale: Some(embedder.scale()),
            ..Shelf::default()
        };
        Self {
            state: RwLock::new(shelf),
            embedder: Some(embedder),
        }
    }

    fn read<T>(&self, work: impl FnOnce(&Shelf) -> T) -> T {
        work(&self.state.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Engine for Memory {
    fn search(&self, query: Query) -> BoxFuture<'_, Result<Found, Error>> {
        async move {
            let embedder = self
                .embedder
                .as_ref()
                .filter(|_| query.method != Method::Lexical);
            let language = |model: &Arc<dyn Embedder>| query_language(&query, model.languages());
            let known = embedder.filter(|model| language(model) != LanguageId::Foreign);
            let vector =
                known.and_then(|model| Some((model.query(&query.text).ok()?, language(model))));
            let question = vector.as_ref().map(|(vector, language)| Question {
                vector,
                language: *language,
            });
            Ok(self
                .read(|shelf| Seen::new(shelf, query.reader()).search(&query, question.as_ref())))
        }
        .boxed()
    }

    fn catalog(&self, reader: Reader) -> BoxFuture<'_, Result<Arc<Catalog>, Error>> {
        let catalog = move |shelf: &Shelf| Seen::new(shelf, &reader).catalog();
        async move { Ok(Arc::new(self.read(catalog))) }.boxed()
    }

    fn embed_pending(&self, most: usize) -> BoxFuture<'_, Result<Settled, Error>> {
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
        reader: Reader,
    ) -> BoxFuture<'_, Result<Option<Arc<Document>>, Error>> {
        async move { Ok(self.read(|shelf| shelf.fetch(&id, &reader))) }.boxed()
    }

    fn apply(&self, changes: Vec<Change>) -> BoxFuture<'_, Result<Generation, Error>> {
        async move {
            engine::check_batch(&changes)?;
            let mut shelf = self.state.write().unwrap_or_else(PoisonError::into_inner);
            Ok(shelf.apply(changes))
        }
        .boxed()
    }

    fn inventory(&self) -> BoxFuture<'_, Result<Vec<Held>, Error>> {
        async move { Ok(self.read(Shelf::inventory)) }.boxed()
    }

    fn status(&self) -> BoxFuture<'_, Result<Status, Error>> {
        async move { Ok(self.read(|shelf| shelf.status(self.embedder.is_some()))) }.boxed()
    }
}

#[derive(Default)]
struct Shelf {
    entries: BTreeMap<DocId, Entry>,
    generation: Generation,
    /// What the cosines of the model are worth.
    scale: Option<Scale>,
}

struct Entry {
    /// Each passage with its vector, once they are made.
    vectors: Option<Vec<(Range<usize>, Vec<f32>)>>,
    mapped: Mapped,
    title: Postings,
    body: Postings,
}

impl Entry {
    fn new(document: Document) -> Self {
        let mapped = Mapped::new(document);
        let (title, body) = Postings::of(&mapped.document, mapped.language);
        Self {
            vectors: None,
            mapped,
            title,
            body,
        }
    }
}

/// What BM25 has to know about one field of all documents.
struct Statistics {
    documents: u64,
    mean_length: f32,
}

impl Statistics {
    fn idf(&self, documents_with: usize) -> f32 {
        postings::idf(self.documents, documents_with as u64)
    }

    fn bm25(&self, rarity: f32, occurrences: usize, length: usize) -> f32 {
        rarity * postings::term_frequency_weight(occurrences, length, self.mean_length)
    }
}

impl Shelf {
    fn apply(&mut self, changes: Vec<Change>) -> Generation {
        if changes.is_empty() {
            return self.generation;
        }
        for change in changes {
            match change {
                Change::Put(document) => {
                    self.entries
                        .insert(document.id.clone(), Entry::new(document));
                }
                Change::Remove(id) => {
                    self.entries.remove(&id);
                }
            }
        }
        self.generation = self.generation.next();
        self.generation
    }

    fn fetch(&self, id: &DocId, reader: &Reader) -> Option<Arc<Document>> {
        let document = self.entries.get(id).map(|entry| &entry.mapped.document);
        document
            .filter(|document| reader.can_see(document))
            .cloned()
    }

    fn status(&self, has_model: bool) -> Status {
        let settled = self.embedding_progress(has_model);
        Status {
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

    fn inventory(&self) -> Vec<Held> {
        let documents = self.entries.values().map(|entry| &entry.mapped.document);
        documents
            .map(|document| Held {
                id: document.id.clone(),
                source: document.source.clone(),
                hash: document.hash.clone(),
            })
            .collect()
    }

    fn embedding_progress(&self, has_model: bool) -> Settled {
        let left = self
            .entries
            .values()
            .filter(|entry| entry.vectors.is_none());
        let left = if has_model { left.count() as u64 } else { 0 };
        Settled {
            done: self.entries.len() as u64 - left,
            left,
        }
    }

    fn embed_pending(&mut self, model: &dyn Embedder, most: usize) -> Result<(), Error> {
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
