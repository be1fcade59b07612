//! The small reference engine: documents in memory, every query over all of them.
//!
//! It says what the other engines must do in the plainest way there is, and serves where an index
//! on disk would be too much.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

use futures::future::{BoxFuture, FutureExt};

use crate::analysis::{Purpose, Terms};
use crate::document::{DocId, Document};
use crate::engine::{self, Change, Engine, Generation, Held, PartState, Status};
use crate::error::Error;
use crate::hit::Hit;
use crate::query::{Query, Reader};
use crate::ranking::{self, PHRASE_WEIGHT, Pair, TITLE_WEIGHT};
use crate::snippet::{Mapped, Wanted};

/// The usual constants of BM25.
const K1: f32 = 1.2;
const B: f32 = 0.75;

/// An engine that holds everything in memory and forgets it when dropped.
#[derive(Default)]
pub struct Memory(RwLock<Shelf>);

impl Memory {
    /// An engine without documents.
    pub fn new() -> Self {
        Self::default()
    }

    fn read<T>(&self, work: impl FnOnce(&Shelf) -> T) -> T {
        work(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Engine for Memory {
    fn search(&self, query: Query) -> BoxFuture<'_, Result<Vec<Hit>, Error>> {
        async move { Ok(self.read(|shelf| shelf.search(&query))) }.boxed()
    }

    fn fetch(
        &self,
        id: DocId,
        _reader: Reader,
    ) -> BoxFuture<'_, Result<Option<Arc<Document>>, Error>> {
        async move { Ok(self.read(|shelf| shelf.fetch(&id))) }.boxed()
    }

    fn apply(&self, changes: Vec<Change>) -> BoxFuture<'_, Result<Generation, Error>> {
        async move {
            engine::check(&changes)?;
            let mut shelf = self.0.write().unwrap_or_else(PoisonError::into_inner);
            Ok(shelf.apply(changes))
        }
        .boxed()
    }

    fn inventory(&self) -> BoxFuture<'_, Result<Vec<Held>, Error>> {
        async move { Ok(self.read(Shelf::inventory)) }.boxed()
    }

    fn status(&self) -> BoxFuture<'_, Result<Status, Error>> {
        async move { Ok(self.read(Shelf::status)) }.boxed()
    }
}

#[derive(Default)]
struct Shelf {
    entries: BTreeMap<DocId, Entry>,
    generation: Generation,
}

struct Entry {
    mapped: Mapped,
    title: Postings,
    body: Postings,
}

impl Entry {
    fn new(document: Document) -> Self {
        let mut title = Postings::default();
        title.add(&document.title);
        let mut body = Postings::default();
        document.searchable(|text| body.add(text));
        Self {
            mapped: Mapped::new(document),
            title,
            body,
        }
    }
}

/// Where each term of a field stands.
#[derive(Default)]
struct Postings {
    positions: HashMap<String, Vec<usize>>,
    length: usize,
    next: usize,
}

impl Postings {
    fn add(&mut self, text: &str) {
        let mut terms = Terms::new(text, Purpose::Index);
        let mut last = self.next;
        while let Some(term) = terms.advance() {
            last = self.next + term.position;
            self.positions
                .entry(term.text.to_owned())
                .or_default()
                .push(last);
            self.length += 1;
        }
        // A gap, so that no pair reaches from one part of a document into the next.
        self.next = last + 2;
    }

    fn of(&self, term: &str) -> &[usize] {
        self.positions.get(term).map_or(&[], Vec::as_slice)
    }

    /// How often a pair occurs.
    fn pairs(&self, pair: &Pair<'_>) -> usize {
        let seconds = self.of(pair.second);
        let firsts = self.of(pair.first).iter();
        firsts
            .filter(|at| seconds.binary_search(&(*at + pair.gap)).is_ok())
            .count()
    }
}

/// What BM25 has to know about one field of all documents.
struct Statistics {
    documents: f32,
    mean_length: f32,
}

impl Statistics {
    fn rarity(&self, documents_with: usize) -> f32 {
        let with = documents_with as f32;
        (1.0 + (self.documents - with + 0.5) / (with + 0.5)).ln()
    }

