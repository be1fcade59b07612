//! Static embeddings: the vector of a text is the normalized sum of its word vectors, from a table that is built into
//! the program. This is thousands of times faster than a transformer, and less accurate.

mod vocabulary;

use std::sync::OnceLock;

use docent_unicode::truncate_bytes;

use super::packed_file::PackedFile;
use crate::embedder::{Embedder, ModelLanguages};
use crate::error::SearchError;
use crate::fusion::CosineScale;
use vocabulary::WordPieceVocabulary;

/// Identifies the table. `v5` is the version of the language filter: only English passages get a vector, so a filter
/// that decides differently makes other vectors.
const FINGERPRINT: &str = "docent-table-256-v5";
/// The number of dimensions of a word vector.
const DIMENSIONS: usize = 256;
/// Texts are truncated to this many bytes. Passages stay far below.
const MAX_TEXT_BYTES: usize = 64 * 1024;
/// About how many bytes a word of English or of code has, its separator included. It only sizes a buffer.
const BYTES_A_WORD: usize = 6;

/// The calibration of its cosines for score fusion. Over twelve judged collections, slopes from 1.5 to 2.8 are within
/// .002 of each other.
const SCALE: CosineScale = CosineScale {
    slope: 2.0,
    offset: 3.0,
};

/// The vocabulary: one word or word tail for each row of the table; tails begin with `##`.
static ROWS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/rows.txt.packed"));
/// The word vectors, quantized to int8: the scale of every row as a little-endian float, then the rows.
static TABLE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/table.bin.packed"));
/// Both files, decompressed once for the whole program.
static FILES: OnceLock<Option<(&'static str, &'static [u8])>> = OnceLock::new();

/// The built-in table of word vectors.
///
/// The vector of a text is the sum of the vectors of its words, normalized to length one. The weight of a word is the
/// length of its own vector.
pub struct StaticEmbedder {
    words: WordPieceVocabulary,
    scales: Vec<f32>,
    rows: &'static [[u8; DIMENSIONS]],
}

impl StaticEmbedder {
    /// Loads the built-in table. The first call decompresses it, which takes some milliseconds.
    pub fn new() -> Result<Self, SearchError> {
        let (rows, table) = FILES.get_or_init(files).ok_or_else(corrupt)?;
        Self::read(rows, table)
    }

    fn read(lines: &'static str, table: &'static [u8]) -> Result<Self, SearchError> {
        let count = lines.lines().count();
        let (scales, rows) = table.split_at_checked(4 * count).ok_or_else(corrupt)?;
        let (rows, rest) = rows.as_chunks();
        if rows.len() != count || !rest.is_empty() {
            return Err(corrupt());
        }
        let (scales, _) = scales.as_chunks::<4>();
        Ok(Self {
            words: WordPieceVocabulary::new(lines),
            scales: scales.iter().map(|b| f32::from_le_bytes(*b)).collect(),
            rows,
        })
    }

    fn vector(&self, text: &str) -> Vec<f32> {
        let mut found = Vec::with_capacity(text.len() / BYTES_A_WORD);
        self.words
            .rows(truncate_bytes(text, MAX_TEXT_BYTES), |row| {
                if let (Some(scale), Some(row)) = (self.scales.get(row), self.rows.get(row)) {
                    found.push((*scale, row));
                }
            });
        let mut sum = [0.0; DIMENSIONS];
        let (fours, rest) = found.as_chunks::<4>();
        for four in fours {
            add(&mut sum, four);
        }
        for one in rest {
            add(&mut sum, std::array::from_ref(one));
        }
        let norm = sum.iter().map(|x| x * x).sum::<f32>().sqrt();
        if norm > 0.0 && norm.is_finite() {
            sum.iter().map(|x| x / norm).collect()
        } else {
            fallback_vector()
        }
    }
}

impl Embedder for StaticEmbedder {
    fn fingerprint(&self) -> &str {
        FINGERPRINT
    }

    fn dimensions(&self) -> usize {
        DIMENSIONS
    }

    fn scale(&self) -> CosineScale {
        SCALE
    }

    fn languages(&self) -> ModelLanguages {
        ModelLanguages::English
    }

