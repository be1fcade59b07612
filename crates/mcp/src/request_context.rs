//! What a tool, prompt or resource knows about the request it answers.

#![expect(
    deprecated,
    reason = "logging to the client is deprecated, not gone: clients still ask"
)]

use std::sync::OnceLock;

use rmcp::model::{
    LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken,
};
use rmcp::{Peer, RoleServer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::auth::Caller;
use crate::call_observer::MAX_TOUCHED;
use crate::client_hints::ClientHints;
use crate::locale::{self, AppLocales};
use crate::revision::Revision;

/// The key of a modern request's capabilities; ChatGPT sends it on older revisions too.
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The key by which a modern client asks for log messages.
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// One request, as the code that answers it sees it: who calls, in which revision, with which
/// hints, and the way back for progress while the work goes on.
#[derive(Debug)]
pub struct Context {
    pub(crate) caller: Caller,
    pub(crate) revision: Revision,
    pub(crate) meta: RequestMeta,
    pub(crate) cancel: CancellationToken,
    pub(crate) back: Option<NotificationChannel>,
    pub(crate) round: InputRound,
    pub(crate) prose: bool,
    pub(crate) locales: AppLocales,
    /// Whether somebody hears of the call when it has ended.
    pub(crate) watched: bool,
}

/// The request's `_meta`, parsed only when somebody looks.
#[derive(Debug, Default)]
pub(crate) struct RequestMeta {
    raw: Option<Box<RawValue>>,
    parsed: OnceLock<Map<String, Value>>,
}

/// The answers of an earlier round of questions; see [`Ask`](crate::Ask).
#[derive(Debug, Default)]
pub(crate) struct InputRound {
    pub(crate) responses: Option<Map<String, Value>>,
    pub(crate) state: Option<String>,
}

/// The stream on which notifications about this request travel.
#[derive(Debug)]
pub(crate) struct NotificationChannel {
    pub(crate) peer: Peer<RoleServer>,
    pub(crate) progress: Option<ProgressToken>,
}

impl RequestMeta {
    pub(crate) fn new(raw: Option<Box<RawValue>>) -> Self {
        Self {
            raw,
            parsed: OnceLock::new(),
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        let raw = self.raw.as_ref()?;
        self.parsed
            .get_or_init(|| serde_json::from_str(raw.get()).unwrap_or_default())
            .get(key)
    }
}

impl Context {
    /// Who is calling, as verified by the server.
    #[must_use]
    pub const fn caller(&self) -> &Caller {
        &self.caller
    }

    /// What an answer is about, for [`Answer::touched`](crate::Answer::touched): the first
    /// [`MAX_TOUCHED`] of it, and nothing where nobody watches.
    #[must_use]
    pub fn touched<S: AsRef<str>>(&self, things: impl IntoIterator<Item = S>) -> Vec<String> {
        let most = if self.watched { MAX_TOUCHED } else { 0 };
        let things = things.into_iter().take(most);
        things.map(|thing| thing.as_ref().to_owned()).collect()
    }

    /// The revision of the protocol that this request speaks.
    #[must_use]
    pub const fn revision(&self) -> Revision {
        self.revision
    }

    /// A member of the request's `_meta`. The client wrote it: a hint, never a permission.
    #[must_use]
    pub fn meta(&self, key: &str) -> Option<&Value> {
        self.meta.get(key)
    }

    /// The language to answer in: that of [the app's](crate::AppBuilder::locales) which fits what the
    /// user asked for best, by the lookup of RFC 4647; for an app that names none, what the user
    /// asked for, or English.
    #[must_use]
    pub fn locale(&self) -> String {
        let get = |key: &str| self.meta.get(key);
        match self.locales.pick(get) {
            Some(locale) => locale.to_owned(),
            None => locale::requested_locale(get).unwrap_or_else(|| "en".to_owned()),
        }
    }

    /// What the host told about the user, for wording and counting.
    #[must_use]
    pub fn client_hints(&self) -> ClientHints {
        ClientHints::of(|key| self.meta.get(key))
    }

    /// True when the client said, with this request, that it has a capability.
    #[must_use]
    pub fn client_has(&self, capability: &str) -> bool {
        self.meta(CAPABILITIES)
            .and_then(|all| all.get(capability))
            .is_some()
    }

    /// The user's answer to a question of an earlier round.
    #[must_use]
    pub fn response(&self, key: &str) -> Option<&Value> {
        self.round.responses.as_ref()?.get(key)
    }

    /// The state that an earlier round sent along. It passed through the client: check its seal.
    #[must_use]
    pub fn state(&self) -> Option<&str> {
        self.round.state.as_deref()
    }

    /// True once the client has gone or has cancelled; long work should stop then.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Waits until the client has gone or has cancelled.
    pub async fn cancelled(&self) {
        self.cancel.cancelled().await;
    }

    /// Tells the client how far the work is. Does nothing when the client did not ask.
    pub async fn progress(&self, done: f64, total: Option<f64>, message: Option<&str>) {
        let Some(NotificationChannel {
            peer,
            progress: Some(token),
        }) = &self.back
        else {
            return;
        };
        let mut params = ProgressNotificationParam::new(token.clone(), done);
        params.total = total;
        params.message = message.map(str::to_owned);
        if peer.notify_progress(params).await.is_err() {
            tracing::debug!("the client left before its progress arrived");
        }
    }

    /// Sends a log message to the client: always below 2026-07-28, from there on only when the
    /// request asked for that level.
    pub async fn log(&self, level: LogLevel, data: impl Into<Value>) {
        let Some(NotificationChannel { peer, .. }) = &self.back else {
            return;
        };
        let asked = self
            .meta(LOG_LEVEL)
            .and_then(Value::as_str)
            .and_then(LogLevel::parse);
        let wanted = match asked {
            Some(least) => level >= least,
            None => !self.revision.is_modern(),
        };
        if !wanted {
            return;
        }
        let sent = peer
            .notify_logging_message(LoggingMessageNotificationParam::new(
                level.into(),
                data.into(),
            ))
            .await;
        if sent.is_err() {
            tracing::debug!("the client left before its log message arrived");
        }
    }
}

/// How loud a log message is, quietest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// For the developer.
    Debug,
    /// For the record.
    Info,
    /// Something looks wrong.
    Warning,
    /// Something failed.
    Error,
}

impl LogLevel {
    /// Eight levels exist on the wire; those above `error` ask for errors alone.
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "debug" => Self::Debug,
            "info" | "notice" => Self::Info,
            "warning" => Self::Warning,
            "error" | "critical" | "alert" | "emergency" => Self::Error,
            _ => return None,
        })
    }
}

impl From<LogLevel> for LoggingLevel {
    fn from(level: LogLevel) -> Self {
        match level {
            LogLevel::Debug => Self::Debug,
            LogLevel::Info => Self::Info,
            LogLevel::Warning => Self::Warning,
            LogLevel::Error => Self::Error,
        }
    }
}
