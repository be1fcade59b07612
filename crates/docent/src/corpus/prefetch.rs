//! Parallel prefetch: up to four threads parse files ahead of the sync, which receives the results in file order.
//!
//! Backpressure bounds the bytes of parsed documents that wait and the estimated memory of the files being parsed.
//! The file that the consumer waits for is exempt from both bounds, so the pipeline cannot deadlock.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use docent_ingest::{
    FileEntry, FileFingerprint, FileReadOutcome, FolderSource, IngestError, OpenedFile,
    ParsedDocument, ParserPool,
};

use super::index_inventory::IndexInventory;
use super::memory_budget::IndexMemoryBudget;
use crate::cli_error::CliError;
use crate::document_transform::DocumentTransform;

/// The read-ahead window: how many files may be started past the one that the consumer waits for.
const READ_AHEAD_FILES: usize = 256;

/// The most reader threads; fewer on machines with fewer cores.
const MAX_THREADS: usize = 4;

/// Polling interval of the stop flag while the consumer waits.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Estimated memory for each byte of a file that is parsed as a whole.
const MEMORY_FACTOR: u64 = 3;

/// Estimated memory of a short file, and of a long one that is parsed as a stream.
const MIN_FILE_MEMORY: u64 = 1024 * 1024;

/// A file to read, and how to find out whether parsing it is necessary.
pub(super) struct ReadJob {
    /// The index of the file in the listing.
    pub at: usize,
    pub compare: ContentCheck,
}

/// What the checksum of a file is compared with. On equality the file is not parsed.
pub(super) enum ContentCheck {
    /// No comparison; the file is always parsed.
    No,
    /// The indexed document under the file's own id, if there is one.
    Held,
    /// The SHA-256 that the file had when it was last read.
    Sum(String),
}

/// The events of reading one file: its kind, documents in chunks, then exactly one `Same` or `End`.
pub(super) enum ReadEvent {
    /// The format of the file; always the first event.
    Kind(String),
    Documents(Vec<ParsedDocument>),
    /// The content is unchanged and the file was not parsed; the last event.
    Same(FileFingerprint),
    /// The file was read to its end or failed; the last event.
    End(Result<FileReadOutcome, IngestError>),
}

/// What the reader threads and the consumer of a sync both work with.
#[derive(Clone)]
pub(super) struct SyncInput {
    /// The listing of the folder.
    pub entries: Arc<[FileEntry]>,
    /// The documents that the index holds.
    pub inventory: Arc<IndexInventory>,
    pub transform: Arc<DocumentTransform>,
    pub budget: IndexMemoryBudget,
}

/// The consumer's handle to the reader threads. Dropping it stops them and closes the parser processes.
pub(super) struct FilePrefetcher {
    pool: Arc<PrefetchPool>,
}

/// The state that the reader threads share: the job queue, the bounds, and the events that wait for the consumer.
struct PrefetchPool {
    source: FolderSource,
    workers: Arc<ParserPool>,
    entries: Arc<[FileEntry]>,
    inventory: Arc<IndexInventory>,
    max_ready_bytes: usize,
    max_reading_bytes: u64,
    transform: Arc<DocumentTransform>,
    state: Mutex<PrefetchState>,
    changed: Condvar,
}

#[derive(Default)]
struct PrefetchState {
    jobs: VecDeque<ReadJob>,
    ready: HashMap<usize, VecDeque<ReadEvent>>,
    /// Size of the parsed documents that wait in `ready`.
    bytes: usize,
    /// Estimated memory of the files that are being parsed.
    reading: u64,
    /// The file that the consumer waits for.
    awaited: usize,
    stopped: bool,
}

