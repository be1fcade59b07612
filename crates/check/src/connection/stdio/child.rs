//! The child process of a stdio server: one thread for each of its pipes, and its termination.
//!
//! The process gets a process group of its own, and the whole group is killed at the end, because wrappers such as
//! `npx` leave the real server behind as a grandchild.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::ProgramFailure;
use crate::connection::http::MAX_ANSWER;
use crate::exchange::ExchangeError;
use crate::text::printable;

/// The capacity of the queue of output lines, for backpressure: a line may be as long as a response, 8 MiB.
const MAX_WAITING: usize = 1;
/// How long a program may take to exit once its stdin is closed, before it is killed.
const EXIT_GRACE_PERIOD: Duration = Duration::from_secs(3);
/// How long to wait for the exit status and the rest of stderr of a program that closed its output.
const EXIT_STATUS_WAIT: Duration = Duration::from_millis(500);
/// How long to keep reading after the process has exited: a process that it started may hold the output open, and may
/// even respond.
const AFTER_EXIT: Duration = Duration::from_secs(1);
/// How often to poll whether a silent process is still running.
const POLL: Duration = Duration::from_millis(50);
/// The most lines of stderr that are kept, the longest of them in characters, and the most bytes that are read for one.
/// All of them together fit into the evidence of a finding, which is truncated at its end, where the cause stands.
const MAX_STDERR_LINES: usize = 5;
const MAX_STDERR_CHARS: usize = 100;
const MAX_STDERR_BYTES: u64 = 4 * 1024;

pub(super) enum OutputLine {
    Text(String),
    TooLong,
}

/// A running child process. Dropping it kills the process and its whole process group. `input` is `None` once stdin is
/// to be closed.
pub(super) struct RunningChild {
    child: Child,
    input: Option<SyncSender<String>>,
    written: Receiver<bool>,
    lines: Receiver<OutputLine>,
    stderr: Arc<Mutex<VecDeque<String>>>,
    stderr_end: Receiver<()>,
    /// Whether the last request timed out, so that dropping does not wait for a graceful exit.
    pub(super) is_late: bool,
}

impl RunningChild {
    pub(super) fn start(command: &[String]) -> Result<Self, ExchangeError> {
        let not_started = |program: &str, why: &str, is_missing: bool| ExchangeError::NotStarted {
            program: printable(program, MAX_STDERR_CHARS),
            why: why.to_owned(),
            is_missing,
        };
        let (name, arguments) = command
            .split_first()
            .ok_or_else(|| not_started("", "no program was named", true))?;
        let mut command = Command::new(name);
        command
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // A process group of its own, so that the processes that a wrapper such as `npx` starts are killed with it.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn().map_err(|error| {
            let is_missing = error.kind() == std::io::ErrorKind::NotFound;
            not_started(name, &error.to_string(), is_missing)
        })?;
        let (sender, lines) = sync_channel(MAX_WAITING);
        if let Some(output) = child.stdout.take() {
            std::thread::spawn(move || read_lines(output, &sender));
        }
        let stderr = Arc::new(Mutex::new(VecDeque::new()));
        let (closed, stderr_end) = sync_channel(1);
        if let Some(output) = child.stderr.take() {
            let kept = Arc::clone(&stderr);
            std::thread::spawn(move || {
                keep_last_lines(output, &kept);
                let _ = closed.try_send(());
            });
        }
        let (input, messages) = sync_channel(1);
        let (sender, written) = sync_channel(1);
        if let Some(pipe) = child.stdin.take() {
            std::thread::spawn(move || write_lines(pipe, &messages, &sender));
        }
        Ok(Self {
            child,
            input: Some(input),
            written,
            lines,
            stderr,
            stderr_end,
            is_late: false,
        })
    }

    /// Writes one line, and waits until the pipe has accepted it.
    pub(super) fn write(&self, line: &str, deadline: Instant) -> Result<(), ProgramFailure> {
        let input = self.input.as_ref().ok_or(ProgramFailure::Ended)?;
        match input.try_send(format!("{line}\n")) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => return Err(ProgramFailure::Stuck),
            Err(TrySendError::Disconnected(_)) => return Err(ProgramFailure::Ended),
        }
        let left = deadline.saturating_duration_since(Instant::now());
        match self.written.recv_timeout(left) {
            Ok(true) => Ok(()),
            Ok(false) | Err(RecvTimeoutError::Disconnected) => Err(ProgramFailure::Ended),
            Err(RecvTimeoutError::Timeout) => Err(ProgramFailure::Stuck),
        }
    }

    /// Receives the next line of output. Once the process has exited, this stops after a second of silence, even where
    /// an orphaned process still holds the pipe open.
    pub(super) fn line(&mut self, deadline: Instant) -> Result<OutputLine, RecvTimeoutError> {
        let mut silence_deadline = None;
        loop {
            let now = Instant::now();
            let left = deadline.saturating_duration_since(now);
            match self.lines.recv_timeout(left.min(POLL)) {
                Err(RecvTimeoutError::Timeout) if left <= POLL => {
                    return Err(RecvTimeoutError::Timeout);
                }
                Err(RecvTimeoutError::Timeout) => {}
                other => return other,
            }
            if matches!(self.child.try_wait(), Ok(Some(_)))
                && Instant::now() >= *silence_deadline.get_or_insert(now + AFTER_EXIT)
            {
                return Err(RecvTimeoutError::Disconnected);
            }
        }
    }

    /// The exit status of the process, if it exits soon.
    pub(super) fn exit_status(&mut self) -> Option<String> {
        let deadline = Instant::now() + EXIT_STATUS_WAIT;
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status.to_string());
            }
            if Instant::now() >= deadline {
                return None;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The last lines of stderr. Where the process has exited, this first waits for the end of the pipe.
    pub(super) fn stderr(&mut self) -> Vec<String> {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            let _ = self.stderr_end.recv_timeout(EXIT_STATUS_WAIT);
        }
        let kept = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().cloned().collect()
    }
}

