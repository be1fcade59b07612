//! The parent's side of one child process: a file goes in, documents or an error come out. However the
//! child exits is translated into the error that the file gets.

use std::io::{self, BufReader, Read as _, Write as _};
use std::process::{ChildStderr, ChildStdin, ChildStdout, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use crate::reader_field::ParsedDocument;

use super::confinement::Confinement;
use super::frames::{self, FrameReader, FrameWriter, invalid_data};
use super::response_validator::ResponseValidator;
use super::supervisor::{ProcessSupervisor, WorkerProcess};
use super::{SandboxConfig, child, error_codec};
use crate::digest::hashing_reader::HashingReader;
use crate::error::IngestError;
use crate::formats::file_format::FileFormat;
use crate::limits::Limits;
use crate::parser::{ParsedFile, ParserInput};

/// The beginning of Rust's message on stderr when an allocation fails.
const OUT_OF_MEMORY: &str = "memory allocation of";

/// How much of the end of a child's stderr is kept. The last line says why the child ended, and it is only compared
/// with a known message. A parser that writes to stderr without end must not fill the memory of its parent.
const MAX_STDERR_BYTES: usize = 1_024;

/// A file to be parsed by a child.
pub(crate) struct ParseTask<'a> {
    pub format: &'a FileFormat,
    /// The parser input, without the bytes of the file.
    pub input: &'a ParserInput<'a>,
    /// The file's size when it was opened.
    pub size: u64,
}

impl ParseTask<'_> {
    fn request(&self) -> io::Result<FrameWriter> {
        let input = self.input;
        Ok(FrameWriter::new(frames::REQUEST)
            .text(self.format.name)
            .text(input.id)
            .text(input.path)
            .text(input.stem)
            .text(&serde_json::to_string(input.limits)?)
            .text(&serde_json::to_string(input.options)?)
            .number(self.size)
            .number(input.ids.number()))
    }

    fn time_limit(&self) -> Duration {
        Duration::from_secs(child::time_limit_seconds(self.input.limits, self.size))
    }
}

/// Receives documents while a child sends them.
pub(super) trait DocumentReceiver {
    /// Receives a document. Returns whether [`Self::flush`] should be called.
    fn take(&mut self, document: ParsedDocument) -> bool;

    /// Passes on what was received, however long that takes. Returns `false` if no more documents are
    /// wanted.
    fn flush(&mut self) -> bool;
}

#[derive(Debug)]
pub(super) struct ParserWorker {
    process: Arc<WorkerProcess>,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    stderr_tail: Receiver<String>,
    confinement: Confinement,
    files: usize,
}

