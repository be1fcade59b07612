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

use self::child::{OutputLine, RunningChild};
use super::OutgoingRequest;
use super::budget::CheckBudget;
use super::http::MAX_ANSWER;
use crate::exchange::{
    ExchangeError, ProgramOutput, ReceivedResponse, RecordedExchange, SentRequest,
};
use crate::text::printable;

/// The most lines before an answer, messages or not.
const MAX_LINES: usize = 1_000;
/// How long a notification is given to be answered, which it must not be.
const NOTIFICATION_WAIT: Duration = Duration::from_millis(300);
/// The most characters of an answer and of a stray line that are kept for showing.
const MAX_TEXT: usize = 64 * 1024;
const MAX_STRAY: usize = 200;

/// A program that speaks MCP on its pipes.
pub(crate) struct ProgramTarget {
    command: Vec<String>,
    timeout: Duration,
    running: Mutex<Option<RunningChild>>,
    budget: CheckBudget,
}

impl ProgramTarget {
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

    pub(super) fn send(&self, ask: OutgoingRequest) -> RecordedExchange {
        let body = ask.body.unwrap_or_default();
        let began = Instant::now();
        let timeout = ask.timeout.unwrap_or(self.timeout);
        let outcome = self.outcome(&body, ask.id.as_ref(), timeout);
        RecordedExchange {
            sent: SentRequest {
                verb: "stdin".to_owned(),
                url: "←".to_owned(),
                body: body.chars().take(2_000).collect(),
                id: ask.id,
                ..SentRequest::default()
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
    ) -> Result<ReceivedResponse, ExchangeError> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if running.is_none() {
            *running = Some(RunningChild::start(&self.command)?);
        }
        let program = running.as_mut().ok_or(ExchangeError::BudgetSpent)?;
        let end = Instant::now() + timeout;
        let mut output = ProgramOutput::default();
        let outcome = match program.write(body, end) {
            Ok(()) => {
                let end = if id.is_some() {
                    end
                } else {
                    Instant::now() + NOTIFICATION_WAIT
                };
                self.read(program, (id, end), &mut output)
            }
            // What it said before it went says why.
            Err(ProgramFailure::Ended) => match self.read(program, (id, end), &mut output) {
                Err(ProgramFailure::Late) => Err(ProgramFailure::Ended),
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
        if matches!(gone, ProgramFailure::Ended) {
            output.status = program.exit_status();
        }
        output.stderr = program.stderr();
        program.is_late = matches!(gone, ProgramFailure::Late | ProgramFailure::Stuck);
        if !matches!(gone, ProgramFailure::Late) {
            // The next message gets a new program, as a host would start one.
            *running = None;
        }
        Err(match gone {
            ProgramFailure::Failed(failure) => failure,
            ProgramFailure::Ended => ExchangeError::Ended(output),
            ProgramFailure::Late | ProgramFailure::Stuck => ExchangeError::TimedOut(output),
        })
    }

    /// Reads until the answer to the request is there.
    fn read(
        &self,
        program: &mut RunningChild,
        (id, end): (Option<&Value>, Instant),
        output: &mut ProgramOutput,
    ) -> Result<ReceivedResponse, ProgramFailure> {
        let mut received = ReceivedResponse {
            kind: "application/json".to_owned(),
            ..ReceivedResponse::default()
        };
        let mut lines = 0;
        loop {
            if lines == MAX_LINES {
                return Err(ProgramFailure::Failed(ExchangeError::TooManyLines(
                    MAX_LINES,
                )));
            }
            lines += 1;
            let line = match program.line(end) {
                Ok(OutputLine::Text(line)) => line,
                Ok(OutputLine::TooLong) => {
                    return Err(ProgramFailure::Failed(ExchangeError::TooLarge(MAX_ANSWER)));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(ProgramFailure::Ended),
                Err(RecvTimeoutError::Timeout) if id.is_none() => return Ok(received),
                Err(RecvTimeoutError::Timeout) => return Err(ProgramFailure::Late),
            };
            received.bytes += line.len();
            self.budget.count_read(line.len());
            if received.bytes as u64 > MAX_ANSWER {
                return Err(ProgramFailure::Failed(ExchangeError::TooLarge(MAX_ANSWER)));
            }
            received.text = line.chars().take(MAX_TEXT).collect();
            let is_json = received.take(line.as_bytes(), &self.budget);
            if !is_json.map_err(ProgramFailure::Failed)? {
                if !line.trim().is_empty() {
                    received.garbled = true;
                    output
                        .stray
                        .get_or_insert_with(|| printable(&line, MAX_STRAY));
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
enum ProgramFailure {
    /// It closed its output.
    Ended,
    /// It has not answered in time.
    Late,
    /// It has not even read what was sent.
    Stuck,
    Failed(ExchangeError),
}
