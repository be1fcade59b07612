//! Loads the weights of the transformer from the compressed model file.
//!
//! Most of the file is decompressed once for the whole program. The token embeddings, which are its larger half, are
//! decompressed block by block as texts need them. `pack.py` in the model's folder writes the file.

use std::sync::OnceLock;

use super::super::packed_file::PackedFile;
use super::kernels::{LayerNorm, PANEL, QuantizedMatrix};
use super::tokenizer::{BpeTokenizer, MAX_TOKENS};

/// The hidden size: how many numbers represent a token between the layers.
pub(super) const HIDDEN: usize = 384;
/// The width of the feed-forward network inside a layer.
pub(super) const WIDE: usize = 4 * HIDDEN;
const LAYERS: usize = 6;
const VOCABULARY: usize = 50265;

const MAGIC: &[u8] = b"DOCENTGR\x01\0\0\0";

/// The offset of the token embeddings in the file.
const EMBEDDINGS: usize = 702_848;
/// The offset of the sections after the token embeddings.
const AFTER_EMBEDDINGS: usize = (EMBEDDINGS + VOCABULARY * HIDDEN).next_multiple_of(64);

static PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/granite.bin.packed"));
/// Decompressed once, however many embedders are created.
static FILE: OnceLock<Option<PackedModel>> = OnceLock::new();

/// The sections of the file before and after the token embeddings, decompressed, and the file to read those from.
struct PackedModel {
    before: &'static [u8],
    words: PackedFile,
    after: &'static [u8],
}

impl PackedModel {
    fn open(bytes: &'static [u8]) -> Option<Self> {
        let file = PackedFile::new(bytes)?;
        Some(Self {
            before: file.leak_range(0..EMBEDDINGS)?,
            after: file.leak_range(AFTER_EMBEDDINGS..file.len())?,
            words: file,
        })
    }
}

/// The model: tokenizer, embeddings with their layer norm, and the encoder layers.
pub(super) struct GraniteWeights {
    pub(super) tokenizer: BpeTokenizer,
    pub(super) words: TokenEmbeddings,
    pub(super) norm: LayerNorm,
    pub(super) layers: Vec<EncoderLayer>,
}

/// The token embeddings, quantized to int8 with one scale a row, and the position embeddings in f32.
pub(super) struct TokenEmbeddings {
    scales: &'static [[u8; 4]],
    rows: &'static PackedFile,
    positions: &'static [[u8; 4]],
}

/// One encoder layer: self-attention (`qkv` and the output projection `attended`), then the feed-forward network
/// (`widen` and `narrow`), each followed by its layer norm.
pub(super) struct EncoderLayer {
    pub(super) qkv: QuantizedMatrix,
    pub(super) attended: QuantizedMatrix,
    pub(super) attended_norm: LayerNorm,
    pub(super) widen: QuantizedMatrix,
    pub(super) narrow: QuantizedMatrix,
    pub(super) norm: LayerNorm,
}

impl GraniteWeights {
    /// Loads the built-in model file; `None` if its layout is not the one this code was written for.
    pub(super) fn load() -> Option<Self> {
        let file = FILE.get_or_init(|| PackedModel::open(PACKED));
        file.as_ref().and_then(Self::read)
    }

    fn read(file: &'static PackedModel) -> Option<Self> {
        let mut sections = SectionReader {
            bytes: file.before,
            at: 0,
        };
        if sections.take(MAGIC.len())? != MAGIC {
            return None;
        }
        let tokenizer = sections.tokenizer()?;
        let scales = sections.take(4 * VOCABULARY)?.as_chunks().0;
        if sections.at.next_multiple_of(64) != EMBEDDINGS {
            return None;
        }
        let mut sections = SectionReader {
            bytes: file.after,
            at: 0,
        };
        let words = TokenEmbeddings {
            scales,
            rows: &file.words,
            positions: sections.take(4 * MAX_TOKENS * HIDDEN)?.as_chunks().0,
        };
        let norm = sections.norm()?;
        let layers = (0..LAYERS).map(|_| sections.layer());
        let layers = layers.collect::<Option<Vec<_>>>()?;
        let whole = sections.at == file.after.len();
        whole.then_some(Self {
            tokenizer,
            words,
            norm,
            layers,
        })
    }
}

impl TokenEmbeddings {
    /// Writes the input of the first layer for a token: its embedding plus that of its position.
    pub(super) fn write(&self, token: u16, position: usize, row: &mut [f32]) -> Option<()> {
        let token = usize::from(token);
        let scale = f32::from_le_bytes(*self.scales.get(token)?);
        let mut word = [0; HIDDEN];
        self.rows.read(EMBEDDINGS + token * HIDDEN, &mut word)?;
        let positions = self.positions.get(position * HIDDEN..)?;
        for ((number, word), position) in row.iter_mut().zip(word).zip(positions) {
            *number = scale * f32::from(word.cast_signed()) + f32::from_le_bytes(*position);
        }
        Some(())
    }
}

