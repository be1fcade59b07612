//! The packed file into the model's tables and matrices. The large ones stay where the program was
//! loaded; only the small vectors of numbers are copied.

use super::kernels::{Matrix, Norm, PANEL};
use super::tokenizer::{MAX_TOKENS, Tokenizer};

/// How many numbers stand for a token between the layers.
pub(super) const HIDDEN: usize = 384;
/// How many numbers stand for a token inside the second half of a layer.
pub(super) const WIDE: usize = 4 * HIDDEN;
const LAYERS: usize = 6;
const VOCABULARY: usize = 50265;

const MAGIC: &[u8] = b"DOCENTGR\x01\0\0\0";

/// Starts the file on a cache line, so that no load of the kernels straddles two.
#[repr(C, align(64))]
struct Aligned<T: ?Sized>(T);

static PACKED: &Aligned<[u8]> = &Aligned(*include_bytes!(
    "../../../models/granite-embedding-30m-english/granite.bin"
));

/// The whole model.
pub(super) struct Weights {
    pub(super) tokenizer: Tokenizer,
    pub(super) words: Words,
    pub(super) norm: Norm,
    pub(super) layers: Vec<Layer>,
}

/// What each token and each place in the text contributes before the first layer.
pub(super) struct Words {
    scales: &'static [[u8; 4]],
    rows: &'static [u8],
    positions: &'static [[u8; 4]],
}

/// One layer: attention, then a wide and a narrow matrix, each half with its norm.
pub(super) struct Layer {
    pub(super) qkv: Matrix,
    pub(super) attended: Matrix,
    pub(super) attended_norm: Norm,
    pub(super) widen: Matrix,
    pub(super) narrow: Matrix,
    pub(super) norm: Norm,
}

impl Weights {
    /// Reads the file inside the program; nothing if it is not the one this code was written for.
    pub(super) fn load() -> Option<Self> {
        Self::read(&PACKED.0)
    }

    fn read(bytes: &'static [u8]) -> Option<Self> {
        let mut sections = Sections { bytes, at: 0 };
        if sections.take(MAGIC.len())? != MAGIC {
            return None;
        }
        let tokenizer = sections.tokenizer()?;
        let words = Words {
            scales: sections.take(4 * VOCABULARY)?.as_chunks().0,
            rows: sections.take(VOCABULARY * HIDDEN)?,
            positions: sections.take(4 * MAX_TOKENS * HIDDEN)?.as_chunks().0,
        };
        let norm = sections.norm()?;
        let layers = (0..LAYERS).map(|_| sections.layer());
        let layers = layers.collect::<Option<Vec<_>>>()?;
        let whole = sections.at == bytes.len();
        whole.then_some(Self {
            tokenizer,
            words,
            norm,
            layers,
        })
    }
}

impl Words {
    /// Writes what a token at a place contributes.
    pub(super) fn write(&self, token: u16, place: usize, row: &mut [f32]) -> Option<()> {
        let token = usize::from(token);
        let scale = f32::from_le_bytes(*self.scales.get(token)?);
        let word = self.rows.get(token * HIDDEN..)?;
        let position = self.positions.get(place * HIDDEN..)?;
        for ((number, word), position) in row.iter_mut().zip(word).zip(position) {
            *number = scale * f32::from(word.cast_signed()) + f32::from_le_bytes(*position);
        }
        Some(())
    }
}

/// Walks through the file; every section starts on a cache line.
struct Sections {
    bytes: &'static [u8],
    at: usize,
}

impl Sections {
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

    fn tokenizer(&mut self) -> Option<Tokenizer> {
        let bytes = self.take(2 * 256)?;
        let merges = u32::from_le_bytes(*self.take(4)?.first_chunk()?) as usize;
        let begins = self.take(4 * (VOCABULARY + 1))?;
        Some(Tokenizer::new(bytes, begins, self.take(6 * merges)?))
    }

    fn norm(&mut self) -> Option<Norm> {
        Some(Norm {
            weights: self.numbers(HIDDEN)?,
            bias: self.numbers(HIDDEN)?,
        })
    }

    fn matrix(&mut self, depth: usize, columns: usize) -> Option<Matrix> {
        debug_assert!(depth.is_multiple_of(4) && columns.is_multiple_of(PANEL));
        Some(Matrix {
            depth,
            panels: self.take(depth * columns)?,
            scales: self.numbers(columns)?,
            sums: self.numbers(columns)?,
            bias: self.numbers(columns)?,
        })
    }

    fn layer(&mut self) -> Option<Layer> {
        Some(Layer {
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
    use super::*;
    use sha2::{Digest, Sha256};

    #[test]
    fn the_packed_file_is_the_one_its_readme_names() {
        let readme = include_str!("../../../models/granite-embedding-30m-english/README.md");
        let sum: String = Sha256::digest(&PACKED.0)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert!(readme.contains(&sum), "{sum} is not in the README");
    }

    #[test]
    fn a_file_that_is_cut_or_longer_is_refused() {
        assert!(Weights::read(&PACKED.0).is_some());
        assert!(Weights::read(&PACKED.0[..PACKED.0.len() - 1]).is_none());
        assert!(Weights::read(&PACKED.0[64..]).is_none());
        assert!(Weights::read(&[]).is_none());
        let longer: &'static [u8] = [&PACKED.0, &[0]].concat().leak();
        assert!(Weights::read(longer).is_none());
    }
}
