//! Benchmark: the cost of access control in search.
//!
//! `cargo run --release -p docent-search --example reader_speed -- 100000` indexes one corpus three times: readable
//! by everyone, by everyone but for one document, and by a hundred groups of which a reader is in one, ten or all.
//! Times are medians over many lexical queries.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "an example that measures"
)]

use std::time::{Duration, Instant};

use docent_search::{
    AllowedReaders, DocId, Document, DocumentChange, EmbeddedEngine, Engine, Principal, Query,
    ReaderIdentity,
};
use futures::FutureExt as _;

const GROUPS: usize = 100;
const QUESTIONS: usize = 400;
const WORDS: usize = 60;

fn principal(n: usize) -> Principal {
    Principal::parse(&format!("group:{n}")).unwrap()
}

/// A word of a skewed distribution: low numbers are frequent.
fn word(n: usize) -> String {
    let skewed = (n % 997) * (n % 31) / 31 + n % 13;
    format!("w{skewed}")
}

fn document(n: usize, readers: AllowedReaders) -> Document {
    let words: Vec<_> = (0..WORDS)
        .map(|at| word(n * 7_919 + at * 104_729))
        .collect();
    Document {
        id: DocId::parse(&format!("d{n:07}")).unwrap(),
        title: format!("Paper {n}"),
        text: words.join(" "),
        url: None,
        date: None,
        fields: Vec::new(),
        source: format!("{n}.md"),
        hash: String::new(),
        readers,
    }
}

fn filled(
    count: usize,
    readers: impl Fn(usize) -> AllowedReaders,
) -> (tempfile::TempDir, EmbeddedEngine) {
    let dir = tempfile::tempdir().unwrap();
    let engine = EmbeddedEngine::open(dir.path()).unwrap();
    let all: Vec<usize> = (0..count).collect();
    for batch in all.chunks(10_000) {
        let puts = batch
            .iter()
            .map(|n| DocumentChange::Put(document(*n, readers(*n))));
        let applied = engine.apply(puts.collect()).now_or_never();
        applied.unwrap().unwrap();
    }
    (dir, engine)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn measure(engine: &EmbeddedEngine, reader: &ReaderIdentity, label: &str) {
    let search = |text: &str| {
        let query = Query::new(text, 10, reader.clone());
        let found = engine.search(query).now_or_never();
        found.unwrap().unwrap().hits.len()
    };
    let start = Instant::now();
    search("w1");
    let first = start.elapsed();
    let mut times = Vec::with_capacity(QUESTIONS);
    for n in 0..QUESTIONS {
        let text = [word(n * 31), word(n * 57 + 3), word(n * 91 + 5)].join(" ");
        let start = Instant::now();
        search(&text);
        times.push(start.elapsed());
    }
    println!(
        "{label:<42} first {first:>10.1?}  median {:>10.1?}",
        median(times)
    );
}

fn main() {
    let count = std::env::args().nth(1).and_then(|count| count.parse().ok());
    let count = count.unwrap_or(100_000);
    println!("{count} documents");
    let (_free, engine) = filled(count, |_| AllowedReaders::Everyone);
    measure(
        &engine,
        &ReaderIdentity::everyone(),
        "nothing restricted, everyone",
    );
    measure(
        &engine,
        &ReaderIdentity::holder([principal(1)]),
        "nothing restricted, a holder",
    );
    let (_one, engine) = filled(count, |n| match n {
        0 => AllowedReaders::Only([].into()),
        _ => AllowedReaders::Everyone,
    });
    measure(
        &engine,
        &ReaderIdentity::owner(),
        "one restricted, the owner",
    );
    measure(
        &engine,
        &ReaderIdentity::everyone(),
        "one restricted, everyone",
    );
    let (_groups, engine) = filled(count, |n| {
        AllowedReaders::Only([principal(n % GROUPS)].into())
    });
    for groups in [1, 10, GROUPS] {
        let reader = ReaderIdentity::holder((0..groups).map(principal));
        let label = format!("a hundred groups, a holder of {groups}");
        measure(&engine, &reader, &label);
    }
    measure(
        &engine,
        &ReaderIdentity::owner(),
        "a hundred groups, the owner",
    );
}
