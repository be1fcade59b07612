//! Documents into passages with vectors, and a question into the documents nearest to it.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Inner;
use super::layout::{DOCUMENT, FROM, ID, MODELS, STORED};
use super::narrow::Conditions;
use super::nodes::Ask;
use super::point;
use super::view::View;
use super::wire::{Groups, Point, Points};
use crate::document::{DocId, Document};
use crate::embedder::Embedder;
use crate::engine::{PartState, SPANS, Settled, Status, Vectored};
use crate::error::Error;
use crate::hit::MAX_EXCERPTS;
use crate::passage::{MAX_PASSAGES, embedded_text, passages};
use crate::reader::Reader;

/// How many passages are turned into vectors before they are written.
const PASSAGES_AT_ONCE: usize = 256;

/// How many documents are read at once to be turned into vectors.
const DOCUMENTS_AT_ONCE: usize = 32;

/// How long vectors are made before somebody hears how far it is.
const SLICE: Duration = Duration::from_millis(500);

/// The most documents that are found by their meaning.
pub(super) const MAX_NEAR: usize = 2_000;

impl Inner {
    pub(super) fn status(&self) -> Result<Status, Error> {
        let view = self.view(Reader::owner())?;
        let settled = self.settled(&view)?;
        Ok(Status {
            documents: view.head.documents,
            generation: crate::engine::Generation(view.head.generation),
            lexical: PartState::Ready,
            vectors: match settled {
                None => PartState::Absent,
                Some(settled) if settled.left == 0 => PartState::Ready,
                Some(settled) => PartState::Building(settled),
            },
        })
    }

    /// How many documents have the vectors of this model; nothing without one.
    fn settled(&self, view: &View<'_>) -> Result<Option<Settled>, Error> {
        if self.embedder.is_none() {
            return Ok(None);
        }
        let open = self.open_documents(view);
        let left = view.count(&open.json(), true)?;
        Ok(Some(Settled {
            done: view.head.documents.saturating_sub(left),
            left,
        }))
    }

    /// Those without vectors of this model.
    fn open_documents(&self, view: &View<'_>) -> Conditions {
        Conditions::live(&view.head)
            .not(json!({"key": MODELS, "match": {"value": self.names.model}}))
    }

    /// Makes vectors for about `most` documents, or as many as can be made in a while.
    pub(super) fn settle(self: &Arc<Self>, most: usize) -> Result<Settled, Error> {
        let _one = self.settling.lock().unwrap_or_else(PoisonError::into_inner);
        let start = Instant::now();
        let mut left = most.max(1);
        if let Some(embedder) = self.embedder.as_ref().filter(|_| !self.is_read_only) {
            loop {
                let made = self.settle_some(embedder.as_ref(), left.min(DOCUMENTS_AT_ONCE))?;
                left -= made.min(left);
                if made == 0 || left == 0 || start.elapsed() >= SLICE {
                    break;
                }
            }
        }
        let view = self.latest()?;
        let all = Settled {
            done: view.head.documents,
            left: 0,
        };
        Ok(self.settled(&view)?.unwrap_or(all))
    }

