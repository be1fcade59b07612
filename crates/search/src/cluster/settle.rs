//! Documents into passages with vectors, a slice at a time, and how far that is.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use serde_json::json;

use super::Inner;
use super::head::Head;
use super::layout::{FROM, STORED, made_by};
use super::model::Model;
use super::narrow::Conditions;
use super::point;
use super::view::View;
use super::wire::Point;
use crate::document::Document;
use crate::engine::{Generation, PartState, Settled, Status};
use crate::error::Error;
use crate::passage::{embedded_text, passages};
use crate::reader::Reader;

/// How many passages are turned into vectors before they are written.
const PASSAGES_AT_ONCE: usize = 256;

/// How many documents are read at once to be turned into vectors.
const DOCUMENTS_AT_ONCE: usize = 32;

/// How long vectors are made before somebody hears how far it is.
const SLICE: Duration = Duration::from_millis(500);

impl Inner {
    pub(super) fn status(&self) -> Result<Status, Error> {
        let view = self.view(Reader::owner())?;
        let settled = self.settled(&view)?;
        Ok(Status {
            documents: view.head.documents,
            generation: Generation(view.head.generation),
            lexical: match view.head.awaited {
                None => PartState::Ready,
                Some(all) => PartState::Building(Settled {
                    done: view.head.documents,
                    left: all.saturating_sub(view.head.documents).max(1),
                }),
            },
            vectors: match settled {
                None => PartState::Absent,
                Some(settled) if settled.left == 0 => PartState::Ready,
                Some(settled) => PartState::Building(settled),
            },
        })
    }

    /// How many documents have the vectors of this process's model; nothing without one.
    fn settled(&self, view: &View<'_>) -> Result<Option<Settled>, Error> {
        let Some(own) = &self.models.own else {
            return Ok(None);
        };
        let left = self.open_count(view, &own.name)?;
        Ok(Some(Settled {
            done: view.head.documents.saturating_sub(left),
            left,
        }))
    }

    /// How many documents have no vectors of a model.
    pub(super) fn open_count(&self, view: &View<'_>, model: &str) -> Result<u64, Error> {
        view.count(&open_documents(&view.head, model).json(), true)
    }

    /// Makes vectors for about `most` documents, or as many as can be made in a while. When none is left,
    /// those of this process's model answer.
    pub(super) fn settle(self: &Arc<Self>, most: usize) -> Result<Settled, Error> {
        let _one = self.settling.lock().unwrap_or_else(PoisonError::into_inner);
        let start = Instant::now();
        let mut left = most.max(1);
        let models = if self.is_read_only {
            Vec::new()
        } else {
            self.unsettled()?
        };
        for model in &models {
            // Each gets its turn, however slow the one before was.
            while left > 0 {
                let made = self.settle_some(model, left.min(DOCUMENTS_AT_ONCE))?;
                left -= made.min(left);
                if made == 0 || start.elapsed() >= SLICE {
                    break;
                }
            }
        }
        let view = self.latest()?;
        let (head, mut settled) = (view.head.clone(), self.settled(&view)?);
        let own = self.models.own.as_ref().filter(|_| !self.is_read_only);
        if let (Some(own), Some(settled)) = (own, &mut settled) {
            if head.model != own.name || (!head.whole && settled.left == 0) {
                *settled = self.swap()?.unwrap_or(*settled);
            }
            if settled.left == 0 {
                self.retire()?;
            }
        }
        let all = Settled {
            done: head.documents,
            left: 0,
        };
        Ok(settled.unwrap_or(all))
    }

    /// The models that vectors are made of: the one that answers, so that what changes while another one is
    /// made does not lack its vectors, and then the one of this process.
    fn unsettled(&self) -> Result<Vec<Arc<Model>>, Error> {
        let Some(own) = &self.models.own else {
            return Ok(Vec::new());
        };
        let head = self.head(self.writing())?;
        let serving = self.models.serving(&head).filter(|_| head.whole);
        let other = serving.filter(|serving| serving.name != own.name);
        Ok(other.into_iter().chain([own.clone()]).collect())
    }

    /// The generation that counts now, with the patience of a writer.
    fn latest(&self) -> Result<View<'_>, Error> {
        let deadline = self.writing();
        let head = self.head(deadline)?;
        Ok(View::new(self, head, Reader::owner(), deadline))
    }

    /// Makes vectors for up to `most` documents, and says for how many.
    fn settle_some(self: &Arc<Self>, model: &Model, most: usize) -> Result<usize, Error> {
        let view = self.latest()?;
        let open = open_documents(&view.head, &model.name).json();
        let found = view.list(&open, &[STORED, FROM], most)?;
        let mut made = 0;
        let mut left = found.as_slice();
        while !left.is_empty() {
            let (some, rest) = slice(left)?;
            self.embed(model, &some)?;
            made += some.len();
            left = rest;
        }
        Ok(made)
    }

    /// Makes and writes the vectors of some documents.
    fn embed(self: &Arc<Self>, model: &Model, some: &[Read<'_>]) -> Result<(), Error> {
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
        let mut vectors = model.embedder.passages(&texts)?.into_iter();
        // Only now, because making vectors takes longer than anything else.
        let mut lease = self.lease.lock().unwrap_or_else(PoisonError::into_inner);
        let head = self.lead(&mut lease)?;
        let view = View::new(self, Arc::new(head), Reader::owner(), self.writing());
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
        self.put_points(&model.passages, points.into_iter())?;
        // Only now that they are there, so that whoever goes on after a crash makes them again.
        let body = json!({"payload": {made_by(&model.name): true}, "points": names}).to_string();
        let documents = &self.names.documents;
        self.change(documents, "points/payload", body, self.writing())
    }
}

/// Documents without vectors of a model.
fn open_documents(head: &Head, model: &str) -> Conditions {
    Conditions::live(head).not(json!({"key": made_by(model), "match": {"value": true}}))
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
