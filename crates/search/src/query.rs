//! The query: what to search for, for whom, and which page of hits. Every engine can run it.

use docent_unicode::truncate_chars;

use crate::analysis::{self, Language, LanguageId, QueryTerm};
use crate::embedder::ModelLanguages;
use crate::filter::Filter;
use crate::fusion::FusionMethod;
use crate::grammar::ParsedQuery;
use crate::reader_identity::ReaderIdentity;

/// The longest query, in characters; the rest is ignored.
pub const MAX_QUERY_CHARS: usize = 1_024;

/// The most terms of a query that are searched; the rest is ignored. Each term costs a posting list. Only a pasted text
/// has more terms, and its first sentences say what it is about.
pub const MAX_QUERY_TERMS: usize = 64;

/// The most hits of one page.
pub const MAX_LIMIT: usize = 100;

/// The largest offset. Every page costs as much as all pages before it together, because hits are ranked from the
/// first; nobody reads ten thousand hits, and a narrower question finds those that are meant.
pub const MAX_OFFSET: usize = 10_000;

/// The most facets of one query.
pub const MAX_FACETS: usize = 16;

/// The sort order of the hits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SortOrder {
    /// By descending score, the best hit first.
    #[default]
    Relevance,
    /// By date, latest first; documents without one come last.
    Newest,
    /// By date, earliest first; documents without one come last.
    Oldest,
}

/// The ranking method: how lexical and vector search are combined.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum RankingMethod {
    /// Hybrid search: score fusion that adapts to the query.
    #[default]
    Hybrid,
    /// Lexical search alone: BM25 over the words.
    Lexical,
    /// Vector search alone: cosine similarity of embeddings.
    Semantic,
    /// Hybrid search with this fixed weight for vectors, from 0 to 1; for comparisons.
    Fixed(f32),
}

impl RankingMethod {
    /// The fusion method that implements this ranking method.
    pub(crate) fn fusion_method(self) -> FusionMethod {
        match self {
            Self::Hybrid | Self::Lexical => FusionMethod::Adaptive,
            Self::Semantic => FusionMethod::Fixed(1.0),
            Self::Fixed(share) => FusionMethod::Fixed(share),
        }
    }
}

/// The language of a question, for an embedding model of these languages.
///
/// Semantic search and fixed weights are explicit requests for vectors, so they get them in any language.
pub(crate) fn query_language(query: &Query, languages: ModelLanguages) -> LanguageId {
    if languages == ModelLanguages::Any || query.method != RankingMethod::Hybrid {
        return LanguageId::English;
    }
    LanguageId::of_question(&query.text)
}

/// A search request: what to look for, how many hits, and for which reader.
///
/// Every text is a valid query. A query without a searchable word finds nothing, unless it has a filter: then it
/// lists what passes the filter, latest first.
#[derive(Clone, Debug)]
pub struct Query {
    pub(crate) text: String,
    /// Phrases whose words have to be adjacent.
    phrases: Vec<String>,
    /// Words and phrases that must not occur.
    excluded: Vec<String>,
    pub(crate) filter: Option<Filter>,
    pub(crate) limit: usize,
    pub(crate) offset: usize,
    pub(crate) sort: SortOrder,
    pub(crate) method: RankingMethod,
    pub(crate) diversity: f32,
    pub(crate) facets: Vec<String>,
    pub(crate) counts_total: bool,
    pub(crate) excerpts: bool,
    reader: ReaderIdentity,
}

impl Query {
    /// Makes a query of the first [`MAX_QUERY_CHARS`] characters and [`MAX_QUERY_TERMS`] terms of `text`, without
    /// parsing filters. `limit` is clamped to 1 to [`MAX_LIMIT`].
    pub fn new(text: &str, limit: usize, reader: ReaderIdentity) -> Self {
        let text = truncate_chars(text, MAX_QUERY_CHARS);
        Self {
            text: text.trim().to_owned(),
            phrases: Vec::new(),
            excluded: Vec::new(),
            filter: None,
            limit: limit.clamp(1, MAX_LIMIT),
            offset: 0,
            sort: SortOrder::default(),
            method: RankingMethod::default(),
            diversity: 0.0,
            facets: Vec::new(),
            counts_total: false,
            excerpts: false,
            reader,
        }
    }

