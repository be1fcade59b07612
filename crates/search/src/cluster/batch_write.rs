//! Applies a batch of changes: writes new versions, ends old ones, and makes both visible with one commit.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use serde::Serialize;
use serde_json::{Value, json};

use super::ClusterInner;
use super::collections::{self, PayloadIndexSpec};
use super::head::IndexHead;
use super::layout::{DOCUMENT, ID, LANGUAGE, LENGTHS, TERMS, UNTIL, WHO};
use super::lease::WriterLease;
use super::point::{self, PreparedDocument};
use super::qdrant_filter::{QdrantFilter, body_term_id};
use super::qdrant_response;
use super::request::{ClusterRequest, RequestDeadline};
use super::statistics_update::{TERM_LISTS_AT_ONCE, count_document, term_ids};
use super::traffic::RequestKind;
use super::view::ClusterView;
use super::word_statistics::FrequencyChanges;
use crate::document::{DocId, Document};
use crate::engine::{self, DocumentChange, Generation};
use crate::error::SearchError;
use crate::reader_identity::ReaderIdentity;

/// The most points and bytes of one request: an eighth of what a cluster takes by default, so that a retry is
/// cheap. A larger document goes in a request of its own.
const MAX_POINTS: usize = 256;
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// How many requests are in flight at once, and how many are queued before backpressure stops their producer. Two
/// overlap the preparation of one request with the transfer of another; more would only hold more points in memory
/// while the nodes work as fast as they can.
const WRITERS: usize = 2;
const WAITING: usize = 2;

/// How many ids one filter condition holds. A batch names up to a hundred thousand documents; conditions of this size
/// keep each request below the limits of nodes and proxies, and each answer within its deadline.
const NAMES_AT_ONCE: usize = 500;

/// How many term ids the writer remembers as written. Beyond this it forgets them and writes terms again,
/// which is idempotent.
const MAX_KNOWN_TERMS: usize = 4_000_000;

/// How many metadata fields get payload indexes of their own. Every index takes memory on every node and time at every
/// write, and records whose keys are data would make one for each key. Fields beyond the limit are still stored.
const MAX_INDEXED_FIELDS: usize = 256;

/// The term lengths, in letters, that are worth a spelling correction. Shorter terms have too many neighbours to
/// correct a word to any of them, and longer ones are rarely words. Leaving out both keeps the collection of terms
/// small.
const LETTERS: std::ops::RangeInclusive<usize> = 3..=32;

/// A live version that a change of the batch replaces, with its part in the totals of the head.
struct CurrentVersion {
    version: String,
    lengths: [u64; 2],
    language: String,
    is_restricted: bool,
}

impl ClusterInner {
    pub(super) fn apply(
        self: &Arc<Self>,
        changes: Vec<DocumentChange>,
    ) -> Result<Generation, SearchError> {
        engine::check_batch(&changes)?;
        if changes.is_empty() {
            return Ok(Generation(self.head(self.read_deadline())?.generation));
        }
        let mut lease = self.lease.lock().unwrap_or_else(PoisonError::into_inner);
        let head = self.acquire_lease(&mut lease)?;
        lease.is_dirty = true;
        let mut last: BTreeMap<DocId, Option<Document>> = BTreeMap::new();
        for change in changes {
            match change {
                DocumentChange::Put(document) => last.insert(document.id.clone(), Some(document)),
                DocumentChange::Remove(id) => last.insert(id, None),
            };
        }
        let next = self.write(&head, &mut lease, &last)?;
        if !head.replace(&next, &self.nodes, &self.names, self.write_deadline())? {
            return Err(self.locked_error());
        }
        lease.is_dirty = false;
        tracing::debug!(
            generation = next.generation,
            changes = last.len(),
            "committed"
        );
        lease.commits.push_back((next.generation, Instant::now()));
        let generation = Generation(next.generation);
        self.publish_head(next.clone(), Instant::now());
        self.collect_garbage(&mut lease, &next);
        Ok(generation)
    }

    /// Writes everything of a batch that stays invisible until the commit, and returns the head to commit.
    fn write(
        &self,
        head: &IndexHead,
        lease: &mut WriterLease,
        changes: &BTreeMap<DocId, Option<Document>>,
    ) -> Result<IndexHead, SearchError> {
        let mut next = head.clone();
        next.generation += 1;
        let mut frequencies = FrequencyChanges::new();
        let present = self.current_versions(head, changes.keys(), &mut frequencies)?;
        for one in &present {
            next.subtract_document(one);
        }
        let documents: Vec<&Document> = changes.values().flatten().collect();
        self.make_indexes(&mut next, &documents)?;
        let prepared = prepare(&documents);
        for one in &prepared {
            next.add_document(one);
            count_document(&mut frequencies, one.term_ids(), 1);
        }
        next.init_mean_lengths();
        self.write_terms(lease, &prepared)?;
        self.put_points(
            &self.names.documents,
            prepared.iter().map(|one| one.point(&next)),
        )?;
        let versions: Vec<&str> = present.iter().map(|one| one.version.as_str()).collect();
        self.end_versions(&versions, &next)?;
        self.write_statistics(head, &mut next, frequencies)?;
        Ok(next)
    }

