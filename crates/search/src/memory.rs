//! The small reference engine: documents in memory, every query over all of them.
//!
//! It says what the other engines must do in the plainest way there is, and serves where an index
//! on disk would be too much.

mod ranked;

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};

use futures::future::{BoxFuture, FutureExt};

use self::ranked::{Ranked, facet, hit, listed};
use crate::analysis::{Language, Memo, Purpose, QueryTerm, Terms, readings};
use crate::catalog::{Catalog, CatalogBuilder};
use crate::document::{DocId, Document};
use crate::embedder::Embedder;
use crate::engine::{self, Change, Engine, Generation, Held, PartState, Settled, Status};
use crate::error::Error;
use crate::fuse::{self, Candidate, Scale, Signals};
use crate::hit::Found;
use crate::passage::{embedded_text, passages};
use crate::query::{Asked, Method, Query, Reader, Sort};
use crate::ranking::{self, PHRASE_WEIGHT, Pair, TITLE_WEIGHT};
use crate::snippet::{Mapped, Wanted};
use crate::spelling::{self, Dictionary};

/// The usual constants of BM25.
const K1: f32 = 1.2;
const B: f32 = 0.75;

/// An engine that holds everything in memory and forgets it when dropped.
#[derive(Default)]
pub struct Memory {
    shelf: RwLock<Shelf>,
    embedder: Option<Arc<dyn Embedder>>,
}

impl Memory {
    /// An engine without documents.
    pub fn new() -> Self {
        Self::default()
    }

    /// An engine without documents, with a model that makes them findable by their meaning.
    pub fn with_embedder(embedder: Arc<dyn Embedder>) -> Self {
        let shelf = Shelf {
            scale: Some(embedder.scale()),
            ..Shelf::default()
        };
        Self {
            shelf: RwLock::new(shelf),
            embedder: Some(embedder),
        }
    }

    fn read<T>(&self, work: impl FnOnce(&Shelf) -> T) -> T {
        work(&self.shelf.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Engine for Memory {
    fn search(&self, query: Query) -> BoxFuture<'_, Result<Found, Error>> {
        async move {
            let embedder = self
                .embedder
                .as_ref()
                .filter(|_| query.method != Method::Lexical);
            let question = embedder.and_then(|model| model.query(&query.text).ok());
            Ok(self.read(|shelf| shelf.search(&query, question.as_deref())))
        }
        .boxed()
    }

    fn catalog(&self, _reader: Reader) -> BoxFuture<'_, Result<Arc<Catalog>, Error>> {
        async move { Ok(Arc::new(self.read(Shelf::catalog))) }.boxed()
    }

    fn settle(&self, most: usize) -> BoxFuture<'_, Result<Settled, Error>> {
        async move {
            let mut shelf = self.shelf.write().unwrap_or_else(PoisonError::into_inner);
            if let Some(model) = &self.embedder {
                shelf.settle(model.as_ref(), most)?;
            }
            Ok(shelf.settled(self.embedder.is_some()))
        }
        .boxed()
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
            let mut shelf = self.shelf.write().unwrap_or_else(PoisonError::into_inner);
            Ok(shelf.apply(changes))
        }
        .boxed()
    }

    fn inventory(&self) -> BoxFuture<'_, Result<Vec<Held>, Error>> {
        async move { Ok(self.read(Shelf::inventory)) }.boxed()
    }

    fn status(&self) -> BoxFuture<'_, Result<Status, Error>> {
        async move { Ok(self.read(|shelf| shelf.status(self.embedder.is_some()))) }.boxed()
    }
}

#[derive(Default)]
struct Shelf {
    entries: BTreeMap<DocId, Entry>,
    generation: Generation,
    /// What the cosines of the model are worth.
    scale: Option<Scale>,
}

struct Entry {
    /// Each passage with its vector, once they are made.
    vectors: Option<Vec<(Range<usize>, Vec<f32>)>>,
    mapped: Mapped,
    title: Postings,
    body: Postings,
}