    /// The generation that counts now, with the patience of a writer.
    fn latest(&self) -> Result<View<'_>, Error> {
        let deadline = self.writing();
        View::new(self, self.head(deadline)?, Reader::owner(), deadline)
    }

    /// Makes vectors for up to `most` documents, and says for how many.
    fn settle_some(self: &Arc<Self>, embedder: &dyn Embedder, most: usize) -> Result<usize, Error> {
        let view = self.latest()?;
        let open = self.open_documents(&view).json();
        let found = view.list(&open, &[STORED, MODELS, FROM], most)?;
        let mut made = 0;
        let mut left = found.as_slice();
        while !left.is_empty() {
            let (some, rest) = slice(left)?;
            self.embed(embedder, &some)?;
            made += some.len();
            left = rest;
        }
        Ok(made)
    }

    /// Makes and writes the vectors of some documents.
    fn embed(
        self: &Arc<Self>,
        embedder: &dyn Embedder,
        some: &[(&Point, Document)],
    ) -> Result<(), Error> {
        let cut: Vec<_> = some
            .iter()
            .map(|(_, document)| passages(document))
            .collect();
        let texts: Vec<String> = some
            .iter()
            .zip(&cut)
            .flat_map(|((_, document), cut)| cut.iter().map(|one| embedded_text(document, one)))
            .collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let mut vectors = embedder.passages(&texts)?.into_iter();
        // Only now, because making vectors takes longer than anything else.
        let mut lease = self.lease.lock().unwrap_or_else(PoisonError::into_inner);
        let head = self.lead(&mut lease)?;
        let view = View::new(self, Arc::new(head), Reader::owner(), self.writing())?;
        let names: Vec<String> = some.iter().map(|(point, _)| point.name()).collect();
        let still = Conditions::live(&view.head)
            .and(json!({"has_id": names}))
            .json();
        let still: Vec<String> = view
            .list(&still, &[FROM], names.len())?
            .iter()
            .map(Point::name)
            .collect();
        let mut points = Vec::new();
        for ((point, document), cut) in some.iter().zip(&cut) {
            let (version, from) = (point.name(), point.number(FROM));
            for (passage, vector) in cut.iter().zip(vectors.by_ref()) {
                // What went meanwhile needs none any more.
                if still.contains(&version) {
                    points.push(point::passage(document, (&version, from), passage, &vector));
                }
            }
        }
        if let Some(collection) = &self.names.passages {
            self.put_points(collection, points.into_iter())?;
        }
        self.mark(some.iter().map(|(point, _)| *point))
    }

    /// Notes on documents that they have the vectors of this model.
    fn mark<'p>(&self, points: impl Iterator<Item = &'p Point>) -> Result<(), Error> {
        let mut by_models: HashMap<Vec<String>, Vec<String>> = HashMap::new();
        for point in points {
            let models = point.payload.get(MODELS).cloned().unwrap_or_default();
            let mut models: Vec<String> = serde_json::from_value(models).unwrap_or_default();
            models.push(self.names.model.clone());
            by_models.entry(models).or_default().push(point.name());
        }
        for (models, names) in by_models {
            let body = json!({"payload": {MODELS: models}, "points": names}).to_string();
            self.change(
                &self.names.documents,
                "points/payload",
                body,
                self.writing(),
            )?;
        }
        Ok(())
    }
}

/// A document with the point it was read from.
type Read<'p> = (&'p Point, Document);

/// Documents for one call of the model, and the rest.
fn slice(points: &[Point]) -> Result<(Vec<Read<'_>>, &[Point]), Error> {
    let (mut some, mut count) = (Vec::new(), 0);
    for (at, point) in points.iter().enumerate() {
        let Some(document) = point::document(&point.payload) else {
            return Err(Error::engine("a stored document cannot be read"));
        };
        count += passages(&document).len();
        some.push((point, document));
        if count >= PASSAGES_AT_ONCE {
            return Ok((some, points.get(at + 1..).unwrap_or_default()));
        }
    }
    Ok((some, &[]))
}

/// Passages with their vectors, as the cluster answers.
#[derive(Deserialize)]
struct Vectors {
    points: Vec<Vector>,
}

#[derive(Deserialize)]
struct Vector {
    payload: Place,
    vector: Vec<f32>,
}

#[derive(Deserialize)]
struct Place {
    start: usize,
    end: usize,
}

/// A question about passages.
#[derive(Serialize)]
struct Asked<'a> {
    query: &'a [f32],
    filter: Value,
    limit: usize,
    with_payload: &'a [&'a str],
    #[serde(skip_serializing_if = "Option::is_none")]
    group_by: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group_size: Option<usize>,
}

