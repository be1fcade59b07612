//! Serves queries with the previous embedding model until the vectors of the new one are complete.

use std::path::Path;
use std::sync::Arc;

use crate::embed::QueryCache;
use crate::embedder::Embedder;
use crate::engine::SPAN_TARGET;
use crate::error::SearchError;
use crate::vectors::{LiveDocuments, QueryVector, VectorModel, VectorStore, VectorView};

/// An embedding model with a cache of embedded queries.
pub(super) struct CachingQueryEmbedder {
    pub embedder: Arc<dyn Embedder>,
    queries: QueryCache<QueryVector>,
}

impl CachingQueryEmbedder {
    pub(super) fn new(embedder: Arc<dyn Embedder>) -> Self {
        Self {
            embedder,
            queries: QueryCache::new(QueryVector::bytes),
        }
    }

    /// Whether embedding a query costs next to nothing.
    pub(super) fn is_query_cached(&self, text: &str) -> bool {
        self.embedder.is_instant() || self.queries.contains(text)
    }

    /// Embeds a query, quantized for the vectors of `view`.
    pub(super) fn embed_query(
        &self,
        text: &str,
        view: &VectorView,
    ) -> Result<Arc<QueryVector>, SearchError> {
        self.queries.get(text, || {
            let _span = tracing::info_span!(target: SPAN_TARGET, "embed").entered();
            view.question(&self.embedder.query(text)?)
        })
    }
}

/// A model that is no longer the configured one, with the vectors it left behind.
pub(super) struct PreviousModel {
    pub query_embedder: CachingQueryEmbedder,
    store: VectorStore,
}

impl PreviousModel {
    /// Of these models, the one with the most vectors below `root`.
    pub(super) fn find(
        root: &Path,
        models: impl Iterator<Item = Arc<dyn Embedder>>,
    ) -> Option<Self> {
        let stores = models.filter_map(|embedder| {
            let model = VectorModel::new(embedder.fingerprint(), embedder.dimensions()).ok()?;
            // A store that cannot be opened is of no use, and is removed once the new vectors are complete.
            let store = VectorStore::open_read_only(root, model).ok()?;
            Some(Self {
                query_embedder: CachingQueryEmbedder::new(embedder),
                store,
            })
        });
        stores
            .filter(|previous| previous.store.rows() > 0)
            .max_by_key(|previous| previous.store.rows())
    }

    pub(super) fn view(&self, live: &LiveDocuments) -> VectorView {
        VectorView::new(&self.store, live)
    }
}