    /// The live versions of these documents, whose terms it takes away from the statistics.
    fn current_versions<'i>(
        &self,
        head: &IndexHead,
        ids: impl Iterator<Item = &'i DocId>,
        frequencies: &mut FrequencyChanges,
    ) -> Result<Vec<CurrentVersion>, SearchError> {
        if head.documents == 0 {
            return Ok(Vec::new());
        }
        let ids: Vec<&str> = ids.map(DocId::as_str).collect();
        let mut present = Vec::new();
        for some in ids.chunks(TERM_LISTS_AT_ONCE) {
            let view = ClusterView::new(
                self,
                Arc::new(head.clone()),
                ReaderIdentity::owner(),
                self.write_deadline(),
            );
            let these = QdrantFilter::live(head).and(json!({"key": ID, "match": {"any": some}}));
            let keys = [LENGTHS, LANGUAGE, WHO, TERMS];
            let found = view.list(&these.json(), &keys, usize::MAX)?;
            for one in &found {
                count_document(frequencies, term_ids(one), -1);
            }
            present.extend(found.iter().map(CurrentVersion::from));
        }
        Ok(present)
    }

    /// Builds payload indexes for metadata fields that no document had before.
    fn make_indexes(
        &self,
        next: &mut IndexHead,
        documents: &[&Document],
    ) -> Result<(), SearchError> {
        let mut wanted: BTreeMap<String, BTreeSet<char>> = BTreeMap::new();
        for document in documents {
            for (name, kinds) in point::index_kinds(document) {
                wanted.entry(name).or_default().extend(kinds);
            }
        }
        let collections = self.versioned_collections(next);
        for (name, kinds) in wanted {
            let is_full = next.fields.len() >= MAX_INDEXED_FIELDS;
            if is_full && !next.fields.contains_key(&name) {
                continue;
            }
            let known = next.fields.entry(name.clone()).or_default();
            for kind in kinds {
                if known.contains(kind) {
                    continue;
                }
                let spec = PayloadIndexSpec::of_field(kind, &name);
                for collection in &collections {
                    let deadline = self.write_deadline();
                    collections::create_index(&self.nodes, collection, &spec, true, deadline)?;
                }
                known.push(kind);
            }
        }
        Ok(())
    }

    /// Writes the terms that may be new to the terms collection.
    fn write_terms(
        &self,
        lease: &mut WriterLease,
        prepared: &[PreparedDocument<'_>],
    ) -> Result<(), SearchError> {
        let mut new: BTreeSet<&str> = BTreeSet::new();
        let mut numbers: HashSet<u32> = HashSet::new();
        for term in prepared.iter().flat_map(PreparedDocument::terms) {
            let number = body_term_id(term);
            if LETTERS.contains(&term.chars().count())
                && !lease.terms.contains(&number)
                && numbers.insert(number)
            {
                new.insert(term);
            }
        }
        self.put_points(&self.names.terms, new.into_iter().map(point::term_point))?;
        if lease.terms.len() + numbers.len() > MAX_KNOWN_TERMS {
            lease.terms.clear();
        }
        lease.terms.extend(numbers);
        Ok(())
    }

    /// Ends versions and their passages, as tombstones that name the generation from which they are gone.
    fn end_versions(&self, versions: &[&str], next: &IndexHead) -> Result<(), SearchError> {
        let generation = next.generation;
        for some in versions.chunks(NAMES_AT_ONCE) {
            let body = json!({"payload": {UNTIL: generation}, "points": some}).to_string();
            self.change(
                &self.names.documents,
                "points/payload",
                body,
                self.write_deadline(),
            )?;
            for passages in self.passage_collections(next) {
                let of = json!({"must": [{"key": DOCUMENT, "match": {"any": some}}]});
                let body = json!({"payload": {UNTIL: generation}, "filter": of}).to_string();
                self.change(&passages, "points/payload", body, self.write_deadline())?;
            }
        }
        Ok(())
    }

    /// Sends one change to a collection and waits until it is applied.
    pub(super) fn change(
        &self,
        collection: &str,
        path: &str,
        body: String,
        deadline: RequestDeadline,
    ) -> Result<(), SearchError> {
        let request = ClusterRequest::post(
            RequestKind::Write,
            "change points",
            format!("/collections/{collection}/{path}?wait=true"),
            body,
        );
        self.nodes.request::<Value>(&request, deadline).map(drop)
    }

    /// Writes points in requests of bounded size, a bounded number of them in flight. Writing a point is
    /// idempotent, so a request whose reply was lost is simply retried.
    pub(super) fn put_points<P: Serialize>(
        &self,
        collection: &str,
        points: impl Iterator<Item = Result<P, SearchError>>,
    ) -> Result<(), SearchError> {
        let (sender, receiver) = sync_channel::<String>(WAITING);
        let receiver = Mutex::new(receiver);
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..WRITERS)
                .map(|_| scope.spawn(|| self.write_requests(collection, &receiver)))
                .collect();
            let split = split_requests(points, &sender);
            drop(sender);
            let written = writers.into_iter().map(|writer| {
                writer
                    .join()
                    .unwrap_or_else(|_| Err(SearchError::engine("a writer thread panicked")))
            });
            let written: Vec<Result<(), SearchError>> = written.collect();
            written.into_iter().collect::<Result<(), SearchError>>()?;
            split
        })
    }

    fn write_requests(
        &self,
        collection: &str,
        requests: &Mutex<Receiver<String>>,
    ) -> Result<(), SearchError> {
        let mut outcome = Ok(());
        loop {
            let next = requests
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .recv();
            let Ok(body) = next else {
                return outcome;
            };
            // After a failure the queue is only drained, so that the producer does not block.
            if outcome.is_ok() {
                let path = format!("/collections/{collection}/points?wait=true");
                let request = ClusterRequest::put(RequestKind::Write, "write points", path, body);
                outcome = self
                    .nodes
                    .request::<Value>(&request, self.write_deadline())
                    .map(drop);
            }
        }
    }
}

