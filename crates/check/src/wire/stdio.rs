//! Messages over the pipes of a program that the check starts and ends: one line each way.
//!
//! Nothing here waits for the program without a limit: its output is read and its input written by threads of their
//! own, so that a program that reads nothing, says nothing, floods either pipe or never ends costs a bounded time and
//! a bounded memory.

mod child;

use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use self::child::{Line, RunningChild};
use super::Ask;
use super::budget::CheckBudget;
use super::http::MAX_ANSWER;
use crate::exchange::{Exchange, Failure, ProgramOutput, Received, Sent};
use crate::text::shown;

/// The most lines before an answer, messages or not.
const MAX_LINES: usize = 1_000;
/// How long a notification is given to be answered, which it must not be.
const QUIET: Duration = Duration::from_millis(300);
/// The most characters of an answer and of a stray line that are kept for showing.
const MAX_TEXT: usize = 64 * 1024;
const MAX_STRAY: usize = 200;

/// A program that speaks MCP on its pipes.
pub(crate) struct Program {
    command: Vec<String>,
    timeout: Duration,
    running: Mutex<Option<RunningChild>>,
    budget: CheckBudget,
}

impl Program {
    pub(crate) fn new(command: Vec<String>, timeout: Duration) -> Self {
        Self {
            command,
            timeout,
            running: Mutex::new(None),
            budget: CheckBudget::default(),
        }
    }

    pub(super) fn restart(&self) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        *running = None;
    }

    pub(super) fn budget(&self) -> &CheckBudget {
        &self.budget
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
            *running = Some(RunningChild::start(&self.command)?);
        }
        let program = running.as_mut().ok_or(Failure::Spent)?;
        let end = Instant::now() + timeout;
        let mut output = ProgramOutput::default();
        let outcome = match program.write(body, end) {
            Ok(()) => {
                let end = if id.is_some() {
                    end
                } else {
                    Instant::now() + QUIET
                };
                self.read(program, (id, end), &mut output)
            }
            // What it said before it went says why.
            Err(Gone::Ended) => match self.read(program, (id, end), &mut output) {
                Err(Gone::Late) => Err(Gone::Ended),
                other => other,
            },
            Err(gone) => Err(gone),
        };
        let gone = match outcome {
            Ok(received) => {
                program.is_late &= id.is_none();
                return Ok(received);
            }
            Err(gone) => gone,
        };
        if matches!(gone, Gone::Ended) {
            output.status = program.exit_status();
        }
        output.stderr = program.stderr();
        program.is_late = matches!(gone, Gone::Late | Gone::Stuck);
        if !matches!(gone, Gone::Late) {
            // The next message gets a new program, as a host would start one.
            *running = None;
        }
        Err(match gone {
            Gone::Failed(failure) => failure,
            Gone::Ended => Failure::Ended(output),
            Gone::Late | Gone::Stuck => Failure::TimedOut(output),
        })
    }

    /// Reads until the answer to the request is there.
    fn read(
        &self,
        program: &mut RunningChild,
        (id, end): (Option<&Value>, Instant),
        output: &mut ProgramOutput,
    ) -> Result<Received, Gone> {
        let mut received = Received {
            kind: "application/json".to_owned(),
            ..Received::default()
        };
        let mut lines = 0;
        loop {
            if lines == MAX_LINES {
                return Err(Gone::Failed(Failure::Flooded(MAX_LINES)));
            }
            lines += 1;
            let line = match program.line(end) {
                Ok(Line::Text(line)) => line,
                Ok(Line::TooLong) => return Err(Gone::Failed(Failure::TooLarge(MAX_ANSWER))),
                Err(RecvTimeoutError::Disconnected) => return Err(Gone::Ended),
                Err(RecvTimeoutError::Timeout) if id.is_none() => return Ok(received),
                Err(RecvTimeoutError::Timeout) => return Err(Gone::Late),
            };
            received.bytes += line.len();
            self.budget.count_read(line.len());
            if received.bytes as u64 > MAX_ANSWER {
                return Err(Gone::Failed(Failure::TooLarge(MAX_ANSWER)));
            }
            received.text = line.chars().take(MAX_TEXT).collect();
            let is_json = received.take(line.as_bytes(), &self.budget);
            if !is_json.map_err(Gone::Failed)? {
                if !line.trim().is_empty() {
                    received.garbled = true;
                    output.stray.get_or_insert_with(|| shown(&line, MAX_STRAY));
                }
                continue;
            }
            if id.is_some() && received.ends_with_answer(id) {
                return Ok(received);
            }
        }
    }
}

/// Why the conversation with a program stopped.
enum Gone {
    /// It closed its output.
    Ended,
    /// It has not answered in time.
    Late,
    /// It has not even read what was sent.
    Stuck,
    Failed(Failure),
}
