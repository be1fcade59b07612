//! The packed file into the model's tables and matrices. Most of it is unpacked once, for the whole program; the
//! vectors of words, which are the larger half of it, as texts need them.

use std::sync::OnceLock;

use super::super::packed_file::PackedFile;
use super::kernels::{LayerNorm, PANEL, QuantizedMatrix};
use super::tokenizer::{BpeTokenizer, MAX_TOKENS};

/// How many numbers stand for a token between the layers.
pub(super) const HIDDEN: usize = 384;
/// How many numbers stand for a token inside the second half of a layer.
pub(super) const WIDE: usize = 4 * HIDDEN;
const LAYERS: usize = 6;
const VOCABULARY: usize = 50265;

const MAGIC: &[u8] = b"DOCENTGR\x01\0\0\0";

/// Where the vectors of words start in the file.
const ROWS: usize = 702_848;
/// Where the sections behind them start.
const BEHIND: usize = (ROWS + VOCABULARY * HIDDEN).next_multiple_of(64);

static PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/granite.bin.packed"));
/// Unpacked once, however many models are made of it.
static FILE: OnceLock<Option<PackedModel>> = OnceLock::new();

/// The file, but for the vectors of words in the middle of it.
struct PackedModel {
    before: &'static [u8],
    words: PackedFile,
    behind: &'static [u8],
}

impl PackedModel {
    fn open(bytes: &'static [u8]) -> Option<Self> {
        let file = PackedFile::new(bytes)?;
        Some(Self {
            before: file.leak_range(0..ROWS)?,
            behind: file.leak_range(BEHIND..file.len())?,
            words: file,
        })
    }
}

/// The whole model.
pub(super) struct GraniteWeights {
    pub(super) tokenizer: BpeTokenizer,
    pub(super) words: TokenEmbeddings,
    pub(super) norm: LayerNorm,
    pub(super) layers: Vec<EncoderLayer>,
}

/// What each token and each place in the text contributes before the first layer.
pub(super) struct TokenEmbeddings {
    scales: &'static [[u8; 4]],
    rows: &'static PackedFile,
    positions: &'static [[u8; 4]],
}

/// One layer: attention, then a wide and a narrow matrix, each half with its norm.
pub(super) struct EncoderLayer {
    pub(super) qkv: QuantizedMatrix,
    pub(super) attended: QuantizedMatrix,
    pub(super) attended_norm: LayerNorm,
    pub(super) widen: QuantizedMatrix,
    pub(super) narrow: QuantizedMatrix,
    pub(super) norm: LayerNorm,
}

impl GraniteWeights {
    /// Reads the file inside the program; nothing if it is not the one this code was written for.
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
        if sections.at.next_multiple_of(64) != ROWS {
            return None;
        }
        let mut sections = SectionReader {
            bytes: file.behind,
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
        let whole = sections.at == file.behind.len();
        whole.then_some(Self {
            tokenizer,
            words,
            norm,
            layers,
        })
    }
}

impl TokenEmbeddings {
    /// Writes what a token at a place contributes.
    pub(super) fn write(&self, token: u16, place: usize, row: &mut [f32]) -> Option<()> {
        let token = usize::from(token);
        let scale = f32::from_le_bytes(*self.scales.get(token)?);
        let mut word = [0; HIDDEN];
        self.rows.read(ROWS + token * HIDDEN, &mut word)?;
        let position = self.positions.get(place * HIDDEN..)?;
        for ((number, word), position) in row.iter_mut().zip(word).zip(position) {
            *number = scale * f32::from(word.cast_signed()) + f32::from_le_bytes(*position);
        }
        Some(())
    }
}

/// Walks through the file; every section starts on a cache line.
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

    /// The file as it was before it was packed.
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
        assert!(!read(&whole[..ROWS]));
        assert!(!read(&[]));
        assert!(!read(&[whole, &[0]].concat()));
    }

    #[test]
    fn a_word_is_the_row_of_its_number_and_there_are_no_others() {
        let weights = GraniteWeights::load().unwrap();
        let whole = unpacked();
        let mut found = [0.0; HIDDEN];
        // Rows within a block of the packed file, over its edge, and the last one.
        for token in [0, 1, 255, 256, 50_264] {
            weights.words.write(token, 0, &mut found).unwrap();
            let token = usize::from(token);
            let scale = f32::from_le_bytes(weights.words.scales[token]);
            let row = &whole[ROWS + token * HIDDEN..][..HIDDEN];
            for ((found, row), position) in found.iter().zip(row).zip(weights.words.positions) {
                let expected = scale * f32::from(row.cast_signed()) + f32::from_le_bytes(*position);
                assert_eq!(*found, expected);
            }
        }
        assert!(weights.words.write(50_265, 0, &mut found).is_none());
    }
}
