//! What makes a folder safe to write into: one writer at a time, and names that last.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;

use crate::error::SearchError;

/// Takes the lock `name` in `dir`. It is given back when the file is dropped, also by the end of the
/// process however it ends.
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

/// The lock of an index, kept by whoever writes to it.
pub(crate) const WRITER_LOCK_FILE: &str = ".docent-writer.lock";

/// Whether some process writes to the index in a folder just now. Nothing is changed there.
#[must_use]
pub fn is_index_locked(dir: &Path) -> bool {
    let file = File::options().write(true).open(dir.join(WRITER_LOCK_FILE));
    file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Makes the names in a folder last.
pub(crate) fn sync_folder(dir: &Path) -> io::Result<()> {
    // Elsewhere a folder cannot be opened like a file, and its names last by themselves.
    if cfg!(unix) {
        File::open(dir)?.sync_all()
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_kept_while_somebody_writes() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!is_index_locked(dir.path()));
        let kept = lock(dir.path(), WRITER_LOCK_FILE).unwrap();
        assert!(is_index_locked(dir.path()));
        drop(kept);
        assert!(!is_index_locked(dir.path()));
    }
}
