//! Messages over the pipes of a program that the check starts and ends: one line each way.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Ask;
use super::http::MAX_ANSWER;
use crate::exchange::{Exchange, Failure, Received, Sent};

/// Lines that wait to be read; a program that writes more waits.
const MAX_WAITING: usize = 64;
/// How long a program may take to end once its input is closed.
const FAREWELL: Duration = Duration::from_secs(3);
/// How long a notification is given to be answered, which it must not be.
const QUIET: Duration = Duration::from_millis(300);

/// A program that speaks MCP on its pipes.
pub(crate) struct Program {
    command: Vec<String>,
    timeout: Duration,
    running: Mutex<Option<Running>>,
}

struct Running {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Line>,
}

enum Line {
    Text(String),
    TooLong,
}

impl Program {
    pub(crate) fn new(command: Vec<String>, timeout: Duration) -> Self {
        Self {
            command,
            timeout,
            running: Mutex::new(None),
        }
    }

    pub(super) fn restart(&self) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        *running = None;
    }

    pub(super) fn send(&self, ask: Ask) -> Exchange {
        let body = ask.body.unwrap_or_default();
        let began = Instant::now();
        let timeout = ask.timeout.unwrap_or(self.timeout);
        let outcome = self.outcome(&body, ask.id.as_ref(), timeout);
        Exchange {
            sent: Sent {
                verb: "stdin".to_owned(),
                url: "←".to_owned(),
                body: body.chars().take(2_000).collect(),
                id: ask.id,
                ..Sent::default()
            },
            outcome,
            took: began.elapsed(),
        }
    }

    fn outcome(
        &self,
        body: &str,
        id: Option<&Value>,
        timeout: Duration,
    ) -> Result<Received, Failure> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if running.is_none() {
            *running = Some(Running::start(&self.command)?);
        }
        let program = running.as_mut().ok_or(Failure::Ended)?;
        let input = program.input.as_mut().ok_or(Failure::Ended)?;
        let written = writeln!(input, "{body}").and_then(|()| input.flush());
        let outcome = match written {
            Ok(()) => program.read(id, if id.is_some() { timeout } else { QUIET }),
            Err(_) => Err(Failure::Ended),
        };
        if outcome.as_ref().err() == Some(&Failure::Ended) {
            // The next message gets a new program, as a host would start one.
            *running = None;
        }
        outcome
    }
}

impl Running {
    fn start(command: &[String]) -> Result<Self, Failure> {
        let (name, arguments) = command
            .split_first()
            .ok_or_else(|| Failure::Unreachable("no command".to_owned()))?;
        let mut child = Command::new(name)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| Failure::Unreachable(format!("`{name}`: {error}")))?;
        let (sender, lines) = sync_channel(MAX_WAITING);
        if let Some(output) = child.stdout.take() {
            std::thread::spawn(move || read_lines(output, &sender));
        }
        Ok(Self {
            input: child.stdin.take(),
            child,
            lines,
        })
    }

    /// Reads until the answer to the request is there.
    fn read(&self, id: Option<&Value>, timeout: Duration) -> Result<Received, Failure> {
        let end = Instant::now() + timeout;
        let mut received = Received {
            kind: "application/json".to_owned(),
            ..Received::default()
        };
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let line = match self.lines.recv_timeout(left) {
                Ok(Line::Text(line)) => line,
                Ok(Line::TooLong) => return Err(Failure::TooLarge(MAX_ANSWER)),
                Err(RecvTimeoutError::Disconnected) => return Err(Failure::Ended),
                Err(RecvTimeoutError::Timeout) if id.is_none() => return Ok(received),
                Err(RecvTimeoutError::Timeout) => return Err(Failure::TimedOut),
            };
            received.bytes += line.len();
            received.text = line.chars().take(64 * 1024).collect();
            match serde_json::from_str::<Value>(&line) {
                Ok(Value::Array(messages)) => received.messages.extend(messages),
                Ok(message) => received.messages.push(message),
                Err(_) => {
                    received.garbled |= !line.trim().is_empty();
                    continue;
                }
            }
            let answers = |m: &Value| m.get("id") == id && m.get("method").is_none();
            let refuses = |m: &Value| m.get("error").is_some();
            if id.is_some()
                && received
                    .messages
                    .last()
                    .is_some_and(|m| answers(m) || refuses(m))
            {
                return Ok(received);
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Closing its input asks the program to end; one that does not is ended.
        drop(self.input.take());
        let end = Instant::now() + FAREWELL;
        while Instant::now() < end {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read_lines(output: impl Read, sender: &SyncSender<Line>) {
    let mut reader = BufReader::new(output);
    loop {
        let mut line = Vec::new();
        let read = reader
            .by_ref()
            .take(MAX_ANSWER + 1)
            .read_until(b'\n', &mut line);
        let line = match read {
            Ok(0) | Err(_) => return,
            Ok(length) if length as u64 > MAX_ANSWER => Line::TooLong,
            Ok(_) => Line::Text(String::from_utf8_lossy(&line).trim_end().to_owned()),
        };
        let is_end = matches!(line, Line::TooLong);
        if sender.send(line).is_err() || is_end {
            return;
        }
    }
}
