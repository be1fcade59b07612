//! Everything that can go wrong between a document and a hit, each with its cure.

use std::path::{Path, PathBuf};

/// A failure of this crate. The message says what happened; [`Error::hint`] says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SearchError {
    /// A text that cannot be a document's id.
    #[error("not a document id: {reason}")]
    Id {
        /// What is wrong with it.
        reason: &'static str,
    },

    /// A text that cannot say who may read.
    #[error("not a principal: {reason}")]
    Principal {
        /// What is wrong with it.
        reason: &'static str,
    },

    /// Something is over its limit; nothing of the batch was applied.
    #[error("{what} is over the limit: {size} of {limit}")]
    TooLarge {
        /// The thing that is too large.
        what: String,
        /// Its size, in the limit's own unit.
        size: usize,
        /// The most that is taken.
        limit: usize,
    },

    /// A file or folder of the index could not be read or written.
    #[error("cannot use `{}`", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },

    /// There is no index where one was to be read.
    #[error("no index in `{}`", path.display())]
    Missing {
        /// The folder that was looked at.
        path: PathBuf,
    },

    /// The index on disk is not what was written there.
    #[error("the index in `{}` is damaged: {reason}", path.display())]
    Corrupt {
        /// The index folder.
        path: PathBuf,
        /// What gave it away.
        reason: String,
    },

    /// The index was written by another version, or by something else altogether.
    #[error("the index in `{}` has format {found}, this version reads format {expected}", path.display())]
    Format {
        /// The index folder.
        path: PathBuf,
        /// The format found there, in words.
        found: String,
        /// The format this version reads and writes.
        expected: u32,
    },

    /// Another process, or another part of this one, is writing to the index.
    #[error("the index in `{}` is already open for writing", path.display())]
    Locked {
        /// The index folder.
        path: PathBuf,
    },

    /// A change was sent to an index that was opened only to be read.
    #[error("the index in `{}` was opened to be read only", path.display())]
    ReadOnly {
        /// The index folder.
        path: PathBuf,
    },

    /// The model that turns texts into vectors failed.
    #[error("{what}")]
    Embedder {
        /// What happened, in words.
        what: String,
        /// What to do about it.
        hint: &'static str,
        /// The failure underneath, where there is one.
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },

    /// The cluster that holds the index does not answer, not for all of it, or not as it should.
    #[error("{what}")]
    Cluster {
        /// What happened, in words.
        what: String,
        /// What to do about it.
        hint: &'static str,
        /// The failure underneath, where there is one.
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },

    /// The engine underneath failed.
    #[error("the search engine failed")]
    Engine(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl SearchError {
    /// What the person who meets this error can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Id { .. } => "an id has 1 to 512 bytes and no control characters",
            Self::Principal { .. } => "a principal has 1 to 512 bytes and no control characters",
            Self::TooLarge { .. } => "split the document, or send fewer changes at once",
            Self::Io { .. } => "check that the folder exists, may be written to and has space left",
            Self::Missing { .. } => "build the index first",
            Self::Corrupt { .. } | Self::Format { .. } => {
                "open the index for writing: what is damaged is set aside and made again"
            }
            Self::Locked { .. } => "stop the other process, or open the index to be read only",
            Self::ReadOnly { .. } => "open the index for writing",
            Self::Embedder { hint, .. } | Self::Cluster { hint, .. } => hint,
            Self::Engine(_) => "try again; if it happens again, build the index again",
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
    fn messages_and_hints_read_as_the_house_writes_them() {
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
            SearchError::corrupt(&path, "the sum of `x` does not match"),
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
