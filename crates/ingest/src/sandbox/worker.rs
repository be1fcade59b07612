//! One child process as its parent sees it: a file goes in, documents or a reason come out. However a child
//! ends is turned into the reason that the file gets.

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
use crate::error::IngestError;
use crate::format::{FileFormat, ParsedFile, ParserInput};
use crate::hashing_reader::HashingReader;
use crate::limits::Limits;

/// How Rust ends a process whose memory is used up begins with these words, on stderr.
const OUT_OF_MEMORY: &str = "memory allocation of";

/// The last bytes of what a child complained about that are kept.
const MAX_COMPLAINT_BYTES: usize = 1_024;

/// A file that is to be read.
pub(super) struct ParseTask<'a> {
    pub format: &'a FileFormat,
    /// The file without its bytes.
    pub input: &'a ParserInput<'a>,
    /// What the file had when it was opened.
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

/// Takes documents as they come from a child.
pub(super) trait DocumentReceiver {
    /// Takes a document; true when [`Take::hand_on`] should be called.
    fn take(&mut self, document: ParsedDocument) -> bool;

    /// Hands on what was taken, however long that takes; false when no more is wanted.
    fn flush(&mut self) -> bool;
}

#[derive(Debug)]
pub(super) struct ParserWorker {
    process: Arc<WorkerProcess>,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    complaint: Receiver<String>,
    confinement: Confinement,
    files: usize,
}

impl ParserWorker {
    /// Starts a child and waits until it has shut itself in.
    pub(super) fn start(
        sandbox: &SandboxConfig,
        keeper: &ProcessSupervisor,
        limits: &Limits,
    ) -> io::Result<Self> {
        let mut child = keeper.spawn(sandbox)?;
        let (to, from, complaints) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let process = Arc::new(WorkerProcess::new(child));
        let (Some(to), Some(from), Some(complaints)) = (to, from, complaints) else {
            process.kill();
            return Err(invalid_data("the child has no pipes"));
        };
        let mut worker = Self {
            process,
            to,
            from: BufReader::new(from),
            complaint: capture_stderr(complaints)?,
            confinement: Confinement::default(),
            files: 0,
        };
        keeper.watch(
            &worker.process,
            Duration::from_secs(limits.max_parse_seconds),
        );
        let hello = worker.hello();
        keeper.release(&worker.process);
        worker.confinement = hello?;
        Ok(worker)
    }

    fn hello(&mut self) -> io::Result<Confinement> {
        let mut frame = FrameReader::from(&mut self.from)?;
        if frame.tag != frames::HELLO {
            return Err(invalid_data("the child says no hello"));
        }
        let numbers = [frame.number()?, frame.number()?, frame.number()?];
        frame.end()?;
        Confinement::from_numbers(numbers).ok_or_else(|| invalid_data("no such walls"))
    }

    pub(super) fn confinement(&self) -> Confinement {
        self.confinement
    }

    /// How many files it has read.
    pub(super) fn files(&self) -> usize {
        self.files
    }

    pub(super) fn is_alive(&mut self) -> bool {
        matches!(self.process.exit_status(), Ok(None))
    }

    /// Gives a file to the child. An answer leaves the child ready for the next file; a failure has ended it.
    pub(super) fn read(
        &mut self,
        task: &ParseTask<'_>,
        content: &mut HashingReader,
        keeper: &ProcessSupervisor,
        take: &mut dyn DocumentReceiver,
    ) -> Result<Result<ParsedFile, IngestError>, IngestError> {
        self.files += 1;
        let process = self.process.clone();
        let mut clock = WorkerDeadline::start(keeper, &process, task.time_limit());
        let answered = AtomicBool::new(false);
        let (to, from) = (&mut self.to, &mut self.from);
        let request = task.request();
        let answer = std::thread::scope(|scope| {
            let request = request?;
            let send = || send(request, content, to, &answered);
            let sending = std::thread::Builder::new().spawn_scoped(scope, send)?;
            let answer = receive_response(task, from, &mut clock, take);
            answered.store(true, Ordering::Release);
            if let Err(error) = &answer
                && error.kind() != io::ErrorKind::UnexpectedEof
            {
                process.kill();
            }
            // Whatever kept it from sending everything is known by the answer or the content.
            drop(sending.join());
            answer
        });
        let answer = answer.map_err(|error| match error.kind() {
            io::ErrorKind::Interrupted => IngestError::Gone,
            _ => self.failure_reason(&error, task),
        });
        keeper.release(&self.process);
        match content.failure() {
            Some(reason) => answer.map(|_| Err(reason.clone())),
            None => answer,
        }
    }

