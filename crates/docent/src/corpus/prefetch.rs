//! Files into their documents, several files at a time and ahead of the one who writes them, who gets them in
//! the order of the files all the same.
//!
//! What was read and not yet taken is bounded in bytes, and so is what the files take that are being read. The
//! file that is waited for can always go on, so that nobody waits for ever.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use docent_ingest::{
    FileEntry, FileFingerprint, FileReadOutcome, FolderSource, IngestError, ParsedDocument,
    ParserPool,
};

use super::index_inventory::IndexInventory;
use super::memory_budget::IndexMemoryBudget;
use crate::cli_error::CliError;
use crate::document_transform::DocumentTransform;

/// The most files that are read before the one that is waited for is done.
const MOST_FILES: usize = 256;

/// The most threads that read.
const MOST_THREADS: usize = 4;

/// How long to wait before looking whether to stop.
const GLANCE: Duration = Duration::from_millis(50);

/// How much more memory than bytes it has a file takes that is read as a whole.
const TIMES: u64 = 3;

/// What a file takes however short it is, or that is read row by row.
const LEAST: u64 = 1024 * 1024;

/// A file that should be read.
pub(super) struct ReadJob {
    /// Its place in the listing.
    pub at: usize,
    pub compare: ContentCheck,
}

/// What the content of a file is compared with. Where it is the same, the file is not parsed.
pub(super) enum ContentCheck {
    /// Nothing.
    No,
    /// The document that is held under the file's own id, where there is one.
    Held,
    /// The SHA-256 it had when it was last read.
    Sum(String),
}

/// What came of a file, piece by piece.
pub(super) enum ReadEvent {
    /// Which kind of file it is; said first.
    Kind(String),
    Documents(Vec<ParsedDocument>),
    /// The file has the content it had before.
    Same(FileFingerprint),
    /// That was all.
    End(Result<FileReadOutcome, IngestError>),
}

/// Files that are being read.
pub(super) struct FilePrefetcher {
    pool: Arc<PrefetchPool>,
}

/// What the threads share.
struct PrefetchPool {
    source: FolderSource,
    workers: Arc<ParserPool>,
    entries: Arc<[FileEntry]>,
    register: Arc<IndexInventory>,
    most_bytes: usize,
    most_reading: u64,
    shape: Arc<DocumentTransform>,
    state: Mutex<PrefetchState>,
    changed: Condvar,
}

#[derive(Default)]
struct PrefetchState {
    jobs: VecDeque<ReadJob>,
    ready: HashMap<usize, VecDeque<ReadEvent>>,
    /// Bytes of documents that are ready.
    bytes: usize,
    /// What the files may take that are being read.
    reading: u64,
    /// The file that is waited for.
    wanted: usize,
    stopped: bool,
}

