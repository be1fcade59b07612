//! Settings of a cluster: where it is, how its collections are named, and how they are created.

use std::path::PathBuf;
use std::time::Duration;

use super::layout::FORMAT;
use crate::embed::ServiceKey;
use crate::error::SearchError;

/// The most node addresses of one cluster. Any node answers for all of them, so a few are enough.
pub const MAX_ADDRESSES: usize = 64;

/// The most characters that a collection's name may have.
pub const MAX_COLLECTION_CHARS: usize = 100;

/// From how many documents on an index is treated as large. Below this, searching passages without an HNSW
/// graph takes no longer than with one, and reading the payloads of some documents no longer than an answer.
const LARGE_INDEX_DOCUMENTS: u64 = 20_000;

/// How an index on a Qdrant cluster is reached and created.
#[derive(Clone, Debug)]
pub struct ClusterSettings {
    /// The addresses of the nodes, such as `http://qdrant-1:6333`. A request goes to one of them, and to the
    /// next when that one does not answer.
    pub addresses: Vec<String>,
    /// The API key that the nodes require, if any.
    pub key: Option<ServiceKey>,
    /// A PEM file with the certificate authorities to trust for the nodes' certificates, in place of the
    /// public roots.
    pub ca_file: Option<PathBuf>,
    /// The prefix of the names of all collections of this index.
    pub collection: String,
    /// The number of shards when the index is created; by default one for each address.
    pub shards: Option<u32>,
    /// The replication factor: on how many nodes each shard is stored when the index is created.
    pub replicas: u32,
    /// Whether vectors in memory are quantized to one byte a dimension.
    pub quantized: bool,
    /// Whether full-precision vectors are stored on disk only; by default they are where vectors are
    /// quantized.
    pub vectors_on_disk: Option<bool>,
    /// Whether the posting lists of terms are stored on disk only.
    pub words_on_disk: bool,
    /// Whether documents are stored on disk only.
    pub documents_on_disk: bool,
    /// The deadline of one answer, retries on other nodes included.
    pub timeout: Duration,
    /// The deadline of one batch of changes, waiting for nodes to come back included.
    pub write_timeout: Duration,
    /// The grace period before garbage collection: how long ended versions stay readable for answers that
    /// began before.
    pub garbage_collection_grace: Duration,
    /// From how many documents on an index is large. While a large index lacks vectors of a model, the nodes'
    /// HNSW graphs are deferred and documents are found by their words alone. In a large index, nodes are
    /// also asked for the document frequency of a term before its documents are searched.
    #[doc(hidden)]
    pub large_index_documents: u64,
    /// The format of the collections. Tests set it to act as an older program.
    #[doc(hidden)]
    pub format: u32,
}

impl ClusterSettings {
    /// The default settings for a cluster at these addresses.
    pub fn new(addresses: Vec<String>) -> Self {
        Self {
            addresses,
            key: None,
            ca_file: None,
            collection: "docent".to_owned(),
            shards: None,
            replicas: 2,
            quantized: true,
            vectors_on_disk: None,
            words_on_disk: true,
            documents_on_disk: true,
            timeout: Duration::from_millis(1_500),
            write_timeout: Duration::from_secs(60),
            garbage_collection_grace: Duration::from_secs(10),
            large_index_documents: LARGE_INDEX_DOCUMENTS,
            format: FORMAT,
        }
    }

    pub(super) fn are_vectors_on_disk(&self) -> bool {
        self.vectors_on_disk.unwrap_or(self.quantized)
    }

    /// Rejects settings that cannot be used.
    pub(super) fn check(&self) -> Result<(), SearchError> {
        if self.addresses.is_empty() || self.addresses.len() > MAX_ADDRESSES {
            return Err(invalid_address(format!(
                "a cluster has 1 to {MAX_ADDRESSES} addresses, not {}",
                self.addresses.len()
            )));
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let name = &self.collection;
        let is_name =
            !name.is_empty() && name.len() <= MAX_COLLECTION_CHARS && name.chars().all(is_plain);
        if !is_name {
            return Err(SearchError::Cluster {
                what: "the collection name cannot be used".to_owned(),
                hint: "use 1 to 100 letters, digits, `-` and `_`",
                source: None,
            });
        }
        Ok(())
    }
}

/// The error for an address, or a list of addresses, that cannot be used.
pub(super) fn invalid_address(what: String) -> SearchError {
    SearchError::Cluster {
        what,
        hint: "give addresses such as `http://qdrant-1:6333`, without user, password, `?` and `#`",
        source: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_names_have_bounds() {
        let of = |count: usize| ClusterSettings::new(vec!["http://a:1".to_owned(); count]);
        for (count, is_good) in [
            (0, false),
            (1, true),
            (MAX_ADDRESSES, true),
            (MAX_ADDRESSES + 1, false),
        ] {
            assert_eq!(of(count).check().is_ok(), is_good, "{count}");
        }
        let longest = "x".repeat(MAX_COLLECTION_CHARS);
        let too_long = "x".repeat(MAX_COLLECTION_CHARS + 1);
        for (name, is_good) in [
            ("docs-1_a", true),
            (&*longest, true),
            (&*too_long, false),
            ("", false),
            ("a/b", false),
            ("ä", false),
        ] {
            let settings = ClusterSettings {
                collection: name.to_owned(),
                ..of(1)
            };
            assert_eq!(settings.check().is_ok(), is_good, "{name}");
        }
    }
}
