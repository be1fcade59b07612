//! The entries that one reader may see, as the search pipeline reads them. All other entries are absent: no
//! statistic, count or spelling correction involves them.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::ops::Range;

use super::{Bm25Statistics, MemoryEntry, MemoryState};
use crate::analysis::{Language, QueryTerm};
use crate::catalog::{Catalog, CatalogBuilder};
use crate::document::DocumentValue;
use crate::embedder::{Embedder, ModelLanguages};
use crate::error::SearchError;
use crate::fusion::CosineScale;
use crate::hit::{FacetCounts, MAX_EXCERPTS};
use crate::pipeline::{Candidate, IndexView, LexicalHits, WordQuery};
use crate::query::{AnalyzedQuery, Query, SortOrder};
use crate::ranking::{FIELD_WEIGHTS, PHRASE_WEIGHT, ScoredField, TermPair};
use crate::reader_identity::ReaderIdentity;
use crate::snippet::DisplayDocument;
use crate::spelling::{self, SpellingDictionary};
use crate::term_positions::TermPositions;

/// The entries that a reader may see, in the order of their ids.
pub(super) struct VisibleEntries<'s> {
    entries: Vec<&'s MemoryEntry>,
    embedder: Option<&'s dyn Embedder>,
}

/// The inverse document frequency of each term in each scored field, with its weight, in that order.
pub(super) struct WeightedTerms {
    idf: Vec<f32>,
    content: Bm25Statistics,
    title: Bm25Statistics,
}

impl WeightedTerms {
    fn statistics(&self, field: ScoredField) -> &Bm25Statistics {
        match field {
            ScoredField::Content => &self.content,
            ScoredField::Title => &self.title,
        }
    }
}

impl<'s> VisibleEntries<'s> {
    pub(super) fn new(
        state: &'s MemoryState,
        reader: &ReaderIdentity,
        embedder: Option<&'s dyn Embedder>,
    ) -> Self {
        let entries = state.entries.values();
        Self {
            entries: entries
                .filter(|entry| reader.can_see(&entry.mapped.document))
                .collect(),
            embedder,
        }
    }

    pub(super) fn catalog(&self) -> Catalog {
        let mut builder = CatalogBuilder::new();
        for entry in &self.entries {
            builder.document(&entry.mapped.document);
        }
        builder.build()
    }

    fn statistics(&self, field: ScoredField) -> Bm25Statistics {
        let documents = self.entries.len() as u64;
        let length: usize = self
            .entries
            .iter()
            .map(|entry| entry.scored(field).length)
            .sum();
        Bm25Statistics {
            documents,
            mean_length: length as f32 / documents as f32,
        }
    }

    /// How many entries have an occurrence, by this count.
    fn frequency(&self, count: impl Fn(&MemoryEntry) -> usize) -> usize {
        let entries = self.entries.iter().copied();
        entries.filter(|entry| count(entry) > 0).count()
    }

    /// The BM25 score of an entry, without proximity.
    fn bm25(&self, words: &WordQuery<'_, WeightedTerms>, entry: &MemoryEntry) -> f32 {
        let fields = words.terms.iter().flat_map(|term| {
            FIELD_WEIGHTS.map(|(field, _)| (field, entry.scored(field).count(term)))
        });
        let scores = fields
            .zip(&words.weights.idf)
            .map(|((field, occurrences), idf)| {
                let statistics = words.weights.statistics(field);
                statistics.bm25(*idf, occurrences, entry.scored(field).length)
            });
        scores.sum()
    }

    /// The bonus of an entry for one pair of adjacent words.
    fn pair_score(
        &self,
        statistics: &Bm25Statistics,
        pair: &TermPair<'_>,
        entry: &MemoryEntry,
    ) -> f32 {
        let with = self.frequency(|entry| entry.body.count_pair(pair));
        let idf = PHRASE_WEIGHT * statistics.idf(with);
        statistics.bm25(idf, entry.body.count_pair(pair), entry.body.length)
    }
}

impl<'s> IndexView for VisibleEntries<'s> {
    type Document = &'s MemoryEntry;
    type CandidateSet = Vec<&'s MemoryEntry>;
    type MatchSet = Vec<&'s MemoryEntry>;
    type TermWeights = WeightedTerms;
    type QueryVector = Vec<f32>;
    type Display = &'s DisplayDocument;

    const MAX_PROXIMITY_CANDIDATES: usize = usize::MAX;

