//! Files of untrusted formats into documents, in child processes that can be killed.
//!
//! A child is this program started again. It shuts itself in before it reads the first byte (see
//! `confine.rs`), gets one file at a time over a pipe and sends documents back. The parent believes nothing:
//! it counts every length, checks every document and kills a child that is late. Whatever a file does to its
//! parser is a [`Reason`] for that file alone; the next file gets a new child.

mod child;
mod confinement;
mod error_codec;
mod frames;
mod response_validator;
mod supervisor;
mod worker;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::reader_field::ParsedDocument;

use self::supervisor::{ProcessSupervisor, WorkerProcess};
use self::worker::{DocumentReceiver, ParseTask, ParserWorker};
use crate::document_sink::DocumentBatcher;
use crate::error::IngestError;
use crate::format::{FileFormat, ParsedFile, ParserInput};
use crate::hashing_reader::HashingReader;
use crate::limits::Limits;

pub use self::confinement::{Confinement, LANDLOCK_VERSION, MAX_MEMORY_BYTES, SandboxLayerStatus};

/// The most children of one pool, however many cores there are: each may take half a gigabyte.
const MAX_CHILDREN: usize = 4;

/// How many files one child reads before it is replaced, so that what a parser leaks stays small.
const FILES_PER_CHILD: usize = 200;

/// The most bytes of documents that one file may become, unless it is read while it comes.
pub(crate) const MAX_ANSWER_BYTES: usize = 256 * 1024 * 1024;

/// How children are started.
#[derive(Debug, Clone)]
pub struct SandboxConfig {
    /// The program. It must call [`serve_parser`] when it gets these arguments.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// How many children read at the same time.
    pub children: usize,
    /// How many files one child reads before it is replaced.
    pub files_per_child: usize,
}

impl SandboxConfig {
    /// Children that are this program, started with one argument.
    ///
    /// # Errors
    /// Where the system does not tell which program this is.
    pub fn of_this_program(argument: &str) -> io::Result<Self> {
        // On Linux the running program itself, even when its file was replaced by an update meanwhile.
        let program = if cfg!(target_os = "linux") {
            PathBuf::from("/proc/self/exe")
        } else {
            std::env::current_exe()?
        };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Self {
            program,
            arguments: vec![argument.into()],
            children: cores.min(MAX_CHILDREN),
            files_per_child: FILES_PER_CHILD,
        })
    }
}

/// Reads files for a parent over stdin and stdout until the parent is gone. A program calls this before
/// anything else, because what it has opened or started until then stays within the child's reach.
#[must_use]
pub fn serve_parser() -> ExitCode {
    child::serve(&|_| ())
}

/// The same for tests, which let something happen to a child before it parses a file.
#[doc(hidden)]
#[must_use]
pub fn serve_parser_after(before: &dyn Fn(&[u8])) -> ExitCode {
    child::serve(before)
}

/// A pool of child processes. Children start when the first file needs one and end with the pool.
#[derive(Debug)]
pub struct ParserPool {
    sandbox: SandboxConfig,
    keeper: ProcessSupervisor,
    slots: Mutex<PoolState>,
    free: Condvar,
}

#[derive(Debug, Default)]
struct PoolState {
    idle: Vec<ParserWorker>,
    /// Children at work, and those about to be started.
    busy: usize,
    at_work: Vec<Arc<WorkerProcess>>,
    /// Nobody wants any more files read.
    closed: bool,
    started: usize,
    walls: Option<Confinement>,
}

impl ParserPool {
    /// A pool without children so far.
    ///
    /// # Errors
    /// When the thread that watches the clock cannot be started.
    pub fn new(sandbox: SandboxConfig) -> io::Result<Self> {
        Ok(Self {
            sandbox,
            keeper: ProcessSupervisor::start()?,
            slots: Mutex::default(),
            free: Condvar::new(),
        })
    }

    /// Which walls the last child that was started stands behind; nothing before the first.
    pub fn confinement(&self) -> Option<Confinement> {
        self.slots().walls
    }

    /// Starts a child to see which walls it stands behind, and ends it again.
    ///
    /// # Errors
    /// When no child can be started.
    pub fn probe_confinement(&self, limits: &Limits) -> io::Result<Confinement> {
        ParserWorker::start(&self.sandbox, &self.keeper, limits).map(|worker| worker.confinement())
    }

    /// How many children were started so far.
    pub fn started(&self) -> usize {
        self.slots().started
    }

    /// Ends every child at once, whatever it is doing, and starts no other. Who waits for one is told that the
    /// file is gone.
    pub fn close(&self) {
        let mut slots = self.slots();
        slots.closed = true;
        slots.idle.clear();
        for process in slots.at_work.drain(..) {
            process.kill();
        }
    }

    /// Reads one file in a child, which waits until one is free, and hands its documents on as they come.
    pub(crate) fn read(
        &self,
        format: &FileFormat,
        input: &ParserInput<'_>,
        (content, size): (&mut HashingReader, u64),
        sink: &mut dyn FnMut(Vec<ParsedDocument>) -> bool,
    ) -> Result<ParsedFile, IngestError> {
        let turn = self.acquire_permit();
        let task = ParseTask {
            format,
            input,
            size,
        };
        let mut take = ExactlyOnceSink::new(sink);
        loop {
            let mut worker = match self.take_idle_worker() {
                Some(worker) => worker,
                None => self.start(input.limits)?,
            };
            let fresh = worker.files() == 0;
            if !self.mark_busy(&worker) {
                return Err(IngestError::Gone);
            }
            let answer = worker.read(&task, content, &self.keeper, &mut take);
            if !self.mark_done(&worker) {
                return Err(IngestError::Gone);
            }
            match answer {
                // The crash of a child that has read other files may be theirs, so that a new one decides.
                Ok(Err(reason)) | Err(reason) if !fresh && is_worker_failure(&reason) => {
                    content.rewind()?;
                    take.restart();
                }
                Ok(answer) => {
                    turn.release(worker, &answer);
                    take.flush();
                    return answer;
                }
                Err(reason) => return Err(reason),
            }
        }
    }

