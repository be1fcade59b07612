//! Converts documents into points of the cluster, and back.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use super::head::IndexHead;
use super::layout::{
    BEGINNINGS, DAY, DAYS, DOCUMENT, FIRST, FROM, ID, LANGUAGE, LENGTHS, LETTERS, NUMBERS, PAIRS,
    SIZE, STORED, TERM, TERMS, TEXTS, VALUES, WEIGHED, WHO, field_key, point_id,
};
use super::qdrant_filter::{body_term_id, finite, reader_marks, title_term_id};
use crate::analysis::{Language, detect};
use crate::calendar::Day;
use crate::document::{Document, DocumentValue as Fact};
use crate::engine::InventoryEntryRef;
use crate::error::SearchError;
use crate::facet_terms;
use crate::filter::fold_value;
use crate::passage::Passage;
use crate::stored_document::{self, StoredDocument};
use crate::term_positions::{TermPositions, term_frequency_weight};

/// A point in the form in which it is written.
#[derive(Serialize)]
pub(super) struct PointStruct {
    pub id: String,
    /// Serialised at once: a float that goes through a JSON tree comes out with twice its digits.
    pub vector: Box<RawValue>,
    pub payload: Value,
}

impl PointStruct {
    /// A point without a vector.
    pub(super) fn bare(id: String, payload: Value) -> Result<Self, SearchError> {
        Ok(Self {
            id,
            vector: to_raw_value(&SparseVectors { words: None }).map_err(SearchError::engine)?,
            payload,
        })
    }
}

/// The sparse vector of a document, which holds the BM25 weights of its terms; `None` for a document without
/// terms.
#[derive(Serialize)]
struct SparseVectors<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    words: Option<SparseVector<'a>>,
}

impl<'a> SparseVectors<'a> {
    fn of(indices: &'a [u32], values: &'a [f32]) -> Self {
        let words = SparseVector { indices, values };
        Self {
            words: Some(words).filter(|words| !words.indices.is_empty()),
        }
    }
}

#[derive(Serialize)]
pub(super) struct SparseVector<'a> {
    pub indices: &'a [u32],
    pub values: &'a [f32],
}

/// A document with its language and its term positions.
pub(super) struct PreparedDocument<'d> {
    pub document: &'d Document,
    pub language: Language,
    title: TermPositions,
    body: TermPositions,
}

impl<'d> PreparedDocument<'d> {
    pub(super) fn new(document: &'d Document) -> Self {
        let language = detect(&document.title, &document.text);
        let (title, body) = TermPositions::of(document, language);
        Self {
            document,
            language,
            title,
            body,
        }
    }

    /// The number of terms in its body and in its title.
    pub(super) fn lengths(&self) -> [u64; 2] {
        [self.body.length as u64, self.title.length as u64]
    }

    /// The terms of its body, which spelling correction may suggest.
    pub(super) fn terms(&self) -> impl Iterator<Item = &str> {
        self.body.counts().map(|(term, _)| term)
    }

