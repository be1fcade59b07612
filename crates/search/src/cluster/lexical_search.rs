//! Lexical search: document frequencies, BM25 queries over sparse vectors, and the dictionary for spelling
//! correction.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::caches::CachedVersion;
use super::layout::{BEGINNINGS, ID, LETTERS, PAIRS, TERM, WORDS};
use super::parallel::map_parallel;
use super::point::{MAX_PREFIX_CHARS, SparseVector, letter_bigrams};
use super::qdrant_filter::{QdrantFilter, any_term, body_term_id, title_term_id, with_term};
use super::qdrant_response::{PointsPage, QueryBatchResult, ScoredPoint};
use super::traffic::RequestKind;
use super::view::ClusterView;
use crate::analysis::QueryTerm;
use crate::error::SearchError;
use crate::ranking::{FIELD_WEIGHTS, ScoredField};
use crate::spelling::SpellingDictionary;
use crate::term_positions::{idf, term_frequency_weight};

/// How many terms with the same prefix, or a similar spelling, are fetched.
const MAX_ALIKE: usize = 2_000;

/// For how many of those the document frequency is counted.
const MAX_COUNTED: usize = 48;

/// Up to how many documents with a term are counted exactly. Beyond that the frequency is estimated from this
/// many, with an error of about one in twenty.
const SAMPLE: usize = 512;

/// The same, where the frequency only ranks spelling candidates.
const SMALL_SAMPLE: usize = 64;

/// The weights of a query's terms, as a sparse query vector.
pub(super) struct QueryWeights {
    places: Vec<u32>,
    values: Vec<f32>,
    /// The inverse document frequency of each word form.
    idf_by_form: HashMap<String, f32>,
}

impl QueryWeights {
    /// The summed inverse document frequency of two word forms, for pairs of adjacent terms.
    pub(super) fn pair_idf(&self, first: &str, second: &str) -> f32 {
        let of = |form| self.idf_by_form.get(form).copied().unwrap_or_default();
        of(first) + of(second)
    }

    /// The BM25 score of a document, as nodes compute it from its sparse vector.
    pub(super) fn score(
        &self,
        terms: &[&QueryTerm],
        known: &CachedVersion,
        [mean_body, mean_title]: [f32; 2],
    ) -> f32 {
        let (body, title) = (known.body(), known.title());
        let weight = |field: ScoredField, form: &str| {
            let (positions, mean) = match field {
                ScoredField::Content => (body, mean_body),
                ScoredField::Title => (title, mean_title),
            };
            let count = positions.positions_of(form).len();
            term_frequency_weight(count, positions.length, mean)
        };
        let mut scores: BTreeMap<u32, f32> = BTreeMap::new();
        for form in terms.iter().flat_map(|term| &term.forms) {
            for (field, _) in FIELD_WEIGHTS {
                let id = scored_term_id(field, form);
                let Some(value) = self.value(id) else {
                    continue;
                };
                let score = scores.entry(id).or_default();
                *score = score.max(value * weight(field, form));
            }
        }
        scores.values().sum()
    }

    fn value(&self, term_id: u32) -> Option<f32> {
        let at = self.places.binary_search(&term_id).ok()?;
        self.values.get(at).copied()
    }

    fn sparse_query<'a>(
        &'a self,
        conditions: &QdrantFilter,
        most: usize,
        with_payload: &'a [&'a str],
    ) -> SparseQuery<'a> {
        SparseQuery {
            query: SparseVector {
                indices: &self.places,
                values: &self.values,
            },
            using: WORDS,
            filter: conditions.json(),
            limit: most,
            with_payload,
        }
    }
}

#[derive(Serialize)]
struct SparseQuery<'a> {
    query: SparseVector<'a>,
    using: &'a str,
    filter: Value,
    limit: usize,
    with_payload: &'a [&'a str],
}

/// A document that lexical search found.
pub(super) struct LexicalMatch {
    pub version: String,
    pub id: String,
    pub score: f32,
}

