//! A reader's words into something every engine can run.

use crate::analysis::{self, QueryTerm};

/// The most characters of a query that are looked at; the rest is ignored.
pub const MAX_QUERY_CHARS: usize = 1_024;

/// The most terms of a query that are searched for; the rest is ignored.
pub const MAX_QUERY_TERMS: usize = 64;

/// The most hits one query may ask for.
pub const MAX_LIMIT: usize = 50;

/// Who is reading. Nothing is searched or fetched without one, so that what a reader may see is
/// decided in one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reader(());

impl Reader {
    /// A reader who sees what everyone sees.
    pub fn everyone() -> Self {
        Self(())
    }
}

/// What to look for, how many hits to bring and for whom.
///
/// Every text is a query: it is what a person typed, never a language of operators. One without a
/// searchable word finds nothing.
#[derive(Clone, Debug)]
pub struct Query {
    terms: Vec<QueryTerm>,
    limit: usize,
    reader: Reader,
}

impl Query {
    /// Makes a query of the first [`MAX_QUERY_CHARS`] characters and [`MAX_QUERY_TERMS`] terms of
    /// `text`. `limit` is brought between 1 and [`MAX_LIMIT`].
    pub fn new(text: &str, limit: usize, reader: Reader) -> Self {
        let end = text
            .char_indices()
            .nth(MAX_QUERY_CHARS)
            .map_or(text.len(), |(end, _)| end);
        Self {
            terms: analysis::query_terms(text.get(..end).unwrap_or_default(), MAX_QUERY_TERMS),
            limit: limit.clamp(1, MAX_LIMIT),
            reader,
        }
    }

    /// The most hits this query brings.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Who asks.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// The terms to look for, in the order they were typed.
    pub(crate) fn terms(&self) -> &[QueryTerm] {
        &self.terms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str) -> Vec<String> {
        let query = Query::new(text, 10, Reader::everyone());
        query.terms().iter().map(|term| term.text.clone()).collect()
    }

    #[test]
    fn the_limit_is_brought_into_its_bounds() {
        for (asked, given) in [(0, 1), (1, 1), (50, 50), (51, 50), (usize::MAX, 50)] {
            assert_eq!(Query::new("a", asked, Reader::everyone()).limit(), given);
        }
    }

    #[test]
    fn characters_after_the_last_one_looked_at_are_ignored() {
        let padding = "é".repeat(MAX_QUERY_CHARS - 6);
        assert!(terms(&format!("{padding} ferry")).contains(&"ferri".to_owned()));
        assert!(!terms(&format!("{padding}  ferry")).contains(&"ferri".to_owned()));
    }

    #[test]
    fn terms_after_the_last_one_searched_for_are_ignored() {
        let words = |count: usize| (0..count).map(|n| format!("w{n} ")).collect::<String>();
        assert_eq!(terms(&words(MAX_QUERY_TERMS)).len(), MAX_QUERY_TERMS);
        assert_eq!(terms(&words(MAX_QUERY_TERMS + 1)).len(), MAX_QUERY_TERMS);
    }
}
