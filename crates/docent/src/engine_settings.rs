//! Builds the search engine from the settings: the embedded index in a folder, or a Qdrant cluster.

use std::sync::Arc;

use docent_search::{ClusterEngine, ClusterSettings, Embedder, SearchError};

use crate::cli_error::CliError;
use crate::model_settings;

/// The kind of search engine that holds the index.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EngineKind {
    /// An index in a folder, which one process writes.
    #[default]
    Embedded,
    /// An index on a Qdrant cluster, which any number of servers share.
    Qdrant,
}

/// The engine, and the settings of the cluster if the index is there.
#[derive(Debug, Clone)]
pub struct EngineSettings {
    /// Kind of the engine.
    pub kind: EngineKind,
    /// How the cluster is reached and the index created there. Without addresses unless the engine is a cluster.
    pub cluster: ClusterSettings,
}

impl Default for EngineSettings {
    fn default() -> Self {
        Self {
            kind: EngineKind::default(),
            cluster: ClusterSettings::new(Vec::new()),
        }
    }
}

impl EngineSettings {
    /// Whether the index is on a cluster, and so shared with other servers.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.kind == EngineKind::Qdrant
    }

    fn cluster(&self) -> Result<ClusterSettings, CliError> {
        if self.cluster.addresses.is_empty() {
            return Err(CliError::usage(
                "`engine.kind` is `qdrant`, and `engine.addresses` is empty",
            )
            .hint("example: `addresses = [\"http://qdrant-1:6333\", \"http://qdrant-2:6333\"]`"));
        }
        Ok(self.cluster.clone())
    }

    /// Opens the index on the cluster for reading and writing.
    ///
    /// # Errors
    /// If the settings are invalid or the cluster does not answer.
    pub fn open(&self, embedder: Option<Arc<dyn Embedder>>) -> Result<ClusterEngine, CliError> {
        Ok(ClusterEngine::open_with_previous(
            self.cluster()?,
            embedder,
            model_settings::built_in,
        )?)
    }

    /// Opens the index on the cluster for reading only.
    ///
    /// # Errors
    /// As for [`Self::open`], and if the index does not exist.
    pub fn open_read_only(
        &self,
        embedder: Option<Arc<dyn Embedder>>,
    ) -> Result<ClusterEngine, CliError> {
        let opened = ClusterEngine::open_read_only_with_previous(
            self.cluster()?,
            embedder,
            model_settings::built_in,
        );
        opened.map_err(|error| match error {
            SearchError::Missing { .. } => CliError::failed(format!(
                "there is no index `{}` on the cluster",
                self.cluster.collection
            ))
            .hint("make it with `docent index --engine qdrant`"),
            other => other.into(),
        })
    }

    /// The location of the index as messages show it, such as `qdrant:docent`.
    #[must_use]
    pub fn index_address(&self) -> String {
        format!("qdrant:{}", self.cluster.collection)
    }
}

/// Translates a cluster outage into a tool error with a hint. It is a transient failure and not the caller's mistake,
/// so the caller learns the cause and can retry; other search errors stay internal errors.
pub(crate) fn explain(error: &(dyn std::error::Error + 'static)) -> Option<(String, String)> {
    match error.downcast_ref::<SearchError>()? {
        error @ SearchError::Cluster { .. } => Some((
            format!("the documents cannot be searched right now: {error}"),
            "try again in a few seconds; nothing is wrong with the question".to_owned(),
        )),
        _ => None,
    }
}
