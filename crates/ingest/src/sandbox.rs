//! Sandbox for parsers of untrusted formats: they run in child processes that can be killed.
//!
//! A child is this program started again. It confines itself before it reads the first byte (see
//! [`confinement`]), gets one file at a time over a pipe and sends documents back. The parent trusts
//! nothing: it checks every length and every document, and kills a child that exceeds its deadline.
//! Whatever a file does to its parser becomes an [`IngestError`] for that file alone; the next file gets a
//! new child.

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
pub(crate) use self::worker::ParseTask;
use self::worker::{DocumentReceiver, ParserWorker};
use crate::digest::hashing_reader::HashingReader;
use crate::error::IngestError;
use crate::limits::Limits;
use crate::parser::ParsedFile;
use crate::parser::document_sink::DocumentBatcher;

pub use self::confinement::{Confinement, LANDLOCK_VERSION, SandboxLayerStatus};

/// The most child processes of one pool, however many cores there are, because each may take half a
/// gigabyte.
const MAX_CHILDREN: usize = 4;

/// How many files a child parses before it is replaced, so that memory leaks in parsers stay small. Starting a child
/// takes some milliseconds, which are nothing when they are shared by this many files, and a child that a file has
/// changed in a way nobody noticed does not live long.
const FILES_PER_CHILD: usize = 200;

/// The most bytes of documents that one file may yield, unless its format is streamed. It stops a parser whose output
/// has lost all relation to its input, by an error or an attack. Streamed formats yield records, and the number of
/// those is limited instead.
pub(crate) const MAX_ANSWER_BYTES: usize = 256 * 1024 * 1024;

/// How the pool starts its child processes.
#[derive(Debug, Clone)]
pub struct SandboxConfig {
    /// The program to start. It must call [`serve_parser`] when it gets these arguments.
    pub program: PathBuf,
    /// The arguments that make it a parser process.
    pub arguments: Vec<OsString>,
    /// How many child processes parse at the same time.
    pub children: usize,
    /// How many files one child parses before it is replaced.
    pub files_per_child: usize,
}

impl SandboxConfig {
    /// Child processes that run this program with one argument.
    ///
    /// # Errors
    /// Fails if the system does not tell the path of the running program.
    pub fn of_this_program(argument: &str) -> io::Result<Self> {
        // On Linux this is the running program itself, even if an update has replaced its file meanwhile.
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

/// Serves as a parser process: parses files for the parent over stdin and stdout until the parent is gone.
/// A program calls this first, because everything it has opened or started before stays within the child's
/// reach.
#[must_use]
pub fn serve_parser() -> ExitCode {
    child::serve(&|_| ())
}

/// The same with a hook before each file, which tests use to make a child misbehave.
#[doc(hidden)]
#[must_use]
pub fn serve_parser_after(before: &dyn Fn(&[u8])) -> ExitCode {
    child::serve(before)
}

/// A pool of sandboxed parser processes. They start on demand and end with the pool.
#[derive(Debug)]
pub struct ParserPool {
    sandbox: SandboxConfig,
    supervisor: ProcessSupervisor,
    state: Mutex<PoolState>,
    free: Condvar,
}

#[derive(Debug, Default)]
struct PoolState {
    idle: Vec<ParserWorker>,
    /// Permits handed out: children that parse and children that are about to start.
    busy: usize,
    at_work: Vec<Arc<WorkerProcess>>,
    /// Whether the pool was shut down and starts no more children.
    closed: bool,
    started: usize,
    confinement: Option<Confinement>,
}

impl ParserPool {
    /// An empty pool; it starts no child process yet.
    ///
    /// # Errors
    /// Fails if the supervisor thread cannot be started.
    pub fn new(sandbox: SandboxConfig) -> io::Result<Self> {
        Ok(Self {
            sandbox,
            supervisor: ProcessSupervisor::start()?,
            state: Mutex::default(),
            free: Condvar::new(),
        })
    }

    /// The confinement of the child that was started last; `None` before the first one.
    pub fn confinement(&self) -> Option<Confinement> {
        self.state().confinement
    }

    /// Starts a child only to see how it is confined, and ends it again.
    ///
    /// # Errors
    /// Fails if no child process can be started.
    pub fn probe_confinement(&self, limits: &Limits) -> io::Result<Confinement> {
        ParserWorker::start(&self.sandbox, &self.supervisor, limits)
            .map(|worker| worker.confinement())
    }

    /// How many child processes were started so far.
    pub fn started(&self) -> usize {
        self.state().started
    }

    /// Shuts the pool down: kills every child at once, whatever it is doing, and starts no more. Pending
    /// reads fail with [`IngestError::Gone`].
    pub fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        state.idle.clear();
        for process in state.at_work.drain(..) {
            process.kill();
        }
    }

    /// Parses one file in a child, waiting for a free one if necessary, and passes documents on while they
    /// arrive.
    pub(crate) fn read(
        &self,
        task: &ParseTask<'_>,
        content: &mut HashingReader<'_>,
        sink: &mut dyn FnMut(Vec<ParsedDocument>) -> bool,
    ) -> Result<ParsedFile, IngestError> {
        let permit = self.acquire_permit();
        let mut receiver = ExactlyOnceSink::new(sink);
        loop {
            let mut worker = match self.take_idle_worker() {
                Some(worker) => worker,
                None => self.start(task.input.limits)?,
            };
            let fresh = worker.files() == 0;
            if !self.mark_busy(&worker) {
                return Err(IngestError::Gone);
            }
            let answer = worker.read(task, content, &self.supervisor, &mut receiver);
            if !self.mark_done(&worker) {
                return Err(IngestError::Gone);
            }
            match answer {
                // A crash of a child that has parsed other files may be their fault, so retry once in a
                // fresh child.
                Ok(Err(reason)) | Err(reason) if !fresh && is_worker_failure(&reason) => {
                    content.rewind()?;
                    receiver.restart();
                }
                Ok(answer) => {
                    permit.release(worker, &answer);
                    receiver.flush();
                    return answer;
                }
                Err(reason) => return Err(reason),
            }
        }
    }

    /// Registers a child as working; `false` if the pool is closed.
    fn mark_busy(&self, worker: &ParserWorker) -> bool {
        let mut state = self.state();
        if !state.closed {
            state.at_work.push(worker.process().clone());
        }
        !state.closed
    }

    /// Removes a child from the working ones; `false` if the pool was closed meanwhile.
    fn mark_done(&self, worker: &ParserWorker) -> bool {
        let mut state = self.state();
        state
            .at_work
            .retain(|process| !Arc::ptr_eq(process, worker.process()));
        !state.closed
    }

    /// Starts a child, unless a complete sandbox is required and not available. The result of the first
    /// child holds for all later ones, so a known gap fails without starting another.
    fn start(&self, limits: &Limits) -> Result<ParserWorker, IngestError> {
        if let Some(confinement) = self.state().confinement {
            require_confinement(confinement, limits)?;
        }
        let started = ParserWorker::start(&self.sandbox, &self.supervisor, limits);
        let worker = started.map_err(|error| IngestError::Unreadable {
            cause: error.kind(),
        })?;
        let mut state = self.state();
        state.started += 1;
        state.confinement = Some(worker.confinement());
        drop(state);
        require_confinement(worker.confinement(), limits)?;
        Ok(worker)
    }

    /// Fails if a complete sandbox is required and not available, before anything is parsed.
    pub(crate) fn check_confinement(&self, limits: &Limits) -> Result<(), IngestError> {
        if !limits.require_sandbox {
            return Ok(());
        }
        if let Some(confinement) = self.confinement() {
            return require_confinement(confinement, limits);
        }
        let permit = self.acquire_permit();
        let worker = self.start(limits)?;
        permit.return_worker(worker);
        Ok(())
    }

    fn acquire_permit(&self) -> WorkerPermit<'_> {
        let most = self.sandbox.children.max(1);
        let full = |state: &mut PoolState| state.busy >= most;
        let waited = self.free.wait_while(self.state(), full);
        waited.unwrap_or_else(PoisonError::into_inner).busy += 1;
        WorkerPermit(self)
    }

