//! The semantic half of the index: passage vectors beside the lexical index, and the query embeddings that
//! search them.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use super::digest::digest;
use super::previous_model::{CachingQueryEmbedder, PreviousModel};
use super::snapshot::IndexSnapshot;
use crate::document::Document;
use crate::embedder::{Embedder, ModelLanguages};
use crate::engine::EmbeddingProgress;
use crate::error::SearchError;
use crate::fusion::CosineScale;
use crate::passage::embeddable_passages;
use crate::vectors::{self, LiveDocuments, QueryVector, VectorModel, VectorStore, VectorView};

/// The folder of the vectors inside the index folder.
const FOLDER: &str = "vectors";

/// How many passages are embedded before their vectors are written. A crash loses no more work than this, and
/// each write makes a file.
const BATCH_PASSAGES: usize = 256;

/// How long vectors are computed before they are published. Publishing takes longer the more documents there
/// are, and whoever waits wants to see progress.
const SLICE_DURATION: Duration = Duration::from_millis(500);

/// The embedding models that an index may be opened with.
pub(super) struct IndexModels<'m> {
    /// The configured model.
    pub newest: Arc<dyn Embedder>,
    /// Models that may have been used before, loaded only when another model has left vectors.
    pub previous: Box<dyn FnOnce() -> Vec<Arc<dyn Embedder>> + 'm>,
}

/// The vectors of an index and the model that computes them.
pub(super) struct SemanticIndex {
    query_embedder: CachingQueryEmbedder,
    store: Mutex<VectorStore>,
    /// Serves queries until the vectors of this model are complete.
    previous: RwLock<Option<PreviousModel>>,
    read_only: bool,
}

/// The vectors of one generation's documents.
pub(super) struct VectorViews {
    /// Those of the configured model.
    pub own: VectorView,
    /// Those of the previous model, while they cover more documents.
    previous: Option<VectorView>,
}

/// An embedded query, with the vectors to search.
pub(super) struct SemanticQuery<'s> {
    pub question: Arc<QueryVector>,
    pub view: &'s VectorView,
}

impl SemanticIndex {
    /// Opens the vectors beside the index in `dir`. Vectors can be recomputed, so corrupt ones and those of
    /// another format version are discarded; `reasons` says why.
    pub(super) fn open(
        dir: &Path,
        IndexModels { newest, previous }: IndexModels<'_>,
        read_only: bool,
        reasons: &mut Vec<String>,
    ) -> Result<Self, SearchError> {
        let embedder = newest;
        let root = dir.join(FOLDER);
        let model = VectorModel::new(embedder.fingerprint(), embedder.dimensions())?;
        let store = if read_only {
            VectorStore::open_read_only(&root, model)?
        } else {
            open_or_rebuild(&root, &model, reasons)?
        };
        let previous = if store.has_other_models() {
            let is_other = |one: &Arc<dyn Embedder>| one.fingerprint() != embedder.fingerprint();
            PreviousModel::find(&root, previous().into_iter().filter(is_other))
        } else {
            None
        };
        Ok(Self {
            query_embedder: CachingQueryEmbedder::new(embedder),
            store: Mutex::new(store),
            previous: RwLock::new(previous),
            read_only,
        })
    }

    /// The vectors of a generation's live documents.
    pub(super) fn views(&self, live: &LiveDocuments) -> VectorViews {
        let store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        let own = VectorView::new(&store, live);
        drop(store);
        let left = own.missing().len();
        let previous = self.previous.read().unwrap_or_else(PoisonError::into_inner);
        let previous = previous.as_ref().filter(|_| left > 0);
        let previous = previous.map(|previous| previous.view(live));
        VectorViews {
            previous: previous.filter(|view| view.missing().len() < left),
            own,
        }
    }

    /// The languages of the model that answers.
    pub(super) fn languages(&self, views: &VectorViews) -> ModelLanguages {
        let previous = self.previous.read().unwrap_or_else(PoisonError::into_inner);
        let query_embedder = match (&*previous, &views.previous) {
            (Some(previous), Some(_)) => &previous.query_embedder,
            _ => &self.query_embedder,
        };
        query_embedder.embedder.languages()
    }

    /// Whether embedding a query costs next to nothing.
    pub(super) fn is_query_cached(&self, text: &str, views: &VectorViews) -> bool {
        let previous = self.previous.read().unwrap_or_else(PoisonError::into_inner);
        match (&*previous, &views.previous) {
            (Some(previous), Some(_)) => previous.query_embedder.is_query_cached(text),
            _ => self.query_embedder.is_query_cached(text),
        }
    }

