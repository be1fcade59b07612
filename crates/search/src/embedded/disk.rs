//! tantivy's folder of files, made to survive what a plain folder does not.
//!
//! Two things are added to tantivy's own directory. After the file that names a commit has been
//! put in place the folder itself is flushed, so that a commit that was acknowledged is still there
//! after a loss of power. And since that one file carries no checksum, its sum is kept in a file
//! beside it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tantivy::directory::error::{
    DeleteError, LockError, OpenDirectoryError, OpenReadError, OpenWriteError,
};
use tantivy::directory::{
    Directory, DirectoryLock, FileHandle, Lock, MmapDirectory, WatchCallback, WatchHandle, WritePtr,
};

/// The file that names what a commit consists of.
pub(super) const META: &str = "meta.json";

/// The sums of the last two such files, since while one is being replaced either may be found, and
/// the sum of these lines themselves.
pub(super) const SUMS: &str = "docent-meta.sum";

/// How often a file that another process keeps replacing is read before giving up.
const MAX_READS: usize = 8;

#[derive(Clone, Debug)]
pub(super) struct Disk(MmapDirectory);

impl Disk {
    pub(super) fn open(dir: &Path) -> Result<Self, OpenDirectoryError> {
        MmapDirectory::open(dir).map(Self)
    }

    /// Replaces a file as a whole and returns once that is sure to last.
    pub(super) fn write(&self, name: &str, content: &[u8]) -> io::Result<()> {
        self.0.atomic_write(Path::new(name), content)?;
        self.0.sync_directory()
    }

    /// Whether the file that names the last commit is the one that was written.
    pub(super) fn meta_is_intact(&self) -> Result<bool, OpenReadError> {
        for _ in 0..MAX_READS {
            let sums = self.0.atomic_read(Path::new(SUMS))?;
            let meta = self.0.atomic_read(Path::new(META))?;
            if known(&sums).any(|sum| sum == self::sum(&meta)) {
                return Ok(true);
            }
            // A writer may have committed in between; then the sums are new and so is the file.
            if self.0.atomic_read(Path::new(SUMS))? == sums {
                return Ok(false);
            }
        }
        Ok(false)
    }

    /// Puts the sum of the coming file beside the sum of the present one, before it is replaced.
    fn announce(&self, coming: &[u8]) -> io::Result<()> {
        let mut sums = format!("{}\n", sum(coming));
        if let Ok(present) = self.0.atomic_read(Path::new(META)) {
            sums.push_str(&sum(&present));
            sums.push('\n');
        }
        sums.push_str(&sum(sums.as_bytes()));
        self.write(SUMS, sums.as_bytes())
    }
}

fn sum(content: &[u8]) -> String {
    format!("{:08x} {}", crc32fast::hash(content), content.len())
}

/// The sums in a file of sums; none when its last line, its own sum, does not match.
fn known(sums: &[u8]) -> impl Iterator<Item = &str> {
    let text = std::str::from_utf8(sums).unwrap_or_default();
    let listed = text.rfind('\n').map_or(0, |end| end + 1);
    let (list, own) = text.split_at_checked(listed).unwrap_or_default();
    let is_intact = own == sum(list.as_bytes());
    list.lines().filter(move |_| is_intact)
}

impl Directory for Disk {
    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        let names_a_commit = path == Path::new(META);
        if names_a_commit {
            self.announce(data)?;
        }
        self.0.atomic_write(path, data)?;
        if names_a_commit {
            self.0.sync_directory()
        } else {
            Ok(())
        }
    }

    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        self.0.get_file_handle(path)
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        self.0.delete(path)
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        self.0.exists(path)
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        self.0.open_write(path)
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        self.0.atomic_read(path)
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.0.sync_directory()
    }

    fn acquire_lock(&self, lock: &Lock) -> Result<DirectoryLock, LockError> {
        self.0.acquire_lock(lock)
    }

    fn watch(&self, callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        self.0.watch(callback)
    }
}

/// The lock that the one process that may write holds for as long as it has the index open.
pub(super) fn writer_lock() -> Lock {
    Lock {
        filepath: PathBuf::from(".docent-writer.lock"),
        is_blocking: false,
    }
}