impl From<&ScoredPoint> for LexicalMatch {
    fn from(point: &ScoredPoint) -> Self {
        Self {
            version: point.name(),
            id: point.text(ID).to_owned(),
            score: point.score,
        }
    }
}

impl ClusterView<'_> {
    /// The documents with the best BM25 scores among those that match the filter.
    pub(super) fn search_lexical(
        &self,
        weights: &QueryWeights,
        conditions: &QdrantFilter,
        most: usize,
    ) -> Result<Vec<LexicalMatch>, SearchError> {
        if weights.places.is_empty() || most == 0 {
            return Ok(Vec::new());
        }
        let query = weights.sparse_query(conditions, most, &[ID]);
        let body = serde_json::to_string(&query).map_err(SearchError::engine)?;
        let found: PointsPage =
            self.documents(RequestKind::Search, "search words", "points/query", body)?;
        Ok(found.points.iter().map(LexicalMatch::from).collect())
    }

    /// Those of some documents that match the filter, with their BM25 scores when weights are given.
    pub(super) fn score_lexical(
        &self,
        weights: Option<&QueryWeights>,
        conditions: &QdrantFilter,
        most: usize,
    ) -> Result<Vec<LexicalMatch>, SearchError> {
        let matching = json!({
            "filter": conditions.json(), "limit": most, "with_payload": [ID],
        });
        let mut queries = vec![to_raw_value(&matching).map_err(SearchError::engine)?];
        if let Some(weights) = weights.filter(|weights| !weights.places.is_empty()) {
            let query = weights.sparse_query(conditions, most, &[]);
            queries.push(to_raw_value(&query).map_err(SearchError::engine)?);
        }
        let documents = &self.inner.names.documents;
        let mut answers = self.batch("search words", documents, &queries)?.into_iter();
        let matching = answers.next().map(|found| found.points).unwrap_or_default();
        let scored = answers.next().map(|found| found.points).unwrap_or_default();
        let scores: HashMap<String, f32> =
            scored.iter().map(|one| (one.name(), one.score)).collect();
        let with_score = matching.iter().map(|point| {
            let found = LexicalMatch::from(point);
            let score = scores.get(&found.version).copied().unwrap_or_default();
            LexicalMatch { score, ..found }
        });
        Ok(with_score.collect())
    }

    /// The weights of these terms by inverse document frequency. A word that is stemmed differently by
    /// language counts as one term: its frequencies are added.
    pub(super) fn query_weights(&self, terms: &[&QueryTerm]) -> Result<QueryWeights, SearchError> {
        let counts = self.document_frequencies(&scored_term_ids(terms.iter().copied()))?;
        let all = self.head.documents;
        let mut values: BTreeMap<u32, f32> = BTreeMap::new();
        let mut idf_by_form = HashMap::new();
        for term in terms {
            for (field, weight) in FIELD_WEIGHTS {
                let term_id = |form: &str| scored_term_id(field, form);
                let with = term
                    .forms
                    .iter()
                    .map(|form| counts.get(&term_id(form)).copied().unwrap_or(0));
                let term_idf = idf(all, with.sum::<u64>().min(all));
                for form in &term.forms {
                    *values.entry(term_id(form)).or_default() += weight * term.weight * term_idf;
                    if field == ScoredField::Content {
                        idf_by_form.insert(form.clone(), term_idf);
                    }
                }
            }
        }
        let (places, values) = values.into_iter().unzip();
        Ok(QueryWeights {
            places,
            values,
            idf_by_form,
        })
    }

    /// Fetches the document frequencies of all query terms in one request, into the cache.
    pub(super) fn prefetch_frequencies(&self, terms: &[QueryTerm]) -> Result<(), SearchError> {
        if self.statistics().is_some() {
            return self.prefetch_seen(terms);
        }
        self.document_frequencies(&scored_term_ids(terms)).map(drop)
    }

    /// Fetches whether the reader sees documents with these terms, where some documents are restricted. A term that
    /// no document has is seen by nobody.
    fn prefetch_seen(&self, terms: &[QueryTerm]) -> Result<(), SearchError> {
        if self.head.restricted == 0 {
            return Ok(());
        }
        let (generation, seen) = (self.head.generation, &self.inner.caches.seen);
        let mut term_ids: Vec<u32> = terms
            .iter()
            .flat_map(|term| &term.forms)
            .map(|form| body_term_id(form))
            .collect();
        term_ids.sort_unstable();
        term_ids.dedup();
        let counts = self.document_frequencies(&term_ids)?;
        term_ids.retain(|id| counts.get(id).is_some_and(|count| *count > 0));
        term_ids.retain(|id| seen.get(generation, &(self.reader.clone(), *id)).is_none());
        if term_ids.is_empty() {
            return Ok(());
        }
        let queries = term_ids
            .iter()
            .map(|id| sample(&self.visible.clone().and(with_term(*id)), 1));
        let queries: Vec<_> = queries.collect::<Result<_, _>>()?;
        let found = self.batch("look up terms", &self.inner.names.documents, &queries)?;
        for (id, found) in term_ids.into_iter().zip(found) {
            seen.keep(
                generation,
                self.reader.clone(),
                id,
                !found.points.is_empty(),
            );
        }
        Ok(())
    }

    /// The document frequencies of these terms. Where some documents are restricted, the same request also
    /// finds out whether the reader sees a document with the term.
    fn document_frequencies(&self, term_ids: &[u32]) -> Result<HashMap<u32, u64>, SearchError> {
        if let Some(statistics) = self.statistics() {
            let counts = term_ids.iter().map(|id| (*id, statistics.frequency(*id)));
            return Ok(counts.collect());
        }
        let (generation, caches) = (self.head.generation, &self.inner.caches);
        let is_shared = self.head.restricted == 0;
        let mut known = HashMap::new();
        let mut missing = Vec::new();
        for term_id in term_ids {
            let of = (self.reader.clone(), *term_id);
            let is_cached = is_shared || caches.seen.get(generation, &of).is_some();
            match caches.frequencies.get(generation, term_id) {
                Some(count) if is_cached => drop(known.insert(*term_id, count)),
                _ if missing.contains(term_id) => {}
                _ => missing.push(*term_id),
            }
        }
        if missing.is_empty() {
            return Ok(known);
        }
        let frequent = self.estimated_frequencies(&missing)?;
        let live = QdrantFilter::live(&self.head);
        let mut queries = Vec::new();
        for term_id in &missing {
            if !frequent.contains_key(term_id) {
                queries.push(sample(&live.clone().and(with_term(*term_id)), SAMPLE)?);
            }
            if !is_shared {
                queries.push(sample(&self.visible.clone().and(with_term(*term_id)), 1)?);
            }
        }
        let mut answers = if queries.is_empty() {
            QueryBatchResult::new()
        } else {
            self.batch("count terms", &self.inner.names.documents, &queries)?
        }
        .into_iter();
        for term_id in missing {
            let count = match frequent.get(&term_id) {
                Some(count) => *count,
                None => {
                    let found = answers.next().map(|found| found.points).unwrap_or_default();
                    estimate_count(&found, SAMPLE)
                }
            };
            let count = count.min(self.head.documents);
            caches.frequencies.keep(generation, term_id, count);
            known.insert(term_id, count);
            if !is_shared {
                let is_seen = answers.next().is_some_and(|found| !found.points.is_empty());
                let reader = self.reader.clone();
                caches.seen.keep(generation, reader, term_id, is_seen);
            }
        }
        Ok(known)
    }

    /// The terms that more than [`SAMPLE`] documents have, with their frequencies, in a large index. There,
    /// finding the first documents with such a term makes a node read one payload after another, wherever it
    /// lies on disk. The count from the payload index is instant; it includes ended versions that garbage
    /// collection has not removed yet.
    fn estimated_frequencies(&self, term_ids: &[u32]) -> Result<HashMap<u32, u64>, SearchError> {
        if self.head.documents < self.inner.settings.large_index_documents {
            return Ok(HashMap::new());
        }
        let counts = map_parallel(term_ids, |term_id| {
            let with = json!({"must": [with_term(*term_id)]});
            Ok((*term_id, self.count_documents(&with, false)?))
        })?;
        let is_common = |(_, count): &(u32, u64)| *count > SAMPLE as u64;
        Ok(counts.into_iter().filter(is_common).collect())
    }

    /// The terms that match each of these filters.
    fn terms_matching(&self, filters: &[Value]) -> Result<Vec<Vec<String>>, SearchError> {
        let queries = filters.iter().map(|filter| {
            let query = json!({"filter": filter, "limit": MAX_ALIKE, "with_payload": [TERM]});
            to_raw_value(&query).map_err(SearchError::engine)
        });
        let queries: Vec<_> = queries.collect::<Result<_, _>>()?;
        let answers = self.batch("look up terms", &self.inner.names.terms, &queries)?;
        let words = |found: PointsPage| {
            let points = found.points.iter();
            points.map(|point| point.text(TERM).to_owned()).collect()
        };
        Ok(answers.into_iter().map(words).collect())
    }
}

