//! Builds the search engine from the settings: the embedded index in a folder, or a Qdrant cluster.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use docent_search::{ClusterEngine, ClusterSettings, Embedder, SearchError, ServiceKey};

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

/// The engine, and the connection to the cluster if the index is there. Defaults come from [`ClusterSettings`].
#[derive(Debug, Clone)]
pub struct EngineSettings {
    /// Kind of the engine.
    pub kind: EngineKind,
    /// URLs of the cluster nodes; requests fail over between them.
    pub addresses: Vec<String>,
    /// API key of the cluster.
    pub key: Option<ServiceKey>,
    /// PEM file with the certificate authorities to trust for the nodes.
    pub ca_file: Option<PathBuf>,
    /// Prefix of all collection names of this index.
    pub collection: String,
    /// Number of shards when the index is created; by default, the number of addresses.
    pub shards: Option<u32>,
    /// Replication factor: the number of nodes that hold each shard.
    pub replicas: u32,
    /// Whether nodes search quantized vectors in memory, one byte per dimension.
    pub quantized: bool,
    /// Whether full-precision vectors stay on disk; by default they do if vectors are quantized.
    pub vectors_on_disk: Option<bool>,
    /// Whether the keyword index stays on disk.
    pub words_on_disk: bool,
    /// Whether document payloads stay on disk.
    pub documents_on_disk: bool,
    /// Deadline for one answer of the cluster, retries included.
    pub timeout: Duration,
}

impl Default for EngineSettings {
    fn default() -> Self {
        let defaults = ClusterSettings::new(Vec::new());
        Self {
            kind: EngineKind::default(),
            addresses: defaults.addresses,
            key: defaults.key,
            ca_file: defaults.ca_file,
            collection: defaults.collection,
            shards: defaults.shards,
            replicas: defaults.replicas,
            quantized: defaults.quantized,
            vectors_on_disk: defaults.vectors_on_disk,
            words_on_disk: defaults.words_on_disk,
            documents_on_disk: defaults.documents_on_disk,
            timeout: defaults.timeout,
        }
    }
}

impl EngineSettings {
    /// Whether the index is on a cluster, and so shared with other servers.
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

    /// Opens the index on the cluster for reading and writing.
    ///
    /// # Errors
    /// If the settings are invalid or the cluster does not answer.
    pub fn open(&self, embedder: Option<Arc<dyn Embedder>>) -> Result<ClusterEngine, CliError> {
        let settings = self.settings()?;
        Ok(ClusterEngine::open_with_previous(
            settings,
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

    /// The location of the index as messages show it, such as `qdrant:docent`.
    #[must_use]
    pub fn index_address(&self) -> String {
        format!("qdrant:{}", self.collection)
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
