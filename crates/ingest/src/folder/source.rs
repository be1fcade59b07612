//! Folder source: lists a folder and parses its files into documents.
//!
//! Every file is opened beneath the root, one path component at a time, without following links. Nothing
//! outside can be read, whatever is renamed or linked meanwhile. A hard link is the file itself and is read. A file is
//! opened once for everything that a sync does with it, so that all of it is about the same file.

mod file_kind;
mod opened_file;

use std::path::{Component, Path};
use std::sync::Arc;

use crate::reader_field::ParsedDocument;
use cap_fs_ext::{DirExt as _, FollowSymlinks, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, OpenOptions};

use crate::error::{IngestError, IngestWarning, SkippedItem};
use crate::folder::file_entry::{FileEntry, FileFingerprint};
use crate::folder::file_filter::FileFilter;
use crate::folder::walk::{FolderListing, list_folder};
use crate::formats::file_format::FileFormat;
use crate::limits::Limits;
use crate::options::IngestOptions;
use crate::sandbox::{Confinement, ParserPool};

pub use opened_file::OpenedFile;

/// A folder whose files are parsed into documents.
#[derive(Debug)]
pub struct FolderSource {
    root: Dir,
    limits: Limits,
    options: IngestOptions,
    filter: FileFilter,
    workers: Option<Arc<ParserPool>>,
}

/// The result of reading one file.
#[derive(Debug, Clone, PartialEq)]
pub struct FileReadOutcome {
    /// The name of the format as which it was parsed.
    pub format: &'static str,
    /// Its documents in file order; empty if they were streamed to a sink.
    pub documents: Vec<ParsedDocument>,
    /// Lines and records that produced no document.
    pub skipped: Vec<SkippedItem>,
    /// Parts that were indexed, but not exactly as written.
    pub warnings: Vec<IngestWarning>,
    /// The fingerprint of the content that was read.
    pub fingerprint: FileFingerprint,
}

impl FolderSource {
    /// Opens the root folder. The root itself may be a symbolic link; below it no link is followed.
    pub fn open(root: impl AsRef<Path>, limits: Limits) -> Result<Self, IngestError> {
        let root = Dir::open_ambient_dir(root, ambient_authority()).map_err(|error| {
            IngestError::Root {
                cause: error.kind(),
            }
        })?;
        Ok(Self {
            root,
            limits,
            options: IngestOptions::default(),
            filter: FileFilter::default(),
            workers: None,
        })
    }

    /// Sets the format options with which files are parsed.
    #[must_use]
    pub fn with_options(mut self, options: IngestOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets the filter that selects files.
    #[must_use]
    pub fn with_filter(mut self, filter: FileFilter) -> Self {
        self.filter = filter;
        self
    }

    /// Parses third-party formats in sandboxed child processes. A server always does this. Without it every
    /// file is parsed in the current process, which is acceptable for tests and for trusted files.
    #[must_use]
    pub fn with_workers(mut self, workers: Arc<ParserPool>) -> Self {
        self.workers = Some(workers);
        self
    }

    /// Lists the files below the root, sorted by id, and what was left out. The reader field of the options decides which
    /// pages of a Notion export are restricted by the table beside them.
    pub fn list(&self) -> FolderListing {
        list_folder(
            &self.root,
            &self.limits,
            &self.filter,
            &self.options.readers,
        )
    }

    /// Parses one file and returns all of its documents.
    pub fn read(&self, entry: &FileEntry) -> Result<FileReadOutcome, IngestError> {
        self.open_file(entry).read()
    }

    /// Parses one file and streams its documents, as [`OpenedFile::read_into`] does.
    pub fn read_into(
        &self,
        entry: &FileEntry,
        sink: &mut dyn FnMut(Vec<ParsedDocument>) -> bool,
    ) -> Result<FileReadOutcome, IngestError> {
        self.open_file(entry).read_into(sink)
    }

    /// Computes the fingerprint of a file without parsing it, to detect changes.
    pub fn fingerprint(&self, entry: &FileEntry) -> Result<FileFingerprint, IngestError> {
        self.open_file(entry).fingerprint()
    }

    /// The type of a file for reports.
    pub fn kind(&self, entry: &FileEntry) -> String {
        self.open_file(entry).kind()
    }

    /// Opens a file and recognizes its format, once for everything that is done with it. If that fails, the error is the
    /// result of whatever reads the content.
    pub fn open_file<'a>(&'a self, entry: &'a FileEntry) -> OpenedFile<'a> {
        OpenedFile::open(self, entry)
    }

    /// Fails closed for a third-party format if the sandbox is required and is missing or incomplete.
    fn check_sandbox(&self, format: &FileFormat) -> Result<(), IngestError> {
        match &self.workers {
            _ if format.is_trusted => Ok(()),
            Some(workers) => workers.check_confinement(&self.limits),
            None if self.limits.require_sandbox => Err(IngestError::NoSandbox {
                gaps: Confinement::default().gaps(),
            }),
            None => Ok(()),
        }
    }

    /// Opens a file below the root.
    fn open_beneath_root(&self, relative: &Path) -> Result<File, IngestError> {
        let mut parts: Vec<_> = relative.components().collect();
        let Some(Component::Normal(name)) = parts.pop() else {
            return Err(IngestError::Gone);
        };
        let mut dir = self
            .root
            .try_clone()
            .map_err(|error| IngestError::from_io(&error))?;
        for part in parts {
            let next = dir.open_dir_nofollow(part.as_os_str());
            dir = next.map_err(|error| open_error(&dir, part.as_ref(), &error))?;
        }
        // Non-blocking: a pipe that replaced the file would block until somebody writes to it.
        let mut options = OpenOptions::new();
        options.read(true).nonblock(true).follow(FollowSymlinks::No);
        let file = dir.open_with(name, &options);
        let file = file.map_err(|error| open_error(&dir, name.as_ref(), &error))?;
        let metadata = file
            .metadata()
            .map_err(|error| IngestError::from_io(&error))?;
        if !metadata.is_file() {
            return Err(IngestError::Special);
        }
        Ok(file)
    }
}

/// Maps an open error to its cause. Operating systems report a link under different error codes.
fn open_error(dir: &Dir, name: &Path, error: &std::io::Error) -> IngestError {
    match dir.symlink_metadata(name) {
        Ok(metadata) if metadata.is_symlink() => IngestError::Link,
        _ => IngestError::from_io(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_leave_the_root_are_refused() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("root");
        std::fs::create_dir_all(root.join("a")).unwrap();
        std::fs::write(outer.path().join("secret.txt"), "secret").unwrap();
        std::fs::write(root.join("a/good.txt"), "good").unwrap();
        let source = FolderSource::open(&root, Limits::default()).unwrap();
        assert!(source.open_beneath_root(Path::new("a/good.txt")).is_ok());
        let absolute = outer.path().join("secret.txt");
        for path in [
            "../secret.txt",
            "a/../../secret.txt",
            "..",
            "a/..",
            ".",
            "",
            "/",
            absolute.to_str().unwrap(),
        ] {
            assert!(source.open_beneath_root(Path::new(path)).is_err(), "{path}");
        }
    }

    #[test]
    fn folders_are_no_files() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("a.txt")).unwrap();
        let source = FolderSource::open(root.path(), Limits::default()).unwrap();
        assert_eq!(
            source.open_beneath_root(Path::new("a.txt")).map(drop),
            Err(IngestError::Special)
        );
    }
}
