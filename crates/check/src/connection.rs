//! The connection to the checked server, over HTTP or stdio: sends requests, records the exchanges and enforces the
//! budget of the check (400 requests, 300 seconds, and the memory limits in `budget`).

mod bounded_json;
mod budget;
pub(crate) mod http;
mod network;
pub(crate) mod stdio;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::exchange::{ExchangeError, ReceivedResponse, RecordedExchange, SentRequest};
use budget::CheckBudget;
use http::HttpTarget;
use stdio::ProgramTarget;

/// The most requests that one check sends.
const MAX_EXCHANGES: usize = 400;
/// The longest that one check may take; rules whose requests were not sent by then are skipped.
const MAX_TIME: Duration = Duration::from_secs(300);

/// A request before it is sent. Fields that are `None` take the defaults of the connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct OutgoingRequest {
    pub verb: Option<&'static str>,
    /// A URL other than the endpoint that is checked.
    pub url: Option<String>,
    /// Headers that replace the default ones of the same name; an empty value removes a header.
    pub headers: Vec<(String, String)>,
    pub body: Option<String>,
    pub id: Option<Value>,
    pub timeout: Option<Duration>,
    /// Whether to omit the access token.
    pub anonymous: bool,
}

impl OutgoingRequest {
    pub(crate) fn get(url: &str) -> Self {
        Self {
            verb: Some("GET"),
            url: Some(url.to_owned()),
            ..Self::default()
        }
    }

    pub(crate) fn post(body: impl Into<String>) -> Self {
        Self {
            body: Some(body.into()),
            ..Self::default()
        }
    }

    pub(crate) fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers
            .retain(|(key, _)| !key.eq_ignore_ascii_case(name));
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    pub(crate) fn anonymous(mut self) -> Self {
        self.anonymous = true;
        self
    }
}

/// The connection to the server under check, with the log of everything that was exchanged over it.
pub(crate) struct TargetConnection {
    transport: TargetTransport,
    log: Mutex<Vec<Arc<RecordedExchange>>>,
    sent: AtomicUsize,
    began: Instant,
}

enum TargetTransport {
    Http(HttpTarget),
    Program(ProgramTarget),
}

impl TargetConnection {
    pub(crate) fn http(http: HttpTarget) -> Self {
        Self::new(TargetTransport::Http(http))
    }

    pub(crate) fn program(program: ProgramTarget) -> Self {
        Self::new(TargetTransport::Program(program))
    }

    fn new(transport: TargetTransport) -> Self {
        Self {
            transport,
            log: Mutex::default(),
            sent: AtomicUsize::new(0),
            began: Instant::now(),
        }
    }

    /// The HTTP client; `None` for a stdio program.
    pub(crate) fn as_http(&self) -> Option<&HttpTarget> {
        match &self.transport {
            TargetTransport::Http(http) => Some(http),
            TargetTransport::Program(_) => None,
        }
    }

    /// Restarts a stdio program, so that a new handshake meets a fresh process. HTTP servers need no restart.
    pub(crate) fn restart(&self) {
        if let TargetTransport::Program(program) = &self.transport {
            program.restart();
        }
    }

    /// Sends a request, waits for the response and logs the exchange.
    pub(crate) fn send(&self, request: OutgoingRequest) -> Arc<RecordedExchange> {
        let exchange = Arc::new(self.exchange(request));
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.push(Arc::clone(&exchange));
        exchange
    }

    /// Sends a request that contains secrets, such as an authorization code: the exchange is not logged.
    pub(crate) fn send_unlogged(&self, request: OutgoingRequest) -> RecordedExchange {
        self.exchange(request)
    }

    /// A copy of the log: every exchange so far, in order.
    pub(crate) fn log(&self) -> Vec<Arc<RecordedExchange>> {
        self.log
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn exchange(&self, request: OutgoingRequest) -> RecordedExchange {
        let sent = self.sent.fetch_add(1, Ordering::Relaxed);
        if sent >= MAX_EXCHANGES || self.budget().is_spent() || self.began.elapsed() > MAX_TIME {
            return RecordedExchange {
                sent: SentRequest {
                    id: request.id,
                    ..SentRequest::default()
                },
                outcome: Err(ExchangeError::BudgetSpent),
                took: Duration::ZERO,
            };
        }
        let exchange = match &self.transport {
            TargetTransport::Http(http) => http.send(request),
            TargetTransport::Program(program) => program.send(request),
        };
        let shown = exchange.received().map_or(0, ReceivedResponse::shown_bytes);
        self.budget().count_kept(shown);
        exchange
    }

    fn budget(&self) -> &CheckBudget {
        match &self.transport {
            TargetTransport::Http(http) => http.budget(),
            TargetTransport::Program(program) => program.budget(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nobody listens on port 1, so every request fails at once.
    fn connection() -> TargetConnection {
        let http = HttpTarget::new("http://127.0.0.1:1/", Duration::from_secs(5), "x", None);
        TargetConnection::http(http.ok().unwrap())
    }

    fn is_spent(connection: &TargetConnection) -> bool {
        connection.send(OutgoingRequest::post("")).was_not_sent()
    }

    #[test]
    fn a_check_asks_only_so_often() {
        let connection = connection();
        let spent = (0..MAX_EXCHANGES).filter(|_| is_spent(&connection)).count();
        assert_eq!(spent, 0);
        assert!(is_spent(&connection));
    }

    #[test]
    fn a_check_keeps_only_so_much() {
        let connection = connection();
        connection.budget().count_kept(budget::MAX_KEPT);
        assert!(!is_spent(&connection));
        connection.budget().count_kept(1);
        assert!(is_spent(&connection));
    }

    #[test]
    fn a_check_takes_only_so_long() {
        let mut connection = connection();
        assert!(!is_spent(&connection));
        connection.began = Instant::now()
            .checked_sub(MAX_TIME + Duration::from_secs(1))
            .unwrap();
        assert!(is_spent(&connection));
    }
}
