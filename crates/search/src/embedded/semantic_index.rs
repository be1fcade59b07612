//! Passages into vectors beside the index, and a question into the documents nearest to it.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use super::digest::digest;
use super::previous_model::{CachingQueryEmbedder, PreviousModel};
use super::snapshot::IndexSnapshot;
use crate::analysis::LanguageId;
use crate::document::Document;
use crate::embedder::{Embedder, ModelLanguages};
use crate::engine::EmbeddingProgress;
use crate::error::SearchError;
use crate::fusion::CosineScale;
use crate::passage::embeddable_passages;
use crate::vectors::{self, LiveDocuments, QueryVector, VectorModel, VectorStore, VectorView};

/// The folder of the vectors inside the folder of the index.
const FOLDER: &str = "vectors";

/// How many passages are turned into vectors before they are written. A crash costs no more work
/// than this, and each writing costs a file.
const BATCH_PASSAGES: usize = 256;

/// How long vectors are made before they are shown. Showing takes longer the more documents there
/// are, and whoever waits wants to see how far it is.
const SLICE_DURATION: Duration = Duration::from_millis(500);

/// The models of an index.
pub(super) struct IndexModels<'m> {
    /// The one in use.
    pub newest: Arc<dyn Embedder>,
    /// Those that may have been in use before, made only where another model has left vectors.
    pub former: Box<dyn FnOnce() -> Vec<Arc<dyn Embedder>> + 'm>,
}

/// The vectors of an index and the model that makes them.
pub(super) struct SemanticIndex {
    query_embedder: CachingQueryEmbedder,
    store: Mutex<VectorStore>,
    /// Answers until the vectors of this model are made.
    former: RwLock<Option<PreviousModel>>,
    read_only: bool,
}

/// The vectors of the documents of one generation.
pub(super) struct VectorViews {
    /// Those of the model in use.
    pub own: VectorView,
    /// Those of the model used before, while they know more of the documents.
    former: Option<VectorView>,
}

/// A question as the vectors of one generation are asked.
pub(super) struct SemanticQuery<'s> {
    pub question: Arc<QueryVector>,
    pub view: &'s VectorView,
    /// What the cosines are worth.
    pub scale: CosineScale,
    /// What is known of its language.
    pub language: LanguageId,
}

impl SemanticIndex {
    /// Opens the vectors beside the index in `dir`. Vectors can be made again, so those that are
    /// damaged or of another version are thrown away, and `told` says why.
    pub(super) fn open(
        dir: &Path,
        IndexModels { newest, former }: IndexModels<'_>,
        read_only: bool,
        told: &mut Vec<String>,
    ) -> Result<Self, SearchError> {
        let embedder = newest;
        let root = dir.join(FOLDER);
        let model = VectorModel::new(embedder.fingerprint(), embedder.dimensions())?;
        let store = if read_only {
            VectorStore::open_read_only(&root, model)?
        } else {
            open_or_rebuild(&root, &model, told)?
        };
        let former = if store.has_other_models() {
            let is_other = |one: &Arc<dyn Embedder>| one.fingerprint() != embedder.fingerprint();
            PreviousModel::find(&root, former().into_iter().filter(is_other))
        } else {
            None
        };
        Ok(Self {
            query_embedder: CachingQueryEmbedder::new(embedder),
            store: Mutex::new(store),
            former: RwLock::new(former),
            read_only,
        })
    }

    /// The vectors of the documents of a generation.
    pub(super) fn views(&self, live: &LiveDocuments) -> VectorViews {
        let store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        let own = VectorView::new(&store, live);
        drop(store);
        let left = own.missing().len();
        let former = self.former.read().unwrap_or_else(PoisonError::into_inner);
        let former = former.as_ref().filter(|_| left > 0);
        let former = former.map(|former| former.view(live));
        VectorViews {
            former: former.filter(|view| view.missing().len() < left),
            own,
        }
    }

    /// The languages of the model that answers.
    pub(super) fn languages(&self, views: &VectorViews) -> ModelLanguages {
        let former = self.former.read().unwrap_or_else(PoisonError::into_inner);
        let asker = match (&*former, &views.former) {
            (Some(former), Some(_)) => &former.query_embedder,
            _ => &self.query_embedder,
        };
        asker.embedder.languages()
    }

    /// Whether a question costs next to nothing.
    pub(super) fn is_query_cached(&self, text: &str, views: &VectorViews) -> bool {
        let former = self.former.read().unwrap_or_else(PoisonError::into_inner);
        match (&*former, &views.former) {
            (Some(former), Some(_)) => former.query_embedder.is_query_cached(text),
            _ => self.query_embedder.is_query_cached(text),
        }
    }

    /// A text as a question to the vectors that know most.
    pub(super) fn embed_query<'s>(
        &self,
        text: &str,
        views: &'s VectorViews,
    ) -> Result<SemanticQuery<'s>, SearchError> {
        let former = self.former.read().unwrap_or_else(PoisonError::into_inner);
        let (asker, view) = match (&*former, &views.former) {
            (Some(former), Some(view)) => (&former.query_embedder, view),
            _ => (&self.query_embedder, &views.own),
        };
        Ok(SemanticQuery {
            question: asker.embed_query(text, view)?,
            view,
            scale: asker.embedder.scale(),
            language: LanguageId::English,
        })
    }

    /// Makes vectors for the documents of these ordinals until [`SLICE`] has passed, at least for
    /// one. `read` brings a document by its ordinal.
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

    /// The same for as many as are written at once.
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
            let (cut, some): (Vec<_>, Vec<_>) = embeddable.into_iter().unzip();
            texts.extend(some);
            batch.push((vector_key(&document), cut));
            if texts.len() >= BATCH_PASSAGES {
                break;
            }
        }
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let mut made = self.query_embedder.embedder.passages(&texts)?.into_iter();
        let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let documents: Vec<_> = batch
            .into_iter()
            .map(|(key, cut)| vectors::EmbeddedDocument {
                key,
                passages: cut
                    .into_iter()
                    .zip(made.by_ref())
                    .map(|(passage, vector)| vectors::EmbeddedPassage {
                        start: place(passage.range.start),
                        end: place(passage.range.end),
                        vector,
                    })
                    .collect(),
            })
            .collect();
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        store.append(&documents)
    }

    /// Brings the store in order once everything has its vectors: merges what is small, drops what
    /// is gone, and removes the vectors of models that are no longer used.
    pub(super) fn compact(&self, live: &LiveDocuments) -> Result<(), SearchError> {
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        store.maintain(live)?;
        *self.former.write().unwrap_or_else(PoisonError::into_inner) = None;
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
    told: &mut Vec<String>,
) -> Result<VectorStore, SearchError> {
    match VectorStore::open_without_corrupt(root, model.clone()) {
        Ok((store, lost)) => {
            for why in &lost {
                tracing::warn!(%why, "some vectors are made again");
            }
            told.extend(lost);
            Ok(store)
        }
        Err(error @ (SearchError::Corrupt { .. } | SearchError::Format { .. })) => {
            tracing::warn!(%error, "the vectors are made again");
            told.push(error.to_string());
            VectorStore::recreate(root, model.clone())
        }
        Err(other) => Err(other),
    }
}

/// How far a generation is.
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

/// Names a document and what of it is embedded.
pub(super) fn vector_key(document: &Document) -> u128 {
    digest([document.id.as_str(), &document.title, &document.text])
}
