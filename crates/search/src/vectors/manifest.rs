//! The manifest: the file that lists the segments of a store, replaced atomically as a whole.
//!
//! The first line is JSON, the second its CRC-32 checksum. A segment that the manifest does not list does not exist,
//! whatever else is in the folder.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use docent_atomic_file::{FileAccess, StagedFile};
use serde::{Deserialize, Serialize};

use super::{MAX_FINGERPRINT_BYTES, MAX_ROWS, MAX_SEGMENTS};
use crate::error::SearchError;

pub(super) const NAME: &str = "manifest.json";

/// The file name extension of segments.
pub(super) const SEGMENT_ENDING: &str = ".seg";

/// The format version. Raise it whenever manifests written before would be misread.
pub(super) const FORMAT: u32 = 1;

/// The largest manifest in bytes: a full one needs about a hundred for each segment.
const MAX_MANIFEST_BYTES: u64 = 256 * 1024;

/// The entry of one segment: its number, and the rows, bytes and checksum that its file must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SegmentEntry {
    pub number: u64,
    pub rows: usize,
    pub bytes: u64,
    pub sum: u32,
}

impl SegmentEntry {
    pub(super) fn file_name(&self) -> String {
        file_name(self.number)
    }
}

pub(super) fn file_name(number: u64) -> String {
    format!("{number:016x}{SEGMENT_ENDING}")
}

/// The content of the manifest: the model whose vectors these are, and the segments that hold them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoreManifest {
    pub format: u32,
    pub fingerprint: String,
    pub dims: usize,
    /// The number of the next segment. Numbers are never reused, because an old file may still be mapped.
    pub next: u64,
    /// The segments in the order in which they were committed: the newest version of a document counts.
    pub segments: Vec<SegmentEntry>,
}

impl StoreManifest {
    /// Checks that all counts and lengths are within their limits.
    pub(super) fn check(&self) -> Result<(), SearchError> {
        let rows = self
            .segments
            .iter()
            .fold(0_usize, |sum, segment| sum.saturating_add(segment.rows));
        let sizes = [
            ("the number of segments", self.segments.len(), MAX_SEGMENTS),
            ("the number of vectors", rows, MAX_ROWS),
            (
                "the fingerprint of the model",
                self.fingerprint.len(),
                MAX_FINGERPRINT_BYTES,
            ),
        ];
        for (what, size, limit) in sizes {
            if size > limit {
                return Err(SearchError::TooLarge {
                    what: what.to_owned(),
                    size,
                    limit,
                });
            }
        }
        Ok(())
    }

    /// Reads the manifest of `dir` and verifies its checksum; `None` if there is no file.
    pub(super) fn read(dir: &Path) -> Result<Option<Self>, SearchError> {
        let path = dir.join(NAME);
        let mut text = String::new();
        let read = File::open(&path)
            .and_then(|file| file.take(MAX_MANIFEST_BYTES + 1).read_to_string(&mut text));
        match read {
            Ok(_) => {}
            Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) if source.kind() == io::ErrorKind::InvalidData => text.clear(),
            Err(source) => return Err(SearchError::io(&path, source)),
        }
        if text.len() as u64 > MAX_MANIFEST_BYTES {
            return Err(SearchError::corrupt(dir, format!("`{NAME}` is too large")));
        }
        Self::parse(&text, dir).map(Some)
    }

    fn parse(text: &str, dir: &Path) -> Result<Self, SearchError> {
        let mismatch =
            || SearchError::corrupt(dir, format!("the checksum of `{NAME}` does not match"));
        let (content, rest) = text.split_once('\n').ok_or_else(mismatch)?;
        if rest != format!("{:08x}\n", crc32fast::hash(content.as_bytes())) {
            return Err(mismatch());
        }
        let manifest: Self = serde_json::from_str(content)
            .map_err(|_| SearchError::corrupt(dir, format!("`{NAME}` is not a valid manifest")))?;
        if manifest.format != FORMAT {
            return Err(SearchError::Format {
                path: dir.to_owned(),
                found: manifest.format.to_string(),
                expected: FORMAT,
            });
        }
        manifest
            .check()
            .map_err(|error| SearchError::corrupt(dir, error.to_string()))?;
        Ok(manifest)
    }

    /// Serializes the manifest, with the checksum on a second line.
    fn to_bytes(&self) -> Result<Vec<u8>, SearchError> {
        let mut text = serde_json::to_string(self).map_err(SearchError::engine)?;
        let sum = crc32fast::hash(text.as_bytes());
        text.push_str(&format!("\n{sum:08x}\n"));
        Ok(text.into_bytes())
    }

    /// Writes and syncs the manifest under a temporary name, where it has no effect until it replaces the present one.
    pub(super) fn stage(&self, dir: &Path) -> Result<StagedFile, SearchError> {
        self.check()?;
        let path = dir.join(NAME);
        StagedFile::new(&path, &self.to_bytes()?, FileAccess::Default)
            .map_err(|source| SearchError::io(&path, source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(segments: usize, rows: usize) -> StoreManifest {
        let entry = SegmentEntry {
            number: u64::MAX,
            rows,
            bytes: u64::MAX,
            sum: u32::MAX,
        };
        StoreManifest {
            format: FORMAT,
            fingerprint: "model".to_owned(),
            dims: 4,
            next: u64::MAX,
            segments: vec![entry; segments],
        }
    }

    fn write(dir: &Path, manifest: &StoreManifest) -> Result<(), SearchError> {
        let staged = manifest.stage(dir)?;
        staged
            .replace()
            .map_err(|source| SearchError::io(dir, source))
    }

    #[test]
    fn the_largest_manifest_comes_back_and_one_more_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let mut most = manifest(MAX_SEGMENTS, MAX_ROWS / MAX_SEGMENTS);
        most.fingerprint = "\u{1}".repeat(MAX_FINGERPRINT_BYTES);
        write(dir.path(), &most).unwrap();
        assert_eq!(StoreManifest::read(dir.path()).unwrap(), Some(most.clone()));
        let mut long = most.clone();
        long.fingerprint.push('x');
        let over = [
            manifest(MAX_SEGMENTS + 1, 1),
            manifest(1, MAX_ROWS + 1),
            manifest(2, usize::MAX),
            long,
        ];
        for manifest in over {
            let error = write(dir.path(), &manifest).unwrap_err();
            assert!(matches!(error, SearchError::TooLarge { .. }), "{error}");
        }
        assert_eq!(StoreManifest::read(dir.path()).unwrap(), Some(most));
    }

    #[test]
    fn a_file_over_its_bound_is_not_read_to_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let text = "x".repeat(MAX_MANIFEST_BYTES as usize + 1);
        std::fs::write(dir.path().join(NAME), text).unwrap();
        let error = StoreManifest::read(dir.path()).unwrap_err();
        assert!(error.to_string().contains("too large"), "{error}");
    }

    #[test]
    fn another_format_is_told_apart_from_damage() {
        let dir = tempfile::tempdir().unwrap();
        let mut other = manifest(0, 0);
        other.format = FORMAT + 1;
        write(dir.path(), &other).unwrap();
        let error = StoreManifest::read(dir.path()).unwrap_err();
        assert!(matches!(error, SearchError::Format { .. }), "{error}");
        assert_eq!(StoreManifest::read(&dir.path().join("none")).unwrap(), None);
    }
}
