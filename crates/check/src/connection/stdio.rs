//! Stdio transport of the check: newline-delimited JSON over the pipes of a child process.
//!
//! Every wait has a deadline. Separate threads read the output and write the input, so that a program that reads
//! nothing, writes nothing, floods a pipe or never exits costs bounded time and bounded memory.

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
use crate::text::{printable, truncate_chars};

/// The most lines of output before the response, whether they are messages or not.
const MAX_LINES: usize = 1_000;
/// How long to watch for output after a notification, to which a server must not respond.
const NOTIFICATION_WAIT: Duration = Duration::from_millis(300);
/// The most characters of a response, and of a line that is not JSON, that are kept as evidence.
const MAX_TEXT: usize = 64 * 1024;
const MAX_STRAY: usize = 200;

/// A program that speaks MCP over stdio. It is started on the first request, and again after it has exited.
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

    pub(super) fn send(&self, request: OutgoingRequest) -> RecordedExchange {
        let body = request.body.unwrap_or_default();
        let began = Instant::now();
        let timeout = request.timeout.unwrap_or(self.timeout);
        let outcome = self.outcome(&body, request.id.as_ref(), timeout);
        RecordedExchange {
            sent: SentRequest {
                verb: "stdin".to_owned(),
                url: "←".to_owned(),
                body: truncate_chars(&body, 2_000).to_owned(),
                id: request.id,
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
        let deadline = Instant::now() + timeout;
        let mut output = ProgramOutput::default();
        let outcome = match program.write(body, deadline) {
            Ok(()) => {
                let deadline = if id.is_some() {
                    deadline
                } else {
                    Instant::now() + NOTIFICATION_WAIT
                };
                self.read(program, id, deadline, &mut output)
            }
            // The output before the exit may say why the program exited.
            Err(ProgramFailure::Ended) => match self.read(program, id, deadline, &mut output) {
                Err(ProgramFailure::Late) => Err(ProgramFailure::Ended),
                other => other,
            },
            Err(failure) => Err(failure),
        };
        let failure = match outcome {
            Ok(received) => {
                program.is_late &= id.is_none();
                return Ok(received);
            }
            Err(failure) => failure,
        };
        if matches!(failure, ProgramFailure::Ended) {
            output.status = program.exit_status();
        }
        output.stderr = program.stderr();
        program.is_late = matches!(failure, ProgramFailure::Late | ProgramFailure::Stuck);
        if !matches!(failure, ProgramFailure::Late) {
            // The next message starts a new process, as a host would.
            *running = None;
        }
        Err(match failure {
            ProgramFailure::Failed(failure) => failure,
            ProgramFailure::Ended => ExchangeError::Ended(output),
            ProgramFailure::Late | ProgramFailure::Stuck => ExchangeError::TimedOut(output),
        })
    }

    /// Reads lines until the response to the request arrives; for a notification, until the deadline.
    fn read(
        &self,
        program: &mut RunningChild,
        id: Option<&Value>,
        deadline: Instant,
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
            let line = match program.line(deadline) {
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
            received.text = truncate_chars(&line, MAX_TEXT).to_owned();
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

/// Why a program gave no response. `Ended` means that it closed its output, and `Failed` carries any other error.
enum ProgramFailure {
    Ended,
    /// There was no response before the deadline; the process may still recover.
    Late,
    /// The process did not read its stdin before the deadline; a retry would block as well.
    Stuck,
    Failed(ExchangeError),
}