/// The ids of the terms that BM25 scores for a query, in every field.
fn scored_term_ids<'q>(terms: impl IntoIterator<Item = &'q QueryTerm>) -> Vec<u32> {
    let forms = terms.into_iter().flat_map(|term| &term.forms);
    let ids = forms.flat_map(|form| FIELD_WEIGHTS.map(|(field, _)| scored_term_id(field, form)));
    ids.collect()
}

/// The id of a term in a part of the document that BM25 scores.
fn scored_term_id(field: ScoredField, form: &str) -> u32 {
    match field {
        ScoredField::Content => body_term_id(form),
        ScoredField::Title => title_term_id(form),
    }
}

/// A query for the first documents that match a filter, ordered by point id.
fn sample(conditions: &QdrantFilter, most: usize) -> Result<Box<RawValue>, SearchError> {
    let query = json!({"filter": conditions.json(), "limit": most, "with_payload": false});
    to_raw_value(&query).map_err(SearchError::engine)
}

/// Estimates how many documents match, given the first `most` of them ordered by point id. Point ids are
/// hashes, so they are uniformly distributed: if the first matches take up some share of the id space, there
/// are that many times more in all.
fn estimate_count(first: &[ScoredPoint], most: usize) -> u64 {
    let Some(last) = first.last().filter(|_| first.len() >= most) else {
        return first.len() as u64;
    };
    let digits: String = last.name().chars().filter(|c| *c != '-').take(16).collect();
    let position = u64::from_str_radix(&digits, 16).unwrap_or(u64::MAX).max(1);
    let fraction = position as f64 / u64::MAX as f64;
    ((first.len() - 1) as f64 / fraction).round() as u64
}

