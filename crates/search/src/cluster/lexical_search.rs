//! How frequent words are, which words there are that were probably meant, and what words are worth.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::layout::{BEGINNINGS, ID, LETTERS, PAIRS, TERM, WORDS};
use super::parallel::map_parallel;
use super::point::{MAX_PREFIX_CHARS, SparseVector, letter_bigrams};
use super::qdrant_filter::{QdrantFilter, any_term, body_term_id, title_term_id, with_term};
use super::qdrant_response::{PointsPage, QueryBatchResult, ScoredPoint};
use super::traffic::RequestKind;
use super::view::ClusterView;
use crate::analysis::QueryTerm;
use crate::error::SearchError;
use crate::ranking::TITLE_WEIGHT;
use crate::spelling::SpellingDictionary;
use crate::term_positions::idf;

/// How many words that begin alike, or are almost alike, are looked at.
const MAX_ALIKE: usize = 2_000;

/// Of how many of them it is counted how many documents have them.
const MAX_COUNTED: usize = 48;

/// Up to how many documents with a term are counted; of more it is told from so many how many there are,
/// which is off by one in twenty.
const SAMPLE: usize = 512;

/// The same, where the number only says which of several words is the most frequent.
const SMALL_SAMPLE: usize = 64;

/// What the terms of a question are worth.
pub(super) struct QueryWeights {
    places: Vec<u32>,
    values: Vec<f32>,
    /// How rare each form is.
    idf_by_form: HashMap<String, f32>,
}