    pub(super) fn process(&self) -> &Arc<WorkerProcess> {
        &self.process
    }

    /// Waits until the child is gone and says why it failed.
    fn failure_reason(&mut self, error: &io::Error, task: &ParseTask<'_>) -> IngestError {
        // A child that talks nonsense is ended; one that fell silent is dying or will be killed for it.
        if error.kind() == io::ErrorKind::InvalidData {
            self.process.kill();
            let _ = self.process.wait();
            return IngestError::Crashed;
        }
        let status = self.process.wait();
        let signal = status.ok().and_then(signal);
        let said = self.complaint.recv_timeout(Duration::from_secs(1));
        let said = said.unwrap_or_default();
        // The system itself kills with signal 9 when all memory is used up; by us it is lateness.
        if self.process.was_overdue() || signal == Some(FatalSignal::CpuTime) {
            IngestError::TooSlow {
                seconds: task.time_limit().as_secs(),
            }
        } else if said.contains(OUT_OF_MEMORY) || signal == Some(FatalSignal::Kill) {
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

/// Sends a request and its file, as far as anybody wants it.
fn send(
    request: FrameWriter,
    content: &mut HashingReader,
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

/// Takes what a child answers. An interruption means that nobody wants more.
fn receive_response(
    task: &ParseTask<'_>,
    from: &mut BufReader<ChildStdout>,
    clock: &mut WorkerDeadline<'_>,
    take: &mut dyn DocumentReceiver,
) -> io::Result<Result<ParsedFile, IngestError>> {
    let mut answer =
        ResponseValidator::for_input(task.input, task.format.stream_parser().is_some());
    loop {
        let mut frame = FrameReader::from(from)?;
        match frame.tag {
            frames::DOCUMENT => {
                if take.take(answer.document(&mut frame)?) {
                    clock.pause();
                    let is_wanted = take.flush();
                    clock.resume();
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
            _ => return Err(invalid_data("no such frame")),
        }
    }
}

/// The time that a child has left. It stands still while the child waits for us.
struct WorkerDeadline<'a> {
    keeper: &'a ProcessSupervisor,
    process: &'a Arc<WorkerProcess>,
    left: Duration,
    since: Option<Instant>,
}

impl<'a> WorkerDeadline<'a> {
    fn start(
        keeper: &'a ProcessSupervisor,
        process: &'a Arc<WorkerProcess>,
        left: Duration,
    ) -> Self {
        let mut clock = Self {
            keeper,
            process,
            left,
            since: None,
        };
        clock.resume();
        clock
    }

    fn resume(&mut self) {
        self.keeper.watch(self.process, self.left);
        self.since = Some(Instant::now());
    }

    fn pause(&mut self) {
        if let Some(since) = self.since.take() {
            self.keeper.release(self.process);
            self.left = self.left.saturating_sub(since.elapsed());
        }
    }
}

/// Reads what a child complains about, so that it never waits for a reader, and keeps the end of it.
fn capture_stderr(mut from: ChildStderr) -> io::Result<Receiver<String>> {
    let (said, heard) = sync_channel(1);
    let listen = move || {
        let mut kept: Vec<u8> = Vec::new();
        let mut buffer = [0; MAX_COMPLAINT_BYTES];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            kept.extend(buffer.iter().take(count));
            let over = kept.len().saturating_sub(MAX_COMPLAINT_BYTES);
            kept.drain(..over);
        }
        // Nobody listens when the child ended in good order.
        let _ = said.send(String::from_utf8_lossy(&kept).into_owned());
    };
    std::thread::Builder::new()
        .name("docent-parser-stderr".to_owned())
        .spawn(listen)?;
    Ok(heard)
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