impl SpellingDictionary for ClusterView<'_> {
    type Error = SearchError;

    fn contains_term(&self, term: &str) -> Result<bool, SearchError> {
        let term_id = body_term_id(term);
        let count = self
            .document_frequencies(&[term_id])?
            .get(&term_id)
            .copied();
        let count = count.unwrap_or_default();
        // The owner sees every document, and nobody sees a word that no document has.
        if self.head.restricted == 0 || (count == 0 && self.statistics().is_some()) {
            return Ok(count > 0);
        }
        let seen = &self.inner.caches.seen;
        let is_seen = seen.get(self.head.generation, &(self.reader.clone(), term_id));
        match is_seen {
            Some(is_seen) => Ok(is_seen),
            // The cache was full and cleared, or a commit has replaced the generation.
            None => Ok(self
                .count_documents(&self.visible.clone().and(any_term(&[term])).json(), true)?
                > 0),
        }
    }

    fn terms_starting_with(&self, first: char) -> Result<BTreeMap<String, u64>, SearchError> {
        self.similar_terms(&first.to_string())
    }

    /// Only the terms that may have been meant: those with the word as a prefix, and those that share most
    /// letter bigrams with it. Of very many, those of similar length are counted.
    fn similar_terms(&self, word: &str) -> Result<BTreeMap<String, u64>, SearchError> {
        let letters: Vec<char> = word.chars().collect();
        let beginning: String = letters.iter().take(MAX_PREFIX_CHARS).collect();
        let with_prefix = json!({"must": [{"key": BEGINNINGS, "match": {"value": beginning}}]});
        let mut answers = self
            .terms_matching(&[with_prefix, near_spelling_filter(&letters)])?
            .into_iter();
        let mut found = answers.next().unwrap_or_default();
        found.retain(|term| term.starts_with(word));
        keep_similar_length(&mut found, letters.len());
        let mut near = answers.next().unwrap_or_default();
        near.retain(|term| crate::spelling::is_within_edits(word, term));
        keep_similar_length(&mut near, letters.len());
        found.extend(near);
        found.sort_unstable();
        found.dedup();
        if found.is_empty() {
            return Ok(BTreeMap::new());
        }
        let queries = found.iter().map(|term| {
            let with = self.visible.clone().and(any_term(&[term.as_str()]));
            sample(&with, SMALL_SAMPLE)
        });
        let queries: Vec<_> = queries.collect::<Result<_, _>>()?;
        let counts = self.batch("count terms", &self.inner.names.documents, &queries)?;
        let counts = counts
            .iter()
            .map(|found| estimate_count(&found.points, SMALL_SAMPLE));
        Ok(found
            .into_iter()
            .zip(counts)
            .filter(|(_, count)| *count > 0)
            .collect())
    }
}

