//! The second round of an answer: one request that gives the promising candidates the scores they lack and reads
//! their documents.
//!
//! The passages of all of them are compared with the query in one request, and with each group of passages the node
//! looks up the document that they belong to. Its text is needed anyway, to find adjacent words in it and to show it,
//! so its BM25 score is computed from it here.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::caches::CachedVersion;
use super::head::IndexHead;
use super::index_view::VersionHandle;
use super::layout::{FROM, ID, STORED, UNTIL};
use super::qdrant_response::ScoredPoint;
use super::view::ClusterView;
use crate::error::SearchError;
use crate::pipeline::{Candidate, CrossScoring};

/// What the request tells about a version. `known` is missing where the document was not asked for or may not be read
/// by the reader.
struct CompletedVersion {
    cosine: f32,
    nearest: Vec<Range<usize>>,
    id: String,
    is_live: bool,
    known: Option<Arc<CachedVersion>>,
}

impl ClusterView<'_> {
    /// Scores what only one half found, and reads all documents that are not cached.
    pub(super) fn score_and_read(
        &self,
        found: CrossScoring<'_, Self>,
    ) -> Result<Vec<Candidate<VersionHandle>>, SearchError> {
        let (mut lexical, mut near) = (found.lexical, found.near);
        let mut has_unread = false;
        for one in lexical.iter_mut().chain(&mut near) {
            let known = self.inner.caches.documents.get(&one.document.version);
            one.document.known = known.filter(|known| self.is_visible(&known.document));
            has_unread |= one.document.known.is_none();
        }
        let is_open =
            |one: &&Candidate<VersionHandle>| one.cosine.is_none() || one.document.known.is_none();
        let open = lexical.iter().filter(is_open).chain(&near);
        let versions: Vec<String> = open.map(|one| one.document.version.clone()).collect();
        let mut completed = self.complete_versions(found.vector, &versions, has_unread)?;
        for one in &mut lexical {
            let Some(version) = completed.remove(&one.document.version) else {
                continue;
            };
            if one.cosine.is_none() {
                one.cosine = Some(version.cosine);
                one.document.nearest = version.nearest;
            }
            one.document.known = one.document.known.take().or(version.known);
        }
        near.retain_mut(|one| {
            let version = completed.remove(&one.document.version);
            let Some(version) = version.filter(|version| version.is_live) else {
                return false;
            };
            let Some(known) = one.document.known.take().or(version.known) else {
                return false;
            };
            if !found.complete {
                let weights = &found.words.weights;
                one.bm25 = weights.score(&found.words.terms, &known, self.head.means);
            }
            one.document.id = version.id;
            one.document.known = Some(known);
            true
        });
        lexical.extend(near);
        Ok(lexical)
    }

    /// What one request tells about these versions.
    fn complete_versions(
        &self,
        query_vector: &[f32],
        versions: &[String],
        reads_documents: bool,
    ) -> Result<HashMap<String, CompletedVersion>, SearchError> {
        if versions.is_empty() {
            return Ok(HashMap::new());
        }
        let keys: &[&str] = if reads_documents {
            &[ID, FROM, UNTIL, STORED]
        } else {
            &[ID, FROM, UNTIL]
        };
        let mut completed = HashMap::new();
        for group in self.groups_with_documents(query_vector, versions, keys)? {
            let Some((point, near)) = group.lookup.as_ref().zip(group.nearest()) else {
                continue;
            };
            let name = point.name();
            // A node may not answer with another document than the one that was asked for.
            if group.id.as_str() != Some(name.as_str()) || !versions.contains(&name) {
                continue;
            }
            let version = CompletedVersion {
                cosine: near.semantic,
                nearest: near.passages,
                id: point.text(ID).to_owned(),
                is_live: self.head.has_live(point),
                known: self.read_looked_up(point, reads_documents)?,
            };
            completed.insert(name, version);
        }
        Ok(completed)
    }

    /// The document of a point that was looked up, if the reader may see it. What is cached is not decoded again.
    fn read_looked_up(
        &self,
        point: &ScoredPoint,
        reads_documents: bool,
    ) -> Result<Option<Arc<CachedVersion>>, SearchError> {
        if !reads_documents {
            return Ok(None);
        }
        let cached = self.inner.caches.documents.get(&point.name());
        let known = cached.map_or_else(|| self.cache_document(point), Ok)?;
        Ok(Some(known).filter(|known| self.is_visible(&known.document)))
    }

    /// The documents of some candidates, where they are not known yet from the cache or the cluster.
    pub(super) fn known_or_read(
        &self,
        documents: &[&VersionHandle],
    ) -> Result<Vec<Option<Arc<CachedVersion>>>, SearchError> {
        let unknown = documents.iter().filter(|one| one.known.is_none());
        let unknown: Vec<String> = unknown.map(|one| one.version.clone()).collect();
        let read = self.documents_by_version(&unknown)?;
        let known = documents.iter().map(|one| {
            let read = || read.get(&one.version).cloned();
            one.known.clone().or_else(read)
        });
        Ok(known.collect())
    }
}

impl IndexHead {
    /// Whether a version is one of this generation. A lookup has no filter, so what
    /// [`QdrantFilter::live`](super::qdrant_filter::QdrantFilter::live) says to nodes is checked here.
    fn has_live(&self, version: &ScoredPoint) -> bool {
        let has_happened = |generation: u64| {
            generation <= self.generation && !self.aborted_generations.contains(&generation)
        };
        let generation = |key: &str| version.payload.get(key)?.as_u64();
        generation(FROM).is_some_and(has_happened) && !generation(UNTIL).is_some_and(has_happened)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_version_lives_from_a_committed_generation_to_another() {
        let head = IndexHead {
            generation: 7,
            aborted_generations: vec![3, 5],
            ..IndexHead::default()
        };
        for (from, until, is_live) in [
            (json!(2), json!(null), true),
            (json!(7), json!(null), true),
            (json!(8), json!(null), false),
            (json!(5), json!(null), false),
            (json!(2), json!(8), true),
            (json!(2), json!(7), false),
            (json!(2), json!(4), false),
            (json!(2), json!(3), true),
            (json!(null), json!(null), false),
            (json!("2"), json!(null), false),
        ] {
            let version = ScoredPoint {
                id: json!("v"),
                score: 0.0,
                payload: json!({FROM: from, UNTIL: until}),
            };
            assert_eq!(head.has_live(&version), is_live, "{from} {until}");
        }
    }
}
