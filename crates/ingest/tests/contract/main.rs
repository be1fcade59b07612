//! Contract tests of this crate: golden files, hostile folders, and arbitrary bytes.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#![expect(
    clippy::indexing_slicing,
    reason = "a wrong index in a test is a failed test"
)]
#![expect(clippy::panic, reason = "a failed test panics")]

mod anything;
mod bounds;
mod damaged;
mod exports;
mod folder;
mod golden;
mod mutated;
mod notion_databases;
mod rows;
mod streams;
mod tables;
mod words;

use std::path::{Path, PathBuf};

use docent_ingest::{FileEntry, FileReadOutcome, FolderListing, FolderSource, IngestError, Limits};

/// A temporary folder that is removed at the end of a test.
struct TestFolder(tempfile::TempDir);

impl TestFolder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.0.path().join(relative)
    }

    /// Writes a file and creates the folders above it.
    fn write(&self, relative: impl AsRef<Path>, content: impl AsRef<[u8]>) -> &Self {
        let path = self.0.path().join(relative);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        self
    }

    fn source(&self, limits: Limits) -> FolderSource {
        FolderSource::open(self.0.path(), limits).unwrap()
    }

    fn list(&self, limits: Limits) -> FolderListing {
        self.source(limits).list()
    }

    /// Reads the file with this display path.
    fn read(&self, shown: &str, limits: Limits) -> Result<FileReadOutcome, IngestError> {
        let source = self.source(limits);
        let entry = find(&source.list(), shown);
        source.read(&entry)
    }
}

fn find(listing: &FolderListing, shown: &str) -> FileEntry {
    let found = listing.entries.iter().find(|entry| entry.path() == shown);
    found
        .unwrap_or_else(|| panic!("no `{shown}` in {listing:?}"))
        .clone()
}

fn paths(listing: &FolderListing) -> Vec<&str> {
    listing.entries.iter().map(FileEntry::path).collect()
}

/// Everything that was skipped, as `path:code`.
fn skipped(listing: &FolderListing) -> Vec<String> {
    listing
        .skipped
        .iter()
        .map(|skipped| format!("{}:{}", skipped.path, skipped.reason.code()))
        .collect()
}