impl Entry {
    fn new(document: Document) -> Self {
        let mapped = Mapped::new(document);
        let document = &mapped.document;
        let mut memo = Memo::for_a_text();
        let mut title = Postings::default();
        title.add(&document.title, mapped.language, &mut memo);
        let mut body = Postings::default();
        document.searchable(|text| body.add(text, mapped.language, &mut memo));
        Self {
            vectors: None,
            mapped,
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
    fn add(&mut self, text: &str, language: Language, memo: &mut Memo) {
        let mut terms = Terms::new(text, Purpose::Index, language).remembering(memo);
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

    /// How often a term occurs in any of its forms.
    fn count(&self, term: &QueryTerm) -> usize {
        term.forms.iter().map(|form| self.of(form).len()).sum()
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

    fn status(&self, has_model: bool) -> Status {
        let settled = self.settled(has_model);
        Status {
            documents: self.entries.len() as u64,
            generation: self.generation,
            lexical: PartState::Ready,
            vectors: match settled.left {
                _ if !has_model => PartState::Absent,
                0 => PartState::Ready,
                _ => PartState::Building(settled),
            },
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

    fn catalog(&self) -> Catalog {
        let mut builder = CatalogBuilder::new();
        for entry in self.entries.values() {
            builder.document(&entry.mapped.document);
        }
        builder.build()
    }

    fn settled(&self, has_model: bool) -> Settled {
        let left = self
            .entries
            .values()
            .filter(|entry| entry.vectors.is_none());
        let left = if has_model { left.count() as u64 } else { 0 };
        Settled {
            done: self.entries.len() as u64 - left,
            left,
        }
    }

    fn settle(&mut self, model: &dyn Embedder, most: usize) -> Result<(), Error> {
        let open = self
            .entries
            .values_mut()
            .filter(|entry| entry.vectors.is_none());
        for entry in open.take(most.max(1)) {
            let document = &entry.mapped.document;
            let cut = passages(document);
            let texts: Vec<_> = cut.iter().map(|one| embedded_text(document, one)).collect();
            let texts: Vec<_> = texts.iter().map(String::as_str).collect();
            let ranges = cut.into_iter().map(|passage| passage.range);
            entry.vectors = Some(ranges.zip(model.passages(&texts)?).collect());
        }
        Ok(())
    }

    fn search(&self, query: &Query, question: Option<&[f32]>) -> Found {
        let mut asked = query.asked(&self.languages());
        let Ok(()) = spelling::correct(&mut asked.terms, self);
        let terms = ranking::distinct(&asked.terms);
        let is_list = query.sort != Sort::Relevance || (terms.is_empty() && query.is_narrowed());
        let allowed: Vec<&Entry> = self
            .entries
            .values()
            .filter(|entry| entry.is_allowed(query, &asked))
            .collect();
        let matching: Vec<&Entry> = allowed
            .iter()
            .copied()
            .filter(|entry| terms.is_empty() || terms.iter().any(|term| entry.body.count(term) > 0))
            .collect();
        let ranked = if is_list {
            listed(&matching, query.sort)
        } else if terms.is_empty() {
            Vec::new()
        } else {
            self.ranked(query, &asked, question)
        };
        let wanted = Wanted::new(&terms);
        let hits = ranked.into_iter().skip(query.offset).take(query.limit);
        Found {
            hits: hits.map(|one| hit(&one, query, &wanted)).collect(),
            total: query.counted.then_some(matching.len() as u64),
            facets: query
                .facets
                .iter()
                .map(|name| facet(&matching, name))
                .collect(),
        }
    }

    /// The best entries: each half brings its best, as every engine does, and both are weighed.
    fn ranked<'s>(
        &'s self,
        query: &Query,
        asked: &Asked,
        question: Option<&[f32]>,
    ) -> Vec<Candidate<Ranked<'s>>> {
        let terms = ranking::distinct(&asked.terms);
        let (words, pairs) = self.scores(&terms, &ranking::pairs(&asked.terms));
        let mut all: Vec<Ranked<'_>> = self
            .entries
            .values()
            .zip(words.into_iter().zip(pairs))
            .filter(|(entry, _)| entry.is_allowed(query, asked))
            .map(|(entry, (words, pairs))| Ranked::new(entry, words, pairs, question))
            .collect();
        let most = ranking::candidates(query.depth());
        all.sort_by(|left, right| right.words.total_cmp(&left.words));
        for (at, one) in all.iter_mut().enumerate() {
            one.is_candidate = at < most && one.words > 0.0;
        }
        let nearness = |one: &Ranked<'_>| one.semantic.unwrap_or(f32::MIN);
        all.sort_by(|left, right| nearness(right).total_cmp(&nearness(left)));
        for one in all.iter_mut().take(most) {
            one.is_candidate |= one.semantic.is_some();
        }
        all.retain(|one| one.is_candidate);
        let mut candidates: Vec<_> = all.into_iter().map(Ranked::weighed).collect();
        let signals = Signals {
            words: fuse::words(&query.text),
            scale: self.scale.unwrap_or(Scale::GRANITE),
            weighing: query.method.weighing(),
        };
        fuse::weigh(&signals, &mut candidates);
        candidates.retain(|one| query.method != Method::Hybrid || one.is_worth_showing());
        fuse::best(&mut candidates, usize::MAX, |left, right| {
            left.id().cmp(right.id())
        });
        fuse::vary(
            &mut candidates,
            query.diversity,
            query.depth(),
            |left, right| left.entry.mapped.likeness(&right.entry.mapped),
        );
        candidates
    }

    /// What the words, and the words side by side, are worth in every entry.
    fn scores(&self, terms: &[&QueryTerm], pairs: &[Pair<'_>]) -> (Vec<f32>, Vec<f32>) {
        let mut scores = vec![0.0; self.entries.len()];
        let mut together = scores.clone();
        let title = self.statistics(|entry| &entry.title);
        let body = self.statistics(|entry| &entry.body);
        for term in terms {
            self.add(&mut scores, &body, term.weight, |entry| {
                (entry.body.count(term), &entry.body)
            });
            self.add(&mut scores, &title, TITLE_WEIGHT * term.weight, |entry| {
                (entry.title.count(term), &entry.title)
            });
        }
        for pair in pairs {
            self.add(&mut together, &body, PHRASE_WEIGHT, |entry| {
                (entry.body.pairs(pair), &entry.body)
            });
        }
        (scores, together)
    }

    /// The languages of the documents, those of most documents first.
    fn languages(&self) -> Vec<Language> {
        let entries = self.entries.values();
        Language::ranked(entries.map(|entry| (entry.mapped.language, 1)))
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

impl Dictionary for Shelf {
    type Error = Infallible;

    fn knows(&self, term: &str) -> Result<bool, Infallible> {
        Ok(self
            .entries
            .values()
            .any(|entry| !entry.body.of(term).is_empty()))
    }

    fn beginning_with(&self, first: char) -> Result<BTreeMap<String, u64>, Infallible> {
        let mut found: BTreeMap<String, u64> = BTreeMap::new();
        for entry in self.entries.values() {
            let terms = entry.body.positions.keys();
            for term in terms.filter(|term| term.starts_with(first)) {
                *found.entry(term.clone()).or_default() += 1;
            }
        }
        Ok(found)
    }
}

impl Entry {
    fn is_allowed(&self, query: &Query, asked: &Asked) -> bool {
        let document = &self.mapped.document;
        query
            .filter
            .as_ref()
            .is_none_or(|filter| filter.matches(document))
            && asked.phrases.iter().all(|phrase| self.body.holds(phrase))
            && !asked.excluded.iter().any(|phrase| self.body.holds(phrase))
    }
}

impl Postings {
    /// Whether these terms stand side by side somewhere, as one of the languages has them.
    fn holds(&self, phrase: &[QueryTerm]) -> bool {
        let Some(first) = phrase.first() else {
            return false;
        };
        let terms: Vec<&QueryTerm> = phrase.iter().collect();
        readings(&terms).iter().any(|reading| {
            let gaps = phrase.iter().map(|term| term.position - first.position);
            let places: Vec<_> = reading.iter().zip(gaps).collect();
            let starts = reading.first().map_or(&[][..], |form| self.of(form));
            starts.iter().any(|start| {
                let mut all = places.iter();
                all.all(|(form, gap)| self.of(form).contains(&(start + gap)))
            })
        })
    }
}
