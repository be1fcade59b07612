//! tantivy's folder of files, made to survive what a plain folder does not.
//!
//! Three things are added to tantivy's own directory. After the file that names a commit has been
//! put in place the folder itself is flushed, so that a commit that was acknowledged is still there
//! after a loss of power. What the files of a commit must look like is kept in a file beside them. And
//! once a commit could not be named, none is until a new writer begins.

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

/// The file that names what a commit consists of.
pub(super) const META: &str = "meta.json";

/// The file of [`Sums`].
pub(super) const CHECKSUM_FILE: &str = "docent-meta.sum";

/// How often a file that another process keeps replacing is read before giving up.
const MAX_READS: usize = 8;

#[derive(Clone, Debug)]
pub(super) struct DurableDirectory {
    dir: PathBuf,
    files: MmapDirectory,
    /// What was written last, so that files that were summed up are not read again.
    sums: Arc<Mutex<FileChecksums>>,
    /// Set once a commit could not be named. tantivy counts its segments as committed all the same,
    /// and a merge that ends a moment later would name them.
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

    /// Lets commits be named again, for a writer that starts from what the disk has.
    pub(super) fn reset_failure(&self) {
        self.is_broken.store(false, Ordering::SeqCst);
    }

    /// Names a commit, or fails for good.
    fn publish_meta(&self, content: &[u8]) -> io::Result<()> {
        if self.is_broken.load(Ordering::SeqCst) {
            return Err(io::Error::other("a commit before this one failed"));
        }
        let name = || {
            self.record_checksums(content)?;
            failpoints::pass("words-announced")?;
            self.files.atomic_write(Path::new(META), content)?;
            self.files.sync_directory()?;
            failpoints::pass("words-named")
        };
        name().inspect_err(|_| self.is_broken.store(true, Ordering::SeqCst))
    }

    /// Replaces a file as a whole and returns once that is sure to last.
    pub(super) fn write(&self, name: &str, content: &[u8]) -> io::Result<()> {
        self.files.atomic_write(Path::new(name), content)?;
        self.files.sync_directory()
    }

    /// What the files of the last commit must look like; nothing when nobody can say.
    pub(super) fn checksums(&self) -> Result<Option<FileChecksums>, OpenReadError> {
        Ok(FileChecksums::parse(
            &self.files.atomic_read(Path::new(CHECKSUM_FILE))?,
        ))
    }

    /// Whether the file that names the last commit is the one that was written.
    pub(super) fn meta_is_intact(&self) -> Result<bool, OpenReadError> {
        for _ in 0..MAX_READS {
            let known = self.files.atomic_read(Path::new(CHECKSUM_FILE))?;
            let meta = checksum(&self.files.atomic_read(Path::new(META))?);
            if FileChecksums::parse(&known).is_some_and(|sums| sums.metas.contains(&meta)) {
                return Ok(true);
            }
            // A writer may have committed in between; then the sums are new and so is the file.
            if self.files.atomic_read(Path::new(CHECKSUM_FILE))? == known {
                return Ok(false);
            }
        }
        Ok(false)
    }

    /// Puts the sum of the coming file beside the sum of the present one, before it is replaced.
    fn record_checksums(&self, coming: &[u8]) -> io::Result<()> {
        let mut sums = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        let present = self.files.atomic_read(Path::new(META)).ok();
        let metas: Vec<&[u8]> = [Some(coming), present.as_deref()]
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
