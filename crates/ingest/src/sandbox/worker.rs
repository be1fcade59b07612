//! One child process as its parent sees it: a file goes in, documents or a reason come out. However a child
//! ends is turned into the reason that the file gets.

use std::io::{self, BufReader, Read as _, Write as _};
use std::process::{ChildStderr, ChildStdin, ChildStdout, ExitStatus};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use super::believe::Answer;
use super::confine::Confinement;
use super::keeper::{Keeper, Process};
use super::wire::{self, Frame, Received, wrong};
use super::{Sandbox, reasons};
use crate::error::Reason;
use crate::format::{Input, Parsed};
use crate::limits::Limits;

/// How Rust ends a process whose memory is used up begins with these words, on stderr.
const OUT_OF_MEMORY: &str = "memory allocation of";

/// The last bytes of what a child complained about that are kept.
const MAX_COMPLAINT_BYTES: usize = 1_024;

#[derive(Debug)]
pub(super) struct Worker {
    process: Arc<Process>,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    complaint: Receiver<String>,
    confinement: Confinement,
    files: usize,
}

impl Worker {
    /// Starts a child and waits until it has shut itself in.
    pub(super) fn start(sandbox: &Sandbox, keeper: &Keeper, limits: &Limits) -> io::Result<Self> {
        let mut child = keeper.spawn(sandbox)?;
        let (to, from, complaints) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let process = Arc::new(Process::new(child));
        let (Some(to), Some(from), Some(complaints)) = (to, from, complaints) else {
            process.kill();
            return Err(wrong("the child has no pipes"));
        };
        let mut worker = Self {
            process,
            to,
            from: BufReader::new(from),
            complaint: listen(complaints)?,
            confinement: Confinement::default(),
            files: 0,
        };
        keeper.watch(&worker.process, time(limits));
        let hello = worker.hello();
        keeper.release(&worker.process);
        worker.confinement = hello?;
        Ok(worker)
    }

    fn hello(&mut self) -> io::Result<Confinement> {
        let mut frame = Received::from(&mut self.from)?;
        if frame.tag != wire::HELLO {
            return Err(wrong("the child says no hello"));
        }
        let confinement = Confinement::from_bits(frame.number()?);
        frame.end()?;
        Ok(confinement)
    }

    pub(super) fn confinement(&self) -> Confinement {
        self.confinement
    }

    /// How many files it has read.
    pub(super) fn files(&self) -> usize {
        self.files
    }

    pub(super) fn is_alive(&mut self) -> bool {
        matches!(self.process.ended(), Ok(None))
    }

    /// Gives a file to the child. An answer leaves the child ready for the next file; a failure has ended it.
    pub(super) fn read(
        &mut self,
        format: &str,
        input: &Input<'_>,
        keeper: &Keeper,
    ) -> Result<Result<Parsed, Reason>, Reason> {
        self.files += 1;
        keeper.watch(&self.process, time(input.limits));
        let answer = self
            .ask(format, input)
            .and_then(|()| self.answer(input))
            .map_err(|error| self.end(&error, input.limits));
        keeper.release(&self.process);
        answer
    }

    fn ask(&mut self, format: &str, input: &Input<'_>) -> io::Result<()> {
        Frame::new(wire::REQUEST)
            .text(format)
            .text(input.id)
            .text(input.path)
            .text(input.stem)
            .text(input.sha256)
            .text(&serde_json::to_string(input.limits)?)
            .text(&serde_json::to_string(input.options)?)
            .number(input.bytes.len() as u64)
            .send(&mut self.to)?;
        self.to.write_all(input.bytes)?;
        self.to.flush()
    }

    fn answer(&mut self, input: &Input<'_>) -> io::Result<Result<Parsed, Reason>> {
        let mut answer = Answer::to(input);
        loop {
            let mut frame = Received::from(&mut self.from)?;
            match frame.tag {
                wire::DOCUMENT => answer.document(&mut frame)?,
                wire::SKIPPED => answer.skipped(&mut frame)?,
                wire::WARNING => answer.warning(&mut frame)?,
                wire::DONE => {
                    frame.end()?;
                    return Ok(Ok(answer.done()));
                }
                wire::FAILED => {
                    let reason = reasons::get(&mut frame)?;
                    frame.end()?;
                    return Ok(Err(reason));
                }
                _ => return Err(wrong("no such frame")),
            }
        }
    }

    /// Waits until the child is gone and says why it failed.
    fn end(&mut self, error: &io::Error, limits: &Limits) -> Reason {
        // A child that talks nonsense is ended; one that fell silent is dying or will be killed for it.
        if error.kind() == io::ErrorKind::InvalidData {
            self.process.kill();
            let _ = self.process.wait();
            return Reason::Crashed;
        }
        let status = self.process.wait();
        let signal = status.ok().and_then(signal);
        let said = self.complaint.recv_timeout(Duration::from_secs(1));
        let said = said.unwrap_or_default();
        // The system itself kills with signal 9 when all memory is used up; by us it is lateness.
        if self.process.was_late() || signal == Some(Signal::CpuTime) {
            Reason::TooSlow {
                seconds: limits.max_parse_seconds,
            }
        } else if said.contains(OUT_OF_MEMORY) || signal == Some(Signal::Kill) {
            Reason::out_of_memory()
        } else {
            Reason::Crashed
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.process.kill();
        let _ = self.process.wait();
    }
}

fn time(limits: &Limits) -> Duration {
    Duration::from_secs(limits.max_parse_seconds)
}

/// Reads what a child complains about, so that it never waits for a reader, and keeps the end of it.
fn listen(mut from: ChildStderr) -> io::Result<Receiver<String>> {
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
enum Signal {
    Kill,
    CpuTime,
}

#[cfg(unix)]
fn signal(status: ExitStatus) -> Option<Signal> {
    use std::os::unix::process::ExitStatusExt as _;
    match status.signal()? {
        9 => Some(Signal::Kill),
        24 => Some(Signal::CpuTime),
        _ => None,
    }
}

#[cfg(not(unix))]
fn signal(_status: ExitStatus) -> Option<Signal> {
    None
}