impl QueryWeights {
    /// How rare two forms are together.
    pub(super) fn pair_idf(&self, first: &str, second: &str) -> f32 {
        let of = |form| self.idf_by_form.get(form).copied().unwrap_or_default();
        of(first) + of(second)
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

/// A document found by its words.
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
    /// The documents whose words fit best, among those that meet the conditions.
    pub(super) fn search_lexical(
        &self,
        weights: &QueryWeights,
        conditions: &QdrantFilter,
        most: usize,
    ) -> Result<Vec<LexicalMatch>, SearchError> {
        if weights.places.is_empty() || most == 0 {
            return Ok(Vec::new());
        }
        let asked = weights.sparse_query(conditions, most, &[ID]);
        let body = serde_json::to_string(&asked).map_err(SearchError::engine)?;
        let what = (RequestKind::Search, "search words");
        let found: PointsPage = self.documents(what, "points/query", body)?;
        Ok(found.points.iter().map(LexicalMatch::from).collect())
    }

    /// Those of some documents that meet the conditions, with what their words are worth where these are
    /// asked for.
    pub(super) fn score_lexical(
        &self,
        weights: Option<&QueryWeights>,
        conditions: &QdrantFilter,
        most: usize,
    ) -> Result<Vec<LexicalMatch>, SearchError> {
        let there = json!({
            "filter": conditions.json(), "limit": most, "with_payload": [ID],
        });
        let mut questions = vec![to_raw_value(&there).map_err(SearchError::engine)?];
        if let Some(weights) = weights.filter(|weights| !weights.places.is_empty()) {
            let asked = weights.sparse_query(conditions, most, &[]);
            questions.push(to_raw_value(&asked).map_err(SearchError::engine)?);
        }
        let documents = &self.inner.names.documents;
        let mut answers = self
            .batch("search words", documents, &questions)?
            .into_iter();
        let there = answers.next().map(|found| found.points).unwrap_or_default();
        let scored = answers.next().map(|found| found.points).unwrap_or_default();
        let scores: HashMap<String, f32> =
            scored.iter().map(|one| (one.name(), one.score)).collect();
        let with_score = there.iter().map(|point| {
            let found = LexicalMatch::from(point);
            let score = scores.get(&found.version).copied().unwrap_or_default();
            LexicalMatch { score, ..found }
        });
        Ok(with_score.collect())
    }

    /// What these terms are worth, by how many documents have them. A word that languages write in
    /// several ways is as frequent as all of these ways together.
    pub(super) fn query_weights(&self, terms: &[&QueryTerm]) -> Result<QueryWeights, SearchError> {
        let forms = terms.iter().flat_map(|term| &term.forms);
        let numbers: Vec<u32> = forms
            .flat_map(|form| [body_term_id(form), title_term_id(form)])
            .collect();
        let counts = self.document_frequencies(&numbers)?;
        let all = self.head.documents;
        let mut values: BTreeMap<u32, f32> = BTreeMap::new();
        let mut rarities = HashMap::new();
        for term in terms {
            for (number, weight) in [
                (body_term_id as fn(&str) -> u32, 1.0),
                (title_term_id, TITLE_WEIGHT),
            ] {
                let with = term
                    .forms
                    .iter()
                    .map(|form| counts.get(&number(form)).copied().unwrap_or(0));
                let rare = idf(all, with.sum::<u64>().min(all));
                for form in &term.forms {
                    *values.entry(number(form)).or_default() += weight * term.weight * rare;
                    if weight == 1.0 {
                        rarities.insert(form.clone(), rare);
                    }
                }
            }
        }
        let (places, values) = values.into_iter().unzip();
        Ok(QueryWeights {
            places,
            values,
            idf_by_form: rarities,
        })
    }

    /// Finds out everything about the words of a question that will be needed, in one request.
    pub(super) fn prefetch_frequencies(&self, terms: &[QueryTerm]) -> Result<(), SearchError> {
        let forms = terms.iter().flat_map(|term| &term.forms);
        let numbers: Vec<u32> = forms
            .flat_map(|form| [body_term_id(form), title_term_id(form)])
            .collect();
        self.document_frequencies(&numbers).map(drop)
    }

    /// How many documents have each of these terms. Where documents are not for all it is found out at the
    /// same time whether the reader sees one of them.
    fn document_frequencies(&self, numbers: &[u32]) -> Result<HashMap<u32, u64>, SearchError> {
        let (generation, caches) = (self.head.generation, &self.inner.caches);
        let is_shared = self.head.restricted == 0;
        let mut known = HashMap::new();
        let mut open = Vec::new();
        for number in numbers {
            let of = (self.reader.clone(), *number);
            let is_told = is_shared || caches.seen.get(generation, &of).is_some();
            match caches.frequencies.get(generation, number) {
                Some(count) if is_told => drop(known.insert(*number, count)),
                _ if open.contains(number) => {}
                _ => open.push(*number),
            }
        }
        if open.is_empty() {
            return Ok(known);
        }
        let frequent = self.estimated_frequencies(&open)?;
        let live = QdrantFilter::live(&self.head);
        let mut questions = Vec::new();
        for number in &open {
            if !frequent.contains_key(number) {
                questions.push(sample(&live.clone().and(with_term(*number)), SAMPLE)?);
            }
            if !is_shared {
                questions.push(sample(&self.visible.clone().and(with_term(*number)), 1)?);
            }
        }
        let mut answers = if questions.is_empty() {
            QueryBatchResult::new()
        } else {
            self.batch("look words up", &self.inner.names.documents, &questions)?
        }
        .into_iter();
        for number in open {
            let count = match frequent.get(&number) {
                Some(count) => *count,
                None => {
                    let found = answers.next().map(|found| found.points).unwrap_or_default();
                    estimate_count(&found, SAMPLE)
                }
            };
            let count = count.min(self.head.documents);
            caches.frequencies.keep(generation, number, count);
            known.insert(number, count);
            if !is_shared {
                let is_seen = answers.next().is_some_and(|found| !found.points.is_empty());
                let of = (self.reader.clone(), number);
                caches.seen.keep(generation, of, is_seen);
            }
        }
        Ok(known)
    }

    /// Which of these terms more documents have than are counted, in a large index, and how many these are. There
    /// a node that looks for the first documents with such a term reads what it keeps of one document after
    /// another, wherever on the disk that lies. Its index of terms tells at once how many versions have it; those
    /// that have ended and are still there are among them.
    fn estimated_frequencies(&self, numbers: &[u32]) -> Result<HashMap<u32, u64>, SearchError> {
        if self.head.documents < self.inner.settings.many {
            return Ok(HashMap::new());
        }
        let counts = map_parallel(numbers, |number| {
            let with = json!({"must": [with_term(*number)]});
            Ok((*number, self.count(&with, false)?))
        })?;
        let is_frequent = |(_, count): &(u32, u64)| *count > SAMPLE as u64;
        Ok(counts.into_iter().filter(is_frequent).collect())
    }

    /// Words that meet conditions, for each of them.
    fn terms_matching(&self, filters: &[Value]) -> Result<Vec<Vec<String>>, SearchError> {
        let questions = filters.iter().map(|filter| {
            let asked = json!({"filter": filter, "limit": MAX_ALIKE, "with_payload": [TERM]});
            to_raw_value(&asked).map_err(SearchError::engine)
        });
        let questions: Vec<_> = questions.collect::<Result<_, _>>()?;
        let answers = self.batch("look for words", &self.inner.names.terms, &questions)?;
        let words = |found: PointsPage| {
            let points = found.points.iter();
            points.map(|point| point.text(TERM).to_owned()).collect()
        };
        Ok(answers.into_iter().map(words).collect())
    }
}

/// The first documents that meet conditions, in the order of their names.
fn sample(conditions: &QdrantFilter, most: usize) -> Result<Box<RawValue>, SearchError> {
    let asked = json!({"filter": conditions.json(), "limit": most, "with_payload": false});
    to_raw_value(&asked).map_err(SearchError::engine)
}

/// How many documents there are of which these are the first `most` in the order of their names. Names are
/// sums of what they name, and so as good as drawn at random: where the first of them take up a part of all
/// names, all of them are as many times more.
fn estimate_count(first: &[ScoredPoint], most: usize) -> u64 {
    let Some(last) = first.last().filter(|_| first.len() >= most) else {
        return first.len() as u64;
    };
    let digits: String = last.name().chars().filter(|c| *c != '-').take(16).collect();
    let place = u64::from_str_radix(&digits, 16).unwrap_or(u64::MAX).max(1);
    let share = place as f64 / u64::MAX as f64;
    ((first.len() - 1) as f64 / share).round() as u64
}

impl SpellingDictionary for ClusterView<'_> {
    type Error = SearchError;

