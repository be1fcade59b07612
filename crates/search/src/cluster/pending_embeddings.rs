//! Documents into passages with vectors, a slice at a time, and how far that is.

use std::collections::HashSet;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use serde_json::json;

use super::ClusterInner;
use super::head::IndexHead;
use super::layout::{FROM, STORED};
use super::model::ClusterModel;
use super::point::{self, passage_point};
use super::qdrant_filter::QdrantFilter;
use super::qdrant_response::ScoredPoint;
use super::unembedded_scan::UnembeddedScan;
use super::view::ClusterView;
use crate::document::Document;
use crate::engine::{EmbeddingProgress, EngineStatus, Generation, PartState};
use crate::error::SearchError;
use crate::passage::{embeddable_passages, passages};
use crate::reader_identity::ReaderIdentity;

/// How many passages are turned into vectors before they are written.
const BATCH_PASSAGES: usize = 256;

/// How long vectors are made before somebody hears how far it is.
const SLICE_DURATION: Duration = Duration::from_millis(500);

impl ClusterInner {
    pub(super) fn status(&self) -> Result<EngineStatus, SearchError> {
        let view = self.counting_view(ReaderIdentity::owner())?;
        let settled = self.embedding_progress(&view)?;
        Ok(EngineStatus {
            documents: view.head.documents,
            generation: Generation(view.head.generation),
            lexical: match view.head.awaited {
                None => PartState::Ready,
                Some(all) => PartState::Building(EmbeddingProgress {
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
    fn embedding_progress(
        &self,
        view: &ClusterView<'_>,
    ) -> Result<Option<EmbeddingProgress>, SearchError> {
        let Some(own) = &self.models.own else {
            return Ok(None);
        };
        let left = self.unembedded_count(view, &own.name)?;
        Ok(Some(EmbeddingProgress {
            done: view.head.documents.saturating_sub(left),
            left,
        }))
    }

    /// Makes vectors for about `most` documents, or as many as can be made in a while. When none is left,
    /// those of this process's model answer.
    pub(super) fn embed_pending(
        self: &Arc<Self>,
        most: usize,
    ) -> Result<EmbeddingProgress, SearchError> {
        let mut walks = self
            .embedding_scans
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let start = Instant::now();
        let mut left = most.max(1);
        let models = if self.is_read_only {
            Vec::new()
        } else {
            self.models_to_embed()?
        };
        for model in &models {
            // Taken out, so that a way that fails is gone again from its beginning.
            let mut walk = walks.remove(&model.name).unwrap_or_default();
            // Each gets its turn, however slow the one before was.
            while left > 0 {
                let made = self.embed_batch(model, &mut walk, left)?;
                left -= made.min(left);
                if made == 0 || start.elapsed() >= SLICE_DURATION {
                    break;
                }
            }
            walks.insert(model.name.clone(), walk);
        }
        let view = self.latest_view()?;
        let (head, mut settled) = (view.head.clone(), self.embedding_progress(&view)?);
        let own = self.models.own.as_ref().filter(|_| !self.is_read_only);
        if let (Some(own), Some(settled)) = (own, &mut settled) {
            if head.model != own.name || (!head.whole && settled.left == 0) {
                *settled = self.swap_model()?.unwrap_or(*settled);
            }
            if settled.left == 0 {
                self.remove_retired()?;
            }
        }
        let all = EmbeddingProgress {
            done: head.documents,
            left: 0,
        };
        Ok(settled.unwrap_or(all))
    }

    /// The models that vectors are made of: the one that answers, so that what changes while another one is
    /// made does not lack its vectors, and then the one of this process.
    fn models_to_embed(&self) -> Result<Vec<Arc<ClusterModel>>, SearchError> {
        let Some(own) = &self.models.own else {
            return Ok(Vec::new());
        };
        let head = self.head(self.write_deadline())?;
        let serving = self.models.serving(&head).filter(|_| head.whole);
        let other = serving.filter(|serving| serving.name != own.name);
        Ok(other.into_iter().chain([own.clone()]).collect())
    }

    /// The generation that counts now, with the patience of a writer.
    fn latest_view(&self) -> Result<ClusterView<'_>, SearchError> {
        let deadline = self.write_deadline();
        let head = self.head(deadline)?;
        Ok(ClusterView::new(
            self,
            head,
            ReaderIdentity::owner(),
            deadline,
        ))
    }

    /// Makes vectors for up to `most` documents, and says for how many.
    fn embed_batch(
        self: &Arc<Self>,
        model: &ClusterModel,
        walk: &mut UnembeddedScan,
        most: usize,
    ) -> Result<usize, SearchError> {
        let view = self.latest_view()?;
        let taken = walk.next_batch(&view, model, most)?;
        if taken.versions.is_empty() {
            return Ok(0);
        }
        let start = Instant::now();
        let found = view.read(&taken.versions, &[STORED])?;
        let mut left = found.as_slice();
        while !left.is_empty() {
            let (some, rest) = next_slice(left)?;
            self.embed(model, &some, taken.listed)?;
            left = rest;
        }
        walk.adapt_batch_size(start.elapsed());
        Ok(taken.versions.len())
    }

    /// Makes and writes the vectors of some documents that were there in a generation.
    fn embed(
        self: &Arc<Self>,
        model: &ClusterModel,
        some: &[StoredPoint<'_>],
        listed: u64,
    ) -> Result<(), SearchError> {
        let languages = model.embedder.languages();
        let cut: Vec<_> = some
            .iter()
            .map(|(_, document)| embeddable_passages(document, languages))
            .collect();
        let texts: Vec<&str> = cut
            .iter()
            .flatten()
            .map(|(_, text)| text.as_str())
            .collect();
        let mut vectors = model.embedder.passages(&texts)?.into_iter();
        // Only now, because making vectors takes longer than anything else.
        let mut lease = self.lease.lock().unwrap_or_else(PoisonError::into_inner);
        let head = self.acquire_lease(&mut lease)?;
        self.defer_hnsw(&mut lease, &head, &model.name);
        let gone = if head.generation == listed {
            HashSet::new()
        } else {
            self.removed_versions(head, some)?
        };
        let (mut first, mut rest) = (Vec::new(), Vec::new());
        for ((read, document), cut) in some.iter().zip(&cut) {
            let vectors = vectors.by_ref().take(cut.len());
            let version = read.name();
            // What went meanwhile needs none any more.
            if gone.contains(&version) {
                vectors.for_each(drop);
                continue;
            }
            let mut points = cut
                .iter()
                .zip(vectors)
                .map(|((one, _), vector)| passage_point(document, &version, one, &vector));
            first.push(
                points
                    .next()
                    .unwrap_or_else(|| point::empty_passage_point(&version)),
            );
            rest.extend(points);
        }
        self.put_points(&model.passages, rest.into_iter())?;
        // Only now that the others are there, so that whoever goes on after a crash makes them again.
        self.put_points(&model.passages, first.into_iter())
    }

    /// Those of some documents that are not there any more.
    fn removed_versions(
        &self,
        head: IndexHead,
        some: &[StoredPoint<'_>],
    ) -> Result<HashSet<String>, SearchError> {
        let view = ClusterView::new(
            self,
            Arc::new(head),
            ReaderIdentity::owner(),
            self.write_deadline(),
        );
        let mut names: HashSet<String> = some.iter().map(|(point, _)| point.name()).collect();
        let still = QdrantFilter::live(&view.head).and(json!({"has_id": names}));
        for one in view.list(&still.json(), &[FROM], names.len())? {
            names.remove(&one.name());
        }
        Ok(names)
    }
}

/// A document with the point it was read from.
type StoredPoint<'p> = (&'p ScoredPoint, Document);

/// Documents for one call of the model, and the rest.
fn next_slice(
    points: &[ScoredPoint],
) -> Result<(Vec<StoredPoint<'_>>, &[ScoredPoint]), SearchError> {
    let (mut some, mut count) = (Vec::new(), 0);
    for (at, point) in points.iter().enumerate() {
        let Some(document) = point::read_document(&point.payload) else {
            return Err(SearchError::engine("a stored document cannot be read"));
        };
        count += passages(&document).len();
        some.push((point, document));
        if count >= BATCH_PASSAGES {
            return Ok((some, points.get(at + 1..).unwrap_or_default()));
        }
    }
    Ok((some, &[]))
}
