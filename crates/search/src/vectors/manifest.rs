//! The one file that says which segments there are, and its replacement as a whole.
//!
//! The first line is its content, the second the sum of the first. A segment that it does not name
//! does not exist, whatever lies in the folder.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{MAX_FINGERPRINT_BYTES, MAX_ROWS, MAX_SEGMENTS};
use crate::error::SearchError;
use crate::folder_lock;

pub(super) const NAME: &str = "manifest.json";

/// The next manifest while it is being written.
pub(super) const TEMP_NAME: &str = "manifest.tmp";

/// How the name of every segment ends.
pub(super) const SEGMENT_ENDING: &str = ".seg";

/// Counts up whenever a manifest written before would be misread.
pub(super) const FORMAT: u32 = 1;

/// A full manifest has a hundred bytes for each segment.
const MAX_MANIFEST_BYTES: u64 = 256 * 1024;

/// One segment as the manifest knows it.
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

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoreManifest {
    pub format: u32,
    pub fingerprint: String,
    pub dims: usize,
    /// The number the next segment gets. Numbers are never used twice.
    pub next: u64,
    /// Oldest first.
    pub segments: Vec<SegmentEntry>,
}

impl StoreManifest {
    /// Says no when something in it is over its bound.
    pub(super) fn check(&self) -> Result<(), SearchError> {
        let rows = self
            .segments
            .iter()
            .fold(0_usize, |sum, segment| sum.saturating_add(segment.rows));
        let sizes = [
            ("the number of segments", self.segments.len(), MAX_SEGMENTS),
            ("the number of vectors", rows, MAX_ROWS),
            (
                "the name of the model",
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

    /// Reads the manifest of `dir`. Nothing when there is none.
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
        let damaged = || SearchError::corrupt(dir, format!("the sum of `{NAME}` does not match"));
        let (content, rest) = text.split_once('\n').ok_or_else(damaged)?;
        if rest != format!("{:08x}\n", crc32fast::hash(content.as_bytes())) {
            return Err(damaged());
        }
        let manifest: Self = serde_json::from_str(content)
            .map_err(|_| SearchError::corrupt(dir, format!("`{NAME}` cannot be read")))?;
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

    /// The bytes of the file.
    fn to_bytes(&self) -> Result<Vec<u8>, SearchError> {
        let mut text = serde_json::to_string(self).map_err(SearchError::engine)?;
        let sum = crc32fast::hash(text.as_bytes());
        text.push_str(&format!("\n{sum:08x}\n"));
        Ok(text.into_bytes())
    }

    /// Writes the manifest beside the present one, where it does not count yet.
    pub(super) fn prepare(&self, dir: &Path) -> Result<(), SearchError> {
        self.check()?;
        let text = self.to_bytes()?;
        let path = dir.join(TEMP_NAME);
        let write = || {
            let mut file = File::create(&path)?;
            file.write_all(&text)?;
            file.sync_all()
        };
        write().map_err(|source| SearchError::io(&path, source))
    }

    /// Puts the manifest that was prepared in the place of the present one.
    pub(super) fn publish(dir: &Path) -> Result<(), SearchError> {
        let path = dir.join(NAME);
        fs::rename(dir.join(TEMP_NAME), &path)
            .and_then(|()| folder_lock::sync_folder(dir))
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
        manifest.prepare(dir)?;
        StoreManifest::publish(dir)
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
        fs::write(dir.path().join(NAME), text).unwrap();
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