/// Keeps as many terms as are counted, those of the most similar length first.
fn keep_similar_length(terms: &mut Vec<String>, letters: usize) {
    terms.sort_by_key(|term| term.chars().count().abs_diff(letters));
    terms.truncate(MAX_COUNTED);
}

/// The terms within a typo or two of a word: they begin with the same letter, have about the same length, and
/// share most letter bigrams, of which each edit changes at most three.
fn near_spelling_filter(letters: &[char]) -> Value {
    let first: String = letters.iter().take(1).collect();
    let max_edits = crate::spelling::max_edits_for(letters.len());
    let pairs = letter_bigrams(letters);
    let least = pairs.len().saturating_sub(3 * max_edits);
    let mut must = vec![
        json!({"key": BEGINNINGS, "match": {"value": first}}),
        json!({"key": LETTERS, "range": {
            "gte": letters.len().saturating_sub(max_edits), "lte": letters.len() + max_edits,
        }}),
    ];
    if least > 0 {
        let shared: Vec<_> = pairs
            .iter()
            .map(|pair| json!({"key": PAIRS, "match": {"value": pair}}))
            .collect();
        must.push(json!({"min_should": {"conditions": shared, "min_count": least}}));
    }
    json!({"must": must})
}

#[cfg(test)]
mod tests {
    use super::super::point::version_id;
    use super::*;

    #[test]
    fn many_documents_are_told_from_the_first_of_them() {
        let first = |all: usize, most: usize| {
            let mut names: Vec<String> = (0..all).map(|n| version_id(&n.to_string(), 1)).collect();
            names.sort_unstable();
            let points = names.iter().take(most).map(|name| ScoredPoint {
                id: json!(name),
                score: 0.0,
                payload: Value::Null,
            });
            estimate_count(&points.collect::<Vec<_>>(), most)
        };
        assert_eq!((first(0, SAMPLE), first(200, SAMPLE)), (0, 200));
        assert_eq!(first(SAMPLE - 1, SAMPLE), SAMPLE as u64 - 1);
        for all in [1_000, 4_000, 20_000] {
            let estimated = first(all, SAMPLE) as f64;
            let off = (estimated / all as f64 - 1.0).abs();
            assert!(off < 0.15, "{estimated} of {all}");
        }
    }
}