/// Reads one section after the other. Each starts on a cache line, so that SIMD loads are aligned.
struct SectionReader {
    bytes: &'static [u8],
    at: usize,
}

impl SectionReader {
    fn take(&mut self, length: usize) -> Option<&'static [u8]> {
        let start = self.at.next_multiple_of(64);
        let section = self.bytes.get(start..start.checked_add(length)?)?;
        self.at = start + length;
        Some(section)
    }

    fn numbers(&mut self, count: usize) -> Option<Vec<f32>> {
        let (numbers, _) = self.take(4 * count)?.as_chunks();
        Some(
            numbers
                .iter()
                .map(|bytes| f32::from_le_bytes(*bytes))
                .collect(),
        )
    }

    fn tokenizer(&mut self) -> Option<BpeTokenizer> {
        let bytes = self.take(2 * 256)?;
        let merges = u32::from_le_bytes(*self.take(4)?.first_chunk()?) as usize;
        let begins = self.take(4 * (VOCABULARY + 1))?;
        Some(BpeTokenizer::new(bytes, begins, self.take(6 * merges)?))
    }

    fn norm(&mut self) -> Option<LayerNorm> {
        Some(LayerNorm {
            weights: self.numbers(HIDDEN)?,
            bias: self.numbers(HIDDEN)?,
        })
    }

    fn matrix(&mut self, depth: usize, columns: usize) -> Option<QuantizedMatrix> {
        debug_assert!(depth.is_multiple_of(4) && columns.is_multiple_of(PANEL));
        Some(QuantizedMatrix {
            depth,
            panels: self.take(depth * columns)?,
            scales: self.numbers(columns)?,
            sums: self.numbers(columns)?,
            bias: self.numbers(columns)?,
        })
    }

    fn layer(&mut self) -> Option<EncoderLayer> {
        Some(EncoderLayer {
            qkv: self.matrix(HIDDEN, 3 * HIDDEN)?,
            attended: self.matrix(HIDDEN, HIDDEN)?,
            attended_norm: self.norm()?,
            widen: self.matrix(HIDDEN, WIDE)?,
            narrow: self.matrix(WIDE, HIDDEN)?,
            norm: self.norm()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::packed_file::tests::pack;
    use super::*;
    use sha2::{Digest, Sha256};

    /// The decompressed model file as a whole.
    fn unpacked() -> &'static [u8] {
        let file = PackedFile::new(PACKED).unwrap();
        file.leak_range(0..file.len()).unwrap()
    }

    #[test]
    fn the_packed_file_is_the_one_its_readme_names() {
        let readme = include_str!("../../../models/granite-embedding-30m-english/README.md");
        let sum: String = Sha256::digest(unpacked())
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert!(readme.contains(&sum), "{sum} is not in the README");
    }

    #[test]
    fn a_file_that_is_cut_or_longer_is_refused() {
        let read = |bytes: &[u8]| {
            let file: &'static _ = Box::leak(Box::new(PackedModel::open(pack(bytes, 1 << 20))));
            file.as_ref().and_then(GraniteWeights::read).is_some()
        };
        let whole = unpacked();
        assert!(read(whole));
        assert!(!read(&whole[..whole.len() - 1]));
        assert!(!read(&whole[64..]));
        assert!(!read(&whole[..EMBEDDINGS]));
        assert!(!read(&[]));
        assert!(!read(&[whole, &[0]].concat()));
    }

    #[test]
    fn a_word_is_the_row_of_its_number_and_there_are_no_others() {
        let weights = GraniteWeights::load().unwrap();
        let whole = unpacked();
        let mut found = [0.0; HIDDEN];
        // Rows within a compressed block, across its end, and the last one.
        for token in [0, 1, 255, 256, 50_264] {
            weights.words.write(token, 0, &mut found).unwrap();
            let token = usize::from(token);
            let scale = f32::from_le_bytes(weights.words.scales[token]);
            let row = &whole[EMBEDDINGS + token * HIDDEN..][..HIDDEN];
            for ((found, row), position) in found.iter().zip(row).zip(weights.words.positions) {
                let expected = scale * f32::from(row.cast_signed()) + f32::from_le_bytes(*position);
                assert_eq!(*found, expected);
            }
        }
        assert!(weights.words.write(50_265, 0, &mut found).is_none());
    }
}
