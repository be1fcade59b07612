//! Computes embeddings for documents that lack them, a slice at a time, and reports the progress.

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

/// How many passages are embedded before their vectors are written.
const BATCH_PASSAGES: usize = 256;

/// How long one call computes vectors before it reports progress.
const SLICE_DURATION: Duration = Duration::from_millis(500);

impl ClusterInner {
    pub(super) fn status(&self) -> Result<EngineStatus, SearchError> {
        let view = self.counting_view(ReaderIdentity::owner())?;
        let progress = self.embedding_progress(&view)?;
        Ok(EngineStatus {
            documents: view.head.documents,
            generation: Generation(view.head.generation),
            lexical: match view.head.documents_to_migrate {
                None => PartState::Ready,
                Some(all) => PartState::Building(EmbeddingProgress {
                    done: view.head.documents,
                    left: all.saturating_sub(view.head.documents).max(1),
                }),
            },
            vectors: match progress {
                None => PartState::Absent,
                Some(progress) if progress.left == 0 => PartState::Ready,
                Some(progress) => PartState::Building(progress),
            },
        })
    }

    /// How many documents have vectors of this process's model; `None` without a model.
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

    /// Computes vectors for about `most` documents, or as many as fit in [`SLICE_DURATION`]. When none is
    /// left, swaps the index to this process's model.
    pub(super) fn embed_pending(
        self: &Arc<Self>,
        most: usize,
    ) -> Result<EmbeddingProgress, SearchError> {
        let mut scans = self
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
            // Taken out of the map, so that a scan that fails starts again from its beginning.
            let mut scan = scans.remove(&model.name).unwrap_or_default();
            // Each model gets its turn, however slow the one before was.
            while left > 0 {
                let embedded = self.embed_batch(model, &mut scan, left)?;
                left -= embedded.min(left);
                if embedded == 0 || start.elapsed() >= SLICE_DURATION {
                    break;
                }
            }
            scans.insert(model.name.clone(), scan);
        }
        let view = self.latest_view()?;
        let (head, mut progress) = (view.head.clone(), self.embedding_progress(&view)?);
        let own = self.models.own.as_ref().filter(|_| !self.is_read_only);
        if let (Some(own), Some(progress)) = (own, &mut progress) {
            if head.model != own.name || (!head.vectors_complete && progress.left == 0) {
                *progress = self.swap_model()?.unwrap_or(*progress);
            }
            if progress.left == 0 {
                self.remove_retired()?;
            }
        }
        let all = EmbeddingProgress {
            done: head.documents,
            left: 0,
        };
        Ok(progress.unwrap_or(all))
    }

    /// The models to compute vectors with. The serving model comes first, so that documents which change
    /// during a swap do not lack its vectors, then the model of this process.
    fn models_to_embed(&self) -> Result<Vec<Arc<ClusterModel>>, SearchError> {
        let Some(own) = &self.models.own else {
            return Ok(Vec::new());
        };
        let head = self.head(self.write_deadline())?;
        let serving = self.models.serving(&head).filter(|_| head.vectors_complete);
        let other = serving.filter(|serving| serving.name != own.name);
        Ok(other.into_iter().chain([own.clone()]).collect())
    }

    /// A snapshot of the current generation, with the deadline of a write.
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

    /// Computes vectors for up to `most` documents and returns their number.
    fn embed_batch(
        self: &Arc<Self>,
        model: &ClusterModel,
        scan: &mut UnembeddedScan,
        most: usize,
    ) -> Result<usize, SearchError> {
        let view = self.latest_view()?;
        let batch = scan.next_batch(&view, model, most)?;
        if batch.versions.is_empty() {
            return Ok(0);
        }
        let start = Instant::now();
        let found = view.read_payloads(&batch.versions, &[STORED])?;
        let mut left = found.as_slice();
        while !left.is_empty() {
            let (some, rest) = next_slice(left)?;
            self.embed(model, &some, batch.listed)?;
            left = rest;
        }
        scan.adapt_batch_size(start.elapsed());
        Ok(batch.versions.len())
    }

    /// Computes and writes the vectors of some documents that were live in the generation `listed`.
    fn embed(
        self: &Arc<Self>,
        model: &ClusterModel,
        some: &[StoredPoint<'_>],
        listed: u64,
    ) -> Result<(), SearchError> {
        let languages = model.embedder.languages();
        let split: Vec<_> = some
            .iter()
            .map(|(_, document)| embeddable_passages(document, languages))
            .collect();
        let texts: Vec<&str> = split
            .iter()
            .flatten()
            .map(|(_, text)| text.as_str())
            .collect();
        let mut vectors = model.embedder.passages(&texts)?.into_iter();
        // The lease is acquired only now: computing vectors takes longer than anything else.
        let mut lease = self.lease.lock().unwrap_or_else(PoisonError::into_inner);
        let head = self.acquire_lease(&mut lease)?;
        self.defer_hnsw(&mut lease, &head, &model.name);
        let removed = if head.generation == listed {
            HashSet::new()
        } else {
            self.removed_versions(head, some)?
        };
        let (mut first, mut rest) = (Vec::new(), Vec::new());
        for ((read, document), split) in some.iter().zip(&split) {
            let vectors = vectors.by_ref().take(split.len());
            let version = read.name();
            // A version that was removed meanwhile needs no vectors.
            if removed.contains(&version) {
                vectors.for_each(drop);
                continue;
            }
            let mut points = split
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
        // The first passages are written last: after a crash, whoever continues computes the vectors anew.
        self.put_points(&model.passages, first.into_iter())
    }

    /// The ones among some versions that are no longer live.
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
        let live = QdrantFilter::live(&view.head).and(json!({"has_id": names}));
        for one in view.list(&live.json(), &[FROM], names.len())? {
            names.remove(&one.name());
        }
        Ok(names)
    }
}

/// A decoded document with the point it was read from.
type StoredPoint<'p> = (&'p ScoredPoint, Document);

/// The documents for one call of the model, and the rest.
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
