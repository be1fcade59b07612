//! Benchmark: latency and recall of vector search, as a table.
//!
//! ```text
//! cargo run --release -p docent-search --example vector_speed -- 10000 100000 1000000
//! cargo run --release -p docent-search --example vector_speed -- 100000 \
//!     --rows rows.f32 --questions questions.f32 --dims 384
//! ```
//!
//! The files hold unit vectors, as little-endian numbers of four bytes. Where they have fewer rows than requested, more
//! are derived from them. Without files the vectors are synthetic: nested clusters in a subspace of few dimensions, and
//! noise.

#![allow(
    clippy::print_stdout,
    reason = "a table on the terminal is what this is for"
)]

use std::collections::HashSet;
use std::error::Error;
use std::time::{Duration, Instant};

use docent_search::vectors::{
    EmbeddedDocument, EmbeddedPassage, LiveDocuments, OrdinalSet, VectorModel, VectorSearchOptions,
    VectorStore, VectorView,
};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The number of queries for each row of the table.
const QUESTIONS: usize = 200;

/// The number of vectors of one append.
const BATCH: usize = 8_192;

fn main() -> Result<()> {
    let settings = BenchSettings::parse(std::env::args().skip(1))?;
    println!(
        "{:>8} {:>7} {:>7} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "rows", "filter", "threads", "search", "p50 ms", "p99 ms", "recall10", "recall100"
    );
    for rows in &settings.sizes {
        measure(&settings, *rows)?;
    }
    Ok(())
}

struct BenchSettings {
    sizes: Vec<usize>,
    dims: usize,
    rows: Vec<f32>,
    questions: Vec<f32>,
}

impl BenchSettings {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self> {
        let mut settings = Self {
            sizes: Vec::new(),
            dims: 384,
            rows: Vec::new(),
            questions: Vec::new(),
        };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or("a value is missing");
            match word.as_str() {
                "--dims" => settings.dims = value()?.parse()?,
                "--rows" => settings.rows = read(&value()?)?,
                "--questions" => settings.questions = read(&value()?)?,
                size => settings.sizes.push(size.parse()?),
            }
        }
        if settings.sizes.is_empty() {
            settings.sizes = vec![10_000, 100_000];
        }
        if settings.rows.is_empty() {
            let random = &mut BenchRng(1);
            let generator = BenchWorld::new(random, settings.dims);
            let most = settings.sizes.iter().max().copied().unwrap_or(0);
            let made = (0..most).flat_map(|_| generator.vector(random));
            settings.rows = made.collect();
            settings.questions = (0..QUESTIONS)
                .flat_map(|_| generator.vector(random))
                .collect();
        }
        Ok(settings)
    }
}

fn read(path: &str) -> Result<Vec<f32>> {
    let bytes = std::fs::read(path)?;
    let numbers = bytes.as_chunks::<4>().0.iter();
    Ok(numbers.map(|bytes| f32::from_le_bytes(*bytes)).collect())
}

fn measure(settings: &BenchSettings, count: usize) -> Result<()> {
    let dims = settings.dims;
    let rows = extended(&settings.rows, dims, count);
    let folder = tempfile::tempdir()?;
    let model = VectorModel::new("measured", dims)?;
    let live = LiveDocuments::new((0..count).map(|at| (key(at), at as u32)).collect());

    let start = Instant::now();
    let mut store = VectorStore::open(folder.path(), model.clone())?;
    let (mut appending, mut keys) = (Duration::ZERO, 0..count);
    for batch in rows.chunks(BATCH * dims) {
        let embedded = |vector: &[f32]| EmbeddedDocument {
            key: key(keys.next().unwrap_or(0)),
            passages: vec![EmbeddedPassage {
                start: 0,
                end: 1,
                vector: vector.to_vec(),
            }],
        };
        let batch: Vec<_> = batch.chunks_exact(dims).map(embedded).collect();
        let start = Instant::now();
        store.append(&batch)?;
        appending += start.elapsed();
        store.maintain(&live)?;
    }
    let building = start.elapsed();
    drop(store);

    let start = Instant::now();
    let store = VectorStore::open(folder.path(), model)?;
    let opening = start.elapsed();
    let start = Instant::now();
    let view = VectorView::new(&store, &live);
    let viewing = start.elapsed();
    println!(
        "# {count} rows: {} segments, {:.1} MB, {} bytes a row; built in {:.1} s ({:.1} s of it \
         appending), opened in {:.0} ms, view made in {:.1} ms",
        store.segment_count(),
        store.bytes() as f64 / 1e6,
        store.bytes() / count as u64,
        building.as_secs_f64(),
        appending.as_secs_f64(),
        opening.as_secs_f64() * 1e3,
        viewing.as_secs_f64() * 1e3,
    );
    for percent in [100, 10, 1] {
        searches(&view, (&rows, settings), percent)?;
    }
    Ok(())
}

