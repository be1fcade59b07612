//! Where a cluster is, what its collections are called, and how they are made.

use std::path::PathBuf;
use std::time::Duration;

use super::layout::FORMAT;
use crate::embed::ServiceKey;
use crate::error::SearchError;

/// The most addresses of one cluster. Any node answers for all of them, so a few are enough.
pub const MAX_ADDRESSES: usize = 64;

/// The most characters of a collection's name.
pub const MAX_COLLECTION_CHARS: usize = 100;

/// How many documents are many: searching the passages of fewer takes no longer without graphs, and reading what
/// is kept of some of them no longer than an answer.
const MANY: u64 = 20_000;

/// How an index on a cluster is reached and made.
#[derive(Clone, Debug)]
pub struct ClusterSettings {
    /// The addresses of the nodes, such as `http://qdrant-1:6333`. Each question goes to one of them, and to
    /// the next where that one does not answer.
    pub addresses: Vec<String>,
    /// What the nodes want to see as an API key.
    pub key: Option<ServiceKey>,
    /// A PEM file with the authorities that signed the certificates of the nodes, in place of those that
    /// browsers know.
    pub ca_file: Option<PathBuf>,
    /// What the names of all collections of this index begin with.
    pub collection: String,
    /// Into how many parts the index is cut when it is made; as many as there are addresses where this says
    /// nothing.
    pub shards: Option<u32>,
    /// On how many nodes each part lies when it is made.
    pub replicas: u32,
    /// Whether vectors are kept in memory as one byte a number.
    pub quantized: bool,
    /// Whether vectors in full lie on disk alone; without it where they are quantized.
    pub vectors_on_disk: Option<bool>,
    /// Whether what words are found by lies on disk alone.
    pub words_on_disk: bool,
    /// Whether documents lie on disk alone.
    pub documents_on_disk: bool,
    /// The longest that one answer may take, whatever fails meanwhile.
    pub timeout: Duration,
    /// The longest that one batch of changes waits for nodes to come back.
    pub write_timeout: Duration,
    /// How long what is gone can still be read by answers that began before.
    pub keep: Duration,
    /// From how many documents on those that have no vectors of a model yet are a long way to go: nodes make its
    /// graphs at the end of it, and documents are found by their words until then. From so many on nodes are also
    /// asked how many documents have a word, before any of these is looked for.
    #[doc(hidden)]
    pub many: u64,
    /// The format of the collections. Tests play an older program with it.
    #[doc(hidden)]
    pub format: u32,
}

impl ClusterSettings {
    /// The usual settings for a cluster at these addresses.
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
            keep: Duration::from_secs(10),
            many: MANY,
            format: FORMAT,
        }
    }

    pub(super) fn are_vectors_on_disk(&self) -> bool {
        self.vectors_on_disk.unwrap_or(self.quantized)
    }

    /// Refuses what cannot be used.
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
                what: "the name of the collection cannot be used".to_owned(),
                hint: "use 1 to 100 letters, digits, `-` and `_`",
                source: None,
            });
        }
        Ok(())
    }
}

/// An address or a list of them that cannot be used.
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