    /// Embeds a query with the model whose vectors cover most documents, and returns the scale of its cosines.
    pub(super) fn embed_query<'s>(
        &self,
        text: &str,
        views: &'s VectorViews,
    ) -> Result<(SemanticQuery<'s>, CosineScale), SearchError> {
        let previous = self.previous.read().unwrap_or_else(PoisonError::into_inner);
        let (query_embedder, view) = match (&*previous, &views.previous) {
            (Some(previous), Some(view)) => (&previous.query_embedder, view),
            _ => (&self.query_embedder, &views.own),
        };
        let query = SemanticQuery {
            question: query_embedder.embed_query(text, view)?,
            view,
        };
        Ok((query, query_embedder.embedder.scale()))
    }

    /// Computes vectors for the documents of these ordinals until [`SLICE_DURATION`] has passed, for at least
    /// one batch. `read` loads a document by its ordinal.
    pub(super) fn embed_pending(
        &self,
        ordinals: &[u32],
        read: impl Fn(u32) -> Result<Option<Arc<Document>>, SearchError>,
    ) -> Result<(), SearchError> {
        let start = Instant::now();
        let mut left = ordinals.iter();
        while left.len() > 0 && (left.len() == ordinals.len() || start.elapsed() < SLICE_DURATION) {
            self.embed_batch(&mut left, &read)?;
        }
        Ok(())
    }

    /// The same for one batch, which is written at once.
    fn embed_batch(
        &self,
        ordinals: &mut std::slice::Iter<'_, u32>,
        read: impl Fn(u32) -> Result<Option<Arc<Document>>, SearchError>,
    ) -> Result<(), SearchError> {
        let mut batch = Vec::new();
        let mut texts = Vec::new();
        for ordinal in ordinals {
            let Some(document) = read(*ordinal)? else {
                continue;
            };
            let embeddable =
                embeddable_passages(&document, self.query_embedder.embedder.languages());
            let (passages, passage_texts): (Vec<_>, Vec<_>) = embeddable.into_iter().unzip();
            texts.extend(passage_texts);
            batch.push((vector_key(&document), passages));
            if texts.len() >= BATCH_PASSAGES {
                break;
            }
        }
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let mut embedded = self.query_embedder.embedder.passages(&texts)?.into_iter();
        let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let documents: Vec<_> = batch
            .into_iter()
            .map(|(key, passages)| vectors::EmbeddedDocument {
                key,
                passages: passages
                    .into_iter()
                    .zip(embedded.by_ref())
                    .map(|(passage, vector)| vectors::EmbeddedPassage {
                        start: offset(passage.range.start),
                        end: offset(passage.range.end),
                        vector,
                    })
                    .collect(),
            })
            .collect();
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        store.append(&documents)
    }

    /// Compacts the store once every document has vectors: merges small segments, drops deleted documents,
    /// and removes the vectors of models that are no longer used.
    pub(super) fn compact(&self, live: &LiveDocuments) -> Result<(), SearchError> {
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        store.maintain(live)?;
        *self
            .previous
            .write()
            .unwrap_or_else(PoisonError::into_inner) = None;
        store.remove_other_models();
        Ok(())
    }

    pub(super) fn is_read_only(&self) -> bool {
        self.read_only
    }
}

fn open_or_rebuild(
    root: &Path,
    model: &VectorModel,
    reasons: &mut Vec<String>,
) -> Result<VectorStore, SearchError> {
    match VectorStore::open_without_corrupt(root, model.clone()) {
        Ok((store, corrupt)) => {
            for why in &corrupt {
                tracing::warn!(%why, "corrupt vectors discarded, recomputing");
            }
            reasons.extend(corrupt);
            Ok(store)
        }
        Err(error @ (SearchError::Corrupt { .. } | SearchError::Format { .. })) => {
            tracing::warn!(%error, "vector store cannot be used, recomputing all vectors");
            reasons.push(error.to_string());
            VectorStore::recreate(root, model.clone())
        }
        Err(other) => Err(other),
    }
}

/// The progress of the embeddings of a generation.
pub(super) fn embedding_progress(snapshot: &IndexSnapshot) -> EmbeddingProgress {
    let left = snapshot
        .vectors
        .as_ref()
        .map_or(0, |views| views.own.missing().len() as u64);
    EmbeddingProgress {
        done: snapshot.searcher.num_docs().saturating_sub(left),
        left,
    }
}

/// The key of a document's vectors: a digest of its id and of the texts that are embedded.
pub(super) fn vector_key(document: &Document) -> u128 {
    digest([document.id.as_str(), &document.title, &document.text])
}
