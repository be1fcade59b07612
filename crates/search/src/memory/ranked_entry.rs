//! Entries of the reference engine on their way to become hits, and what is counted over them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::MemoryEntry;
use crate::document::{DocId, DocumentValue};
use crate::fusion::FusionCandidate;
use crate::hit::{FacetCounts, MAX_EXCERPTS, MAX_FACET_VALUES, SearchHit};
use crate::query::{Query, SortOrder};
use crate::snippet::{HighlightTerms, HitContext};

/// An entry on its way to become a hit.
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
        question: Option<&[f32]>,
    ) -> Self {
        let mut near: Vec<(f32, Range<usize>)> = Vec::new();
        if let (Some(question), Some(vectors)) = (question, &entry.vectors) {
            let dot = |vector: &[f32]| question.iter().zip(vector).map(|(a, b)| a * b).sum();
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
            is_foreign: question.is_some() && entry.vectors.as_ref().is_some_and(Vec::is_empty),
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

/// Entries in the order of their days, those without one last.
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

/// The values of a field among some entries.
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
