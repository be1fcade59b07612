//! Reader for compound files (CFB, also called OLE), the small file systems of old Office programs. Each
//! sector chain is followed for at most as many steps as there are sectors, so a cycle cannot loop forever.

use std::io::{Read as _, Seek as _, SeekFrom};

use cap_std::fs::File;

use crate::error::IngestError;

use super::damaged;

/// A compound file whose allocation table (FAT) and directory have been read.
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

/// The first sector number that is a special value, such as the end of a chain.
const FIRST_SPECIAL_SECTOR: u32 = 0xFFFF_FFFA;

/// The streams by which the programs of old Office are told apart.
const KINDS: &[(&str, &str)] = &[
    ("WordDocument", "doc"),
    ("PowerPoint Document", "ppt"),
    ("Workbook", "xls"),
    ("Book", "xls"),
    ("__properties_version1.0", "msg"),
];

/// How much of the directory is searched for the name of the main stream, which comes before those of embedded objects.
const MAX_DIRECTORY_BYTES: u64 = 16 * 1024;

/// The kind of a compound file for reports, from the beginning of its directory; `None` if no stream tells it.
pub(super) fn kind(mut file: &File, head: &[u8]) -> Option<&'static str> {
    let sector = sector_size(head)?;
    let start = (u64::from(u32_at(head, 48)?) + 1).checked_mul(sector as u64)?;
    let mut directory = Vec::new();
    file.seek(SeekFrom::Start(start)).ok()?;
    let read = file.take(MAX_DIRECTORY_BYTES).read_to_end(&mut directory);
    read.ok()?;
    let mut names = directory.chunks_exact(128).filter_map(entry);
    names.find_map(|entry| {
        let mut kinds = KINDS.iter();
        let known = kinds.find(|(stream, _)| entry.name.eq_ignore_ascii_case(stream));
        known.map(|(_, kind)| *kind)
    })
}

fn sector_size(header: &[u8]) -> Option<usize> {
    match u16_at(header, 30)? {
        9 => Some(512),
        12 => Some(4_096),
        _ => None,
    }
}

impl<'a> CompoundFile<'a> {
    pub(super) fn open(bytes: &'a [u8]) -> Result<Self, IngestError> {
        Self::tables(bytes).ok_or_else(|| damaged("compound file"))
    }

    fn tables(bytes: &'a [u8]) -> Option<Self> {
        let sector = sector_size(bytes)?;
        let mut compound = Self {
            bytes,
            sector,
            fat: Vec::new(),
            entries: Vec::new(),
            mini_fat_start: u32_at(bytes, 60)?,
            mini_cutoff: u64::from(u32_at(bytes, 56)?),
        };
        compound.fat = compound.fat()?;
        let directory = compound.chain(u32_at(bytes, 48)?, u64::MAX)?;
        compound.entries = directory.chunks_exact(128).filter_map(entry).collect();
        Some(compound)
    }

    fn sectors(&self) -> usize {
        self.bytes.len() / self.sector
    }

    /// The bytes of a sector; the last sector of a file may be truncated.
    fn sector(&self, number: u32) -> Option<&'a [u8]> {
        let start = (usize::try_from(number).ok()? + 1).checked_mul(self.sector)?;
        let rest = self.bytes.get(start..).filter(|rest| !rest.is_empty())?;
        Some(rest.get(..self.sector).unwrap_or(rest))
    }

    /// The file allocation table: the next sector of each sector. It is assembled from the FAT sectors that
    /// the header and its continuations (DIFAT) list.
    fn fat(&self) -> Option<Vec<u32>> {
        let mut parts: Vec<u32> = words(self.bytes.get(76..512)?).collect();
        let mut next = u32_at(self.bytes, 68)?;
        for _ in 0..self.sectors() {
            if next >= FIRST_SPECIAL_SECTOR {
                break;
            }
            let mut more: Vec<u32> = words(self.sector(next)?).collect();
            next = more.pop()?;
            parts.extend(more);
        }
        let mut fat = Vec::new();
        for part in parts
            .into_iter()
            .filter(|part| *part < FIRST_SPECIAL_SECTOR)
        {
            if fat.len() > self.bytes.len() {
                return None;
            }
            fat.extend(words(self.sector(part)?));
        }
        Some(fat)
    }

    /// The contents of a sector chain, truncated to `size` bytes.
    fn chain(&self, start: u32, size: u64) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let mut next = start;
        for _ in 0..=self.sectors() {
            if next >= FIRST_SPECIAL_SECTOR || out.len() as u64 >= size {
                out.truncate(usize::try_from(size).unwrap_or(usize::MAX));
                return Some(out);
            }
            out.extend_from_slice(self.sector(next)?);
            next = *self.fat.get(usize::try_from(next).ok()?)?;
        }
        // More steps than the file has sectors: the chain is a cycle.
        None
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.entries
            .iter()
            .any(|entry| entry.name.eq_ignore_ascii_case(name))
    }

    /// The contents of a stream.
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

    /// Small streams are stored in mini sectors of 64 bytes inside the root's own stream.
    fn mini_stream(&self, entry: &CfbDirectoryEntry) -> Option<Vec<u8>> {
        const MINI_SECTOR_BYTES: usize = 64;
        let root = self.entries.first()?;
        let sectors = self.chain(root.start, root.size)?;
        let mini_fat = self.chain(self.mini_fat_start, u64::MAX)?;
        let mini_fat: Vec<u32> = words(&mini_fat).collect();
        let mut out = Vec::new();
        let mut next = entry.start;
        for _ in 0..=mini_fat.len() {
            if next >= FIRST_SPECIAL_SECTOR || out.len() as u64 >= entry.size {
                out.truncate(usize::try_from(entry.size).ok()?);
                return Some(out);
            }
            let start = usize::try_from(next).ok()?.checked_mul(MINI_SECTOR_BYTES)?;
            let rest = sectors.get(start..)?;
            out.extend_from_slice(rest.get(..MINI_SECTOR_BYTES).unwrap_or(rest));
            next = *mini_fat.get(usize::try_from(next).ok()?)?;
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
    // Only streams and the root have contents; storages have none.
    (kind == 2 || kind == 5).then(|| {
        Some(CfbDirectoryEntry {
            name: String::from_utf16_lossy(&name),
            start: u32_at(bytes, 116)?,
            // Old writers leave garbage in the upper half of the size.
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
