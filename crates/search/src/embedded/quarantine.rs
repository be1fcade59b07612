//! Damaged files out of the way: moved into a folder of their own, never read again, and removed once
//! what they held has been made anew.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::SearchError;
use crate::folder_lock;

/// The folder inside the folder of the index.
const FOLDER: &str = "damaged";

/// Where damaged parts of one index go.
#[derive(Debug, Clone)]
pub(super) struct Quarantine {
    folder: PathBuf,
    /// What was moved and why, in words.
    pub reasons: Vec<String>,
}

impl Quarantine {
    pub(super) fn of(dir: &Path) -> Self {
        Self {
            folder: dir.join(FOLDER),
            reasons: Vec::new(),
        }
    }

    /// Moves a file or a folder aside, in the place of one that was moved there before.
    pub(super) fn isolate(
        &mut self,
        path: &Path,
        why: impl Into<String>,
    ) -> Result<(), SearchError> {
        let why = why.into();
        // The files of one segment go together.
        if self.reasons.last() != Some(&why) {
            tracing::warn!(%why, "a part of the index is damaged and made again");
            self.reasons.push(why);
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
        let above = path.parent().unwrap_or(path);
        folder_lock::sync_folder(above).map_err(io)
    }

    /// Removes what was moved.
    pub(super) fn clear(&self) -> std::io::Result<()> {
        remove(&self.folder)
    }
}

/// Removes a file or a folder, if it is there.
pub(super) fn remove(path: &Path) -> std::io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