impl ParserWorker {
    /// Starts a child and waits for its handshake, which it sends once it is confined.
    pub(super) fn start(
        sandbox: &SandboxConfig,
        supervisor: &ProcessSupervisor,
        limits: &Limits,
    ) -> io::Result<Self> {
        let mut child = supervisor.spawn(sandbox)?;
        let (to, from, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let process = Arc::new(WorkerProcess::new(child));
        let (Some(to), Some(from), Some(stderr)) = (to, from, stderr) else {
            process.kill();
            return Err(invalid_data("the child process has no pipes"));
        };
        let mut worker = Self {
            process,
            to,
            from: BufReader::new(from),
            stderr_tail: capture_stderr(stderr)?,
            confinement: Confinement::default(),
            files: 0,
        };
        supervisor.watch(
            &worker.process,
            Duration::from_secs(limits.max_parse_seconds),
        );
        let hello = worker.hello();
        supervisor.release(&worker.process);
        worker.confinement = hello?;
        Ok(worker)
    }

    fn hello(&mut self) -> io::Result<Confinement> {
        let mut frame = FrameReader::from(&mut self.from)?;
        if frame.tag != frames::HELLO {
            return Err(invalid_data("no handshake from the child process"));
        }
        let numbers = [frame.number()?, frame.number()?, frame.number()?];
        frame.end()?;
        Confinement::from_numbers(numbers)
            .ok_or_else(|| invalid_data("unknown sandbox layer status"))
    }

    pub(super) fn confinement(&self) -> Confinement {
        self.confinement
    }

    /// How many files this child has been given.
    pub(super) fn files(&self) -> usize {
        self.files
    }

    pub(super) fn is_alive(&mut self) -> bool {
        matches!(self.process.exit_status(), Ok(None))
    }

    /// Has the child parse a file. After a response the child is ready for the next file; after a failure
    /// it has exited.
    pub(super) fn read(
        &mut self,
        task: &ParseTask<'_>,
        content: &mut HashingReader<'_>,
        supervisor: &ProcessSupervisor,
        take: &mut dyn DocumentReceiver,
    ) -> Result<Result<ParsedFile, IngestError>, IngestError> {
        self.files += 1;
        let process = self.process.clone();
        let mut deadline = WorkerDeadline::start(supervisor, &process, task.time_limit());
        let answered = AtomicBool::new(false);
        let (to, from) = (&mut self.to, &mut self.from);
        let request = task.request();
        let answer = std::thread::scope(|scope| {
            let request = request?;
            let send = || send(request, content, to, &answered);
            let sending = std::thread::Builder::new().spawn_scoped(scope, send)?;
            let answer = receive_response(task, from, &mut deadline, take);
            answered.store(true, Ordering::Release);
            if let Err(error) = &answer
                && error.kind() != io::ErrorKind::UnexpectedEof
            {
                process.kill();
            }
            // Whatever kept the thread from sending everything shows in the response or in the content's
            // own error.
            drop(sending.join());
            answer
        });
        let answer = answer.map_err(|error| match error.kind() {
            io::ErrorKind::Interrupted => IngestError::Gone,
            _ => self.failure_reason(&error, task),
        });
        supervisor.release(&self.process);
        match content.failure() {
            Some(reason) => answer.map(|_| Err(reason.clone())),
            None => answer,
        }
    }

    pub(super) fn process(&self) -> &Arc<WorkerProcess> {
        &self.process
    }

    /// Waits for the child to exit and derives the reason for its failure.
    fn failure_reason(&mut self, error: &io::Error, task: &ParseTask<'_>) -> IngestError {
        // A child that breaks the protocol is killed. A silent one is dying, or will be killed at its
        // deadline.
        if error.kind() == io::ErrorKind::InvalidData {
            self.process.kill();
            let _ = self.process.wait();
            return IngestError::Crashed;
        }
        let status = self.process.wait();
        let signal = status.ok().and_then(signal);
        let stderr = self.stderr_tail.recv_timeout(Duration::from_secs(1));
        let stderr = stderr.unwrap_or_default();
        // Signal 9 without a missed deadline comes from the kernel's out-of-memory killer.
        if self.process.was_overdue() || signal == Some(FatalSignal::CpuTime) {
            IngestError::TooSlow {
                seconds: task.time_limit().as_secs(),
            }
        } else if stderr.contains(OUT_OF_MEMORY) || signal == Some(FatalSignal::Kill) {
            IngestError::out_of_memory()
        } else {
            IngestError::Crashed
        }
    }
}

impl Drop for ParserWorker {
    fn drop(&mut self) {
        self.process.kill();
        let _ = self.process.wait();
    }
}

/// Sends a request and its file, until the response makes the rest unnecessary.
fn send(
    request: FrameWriter,
    content: &mut HashingReader<'_>,
    to: &mut ChildStdin,
    answered: &AtomicBool,
) -> io::Result<()> {
    request.send(to)?;
    let mut buffer = vec![0; frames::CHUNK_BYTES];
    while !answered.load(Ordering::Acquire) {
        match content.read(&mut buffer) {
            Ok(0) => {
                frames::write_chunk(&[], to)?;
                return to.flush();
            }
            Ok(count) => frames::write_chunk(buffer.get(..count).unwrap_or_default(), to)?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    frames::write_abort(to)?;
    to.flush()
}

/// Receives a child's response. `Interrupted` means that no more documents are wanted.
fn receive_response(
    task: &ParseTask<'_>,
    from: &mut BufReader<ChildStdout>,
    deadline: &mut WorkerDeadline<'_>,
    take: &mut dyn DocumentReceiver,
) -> io::Result<Result<ParsedFile, IngestError>> {
    let mut answer = ResponseValidator::for_input(task.input, task.format.stream.is_some());
    loop {
        let mut frame = FrameReader::from(from)?;
        match frame.tag {
            frames::DOCUMENT => {
                if take.take(answer.document(&mut frame)?) {
                    deadline.pause();
                    let is_wanted = take.flush();
                    deadline.resume();
                    if !is_wanted {
                        return Err(io::ErrorKind::Interrupted.into());
                    }
                }
            }
            frames::SKIPPED => answer.skipped(&mut frame)?,
            frames::WARNING => answer.warning(&mut frame)?,
            frames::DONE => {
                let numbered = frame.number()? == 1;
                frame.end()?;
                return Ok(Ok(answer.finish(numbered)));
            }
            frames::FAILED => {
                let reason = error_codec::decode(&mut frame)?;
                frame.end()?;
                return Ok(Err(reason));
            }
            _ => return Err(invalid_data("unknown frame tag")),
        }
    }
}

/// The remaining time of a child. It is paused while the child waits for the parent.
struct WorkerDeadline<'a> {
    supervisor: &'a ProcessSupervisor,
    process: &'a Arc<WorkerProcess>,
    left: Duration,
    since: Option<Instant>,
}

impl<'a> WorkerDeadline<'a> {
    fn start(
        supervisor: &'a ProcessSupervisor,
        process: &'a Arc<WorkerProcess>,
        left: Duration,
    ) -> Self {
        let mut deadline = Self {
            supervisor,
            process,
            left,
            since: None,
        };
        deadline.resume();
        deadline
    }

    fn resume(&mut self) {
        self.supervisor.watch(self.process, self.left);
        self.since = Some(Instant::now());
    }

    fn pause(&mut self) {
        if let Some(since) = self.since.take() {
            self.supervisor.release(self.process);
            self.left = self.left.saturating_sub(since.elapsed());
        }
    }
}

/// Drains a child's stderr, so that the child never blocks on it, and keeps the end.
fn capture_stderr(mut from: ChildStderr) -> io::Result<Receiver<String>> {
    let (sender, receiver) = sync_channel(1);
    let drain = move || {
        let mut kept: Vec<u8> = Vec::new();
        let mut buffer = [0; MAX_STDERR_BYTES];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            kept.extend(buffer.iter().take(count));
            let over = kept.len().saturating_sub(MAX_STDERR_BYTES);
            kept.drain(..over);
        }
        // If the child exited normally, nobody receives this.
        let _ = sender.send(String::from_utf8_lossy(&kept).into_owned());
    };
    std::thread::Builder::new()
        .name("docent-parser-stderr".to_owned())
        .spawn(drain)?;
    Ok(receiver)
}

#[derive(PartialEq, Eq)]
enum FatalSignal {
    Kill,
    CpuTime,
}

#[cfg(unix)]
fn signal(status: ExitStatus) -> Option<FatalSignal> {
    use std::os::unix::process::ExitStatusExt as _;
    match status.signal()? {
        9 => Some(FatalSignal::Kill),
        24 => Some(FatalSignal::CpuTime),
        _ => None,
    }
}

#[cfg(not(unix))]
fn signal(_status: ExitStatus) -> Option<FatalSignal> {
    None
}
