//! What the tests of this folder share: vectors, stores, and a search that looks at everything.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "what stands beside a test fails with it"
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

/// Numbers that look random and come back with the same seed.
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

    /// Between minus one and one.
    pub(super) fn float(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 11) as usize % bound
    }
}

pub(super) fn shortened(mut vector: Vec<f32>) -> Vec<f32> {
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    for number in &mut vector {
        *number /= length.max(f32::MIN_POSITIVE);
    }
    vector
}

/// A vector of length one.
pub(super) fn unit(random: &mut TestRng, dims: usize) -> Vec<f32> {
    shortened((0..dims).map(|_| random.float()).collect())
}

/// A vector of length one near another; the nearer, the smaller `far` is.
pub(super) fn near(random: &mut TestRng, vector: &[f32], far: f32) -> Vec<f32> {
    let apart = unit(random, vector.len());
    let moved = vector.iter().zip(apart).map(|(x, by)| x + by * far);
    shortened(moved.collect())
}

/// A document with so many passages of ten bytes each.
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

/// Every key is live, and its ordinal is the key itself.
pub(super) fn all_of(keys: impl IntoIterator<Item = u128>) -> LiveDocuments {
    LiveDocuments::new(keys.into_iter().map(|key| (key, key as u32)).collect())
}

/// The folder of the only model.
pub(super) fn folder(root: &Path) -> std::path::PathBuf {
    let mut entries = std::fs::read_dir(root).unwrap();
    entries.next().unwrap().unwrap().path()
}

/// A document that was found, with the passages that are shown of it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct HitWithPassages {
    pub ordinal: u32,
    pub score: f32,
    pub passages: Vec<PassageHit>,
}

/// What a search with this effort finds, with the passages of each document.
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
    let tell = |found: VectorHit| HitWithPassages {
        ordinal: found.ordinal,
        score: found.score,
        passages: view.passages(&question, found.ordinal),
    };
    let mut told: Vec<_> = found.unwrap().into_iter().map(tell).collect();
    told.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.ordinal.cmp(&b.ordinal)));
    told
}

/// What a store should hold, and what should be found in it.
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

    /// Scores everything, then filters, then sorts, then cuts.
    pub(super) fn search(
        &self,
        question: &[f32],
        wanted: usize,
        allowed: Option<&OrdinalSet>,
    ) -> Vec<HitWithPassages> {
        let dims = question.len();
        let stride = dims.next_multiple_of(64);
        let rotation = RandomRotation::new(dims);
        let mut turned = question.to_vec();
        rotation.rotate(&mut turned);
        let question = QueryVector::new(turned, stride);
        let score = |passage: &EmbeddedPassage| {
            let (mut turned, mut codes) = (passage.vector.clone(), vec![0; stride]);
            rotation.rotate(&mut turned);
            let scale = quantize_int8(&turned, &mut codes);
            question.score(&DistanceKernels::portable(), &codes, scale)
        };
        let mut found = Vec::new();
        for (key, passages) in &self.documents {
            let near = |(number, passage): (u32, &EmbeddedPassage)| PassageHit {
                number,
                start: passage.start,
                end: passage.end,
                score: score(passage),
            };
            let mut passages: Vec<_> = (0..).zip(passages).map(near).collect();
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
