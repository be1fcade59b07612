//! A snapshot: one generation of the index as one reader sees it. Every answer is computed from one.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::ClusterInner;
use super::caches::CachedVersion;
use super::head::IndexHead;
use super::layout::{ID, LANGUAGE, STORED};
use super::model::ClusterModel;
use super::point;
use super::qdrant_filter::QdrantFilter;
use super::qdrant_response::{CountResult, FacetHits, PointsPage, QueryBatchResult, ScoredPoint};
use super::request::{ClusterRequest, RequestDeadline};
use super::traffic::RequestKind;
use super::word_statistics::WordStatistics;
use crate::analysis::Language;
use crate::document::{DocId, Document};
use crate::error::SearchError;
use crate::reader_identity::ReaderIdentity;

/// The page size of scroll requests where all points are wanted.
pub(super) const PAGE: usize = 1_000;

/// A snapshot of one generation, for one reader, until a deadline.
pub(super) struct ClusterView<'a> {
    pub inner: &'a ClusterInner,
    pub head: Arc<IndexHead>,
    pub reader: ReaderIdentity,
    pub deadline: RequestDeadline,
    /// The filter for what the reader may see.
    pub visible: QdrantFilter,
    /// The embedding model whose vectors answer, unless there is none, this program lacks it, or its graphs
    /// are deferred.
    pub model: Option<Arc<ClusterModel>>,
    /// The word statistics of the generation, read when the first word is looked up.
    pub statistics: OnceLock<Option<Arc<WordStatistics>>>,
}

impl<'a> ClusterView<'a> {
    pub(super) fn new(
        inner: &'a ClusterInner,
        head: Arc<IndexHead>,
        reader: ReaderIdentity,
        deadline: RequestDeadline,
    ) -> Self {
        let serving = inner.models.serving(&head);
        Self {
            inner,
            visible: QdrantFilter::visible(&head, &reader),
            model: serving.filter(|model| !inner.defers_indexing(&head, &model.name)),
            head,
            reader,
            deadline,
            statistics: OnceLock::new(),
        }
    }

    /// The word statistics of this generation; `None` where nodes have to be asked.
    pub(super) fn statistics(&self) -> Option<&WordStatistics> {
        let statistics = self
            .statistics
            .get_or_init(|| self.inner.word_statistics(&self.head, self.deadline));
        statistics.as_deref()
    }

    /// The languages of the documents that the reader sees, the most frequent first.
    pub(super) fn visible_languages(&self) -> Result<Vec<Language>, SearchError> {
        if self.head.restricted == 0 {
            return Ok(self.head.languages());
        }
        let (cache, generation) = (&self.inner.caches.languages, self.head.generation);
        if let Some(languages) = cache.get(generation, &self.reader) {
            return Ok(languages);
        }
        let counts = self.facet(LANGUAGE, &self.visible, Language::ALL.len())?;
        let known = |code: &str| Language::ALL.into_iter().find(|one| one.code() == code);
        let counts = counts
            .iter()
            .filter_map(|(code, count)| Some((known(code)?, *count)));
        let languages = Language::by_document_count(counts);
        cache.keep(generation, self.reader.clone(), &languages);
        Ok(languages)
    }

    /// Sends a read request to the documents collection.
    pub(super) fn documents<T: serde::de::DeserializeOwned>(
        &self,
        kind: RequestKind,
        action: &'static str,
        path: &str,
        body: String,
    ) -> Result<T, SearchError> {
        let path = format!("/collections/{}/{path}", self.inner.names.documents);
        let request = ClusterRequest::read(kind, action, path, body);
        self.inner.nodes.request(&request, self.deadline)
    }

    /// Sends several queries in one request and returns their results in the same order.
    pub(super) fn batch(
        &self,
        action: &'static str,
        collection: &str,
        queries: &[Box<RawValue>],
    ) -> Result<QueryBatchResult, SearchError> {
        let body = serde_json::to_string(&BatchQuery { searches: queries });
        let path = format!("/collections/{collection}/points/query/batch");
        let request = ClusterRequest::read(
            RequestKind::Search,
            action,
            path,
            body.map_err(SearchError::engine)?,
        );
        let answers: QueryBatchResult = self.inner.nodes.request(&request, self.deadline)?;
        if answers.len() == queries.len() {
            return Ok(answers);
        }
        Err(SearchError::engine(
            "the cluster left a query of a batch unanswered",
        ))
    }

    /// How many documents match the filter.
    pub(super) fn count_documents(
        &self,
        conditions: &Value,
        is_exact: bool,
    ) -> Result<u64, SearchError> {
        let body = json!({"filter": conditions, "exact": is_exact}).to_string();
        let counted: CountResult =
            self.documents(RequestKind::Count, "count", "points/count", body)?;
        Ok(counted.count)
    }