/// Serialises points into request bodies within the limits, and queues them.
fn split_requests<P: Serialize>(
    points: impl Iterator<Item = Result<P, SearchError>>,
    sender: &SyncSender<String>,
) -> Result<(), SearchError> {
    let (mut body, mut count) = (String::new(), 0);
    let send = |body: &mut String| {
        body.push_str("]}");
        let body = std::mem::take(body);
        sender
            .send(body)
            .map_err(|_| SearchError::engine("all writer threads have ended"))
    };
    for point in points {
        let point = serde_json::to_string(&point?).map_err(SearchError::engine)?;
        if count > 0 && (count >= MAX_POINTS || body.len() + point.len() > MAX_BYTES) {
            send(&mut body)?;
            count = 0;
        }
        body.push_str(if count == 0 { "{\"points\":[" } else { "," });
        body.push_str(&point);
        count += 1;
    }
    if count > 0 { send(&mut body) } else { Ok(()) }
}

/// Computes the terms, weights and stored form of documents on all cores.
fn prepare<'d>(documents: &[&'d Document]) -> Vec<PreparedDocument<'d>> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let share = documents.len().div_ceil(cores).max(64);
    std::thread::scope(|scope| {
        let parts: Vec<_> = documents
            .chunks(share)
            .map(|some| {
                scope.spawn(|| {
                    some.iter()
                        .map(|one| PreparedDocument::new(one))
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        parts
            .into_iter()
            .flat_map(|part| part.join().unwrap_or_default())
            .collect()
    })
}

impl From<&qdrant_response::ScoredPoint> for CurrentVersion {
    fn from(point: &qdrant_response::ScoredPoint) -> Self {
        let lengths = point.payload.get(LENGTHS).cloned().unwrap_or_default();
        let who = point.payload.get(WHO).cloned().unwrap_or_default();
        Self {
            version: point.name(),
            lengths: serde_json::from_value(lengths).unwrap_or_default(),
            language: point.text(LANGUAGE).to_owned(),
            is_restricted: who != json!(super::qdrant_filter::OPEN_TO_ALL),
        }
    }
}

impl IndexHead {
    fn subtract_document(&mut self, one: &CurrentVersion) {
        self.documents = self.documents.saturating_sub(1);
        self.restricted = self.restricted.saturating_sub(u64::from(one.is_restricted));
        for (sum, length) in self.lengths.iter_mut().zip(one.lengths) {
            *sum = sum.saturating_sub(length);
        }
        if let Some(count) = self.languages.get_mut(&one.language) {
            *count = count.saturating_sub(1);
        }
    }

    fn add_document(&mut self, one: &PreparedDocument<'_>) {
        self.documents += 1;
        self.restricted += u64::from(
            super::qdrant_filter::reader_marks(one.document) != super::qdrant_filter::OPEN_TO_ALL,
        );
        for (sum, length) in self.lengths.iter_mut().zip(one.lengths()) {
            *sum += length;
        }
        *self
            .languages
            .entry(one.language.code().to_owned())
            .or_default() += 1;
    }

    /// Takes the mean lengths of the first batch. BM25 weights are computed with them until they have drifted
    /// too far.
    fn init_mean_lengths(&mut self) {
        if self.means.iter().any(|mean| *mean <= 0.0) && self.documents > 0 {
            self.means = self.current_mean_lengths();
        }
    }
}