    /// Makes a query of parsed user input, including its filters.
    pub fn parsed(parsed: &ParsedQuery, limit: usize, reader: ReaderIdentity) -> Self {
        // A phrase that is repeated would only be matched again.
        let limited = |texts: &[String]| -> Vec<_> {
            let mut distinct: Vec<String> = Vec::new();
            for text in texts.iter().take(MAX_QUERY_TERMS) {
                let text = truncate_chars(text, MAX_QUERY_CHARS);
                if distinct.iter().all(|known| known != text) {
                    distinct.push(text.to_owned());
                }
            }
            distinct
        };
        Self {
            phrases: limited(&parsed.phrases),
            excluded: limited(&parsed.excluded),
            filter: parsed.filter.clone(),
            ..Self::new(&parsed.text, limit, reader)
        }
    }

    /// Adds a filter, in conjunction with those it has.
    #[must_use]
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filter = Some(match self.filter.take() {
            Some(present) => Filter::All(vec![present, filter]),
            None => filter,
        });
        self
    }

    /// Skips the first hits, at most [`MAX_OFFSET`].
    #[must_use]
    pub fn offset(mut self, offset: usize) -> Self {
        self.offset = offset.min(MAX_OFFSET);
        self
    }

    /// Sets the sort order.
    #[must_use]
    pub fn sort(mut self, sort: SortOrder) -> Self {
        self.sort = sort;
        self
    }

    /// Sets the ranking method.
    #[must_use]
    pub fn method(mut self, method: RankingMethod) -> Self {
        self.method = method;
        self
    }

    /// Sets the diversity: 0 ranks by score alone, 1 by dissimilarity alone (maximal marginal relevance).
    #[must_use]
    pub fn diversity(mut self, diversity: f32) -> Self {
        self.diversity = if diversity.is_finite() {
            diversity.clamp(0.0, 1.0)
        } else {
            0.0
        };
        self
    }

    /// Requests facet counts for these fields, at most [`MAX_FACETS`].
    #[must_use]
    pub fn facets(mut self, mut fields: Vec<String>) -> Self {
        fields.truncate(MAX_FACETS);
        self.facets = fields;
        self
    }

    /// Requests the total number of documents that contain a word of the query.
    #[must_use]
    pub fn count_total(mut self) -> Self {
        self.counts_total = true;
        self
    }

    /// Requests excerpts: the best passages of each hit.
    #[must_use]
    pub fn excerpts(mut self) -> Self {
        self.excerpts = true;
        self
    }

    /// The number of hits of a page.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// The reader on whose behalf the query runs.
    pub fn reader(&self) -> &ReaderIdentity {
        &self.reader
    }

    /// Analyzes the query for a corpus in these languages, most frequent first.
    pub(crate) fn analyze(&self, languages: &[Language]) -> AnalyzedQuery {
        let analyze_phrases = |texts: &[String]| -> Vec<_> {
            let terms = texts
                .iter()
                .map(|text| analysis::phrase_terms(text, MAX_QUERY_TERMS, languages));
            terms.filter(|terms| !terms.is_empty()).collect()
        };
        AnalyzedQuery {
            terms: analysis::query_terms(&self.text, MAX_QUERY_TERMS, languages),
            phrases: analyze_phrases(&self.phrases),
            excluded: analyze_phrases(&self.excluded),
        }
    }

    /// How many hits have to be ranked to return the requested page.
    pub(crate) fn depth(&self) -> usize {
        self.offset + self.limit
    }

    /// Whether an answer takes much longer than one to a few plain words: it has phrases, whose positions are
    /// read for every document with their words, or facets, or its page is far from the first.
    pub(crate) fn is_expensive(&self) -> bool {
        !self.phrases.is_empty()
            || !self.excluded.is_empty()
            || !self.facets.is_empty()
            || self.offset > MAX_LIMIT
    }

    /// Whether a filter, a phrase or an exclusion narrows the results.
    pub(crate) fn is_filtered(&self) -> bool {
        self.filter.is_some() || !self.phrases.is_empty() || !self.excluded.is_empty()
    }
}

