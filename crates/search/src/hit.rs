//! What a search brings back: one document, why it is here and how well it fits.

use crate::document::DocId;

/// The most characters of a snippet.
pub const MAX_SNIPPET_CHARS: usize = 300;

/// The most characters of a title in a hit; the document keeps its whole title.
pub const MAX_TITLE_CHARS: usize = 300;

/// One document found. No two hits of an answer name the same document.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// The document's id, to fetch it by.
    pub id: DocId,
    /// Its title on one line, at most [`MAX_TITLE_CHARS`] characters.
    pub title: String,
    /// Where a person can look at it, if anywhere.
    pub url: Option<String>,
    /// The part of its text that fits the query best, on one line, at most [`MAX_SNIPPET_CHARS`]
    /// characters. `…` marks an end where the text goes on.
    pub snippet: String,
    /// How well it fits, above 0 and at most 1. Hits of one answer can be compared, hits of two
    /// answers cannot.
    pub score: f32,
}
