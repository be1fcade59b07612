//! A reader's words into something every engine can run.

use crate::analysis::{self, Language, LanguageId, QueryTerm};
use crate::embedder::ModelLanguages;
use crate::filter::Filter;
use crate::fusion::FusionMethod;
use crate::grammar::ParsedQuery;
use crate::reader_identity::ReaderIdentity;

/// The most characters of a query that are looked at; the rest is ignored.
pub const MAX_QUERY_CHARS: usize = 1_024;

/// The most terms of a query that are searched for; the rest is ignored.
pub const MAX_QUERY_TERMS: usize = 64;

/// The most hits one query may ask for.
pub const MAX_LIMIT: usize = 100;

/// The most hits that may be passed over. Who wants to see more wants a narrower question.
pub const MAX_OFFSET: usize = 10_000;

/// The most fields whose values one query may have counted.
pub const MAX_FACETS: usize = 16;

/// The order of the hits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SortOrder {
    /// The best first.
    #[default]
    Relevance,
    /// The latest day first; those without a day last.
    Newest,
    /// The earliest day first; those without a day last.
    Oldest,
}

/// How words and meanings are weighed against each other.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum RankingMethod {
    /// By what each of them has to say about this query.
    #[default]
    Hybrid,
    /// Words alone.
    Lexical,
    /// Meanings alone.
    Semantic,
    /// With this part of the score, from 0 to 1, for meanings; for comparisons.
    Fixed(f32),
}

impl RankingMethod {
    /// How the two kinds of evidence are weighed.
    pub(crate) fn fusion_method(self) -> FusionMethod {
        match self {
            Self::Hybrid | Self::Lexical => FusionMethod::Adaptive,
            Self::Semantic => FusionMethod::Fixed(1.0),
            Self::Fixed(share) => FusionMethod::Fixed(share),
        }
    }
}

/// What is known of the language of a question to a model of these languages.
///
/// Who asks for meanings alone, or for a fixed share of them, gets them in any language.
pub(crate) fn query_language(query: &Query, languages: ModelLanguages) -> LanguageId {
    if languages == ModelLanguages::Any || query.method != RankingMethod::Hybrid {
        return LanguageId::English;
    }
    LanguageId::of_question(&query.text)
}

/// What to look for, how many hits to bring and for whom.
///
/// Every text is a query. One without a searchable word finds nothing, unless it has a filter:
/// then it finds what passes the filter, the latest first.
#[derive(Clone, Debug)]
pub struct Query {
    pub(crate) text: String,
    /// Words that must stand side by side.
    phrases: Vec<String>,
    /// Words, or words side by side, that must not occur.
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
    /// Makes a query of the first [`MAX_QUERY_CHARS`] characters and [`MAX_QUERY_TERMS`] terms of
    /// `text`, all of it words. `limit` is brought between 1 and [`MAX_LIMIT`].
    pub fn new(text: &str, limit: usize, reader: ReaderIdentity) -> Self {
        let text = first_chars(text);
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

    /// Makes a query of what a person wrote, filters included.
    pub fn parsed(parsed: &ParsedQuery, limit: usize, reader: ReaderIdentity) -> Self {
        let some = |texts: &[String]| -> Vec<_> {
            let texts = texts.iter().map(|text| first_chars(text).to_owned());
            texts.take(MAX_QUERY_TERMS).collect()
        };
        Self {
            phrases: some(&parsed.phrases),
            excluded: some(&parsed.excluded),
            filter: parsed.filter.clone(),
            ..Self::new(&parsed.text, limit, reader)
        }
    }

    /// Adds a condition to those there are.
    #[must_use]
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filter = Some(match self.filter.take() {
            Some(present) => Filter::All(vec![present, filter]),
            None => filter,
        });
        self
    }

    /// Passes over the first hits, at most [`MAX_OFFSET`] of them.
    #[must_use]
    pub fn offset(mut self, offset: usize) -> Self {
        self.offset = offset.min(MAX_OFFSET);
        self
    }

    /// Puts the hits in this order.
    #[must_use]
    pub fn sort(mut self, sort: SortOrder) -> Self {
        self.sort = sort;
        self
    }

