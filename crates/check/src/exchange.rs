//! One request and what came back, kept so that rules can judge it and a report can show it.

use std::time::Duration;

use serde_json::Value;

use crate::text::printable;

/// The most characters of a request or an answer that a report shows.
const MAX_EVIDENCE: usize = 600;

/// What was sent.
#[derive(Debug, Clone, Default)]
pub(crate) struct SentRequest {
    pub verb: String,
    pub url: String,
    /// The headers worth showing; secrets are left out when they are recorded.
    pub headers: Vec<(String, String)>,
    pub body: String,
    /// The id of the request in it, when it is a JSON-RPC request.
    pub id: Option<Value>,
}

/// What came back.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReceivedResponse {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    /// The media type without its parameters, in lower case.
    pub kind: String,
    /// The beginning of the body.
    pub text: String,
    /// How many bytes of the body were read.
    pub bytes: usize,
    /// The JSON in the body, one value for each event of a stream.
    pub messages: Vec<Value>,
    /// The memory that those take, in bytes.
    pub parsed_bytes: usize,
    /// True where the body should have been JSON and was not.
    pub garbled: bool,
}

impl ReceivedResponse {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self
            .headers
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The memory of what is kept for showing, in bytes.
    pub(crate) fn shown_bytes(&self) -> usize {
        let headers = self.headers.iter();
        let headers = headers.map(|(name, value)| name.len() + value.len());
        self.text.len() + headers.sum::<usize>()
    }

    /// Whether the status says that all is well.
    pub(crate) fn is_ok(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// Why nothing came back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ExchangeError {
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    #[error("the connection is refused")]
    ConnectionRefused,
    #[error("the host's name cannot be looked up")]
    NoSuchHost,
    #[error("no TLS connection comes about: {0}")]
    Tls(String),
    #[error("what comes back is not HTTP: {0}")]
    NotHttp(String),
    #[error(
        "the address was not called: a server may lead the check only to addresses as public as its own"
    )]
    OutOfReach,
    #[error("the server did not answer in time{0}")]
    TimedOut(ProgramOutput),
    #[error("the answer has more than {0} bytes")]
    TooLarge(u64),
    #[error("the JSON of the answer takes more than {0} bytes of memory")]
    TooMuchJson(usize),
    #[error("more than {0} lines came before the answer")]
    TooManyLines(usize),
    #[error("`{program}` cannot be started: {why}")]
    NotStarted {
        program: String,
        why: String,
        /// Whether there is no such program at all.
        is_missing: bool,
    },
    #[error("the program ended{0}")]
    Ended(ProgramOutput),
    #[error("the check has asked all it may ask")]
    BudgetSpent,
}

/// What a program left behind that did not answer. Empty for servers with an address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ProgramOutput {
    /// How it ended, such as `exit status: 1`.
    pub status: Option<String>,
    /// The last lines that it wrote to stderr.
    pub stderr: Vec<String>,
    /// The first line on stdout that is no JSON.
    pub stray: Option<String>,
}

impl std::fmt::Display for ProgramOutput {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(status) = &self.status {
            write!(out, " ({status})")?;
        }
        if let Some(stray) = &self.stray {
            write!(out, "; stdout: {stray}")?;
        }
        if !self.stderr.is_empty() {
            write!(out, "; stderr: {}", self.stderr.join(" / "))?;
        }
        Ok(())
    }
}

impl ExchangeError {
    /// A server with an address that did not answer in time.
    pub(crate) fn timed_out() -> Self {
        Self::TimedOut(ProgramOutput::default())
    }

    pub(crate) fn is_timeout(&self) -> bool {
        matches!(self, Self::TimedOut(_))
    }
}

/// A request with its answer, or with the reason why there is none.
#[derive(Debug, Clone)]
pub(crate) struct RecordedExchange {
    pub sent: SentRequest,
    pub outcome: Result<ReceivedResponse, ExchangeError>,
    pub took: Duration,
}

