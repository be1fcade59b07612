//! Scored entries of the reference engine, their conversion to hits, and facet counts.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::MemoryEntry;
use crate::document::{DocId, DocumentValue};
use crate::fusion::FusionCandidate;
use crate::hit::{FacetCounts, MAX_EXCERPTS, MAX_FACET_VALUES, SearchHit};
use crate::query::{Query, SortOrder};
use crate::snippet::{HighlightTerms, HitContext};

/// An entry with its scores: `words` is BM25 without phrases, `pairs` the bonus for adjacent words, `semantic` the
/// cosine of the nearest passage and `near` the nearest passages.
pub(super) struct RankedEntry<'s> {
    pub entry: &'s MemoryEntry,
    pub words: f32,
    pairs: f32,
    pub semantic: Option<f32>,
    is_foreign: bool,
    near: Vec<Range<usize>>,
    pub is_candidate: bool,
}

impl<'s> RankedEntry<'s> {
    pub(super) fn new(
        entry: &'s MemoryEntry,
        words: f32,
        pairs: f32,
        query_vector: Option<&[f32]>,
    ) -> Self {
        let mut near: Vec<(f32, Range<usize>)> = Vec::new();
        if let (Some(query_vector), Some(vectors)) = (query_vector, &entry.vectors) {
            let dot = |vector: &[f32]| query_vector.iter().zip(vector).map(|(a, b)| a * b).sum();
            near.extend(
                vectors
                    .iter()
                    .map(|(range, vector)| (dot(vector), range.clone())),
            );
            near.sort_by(|left, right| right.0.total_cmp(&left.0));
            near.truncate(MAX_EXCERPTS);
        }
        Self {
            entry,
            words,
            pairs,
            semantic: near.first().map(|(score, _)| *score),
            is_foreign: query_vector.is_some() && entry.vectors.as_ref().is_some_and(Vec::is_empty),
            near: near.into_iter().map(|(_, range)| range).collect(),
            is_candidate: false,
        }
    }

    pub(super) fn id(&self) -> &DocId {
        &self.entry.mapped.document.id
    }

    pub(super) fn into_candidate(self) -> FusionCandidate<Self> {
        let (lexical, semantic) = (self.words + self.pairs, self.semantic);
        let is_foreign = self.is_foreign;
        FusionCandidate::new(self, Some(lexical), semantic).foreign(is_foreign)
    }
}

pub(super) fn hit(
    one: &FusionCandidate<RankedEntry<'_>>,
    query: &Query,
    wanted: &HighlightTerms,
) -> SearchHit {
    one.item.entry.mapped.hit(&HitContext {
        score: one.parts.score,
        near: &|| one.item.near.clone(),
        excerpts: query.excerpts,
        wanted,
        why: one.explanation(one.item.pairs),
    })
}

/// Lists entries by date, those without one last.
pub(super) fn list_by_day<'s>(
    entries: &[&'s MemoryEntry],
    sort: SortOrder,
) -> Vec<FusionCandidate<RankedEntry<'s>>> {
    let mut list: Vec<_> = entries
        .iter()
        .map(|entry| RankedEntry::new(entry, 0.0, 0.0, None))
        .collect();
    let day = |one: &RankedEntry<'_>| one.entry.mapped.document.date.clone();
    list.sort_by(|left, right| match (day(left), day(right)) {
        (Some(left), Some(right)) if sort == SortOrder::Oldest => left.cmp(&right),
        (Some(left), Some(right)) => right.cmp(&left),
        (left, right) => left.is_none().cmp(&right.is_none()),
    });
    list.into_iter().map(FusionCandidate::listed).collect()
}

/// Facet counts of one field: how many of the entries have each value.
pub(super) fn facet(entries: &[&MemoryEntry], name: &str) -> FacetCounts {
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
    let mut values: Vec<_> = counts.into_iter().collect();
    values.sort_by(|left, right| right.1.cmp(&left.1).then_with(|| left.0.cmp(&right.0)));
    let more = values.len() > MAX_FACET_VALUES;
    values.truncate(MAX_FACET_VALUES);
    FacetCounts {
        field: name.to_owned(),
        values,
        more,
    }
}
