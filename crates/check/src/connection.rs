//! A message into an exchange, over HTTP or over the pipes of a program; counts what was spent.

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

/// The most requests of one check.
const MAX_EXCHANGES: usize = 400;
/// The most time for one check; what is left then is skipped.
const MAX_TIME: Duration = Duration::from_secs(300);

/// Something to send.
#[derive(Debug, Clone, Default)]
pub(crate) struct OutgoingRequest {
    pub verb: Option<&'static str>,
    /// Another address than the one that is checked.
    pub url: Option<String>,
    /// Headers of this request, in place of the usual ones of the same name; an empty value takes one out.
    pub headers: Vec<(String, String)>,
    pub body: Option<String>,
    pub id: Option<Value>,
    pub timeout: Option<Duration>,
    /// Whether the token is left out.
    pub anonymous: bool,
}

impl OutgoingRequest {
    /// A plain GET of another address.
    pub(crate) fn get(url: &str) -> Self {
        Self {
            verb: Some("GET"),
            url: Some(url.to_owned()),
            ..Self::default()
        }
    }

    /// A POST of any text.
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

/// The way to a server.
pub(crate) struct TargetConnection {
    way: TargetTransport,
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

    fn new(way: TargetTransport) -> Self {
        Self {
            way,
            log: Mutex::default(),
            sent: AtomicUsize::new(0),
            began: Instant::now(),
        }
    }

    /// The HTTP client; `None` for a program.
    pub(crate) fn as_http(&self) -> Option<&HttpTarget> {
        match &self.way {
            TargetTransport::Http(http) => Some(http),
            TargetTransport::Program(_) => None,
        }
    }

    /// Starts the program anew, so that it can be greeted again. HTTP needs no such thing.
    pub(crate) fn restart(&self) {
        if let TargetTransport::Program(program) = &self.way {
            program.restart();
        }
    }

    /// Sends and waits.
    pub(crate) fn send(&self, ask: OutgoingRequest) -> Arc<RecordedExchange> {
        let exchange = Arc::new(self.exchange(ask));
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.push(Arc::clone(&exchange));
        exchange
    }

    /// Sends what holds secrets: nobody keeps the exchange but the caller.
    pub(crate) fn send_unlogged(&self, ask: OutgoingRequest) -> RecordedExchange {
        self.exchange(ask)
    }

    /// Everything that was sent and received so far.
    pub(crate) fn log(&self) -> Vec<Arc<RecordedExchange>> {
        self.log
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn exchange(&self, ask: OutgoingRequest) -> RecordedExchange {
        let sent = self.sent.fetch_add(1, Ordering::Relaxed);
        if sent >= MAX_EXCHANGES || self.budget().is_spent() || self.began.elapsed() > MAX_TIME {
            return RecordedExchange {
                sent: SentRequest {
                    id: ask.id,
                    ..SentRequest::default()
                },
                outcome: Err(ExchangeError::BudgetSpent),
                took: Duration::ZERO,
            };
        }
        let exchange = match &self.way {
            TargetTransport::Http(http) => http.send(ask),
            TargetTransport::Program(program) => program.send(ask),
        };
        let shown = exchange.received().map_or(0, ReceivedResponse::shown_bytes);
        self.budget().count_kept(shown);
        exchange
    }

    fn budget(&self) -> &CheckBudget {
        match &self.way {
            TargetTransport::Http(http) => http.budget(),
            TargetTransport::Program(program) => program.budget(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nobody listens on port 1, so every request fails at once.
    fn wire() -> TargetConnection {
        let http = HttpTarget::new("http://127.0.0.1:1/", Duration::from_secs(5), "x", None);
        TargetConnection::http(http.ok().unwrap())
    }

    fn is_spent(wire: &TargetConnection) -> bool {
        wire.send(OutgoingRequest::post("")).was_not_sent()
    }

    #[test]
    fn a_check_asks_only_so_often() {
        let wire = wire();
        let spent = (0..MAX_EXCHANGES).filter(|_| is_spent(&wire)).count();
        assert_eq!(spent, 0);
        assert!(is_spent(&wire));
    }

    #[test]
    fn a_check_keeps_only_so_much() {
        let wire = wire();
        wire.budget().count_kept(budget::MAX_KEPT);
        assert!(!is_spent(&wire));
        wire.budget().count_kept(1);
        assert!(is_spent(&wire));
    }

    #[test]
    fn a_check_takes_only_so_long() {
        let mut wire = wire();
        assert!(!is_spent(&wire));
        wire.began = Instant::now()
            .checked_sub(MAX_TIME + Duration::from_secs(1))
            .unwrap();
        assert!(is_spent(&wire));
    }
}