impl RecordedExchange {
    pub(crate) fn received(&self) -> Option<&ReceivedResponse> {
        self.outcome.as_ref().ok()
    }

    pub(crate) fn status(&self) -> Option<u16> {
        self.received().map(|received| received.status)
    }

    /// The message that answers the request, by its id.
    pub(crate) fn answer(&self) -> Option<&Value> {
        let id = self.sent.id.as_ref()?;
        let fits =
            |message: &&Value| message.get("id") == Some(id) && message.get("method").is_none();
        self.received()?.messages.iter().find(fits)
    }

    /// The result in the answer.
    pub(crate) fn result(&self) -> Option<&Value> {
        self.answer()?.get("result")
    }

    /// The error in the answer; one without an id counts, since a server may not have read it.
    pub(crate) fn error(&self) -> Option<&Value> {
        let with_error = |message: &&Value| message.get("error").is_some_and(Value::is_object);
        let messages = &self.received()?.messages;
        self.answer()
            .filter(with_error)
            .or_else(|| messages.iter().find(with_error))?
            .get("error")
    }

    /// The code of that error.
    pub(crate) fn error_code(&self) -> Option<i64> {
        self.error()?.get("code")?.as_i64()
    }

    /// Whether the server failed, rather than refused: it broke, hung up, or said nothing.
    pub(crate) fn has_server_failed(&self) -> bool {
        match &self.outcome {
            Ok(received) => received.status >= 500,
            Err(_) => !self.was_not_sent(),
        }
    }

    /// Whether the check itself had no more to spend, or would not call the address.
    pub(crate) fn was_not_sent(&self) -> bool {
        let failure = self.outcome.as_ref().err();
        failure.is_some_and(|failure| {
            matches!(
                failure,
                ExchangeError::BudgetSpent | ExchangeError::OutOfReach
            )
        })
    }

    /// What was sent, on one line.
    pub(crate) fn sent_line(&self) -> String {
        let SentRequest {
            verb,
            url,
            headers,
            body,
            ..
        } = &self.sent;
        let headers: String = headers
            .iter()
            .map(|(name, value)| format!(" {name}: {value};"))
            .collect();
        evidence_line(&format!("{verb} {url}{headers} {body}"))
    }

    /// What came back, on one line.
    pub(crate) fn received_line(&self) -> String {
        match &self.outcome {
            Ok(received) if received.status == 0 => evidence_line(&received.text),
            Ok(received) => {
                let ReceivedResponse {
                    status, kind, text, ..
                } = received;
                evidence_line(&format!("{status} {kind} {text}"))
            }
            Err(failure) => evidence_line(&failure.to_string()),
        }
    }
}

fn evidence_line(text: &str) -> String {
    printable(text.trim(), MAX_EVIDENCE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn exchange(messages: Vec<Value>) -> RecordedExchange {
        RecordedExchange {
            sent: SentRequest {
                id: Some(json!("a")),
                ..SentRequest::default()
            },
            outcome: Ok(ReceivedResponse {
                status: 200,
                messages,
                ..ReceivedResponse::default()
            }),
            took: Duration::ZERO,
        }
    }

    #[test]
    fn the_answer_is_the_message_with_the_id_of_the_request() {
        let progress = json!({"method": "notifications/progress"});
        let question = json!({"id": "a", "method": "ping"});
        let found = exchange(vec![progress, question, json!({"id": "a", "result": 5})]);
        assert_eq!(found.result(), Some(&json!(5)));
        assert_eq!(exchange(vec![json!({"id": 1, "result": 5})]).answer(), None);
    }

    #[test]
    fn an_error_needs_no_id() {
        let refused = exchange(vec![json!({"id": null, "error": {"code": -32700}})]);
        assert_eq!(refused.error_code(), Some(-32700));
        assert!(!refused.has_server_failed());
    }
}
