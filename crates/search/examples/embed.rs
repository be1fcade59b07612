//! Example: embeds a corpus to files of vectors, for experiments outside of the engine.
//!
//! Reads lines of JSON with `id`, `text` and optionally `title`, which is put before the text. `cargo run --release
//! -p docent-search --example embed -- out < docs.jsonl` writes `out.f32` (384 little-endian numbers a line of
//! input) and `out.ids` (one id a line).

use std::io::{BufRead, BufWriter, Write};

use docent_search::{Embedder, GraniteEmbedder};

/// The batch size in texts, which bounds the memory.
const BATCH: usize = 1024;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = std::env::args()
        .nth(1)
        .ok_or("usage: embed OUT < lines.jsonl")?;
    let mut vectors = BufWriter::new(std::fs::File::create(format!("{name}.f32"))?);
    let mut ids = BufWriter::new(std::fs::File::create(format!("{name}.ids"))?);
    let granite = GraniteEmbedder::new();
    let mut texts = Vec::new();
    for line in std::io::stdin().lock().lines() {
        let line: serde_json::Value = serde_json::from_str(&line?)?;
        let part = |key: &str| line.get(key).and_then(|part| part.as_str()).unwrap_or("");
        writeln!(ids, "{}", part("id"))?;
        texts.push(
            format!("{} {}", part("title"), part("text"))
                .trim()
                .to_owned(),
        );
        if texts.len() == BATCH {
            embed(&granite, &mut texts, &mut vectors)?;
        }
    }
    embed(&granite, &mut texts, &mut vectors)
}

fn embed(
    granite: &GraniteEmbedder,
    texts: &mut Vec<String>,
    out: &mut impl Write,
) -> Result<(), Box<dyn std::error::Error>> {
    let parts: Vec<&str> = texts.iter().map(String::as_str).collect();
    for vector in granite.passages(&parts)? {
        for number in vector {
            out.write_all(&number.to_le_bytes())?;
        }
    }
    texts.clear();
    Ok(())
}