impl Drop for RunningChild {
    fn drop(&mut self) {
        // Closing stdin asks the program to exit; after the grace period it is killed.
        drop(self.input.take());
        let deadline = Instant::now() + EXIT_GRACE_PERIOD;
        while !self.is_late
            && Instant::now() < deadline
            && matches!(self.child.try_wait(), Ok(None))
        {
            // Drain the output, so that a full pipe does not keep the process from exiting.
            while self.lines.try_recv().is_ok() {}
            std::thread::sleep(Duration::from_millis(20));
        }
        end_group(&self.child);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(unix)]
fn end_group(child: &Child) {
    let group = i32::try_from(child.id())
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    if let Some(group) = group {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
}

#[cfg(not(unix))]
fn end_group(_: &Child) {}

fn write_lines(mut pipe: ChildStdin, messages: &Receiver<String>, written: &SyncSender<bool>) {
    for message in messages {
        let is_written = pipe
            .write_all(message.as_bytes())
            .and_then(|()| pipe.flush());
        if written.send(is_written.is_ok()).is_err() || is_written.is_err() {
            return;
        }
    }
}

fn read_lines(output: impl Read, sender: &SyncSender<OutputLine>) {
    let mut reader = BufReader::new(output);
    loop {
        let mut line = Vec::new();
        let read = reader
            .by_ref()
            .take(MAX_ANSWER + 1)
            .read_until(b'\n', &mut line);
        let line = match read {
            Ok(0) | Err(_) => return,
            Ok(length) if length as u64 > MAX_ANSWER => OutputLine::TooLong,
            Ok(_) => OutputLine::Text(String::from_utf8_lossy(&line).trim_end().to_owned()),
        };
        let is_end = matches!(line, OutputLine::TooLong);
        if sender.send(line).is_err() || is_end {
            return;
        }
    }
}

/// Drains stderr and keeps its last lines, safe to print. The pipe is always read, so it never fills.
fn keep_last_lines(output: impl Read, kept: &Mutex<VecDeque<String>>) {
    let mut reader = BufReader::new(output);
    loop {
        let mut line = Vec::new();
        let read = reader
            .by_ref()
            .take(MAX_STDERR_BYTES)
            .read_until(b'\n', &mut line);
        if !matches!(read, Ok(length) if length > 0) {
            return;
        }
        let line = printable(String::from_utf8_lossy(&line).trim(), MAX_STDERR_CHARS);
        if line.is_empty() {
            continue;
        }
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == MAX_STDERR_LINES {
            kept.pop_front();
        }
        kept.push_back(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_of_stderr_are_kept_and_cleaned() {
        let text: String = (0..=MAX_STDERR_LINES)
            .map(|n| format!("line {n}\n\n"))
            .collect();
        let kept = Mutex::new(VecDeque::new());
        keep_last_lines(text.as_bytes(), &kept);
        let lines = kept.into_inner().unwrap();
        assert_eq!(lines.len(), MAX_STDERR_LINES);
        assert_eq!(lines.front().map(String::as_str), Some("line 1"));
        let kept = Mutex::new(VecDeque::new());
        let long = format!("\u{1b}[31m{}", "x".repeat(100_000));
        keep_last_lines(long.as_bytes(), &kept);
        let lines = kept.into_inner().unwrap();
        assert_eq!(lines.len(), MAX_STDERR_LINES);
        assert!(
            lines
                .iter()
                .all(|line| line.chars().count() <= MAX_STDERR_CHARS + 1)
        );
        assert!(!lines.iter().any(|line| line.contains('\u{1b}')));
    }

    /// The grandchild leaves the process group, so no signal reaches it, and holds stdout longer than the deadline.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_program_that_ended_is_not_waited_for() {
        let command = ["sh", "-c", "setsid sleep 20 & exit 3"].map(str::to_owned);
        let mut child = RunningChild::start(&command).ok().unwrap();
        let deadline = Instant::now() + Duration::from_secs(15);
        assert!(matches!(
            child.line(deadline),
            Err(RecvTimeoutError::Disconnected)
        ));
        assert!(Instant::now() < deadline);
        assert_eq!(child.exit_status().as_deref(), Some("exit status: 3"));
    }

    /// A wrapper may exit and leave the real server behind.
    #[cfg(unix)]
    #[test]
    fn output_of_a_grandchild_is_read_after_the_program_exits() {
        let command = ["sh", "-c", "(sleep 0.2; echo late) & exit 0"].map(str::to_owned);
        let mut child = RunningChild::start(&command).ok().unwrap();
        let deadline = Instant::now() + Duration::from_secs(15);
        assert!(matches!(child.line(deadline), Ok(OutputLine::Text(line)) if line == "late"));
        assert!(matches!(
            child.line(deadline),
            Err(RecvTimeoutError::Disconnected)
        ));
    }

    #[cfg(unix)]
    #[test]
    fn a_program_that_reads_nothing_is_not_waited_for() {
        let command = ["sleep", "600"].map(str::to_owned);
        let child = RunningChild::start(&command).ok().unwrap();
        let deadline = Instant::now() + Duration::from_millis(100);
        assert!(
            child.write("short", deadline).is_ok(),
            "the pipe buffers it"
        );
        let more_than_a_pipe = "x".repeat(1024 * 1024);
        let deadline = Instant::now() + Duration::from_millis(100);
        assert!(matches!(
            child.write(&more_than_a_pipe, deadline),
            Err(ProgramFailure::Stuck)
        ));
    }
}
