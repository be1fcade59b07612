//! The vectors of the model used before into answers, until those of the new one are made.

use std::path::Path;
use std::sync::Arc;

use crate::embed::QueryCache;
use crate::embedder::Embedder;
use crate::engine::SPAN_TARGET;
use crate::error::SearchError;
use crate::vectors::{LiveDocuments, QueryVector, VectorModel, VectorStore, VectorView};

/// A model, and what was made of the questions to its vectors.
pub(super) struct CachingQueryEmbedder {
    pub embedder: Arc<dyn Embedder>,
    questions: QueryCache<QueryVector>,
}

impl CachingQueryEmbedder {
    pub(super) fn new(embedder: Arc<dyn Embedder>) -> Self {
        Self {
            embedder,
            questions: QueryCache::new(QueryVector::bytes),
        }
    }

    /// Whether a question costs next to nothing.
    pub(super) fn is_query_cached(&self, text: &str) -> bool {
        self.embedder.is_instant() || self.questions.contains(text)
    }

    /// A text as a question to the vectors of `view`.
    pub(super) fn embed_query(
        &self,
        text: &str,
        view: &VectorView,
    ) -> Result<Arc<QueryVector>, SearchError> {
        self.questions.get(text, || {
            let _span = tracing::info_span!(target: SPAN_TARGET, "embed").entered();
            view.question(&self.embedder.query(text)?)
        })
    }
}

/// A model that is no longer the one to be used, with the vectors it left behind.
pub(super) struct PreviousModel {
    pub query_embedder: CachingQueryEmbedder,
    store: VectorStore,
}

impl PreviousModel {
    /// The one of these models that left most vectors below `root`.
    pub(super) fn find(
        root: &Path,
        models: impl Iterator<Item = Arc<dyn Embedder>>,
    ) -> Option<Self> {
        let left = models.filter_map(|embedder| {
            let model = VectorModel::new(embedder.fingerprint(), embedder.dimensions()).ok()?;
            // What cannot be opened helps nobody, and is removed when the new vectors are made.
            let store = VectorStore::open_read_only(root, model).ok()?;
            Some(Self {
                query_embedder: CachingQueryEmbedder::new(embedder),
                store,
            })
        });
        left.filter(|former| former.store.rows() > 0)
            .max_by_key(|former| former.store.rows())
    }

    pub(super) fn view(&self, live: &LiveDocuments) -> VectorView {
        VectorView::new(&self.store, live)
    }
}
