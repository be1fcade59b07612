//! Benchmark: throughput and latency of the built-in embedding model, for every SIMD instruction set of this
//! machine: `cargo run --release -p docent-search --example embed_speed`.

#![allow(clippy::print_stdout, reason = "an example shows what it measured")]

use std::time::{Duration, Instant};

use docent_search::{Embedder, GraniteEmbedder, SearchError};

/// The time each number is measured, after one warm-up round.
const MEASURING_TIME: Duration = Duration::from_secs(3);

fn main() -> Result<(), SearchError> {
    let passage = text_of(256)?;
    let queries = [text_of(5)?, text_of(10)?, text_of(20)?];
    println!(
        "instructions  passages/s (256 tokens), 1 and 2 threads   query ms, 5, 10 and 20 tokens"
    );
    for name in GraniteEmbedder::instructions() {
        print!("{name:12}");
        for threads in [1, 2] {
            print!("  {:8.1}", passages(name, threads, &passage)?);
        }
        for query in &queries {
            print!("  {:8.2}", query_ms(name, query)?);
        }
        println!();
    }
    Ok(())
}

/// Builds a text of exactly so many tokens, the opening and closing ones included.
fn text_of(tokens: usize) -> Result<String, SearchError> {
    let words = "the quick brown fox jumps over a lazy dog near the river bank while it rains";
    let mut text = String::new();
    let granite = GraniteEmbedder::new();
    for word in words.split(' ').cycle() {
        text = format!("{text} {word}");
        if granite.tokens(&text)? >= tokens {
            break;
        }
    }
    Ok(text)
}

fn passages(name: &str, threads: usize, passage: &str) -> Result<f64, SearchError> {
    let Some(granite) = GraniteEmbedder::with_threads(threads).with_instructions(name) else {
        return Ok(0.0);
    };
    let texts = vec![passage; 8 * threads];
    granite.passages(&texts)?;
    let (start, mut done) = (Instant::now(), 0);
    while start.elapsed() < MEASURING_TIME {
        done += granite.passages(&texts)?.len();
    }
    Ok(done as f64 / start.elapsed().as_secs_f64())
}

/// The median latency of many queries, in milliseconds.
fn query_ms(name: &str, query: &str) -> Result<f64, SearchError> {
    let Some(granite) = GraniteEmbedder::with_threads(1).with_instructions(name) else {
        return Ok(0.0);
    };
    granite.query(query)?;
    let (start, mut times) = (Instant::now(), Vec::new());
    while start.elapsed() < MEASURING_TIME / 3 {
        let start = Instant::now();
        granite.query(query)?;
        times.push(start.elapsed());
    }
    times.sort_unstable();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    Ok(median.as_secs_f64() * 1e3)
}
