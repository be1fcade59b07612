//! Change detection for files: size, modification time and SHA-256 of every file as the last sync saw it.
//!
//! A file whose size and modification time are unchanged is not opened again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use docent_ingest::{FileEntry, FileFingerprint, IngestError, IngestWarning, SkippedItem};
use docent_search::Generation;

use super::index_inventory::IndexInventory;

/// Timestamp granularity that we assume of file systems; FAT counts in steps of two seconds. A file modified this
/// shortly before it was read may change again under the same timestamp, so its timestamp is not trusted.
const TIMESTAMP_GRANULARITY: Duration = Duration::from_secs(2);

/// The most problems remembered for all files together, which bounds the memory of the cache. A file beyond it is
/// not recorded and therefore read again in every sync.
const MAX_PROBLEMS: usize = 10_000;

/// The file states that the previous sync recorded and those that the current one records, by path.
///
/// A completed sync also leaves the inventory of the index, so that the next one does not have to load it.
#[derive(Default)]
pub struct FileStateCache {
    /// The inventory after a completed sync and the index generation it belongs to.
    pub(super) held: Option<(Generation, IndexInventory)>,
    before: HashMap<String, Arc<FileState>>,
    now: HashMap<String, Arc<FileState>>,
    problems: usize,
}

/// The observable state of a file when it was read, and the result of parsing it.
#[derive(Debug)]
pub(super) struct FileState {
    pub size: u64,
    /// `None` when the timestamp was too recent to prove anything.
    pub modified: Option<SystemTime>,
    /// Checksum of the content; `None` when the file could not be read to its end.
    pub sha256: Option<String>,
    /// How many documents the file produced.
    pub documents: usize,
    /// Whether one of its document ids was claimed by another file too, so that the result depends on that file.
    pub contested: bool,
    pub problems: FileProblems,
}

/// Everything that was skipped or altered while a file was parsed.
#[derive(Debug, Clone, Default)]
pub(super) struct FileProblems {
    pub skipped: Vec<SkippedItem>,
    pub warnings: Vec<IngestWarning>,
}

impl FileProblems {
    fn len(&self) -> usize {
        self.skipped.len() + self.warnings.len()
    }

    /// Whether a retry may succeed although nobody changes the file, as after an I/O error.
    fn is_transient(&self) -> bool {
        let is_transient = |skipped: &SkippedItem| {
            matches!(
                skipped.reason,
                IngestError::Unreadable { .. } | IngestError::Gone
            )
        };
        self.skipped.iter().any(is_transient)
    }
}

impl FileState {
    /// Whether size and modification time are unchanged, the timestamp can be trusted, and no other file decides about
    /// this one.
    pub(super) fn matches(&self, entry: &FileEntry) -> bool {
        self.size == entry.size
            && self.modified.is_some()
            && self.modified == entry.modified
            && !entry.depends_on_others()
    }
}

impl FileStateCache {
    /// Starts the cache of the next sync: current states become previous ones.
    pub(super) fn start_sync(&mut self) -> Self {
        let mut before = std::mem::take(&mut self.now);
        // A stopped sync visited only some of the files; the older states of the others are still valid.
        for (path, state) in self.before.drain() {
            before.entry(path).or_insert(state);
        }
        Self {
            held: None,
            before,
            now: HashMap::new(),
            problems: 0,
        }
    }

    /// The fast path of a sync in which nothing changed: when every file matches its recorded state and none
    /// was removed, the number of documents and the recorded problems are known without opening a file.
    pub(super) fn unchanged_since_last(
        &self,
        entries: &[FileEntry],
    ) -> Option<(usize, Vec<&FileProblems>)> {
        // Only a completed sync knows what the index holds.
        if self.held.is_none() || self.now.len() != entries.len() {
            return None;
        }
        let mut documents = 0;
        let mut problems = Vec::new();
        for entry in entries {
            let state = self
                .now
                .get(entry.path())
                .filter(|state| state.matches(entry))?;
            documents += state.documents;
            problems.push(&state.problems);
        }
        Some((documents, problems))
    }

    /// The state that the previous sync recorded for a file.
    pub(super) fn previous(&self, entry: &FileEntry) -> Option<&Arc<FileState>> {
        self.before.get(entry.path())
    }

    /// Whether the previous sync knew files that are missing from this listing.
    pub(super) fn has_removed_files(&self, entries: &[FileEntry]) -> bool {
        let known = entries
            .iter()
            .filter(|entry| self.previous(entry).is_some());
        known.count() < self.before.len()
    }

    /// Carries the previous state of an unchanged file over to this sync.
    pub(super) fn keep(&mut self, entry: &FileEntry, state: &Arc<FileState>) {
        self.problems += state.problems.len();
        self.before.remove(entry.path());
        self.now.insert(entry.path().to_owned(), state.clone());
    }

    /// Records the state of a file that was read at `at`. A state that proves nothing later is not recorded: one
    /// with a transient error, or with neither a trusted timestamp nor a checksum.
    pub(super) fn record(&mut self, entry: &FileEntry, mut state: FileState, at: SystemTime) {
        let all = self.problems + state.problems.len();
        if all > MAX_PROBLEMS || state.problems.is_transient() {
            return;
        }
        let is_settled = |modified: &SystemTime| {
            at.duration_since(*modified)
                .is_ok_and(|age| age > TIMESTAMP_GRANULARITY)
        };
        state.modified = state.modified.filter(is_settled);
        if state.modified.is_none() && state.sha256.is_none() {
            return;
        }
        self.problems = all;
        self.before.remove(entry.path());
        self.now.insert(entry.path().to_owned(), Arc::new(state));
    }
}

impl From<&FileFingerprint> for FileState {
    fn from(fingerprint: &FileFingerprint) -> Self {
        Self {
            size: fingerprint.size,
            modified: fingerprint.modified,
            sha256: Some(fingerprint.sha256.clone()),
            documents: 0,
            contested: false,
            problems: FileProblems::default(),
        }
    }
}

impl From<&FileEntry> for FileState {
    /// The state of a file that could not be read to its end, without a checksum.
    fn from(entry: &FileEntry) -> Self {
        Self {
            size: entry.size,
            modified: entry.modified,
            sha256: None,
            documents: 0,
            contested: false,
            problems: FileProblems::default(),
        }
    }
}
