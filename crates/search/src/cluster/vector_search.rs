//! Semantic search: the documents whose passages have the vectors nearest to a query, and those passages.

use std::collections::HashMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::layout::{DOCUMENT, FROM, ID};
use super::qdrant_filter::QdrantFilter;
use super::qdrant_response::{GroupsResult, PointGroup, ScoredPoint};
use super::request::ClusterRequest;
use super::traffic::RequestKind;
use super::view::ClusterView;
use crate::document::DocId;
use crate::engine::PassageVector;
use crate::error::SearchError;
use crate::hit::MAX_EXCERPTS;
use crate::passage::MAX_PASSAGES;

/// The most documents that one vector query returns.
const MAX_NEAR: usize = 2_000;

/// The payload keys for the byte range of a passage in the text of its document.
const PLACE: [&str; 2] = ["start", "end"];

/// The reply to a request for passages with their vectors.
#[derive(Deserialize)]
struct VectorPoints {
    points: Vec<VectorPoint>,
}

#[derive(Deserialize)]
struct VectorPoint {
    payload: PassageSpan,
    vector: Vec<f32>,
}

#[derive(Deserialize)]
struct PassageSpan {
    start: usize,
    end: usize,
}

/// A vector query for passages, grouped by document.
#[derive(Serialize)]
struct GroupedVectorQuery<'a> {
    query: &'a [f32],
    filter: Value,
    limit: usize,
    with_payload: &'a [&'a str],
    group_by: &'a str,
    group_size: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    with_lookup: Option<GroupLookup<'a>>,
}

/// Reads the point of another collection that a group is named after.
#[derive(Serialize)]
struct GroupLookup<'a> {
    collection: &'a str,
    with_payload: &'a [&'a str],
    with_vectors: bool,
}

/// How near a document is to the query: the similarity of its nearest passage.
pub(super) struct NearestPassages {
    pub semantic: f32,
    /// The nearest passages, the nearest first.
    pub passages: Vec<Range<usize>>,
}

/// The nearest documents by their version ids.
pub(super) type NearestByVersion = HashMap<String, NearestPassages>;

impl PointGroup {
    /// The passages of the group; `None` when it has none.
    pub(super) fn nearest(&self) -> Option<NearestPassages> {
        Some(NearestPassages {
            semantic: self.hits.first()?.score,
            passages: self.hits.iter().map(place).collect(),
        })
    }
}

