//! The request context: what a tool, prompt or resource knows about the request it answers.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::auth::Caller;
use crate::client_hints::ClientHints;
use crate::locale::{self, AppLocales};
use crate::reply::{ReplySender, Undelivered};
use crate::request_meta::RequestMeta;
use crate::revision::Revision;
use crate::rpc::{RequestId, RpcError};
use crate::rpc_message::RpcParams;

/// Maximum number of subjects in [`CallRecord::touched`](crate::CallRecord::touched). A list of results has at most a hundred.
pub const MAX_TOUCHED: usize = 256;

/// The `_meta` key of the client capabilities. ChatGPT sends it on older revisions too.
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The `_meta` key with which clients of 2026-07-28 request log messages.
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// The context of one request: the verified caller, the protocol revision, the hints of the host, cancellation, and
/// the channel for progress and log messages.
///
/// ```rust
/// use docent_mcp::{Answer, Context, Failure};
///
/// async fn survey(context: Context) -> Result<Answer<u32>, Failure> {
///     let mut done = 0;
///     while done < 10 && !context.is_cancelled() {
///         done += 1;
///         context.progress(f64::from(done), Some(10.0), Some("surveying")).await;
///     }
///     Ok(Answer::new(done))
/// }
/// # let _ = survey;
/// ```
#[derive(Debug)]
pub struct Context {
    pub(crate) caller: Caller,
    pub(crate) revision: Revision,
    pub(crate) meta: RequestMeta,
    pub(crate) cancel: CancellationToken,
    pub(crate) notifications: Option<NotificationChannel>,
    pub(crate) round: InputRound,
    pub(crate) prose: bool,
    pub(crate) locales: AppLocales,
    /// Whether an observer receives the call, so that collecting its subjects is worth the work.
    pub(crate) is_observed: bool,
}

/// The responses to an earlier round of input requests, and its state; see [`Elicitation`](crate::Elicitation).
#[derive(Debug, Default)]
pub(crate) struct InputRound {
    pub(crate) responses: Option<Map<String, Value>>,
    pub(crate) state: Option<String>,
}

/// The parameters that every method has: its `_meta`, and an earlier round of input requests.
#[derive(Debug)]
pub(crate) struct ContextParams {
    pub(crate) meta: Option<Box<RawValue>>,
    pub(crate) round: InputRound,
}

impl ContextParams {
    pub(crate) fn parse(params: &RpcParams<'_>) -> Result<Self, RpcError> {
        Ok(Self {
            meta: params.meta.map(ToOwned::to_owned),
            round: InputRound::parse(params)?,
        })
    }
}

/// The channel for notifications about this request, with the progress token if the client wants progress.
#[derive(Debug)]
pub(crate) struct NotificationChannel {
    pub(crate) reply: ReplySender,
    pub(crate) progress: Option<RequestId>,
}

impl NotificationChannel {
    /// Sends a notification. It waits while the client reads more slowly than the work sends.
    pub(crate) async fn send(&self, method: &str, params: Value) -> Result<(), Undelivered> {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        self.reply.notify(message.to_string()).await
    }
}

impl Context {
    /// Returns the caller, as verified by the server.
    #[must_use]
    pub const fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Collects the subjects of an answer for [`Answer::touched`](crate::Answer::touched): at most [`MAX_TOUCHED`],
    /// and none if the app has no observer.
    #[must_use]
    pub fn touched<S: AsRef<str>>(&self, things: impl IntoIterator<Item = S>) -> Vec<String> {
        let most = if self.is_observed { MAX_TOUCHED } else { 0 };
        let things = things.into_iter().take(most);
        things.map(|thing| thing.as_ref().to_owned()).collect()
    }

    /// Returns the protocol revision of this request.
    #[must_use]
    pub const fn revision(&self) -> Revision {
        self.revision
    }

    /// Returns a member of the request's `_meta`. The client wrote it, so treat it as a hint and never as a
    /// permission.
    #[must_use]
    pub fn meta(&self, key: &str) -> Option<&Value> {
        self.meta.get(key)
    }

    /// Returns the language to answer in: the one of [the app's languages](crate::AppBuilder::locales) that best
    /// matches the user's, by the lookup of RFC 4647. For an app without a list it is the user's language, or
    /// English.
    #[must_use]
    pub fn locale(&self) -> String {
        let get = |key: &str| self.meta.get(key);
        match self.locales.pick(get) {
            Some(locale) => locale.to_owned(),
            None => locale::requested_locale(get).unwrap_or_else(|| "en".to_owned()),
        }
    }

    /// Returns the hints of the host about its user, for wording and rate limits.
    #[must_use]
    pub fn client_hints(&self) -> ClientHints {
        ClientHints::of(|key| self.meta.get(key))
    }

    /// Whether the client declared a capability with this request.
    #[must_use]
    pub fn client_has(&self, capability: &str) -> bool {
        self.meta(CAPABILITIES)
            .and_then(|all| all.get(capability))
            .is_some()
    }

    /// Returns the response to the input request `key` of an earlier round.
    #[must_use]
    pub fn response(&self, key: &str) -> Option<&Value> {
        self.round.responses.as_ref()?.get(key)
    }

    /// Returns the state of an earlier round. It passed through the client, so verify its signature.
    #[must_use]
    pub fn state(&self) -> Option<&str> {
        self.round.state.as_deref()
    }

    /// Whether the client has cancelled or disconnected; long work should stop then.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Completes when the client cancels or disconnects.
    pub async fn cancelled(&self) {
        self.cancel.cancelled().await;
    }

    /// Sends a progress notification. Does nothing if the client did not ask for progress.
    pub async fn progress(&self, done: f64, total: Option<f64>, message: Option<&str>) {
        let Some(notifications) = &self.notifications else {
            return;
        };
        let Some(token) = &notifications.progress else {
            return;
        };
        let mut params = Map::new();
        params.insert("progressToken".to_owned(), json!(token));
        params.insert("progress".to_owned(), done.into());
        params.extend(total.map(|total| ("total".to_owned(), total.into())));
        params.extend(message.map(|message| ("message".to_owned(), message.into())));
        let sent = notifications
            .send("notifications/progress", params.into())
            .await;
        if sent.is_err() {
            tracing::debug!("client disconnected before a progress notification");
        }
    }

    /// Sends a log message to the client. Before 2026-07-28 clients get all levels; since then only the level that
    /// the request asked for, and above.
    pub async fn log(&self, level: LogLevel, data: impl Into<Value>) {
        let Some(notifications) = &self.notifications else {
            return;
        };
        let requested = self
            .meta(LOG_LEVEL)
            .and_then(Value::as_str)
            .and_then(LogLevel::parse);
        let wanted = match requested {
            Some(least) => level >= least,
            None => !self.revision.is_modern(),
        };
        if !wanted {
            return;
        }
        let params = json!({"level": level.as_str(), "data": data.into()});
        let sent = notifications.send("notifications/message", params).await;
        if sent.is_err() {
            tracing::debug!("client disconnected before a log message");
        }
    }
}

/// The severity of a log message, lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Details that only a developer needs.
    Debug,
    /// Normal events that are worth recording.
    Info,
    /// Something looks wrong, but the work goes on.
    Warning,
    /// A part of the work has failed.
    Error,
}

impl LogLevel {
    /// The protocol has eight levels. Those above `error` request errors only.
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "debug" => Self::Debug,
            "info" | "notice" => Self::Info,
            "warning" => Self::Warning,
            "error" | "critical" | "alert" | "emergency" => Self::Error,
            _ => return None,
        })
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}
