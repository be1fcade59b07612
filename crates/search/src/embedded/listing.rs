//! Listings that need no scores: documents by date, facet counts, the catalog of fields, and the inventory.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::PoisonError;

use tantivy::schema::IndexRecordOption;
use tantivy::{DocSet, SegmentReader, TERMINATED};

use super::EmbeddedInner;
use super::candidate_set::SegmentedDocSet;
use super::index_view::DocHandle;
use super::schema::IndexFields;
use super::snapshot::IndexSnapshot;
use crate::catalog::{Catalog, CatalogBuilder};
use crate::engine::{self, InventoryEntry, InventoryEntryRef};
use crate::error::SearchError;
use crate::facet_terms;
use crate::hit::FacetCounts;
use crate::query::SortOrder;

/// The first `most` documents of a set by their day. Those without a day come last, and ids break ties.
pub(super) fn by_day(
    snapshot: &IndexSnapshot,
    documents: &SegmentedDocSet,
    sort: SortOrder,
    most: usize,
) -> Vec<DocHandle> {
    let mut dated: Vec<(Reverse<i64>, DocHandle)> = Vec::new();
    let keep = |dated: &mut Vec<(Reverse<i64>, DocHandle)>| {
        dated.sort_by(|(left, one), (right, two)| {
            left.cmp(right).then_with(|| one.by_id(two, snapshot))
        });
        dated.truncate(most);
    };
    for at in documents.iter() {
        let key = match (snapshot.day(at), sort) {
            (None, _) => i64::MIN,
            (Some(day), SortOrder::Oldest) => -day,
            (Some(day), _) => day,
        };
        dated.push((Reverse(key), DocHandle::new(at)));
        // Truncating a full list now and then costs less than keeping an entry for every document.
        if dated.len() >= most.saturating_mul(4).max(1_024) {
            keep(&mut dated);
        }
    }
    keep(&mut dated);
    dated.into_iter().map(|(_, candidate)| candidate).collect()
}

/// The facet counts of some fields over a set of documents.
pub(super) fn facets(
    snapshot: &IndexSnapshot,
    fields: &IndexFields,
    documents: &SegmentedDocSet,
    names: &[String],
) -> tantivy::Result<Vec<FacetCounts>> {
    let mut found = Vec::new();
    for name in names {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for (ordinal, segment) in (0..).zip(snapshot.searcher.segment_readers()) {
            let range = facet_terms::field_range(name);
            each_term(segment, fields, Some(&range), |term, docs| {
                let count = docs.filter(|doc| documents.contains(ordinal, *doc)).count() as u64;
                if count > 0
                    && let Some(value) = facet_terms::display_value(term)
                {
                    *counts.entry(value).or_default() += count;
                }
            })?;
        }
        found.push(FacetCounts::most_frequent(name, counts));
    }
    Ok(found)
}

/// The catalog of fields of some documents, or of all.
pub(super) fn catalog(
    snapshot: &IndexSnapshot,
    fields: &IndexFields,
    visible: Option<&SegmentedDocSet>,
) -> tantivy::Result<Catalog> {
    let mut builder = CatalogBuilder::new();
    builder.documents(visible.map_or(snapshot.searcher.num_docs(), SegmentedDocSet::count));
    for (ordinal, segment) in (0..).zip(snapshot.searcher.segment_readers()) {
        each_term(segment, fields, None, |term, docs| {
            let is_visible =
                |doc: &u32| visible.is_none_or(|visible| visible.contains(ordinal, *doc));
            let count = docs.filter(is_visible).count() as u64;
            if count > 0 {
                facet_terms::add_to_catalog(term, count, &mut builder);
            }
        })?;
    }
    Ok(builder.build())
}

/// Calls `take` for every facet term of a range, or for all of them, with the live documents that have it.
pub(super) fn each_term(
    segment: &SegmentReader,
    fields: &IndexFields,
    range: Option<&std::ops::Range<String>>,
    mut take: impl FnMut(&str, &mut dyn Iterator<Item = u32>),
) -> tantivy::Result<()> {
    let index = segment.inverted_index(fields.facets)?;
    let mut terms = index.terms().range();
    if let Some(range) = range {
        terms = terms.ge(range.start.as_bytes()).lt(range.end.as_bytes());
    }
    let mut stream = terms.into_stream()?;
    while stream.advance() {
        let term = String::from_utf8_lossy(stream.key()).into_owned();
        let info = stream.value();
        let mut postings = index.read_postings_from_terminfo(info, IndexRecordOption::Basic)?;
        let mut docs = std::iter::from_fn(|| {
            let doc = postings.doc();
            postings.advance();
            (doc != TERMINATED).then_some(doc)
        })
        .filter(|doc| !segment.is_deleted(*doc));
        take(&term, &mut docs);
    }
    Ok(())
}

impl EmbeddedInner {
    /// Every document of the index, sorted by id.
    pub(super) fn inventory(&self) -> Result<Vec<InventoryEntry>, SearchError> {
        let mut entries = engine::collect_inventory(|each| self.visit_inventory(each))?;
        entries.sort_by(|left, right| left.id.cmp(&right.id));
        Ok(entries)
    }

    /// Visits every document: from the ledger when this process is the writer, from the index otherwise.
    pub(super) fn visit_inventory(
        &self,
        each: &mut (dyn FnMut(InventoryEntryRef<'_>) + Send),
    ) -> Result<(), SearchError> {
        let Some(writer) = &self.writer else {
            let visited = self.snapshot().visit_inventory(each);
            return visited.map_err(|source| self.index_error(source));
        };
        let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
        let present = self.snapshot().generation;
        writer.visit_inventory(present, each)
    }
}
