//! Loss report: the files and rows that the last sync could not index. It is stored as `losses.json` beside the index,
//! so that `docent doctor` can list them without parsing every file again.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use docent_atomic_file::FileAccess;
use serde::{Deserialize, Serialize};

use crate::corpus::SyncReport;

/// Maximum number of losses that the report lists; the others are only counted.
const MAX_LISTED: usize = 100;

/// Maximum size of the file. A hundred paths, messages and hints stay far below it.
const MAX_BYTES: u64 = 1024 * 1024;

/// The files and rows that the last sync lost, of which at most [`MAX_LISTED`] are listed.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LossReport {
    /// Total number of losses, including those that are not listed.
    pub lost: u64,
    pub listed: Vec<LostItem>,
}

/// One lost file, or one lost row with its line, and the reason as people read it.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LostItem {
    pub path: String,
    pub line: Option<u64>,
    pub message: String,
    pub hint: String,
}

impl LossReport {
    /// Extracts the losses from a sync report. Files that are skipped on purpose, such as links, do not count.
    pub(crate) fn of(report: &SyncReport) -> Self {
        let lost = report
            .skipped
            .iter()
            .filter(|one| one.reason.lost_items() > 0);
        let listed = lost.take(MAX_LISTED).map(|one| LostItem {
            path: one.path.clone(),
            line: one.line,
            message: one.reason.to_string(),
            hint: one.reason.hint().to_owned(),
        });
        Self {
            lost: report.lost,
            listed: listed.collect(),
        }
    }

    /// Stores the report beside the index, and removes an old one if nothing was lost.
    pub(crate) fn save(&self, index: &Path) -> std::io::Result<()> {
        let path = loss_file(index);
        if self.lost == 0 {
            return match fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
                Err(_) | Ok(()) => Ok(()),
            };
        }
        let text = serde_json::to_string_pretty(self)?;
        if fs::read_to_string(&path).is_ok_and(|old| old == text) {
            return Ok(());
        }
        fs::create_dir_all(index)?;
        docent_atomic_file::replace(&path, text.as_bytes(), FileAccess::Default)
    }

    /// Loads the stored report; `None` if the last sync lost nothing.
    ///
    /// # Errors
    /// If the file exists but is malformed or larger than [`MAX_BYTES`].
    pub(crate) fn load(index: &Path) -> std::io::Result<Option<Self>> {
        let file = match File::open(loss_file(index)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => return Ok(None),
            file => file?,
        };
        let mut text = String::new();
        file.take(MAX_BYTES + 1).read_to_string(&mut text)?;
        if text.len() as u64 > MAX_BYTES {
            return Err(std::io::Error::other("it is too long"));
        }
        Ok(Some(serde_json::from_str(&text)?))
    }
}

fn loss_file(index: &Path) -> PathBuf {
    index.join("losses.json")
}

#[cfg(test)]
mod tests {
    use docent_ingest::{IngestError, SkippedItem};

    use super::*;

    fn report(lost: usize) -> SyncReport {
        let skipped = |n: usize| SkippedItem {
            path: format!("{n}.csv"),
            line: Some(7),
            reason: IngestError::NotAnObject,
        };
        let mut skipped: Vec<_> = (0..lost).map(skipped).collect();
        skipped.push(SkippedItem {
            path: "a.png".to_owned(),
            line: None,
            reason: IngestError::Link,
        });
        SyncReport {
            skipped,
            lost: lost as u64,
            ..SyncReport::default()
        }
    }

    #[test]
    fn losses_are_kept_until_there_are_none() {
        let dir = tempfile::tempdir().unwrap();
        let index = dir.path().join("index");
        assert_eq!(LossReport::load(&index).unwrap(), None);
        LossReport::of(&report(0)).save(&index).unwrap();
        assert!(!index.exists(), "nothing was lost, so nothing is written");
        LossReport::of(&report(2)).save(&index).unwrap();
        let kept = LossReport::load(&index).unwrap().unwrap();
        assert_eq!((kept.lost, kept.listed.len()), (2, 2));
        assert_eq!(kept.listed[1].path, "1.csv");
        LossReport::of(&report(0)).save(&index).unwrap();
        assert_eq!(LossReport::load(&index).unwrap(), None);
    }

    #[test]
    fn the_list_and_the_file_end_at_their_bounds() {
        let all = LossReport::of(&report(MAX_LISTED));
        assert_eq!(all.listed.len(), MAX_LISTED);
        let more = LossReport::of(&report(MAX_LISTED + 1));
        assert_eq!(
            (more.lost as usize, more.listed.len()),
            (MAX_LISTED + 1, MAX_LISTED)
        );
        let dir = tempfile::tempdir().unwrap();
        for bad in ["", "{", &" ".repeat(MAX_BYTES as usize + 1)] {
            fs::write(loss_file(dir.path()), bad).unwrap();
            assert!(LossReport::load(dir.path()).is_err());
        }
    }
}