    /// The most frequent values of a payload key among the documents that match the filter.
    pub(super) fn facet(
        &self,
        key: &str,
        conditions: &QdrantFilter,
        most: usize,
    ) -> Result<Vec<(String, u64)>, SearchError> {
        let body = json!({"key": key, "filter": conditions.json(), "limit": most, "exact": true});
        let found: FacetHits = self.documents(
            RequestKind::Facets,
            "count values",
            "facet",
            body.to_string(),
        )?;
        let values = found.hits.into_iter();
        let text = |value: Value| value.as_str().map(str::to_owned);
        Ok(values
            .filter_map(|hit| Some((text(hit.value)?, hit.count)))
            .collect())
    }

    /// Up to `most` documents that match the filter, in no particular order, with these payload keys.
    pub(super) fn list(
        &self,
        conditions: &Value,
        keys: &[&str],
        most: usize,
    ) -> Result<Vec<ScoredPoint>, SearchError> {
        let mut found = Vec::new();
        let mut offset = Value::Null;
        while found.len() < most {
            let page = self.page(conditions, keys, PAGE.min(most - found.len()), &offset)?;
            let Some(next) = page.next(&offset) else {
                found.extend(page.points);
                break;
            };
            found.extend(page.points);
            offset = next;
        }
        found.truncate(most);
        Ok(found)
    }

    /// One page of the documents that match the filter, ordered by point id, with these payload keys. The
    /// first page has no offset.
    pub(super) fn page(
        &self,
        conditions: &Value,
        keys: &[&str],
        most: usize,
        offset: &Value,
    ) -> Result<PointsPage, SearchError> {
        let body = json!({
            "filter": conditions, "limit": most, "offset": offset, "with_payload": keys,
            "with_vector": false,
        });
        self.documents(RequestKind::List, "list", "points/scroll", body.to_string())
    }

    /// Versions by their ids, with these payload keys, as far as they exist.
    pub(super) fn read_payloads(
        &self,
        versions: &[impl Serialize],
        keys: &[&str],
    ) -> Result<Vec<ScoredPoint>, SearchError> {
        let body = json!({"ids": versions, "with_payload": keys}).to_string();
        self.documents(RequestKind::Fetch, "read documents", "points", body)
    }

    pub(super) fn fetch(&self, id: &DocId) -> Result<Option<Arc<Document>>, SearchError> {
        let this = json!({"key": ID, "match": {"value": id.as_str()}});
        let body = json!({
            "filter": self.visible.clone().and(this).json(), "limit": 1, "with_payload": [STORED],
        });
        let found: PointsPage = self.documents(
            RequestKind::Fetch,
            "read a document",
            "points/scroll",
            body.to_string(),
        )?;
        let known = found.points.first().map(|point| self.cache_document(point));
        let document = known.transpose()?.map(|known| known.document.clone());
        Ok(document.filter(|document| document.id == *id && self.is_visible(document)))
    }

    /// Checks access once more on a document that came back. The filter of the request says the same, but a
    /// node that ignores it, by a fault or on purpose, must not leak restricted documents: the check fails
    /// closed.
    pub(super) fn is_visible(&self, document: &Document) -> bool {
        let sees = self.reader.can_see(document);
        if !sees {
            tracing::warn!(
                "a node of the cluster returned a document that its reader may not see, it is dropped"
            );
        }
        sees
    }

    /// Decodes a document that was read, and caches it.
    pub(super) fn cache_document(
        &self,
        point: &ScoredPoint,
    ) -> Result<Arc<CachedVersion>, SearchError> {
        let Some(document) = point::read_document(&point.payload) else {
            return Err(SearchError::corrupt(
                self.inner.names.documents.as_ref(),
                "a stored document cannot be read",
            ));
        };
        let known = Arc::new(CachedVersion::new(document));
        self.inner.caches.documents.put(point.name(), &known);
        Ok(known)
    }

    /// Whole documents by their version ids, from the cache or the cluster. A version is immutable, so the
    /// cache never needs invalidation.
    pub(super) fn documents_by_version(
        &self,
        versions: &[String],
    ) -> Result<HashMap<String, Arc<CachedVersion>>, SearchError> {
        let cache = &self.inner.caches.documents;
        let mut found = HashMap::new();
        let mut missing = Vec::new();
        for version in versions {
            match cache.get(version) {
                Some(known) => drop(found.insert(version.clone(), known)),
                None => missing.push(version.as_str()),
            }
        }
        for some in missing.chunks(DOCUMENTS_AT_ONCE) {
            for one in self.read_payloads(some, &[STORED])? {
                let name = one.name();
                // A point that was not requested is neither shown nor cached.
                if some.contains(&name.as_str()) {
                    found.insert(name, self.cache_document(&one)?);
                }
            }
        }
        found.retain(|_, known| self.is_visible(&known.document));
        Ok(found)
    }
}

/// The body of a batch of queries.
#[derive(Serialize)]
struct BatchQuery<'a> {
    searches: &'a [Box<RawValue>],
}

/// How many whole documents one request reads: as many as one answer looks into.
const DOCUMENTS_AT_ONCE: usize = 96;
