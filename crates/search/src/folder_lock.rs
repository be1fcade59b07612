//! File locks for index folders: one writer at a time.

use std::fs::{File, TryLockError};
use std::path::Path;

use crate::error::SearchError;

/// Takes the advisory lock `name` in `dir`. It is released when the file is dropped or the process ends, however it
/// ends.
pub(crate) fn lock(dir: &Path, name: &str) -> Result<File, SearchError> {
    let path = dir.join(name);
    let io = |source| SearchError::io(&path, source);
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(io)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(SearchError::Locked {
            path: dir.to_owned(),
        }),
        Err(TryLockError::Error(source)) => Err(io(source)),
    }
}

/// The lock file that the writer of an index holds.
pub(crate) const WRITER_LOCK_FILE: &str = ".docent-writer.lock";

/// Whether a process currently holds the writer lock of an index. Changes nothing in the folder.
#[must_use]
pub fn is_index_locked(dir: &Path) -> bool {
    let file = File::options().write(true).open(dir.join(WRITER_LOCK_FILE));
    file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_locked_while_somebody_writes() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!is_index_locked(dir.path()));
        let held = lock(dir.path(), WRITER_LOCK_FILE).unwrap();
        assert!(is_index_locked(dir.path()));
        drop(held);
        assert!(!is_index_locked(dir.path()));
    }
}