/// The analyzed form of a query: index terms instead of words.
#[derive(Clone, Debug, Default)]
pub(crate) struct AnalyzedQuery {
    /// The terms in the order they were typed.
    pub terms: Vec<QueryTerm>,
    /// The phrases whose terms have to be adjacent.
    pub phrases: Vec<Vec<QueryTerm>>,
    /// The words and phrases that must not occur.
    pub excluded: Vec<Vec<QueryTerm>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str) -> Vec<String> {
        let analyzed = Query::new(text, 10, ReaderIdentity::everyone()).analyze(&[]);
        let texts = analyzed.terms.iter().map(|term| term.text().to_owned());
        texts.collect()
    }

    #[test]
    fn numbers_are_clamped() {
        for (requested, expected) in [(0, 1), (1, 1), (100, 100), (101, 100), (usize::MAX, 100)] {
            assert_eq!(
                Query::new("a", requested, ReaderIdentity::everyone()).limit(),
                expected
            );
        }
        let query = || Query::new("a", 1, ReaderIdentity::everyone());
        assert_eq!(query().offset(MAX_OFFSET).depth(), MAX_OFFSET + 1);
        assert_eq!(query().offset(MAX_OFFSET + 1).depth(), MAX_OFFSET + 1);
        for (requested, expected) in [(-1.0, 0.0), (0.5, 0.5), (2.0, 1.0), (f32::NAN, 0.0)] {
            assert_eq!(query().diversity(requested).diversity, expected);
        }
        let fields = |count| vec!["f".to_owned(); count];
        assert_eq!(query().facets(fields(MAX_FACETS)).facets.len(), MAX_FACETS);
        assert_eq!(
            query().facets(fields(MAX_FACETS + 1)).facets.len(),
            MAX_FACETS
        );
    }

    #[test]
    fn characters_beyond_the_limit_are_ignored() {
        let padding = "é".repeat(MAX_QUERY_CHARS - 6);
        assert!(terms(&format!("{padding} ferry")).contains(&"ferri".to_owned()));
        assert!(!terms(&format!("{padding}  ferry")).contains(&"ferri".to_owned()));
    }

    #[test]
    fn phrases_facets_and_deep_pages_are_expensive() {
        let query = |text: &str| {
            let catalog = crate::catalog::Catalog::default();
            let parsed = crate::grammar::parse(text, &catalog, crate::calendar::Day::EPOCH);
            Query::parsed(&parsed, 10, ReaderIdentity::everyone())
        };
        assert!(!query("grain ferry").is_expensive());
        assert!(query("\"grain ferry\"").is_expensive());
        assert!(query("grain -ferry").is_expensive());
        assert!(query("grain").facets(vec!["harbour".into()]).is_expensive());
        assert!(!query("grain").offset(MAX_LIMIT).is_expensive());
        assert!(query("grain").offset(MAX_LIMIT + 1).is_expensive());
    }

    #[test]
    fn repeated_phrases_count_once() {
        let twice = ["grain ferry", "salt", "grain ferry"].map(str::to_owned);
        let parsed = ParsedQuery {
            phrases: twice.to_vec(),
            excluded: twice.to_vec(),
            ..ParsedQuery::default()
        };
        let query = Query::parsed(&parsed, 10, ReaderIdentity::everyone());
        assert_eq!(query.phrases, ["grain ferry", "salt"]);
        assert_eq!(query.excluded, ["grain ferry", "salt"]);
    }

    #[test]
    fn terms_beyond_the_limit_are_ignored() {
        let words = |count: usize| (0..count).map(|n| format!("w{n} ")).collect::<String>();
        assert_eq!(terms(&words(MAX_QUERY_TERMS)).len(), MAX_QUERY_TERMS);
        assert_eq!(terms(&words(MAX_QUERY_TERMS + 1)).len(), MAX_QUERY_TERMS);
    }
}
