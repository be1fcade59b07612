//! Listings that need no scores: documents by date, facet counts, the catalog of all fields, and the
//! inventory.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::ClusterInner;
use super::layout::{DAY, ID, VALUES, field_key};
use super::point;
use super::qdrant_filter::QdrantFilter;
use super::qdrant_response::{PointsPage, ScoredPoint};
use super::traffic::RequestKind;
use super::view::{ClusterView, PAGE};
use crate::catalog::{Catalog, CatalogBuilder};
use crate::engine::InventoryEntryRef;
use crate::error::SearchError;
use crate::facet_terms;
use crate::hit::{FacetCounts, MAX_FACET_VALUES};
use crate::query::SortOrder;
use crate::reader_identity::ReaderIdentity;

/// How many values of a field are requested from the cluster: more than are shown, because one value may
/// occur both as a text and as a list item.
const MAX_VALUES_ASKED: usize = 4 * MAX_FACET_VALUES;

/// How many values of a field the catalog is built from, the most frequent ones.
const MAX_VALUES_LISTED: usize = 10_000;

/// How many documents of one day, or without a day, are sorted by id.
const MAX_TIED: usize = 20_000;

/// A document in a list by date.
pub(super) struct ListedVersion {
    pub version: String,
    pub id: String,
    day: Option<i64>,
}

impl From<&ScoredPoint> for ListedVersion {
    fn from(point: &ScoredPoint) -> Self {
        Self {
            version: point.name(),
            id: point.text(ID).to_owned(),
            day: point.payload.get(DAY).and_then(Value::as_i64),
        }
    }
}

impl ClusterView<'_> {
    /// The first `most` documents by their day. Those without a day come last, and ids break ties.
    pub(super) fn list_by_day(
        &self,
        conditions: &QdrantFilter,
        sort: SortOrder,
        most: usize,
    ) -> Result<Vec<ListedVersion>, SearchError> {
        let mut listed = self.dated(conditions, sort, most)?;
        // Other documents of the last one's day may sort before it, so all of that day are read.
        if let Some(day) = listed
            .last()
            .and_then(|last| last.day)
            .filter(|_| listed.len() >= most)
        {
            let that_day = conditions
                .clone()
                .and(json!({"key": DAY, "match": {"value": day}}));
            listed.retain(|one| one.day != Some(day));
            let equals = self.list(&that_day.json(), &[ID, DAY], MAX_TIED)?;
            listed.extend(equals.iter().map(ListedVersion::from));
        }
        let key = |one: &ListedVersion| match (one.day, sort) {
            (Some(day), SortOrder::Oldest) => day,
            (Some(day), _) => -day,
            (None, _) => i64::MAX,
        };
        listed.sort_by(|left, right| {
            key(left)
                .cmp(&key(right))
                .then_with(|| left.id.cmp(&right.id))
        });
        listed.truncate(most);
        if listed.len() < most {
            let without = conditions.clone().and(json!({"is_empty": {"key": DAY}}));
            let found = self.list(&without.json(), &[ID], MAX_TIED)?;
            let mut rest: Vec<ListedVersion> = found.iter().map(ListedVersion::from).collect();
            rest.sort_by(|left, right| left.id.cmp(&right.id));
            rest.truncate(most - listed.len());
            listed.extend(rest);
        }
        Ok(listed)
    }

    /// The first documents that have a day, by day.
    fn dated(
        &self,
        conditions: &QdrantFilter,
        sort: SortOrder,
        most: usize,
    ) -> Result<Vec<ListedVersion>, SearchError> {
        let direction = if sort == SortOrder::Oldest {
            "asc"
        } else {
            "desc"
        };
        let body = json!({
            "filter": conditions.json(), "limit": most, "with_payload": [ID, DAY],
            "order_by": {"key": DAY, "direction": direction},
        });
        let found: PointsPage = self.documents(
            RequestKind::List,
            "list by day",
            "points/scroll",
            body.to_string(),
        )?;
        Ok(found.points.iter().map(ListedVersion::from).collect())
    }

    /// The facet counts of these fields over the documents that match the filter.
    pub(super) fn facet_counts(
        &self,
        conditions: &QdrantFilter,
        names: &[String],
    ) -> Result<Vec<FacetCounts>, SearchError> {
        names
            .iter()
            .map(|name| self.facet_of(conditions, name))
            .collect()
    }

    fn facet_of(&self, conditions: &QdrantFilter, name: &str) -> Result<FacetCounts, SearchError> {
        let clean = facet_terms::sanitize(name);
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        if self.head.fields.contains_key(&clean) {
            let key = field_key(VALUES, &clean);
            for (value, count) in self.facet(&key, conditions, MAX_VALUES_ASKED)? {
                if let Some(value) =
                    facet_terms::display_value(&format!("{}{value}", facet_terms::END))
                {
                    *counts.entry(value).or_default() += count;
                }
            }
        }
        Ok(FacetCounts::most_frequent(name, counts))
    }

    /// The catalog of fields of the documents that the reader sees, computed once a generation.
    pub(super) fn catalog(&self) -> Result<Arc<Catalog>, SearchError> {
        let cache = &self.inner.caches.catalogs;
        if let Some(catalog) = cache.get(self.head.generation, &self.reader) {
            return Ok(catalog);
        }
        let mut builder = CatalogBuilder::new();
        let documents = if self.head.restricted == 0 {
            self.head.documents
        } else {
            self.count_documents(&self.visible.json(), true)?
        };
        builder.documents(documents);
        for name in self.head.fields.keys() {
            for (value, count) in
                self.facet(&field_key(VALUES, name), &self.visible, MAX_VALUES_LISTED)?
            {
                facet_terms::add_to_catalog(
                    &format!("{name}{}{value}", facet_terms::END),
                    count,
                    &mut builder,
                );
            }
        }
        let catalog = Arc::new(builder.build());
        cache.keep(self.head.generation, self.reader.clone(), &catalog);
        Ok(catalog)
    }
}

impl ClusterInner {
    /// Visits every document of the index, in pages. Runs on the calling thread.
    pub(super) fn visit_inventory(
        &self,
        each: &mut (dyn FnMut(InventoryEntryRef<'_>) + Send),
    ) -> Result<(), SearchError> {
        let first = self.write_deadline();
        let view = ClusterView::new(self, self.head(first)?, ReaderIdentity::owner(), first);
        let live = QdrantFilter::live(&view.head).json();
        let mut offset = Value::Null;
        loop {
            let page = ClusterView {
                deadline: self.write_deadline(),
                ..ClusterView::new(self, view.head.clone(), ReaderIdentity::owner(), first)
            };
            let page = page.page(&live, &[ID, "source", "hash"], PAGE, &offset)?;
            for point in &page.points {
                if let Some(entry) = point::inventory_entry(&point.payload) {
                    each(entry);
                }
            }
            match page.next(&offset) {
                Some(next) => offset = next,
                None => return Ok(()),
            }
        }
    }
}
