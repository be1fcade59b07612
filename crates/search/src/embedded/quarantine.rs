//! Quarantine for index files that are corrupt or in a format that this version cannot read. They are moved into a
//! folder of their own, never read again, and removed once their content has been rebuilt. Corrupt vectors are only
//! reported here: `semantic_index.rs` discards them, because the documents that they are computed from are intact.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::SearchError;

/// The quarantine folder inside the index folder. The name is a plain word, because owners see it beside their
/// index; `docs/durability.md` explains it.
const FOLDER: &str = "damaged";

/// The quarantine of one index.
#[derive(Debug, Clone)]
pub(super) struct Quarantine {
    folder: PathBuf,
    /// Why each part was quarantined, in words.
    pub reasons: Vec<String>,
}

impl Quarantine {
    pub(super) fn of(dir: &Path) -> Self {
        Self {
            folder: dir.join(FOLDER),
            reasons: Vec::new(),
        }
    }

    /// Quarantines a file or a folder. It replaces one of the same name that was quarantined before.
    pub(super) fn isolate(
        &mut self,
        path: &Path,
        reason: impl Into<String>,
    ) -> Result<(), SearchError> {
        let reason = reason.into();
        // The files of one segment have the same reason, which is logged once.
        if self.reasons.last() != Some(&reason) {
            tracing::warn!(why = %reason, "unusable segment or file quarantined, rebuilding");
            self.reasons.push(reason);
        }
        let io = |source| SearchError::io(path, source);
        let Some(name) = path.file_name() else {
            return Ok(());
        };
        fs::create_dir_all(&self.folder).map_err(io)?;
        let to = self.folder.join(name);
        remove(&to).map_err(io)?;
        match fs::rename(path, &to) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            other => other.map_err(io),
        }?;
        let parent = path.parent().unwrap_or(path);
        docent_atomic_file::sync_folder(parent).map_err(io)
    }

    /// Removes all quarantined files, once their content has been rebuilt.
    pub(super) fn clear(&self) -> std::io::Result<()> {
        remove(&self.folder)
    }
}

/// Removes a file or a folder. Idempotent: one that does not exist counts as removed.
pub(super) fn remove(path: &Path) -> std::io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
