//! A seeded history of an index: the batch of each generation, and the documents there are after it. The
//! process that is killed and the one that checks afterwards compute it alike.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use docent_search::{
    AllowedReaders, DocId, Document, DocumentChange, DocumentValue, EmbeddedEngine, Embedder,
    Engine, Generation, PartState, Principal, Query, RankingMethod, ReaderIdentity, SearchError,
};

/// How many document ids are in use; each is put, changed and removed many times.
const NAMES: u64 = 160;

/// A deterministic random number generator (xorshift), so that every platform has the same history.
pub(crate) struct WorldRng(u64);

impl WorldRng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    pub(crate) fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap()
    }
}

/// The batch of changes that makes a generation.
pub(crate) fn batch(seed: u64, generation: u64) -> Vec<DocumentChange> {
    let mut random = WorldRng::new(seed ^ generation.wrapping_mul(0x1000_0001));
    let count = 1 + random.below(24);
    (0..count)
        .map(|_| change(&mut random, generation))
        .collect()
}

fn change(random: &mut WorldRng, generation: u64) -> DocumentChange {
    let name = random.below(NAMES);
    if random.below(4) == 0 {
        DocumentChange::Remove(id(name))
    } else {
        DocumentChange::Put(document(random, name, generation))
    }
}

fn id(name: u64) -> DocId {
    DocId::parse(&format!("d{name:03}")).unwrap()
}

fn document(random: &mut WorldRng, name: u64, generation: u64) -> Document {
    let mark = mark(name, generation);
    let words: Vec<String> = (0..10 + random.below(300))
        .map(|_| format!("w{}", random.below(900)))
        .collect();
    Document {
        id: id(name),
        title: format!("Paper {name}"),
        text: format!("{mark} {}", words.join(" ")),
        url: None,
        date: Some("2024-05-28".to_owned()),
        fields: vec![(
            "shelf".to_owned(),
            DocumentValue::Text(format!("s{}", name % 7)),
        )],
        source: format!("papers/{name}.md"),
        hash: format!("{:064x}", random.next()),
        readers: readers(name, generation),
    }
}

/// Readable by everyone, by some, or by nobody, in turns.
fn readers(name: u64, generation: u64) -> AllowedReaders {
    let group = Principal::parse("group:clerks").unwrap();
    match (name + generation) % 4 {
        0 => AllowedReaders::Only([group].into()),
        1 => AllowedReaders::Only([].into()),
        _ => AllowedReaders::Everyone,
    }
}

/// A word that only one version of one document contains.
fn mark(name: u64, generation: u64) -> String {
    let mut random = WorldRng::new(name * 100_003 + generation);
    let letters = (0..16).map(|_| char::from(b'a' + random.below(26) as u8));
    // Random letters, so that no mark is similar enough to another to be its spelling correction.
    format!("mark{}", letters.collect::<String>())
}

/// The documents in the index after a generation.
pub(crate) fn state(seed: u64, generation: u64) -> BTreeMap<DocId, Document> {
    let mut held = BTreeMap::new();
    for step in 1..=generation {
        for change in batch(seed, step) {
            match change {
                DocumentChange::Put(document) => held.insert(document.id.clone(), document),
                DocumentChange::Remove(id) => held.remove(&id),
            };
        }
    }
    held
}

/// An embedder that hashes a text's mark into a random direction, so that a query for the mark of a document
/// is nearest to that document.
pub(crate) struct HashEmbedder;

impl HashEmbedder {
    fn vector(text: &str) -> Vec<f32> {
        let first = text
            .split_whitespace()
            .find(|word| word.starts_with("mark"));
        let bytes = first.unwrap_or(text).bytes();
        let seed = bytes.fold(7_u64, |sum, byte| sum.wrapping_mul(31) + u64::from(byte));
        let mut random = WorldRng::new(seed);
        let vector: Vec<f32> = (0..32)
            .map(|_| random.below(2_000) as f32 - 999.5)
            .collect();
        let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
        vector.iter().map(|x| x / length).collect()
    }
}