fn searches(
    view: &VectorView,
    (rows, settings): (&[f32], &BenchSettings),
    percent: u64,
) -> Result<()> {
    let dims = settings.dims;
    let count = rows.len() / dims;
    let mut allowed = OrdinalSet::new(count as u32);
    let random = &mut BenchRng(percent);
    for ordinal in 0..count as u32 {
        if random.next() % 100 < percent {
            allowed.insert(ordinal);
        }
    }
    // Spread over the whole file, because its queries may be sorted by their origin.
    let all = settings.questions.chunks_exact(dims);
    let apart = (all.len() / QUESTIONS).max(1);
    let questions: Vec<_> = all.step_by(apart).take(QUESTIONS).collect();
    // The ground truth is expensive: half of the queries is enough for the recall.
    let truths: Vec<_> = questions
        .iter()
        .step_by(2)
        .map(|question| truth(rows, question, &allowed))
        .collect();
    for (name, is_exact) in [("exact", true), ("search", false)] {
        for threads in [1, 2] {
            let mut times = Vec::new();
            let mut recalls = [0.0; 2];
            for (number, question) in questions.iter().enumerate() {
                let options = VectorSearchOptions {
                    documents: 100,
                    allowed: (percent < 100).then_some(&allowed),
                    threads,
                };
                let start = Instant::now();
                let question = view.question(question)?;
                let found = if is_exact {
                    view.search_exact(&question, &options)?
                } else {
                    view.search(&question, &options)?
                };
                times.push(start.elapsed());
                let mut found = found;
                found.sort_by(|a, b| b.score.total_cmp(&a.score));
                let Some(truth) = truths.get(number / 2).filter(|_| number % 2 == 0) else {
                    continue;
                };
                for (recall, k) in recalls.iter_mut().zip([10, 100]) {
                    let right: HashSet<_> = truth.iter().take(k).collect();
                    let hits = found.iter().take(k).filter(|f| right.contains(&f.ordinal));
                    *recall += hits.count() as f64 / right.len() as f64 / truths.len() as f64;
                }
            }
            times.sort();
            let at = |part: f64| {
                let time = times.get((times.len() as f64 * part) as usize);
                time.map_or(0.0, |time| time.as_secs_f64() * 1e3)
            };
            let [ten, hundred] = recalls;
            println!(
                "{count:>8} {:>6}% {threads:>7} {name:>9} {:>9.2} {:>9.2} {ten:>9.4} {hundred:>9.4}",
                percent,
                at(0.5),
                at(0.99),
            );
        }
    }
    Ok(())
}

/// The ground truth: the hundred nearest vectors by brute force, before quantization.
fn truth(rows: &[f32], question: &[f32], allowed: &OrdinalSet) -> Vec<u32> {
    let mut scored: Vec<(f32, u32)> = rows
        .chunks_exact(question.len())
        .zip(0..)
        .filter(|(_, ordinal)| allowed.contains(*ordinal))
        .map(|(row, ordinal)| (dot(row, question), ordinal))
        .collect();
    scored.sort_unstable_by(|left, right| right.0.total_cmp(&left.0));
    scored
        .iter()
        .take(100)
        .map(|(_, ordinal)| *ordinal)
        .collect()
}