    fn languages(&self) -> Result<Cow<'_, [Language]>, SearchError> {
        let languages = self.entries.iter().map(|entry| (entry.mapped.language, 1));
        Ok(Cow::Owned(Language::by_document_count(languages)))
    }

    fn correct_spelling(&self, terms: &mut Vec<QueryTerm>) -> Result<(), SearchError> {
        let Ok(()) = spelling::correct(terms, self);
        Ok(())
    }

    fn restrict(
        &self,
        query: &Query,
        analyzed: &AnalyzedQuery,
    ) -> Result<Vec<&'s MemoryEntry>, SearchError> {
        let entries = self.entries.iter().copied();
        Ok(entries
            .filter(|entry| entry.is_allowed(query, analyzed))
            .collect())
    }

    fn matches(
        &self,
        candidates: &Vec<&'s MemoryEntry>,
        forms: &[&str],
    ) -> Result<Vec<&'s MemoryEntry>, SearchError> {
        let contains =
            |entry: &&MemoryEntry, form: &&str| !entry.body.positions_of(form).is_empty();
        let entries = candidates.iter().copied();
        Ok(entries
            .filter(|entry| forms.is_empty() || forms.iter().any(|form| contains(entry, form)))
            .collect())
    }

    fn model_languages(&self) -> Option<ModelLanguages> {
        self.embedder.map(Embedder::languages)
    }

    fn embed(&self, text: &str) -> Option<(Vec<f32>, CosineScale)> {
        let embedder = self.embedder?;
        Some((embedder.query(text).ok()?, embedder.scale()))
    }

    fn weigh(&self, terms: &[&QueryTerm]) -> Result<WeightedTerms, SearchError> {
        let mut weighted = WeightedTerms {
            idf: Vec::new(),
            content: self.statistics(ScoredField::Content),
            title: self.statistics(ScoredField::Title),
        };
        for term in terms {
            for (field, weight) in FIELD_WEIGHTS {
                let with = self.frequency(|entry| entry.scored(field).count(term));
                let idf = weighted.statistics(field).idf(with);
                weighted.idf.push(weight * term.weight * idf);
            }
        }
        Ok(weighted)
    }

    fn best_by_words(
        &self,
        words: &WordQuery<'_, WeightedTerms>,
        candidates: &Vec<&'s MemoryEntry>,
        most: usize,
    ) -> Result<LexicalHits<&'s MemoryEntry>, SearchError> {
        let scored = candidates.iter().copied();
        let scored = scored.map(|entry| Candidate::with_words(entry, self.bm25(words, entry)));
        let mut found: Vec<_> = scored.filter(|one| one.bm25 > 0.0).collect();
        found.sort_by(|left, right| right.bm25.total_cmp(&left.bm25));
        found.truncate(most);
        let complete = found.len() < most;
        Ok(LexicalHits { found, complete })
    }

    fn nearest(
        &self,
        vector: &Vec<f32>,
        candidates: &Vec<&'s MemoryEntry>,
        most: usize,
    ) -> Result<Vec<Candidate<&'s MemoryEntry>>, SearchError> {
        let near = candidates.iter().copied();
        let near = near.filter_map(|entry| {
            let (cosine, _) = entry.nearest_passages(vector).into_iter().next()?;
            Some((cosine, entry))
        });
        let mut near: Vec<_> = near.collect();
        near.sort_by(|left, right| right.0.total_cmp(&left.0));
        near.truncate(most);
        let near = near.into_iter();
        Ok(near
            .map(|(cosine, entry)| Candidate::with_cosine(entry, cosine))
            .collect())
    }

    fn score_words(
        &self,
        words: &WordQuery<'_, WeightedTerms>,
        _candidates: &Vec<&'s MemoryEntry>,
        mut found: Vec<Candidate<&'s MemoryEntry>>,
        _complete: bool,
    ) -> Result<Vec<Candidate<&'s MemoryEntry>>, SearchError> {
        for one in &mut found {
            one.bm25 = self.bm25(words, one.document);
        }
        Ok(found)
    }

    fn score_meaning(
        &self,
        vector: &Vec<f32>,
        found: &mut [&mut Candidate<&'s MemoryEntry>],
    ) -> Result<(), SearchError> {
        for one in found {
            let nearest = one.document.nearest_passages(vector).into_iter().next();
            one.cosine = nearest.map(|(cosine, _)| cosine);
        }
        Ok(())
    }

    fn score_proximity(
        &self,
        words: &WordQuery<'_, WeightedTerms>,
        found: &mut [&mut Candidate<&'s MemoryEntry>],
    ) -> Result<(), SearchError> {
        for one in found {
            let bonuses = words.pairs.iter();
            let bonuses =
                bonuses.map(|pair| self.pair_score(&words.weights.content, pair, one.document));
            let bonus = bonuses.sum();
            one.add_proximity(bonus);
        }
        Ok(())
    }

    fn is_embedded(&self, _vector: &Vec<f32>, document: &&'s MemoryEntry) -> bool {
        document.vectors.is_some()
    }

    fn by_day(
        &self,
        matches: &Vec<&'s MemoryEntry>,
        sort: SortOrder,
        most: usize,
    ) -> Result<Vec<&'s MemoryEntry>, SearchError> {
        let mut listed = matches.clone();
        let day = |one: &MemoryEntry| one.mapped.document.date.clone();
        listed.sort_by(|left, right| match (day(left), day(right)) {
            (Some(left), Some(right)) if sort == SortOrder::Oldest => left.cmp(&right),
            (Some(left), Some(right)) => right.cmp(&left),
            (left, right) => left.is_none().cmp(&right.is_none()),
        });
        listed.truncate(most);
        Ok(listed)
    }

    fn count(&self, matches: &Vec<&'s MemoryEntry>) -> Result<u64, SearchError> {
        Ok(matches.len() as u64)
    }

    fn facets(
        &self,
        matches: &Vec<&'s MemoryEntry>,
        fields: &[String],
    ) -> Result<Vec<FacetCounts>, SearchError> {
        Ok(fields.iter().map(|name| facet(matches, name)).collect())
    }

    fn read(
        &self,
        documents: &[&&'s MemoryEntry],
    ) -> Result<Vec<Option<&'s DisplayDocument>>, SearchError> {
        Ok(documents.iter().map(|one| Some(&one.mapped)).collect())
    }

    fn passages(&self, vector: &Vec<f32>, document: &&'s MemoryEntry) -> Vec<Range<usize>> {
        let near = document.nearest_passages(vector).into_iter();
        near.map(|(_, range)| range).collect()
    }

    fn by_handle(left: &&'s MemoryEntry, right: &&'s MemoryEntry) -> Ordering {
        left.mapped.document.id.cmp(&right.mapped.document.id)
    }

    fn by_id(&self, left: &&'s MemoryEntry, right: &&'s MemoryEntry) -> Ordering {
        Self::by_handle(left, right)
    }
}

