//! What files looked like when they were read, so that those that still look so need not be read again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use docent_ingest::{FileEntry, FileFingerprint, IngestError, IngestWarning, SkippedItem};
use docent_search::Generation;

use super::index_inventory::IndexInventory;

/// A file that was written within this time before it was read may have been written again since without
/// looking any different: some disks count time in steps of two seconds.
const STEP: Duration = Duration::from_secs(2);

/// The most problems that are remembered of all files together. A file with more is read again each time.
const MOST_PROBLEMS: usize = 10_000;

/// The files of one sync, by their paths.
#[derive(Default)]
pub struct FileStateCache {
    /// What the index held after it, and of which generation.
    pub(super) held: Option<(Generation, IndexInventory)>,
    before: HashMap<String, Arc<FileState>>,
    now: HashMap<String, Arc<FileState>>,
    problems: usize,
}

/// How a file looked, and what came of it.
#[derive(Debug)]
pub(super) struct FileState {
    pub size: u64,
    /// Nothing when the file may change without looking different.
    pub modified: Option<SystemTime>,
    /// The sum of its content; nothing when it could not be read to the end.
    pub sha256: Option<String>,
    /// How many documents it gave.
    pub documents: usize,
    /// Whether another file had an id of one of them, so that what it gives depends on that file.
    pub contested: bool,
    pub problems: FileProblems,
}

/// What was wrong with a file.
#[derive(Debug, Clone, Default)]
pub(super) struct FileProblems {
    pub skipped: Vec<SkippedItem>,
    pub warnings: Vec<IngestWarning>,
}

impl FileProblems {
    fn len(&self) -> usize {
        self.skipped.len() + self.warnings.len()
    }

    /// Whether the file may be fine the next time although nobody touches it.
    fn is_transient(&self) -> bool {
        let passes = |skipped: &SkippedItem| {
            matches!(
                skipped.reason,
                IngestError::Unreadable { .. } | IngestError::Gone
            )
        };
        self.skipped.iter().any(passes)
    }
}

impl FileState {
    /// Whether a file looks just like this.
    pub(super) fn matches(&self, entry: &FileEntry) -> bool {
        self.size == entry.size && self.modified.is_some() && self.modified == entry.modified
    }
}

impl FileStateCache {
    /// What was seen becomes what was seen before.
    pub(super) fn start_sync(&mut self) -> Self {
        let mut before = std::mem::take(&mut self.now);
        // A sync that was stopped saw only some of the files; what it did not see is as it was.
        for (path, look) in self.before.drain() {
            before.entry(path).or_insert(look);
        }
        Self {
            held: None,
            before,
            now: HashMap::new(),
            problems: 0,
        }
    }

    /// What came of all files, when each looks as it did in the last sync and none is gone: how many
    /// documents there are, and what was wrong.
    pub(super) fn unchanged_since_last(
        &self,
        entries: &[FileEntry],
    ) -> Option<(usize, Vec<&FileProblems>)> {
        // Only a sync that came to its end knows what the index holds.
        if self.held.is_none() || self.now.len() != entries.len() {
            return None;
        }
        let mut documents = 0;
        let mut problems = Vec::new();
        for entry in entries {
            let look = self
                .now
                .get(entry.path())
                .filter(|look| look.matches(entry))?;
            documents += look.documents;
            problems.push(&look.problems);
        }
        Some((documents, problems))
    }

    /// How a file looked before.
    pub(super) fn previous(&self, entry: &FileEntry) -> Option<&Arc<FileState>> {
        self.before.get(entry.path())
    }

    /// Whether files were seen before that are not among these.
    pub(super) fn has_removed_files(&self, entries: &[FileEntry]) -> bool {
        let known = entries
            .iter()
            .filter(|entry| self.previous(entry).is_some());
        known.count() < self.before.len()
    }

    /// Notes that a file is as it was before.
    pub(super) fn keep(&mut self, entry: &FileEntry, look: &Arc<FileState>) {
        self.problems += look.problems.len();
        self.before.remove(entry.path());
        self.now.insert(entry.path().to_owned(), look.clone());
    }

    /// Notes how a file looked when it was read.
    pub(super) fn record(&mut self, entry: &FileEntry, mut look: FileState, at: SystemTime) {
        let all = self.problems + look.problems.len();
        if all > MOST_PROBLEMS || look.problems.is_transient() {
            return;
        }
        let is_settled =
            |modified: &SystemTime| at.duration_since(*modified).is_ok_and(|age| age > STEP);
        look.modified = look.modified.filter(is_settled);
        if look.modified.is_none() && look.sha256.is_none() {
            return;
        }
        self.problems = all;
        self.before.remove(entry.path());
        self.now.insert(entry.path().to_owned(), Arc::new(look));
    }
}

impl From<&FileFingerprint> for FileState {
    fn from(found: &FileFingerprint) -> Self {
        Self {
            size: found.size,
            modified: found.modified,
            sha256: Some(found.sha256.clone()),
            documents: 0,
            contested: false,
            problems: FileProblems::default(),
        }
    }
}

impl From<&FileEntry> for FileState {
    /// For a file that could not be read to its end.
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