    /// Weighs words and meanings this way.
    #[must_use]
    pub fn method(mut self, method: RankingMethod) -> Self {
        self.method = method;
        self
    }

    /// Prefers hits that differ from those before them: 0 not at all, 1 above everything.
    #[must_use]
    pub fn diversity(mut self, diversity: f32) -> Self {
        self.diversity = if diversity.is_finite() {
            diversity.clamp(0.0, 1.0)
        } else {
            0.0
        };
        self
    }

    /// Has the values of these fields counted, the first [`MAX_FACETS`] of them.
    #[must_use]
    pub fn facets(mut self, mut fields: Vec<String>) -> Self {
        fields.truncate(MAX_FACETS);
        self.facets = fields;
        self
    }

    /// Has all documents counted that hold a word of the query.
    #[must_use]
    pub fn count_total(mut self) -> Self {
        self.counts_total = true;
        self
    }

    /// Has the best passages of each hit brought along.
    #[must_use]
    pub fn excerpts(mut self) -> Self {
        self.excerpts = true;
        self
    }

    /// The most hits this query brings.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Who asks.
    pub fn reader(&self) -> &ReaderIdentity {
        &self.reader
    }

    /// The terms to look for in documents of these languages, those of most documents first.
    pub(crate) fn analyze(&self, languages: &[Language]) -> AnalyzedQuery {
        let side_by_side = |texts: &[String]| -> Vec<_> {
            let terms = texts
                .iter()
                .map(|text| analysis::phrase_terms(text, MAX_QUERY_TERMS, languages));
            terms.filter(|terms| !terms.is_empty()).collect()
        };
        AnalyzedQuery {
            terms: analysis::query_terms(&self.text, MAX_QUERY_TERMS, languages),
            phrases: side_by_side(&self.phrases),
            excluded: side_by_side(&self.excluded),
        }
    }

    /// How many hits have to be put in order before those asked for are known.
    pub(crate) fn depth(&self) -> usize {
        self.offset + self.limit
    }

    /// Whether anything narrows what may be found.
    pub(crate) fn is_filtered(&self) -> bool {
        self.filter.is_some() || !self.phrases.is_empty() || !self.excluded.is_empty()
    }
}

/// The words of a query as the terms of an index.
#[derive(Clone, Debug, Default)]
pub(crate) struct AnalyzedQuery {
    /// In the order they were typed.
    pub terms: Vec<QueryTerm>,
    /// What must stand side by side.
    pub phrases: Vec<Vec<QueryTerm>>,
    /// What must not occur.
    pub excluded: Vec<Vec<QueryTerm>>,
}

fn first_chars(text: &str) -> &str {
    let end = text
        .char_indices()
        .nth(MAX_QUERY_CHARS)
        .map_or(text.len(), |(end, _)| end);
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str) -> Vec<String> {
        let asked = Query::new(text, 10, ReaderIdentity::everyone()).analyze(&[]);
        let texts = asked.terms.iter().map(|term| term.text().to_owned());
        texts.collect()
    }

    #[test]
    fn numbers_are_brought_into_their_bounds() {
        for (asked, given) in [(0, 1), (1, 1), (100, 100), (101, 100), (usize::MAX, 100)] {
            assert_eq!(
                Query::new("a", asked, ReaderIdentity::everyone()).limit(),
                given
            );
        }
        let query = || Query::new("a", 1, ReaderIdentity::everyone());
        assert_eq!(query().offset(MAX_OFFSET).depth(), MAX_OFFSET + 1);
        assert_eq!(query().offset(MAX_OFFSET + 1).depth(), MAX_OFFSET + 1);
        for (asked, given) in [(-1.0, 0.0), (0.5, 0.5), (2.0, 1.0), (f32::NAN, 0.0)] {
            assert_eq!(query().diversity(asked).diversity, given);
        }
        let fields = |count| vec!["f".to_owned(); count];
        assert_eq!(query().facets(fields(MAX_FACETS)).facets.len(), MAX_FACETS);
        assert_eq!(
            query().facets(fields(MAX_FACETS + 1)).facets.len(),
            MAX_FACETS
        );
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
