//! Test fixtures of the vector index: pseudo-random vectors, stores, and a brute-force search as oracle.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a panic in a test fixture fails the test"
)]

use std::collections::BTreeMap;
use std::path::Path;

use super::kernels::DistanceKernels;
use super::quantization::{QueryVector, quantize_int8};
use super::random_rotation::RandomRotation;
use super::vector_search::SearchEffort;
use super::{
    EmbeddedDocument, EmbeddedPassage, LiveDocuments, OrdinalSet, PASSAGES_SHOWN, PassageHit,
    VectorHit, VectorModel, VectorSearchOptions, VectorStore, VectorView,
};

/// A pseudo-random number generator (xorshift64*) that is reproducible by its seed.
pub(super) struct TestRng(u64);

impl TestRng {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number between minus one and one.
    pub(super) fn float(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 11) as usize % bound
    }
}

pub(super) fn normalized(mut vector: Vec<f32>) -> Vec<f32> {
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    for number in &mut vector {
        *number /= length.max(f32::MIN_POSITIVE);
    }
    vector
}

/// A random vector, normalized to length one.
pub(super) fn unit(random: &mut TestRng, dims: usize) -> Vec<f32> {
    normalized((0..dims).map(|_| random.float()).collect())
}

/// A unit vector near another; the nearer, the smaller `distance` is.
pub(super) fn near(random: &mut TestRng, vector: &[f32], distance: f32) -> Vec<f32> {
    let noise = unit(random, vector.len());
    let moved = vector.iter().zip(noise).map(|(x, by)| x + by * distance);
    normalized(moved.collect())
}

/// A document with `count` passages of ten bytes each and random vectors.
pub(super) fn document(
    random: &mut TestRng,
    dims: usize,
    key: u128,
    count: usize,
) -> EmbeddedDocument {
    let passage = |at: usize| EmbeddedPassage {
        start: at as u32 * 10,
        end: at as u32 * 10 + 10,
        vector: unit(random, dims),
    };
    EmbeddedDocument {
        key,
        passages: (0..count).map(passage).collect(),
    }
}

pub(super) fn model(dims: usize) -> VectorModel {
    VectorModel::new("a model of the tests", dims).unwrap()
}

pub(super) fn open(root: &Path, dims: usize) -> VectorStore {
    VectorStore::open(root, model(dims)).unwrap()
}

/// Live documents whose ordinals are their keys.
pub(super) fn all_of(keys: impl IntoIterator<Item = u128>) -> LiveDocuments {
    LiveDocuments::new(keys.into_iter().map(|key| (key, key as u32)).collect())
}

/// The folder of the only model below `root`.
pub(super) fn folder(root: &Path) -> std::path::PathBuf {
    let mut entries = std::fs::read_dir(root).unwrap();
    entries.next().unwrap().unwrap().path()
}

/// A hit together with its passages, to compare both at once.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct HitWithPassages {
    pub ordinal: u32,
    pub score: f32,
    pub passages: Vec<PassageHit>,
}

/// Runs a search, with a given effort or the default one, and adds the passages of each hit; the best first.
pub(super) fn search_hits(
    view: &VectorView,
    vector: &[f32],
    wanted: &VectorSearchOptions<'_>,
    effort: Option<SearchEffort>,
) -> Vec<HitWithPassages> {
    let question = view.question(vector).unwrap();
    let found = match effort {
        Some(effort) => view.search_with(&question, wanted, effort),
        None => view.search(&question, wanted),
    };
    let with_passages = |found: VectorHit| HitWithPassages {
        ordinal: found.ordinal,
        score: found.score,
        passages: view.passages(&question, found.ordinal),
    };
    let mut hits: Vec<_> = found.unwrap().into_iter().map(with_passages).collect();
    hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.ordinal.cmp(&b.ordinal)));
    hits
}

/// A brute-force oracle: keeps all documents in memory, and searches them without any index.
#[derive(Clone, Default)]
pub(super) struct BruteForceOracle {
    pub documents: BTreeMap<u128, Vec<EmbeddedPassage>>,
}

impl BruteForceOracle {
    pub(super) fn put(&mut self, documents: &[EmbeddedDocument]) {
        for document in documents {
            let passages = document.passages.clone();
            self.documents.insert(document.key, passages);
        }
    }

    pub(super) fn live(&self) -> LiveDocuments {
        all_of(self.documents.keys().copied())
    }

    /// Scores all passages, then filters, sorts and truncates the documents.
    pub(super) fn search(
        &self,
        question: &[f32],
        wanted: usize,
        allowed: Option<&OrdinalSet>,
    ) -> Vec<HitWithPassages> {
        let dims = question.len();
        let stride = dims.next_multiple_of(64);
        let rotation = RandomRotation::new(dims);
        let mut rotated = question.to_vec();
        rotation.rotate(&mut rotated);
        let question = QueryVector::new(rotated, stride);
        let score = |passage: &EmbeddedPassage| {
            let (mut rotated, mut codes) = (passage.vector.clone(), vec![0; stride]);
            rotation.rotate(&mut rotated);
            let scale = quantize_int8(&rotated, &mut codes);
            question.score(&DistanceKernels::portable(), &codes, scale)
        };
        let mut found = Vec::new();
        for (key, passages) in &self.documents {
            let hit = |(number, passage): (u32, &EmbeddedPassage)| PassageHit {
                number,
                start: passage.start,
                end: passage.end,
                score: score(passage),
            };
            let mut passages: Vec<_> = (0..).zip(passages).map(hit).collect();
            passages.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.number.cmp(&b.number)));
            passages.truncate(PASSAGES_SHOWN);
            if let Some(best) = passages.first() {
                found.push(HitWithPassages {
                    ordinal: *key as u32,
                    score: best.score,
                    passages,
                });
            }
        }
        found.retain(|one| allowed.is_none_or(|allowed| allowed.contains(one.ordinal)));
        found.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.ordinal.cmp(&b.ordinal)));
        found.truncate(wanted);
        found
    }
}
