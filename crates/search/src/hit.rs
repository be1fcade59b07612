//! What a search brings back: documents, why they are here and how well they fit.

use std::ops::Range;
use std::sync::Arc;

use crate::document::{DocId, Document};

/// The most characters of a snippet.
pub const MAX_SNIPPET_CHARS: usize = 300;

/// The most characters of an excerpt.
pub const MAX_EXCERPT_CHARS: usize = 500;

/// The most characters of a title in a hit; the document keeps its whole title.
pub const MAX_TITLE_CHARS: usize = 300;

/// The most passages that a hit shows.
pub const MAX_EXCERPTS: usize = 3;

/// The most values of a facet.
pub const MAX_FACET_VALUES: usize = 50;

/// The answer to a query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchResults {
    /// The hits asked for, best first.
    pub hits: Vec<SearchHit>,
    /// How many documents pass the filter and hold a word of the query (all that pass, for a query
    /// without words), where the query asked for it to be counted.
    pub total: Option<u64>,
    /// What these documents have in the fields that the query asked about.
    pub facets: Vec<FacetCounts>,
}

/// The values of one field among the documents of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct FacetCounts {
    /// The name of the field.
    pub field: String,
    /// Its values with the number of documents that have each, most first, then by value.
    pub values: Vec<(String, u64)>,
    /// Whether there are more values than these.
    pub more: bool,
}

/// One document found. No two hits of an answer name the same document.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchHit {
    /// The document's id, to fetch it by.
    pub id: DocId,
    /// Its title on one line, at most [`MAX_TITLE_CHARS`] characters.
    pub title: String,
    /// Where a person can look at it, if anywhere.
    pub url: Option<String>,
    /// The part of its text that fits the query best, on one line, at most [`MAX_SNIPPET_CHARS`]
    /// characters. `…` marks an end where the text goes on.
    pub snippet: String,
    /// How well it fits, above 0 and at most 1.
    pub score: f32,
    /// The document itself.
    pub document: Arc<Document>,
    /// Its best passages, best first; only where the query asked for them.
    pub excerpts: Vec<HitExcerpt>,
    /// What its score is made of.
    pub why: ScoreExplanation,
}

/// One passage of a hit.
#[derive(Clone, Debug, PartialEq)]
pub struct HitExcerpt {
    /// Its place among the passages of its document, from 0.
    pub index: usize,
    /// The bytes of the document's text that it stands for.
    pub range: Range<usize>,
    /// The headings above it, such as `Fares › Children`, or nothing.
    pub path: String,
    /// Its words on one line, around what was asked for, at most [`MAX_EXCERPT_CHARS`]
    /// characters.
    pub text: String,
}

/// What a score is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ScoreExplanation {
    /// How well the words fit, without an upper end; 0 when none of them occurs.
    pub lexical: f32,
    /// What of that comes from words side by side.
    pub pairs: f32,
    /// How close the meaning of its best passage is, from -1 to 1; nothing when that is not known.
    pub semantic: Option<f32>,
    /// What the words and the meaning add to the odds that the score stands for; 0 for what was
    /// only listed.
    pub odds: (f32, f32),
}