impl View<'_> {
    /// The versions nearest to a question among those whose passages meet the conditions, each with how
    /// near it is.
    pub(super) fn near(
        &self,
        question: &[f32],
        conditions: &Conditions,
        most: usize,
    ) -> Result<HashMap<String, f32>, Error> {
        let Some(passages) = self.inner.names.passages.as_ref().filter(|_| most > 0) else {
            return Ok(HashMap::new());
        };
        let asked = Asked {
            query: question,
            filter: conditions.json(),
            limit: most.min(MAX_NEAR),
            with_payload: &[],
            group_by: Some(DOCUMENT),
            group_size: Some(1),
        };
        let body = serde_json::to_string(&asked).map_err(Error::engine)?;
        let path = format!("/collections/{passages}/points/query/groups");
        let found: Groups = self
            .inner
            .nodes
            .ask(&Ask::post("search meanings", path, body), self.deadline)?;
        let versions = found.groups.into_iter().filter_map(|group| {
            let best = group.hits.first()?.score;
            Some((group.id.as_str()?.to_owned(), best))
        });
        Ok(versions.collect())
    }

    /// How near these versions are.
    pub(super) fn nearness(
        &self,
        question: &[f32],
        versions: &[String],
    ) -> Result<HashMap<String, f32>, Error> {
        let mut found = HashMap::new();
        for some in versions.chunks(MAX_NEAR) {
            let these = self
                .seen
                .clone()
                .and(json!({"key": DOCUMENT, "match": {"any": some}}));
            found.extend(self.near(question, &these, some.len())?);
        }
        Ok(found)
    }

    /// The passages of a version nearest to a question, the nearest first.
    pub(super) fn passages(
        &self,
        question: &[f32],
        version: &str,
    ) -> Result<Vec<Range<usize>>, Error> {
        let Some(passages) = &self.inner.names.passages else {
            return Ok(Vec::new());
        };
        let asked = Asked {
            query: question,
            filter: self
                .seen
                .clone()
                .and(json!({"key": DOCUMENT, "match": {"value": version}}))
                .json(),
            limit: MAX_EXCERPTS,
            with_payload: &["start", "end"],
            group_by: None,
            group_size: None,
        };
        let body = serde_json::to_string(&asked).map_err(Error::engine)?;
        let path = format!("/collections/{passages}/points/query");
        let found: Points = self
            .inner
            .nodes
            .ask(&Ask::post("search passages", path, body), self.deadline)?;
        let place = |point: &Point, key| usize::try_from(point.number(key)).unwrap_or_default();
        let ranges = found
            .points
            .iter()
            .map(|point| place(point, "start")..place(point, "end"));
        Ok(ranges.collect())
    }

    /// The passages of a document with their vectors.
    pub(super) fn vectors(&self, id: &DocId) -> Result<Vec<Vectored>, Error> {
        let this = json!({"key": ID, "match": {"value": id.as_str()}});
        let found = self.list(&self.seen.clone().and(this).json(), &[FROM], 1)?;
        let (Some(version), Some(passages)) =
            (found.first().map(Point::name), &self.inner.names.passages)
        else {
            return Ok(Vec::new());
        };
        let body = json!({
            "filter": {"must": [{"key": DOCUMENT, "match": {"value": version}}]},
            "limit": MAX_PASSAGES, "with_payload": ["start", "end"], "with_vector": true,
        });
        let path = format!("/collections/{passages}/points/scroll");
        let ask = Ask::post("read vectors", path, body.to_string());
        let found: Vectors = self.inner.nodes.ask(&ask, self.deadline)?;
        let mut vectors: Vec<_> = found
            .points
            .into_iter()
            .map(|point| Vectored {
                range: point.payload.start..point.payload.end,
                vector: point.vector,
            })
            .collect();
        vectors.sort_by_key(|one| one.range.start);
        Ok(vectors)
    }

    /// A text as a question; nothing where there is no model, or where it fails: words alone are a worse
    /// answer than both, and a better one than none.
    pub(super) fn question(&self, text: &str) -> Option<Arc<Vec<f32>>> {
        let embedder = self.inner.embedder.as_ref()?;
        let embed = || {
            let _span = tracing::info_span!(target: SPANS, "embed").entered();
            embedder.query(text)
        };
        match self.inner.questions.get(text, embed) {
            Ok(question) => Some(question),
            Err(error) => {
                tracing::warn!(%error, "a question could not be turned into a vector");
                None
            }
        }
    }
}