impl Embedder for HashEmbedder {
    fn fingerprint(&self) -> &str {
        "hashed/1"
    }

    fn dimensions(&self) -> usize {
        32
    }

    fn passages(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, SearchError> {
        Ok(texts.iter().map(|text| Self::vector(text)).collect())
    }

    fn query(&self, text: &str) -> Result<Vec<f32>, SearchError> {
        Ok(Self::vector(text))
    }
}

pub(crate) fn open(dir: &Path) -> Result<EmbeddedEngine, SearchError> {
    EmbeddedEngine::open_with(dir, Arc::new(HashEmbedder))
}

/// Computes all vectors and marks the index complete.
pub(crate) async fn finish(engine: &EmbeddedEngine) {
    while engine.embed_pending(50).await.unwrap().left > 0 {}
    engine.mark_complete().await.unwrap();
}

async fn found(engine: &EmbeddedEngine, text: &str, method: RankingMethod) -> Vec<DocId> {
    let query = Query::new(text, 10, ReaderIdentity::owner()).method(method);
    let found = engine.search(query).await.unwrap();
    found.hits.into_iter().map(|hit| hit.id).collect()
}

/// Asserts that an index holds exactly these documents: in the ledger, in the lexical index and in the
/// vectors.
pub(crate) async fn assert_holds(
    engine: &EmbeddedEngine,
    expected: &BTreeMap<DocId, Document>,
    (random, context): (&mut WorldRng, &str),
) {
    let held = engine.inventory().await.unwrap();
    let listed: BTreeSet<_> = held.iter().map(|held| (&held.id, &held.hash)).collect();
    let wanted = expected
        .values()
        .map(|document| (&document.id, &document.hash));
    assert_eq!(listed, wanted.collect(), "{context}: ledger");
    assert_eq!(listed.len(), held.len(), "{context}: doubled in the ledger");
    for (id, document) in expected {
        let fetched = engine
            .fetch(id.clone(), ReaderIdentity::owner())
            .await
            .unwrap();
        assert_eq!(fetched.as_deref(), Some(document), "{context}: {id:?}");
    }
    finish(engine).await;
    let status = engine.status().await.unwrap();
    assert_eq!(status.documents, expected.len() as u64, "{context}: words");
    assert_eq!(status.vectors, PartState::Ready, "{context}: vectors");
    for name in 0..NAMES {
        if expected.contains_key(&id(name)) {
            continue;
        }
        let fetched = engine
            .fetch(id(name), ReaderIdentity::owner())
            .await
            .unwrap();
        assert!(fetched.is_none(), "{context}: {name} is back");
    }
    let all: Vec<_> = expected.values().collect();
    for _ in 0..12.min(all.len()) {
        let document = all[random.index(all.len())];
        let mark = document.text.split(' ').next().unwrap();
        for method in [RankingMethod::Lexical, RankingMethod::Semantic] {
            let found = found(engine, mark, method).await;
            assert_eq!(
                found.first(),
                Some(&document.id),
                "{context}: {mark} {method:?}"
            );
        }
    }
    // A version that was replaced or removed must not be found by its mark.
    for _ in 0..12 {
        let (name, generation) = (random.below(NAMES), 1 + random.below(status.generation.0));
        let mark = mark(name, generation);
        let is_there = expected
            .get(&id(name))
            .is_some_and(|document| document.text.starts_with(&format!("{mark} ")));
        let found = found(engine, &format!("\"{mark}\""), RankingMethod::Lexical).await;
        assert_eq!(!found.is_empty(), is_there, "{context}: {mark}");
    }
}

/// The generation that an index opens at.
pub(crate) async fn generation(engine: &EmbeddedEngine) -> Generation {
    engine.status().await.unwrap().generation
}