impl FilePrefetcher {
    /// Starts to read `jobs`, which are in the order of the listing.
    pub(super) fn start(
        (source, workers): (FolderSource, Arc<ParserPool>),
        entries: Arc<[FileEntry]>,
        register: Arc<IndexInventory>,
        (budget, shape): (IndexMemoryBudget, Arc<DocumentTransform>),
        jobs: VecDeque<ReadJob>,
    ) -> Result<Self, CliError> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = cores.min(MOST_THREADS).min(jobs.len());
        let state = PrefetchState {
            jobs,
            ..PrefetchState::default()
        };
        let desk = Arc::new(PrefetchPool {
            source,
            workers,
            entries,
            register,
            most_bytes: budget.prefetch_bytes(),
            most_reading: budget.reading_bytes(),
            shape,
            state: Mutex::new(state),
            changed: Condvar::new(),
        });
        let ahead = Self { pool: desk };
        for _ in 0..threads {
            ahead.spawn(PrefetchPool::work)?;
        }
        Ok(ahead)
    }

    /// The next piece of a file that is among the jobs; nothing when `stop` says so before it comes.
    pub(super) fn next(&self, at: usize, stop: &dyn Fn() -> bool) -> Option<ReadEvent> {
        let mut state = self.pool.state();
        if state.wanted != at {
            state.wanted = at;
            self.pool.changed.notify_all();
        }
        loop {
            let pieces = state.ready.get_mut(&at);
            if let Some(piece) = pieces.and_then(VecDeque::pop_front) {
                match &piece {
                    ReadEvent::Documents(documents) => state.bytes -= documents_bytes(documents),
                    ReadEvent::Kind(_) => {}
                    ReadEvent::Same(_) | ReadEvent::End(_) => drop(state.ready.remove(&at)),
                }
                self.pool.changed.notify_all();
                return Some(piece);
            }
            if stop() {
                return None;
            }
            let waited = self.pool.changed.wait_timeout(state, GLANCE);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Reads a file that is not among the jobs, or once more. It gets a thread of its own, since all others
    /// may wait until its documents are taken.
    pub(super) fn read_now(&self, at: usize) -> Result<(), CliError> {
        self.pool.state().wanted = at;
        self.spawn(move |desk| {
            desk.read(&ReadJob {
                at,
                compare: ContentCheck::No,
            });
        })
    }

    fn spawn(&self, work: impl FnOnce(&PrefetchPool) + Send + 'static) -> Result<(), CliError> {
        let desk = self.pool.clone();
        let started = std::thread::Builder::new()
            .name("docent-reader".to_owned())
            .spawn(move || work(&desk));
        let failed = |error| CliError::failed(format!("no thread can be started: {error}"));
        started.map(drop).map_err(failed)
    }
}

impl Drop for FilePrefetcher {
    /// Ends the children that are still at work; the threads end by themselves.
    fn drop(&mut self) {
        self.pool.state().stopped = true;
        self.pool.changed.notify_all();
        self.pool.workers.close();
    }
}

impl PrefetchPool {
    fn state(&self) -> MutexGuard<'_, PrefetchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        while let Some((job, cost)) = self.take_job() {
            self.read(&job);
            self.state().reading -= cost;
            self.changed.notify_all();
        }
    }

    /// The next file, as soon as there is room for it; nothing when none is left.
    fn take_job(&self) -> Option<(ReadJob, u64)> {
        let mut state = self.state();
        loop {
            if state.stopped {
                return None;
            }
            let at = state.jobs.front()?.at;
            let cost = self.estimated_memory(at);
            let has_room = at < state.wanted + MOST_FILES
                && state.bytes < self.most_bytes
                && (state.reading == 0 || state.reading + cost <= self.most_reading);
            // The first of the jobs is never one behind the file that is waited for.
            if has_room || at == state.wanted {
                state.reading += cost;
                return state.jobs.pop_front().map(|job| (job, cost));
            }
            let waited = self.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn estimated_memory(&self, at: usize) -> u64 {
        let size = self.entries.get(at).map_or(0, |entry| entry.size);
        // A longer one is read row by row, or not at all.
        let whole = if size > self.shape.limits.max_file_bytes {
            0
        } else {
            size
        };
        LEAST + whole * TIMES
    }

    fn read(&self, job: &ReadJob) {
        let Some(entry) = self.entries.get(job.at) else {
            return;
        };
        self.put(job.at, ReadEvent::Kind(self.source.kind(entry)));
        // Our own parsers do not panic. Were it not so, a file would be waited for that never ends.
        let read = AssertUnwindSafe(|| self.read_entry(entry, job));
        let last = catch_unwind(read).unwrap_or(ReadEvent::End(Err(IngestError::Crashed)));
        self.put(job.at, last);
    }

    fn read_entry(&self, entry: &FileEntry, job: &ReadJob) -> ReadEvent {
        let is_same = |found: &FileFingerprint| match &job.compare {
            ContentCheck::No => false,
            ContentCheck::Held => {
                let hash = self.shape.hash(entry.path(), &found.sha256);
                self.register.is_file(entry, &hash)
            }
            ContentCheck::Sum(before) => *before == found.sha256,
        };
        let may_be_same = match &job.compare {
            ContentCheck::No => false,
            ContentCheck::Held => self.register.has_file(entry),
            ContentCheck::Sum(_) => true,
        };
        if may_be_same
            && let Ok(found) = self.source.fingerprint(entry)
            && is_same(&found)
        {
            return ReadEvent::Same(found);
        }
        let mut sink =
            |documents: Vec<ParsedDocument>| self.put(job.at, ReadEvent::Documents(documents));
        ReadEvent::End(self.source.read_into(entry, &mut sink))
    }

    /// Puts a piece where it is taken from, when there is room; false when nobody takes it any more.
    fn put(&self, at: usize, piece: ReadEvent) -> bool {
        let size = match &piece {
            ReadEvent::Documents(documents) => documents_bytes(documents),
            ReadEvent::Kind(_) | ReadEvent::Same(_) | ReadEvent::End(_) => 0,
        };
        let mut state = self.state();
        while !state.stopped && size > 0 && state.bytes >= self.most_bytes {
            let has_none = state.ready.get(&at).is_none_or(VecDeque::is_empty);
            if state.wanted == at && has_none {
                break;
            }
            let waited = self.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        state.bytes += size;
        state.ready.entry(at).or_default().push_back(piece);
        let is_wanted = !state.stopped;
        drop(state);
        self.changed.notify_all();
        is_wanted
    }
}

/// What documents take in memory, about.
fn documents_bytes(documents: &[ParsedDocument]) -> usize {
    const OWN_BYTES: usize = 512;
    documents
        .iter()
        .map(|document| document.bytes() + OWN_BYTES)
        .sum()
}