    fn contains_term(&self, term: &str) -> Result<bool, SearchError> {
        let number = body_term_id(term);
        let count = self.document_frequencies(&[number])?.get(&number).copied();
        if self.head.restricted == 0 {
            return Ok(count.unwrap_or_default() > 0);
        }
        let seen = &self.inner.caches.seen;
        let is_seen = seen.get(self.head.generation, &(self.reader.clone(), number));
        match is_seen {
            Some(is_seen) => Ok(is_seen),
            // The table was full and begun anew, or another generation came.
            None => Ok(self.count(&self.visible.clone().and(any_term(&[term])).json(), true)? > 0),
        }
    }

    fn terms_starting_with(&self, first: char) -> Result<BTreeMap<String, u64>, SearchError> {
        self.similar_terms(&first.to_string())
    }

    /// Only words that may have been meant: those that begin so, and those that share most pairs of
    /// letters. Of very many the shortest are counted.
    fn similar_terms(&self, word: &str) -> Result<BTreeMap<String, u64>, SearchError> {
        let letters: Vec<char> = word.chars().collect();
        let beginning: String = letters.iter().take(MAX_PREFIX_CHARS).collect();
        let begins = json!({"must": [{"key": BEGINNINGS, "match": {"value": beginning}}]});
        let mut answers = self
            .terms_matching(&[begins, near_spelling_filter(&letters)])?
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
        let questions = found.iter().map(|term| {
            let with = self.visible.clone().and(any_term(&[term.as_str()]));
            sample(&with, SMALL_SAMPLE)
        });
        let questions: Vec<_> = questions.collect::<Result<_, _>>()?;
        let counts = self.batch("look words up", &self.inner.names.documents, &questions)?;
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

/// Leaves as many as are counted, those that are about as long first.
fn keep_similar_length(terms: &mut Vec<String>, letters: usize) {
    terms.sort_by_key(|term| term.chars().count().abs_diff(letters));
    terms.truncate(MAX_COUNTED);
}

/// The words that a slip or two may have made into this one: they begin with the same letter, are about as
/// long, and have most of their pairs of letters in common, of which each slip spoils three.
fn near_spelling_filter(letters: &[char]) -> Value {
    let first: String = letters.iter().take(1).collect();
    let slips = crate::spelling::max_edits_for(letters.len());
    let pairs = letter_bigrams(letters);
    let least = pairs.len().saturating_sub(3 * slips);
    let mut must = vec![
        json!({"key": BEGINNINGS, "match": {"value": first}}),
        json!({"key": LETTERS, "range": {
            "gte": letters.len().saturating_sub(slips), "lte": letters.len() + slips,
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
            let told = first(all, SAMPLE) as f64;
            let off = (told / all as f64 - 1.0).abs();
            assert!(off < 0.15, "{told} of {all}");
        }
    }
}
