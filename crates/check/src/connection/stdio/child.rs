//! The process behind a program: its pipes, each with a thread of its own, and its end.

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

/// Lines that wait to be read; a program that writes more waits. Each may be as long as an answer.
const MAX_WAITING: usize = 1;
/// How long a program may take to end once its input is closed.
const EXIT_GRACE_PERIOD: Duration = Duration::from_secs(3);
/// How long is waited for the status and the last words of a program that closed its output.
const EXIT_STATUS_WAIT: Duration = Duration::from_millis(500);
/// How long a program that ended may be silent: what it started may hold its output open, and may even answer.
const AFTER_EXIT: Duration = Duration::from_secs(1);
/// How often is looked whether a silent program is still there.
const POLL: Duration = Duration::from_millis(50);
/// The last lines of stderr that are kept, the longest of them in characters, and the most that is read for one. All of
/// them together fit into the evidence of a finding, which is cut at its end, where the cause stands.
const MAX_STDERR_LINES: usize = 5;
const MAX_STDERR_CHARS: usize = 100;
const MAX_STDERR_BYTES: u64 = 4 * 1024;

pub(super) enum OutputLine {
    Text(String),
    TooLong,
}

/// A process that was started. It ends with this value, and so do the processes that it started.
pub(super) struct RunningChild {
    child: Child,
    /// `None` once its input is to be closed.
    input: Option<SyncSender<String>>,
    written: Receiver<bool>,
    lines: Receiver<OutputLine>,
    stderr: Arc<Mutex<VecDeque<String>>>,
    stderr_end: Receiver<()>,
    /// Whether it has been waited for in vain, so that nobody waits for its end.
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
        // A group of its own, so that what a wrapper such as `npx` started ends with it.
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
        let (end, stderr_end) = sync_channel(1);
        if let Some(output) = child.stderr.take() {
            let kept = Arc::clone(&stderr);
            std::thread::spawn(move || {
                keep_last_lines(output, &kept);
                let _ = end.try_send(());
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

    /// Writes one line, and waits until the pipe has taken it.
    pub(super) fn write(&self, line: &str, end: Instant) -> Result<(), ProgramFailure> {
        let input = self.input.as_ref().ok_or(ProgramFailure::Ended)?;
        match input.try_send(format!("{line}\n")) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => return Err(ProgramFailure::Stuck),
            Err(TrySendError::Disconnected(_)) => return Err(ProgramFailure::Ended),
        }
        let left = end.saturating_duration_since(Instant::now());
        match self.written.recv_timeout(left) {
            Ok(true) => Ok(()),
            Ok(false) | Err(RecvTimeoutError::Disconnected) => Err(ProgramFailure::Ended),
            Err(RecvTimeoutError::Timeout) => Err(ProgramFailure::Stuck),
        }
    }

    /// The next line of its output. A program that ended has none, though a process that it left behind may hold its
    /// output open.
    pub(super) fn line(&mut self, end: Instant) -> Result<OutputLine, RecvTimeoutError> {
        let mut silent_end = None;
        loop {
            let now = Instant::now();
            let left = end.saturating_duration_since(now);
            match self.lines.recv_timeout(left.min(POLL)) {
                Err(RecvTimeoutError::Timeout) if left <= POLL => {
                    return Err(RecvTimeoutError::Timeout);
                }
                Err(RecvTimeoutError::Timeout) => {}
                other => return other,
            }
            if matches!(self.child.try_wait(), Ok(Some(_)))
                && Instant::now() >= *silent_end.get_or_insert(now + AFTER_EXIT)
            {
                return Err(RecvTimeoutError::Disconnected);
            }
        }
    }

    /// How the process ended, where it has.
    pub(super) fn exit_status(&mut self) -> Option<String> {
        let end = Instant::now() + EXIT_STATUS_WAIT;
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status.to_string());
            }
            if Instant::now() >= end {
                return None;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The last lines that it wrote to stderr; of a process that ended, all that it wrote is waited for.
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
        // Closing its input asks the program to end; one that does not is ended.
        drop(self.input.take());
        let end = Instant::now() + EXIT_GRACE_PERIOD;
        while !self.is_late && Instant::now() < end && matches!(self.child.try_wait(), Ok(None)) {
            // What it still writes must not keep it from ending.
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

/// Reads everything and keeps the last lines, safe to print. Nobody waits for this pipe, so it never fills.
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

    /// Its child, which no signal to its group reaches, holds stdout for longer than anybody waits.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_program_that_ended_is_not_waited_for() {
        let command = ["sh", "-c", "setsid sleep 20 & exit 3"].map(str::to_owned);
        let mut child = RunningChild::start(&command).ok().unwrap();
        let end = Instant::now() + Duration::from_secs(15);
        assert!(matches!(
            child.line(end),
            Err(RecvTimeoutError::Disconnected)
        ));
        assert!(Instant::now() < end);
        assert_eq!(child.exit_status().as_deref(), Some("exit status: 3"));
    }

    /// What a wrapper leaves behind may be the server.
    #[cfg(unix)]
    #[test]
    fn what_a_program_left_behind_may_speak() {
        let command = ["sh", "-c", "(sleep 0.2; echo late) & exit 0"].map(str::to_owned);
        let mut child = RunningChild::start(&command).ok().unwrap();
        let end = Instant::now() + Duration::from_secs(15);
        assert!(matches!(child.line(end), Ok(OutputLine::Text(line)) if line == "late"));
        assert!(matches!(
            child.line(end),
            Err(RecvTimeoutError::Disconnected)
        ));
    }

    #[cfg(unix)]
    #[test]
    fn a_program_that_reads_nothing_is_not_waited_for() {
        let command = ["sleep", "600"].map(str::to_owned);
        let child = RunningChild::start(&command).ok().unwrap();
        let end = Instant::now() + Duration::from_millis(100);
        assert!(child.write("short", end).is_ok(), "the pipe takes it");
        let more_than_a_pipe = "x".repeat(1024 * 1024);
        let end = Instant::now() + Duration::from_millis(100);
        assert!(matches!(
            child.write(&more_than_a_pipe, end),
            Err(ProgramFailure::Stuck)
        ));
    }
}
