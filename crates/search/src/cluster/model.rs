//! The models whose vectors can be searched: the one in use, and those that may have been in use before.
//!
//! The head names the model whose vectors answer. A process that was started with another one asks with
//! that one all the same, as long as the program has it, so that all of them answer alike while the
//! vectors of a new model are made.

use std::sync::{Arc, OnceLock};

use super::head::IndexHead;
use super::layout::{CollectionNames, model_name};
use crate::embed::QueryCache;
use crate::embedder::Embedder;
use crate::engine::SPAN_TARGET;

/// A model, and where its vectors are.
pub(super) struct ClusterModel {
    /// As points and the head name it.
    pub name: String,
    /// The collection of its passages.
    pub passages: String,
    pub embedder: Arc<dyn Embedder>,
    questions: QueryCache<Vec<f32>>,
}

impl ClusterModel {
    fn new(names: &CollectionNames, embedder: Arc<dyn Embedder>) -> Self {
        let name = model_name(embedder.fingerprint());
        Self {
            passages: names.passages(&name),
            name,
            embedder,
            questions: QueryCache::new(|vector: &Vec<f32>| vector.len() * size_of::<f32>()),
        }
    }

    /// A text as a question; nothing where the model fails: words alone are a worse answer than both, and
    /// a better one than none.
    pub(super) fn embed_query(&self, text: &str) -> Option<Arc<Vec<f32>>> {
        let embed = || {
            let _span = tracing::info_span!(target: SPAN_TARGET, "embed").entered();
            self.embedder.query(text)
        };
        match self.questions.get(text, embed) {
            Ok(question) => Some(question),
            Err(error) => {
                tracing::warn!(%error, "a question could not be turned into a vector");
                None
            }
        }
    }
}

/// Makes the models that may have been in use before.
pub(super) type PreviousModelFactory = Box<dyn Fn() -> Vec<Arc<dyn Embedder>> + Send + Sync>;

/// The models of one process.
pub(super) struct ClusterModels {
    /// The one that the settings ask for; without it nothing is searched by meaning.
    pub own: Option<Arc<ClusterModel>>,
    names: CollectionNames,
    former: PreviousModelFactory,
    made: OnceLock<Vec<Arc<ClusterModel>>>,
}

impl ClusterModels {
    pub(super) fn new(
        names: &CollectionNames,
        own: Option<Arc<dyn Embedder>>,
        former: PreviousModelFactory,
    ) -> Self {
        Self {
            own: own.map(|embedder| Arc::new(ClusterModel::new(names, embedder))),
            names: names.clone(),
            former,
            made: OnceLock::new(),
        }
    }

    /// The model whose vectors answer; nothing where this program does not have it.
    pub(super) fn serving(&self, head: &IndexHead) -> Option<Arc<ClusterModel>> {
        let own = self.own.as_ref()?;
        if head.model.is_empty() || own.name == head.model {
            return Some(own.clone());
        }
        // They are made when one of them is needed: their weights take memory.
        let former = self.made.get_or_init(|| {
            let made = (self.former)().into_iter();
            made.map(|embedder| Arc::new(ClusterModel::new(&self.names, embedder)))
                .collect()
        });
        former.iter().find(|one| one.name == head.model).cloned()
    }
}