/// Facet counts of one field: how many of the entries have each value.
fn facet(entries: &[&MemoryEntry], name: &str) -> FacetCounts {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for entry in entries {
        let document = &entry.mapped.document;
        let values = document
            .filterable_fields()
            .filter(|(field, _)| *field == name);
        let values: BTreeSet<String> = values
            .flat_map(|(_, value)| match value.as_ref() {
                DocumentValue::List(items) => items.clone(),
                other => vec![other.to_string()],
            })
            .collect();
        for value in values {
            *counts.entry(value).or_default() += 1;
        }
    }
    FacetCounts::most_frequent(name, counts)
}

impl SpellingDictionary for VisibleEntries<'_> {
    type Error = Infallible;

    fn contains_term(&self, term: &str) -> Result<bool, Infallible> {
        Ok(self
            .entries
            .iter()
            .copied()
            .any(|entry| !entry.body.positions_of(term).is_empty()))
    }

    fn terms_starting_with(&self, first: char) -> Result<BTreeMap<String, u64>, Infallible> {
        let mut found: BTreeMap<String, u64> = BTreeMap::new();
        for entry in self.entries.iter().copied() {
            let terms = entry.body.counts().map(|(term, _)| term);
            for term in terms.filter(|term| term.starts_with(first)) {
                *found.entry(term.to_owned()).or_default() += 1;
            }
        }
        Ok(found)
    }
}

impl MemoryEntry {
    /// The terms of a part of the document that BM25 scores.
    fn scored(&self, field: ScoredField) -> &TermPositions {
        match field {
            ScoredField::Content => &self.body,
            ScoredField::Title => &self.title,
        }
    }

    /// The nearest passages with their cosines, the nearest first.
    fn nearest_passages(&self, query: &[f32]) -> Vec<(f32, Range<usize>)> {
        let dot = |vector: &[f32]| query.iter().zip(vector).map(|(a, b)| a * b).sum();
        let passages = self.vectors.iter().flatten();
        let mut near: Vec<(f32, Range<usize>)> = passages
            .map(|(range, vector)| (dot(vector), range.clone()))
            .collect();
        near.sort_by(|left, right| right.0.total_cmp(&left.0));
        near.truncate(MAX_EXCERPTS);
        near
    }

    fn is_allowed(&self, query: &Query, analyzed: &AnalyzedQuery) -> bool {
        let document = &self.mapped.document;
        query
            .filter
            .as_ref()
            .is_none_or(|filter| filter.matches(document))
            && analyzed
                .phrases
                .iter()
                .all(|phrase| self.body.contains_phrase(phrase))
            && !analyzed
                .excluded
                .iter()
                .any(|phrase| self.body.contains_phrase(phrase))
    }
}