    /// The ids of its terms, each once: those of its sparse vector.
    pub(super) fn term_ids(&self) -> Vec<u32> {
        let body = self.body.counts().map(|(term, _)| body_term_id(term));
        let title = self.title.counts().map(|(term, _)| title_term_id(term));
        let mut ids: Vec<u32> = body.chain(title).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// The ids and BM25 weights of its terms, for these mean lengths of body and title. Where two terms share
    /// an id, the higher weight stays.
    fn sparse_weights(&self, means: [f32; 2]) -> (Vec<u32>, Vec<f32>) {
        let mut words: Vec<(u32, f32)> = Vec::new();
        let [mean_body, mean_title] = means;
        let mut weigh = |term_id: u32, weight: f32| words.push((term_id, weight));
        for (term, count) in self.body.counts() {
            weigh(
                body_term_id(term),
                term_frequency_weight(count, self.body.length, mean_body),
            );
        }
        for (term, count) in self.title.counts() {
            weigh(
                title_term_id(term),
                term_frequency_weight(count, self.title.length, mean_title),
            );
        }
        words.sort_unstable_by(|left, right| {
            let by_weight = right.1.total_cmp(&left.1);
            left.0.cmp(&right.0).then(by_weight)
        });
        words.dedup_by_key(|(term_id, _)| *term_id);
        words.into_iter().unzip()
    }

    /// The sparse vector alone, for these mean lengths; `None` for a document without terms.
    pub(super) fn sparse_vector(
        &self,
        means: [f32; 2],
    ) -> Result<Option<Box<RawValue>>, SearchError> {
        let (term_ids, weights) = self.sparse_weights(means);
        let vectors = SparseVectors::of(&term_ids, &weights);
        let vector = vectors.words.is_some().then(|| to_raw_value(&vectors));
        vector.transpose().map_err(SearchError::engine)
    }

    /// The point of the version that the next generation adds.
    pub(super) fn point(&self, next: &IndexHead) -> Result<PointStruct, SearchError> {
        let document = self.document;
        let generation = next.generation;
        let (term_ids, weights) = self.sparse_weights(next.means);
        let mut payload = filter_payload(document);
        payload.insert(FROM.to_owned(), json!(generation));
        payload.insert(ID.to_owned(), json!(document.id.as_str()));
        payload.insert("source".to_owned(), json!(document.source));
        payload.insert("hash".to_owned(), json!(document.hash));
        payload.insert(TERMS.to_owned(), json!(term_ids));
        payload.insert(LANGUAGE.to_owned(), json!(self.language.code()));
        payload.insert(LENGTHS.to_owned(), json!(self.lengths()));
        payload.insert(WEIGHED.to_owned(), json!(next.means_version));
        if let Some(day) = document
            .date
            .as_deref()
            .and_then(stored_document::day_number)
        {
            payload.insert(DAY.to_owned(), json!(day));
        }
        // Stored as JSON text, so that numbers and the order of fields come back unchanged.
        let stored =
            serde_json::to_string(&StoredDocument::from(document)).map_err(SearchError::engine)?;
        payload.insert(SIZE.to_owned(), json!(stored.len()));
        payload.insert(STORED.to_owned(), Value::String(stored));
        let facets = facet_values(document).into_iter();
        for (name, values) in facets {
            let place = payload
                .entry(VALUES.to_string())
                .or_insert_with(|| json!({}));
            insert(place, VALUES, &name, json!(values));
        }
        let vectors = SparseVectors::of(&term_ids, &weights);
        Ok(PointStruct {
            id: version_id(document.id.as_str(), generation),
            vector: to_raw_value(&vectors).map_err(SearchError::engine)?,
            payload: Value::Object(payload),
        })
    }
}

/// The point id of a version of a document.
pub(super) fn version_id(id: &str, generation: u64) -> String {
    point_id(&["document", id, &generation.to_string()])
}

/// The part of the payload that filters use: who may read the document, and its metadata fields.
fn filter_payload(document: &Document) -> Map<String, Value> {
    let mut texts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut numbers: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let mut days: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for (name, value) in document.filterable_fields() {
        let name = facet_terms::sanitize(name);
        match value.as_ref() {
            Fact::Text(text) => drop(texts.entry(name).or_default().insert(fold_value(text))),
            Fact::List(items) => {
                texts
                    .entry(name)
                    .or_default()
                    .extend(items.iter().map(|item| fold_value(item)));
            }
            Fact::Number(number) if number.is_nan() => {}
            Fact::Number(number) => numbers.entry(name).or_default().push(finite(*number)),
            Fact::Date(day) => {
                let day =
                    Day::parse(day).and_then(|day| stored_document::day_number(&day.to_string()));
                days.entry(name).or_default().extend(day);
            }
            Fact::Bool(_) => {}
        }
    }
    let mut payload = Map::new();
    payload.insert(WHO.to_owned(), json!(reader_marks(document)));
    let all = texts
        .into_iter()
        .map(|(name, values)| (TEXTS, name, json!(values)));
    let all = all.chain(
        numbers
            .into_iter()
            .map(|(name, values)| (NUMBERS, name, json!(values))),
    );
    let all = all.chain(
        days.into_iter()
            .map(|(name, values)| (DAYS, name, json!(values))),
    );
    for (mark, name, values) in all {
        let place = payload.entry(mark.to_string()).or_insert_with(|| json!({}));
        insert(place, mark, &name, values);
    }
    // Booleans are filterable too; they stand among the facet values, where `b` marks them.
    for (name, values) in facet_values(document) {
        let flags: Vec<_> = values
            .into_iter()
            .filter(|value| value.starts_with('b'))
            .collect();
        if !flags.is_empty() {
            let place = payload
                .entry(VALUES.to_string())
                .or_insert_with(|| json!({}));
            insert(place, VALUES, &name, json!(flags));
        }
    }
    payload
}

/// Inserts the values of a metadata field under its key.
fn insert(place: &mut Value, mark: char, name: &str, values: Value) {
    let key = field_key(mark, name);
    let key = key.split_once('.').map_or("", |(_, key)| key);
    if let Some(map) = place.as_object_mut() {
        map.insert(key.to_owned(), values);
    }
}

/// The values of each metadata field as facets count them: a mark of the kind, then the value.
pub(super) fn facet_values(document: &Document) -> BTreeMap<String, Vec<String>> {
    let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for term in facet_terms::terms(document) {
        if let Some((name, value)) = term.split_once(facet_terms::END) {
            values
                .entry(name.to_owned())
                .or_default()
                .push(value.to_owned());
        }
    }
    values
}

/// The kinds of payload indexes that a document's metadata fields need, as marks.
pub(super) fn index_kinds(document: &Document) -> BTreeMap<String, BTreeSet<char>> {
    let mut kinds: BTreeMap<String, BTreeSet<char>> = BTreeMap::new();
    for (name, values) in facet_values(document) {
        let of = kinds.entry(name).or_default();
        of.insert(VALUES);
        for value in values {
            match value.chars().next() {
                Some('t' | 'l') => of.insert(TEXTS),
                Some('n') => of.insert(NUMBERS),
                Some('d') => of.insert(DAYS),
                _ => false,
            };
        }
    }
    kinds
}

/// The point of a passage of a version, with its embedding.
pub(super) fn passage_point(
    document: &Document,
    version: &str,
    passage: &Passage,
    vector: &[f32],
) -> Result<PointStruct, SearchError> {
    let mut payload = filter_payload(document);
    payload.insert(DOCUMENT.to_owned(), json!(version));
    payload.insert("start".to_owned(), json!(passage.range.start));
    payload.insert("end".to_owned(), json!(passage.range.end));
    if passage.index == 0 {
        payload.insert(FIRST.to_owned(), json!(true));
    }
    Ok(PointStruct {
        id: passage_id(version, passage.index),
        vector: to_raw_value(vector).map_err(SearchError::engine)?,
        payload: Value::Object(payload),
    })
}

/// A placeholder for the first passage of a version that has no passages, so that it counts as embedded.
pub(super) fn empty_passage_point(version: &str) -> Result<PointStruct, SearchError> {
    PointStruct::bare(
        passage_id(version, 0),
        json!({DOCUMENT: version, FIRST: true}),
    )
}

/// The point id of a passage of a version.
pub(super) fn passage_id(version: &str, index: usize) -> String {
    point_id(&["passage", version, &index.to_string()])
}

/// The point of a term, for spelling correction: it is found by its prefixes, and by similar terms through
/// letter pairs.
pub(super) fn term_point(term: &str) -> Result<PointStruct, SearchError> {
    let letters: Vec<char> = term.chars().collect();
    PointStruct::bare(
        point_id(&["term", term]),
        json!({
            TERM: term,
            BEGINNINGS: prefixes(&letters),
            PAIRS: letter_bigrams(&letters),
            LETTERS: letters.len(),
        }),
    )
}

/// The longest prefix that is indexed; longer ones are compared by the caller.
pub(super) const MAX_PREFIX_CHARS: usize = 6;

fn prefixes(letters: &[char]) -> Vec<String> {
    let lengths = 1..=MAX_PREFIX_CHARS.min(letters.len());
    let some = lengths.filter(|length| *length == 1 || *length >= 3);
    some.map(|length| letters.iter().take(length).collect())
        .collect()
}

/// The letter bigrams of a word.
pub(super) fn letter_bigrams(letters: &[char]) -> BTreeSet<String> {
    letters
        .windows(2)
        .map(|pair| pair.iter().collect())
        .collect()
}

/// Decodes the document of a point; `None` when the payload is not one that this module has written.
pub(super) fn read_document(payload: &Value) -> Option<Document> {
    let text = payload.get(STORED)?.as_str()?;
    serde_json::from_str::<StoredDocument<'_>>(text)
        .ok()?
        .into_document()
}

/// The inventory entry of a document, borrowed from its payload.
pub(super) fn inventory_entry(payload: &Value) -> Option<InventoryEntryRef<'_>> {
    Some(InventoryEntryRef {
        id: payload.get(ID)?.as_str()?,
        source: payload.get("source")?.as_str()?,
        hash: payload.get("hash")?.as_str()?,
    })
}
