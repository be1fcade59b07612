//! A tantivy directory that makes commits durable and remembers their checksums.
//!
//! It adds three things to tantivy's own directory. After the file that names a commit was replaced, the
//! folder itself is flushed (fsync), so that an acknowledged commit survives a power failure. The checksums
//! of a commit's files are stored in a file beside them. And once publishing a commit has failed, no commit
//! is published until a new writer begins.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tantivy::directory::error::{
    DeleteError, LockError, OpenDirectoryError, OpenReadError, OpenWriteError,
};
use tantivy::directory::{
    Directory, DirectoryLock, FileHandle, Lock, MmapDirectory, WatchCallback, WatchHandle, WritePtr,
};

use super::checksums::{FileChecksums, checksum};
use crate::failpoints;

/// The file that names the segments of a commit, tantivy's own.
pub(super) const META: &str = "meta.json";

/// The file with the [`FileChecksums`] of a commit.
pub(super) const CHECKSUM_FILE: &str = "docent-meta.sum";

/// How often a file that another process keeps replacing is read before giving up.
const MAX_READS: usize = 8;

#[derive(Clone, Debug)]
/// `sums` is what was written last, so that files with a known checksum are not read again. `is_broken` is
/// set once publishing a commit has failed: tantivy still treats its segments as committed, and a merge that
/// ends a moment later would publish them.
pub(super) struct DurableDirectory {
    dir: PathBuf,
    files: MmapDirectory,
    sums: Arc<Mutex<FileChecksums>>,
    is_broken: Arc<AtomicBool>,
}

impl DurableDirectory {
    pub(super) fn open(dir: &Path) -> Result<Self, OpenDirectoryError> {
        let files = MmapDirectory::open(dir)?;
        Ok(Self {
            dir: dir.to_owned(),
            files,
            sums: Arc::default(),
            is_broken: Arc::default(),
        })
    }

    /// Allows commits again, for a new writer that starts from what is on disk.
    pub(super) fn reset_failure(&self) {
        self.is_broken.store(false, Ordering::SeqCst);
    }

    /// Publishes a commit, write-ahead: its checksums are on disk before the file that names it is replaced.
    /// After a failure no commit is published any more.
    fn publish_meta(&self, content: &[u8]) -> io::Result<()> {
        if self.is_broken.load(Ordering::SeqCst) {
            return Err(io::Error::other("a commit before this one failed"));
        }
        let publish = || {
            self.record_checksums(content)?;
            failpoints::pass("words-announced")?;
            self.files.atomic_write(Path::new(META), content)?;
            self.files.sync_directory()?;
            failpoints::pass("words-named")
        };
        publish().inspect_err(|_| self.is_broken.store(true, Ordering::SeqCst))
    }

    /// Replaces a file atomically and returns once that is durable.
    pub(super) fn write(&self, name: &str, content: &[u8]) -> io::Result<()> {
        self.files.atomic_write(Path::new(name), content)?;
        self.files.sync_directory()
    }

    /// The checksums of the last commit; `None` when their file is damaged.
    pub(super) fn checksums(&self) -> Result<Option<FileChecksums>, OpenReadError> {
        Ok(FileChecksums::parse(
            &self.files.atomic_read(Path::new(CHECKSUM_FILE))?,
        ))
    }

    /// Whether the file that names the last commit matches its checksum.
    pub(super) fn meta_is_intact(&self) -> Result<bool, OpenReadError> {
        for _ in 0..MAX_READS {
            let known = self.files.atomic_read(Path::new(CHECKSUM_FILE))?;
            let meta = checksum(&self.files.atomic_read(Path::new(META))?);
            if FileChecksums::parse(&known).is_some_and(|sums| sums.metas.contains(&meta)) {
                return Ok(true);
            }
            // A writer may have committed in between; then both files are new, and are read again.
            if self.files.atomic_read(Path::new(CHECKSUM_FILE))? == known {
                return Ok(false);
            }
        }
        Ok(false)
    }

    /// Records the checksum of the coming file beside that of the present one, before it is replaced. A crash
    /// in between leaves a file that matches one of the two.
    fn record_checksums(&self, next_meta: &[u8]) -> io::Result<()> {
        let mut sums = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        let present = self.files.atomic_read(Path::new(META)).ok();
        let metas: Vec<&[u8]> = [Some(next_meta), present.as_deref()]
            .into_iter()
            .flatten()
            .collect();
        sums.update(&self.dir, &metas)?;
        self.write(CHECKSUM_FILE, &sums.to_bytes())
    }
}

impl Directory for DurableDirectory {
    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        if path == Path::new(META) {
            self.publish_meta(data)
        } else {
            self.files.atomic_write(path, data)
        }
    }

    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        self.files.get_file_handle(path)
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        self.files.delete(path)
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        self.files.exists(path)
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        self.files.open_write(path)
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        self.files.atomic_read(path)
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.files.sync_directory()
    }

    fn acquire_lock(&self, lock: &Lock) -> Result<DirectoryLock, LockError> {
        self.files.acquire_lock(lock)
    }

    fn watch(&self, callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        self.files.watch(callback)
    }
}
