//! Benchmark: the time of one search in the engine, without a server around it.
//!
//! ```text
//! docent index examples/parliament
//! cargo run --release -p docent-search --example answer_speed -- examples/parliament/.docent/index 20000 water
//! ```
//!
//! Run it under `valgrind --tool=callgrind` with few answers to count instructions, which other load on the machine does
//! not change.

#![allow(clippy::print_stdout, reason = "an example shows what it measured")]

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use docent_search::{EmbeddedEngine, Engine as _, GraniteEmbedder, Query, ReaderIdentity};
use futures::FutureExt as _;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [index, answers, question @ ..] = words.as_slice() else {
        println!("usage: answer_speed INDEX ANSWERS QUESTION...");
        return Ok(());
    };
    let answers: u32 = answers.parse()?;
    let question = question.join(" ");
    let engine =
        EmbeddedEngine::open_read_only(Path::new(index), Some(Arc::new(GraniteEmbedder::new())))?;
    let ask = || {
        let query = Query::new(&question, 10, ReaderIdentity::everyone());
        engine.search(query).now_or_never()
    };
    // The first search loads the model and fills the caches.
    let found = ask().transpose()?.map_or(0, |found| found.hits.len());
    let start = Instant::now();
    for _ in 0..answers {
        ask().transpose()?;
    }
    let per_answer = start.elapsed() / answers.max(1);
    println!("{found} hits, {per_answer:?} an answer");
    Ok(())
}
