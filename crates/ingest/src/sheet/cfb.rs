//! Compound files, the little file systems of old Office programs, into one of their streams. Every chain
//! of sectors is followed at most as often as there are sectors.

use crate::error::IngestError;

use super::damaged;

/// A compound file whose tables have been read.
pub(super) struct CompoundFile<'a> {
    bytes: &'a [u8],
    sector: usize,
    fat: Vec<u32>,
    entries: Vec<CfbDirectoryEntry>,
    mini_fat_start: u32,
    mini_cutoff: u64,
}

struct CfbDirectoryEntry {
    name: String,
    start: u32,
    size: u64,
}

/// The first number that is no sector but a mark.
const FIRST_MARK: u32 = 0xFFFF_FFFA;

impl<'a> CompoundFile<'a> {
    pub(super) fn open(bytes: &'a [u8]) -> Result<Self, IngestError> {
        Self::tables(bytes).ok_or_else(|| damaged("compound file"))
    }

    fn tables(bytes: &'a [u8]) -> Option<Self> {
        let sector = match u16_at(bytes, 30)? {
            9 => 512,
            12 => 4_096,
            _ => return None,
        };
        let mut compound = Self {
            bytes,
            sector,
            fat: Vec::new(),
            entries: Vec::new(),
            mini_fat_start: u32_at(bytes, 60)?,
            mini_cutoff: u64::from(u32_at(bytes, 56)?),
        };
        compound.fat = compound.fat()?;
        let folder = compound.chain(u32_at(bytes, 48)?, u64::MAX)?;
        compound.entries = folder.chunks_exact(128).filter_map(entry).collect();
        Some(compound)
    }

    fn sectors(&self) -> usize {
        self.bytes.len() / self.sector
    }

    /// The bytes of a sector; the last one of a file may be cut.
    fn sector(&self, number: u32) -> Option<&'a [u8]> {
        let start = (usize::try_from(number).ok()? + 1).checked_mul(self.sector)?;
        let rest = self.bytes.get(start..).filter(|rest| !rest.is_empty())?;
        Some(rest.get(..self.sector).unwrap_or(rest))
    }

    /// The table of which sector follows which, out of the sectors that the header and its continuation
    /// name.
    fn fat(&self) -> Option<Vec<u32>> {
        let mut parts: Vec<u32> = words(self.bytes.get(76..512)?).collect();
        let mut next = u32_at(self.bytes, 68)?;
        for _ in 0..self.sectors() {
            if next >= FIRST_MARK {
                break;
            }
            let mut more: Vec<u32> = words(self.sector(next)?).collect();
            next = more.pop()?;
            parts.extend(more);
        }
        let mut fat = Vec::new();
        for part in parts.into_iter().filter(|part| *part < FIRST_MARK) {
            if fat.len() > self.bytes.len() {
                return None;
            }
            fat.extend(words(self.sector(part)?));
        }
        Some(fat)
    }

    /// The bytes of a chain of sectors, at most `size` of them.
    fn chain(&self, start: u32, size: u64) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let mut next = start;
        for _ in 0..=self.sectors() {
            if next >= FIRST_MARK || out.len() as u64 >= size {
                out.truncate(usize::try_from(size).unwrap_or(usize::MAX));
                return Some(out);
            }
            out.extend_from_slice(self.sector(next)?);
            next = *self.fat.get(usize::try_from(next).ok()?)?;
        }
        // Longer than the file: it goes round in a circle.
        None
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.entries
            .iter()
            .any(|entry| entry.name.eq_ignore_ascii_case(name))
    }

    /// The bytes of a stream.
    pub(super) fn stream(&self, name: &str) -> Option<Vec<u8>> {
        let entry = self
            .entries
            .iter()
            .find(|entry| entry.name.eq_ignore_ascii_case(name))?;
        if entry.size >= self.mini_cutoff {
            return self.chain(entry.start, entry.size);
        }
        self.mini_stream(entry)
    }

    /// Small streams share sectors of the root's own stream, 64 bytes a piece.
    fn mini_stream(&self, entry: &CfbDirectoryEntry) -> Option<Vec<u8>> {
        const PIECE: usize = 64;
        let root = self.entries.first()?;
        let pieces = self.chain(root.start, root.size)?;
        let follows = self.chain(self.mini_fat_start, u64::MAX)?;
        let follows: Vec<u32> = words(&follows).collect();
        let mut out = Vec::new();
        let mut next = entry.start;
        for _ in 0..=follows.len() {
            if next >= FIRST_MARK || out.len() as u64 >= entry.size {
                out.truncate(usize::try_from(entry.size).ok()?);
                return Some(out);
            }
            let start = usize::try_from(next).ok()?.checked_mul(PIECE)?;
            let rest = pieces.get(start..)?;
            out.extend_from_slice(rest.get(..PIECE).unwrap_or(rest));
            next = *follows.get(usize::try_from(next).ok()?)?;
        }
        None
    }
}

fn entry(bytes: &[u8]) -> Option<CfbDirectoryEntry> {
    let name: Vec<u16> = bytes
        .get(..64)?
        .chunks_exact(2)
        .filter_map(|two| u16_at(two, 0))
        .take_while(|unit| *unit != 0)
        .collect();
    let kind = *bytes.get(66)?;
    // Streams and the root; folders have no bytes.
    (kind == 2 || kind == 5).then(|| {
        Some(CfbDirectoryEntry {
            name: String::from_utf16_lossy(&name),
            start: u32_at(bytes, 116)?,
            // Old writers leave rubbish in the upper half.
            size: u64::from(u32_at(bytes, 120)?),
        })
    })?
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.chunks_exact(4).filter_map(|four| u32_at(four, 0))
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let two = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_le_bytes(two.try_into().ok()?))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(four.try_into().ok()?))
}

pub(super) fn f64_at(bytes: &[u8], at: usize) -> Option<f64> {
    let eight = bytes.get(at..at.checked_add(8)?)?;
    Some(f64::from_le_bytes(eight.try_into().ok()?))
}