    /// An idle child that is still alive; dead ones are dropped.
    fn take_idle_worker(&self) -> Option<ParserWorker> {
        let mut state = self.state();
        while let Some(mut worker) = state.idle.pop() {
            if worker.is_alive() {
                return Some(worker);
            }
        }
        None
    }

    fn state(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Delivers each document exactly once, also when a file is parsed a second time after a crash. `received`
/// counts documents since the last start of the file, `delivered` those passed on.
struct ExactlyOnceSink<'a> {
    batches: DocumentBatcher<'a>,
    received: usize,
    delivered: usize,
}

impl<'a> ExactlyOnceSink<'a> {
    fn new(sink: &'a mut dyn FnMut(Vec<ParsedDocument>) -> bool) -> Self {
        Self {
            batches: DocumentBatcher::new(sink),
            received: 0,
            delivered: 0,
        }
    }

    fn restart(&mut self) {
        self.received = 0;
    }
}

impl DocumentReceiver for ExactlyOnceSink<'_> {
    fn take(&mut self, document: ParsedDocument) -> bool {
        self.received += 1;
        if self.received <= self.delivered {
            return false;
        }
        self.delivered = self.received;
        self.batches.push(document)
    }

    fn flush(&mut self) -> bool {
        self.batches.flush()
    }
}

/// Fails if a complete sandbox is required and a layer is missing or incomplete.
fn require_confinement(confinement: Confinement, limits: &Limits) -> Result<(), IngestError> {
    if limits.require_sandbox && !confinement.is_complete() {
        return Err(IngestError::NoSandbox {
            gaps: confinement.gaps(),
        });
    }
    Ok(())
}

/// Whether a failure may be due to the child's state rather than to the file.
fn is_worker_failure(reason: &IngestError) -> bool {
    matches!(
        reason,
        IngestError::Crashed | IngestError::TooMuchMemory { .. }
    )
}

/// Permit for one child of the pool, released on drop whatever happened.
struct WorkerPermit<'a>(&'a ParserPool);

impl WorkerPermit<'_> {
    fn release(self, worker: ParserWorker, answer: &Result<ParsedFile, IngestError>) {
        let worn = worker.files() >= self.0.sandbox.files_per_child;
        // Do not reuse a child after a panic, which may have left its memory inconsistent.
        let broken = answer.as_ref().is_err_and(is_worker_failure);
        if !worn && !broken {
            self.return_worker(worker);
        }
    }

    /// Returns a child to the idle ones for the next file.
    fn return_worker(self, worker: ParserWorker) {
        let mut state = self.0.state();
        if !state.closed {
            state.idle.push(worker);
        }
    }
}

impl Drop for WorkerPermit<'_> {
    fn drop(&mut self) {
        self.0.state().busy -= 1;
        self.0.free.notify_one();
    }
}
