//! Search results: hits with snippets, excerpts, facets and score explanations.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::document::{DocId, Document};

/// The longest snippet, in characters.
pub const MAX_SNIPPET_CHARS: usize = 300;

/// The longest excerpt, in characters.
pub const MAX_EXCERPT_CHARS: usize = 500;

/// The longest title of a hit, in characters; the document keeps its full title.
pub const MAX_TITLE_CHARS: usize = 300;

/// The most excerpts of one hit.
pub const MAX_EXCERPTS: usize = 3;

/// The most values of one facet.
pub const MAX_FACET_VALUES: usize = 50;

/// The results of one query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchResults {
    /// The requested page of hits, best first.
    pub hits: Vec<SearchHit>,
    /// How many documents pass the filter and contain a word of the query (all that pass, for a query without
    /// words); `None` unless the query asked for a total.
    pub total: Option<u64>,
    /// Facet counts over these documents, for the fields that the query asked for.
    pub facets: Vec<FacetCounts>,
}

/// The facet counts of one field.
#[derive(Clone, Debug, PartialEq)]
pub struct FacetCounts {
    /// The name of the field.
    pub field: String,
    /// The values with the number of documents that have each, most frequent first, then by value.
    pub values: Vec<(String, u64)>,
    /// Whether there are more values than `values` lists.
    pub more: bool,
}

impl FacetCounts {
    /// The most frequent values of a field, at most [`MAX_FACET_VALUES`].
    pub(crate) fn most_frequent(field: &str, counts: BTreeMap<String, u64>) -> Self {
        let mut values: Vec<_> = counts.into_iter().collect();
        values.sort_by(|left, right| right.1.cmp(&left.1).then_with(|| left.0.cmp(&right.0)));
        let more = values.len() > MAX_FACET_VALUES;
        values.truncate(MAX_FACET_VALUES);
        Self {
            field: field.to_owned(),
            values,
            more,
        }
    }
}

/// One hit. An answer never contains two hits of the same document.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchHit {
    /// The id of the document, by which it is fetched.
    pub id: DocId,
    /// The title on one line, at most [`MAX_TITLE_CHARS`] characters.
    pub title: String,
    /// The URL where people can open the document, if there is one.
    pub url: Option<String>,
    /// The part of the text that matches the query best, on one line, at most [`MAX_SNIPPET_CHARS`] characters. `…`
    /// marks an end where the text continues.
    pub snippet: String,
    /// The score, above 0 and at most 1.
    pub score: f32,
    /// The full document, shared with the engine.
    pub document: Arc<Document>,
    /// The best passages, best first; empty unless the query asked for excerpts.
    pub excerpts: Vec<HitExcerpt>,
    /// The explanation of the score.
    pub why: ScoreExplanation,
}

/// A passage of a hit.
#[derive(Clone, Debug, PartialEq)]
pub struct HitExcerpt {
    /// The index among the passages of its document, from 0.
    pub index: usize,
    /// The byte range of the passage in the text of the document.
    pub range: Range<usize>,
    /// The headings above it, such as `Fares › Children`; empty when there are none.
    pub path: String,
    /// Its text on one line, around the matches, at most [`MAX_EXCERPT_CHARS`] characters.
    pub text: String,
}

/// An explanation of a score: the raw scores and what each adds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ScoreExplanation {
    /// The BM25 score, which has no upper bound; 0 when no query word occurs.
    pub lexical: f32,
    /// The part of it that comes from phrase matches.
    pub pairs: f32,
    /// The cosine of its best passage, from -1 to 1; `None` when it is not known.
    pub semantic: Option<f32>,
    /// What the words and the embedding add to the log-odds of the score; 0 for hits of an unranked list.
    pub odds: (f32, f32),
}