impl ClusterView<'_> {
    /// The versions nearest to a query vector among those whose passages match the filter, each with its
    /// similarity and its nearest passage.
    pub(super) fn nearest_versions(
        &self,
        query_vector: &[f32],
        conditions: &QdrantFilter,
        most: usize,
    ) -> Result<NearestByVersion, SearchError> {
        self.query_groups(query_vector, conditions, most, 1)
    }

    fn query_groups(
        &self,
        query_vector: &[f32],
        conditions: &QdrantFilter,
        most: usize,
        each: usize,
    ) -> Result<NearestByVersion, SearchError> {
        let groups = self.groups(query_vector, conditions, (most, each), None)?;
        let versions = groups
            .iter()
            .filter_map(|group| Some((group.id.as_str()?.to_owned(), group.nearest()?)));
        Ok(versions.collect())
    }

    /// The passages of these versions that are nearest to a query vector, each with these keys of its document.
    pub(super) fn groups_with_documents(
        &self,
        query_vector: &[f32],
        versions: &[String],
        keys: &[&str],
    ) -> Result<Vec<PointGroup>, SearchError> {
        let lookup = GroupLookup {
            collection: &self.inner.names.documents,
            with_payload: keys,
            with_vectors: false,
        };
        let conditions = self.passages_of(versions);
        self.groups(query_vector, &conditions, (versions.len(), 1), Some(lookup))
    }

    /// So many groups of passages, and so many passages of each.
    fn groups(
        &self,
        query_vector: &[f32],
        conditions: &QdrantFilter,
        (most, each): (usize, usize),
        with_lookup: Option<GroupLookup<'_>>,
    ) -> Result<Vec<PointGroup>, SearchError> {
        let Some(model) = self.model.as_ref().filter(|_| most > 0) else {
            return Ok(Vec::new());
        };
        let groups_query = GroupedVectorQuery {
            query: query_vector,
            filter: conditions.json(),
            limit: most.min(MAX_NEAR),
            with_payload: &PLACE,
            group_by: DOCUMENT,
            group_size: each,
            with_lookup,
        };
        let body = serde_json::to_string(&groups_query).map_err(SearchError::engine)?;
        let path = format!("/collections/{}/points/query/groups", model.passages);
        let request = ClusterRequest::read(RequestKind::Search, "search vectors", path, body);
        let found: GroupsResult = self.inner.nodes.request(&request, self.deadline)?;
        Ok(found.groups)
    }

    /// The similarity of these versions to a query vector.
    pub(super) fn score_versions(
        &self,
        query_vector: &[f32],
        versions: &[String],
    ) -> Result<NearestByVersion, SearchError> {
        let mut found = NearestByVersion::new();
        for some in versions.chunks(MAX_NEAR) {
            found.extend(self.nearest_versions(
                query_vector,
                &self.passages_of(some),
                some.len(),
            )?);
        }
        Ok(found)
    }

    /// The passages of these versions that are nearest to a query vector.
    pub(super) fn nearest_passages(
        &self,
        query_vector: &[f32],
        versions: &[String],
    ) -> Result<NearestByVersion, SearchError> {
        let most = versions.len();
        self.query_groups(
            query_vector,
            &self.passages_of(versions),
            most,
            MAX_EXCERPTS,
        )
    }

    /// The filter for the passages of these versions.
    fn passages_of(&self, versions: &[String]) -> QdrantFilter {
        let these = json!({"key": DOCUMENT, "match": {"any": versions}});
        self.visible_passages().and(these)
    }

    /// The filter for the passages that the reader may see.
    pub(super) fn visible_passages(&self) -> QdrantFilter {
        QdrantFilter::visible_passages(&self.head, &self.reader)
    }

    /// The passages of a document with their vectors, where those are of this process's model.
    pub(super) fn vectors(&self, id: &DocId) -> Result<Vec<PassageVector>, SearchError> {
        let own = self.inner.models.own.as_ref();
        let Some(own) = own.filter(|own| own.name == self.head.model) else {
            return Ok(Vec::new());
        };
        let this = json!({"key": ID, "match": {"value": id.as_str()}});
        let found = self.list(&self.visible.clone().and(this).json(), &[FROM], 1)?;
        let Some(version) = found.first().map(ScoredPoint::name) else {
            return Ok(Vec::new());
        };
        let body = json!({
            "filter": {
                "must": [{"key": DOCUMENT, "match": {"value": version}}],
                // Leaves out the placeholder of a document without passages.
                "must_not": [{"is_empty": {"key": "start"}}],
            },
            "limit": MAX_PASSAGES, "with_payload": PLACE, "with_vector": true,
        });
        let path = format!("/collections/{}/points/scroll", own.passages);
        let request =
            ClusterRequest::read(RequestKind::Fetch, "read vectors", path, body.to_string());
        let found: VectorPoints = self.inner.nodes.request(&request, self.deadline)?;
        let mut vectors: Vec<_> = found
            .points
            .into_iter()
            .map(|point| PassageVector {
                range: point.payload.start..point.payload.end,
                vector: point.vector,
            })
            .collect();
        vectors.sort_by_key(|one| one.range.start);
        Ok(vectors)
    }
}

fn place(point: &ScoredPoint) -> Range<usize> {
    let [start, end] = PLACE.map(|key| usize::try_from(point.number(key)).unwrap_or_default());
    start..end
}