    fn passages(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, SearchError> {
        Ok(texts.iter().map(|text| self.vector(text)).collect())
    }

    fn is_instant(&self) -> bool {
        true
    }

    fn query(&self, text: &str) -> Result<Vec<f32>, SearchError> {
        Ok(self.vector(text))
    }
}

/// Adds several rows in one pass. Rows are scattered over a table that is larger than the CPU caches, so this lets
/// their cache misses overlap.
fn add<const N: usize>(sum: &mut [f32; DIMENSIONS], rows: &[(f32, &[u8; DIMENSIONS]); N]) {
    for (at, sum) in sum.iter_mut().enumerate() {
        for (scale, row) in rows {
            let number = row.get(at).copied().unwrap_or_default();
            *sum += scale * f32::from(number.cast_signed());
        }
    }
}

/// The vector of a text without any known word: alternating signs, which is as close to orthogonal to all other
/// vectors as a fixed one can be.
fn fallback_vector() -> Vec<f32> {
    let part = 1.0 / (DIMENSIONS as f32).sqrt();
    (0..DIMENSIONS)
        .map(|at| if at % 2 == 0 { part } else { -part })
        .collect()
}

fn files() -> Option<(&'static str, &'static [u8])> {
    let (rows, table) = (PackedFile::new(ROWS)?, PackedFile::new(TABLE)?);
    let rows = str::from_utf8(rows.leak_range(0..rows.len())?).ok()?;
    Some((rows, table.leak_range(0..table.len())?))
}

fn corrupt() -> SearchError {
    SearchError::Embedder {
        what: "the built-in table of word vectors is corrupt".to_owned(),
        hint: "rebuild the program from unmodified sources",
        source: None,
    }
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    fn cosine(table: &StaticEmbedder, a: &str, b: &str) -> f32 {
        let (a, b) = (table.vector(a), table.vector(b));
        a.iter().zip(&b).map(|(a, b)| a * b).sum()
    }

    #[test]
    fn the_files_are_those_of_the_readme() {
        let readme = include_str!("../../../models/table-256/README.md");
        let (rows, table) = files().unwrap();
        for (name, bytes) in [("rows.txt", rows.as_bytes()), ("table.bin", table)] {
            let sum: String = Sha256::digest(bytes)
                .iter()
                .map(|b| format!("{b:02x}"))
                .collect();
            assert!(readme.contains(&format!("{sum}  {name}")), "{sum}  {name}");
        }
    }

    /// The expected numbers come from the training program, with its own tokenizer.
    #[test]
    fn vectors_are_those_of_the_program_that_made_the_table() {
        let table = StaticEmbedder::new().unwrap();
        for (text, expected) in [
            ("How do vaccines work?", [0.0259, -0.0264, -0.0156, -0.0192]),
            (
                "def parseHTTPResponse(raw_bytes, max_len=4096):",
                [-0.0401, -0.0144, -0.0010, -0.0288],
            ),
            (
                "Naïve Bayes in Zürich, β-catenin and IL6",
                [-0.0055, -0.1839, -0.0617, 0.0200],
            ),
            (
                "antidisestablishmentarianism",
                [0.0743, 0.0697, 0.0111, 0.0308],
            ),
        ] {
            for (found, expected) in table.vector(text).iter().zip(expected) {
                assert!(
                    (found - expected).abs() < 1e-4,
                    "{text}: {found} {expected}"
                );
            }
        }
    }

    #[test]
    fn like_meanings_point_the_same_way() {
        let table = StaticEmbedder::new().unwrap();
        for (text, near, far) in [
            ("heart attack", "myocardial infarction", "interest rates"),
            ("remove a file", "delete documents", "bake bread"),
            ("how to fix a car", "automobile repair", "ocean currents"),
        ] {
            let (near, far) = (cosine(&table, text, near), cosine(&table, text, far));
            assert!(near > far + 0.1, "{text}: {near} {far}");
        }
    }

    #[test]
    fn every_vector_has_length_one() {
        let table = StaticEmbedder::new().unwrap();
        let long = "word ".repeat(20_000);
        for text in ["", " ", "犬", "a", "Zürich 2024", "\u{0}\u{ffff}", &long] {
            let vector = table.vector(text);
            assert_eq!(vector.len(), table.dimensions());
            let norm: f32 = vector.iter().map(|x| x * x).sum();
            assert!((norm - 1.0).abs() < 1e-4, "{text:?} {norm}");
        }
        assert_eq!(table.vector("犬"), fallback_vector());
    }

    #[test]
    fn questions_and_passages_are_embedded_alike() {
        let table = StaticEmbedder::new().unwrap();
        let passages = table.passages(&["one text", "another"]).unwrap();
        assert_eq!(passages[0], table.query("one text").unwrap());
        assert_eq!(passages[1], table.query("another").unwrap());
        assert!(table.is_instant());
    }

    #[test]
    fn a_text_is_looked_at_up_to_its_limit() {
        let table = StaticEmbedder::new().unwrap();
        let full = "heart ".repeat(MAX_TEXT_BYTES / 6);
        let padded = format!("{full}{}", " ".repeat(MAX_TEXT_BYTES - full.len()));
        assert_eq!(
            table.vector(&format!("{padded}bread")),
            table.vector(&padded)
        );
        let inside = format!("{}bread", &padded[..MAX_TEXT_BYTES - 5]);
        assert_ne!(table.vector(&inside), table.vector(&padded));
    }

    #[test]
    fn a_table_that_does_not_fit_its_lines_is_refused() {
        let bytes: &'static [u8] = Box::leak(vec![0; 4 + DIMENSIONS].into_boxed_slice());
        assert!(StaticEmbedder::read("a\n", bytes).is_ok());
        assert!(StaticEmbedder::read("a\nb\n", bytes).is_err());
        assert!(StaticEmbedder::read("", bytes).is_err());
        assert!(StaticEmbedder::read("a\n", &bytes[1..]).is_err());
    }
}