fn dot(left: &[f32], right: &[f32]) -> f32 {
    let mut sums = [0.0; 16];
    for (left, right) in left
        .as_chunks::<16>()
        .0
        .iter()
        .zip(right.as_chunks::<16>().0)
    {
        for ((sum, a), b) in sums.iter_mut().zip(left).zip(right) {
            *sum += a * b;
        }
    }
    let rest = left
        .as_chunks::<16>()
        .1
        .iter()
        .zip(right.as_chunks::<16>().1);
    sums.iter().sum::<f32>() + rest.map(|(a, b)| a * b).sum::<f32>()
}

/// Keys in random order, as hashes are.
fn key(at: usize) -> u128 {
    let mut random = BenchRng(at as u64 + 1);
    u128::from(random.next()) << 64 | at as u128
}

/// Extends the vectors to `count` rows. A new row is an old one, shifted along the difference of two others.
fn extended(rows: &[f32], dims: usize, count: usize) -> Vec<f32> {
    let mut all: Vec<f32> = rows.iter().take(count * dims).copied().collect();
    let random = &mut BenchRng(9);
    let known = rows.len() / dims;
    while all.len() < count * dims {
        let mut pick = || {
            let at = random.next() as usize % known * dims;
            rows.get(at..at + dims).unwrap_or_default()
        };
        let (base, from, to) = (pick(), pick(), pick());
        let moves = from.iter().zip(to).map(|(from, to)| (to - from) * 0.35);
        let mut vector: Vec<f32> = base.iter().zip(moves).map(|(x, by)| x + by).collect();
        normalize(&mut vector);
        all.extend(vector);
    }
    all
}

fn normalize(vector: &mut [f32]) {
    let length = dot(vector, vector).sqrt();
    for number in vector {
        *number /= length;
    }
}

/// A generator of synthetic vectors. `directions` span the subspace that carries the meaning, and `clusters` are
/// points in it.
struct BenchWorld {
    dims: usize,
    directions: Vec<Vec<f32>>,
    clusters: Vec<Vec<f32>>,
}

impl BenchWorld {
    fn new(random: &mut BenchRng, dims: usize) -> Self {
        let meaning = dims / 3;
        let direction = |random: &mut BenchRng| (0..dims).map(|_| random.bell()).collect();
        let directions = (0..meaning).map(|_| direction(random)).collect();
        let centre = |random: &mut BenchRng| (0..meaning).map(|_| random.bell()).collect();
        let roots: Vec<Vec<f32>> = (0..40).map(|_| centre(random)).collect();
        let clusters = (0..2_000).map(|at| {
            let root = roots.get(at % roots.len()).map_or(&[][..], Vec::as_slice);
            root.iter().map(|x| x + 0.7 * random.bell()).collect()
        });
        Self {
            dims,
            directions,
            clusters: clusters.collect(),
        }
    }

    fn vector(&self, random: &mut BenchRng) -> Vec<f32> {
        let at = random.next() as usize % self.clusters.len();
        let cluster = self.clusters.get(at).map_or(&[][..], Vec::as_slice);
        // All share a common direction, as the vectors of real models do.
        let mut vector: Vec<f32> = (0..self.dims).map(|_| 4.0 + 1.5 * random.bell()).collect();
        for (direction, centre) in self.directions.iter().zip(cluster) {
            let amount = centre + 0.6 * random.bell();
            for (number, along) in vector.iter_mut().zip(direction) {
                *number += along * amount;
            }
        }
        normalize(&mut vector);
        vector
    }
}

/// A deterministic pseudo-random generator (SplitMix64).
struct BenchRng(u64);

impl BenchRng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A roughly normal distribution: the sum of four uniform numbers.
    fn bell(&mut self) -> f32 {
        let sum: u64 = (0..4).map(|_| self.next() >> 40).sum();
        (sum as f32 / (1 << 24) as f32 - 2.0) * 1.73
    }
}
