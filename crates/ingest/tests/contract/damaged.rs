//! Mutation tests: every golden file with bytes flipped, overwritten or truncated yields documents or an
//! error, never a panic, and the same result each time.

use std::path::Path;

use docent_ingest::Limits;

use crate::TestFolder;

/// Mutations per file. They are derived from its bytes, so a failure is reproducible.
const ROUNDS: u64 = 24;

/// Small limits, so that a damaged file cannot ask for much work.
fn limits() -> Limits {
    Limits {
        max_unpacked_bytes: 8 * 1024 * 1024,
        max_pages: 50,
        ..Limits::default()
    }
}

/// A deterministic pseudo-random number generator (xorshift).
struct DamageRng(u64);

impl DamageRng {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(bound.max(1)).unwrap()).unwrap()
    }
}

fn damage(bytes: &mut Vec<u8>, numbers: &mut DamageRng) {
    if bytes.is_empty() {
        return;
    }
    match numbers.below(4) {
        0 => bytes.truncate(numbers.below(bytes.len())),
        kind => {
            for _ in 0..=numbers.below(8) {
                let at = numbers.below(bytes.len());
                match kind {
                    1 => bytes[at] ^= 1 << numbers.below(8),
                    2 => bytes[at] = b"0123456789/<>[]() Robjstream"[numbers.below(28)],
                    _ => {
                        let from = numbers.below(bytes.len());
                        let length = numbers.below(64).min(bytes.len() - at.max(from));
                        bytes.copy_within(from..from + length, at);
                    }
                }
            }
        }
    }
}

fn check(formats: &[&str]) {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut files = Vec::new();
    for format in formats {
        let folder = std::fs::read_dir(data.join(format)).unwrap();
        files.extend(folder.map(|entry| entry.unwrap().path()));
    }
    files.retain(|file| file.extension().is_none_or(|extension| extension != "json"));
    files.sort();
    let mut readings = 0;
    for file in files {
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        let whole = std::fs::read(&file).unwrap();
        for round in 1..=ROUNDS {
            let mut numbers =
                DamageRng(round.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ whole.len() as u64);
            let mut bytes = whole.clone();
            damage(&mut bytes, &mut numbers);
            let folder = TestFolder::new();
            folder.write(&name, &bytes);
            let read = folder.read(&name, limits());
            assert_eq!(read, folder.read(&name, limits()), "{name} {round}");
            readings += u64::from(read.is_ok());
        }
    }
    assert!(
        readings > 0,
        "all damaged files of {formats:?} were refused"
    );
}

#[test]
fn damaged_pages() {
    check(&["html"]);
}

#[test]
fn damaged_packages() {
    check(&["docx", "pptx", "odt", "epub"]);
}

#[test]
fn damaged_pdf_files() {
    check(&["pdf"]);
}
