//! One generation of the index as one reader sees it: what every answer is made from.

use std::collections::HashMap;
use std::sync::Arc;

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
use crate::analysis::Language;
use crate::document::{DocId, Document};
use crate::error::SearchError;
use crate::reader_identity::ReaderIdentity;

/// How many points are asked for at once where all are wanted.
pub(super) const PAGE: usize = 1_000;

/// One generation, for one reader, until a deadline.
pub(super) struct ClusterView<'a> {
    pub inner: &'a ClusterInner,
    pub head: Arc<IndexHead>,
    pub reader: ReaderIdentity,
    pub deadline: RequestDeadline,
    /// What the reader may see.
    pub visible: QdrantFilter,
    /// The model whose vectors answer, where there is one and this program has it.
    pub model: Option<Arc<ClusterModel>>,
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
        }
    }

    /// The languages of what the reader sees, those of most documents first.
    pub(super) fn languages(&self) -> Result<Vec<Language>, SearchError> {
        if self.head.restricted == 0 {
            return Ok(self.head.languages());
        }
        let (kept, generation) = (&self.inner.caches.languages, self.head.generation);
        if let Some(languages) = kept.get(generation, &self.reader) {
            return Ok(languages);
        }
        let counts = self.facet(LANGUAGE, &self.visible, Language::ALL.len())?;
        let known = |code: &str| Language::ALL.into_iter().find(|one| one.code() == code);
        let counts = counts
            .iter()
            .filter_map(|(code, count)| Some((known(code)?, *count)));
        let languages = Language::by_document_count(counts);
        kept.keep(generation, self.reader.clone(), &languages);
        Ok(languages)
    }

    /// Asks about the documents.
    pub(super) fn documents<T: serde::de::DeserializeOwned>(
        &self,
        (call, what): (RequestKind, &'static str),
        path: &str,
        body: String,
    ) -> Result<T, SearchError> {
        let path = format!("/collections/{}/{path}", self.inner.names.documents);
        let ask = ClusterRequest::read(call, what, path, body);
        self.inner.nodes.request(&ask, self.deadline)
    }

    /// Asks several questions about points in one request, and gives as many answers.
    pub(super) fn batch(
        &self,
        what: &'static str,
        collection: &str,
        questions: &[Box<RawValue>],
    ) -> Result<QueryBatchResult, SearchError> {
        let body = serde_json::to_string(&BatchQuery {
            searches: questions,
        });
        let path = format!("/collections/{collection}/points/query/batch");
        let ask = ClusterRequest::read(
            RequestKind::Search,
            what,
            path,
            body.map_err(SearchError::engine)?,
        );
        let answers: QueryBatchResult = self.inner.nodes.request(&ask, self.deadline)?;
        if answers.len() == questions.len() {
            return Ok(answers);
        }
        Err(SearchError::engine(
            "the cluster left a question unanswered",
        ))
    }

    /// How many documents meet the conditions.
    pub(super) fn count(&self, conditions: &Value, is_exact: bool) -> Result<u64, SearchError> {
        let body = json!({"filter": conditions, "exact": is_exact}).to_string();
        let counted: CountResult =
            self.documents((RequestKind::Count, "count"), "points/count", body)?;
        Ok(counted.count)
    }

    /// The most frequent values of a key among the documents that meet the conditions.
    pub(super) fn facet(
        &self,
        key: &str,
        conditions: &QdrantFilter,
        most: usize,
    ) -> Result<Vec<(String, u64)>, SearchError> {
        let body = json!({"key": key, "filter": conditions.json(), "limit": most, "exact": true});
        let asked = (RequestKind::Facets, "count values");
        let found: FacetHits = self.documents(asked, "facet", body.to_string())?;
        let values = found.hits.into_iter();
        let text = |value: Value| value.as_str().map(str::to_owned);
        Ok(values
            .filter_map(|hit| Some((text(hit.value)?, hit.count)))
            .collect())
    }

    /// Up to `most` documents that meet the conditions, in no order, with these keys.
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

    /// A page of the documents that meet the conditions, in the order of their points, with these keys. The
    /// first one has no offset.
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
        self.documents(
            (RequestKind::List, "list"),
            "points/scroll",
            body.to_string(),
        )
    }

    /// Versions by their names, with these keys, as far as they are there.
    pub(super) fn read(
        &self,
        versions: &[impl Serialize],
        keys: &[&str],
    ) -> Result<Vec<ScoredPoint>, SearchError> {
        let body = json!({"ids": versions, "with_payload": keys}).to_string();
        self.documents((RequestKind::Fetch, "read documents"), "points", body)
    }

    pub(super) fn fetch(&self, id: &DocId) -> Result<Option<Arc<Document>>, SearchError> {
        let this = json!({"key": ID, "match": {"value": id.as_str()}});
        let body = json!({
            "filter": self.visible.clone().and(this).json(), "limit": 1, "with_payload": [STORED],
        });
        let asked = (RequestKind::Fetch, "read a document");
        let found: PointsPage = self.documents(asked, "points/scroll", body.to_string())?;
        let known = found.points.first().map(|point| self.cache_document(point));
        let document = known
            .transpose()?
            .map(|known| known.mapped.document.clone());
        Ok(document.filter(|document| document.id == *id && self.is_visible(document)))
    }

    /// Whether the reader may know of a document that came back. The conditions of a request say so too, but a
    /// node that ignores them, by a fault or on purpose, must not show anybody what is not for them.
    fn is_visible(&self, document: &Document) -> bool {
        let sees = self.reader.can_see(document);
        if !sees {
            tracing::warn!(
                "a node of the cluster answered with a document that its reader may not see"
            );
        }
        sees
    }

    /// A document that was read, kept for who asks next.
    fn cache_document(&self, point: &ScoredPoint) -> Result<Arc<CachedVersion>, SearchError> {
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

    /// Whole documents by the names of their versions, out of the cache or the cluster. A version never
    /// changes, so what is in the cache is right.
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
            for one in self.read(some, &[STORED])? {
                let name = one.name();
                // What nobody asked for is neither shown nor kept.
                if some.contains(&name.as_str()) {
                    found.insert(name, self.cache_document(&one)?);
                }
            }
        }
        found.retain(|_, known| self.is_visible(&known.mapped.document));
        Ok(found)
    }
}

/// Several questions in one request.
#[derive(Serialize)]
struct BatchQuery<'a> {
    searches: &'a [Box<RawValue>],
}

/// How many whole documents are asked for at once: as many as one answer looks into.
const DOCUMENTS_AT_ONCE: usize = 96;
