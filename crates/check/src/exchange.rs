//! A recorded request with its response, or with the error in place of one.
//!
//! Rules evaluate these records and reports show them as evidence, so secrets such as tokens are left out when a record
//! is made.

use std::time::Duration;

use serde_json::Value;

use crate::text::printable;

/// The longest line of evidence in a report, in characters.
const MAX_EVIDENCE: usize = 600;

/// The request half of a recorded exchange.
#[derive(Debug, Clone, Default)]
pub(crate) struct SentRequest {
    pub verb: String,
    pub url: String,
    /// The headers worth showing, without credentials.
    pub headers: Vec<(String, String)>,
    pub body: String,
    /// The id, where the body is a JSON-RPC request.
    pub id: Option<Value>,
}

/// The response half of a recorded exchange.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReceivedResponse {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    /// The media type of the body without its parameters, in lower case.
    pub kind: String,
    pub text: String,
    /// The number of bytes of the body that were read; `text` may hold fewer.
    pub bytes: usize,
    /// The JSON-RPC messages in the body: one for a JSON body, one for each event of an event stream.
    pub messages: Vec<Value>,
    /// The estimated memory of the parsed messages, in bytes.
    pub parsed_bytes: usize,
    /// Whether the body should have been JSON and was not.
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

    /// The memory of the text and the headers that are kept as evidence, in bytes.
    pub(crate) fn shown_bytes(&self) -> usize {
        let headers = self.headers.iter();
        let headers = headers.map(|(name, value)| name.len() + value.len());
        self.text.len() + headers.sum::<usize>()
    }

    /// Whether the status is in the range 200 to 299.
    pub(crate) fn is_ok(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// Why there is no response to a request. The messages appear in findings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ExchangeError {
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    #[error("the connection is refused")]
    ConnectionRefused,
    #[error("the host name cannot be resolved")]
    NoSuchHost,
    #[error("the TLS handshake failed: {0}")]
    Tls(String),
    #[error("the response is not HTTP: {0}")]
    NotHttp(String),
    #[error(
        "the address was not called: it is less public than the server that names it (SSRF protection)"
    )]
    BlockedAddress,
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
        /// Whether the program does not exist, rather than fails to start.
        is_missing: bool,
    },
    #[error("the program ended{0}")]
    Ended(ProgramOutput),
    #[error("the budget of the check is spent: requests, time or memory")]
    BudgetSpent,
}

/// The output of a program that did not answer, as evidence. Empty for HTTP servers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ProgramOutput {
    /// The exit status, such as `exit status: 1`.
    pub status: Option<String>,
    /// The last lines of stderr.
    pub stderr: Vec<String>,
    /// The first line of stdout that is not JSON.
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
    /// A timeout of an HTTP server, which has no program output.
    pub(crate) fn timed_out() -> Self {
        Self::TimedOut(ProgramOutput::default())
    }

    pub(crate) fn is_timeout(&self) -> bool {
        matches!(self, Self::TimedOut(_))
    }
}

/// A request with its response or error, and how long it took.
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

    /// The JSON-RPC response that has the id of the request.
    pub(crate) fn answer(&self) -> Option<&Value> {
        let id = self.sent.id.as_ref()?;
        let fits =
            |message: &&Value| message.get("id") == Some(id) && message.get("method").is_none();
        self.received()?.messages.iter().find(fits)
    }

    /// The `result` of the JSON-RPC response.
    pub(crate) fn result(&self) -> Option<&Value> {
        self.answer()?.get("result")
    }

    /// The `error` of the JSON-RPC response. An error without an id counts too, since a server that could not parse the
    /// request does not know its id.
    pub(crate) fn error(&self) -> Option<&Value> {
        let with_error = |message: &&Value| message.get("error").is_some_and(Value::is_object);
        let messages = &self.received()?.messages;
        self.answer()
            .filter(with_error)
            .or_else(|| messages.iter().find(with_error))?
            .get("error")
    }

    pub(crate) fn error_code(&self) -> Option<i64> {
        self.error()?.get("code")?.as_i64()
    }

    /// Whether the server failed rather than refused: status 500 and above, a closed connection, or a timeout.
    pub(crate) fn has_server_failed(&self) -> bool {
        match &self.outcome {
            Ok(received) => received.status >= 500,
            Err(_) => !self.was_not_sent(),
        }
    }

    /// Whether the check itself did not send the request: its budget was spent, or the address was blocked.
    pub(crate) fn was_not_sent(&self) -> bool {
        let failure = self.outcome.as_ref().err();
        failure.is_some_and(|failure| {
            matches!(
                failure,
                ExchangeError::BudgetSpent | ExchangeError::BlockedAddress
            )
        })
    }

    /// The request as one line of evidence.
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

    /// The response or the error as one line of evidence.
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
