//! Settings into the engine that holds the index: one on this machine, or one on a cluster.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use docent_search::{ClusterEngine, ClusterSettings, Embedder, SearchError, ServiceKey};

use crate::cli_error::CliError;
use crate::model_settings;

/// Which engine holds the index.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EngineKind {
    /// An index in a folder, for one process.
    #[default]
    Embedded,
    /// An index on a Qdrant cluster, for any number of them.
    Qdrant,
}

/// The engine, and how it is reached where it is not in this process.
#[derive(Debug, Clone)]
pub struct EngineSettings {
    /// Which one it is.
    pub kind: EngineKind,
    /// The addresses of the nodes.
    pub addresses: Vec<String>,
    /// What the nodes want to see as an API key.
    pub key: Option<ServiceKey>,
    /// A file with the authorities that signed the certificates of the nodes.
    pub ca_file: Option<PathBuf>,
    /// What the names of all collections begin with.
    pub collection: String,
    /// Into how many parts the index is cut; as many as there are addresses without it.
    pub shards: Option<u32>,
    /// On how many nodes each part lies.
    pub replicas: u32,
    /// Whether vectors are in memory as one byte a number.
    pub quantized: bool,
    /// Whether vectors in full are read from disk; without it where they are quantized.
    pub vectors_on_disk: Option<bool>,
    /// Whether what words are found by is read from disk.
    pub words_on_disk: bool,
    /// Whether documents are read from disk.
    pub documents_on_disk: bool,
    /// The longest that one answer may take.
    pub timeout: Duration,
}

impl Default for EngineSettings {
    fn default() -> Self {
        let usual = ClusterSettings::new(Vec::new());
        Self {
            kind: EngineKind::default(),
            addresses: usual.addresses,
            key: usual.key,
            ca_file: usual.ca_file,
            collection: usual.collection,
            shards: usual.shards,
            replicas: usual.replicas,
            quantized: usual.quantized,
            vectors_on_disk: usual.vectors_on_disk,
            words_on_disk: usual.words_on_disk,
            documents_on_disk: usual.documents_on_disk,
            timeout: usual.timeout,
        }
    }
}

impl EngineSettings {
    /// Whether the index is on a cluster.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.kind == EngineKind::Qdrant
    }

    fn settings(&self) -> Result<ClusterSettings, CliError> {
        if self.addresses.is_empty() {
            return Err(CliError::usage(
                "`engine.kind` is `qdrant`, and `engine.addresses` is empty",
            )
            .hint("example: `addresses = [\"http://qdrant-1:6333\", \"http://qdrant-2:6333\"]`"));
        }
        Ok(ClusterSettings {
            key: self.key.clone(),
            ca_file: self.ca_file.clone(),
            collection: self.collection.clone(),
            shards: self.shards,
            replicas: self.replicas,
            quantized: self.quantized,
            vectors_on_disk: self.vectors_on_disk,
            words_on_disk: self.words_on_disk,
            documents_on_disk: self.documents_on_disk,
            timeout: self.timeout,
            ..ClusterSettings::new(self.addresses.clone())
        })
    }

    /// The index on the cluster, to be searched and changed.
    ///
    /// # Errors
    /// When the settings cannot be used or the cluster does not answer.
    pub fn open(&self, embedder: Option<Arc<dyn Embedder>>) -> Result<ClusterEngine, CliError> {
        let settings = self.settings()?;
        Ok(ClusterEngine::open_with_previous(
            settings,
            embedder,
            model_settings::built_in,
        )?)
    }

    /// The index on the cluster, to be searched.
    ///
    /// # Errors
    /// The same, and when there is none.
    pub fn open_read_only(
        &self,
        embedder: Option<Arc<dyn Embedder>>,
    ) -> Result<ClusterEngine, CliError> {
        let settings = self.settings()?;
        let opened = ClusterEngine::open_read_only_with_previous(
            settings,
            embedder,
            model_settings::built_in,
        );
        opened.map_err(|error| match error {
            SearchError::Missing { .. } => CliError::failed(format!(
                "there is no index `{}` on the cluster",
                self.collection
            ))
            .hint("make it with `docent index --engine qdrant`"),
            other => other.into(),
        })
    }

    /// Where the index is, for people.
    #[must_use]
    pub fn index_address(&self) -> String {
        format!("qdrant:{}", self.collection)
    }
}

/// Says what a person who asked should hear of a failure that is nobody's mistake.
pub(crate) fn explain(error: &(dyn std::error::Error + 'static)) -> Option<(String, String)> {
    match error.downcast_ref::<SearchError>()? {
        error @ SearchError::Cluster { .. } => Some((
            format!("the documents cannot be searched right now: {error}"),
            "try again in a few seconds; nothing is wrong with the question".to_owned(),
        )),
        _ => None,
    }
}