    /// Notes that a child goes to work; false when the pool is closed.
    fn mark_busy(&self, worker: &ParserWorker) -> bool {
        let mut slots = self.slots();
        if !slots.closed {
            slots.at_work.push(worker.process().clone());
        }
        !slots.closed
    }

    /// Notes that a child has done its work; false when the pool was closed meanwhile.
    fn mark_done(&self, worker: &ParserWorker) -> bool {
        let mut slots = self.slots();
        slots
            .at_work
            .retain(|process| !Arc::ptr_eq(process, worker.process()));
        !slots.closed
    }

    /// Starts a child that may read files. Where every wall is demanded and one does not stand, there is none:
    /// what the first child found counts for all that would come after it.
    fn start(&self, limits: &Limits) -> Result<ParserWorker, IngestError> {
        if let Some(walls) = self.slots().walls {
            require_confinement(walls, limits)?;
        }
        let started = ParserWorker::start(&self.sandbox, &self.keeper, limits);
        let worker = started.map_err(|error| IngestError::Unreadable {
            cause: error.kind(),
        })?;
        let mut slots = self.slots();
        slots.started += 1;
        slots.walls = Some(worker.confinement());
        drop(slots);
        require_confinement(worker.confinement(), limits)?;
        Ok(worker)
    }

    /// Fails where every wall is demanded and one does not stand, without reading anything.
    pub(crate) fn check_confinement(&self, limits: &Limits) -> Result<(), IngestError> {
        if !limits.require_sandbox {
            return Ok(());
        }
        if let Some(walls) = self.confinement() {
            return require_confinement(walls, limits);
        }
        let turn = self.acquire_permit();
        let worker = self.start(limits)?;
        turn.return_worker(worker);
        Ok(())
    }

    fn acquire_permit(&self) -> WorkerPermit<'_> {
        let most = self.sandbox.children.max(1);
        let full = |slots: &mut PoolState| slots.busy >= most;
        let waited = self.free.wait_while(self.slots(), full);
        waited.unwrap_or_else(PoisonError::into_inner).busy += 1;
        WorkerPermit(self)
    }

    /// A child that waits for work and has not died waiting.
    fn take_idle_worker(&self) -> Option<ParserWorker> {
        let mut slots = self.slots();
        while let Some(mut worker) = slots.idle.pop() {
            if worker.is_alive() {
                return Some(worker);
            }
        }
        None
    }

    fn slots(&self) -> MutexGuard<'_, PoolState> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Hands documents on, each once, also when a file is read for a second time.
struct ExactlyOnceSink<'a> {
    pieces: DocumentBatcher<'a>,
    /// Documents that came since the file was last begun, and all that were handed on.
    come: usize,
    taken: usize,
}

impl<'a> ExactlyOnceSink<'a> {
    fn new(sink: &'a mut dyn FnMut(Vec<ParsedDocument>) -> bool) -> Self {
        Self {
            pieces: DocumentBatcher::new(sink),
            come: 0,
            taken: 0,
        }
    }

    fn restart(&mut self) {
        self.come = 0;
    }
}

impl DocumentReceiver for ExactlyOnceSink<'_> {
    fn take(&mut self, document: ParsedDocument) -> bool {
        self.come += 1;
        if self.come <= self.taken {
            return false;
        }
        self.taken = self.come;
        self.pieces.push(document)
    }

    fn flush(&mut self) -> bool {
        self.pieces.flush()
    }
}

/// Fails where every wall is demanded and one does not stand.
fn require_confinement(walls: Confinement, limits: &Limits) -> Result<(), IngestError> {
    if limits.require_sandbox && !walls.is_complete() {
        return Err(IngestError::NoSandbox { gaps: walls.gaps() });
    }
    Ok(())
}

/// Whether what happened may be due to the state of the child as much as to the file.
fn is_worker_failure(reason: &IngestError) -> bool {
    matches!(
        reason,
        IngestError::Crashed | IngestError::TooMuchMemory { .. }
    )
}

/// The right to one child; given back at the end, whatever the end is.
struct WorkerPermit<'a>(&'a ParserPool);

impl WorkerPermit<'_> {
    fn release(self, worker: ParserWorker, answer: &Result<ParsedFile, IngestError>) {
        let worn = worker.files() >= self.0.sandbox.files_per_child;
        // Memory that a panic went through is not worth trusting for another file.
        let broken = answer.as_ref().is_err_and(is_worker_failure);
        if !worn && !broken {
            self.return_worker(worker);
        }
    }

    /// Puts a child where the next file finds it.
    fn return_worker(self, worker: ParserWorker) {
        let mut slots = self.0.slots();
        if !slots.closed {
            slots.idle.push(worker);
        }
    }
}

impl Drop for WorkerPermit<'_> {
    fn drop(&mut self) {
        self.0.slots().busy -= 1;
        self.0.free.notify_one();
    }
}
