//! The embedding models of a process: the configured one, and those that an index may have been embedded with
//! before.
//!
//! The head names the model whose vectors answer. A process that was started with another model still embeds
//! queries with the head's, as long as the program has it, so that all processes answer alike while the
//! vectors of a new model are computed.

use std::sync::{Arc, OnceLock};

use super::head::IndexHead;
use super::layout::{CollectionNames, model_name};
use crate::embed::QueryCache;
use crate::embedder::Embedder;
use crate::engine::SPAN_TARGET;

/// An embedding model, the collection that holds its passages, and a cache of embedded queries.
pub(super) struct ClusterModel {
    /// Its name in points and in the head, a hash of its fingerprint.
    pub name: String,
    pub passages: String,
    pub embedder: Arc<dyn Embedder>,
    queries: QueryCache<Vec<f32>>,
}

impl ClusterModel {
    fn new(names: &CollectionNames, embedder: Arc<dyn Embedder>) -> Self {
        let name = model_name(embedder.fingerprint());
        Self {
            passages: names.passages(&name),
            name,
            embedder,
            queries: QueryCache::new(|vector: &Vec<f32>| vector.len() * size_of::<f32>()),
        }
    }

    /// The embedding of a query; `None` when the model fails. Words alone give a worse answer than both, and
    /// a better one than none.
    pub(super) fn embed_query(&self, text: &str) -> Option<Arc<Vec<f32>>> {
        let embed = || {
            let _span = tracing::info_span!(target: SPAN_TARGET, "embed").entered();
            self.embedder.query(text)
        };
        match self.queries.get(text, embed) {
            Ok(question) => Some(question),
            Err(error) => {
                tracing::warn!(%error, "could not embed the query, searching by words alone");
                None
            }
        }
    }
}

/// Loads the models that the index may have been embedded with before.
pub(super) type PreviousModelFactory = Box<dyn Fn() -> Vec<Arc<dyn Embedder>> + Send + Sync>;

/// The embedding models that a process can use. The previous ones are loaded on first use, because their
/// weights take memory.
pub(super) struct ClusterModels {
    /// The configured model; without one there is no semantic search.
    pub own: Option<Arc<ClusterModel>>,
    names: CollectionNames,
    previous: PreviousModelFactory,
    loaded: OnceLock<Vec<Arc<ClusterModel>>>,
}

impl ClusterModels {
    pub(super) fn new(
        names: &CollectionNames,
        own: Option<Arc<dyn Embedder>>,
        previous: PreviousModelFactory,
    ) -> Self {
        Self {
            own: own.map(|embedder| Arc::new(ClusterModel::new(names, embedder))),
            names: names.clone(),
            previous,
            loaded: OnceLock::new(),
        }
    }

    /// The model whose vectors answer; `None` when this program does not have it.
    pub(super) fn serving(&self, head: &IndexHead) -> Option<Arc<ClusterModel>> {
        let own = self.own.as_ref()?;
        if head.model.is_empty() || own.name == head.model {
            return Some(own.clone());
        }
        // Loaded only when one of them is needed: their weights take memory.
        let previous = self.loaded.get_or_init(|| {
            let loaded = (self.previous)().into_iter();
            loaded
                .map(|embedder| Arc::new(ClusterModel::new(&self.names, embedder)))
                .collect()
        });
        previous.iter().find(|one| one.name == head.model).cloned()
    }
}
