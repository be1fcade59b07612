//! The models into packed files, cut into blocks that can be unpacked one by one: see `src/embed/packed.rs`.

use std::error::Error;
use std::path::Path;
use std::{env, fs};

/// Small enough to unpack for a single word, large enough for the packing to learn how its bytes are spread.
const BLOCK: usize = 96 * 1024;

/// Numbers are packed by how often each byte is there; more effort finds nothing more in them.
const EFFORT: i32 = 3;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let models = [
        ("GRANITE", "granite-embedding-30m-english/granite.bin"),
        ("TABLE", "table-256/table.bin"),
        ("TABLE", "table-256/rows.txt"),
    ];
    let out = env::var("OUT_DIR")?;
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

/// The length of all bytes and of a block, the length of each packed block, then the blocks.
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
