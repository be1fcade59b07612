//! The error type of the crate; each variant has a message and a hint.

use std::path::{Path, PathBuf};

/// An error of this crate. The message says what happened; [`SearchError::hint`] says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SearchError {
    /// A text is no valid document id.
    #[error("not a document id: {reason}")]
    Id {
        /// Why it is not valid.
        reason: &'static str,
    },

    /// A text is no valid principal.
    #[error("not a principal: {reason}")]
    Principal {
        /// Why it is not valid.
        reason: &'static str,
    },

    /// A limit is exceeded; nothing of the batch was applied.
    #[error("{what} is over the limit: {size} of {limit}")]
    TooLarge {
        /// What is too large, as the message names it.
        what: String,
        /// Its size, in the unit of the limit.
        size: usize,
        /// The limit that it exceeds.
        limit: usize,
    },

    /// A file or folder of the index cannot be read or written.
    #[error("cannot read or write `{}`", path.display())]
    Io {
        /// The path of the file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },

    /// There is no index in the folder.
    #[error("no index in `{}`", path.display())]
    Missing {
        /// The folder that was searched.
        path: PathBuf,
    },

    /// The index on disk is corrupt: a checksum or a structure does not match.
    #[error("the index in `{}` is corrupt: {reason}", path.display())]
    Corrupt {
        /// The folder of the index.
        path: PathBuf,
        /// Which check failed, in words.
        reason: String,
    },

    /// The index was written by another version, or is something else altogether.
    #[error("the index in `{}` has format {found}, this version reads format {expected}", path.display())]
    Format {
        /// The folder of the index.
        path: PathBuf,
        /// The format version that was found, in words.
        found: String,
        /// The format version that this build reads and writes.
        expected: u32,
    },

    /// The writer lock is held by another process, or by another part of this one.
    #[error("the index in `{}` is already open for writing", path.display())]
    Locked {
        /// The folder of the index.
        path: PathBuf,
    },

    /// A change was sent to an index that is open read-only.
    #[error("the index in `{}` is open read-only", path.display())]
    ReadOnly {
        /// The folder of the index.
        path: PathBuf,
    },

    /// The embedding model failed to compute vectors.
    #[error("{what}")]
    Embedder {
        /// The message, which says what happened.
        what: String,
        /// The cure, as [`SearchError::hint`] returns it.
        hint: &'static str,
        /// The underlying error, if there is one.
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },

    /// The cluster is unreachable, unreachable in part, or answered wrongly.
    #[error("{what}")]
    Cluster {
        /// The message, which says what happened.
        what: String,
        /// The cure, as [`SearchError::hint`] returns it.
        hint: &'static str,
        /// The underlying error, if there is one.
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },

    /// The storage engine failed unexpectedly.
    #[error("the search engine failed")]
    Engine(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl SearchError {
    /// The cure: what the person who sees this error can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Id { .. } => "an id has 1 to 512 bytes and no control characters",
            Self::Principal { .. } => "a principal has 1 to 512 bytes and no control characters",
            Self::TooLarge { .. } => "split the document, or send fewer changes at once",
            Self::Io { .. } => "check that the folder exists, is writable and has space left",
            Self::Missing { .. } => "build the index first",
            Self::Corrupt { .. } | Self::Format { .. } => {
                "open the index for writing: corrupt parts are quarantined and rebuilt"
            }
            Self::Locked { .. } => "stop the other process, or open the index read-only",
            Self::ReadOnly { .. } => "open the index for writing",
            Self::Embedder { hint, .. } | Self::Cluster { hint, .. } => hint,
            Self::Engine(_) => "try again; if it happens again, rebuild the index",
        }
    }

    pub(crate) fn io(path: &Path, source: std::io::Error) -> Self {
        Self::Io {
            path: path.to_owned(),
            source,
        }
    }

    pub(crate) fn corrupt(path: &Path, reason: impl Into<String>) -> Self {
        Self::Corrupt {
            path: path.to_owned(),
            reason: reason.into(),
        }
    }

    pub(crate) fn engine(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Engine(source.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_and_hints_follow_the_style() {
        let path = PathBuf::from("index");
        let errors = [
            SearchError::Id {
                reason: "it is empty",
            },
            SearchError::TooLarge {
                what: "the batch".to_owned(),
                size: 2,
                limit: 1,
            },
            SearchError::io(&path, std::io::Error::other("gone")),
            SearchError::Missing { path: path.clone() },
            SearchError::corrupt(&path, "the checksum of `x` does not match"),
            SearchError::Format {
                path: path.clone(),
                found: "7".to_owned(),
                expected: 1,
            },
            SearchError::Locked { path: path.clone() },
            SearchError::ReadOnly { path },
            SearchError::Embedder {
                what: "the endpoint cannot be reached".to_owned(),
                hint: "check that it runs",
                source: None,
            },
            SearchError::Cluster {
                what: "none of the nodes answers".to_owned(),
                hint: "check that they run",
                source: None,
            },
            SearchError::engine("no"),
        ];
        for error in errors {
            for text in [error.to_string(), error.hint().to_owned()] {
                assert!(text.starts_with(|c: char| c.is_lowercase()), "{text}");
                assert!(!text.ends_with('.'), "{text}");
            }
        }
    }
}