    fn weigh(&self, rarity: f32, occurrences: usize, length: usize) -> f32 {
        let often = occurrences as f32;
        let norm = K1 * (1.0 - B + B * length as f32 / self.mean_length);
        if occurrences == 0 {
            0.0
        } else {
            rarity * (1.0 + K1) * often / (often + norm)
        }
    }
}

impl Shelf {
    fn apply(&mut self, changes: Vec<Change>) -> Generation {
        if changes.is_empty() {
            return self.generation;
        }
        for change in changes {
            match change {
                Change::Put(document) => {
                    self.entries
                        .insert(document.id.clone(), Entry::new(document));
                }
                Change::Remove(id) => {
                    self.entries.remove(&id);
                }
            }
        }
        self.generation = self.generation.next();
        self.generation
    }

    fn fetch(&self, id: &DocId) -> Option<Arc<Document>> {
        self.entries
            .get(id)
            .map(|entry| entry.mapped.document.clone())
    }

    fn status(&self) -> Status {
        Status {
            documents: self.entries.len() as u64,
            generation: self.generation,
            lexical: PartState::Ready,
            vectors: PartState::Absent,
        }
    }

    fn inventory(&self) -> Vec<Held> {
        let documents = self.entries.values().map(|entry| &entry.mapped.document);
        documents
            .map(|document| Held {
                id: document.id.clone(),
                source: document.source.clone(),
                hash: document.hash.clone(),
            })
            .collect()
    }

    fn search(&self, query: &Query) -> Vec<Hit> {
        let terms = ranking::distinct(query.terms());
        let wanted = Wanted::new(&terms);
        let scores = self.scores(&terms, &ranking::pairs(query.terms()));
        let mut found: Vec<(f32, &Entry)> = self
            .entries
            .values()
            .zip(scores)
            .filter(|(_, raw)| *raw > 0.0)
            .map(|(entry, raw)| (ranking::unit(raw), entry))
            .collect();
        // The entries come in the order of their ids, and a stable sort keeps it among equals.
        found.sort_by(|(left, _), (right, _)| right.total_cmp(left));
        found.truncate(query.limit());
        found
            .into_iter()
            .map(|(score, entry)| entry.mapped.hit(score, &wanted))
            .collect()
    }

    /// The raw score of every entry.
    fn scores(&self, terms: &[&str], pairs: &[Pair<'_>]) -> Vec<f32> {
        let mut scores = vec![0.0; self.entries.len()];
        let title = self.statistics(|entry| &entry.title);
        let body = self.statistics(|entry| &entry.body);
        for term in terms {
            self.add(&mut scores, &body, 1.0, |entry| {
                (entry.body.of(term).len(), &entry.body)
            });
            self.add(&mut scores, &title, TITLE_WEIGHT, |entry| {
                (entry.title.of(term).len(), &entry.title)
            });
        }
        for pair in pairs {
            self.add(&mut scores, &body, PHRASE_WEIGHT, |entry| {
                (entry.body.pairs(pair), &entry.body)
            });
        }
        scores
    }

    fn statistics(&self, field: impl Fn(&Entry) -> &Postings) -> Statistics {
        let documents = self.entries.len() as f32;
        let length: usize = self.entries.values().map(|entry| field(entry).length).sum();
        Statistics {
            documents,
            mean_length: length as f32 / documents,
        }
    }

    /// Adds what one term or pair is worth in each entry.
    fn add<'s>(
        &'s self,
        scores: &mut [f32],
        statistics: &Statistics,
        weight: f32,
        count: impl Fn(&'s Entry) -> (usize, &'s Postings),
    ) {
        let with = self
            .entries
            .values()
            .filter(|entry| count(entry).0 > 0)
            .count();
        let rarity = weight * statistics.rarity(with);
        for (score, entry) in scores.iter_mut().zip(self.entries.values()) {
            let (occurrences, field) = count(entry);
            *score += statistics.weigh(rarity, occurrences, field.length);
        }
    }
}
