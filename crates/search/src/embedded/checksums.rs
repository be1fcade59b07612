//! Checksums of the files of a commit, stored in a file of their own.
//!
//! tantivy puts a checksum into each segment file, but none into the file that names the segments, and no
//! checksum says which file it belongs to. Both are recorded here. Of the file that names a commit, the last
//! two versions are listed, since either may be found while one replaces the other. Of each segment file, the
//! length and a checksum of its tail are listed; the tail holds tantivy's own checksum.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use serde::Deserialize;
use tantivy::index::SegmentId;

/// How much of the tail of a file is hashed; tantivy's checksum and version are in there. Together with the length, the
/// tail ties that checksum to this file. Hashing the whole file would read every new segment a second time at each
/// commit.
const END_BYTES: u64 = 512;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
/// The checksums of one commit, by kind of file.
pub(super) struct FileChecksums {
    /// Checksums of files that name a commit, the newest first.
    pub metas: Vec<String>,
    /// Length and tail checksum of each segment file, by name.
    pub files: BTreeMap<String, String>,
}

impl FileChecksums {
    /// Parses what [`to_bytes`](Self::to_bytes) wrote; `None` when any byte of it has changed.
    pub(super) fn parse(content: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(content).ok()?;
        let (list, own) = text.split_at_checked(text.rfind('\n')? + 1)?;
        if own != checksum(list.as_bytes()) {
            return None;
        }
        let mut sums = Self::default();
        for line in list.lines() {
            match line.split_once('\t') {
                Some((name, end)) => {
                    sums.files.insert(name.to_owned(), end.to_owned());
                }
                None => sums.metas.push(line.to_owned()),
            }
        }
        Some(sums)
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let metas = self.metas.iter().map(|sum| format!("{sum}\n"));
        let files = self.files.iter();
        let files = files.map(|(name, end)| format!("{name}\t{end}\n"));
        let mut text: String = metas.chain(files).collect();
        text.push_str(&checksum(text.as_bytes()));
        text.into_bytes()
    }

    /// Lists the segment files in `dir` that these commits name; others may be half written. Segment files
    /// are immutable, so those that were listed before are not read again.
    pub(super) fn update(&mut self, dir: &Path, metas: &[&[u8]]) -> io::Result<()> {
        self.metas = metas.iter().map(|meta| checksum(meta)).collect();
        let segments: BTreeSet<String> = metas.iter().flat_map(|meta| segment_ids(meta)).collect();
        let mut files = BTreeMap::new();
        for entry in fs::read_dir(dir)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if !segments.contains(stem(&name)) {
                continue;
            }
            let end = match self.files.remove(&name) {
                Some(end) => end,
                None => tail_checksum(&dir.join(&name))?,
            };
            files.insert(name, end);
        }
        self.files = files;
        Ok(())
    }

    /// Whether a segment file is the one that was written under this name.
    pub(super) fn is_intact(&self, dir: &Path, name: &Path) -> bool {
        let listed = name.to_str().and_then(|name| self.files.get(name));
        listed.is_some_and(|listed| tail_checksum(&dir.join(name)).is_ok_and(|end| end == *listed))
    }
}

/// The CRC-32 and the length of a whole file.
pub(super) fn checksum(content: &[u8]) -> String {
    format!("{:08x} {}", crc32fast::hash(content), content.len())
}

/// The ids of the segments that a commit names.
fn segment_ids(meta: &[u8]) -> Vec<String> {
    #[derive(Deserialize)]
    struct MetaFile {
        segments: Vec<MetaSegment>,
    }
    #[derive(Deserialize)]
    struct MetaSegment {
        segment_id: SegmentId,
    }
    let meta = serde_json::from_slice(meta);
    let segments = meta.map_or(Vec::new(), |meta: MetaFile| meta.segments);
    let ids = segments.iter().map(|one| one.segment_id.uuid_string());
    ids.collect()
}

fn stem(name: &str) -> &str {
    name.split('.').next().unwrap_or_default()
}

/// Whether a file's name is that of a segment file.
pub(super) fn is_segment_file(name: &str) -> bool {
    let stem = stem(name);
    stem.len() == 32 && stem.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The length of a file and the CRC-32 of its tail.
fn tail_checksum(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(END_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(END_BYTES).read_to_end(&mut bytes)?;
    Ok(format!("{:08x} {length}", crc32fast::hash(&bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_read_as_they_were_written_or_not_at_all() {
        let sums = FileChecksums {
            metas: vec![checksum(b"one"), checksum(b"two")],
            files: BTreeMap::from([("a.idx".to_owned(), checksum(b"a"))]),
        };
        let printed = sums.to_bytes();
        assert_eq!(FileChecksums::parse(&printed), Some(sums));
        for at in 0..printed.len() {
            let mut changed = printed.clone();
            changed[at] ^= 1;
            assert_eq!(FileChecksums::parse(&changed), None, "{at}");
            assert_eq!(FileChecksums::parse(&printed[..at]), None, "{at}");
        }
    }

    #[test]
    fn a_file_in_the_place_of_another_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let names = ["idx", "pos"].map(|ending| format!("{}.{ending}", "0".repeat(32)));
        fs::write(dir.path().join(&names[0]), vec![1; 2_000]).unwrap();
        fs::write(dir.path().join(&names[1]), vec![2; 2_000]).unwrap();
        let other = format!("{}.idx", "1".repeat(32));
        fs::write(dir.path().join(other), "half").unwrap();
        let meta = format!(
            "{{\"segments\":[{{\"segment_id\":\"{}\"}}]}}",
            "0".repeat(32)
        );
        let mut sums = FileChecksums::default();
        sums.update(dir.path(), &[meta.as_bytes()]).unwrap();
        assert_eq!(sums.files.len(), 2);
        let is_intact = |name: &String| sums.is_intact(dir.path(), Path::new(name));
        assert!(names.iter().all(is_intact));
        fs::copy(dir.path().join(&names[0]), dir.path().join(&names[1])).unwrap();
        assert!(is_intact(&names[0]) && !is_intact(&names[1]));
        fs::remove_file(dir.path().join(&names[0])).unwrap();
        assert!(!is_intact(&names[0]));
    }
}
