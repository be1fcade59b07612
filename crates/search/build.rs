//! Build script: compresses the embedding models into packed files of blocks that can be decompressed one by one,
//! which `src/embed/packed_file.rs` reads, and makes the filter of English words, which
//! `src/analysis/english_vocabulary.rs` reads.

#[path = "src/analysis/word_filter.rs"]
mod word_filter;

use std::error::Error;
use std::path::Path;
use std::{env, fs};

/// Block size in bytes: small enough to decompress for a single word, large enough for the compressor to learn the
/// statistics of the bytes.
const BLOCK: usize = 96 * 1024;

/// Zstandard level. Model weights only compress by the frequency of their bytes; higher levels find nothing more.
const EFFORT: i32 = 3;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let models = [
        ("GRANITE", "granite-embedding-30m-english/granite.bin"),
        ("TABLE", "table-256/table.bin"),
        ("TABLE", "table-256/rows.txt"),
    ];
    let out = env::var("OUT_DIR")?;
    fs::write(
        Path::new(&out).join("english_words.bloom"),
        english_words()?,
    )?;
    for (feature, model) in models {
        if env::var_os(format!("CARGO_FEATURE_{feature}")).is_none() {
            continue;
        }
        let from = Path::new("models").join(model);
        println!("cargo::rerun-if-changed={}", from.display());
        let name = from.file_name().ok_or("a model without a name")?;
        let packed = packed(&fs::read(&from)?)?;
        fs::write(
            Path::new(&out).join(name).with_added_extension("packed"),
            packed,
        )?;
    }
    Ok(())
}

/// The Bloom filter of the vocabulary of the table of word vectors, without the tails of words.
fn english_words() -> Result<Vec<u8>, Box<dyn Error>> {
    let from = "models/table-256/rows.txt";
    println!("cargo::rerun-if-changed={from}");
    let mut filter = vec![0; word_filter::FILTER_BYTES];
    let rows = fs::read_to_string(from)?;
    for word in rows.lines().filter(|row| !row.starts_with("##")) {
        for (byte, mask) in word_filter::bits_of(word) {
            *filter.get_mut(byte).ok_or("a bit outside of the filter")? |= mask;
        }
    }
    Ok(filter)
}

/// Compresses a file: the header holds the total length, the block size and the compressed length of each block;
/// the blocks follow.
fn packed(bytes: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut head = Vec::new();
    let mut body = Vec::new();
    head.extend(u64::try_from(bytes.len())?.to_le_bytes());
    head.extend(u64::try_from(BLOCK)?.to_le_bytes());
    for block in bytes.chunks(BLOCK) {
        let block = zstd::bulk::compress(block, EFFORT)?;
        head.extend(u32::try_from(block.len())?.to_le_bytes());
        body.extend(block);
    }
    head.extend(body);
    Ok(head)
}
