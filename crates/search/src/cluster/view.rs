//! One generation of the index as one reader sees it: what every answer is made from.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::Inner;
use super::cached::Known;
use super::head::Head;
use super::layout::{FROM, ID, LANGUAGE, STORED};
use super::narrow::Conditions;
use super::nodes::{Ask, Deadline};
use super::point;
use super::wire::{Count, FacetHits, Point, Points};
use crate::analysis::Language;
use crate::document::{DocId, Document};
use crate::error::Error;
use crate::reader::Reader;

/// How many points are asked for at once where all are wanted.
pub(super) const PAGE: usize = 1_000;

/// One generation, for one reader, until a deadline.
pub(super) struct View<'a> {
    pub inner: &'a Inner,
    pub head: Arc<Head>,
    pub reader: Reader,
    pub deadline: Deadline,
    /// What the reader may see.
    pub seen: Conditions,
}

impl<'a> View<'a> {
    pub(super) fn new(
        inner: &'a Inner,
        head: Arc<Head>,
        reader: Reader,
        deadline: Deadline,
    ) -> Result<Self, Error> {
        Ok(Self {
            inner,
            seen: Conditions::seen(&head, &reader),
            head,
            reader,
            deadline,
        })
    }

    /// The languages of what the reader sees, those of most documents first.
    pub(super) fn languages(&self) -> Result<Vec<Language>, Error> {
        if self.head.restricted == 0 {
            return Ok(self.head.languages());
        }
        let counts = self.facet(LANGUAGE, &self.seen, Language::ALL.len())?;
        let known = |code: &str| Language::ALL.into_iter().find(|one| one.code() == code);
        let counts = counts
            .iter()
            .filter_map(|(code, count)| Some((known(code)?, *count)));
        Ok(Language::ranked(counts))
    }

    /// Asks about the documents.
    pub(super) fn documents<T: serde::de::DeserializeOwned>(
        &self,
        what: &'static str,
        path: &str,
        body: String,
    ) -> Result<T, Error> {
        let path = format!("/collections/{}/{path}", self.inner.names.documents);
        self.inner
            .nodes
            .ask(&Ask::post(what, path, body), self.deadline)
    }

    /// How many documents meet the conditions.
    pub(super) fn count(&self, conditions: &Value, is_exact: bool) -> Result<u64, Error> {
        let body = json!({"filter": conditions, "exact": is_exact}).to_string();
        let counted: Count = self.documents("count", "points/count", body)?;
        Ok(counted.count)
    }

    /// The most frequent values of a key among the documents that meet the conditions.
    pub(super) fn facet(
        &self,
        key: &str,
        conditions: &Conditions,
        most: usize,
    ) -> Result<Vec<(String, u64)>, Error> {
        let body = json!({"key": key, "filter": conditions.json(), "limit": most, "exact": true});
        let found: FacetHits = self.documents("count values", "facet", body.to_string())?;
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
    ) -> Result<Vec<Point>, Error> {
        let mut found = Vec::new();
        let mut offset = Value::Null;
        while found.len() < most {
            let body = json!({
                "filter": conditions, "limit": PAGE.min(most - found.len()), "offset": offset,
                "with_payload": keys, "with_vector": false,
            });
            let page: Points = self.documents("list", "points/scroll", body.to_string())?;
            found.extend(page.points);
            match page.next_page_offset {
                Some(next) if !next.is_null() => offset = next,
                _ => break,
            }
        }
        Ok(found)
    }

    pub(super) fn fetch(&self, id: &DocId) -> Result<Option<Arc<Document>>, Error> {
        let this = json!({"key": ID, "match": {"value": id.as_str()}});
        let found = self.list(&self.seen.clone().and(this).json(), &[FROM], 1)?;
        let Some(version) = found.first().map(Point::name) else {
            return Ok(None);
        };
        let known = self.known(std::slice::from_ref(&version))?;
        Ok(known
            .get(&version)
            .map(|known| known.mapped.document.clone()))
    }

    /// Whole documents by the names of their versions, out of the cache or the cluster. A version never
    /// changes, so what is in the cache is right.
    pub(super) fn known(&self, versions: &[String]) -> Result<HashMap<String, Arc<Known>>, Error> {
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
            let body = json!({"ids": some, "with_payload": [STORED]}).to_string();
            let points: Vec<Point> = self.documents("read documents", "points", body)?;
            for one in points {
                let Some(document) = point::document(&one.payload) else {
                    return Err(Error::corrupt(
                        self.inner.names.documents.as_ref(),
                        "a stored document cannot be read",
                    ));
                };
                let known = Arc::new(Known::new(document));
                cache.put(one.name(), &known);
                found.insert(one.name(), known);
            }
        }
        Ok(found)
    }
}

/// How many whole documents are asked for at once.
const DOCUMENTS_AT_ONCE: usize = 32;