impl FilePrefetcher {
    /// Starts the reader threads on `jobs`, which must be in listing order.
    pub(super) fn start(
        source: FolderSource,
        workers: Arc<ParserPool>,
        input: SyncInput,
        jobs: VecDeque<ReadJob>,
    ) -> Result<Self, CliError> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = cores.min(MAX_THREADS).min(jobs.len());
        let state = PrefetchState {
            jobs,
            ..PrefetchState::default()
        };
        let pool = Arc::new(PrefetchPool {
            source,
            workers,
            entries: input.entries,
            inventory: input.inventory,
            max_ready_bytes: input.budget.prefetch_bytes(),
            max_reading_bytes: input.budget.reading_bytes(),
            transform: input.transform,
            state: Mutex::new(state),
            changed: Condvar::new(),
        });
        let prefetcher = Self { pool };
        for _ in 0..threads {
            prefetcher.spawn(PrefetchPool::work)?;
        }
        Ok(prefetcher)
    }

    /// Waits for the next event of a file; `None` when `stop` turns true first.
    pub(super) fn next(&self, at: usize, stop: &dyn Fn() -> bool) -> Option<ReadEvent> {
        let mut state = self.pool.state();
        if state.awaited != at {
            state.awaited = at;
            self.pool.changed.notify_all();
        }
        loop {
            let events = state.ready.get_mut(&at);
            if let Some(event) = events.and_then(VecDeque::pop_front) {
                match &event {
                    ReadEvent::Documents(documents) => state.bytes -= documents_bytes(documents),
                    ReadEvent::Kind(_) => {}
                    ReadEvent::Same(_) | ReadEvent::End(_) => drop(state.ready.remove(&at)),
                }
                self.pool.changed.notify_all();
                return Some(event);
            }
            if stop() {
                return None;
            }
            let waited = self.pool.changed.wait_timeout(state, STOP_POLL_INTERVAL);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Reads a file that is not among the jobs, or reads it again. It gets a thread of its own, because backpressure
    /// may block all others until the documents of this file are taken.
    pub(super) fn read_now(&self, at: usize) -> Result<(), CliError> {
        self.pool.state().awaited = at;
        self.spawn(move |pool| {
            pool.read(&ReadJob {
                at,
                compare: ContentCheck::No,
            });
        })
    }

    fn spawn(&self, work: impl FnOnce(&PrefetchPool) + Send + 'static) -> Result<(), CliError> {
        let pool = self.pool.clone();
        let started = std::thread::Builder::new()
            .name("docent-reader".to_owned())
            .spawn(move || work(&pool));
        let failed = |error| CliError::failed(format!("cannot start a reader thread: {error}"));
        started.map(drop).map_err(failed)
    }
}

impl Drop for FilePrefetcher {
    /// Closes the parser processes that still run; the threads notice `stopped` and end by themselves.
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

    /// Waits until the memory bounds admit the next job and takes it; `None` when none is left. The second value is
    /// the estimated memory to give back when the file has been read.
    fn take_job(&self) -> Option<(ReadJob, u64)> {
        let mut state = self.state();
        loop {
            if state.stopped {
                return None;
            }
            let at = state.jobs.front()?.at;
            let cost = self.estimated_memory(at);
            let has_room = at < state.awaited + READ_AHEAD_FILES
                && state.bytes < self.max_ready_bytes
                && (state.reading == 0 || state.reading + cost <= self.max_reading_bytes);
            // The first job never comes after the awaited file, so the awaited file is always admitted.
            if has_room || at == state.awaited {
                state.reading += cost;
                return state.jobs.pop_front().map(|job| (job, cost));
            }
            let waited = self.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn estimated_memory(&self, at: usize) -> u64 {
        let size = self.entries.get(at).map_or(0, |entry| entry.size);
        // A longer file is parsed as a stream or skipped.
        let whole = if size > self.transform.limits.max_file_bytes {
            0
        } else {
            size
        };
        MIN_FILE_MEMORY + whole * MEMORY_FACTOR
    }

    fn read(&self, job: &ReadJob) {
        let Some(entry) = self.entries.get(job.at) else {
            return;
        };
        let file = self.source.open_file(entry);
        self.put(job.at, ReadEvent::Kind(file.kind()));
        // Our parsers do not panic. If one did, the consumer would wait for an `End` that never comes.
        let read = AssertUnwindSafe(|| self.read_file(&file, entry, job));
        let last = catch_unwind(read).unwrap_or(ReadEvent::End(Err(IngestError::Crashed)));
        self.put(job.at, last);
    }

    fn read_file(&self, file: &OpenedFile<'_>, entry: &FileEntry, job: &ReadJob) -> ReadEvent {
        let is_same = |fingerprint: &FileFingerprint| match &job.compare {
            ContentCheck::No => false,
            ContentCheck::Held => {
                let hash = self.transform.hash(entry.path(), &fingerprint.sha256);
                self.inventory.is_file(entry, &hash)
            }
            ContentCheck::Sum(before) => *before == fingerprint.sha256,
        };
        let may_be_same = match &job.compare {
            _ if entry.depends_on_others() => false,
            ContentCheck::No => false,
            ContentCheck::Held => self.inventory.has_file(entry),
            ContentCheck::Sum(_) => true,
        };
        if may_be_same
            && let Ok(fingerprint) = file.fingerprint()
            && is_same(&fingerprint)
        {
            return ReadEvent::Same(fingerprint);
        }
        let mut sink =
            |documents: Vec<ParsedDocument>| self.put(job.at, ReadEvent::Documents(documents));
        ReadEvent::End(file.read_into(&mut sink))
    }

    /// Queues an event for the consumer and blocks while the byte bound is exceeded (backpressure). False when the
    /// prefetcher was dropped and nobody takes events any more.
    fn put(&self, at: usize, event: ReadEvent) -> bool {
        let size = match &event {
            ReadEvent::Documents(documents) => documents_bytes(documents),
            ReadEvent::Kind(_) | ReadEvent::Same(_) | ReadEvent::End(_) => 0,
        };
        let mut state = self.state();
        while !state.stopped && size > 0 && state.bytes >= self.max_ready_bytes {
            let has_none = state.ready.get(&at).is_none_or(VecDeque::is_empty);
            if state.awaited == at && has_none {
                break;
            }
            let waited = self.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        state.bytes += size;
        state.ready.entry(at).or_default().push_back(event);
        let is_open = !state.stopped;
        drop(state);
        self.changed.notify_all();
        is_open
    }
}

/// Estimated memory of documents, with 512 bytes of overhead for each.
fn documents_bytes(documents: &[ParsedDocument]) -> usize {
    const OWN_BYTES: usize = 512;
    documents
        .iter()
        .map(|document| document.bytes() + OWN_BYTES)
        .sum()
}
