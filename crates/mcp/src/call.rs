//! One call to a tool, from checked JSON to the JSON of its result. Shared by every transport and
//! by both ways through the server: answered at once, or inside a stream.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use tracing::field::Empty;

use crate::app::App;
use crate::auth::Caller;
use crate::call_observer::{CallKind, CallRecorder, CallStatus};
use crate::client_hints::{self, Pseudonym};
use crate::error::Failure;
use crate::request_context::{Context, InputRound, NotificationChannel, RequestMeta};
use crate::result::{ResultFormat, TextForm, internal};
use crate::revision::Revision;
use crate::rpc::RpcError;
use crate::rpc_message::RpcParams;
use crate::trace::{SPANS, TraceParent};

/// The code of a failure of ours.
const INTERNAL: i32 = -32603;

/// A `tools/call` with its parameters checked and copied out of the message.
#[derive(Debug)]
pub(crate) struct ToolCall {
    pub(crate) name: String,
    arguments: Option<Box<RawValue>>,
    meta: Option<Box<RawValue>>,
    round: InputRound,
}

/// Who asks and how: the same for all the work that one request causes.
#[derive(Debug, Clone)]
pub(crate) struct CallerContext {
    pub(crate) caller: Caller,
    pub(crate) revision: Revision,
    pub(crate) patience: Duration,
    /// The trace that the transport named; the request itself may name another.
    pub(crate) trace: Option<TraceParent>,
}

impl CallerContext {
    /// Whether what this caller sees may be kept for others.
    pub(crate) const fn cache_scope(&self) -> &'static str {
        if self.caller.is_anonymous() {
            "public"
        } else {
            "private"
        }
    }
}

impl ToolCall {
    pub(crate) fn parse(params: &RpcParams<'_>) -> Result<Self, RpcError> {
        let name = RpcParams::string(params.name)
            .ok_or_else(|| invalid_params("`name` must be a string"))?;
        if params
            .arguments
            .is_some_and(|raw| !raw.get().starts_with('{'))
        {
            return Err(invalid_params("`arguments` must be an object"));
        }
        if params.meta.is_some_and(|raw| !raw.get().starts_with('{')) {
            return Err(invalid_params("`_meta` must be an object"));
        }
        Ok(Self {
            name,
            arguments: params.arguments.map(ToOwned::to_owned),
            meta: params.meta.map(ToOwned::to_owned),
            round: InputRound::parse(params)?,
        })
    }

    /// True when the client asked to be told about progress, which needs a stream.
    pub(crate) fn wants_progress(&self) -> bool {
        self.meta
            .as_ref()
            .is_some_and(|meta| meta.get().contains("\"progressToken\""))
    }

    /// The pseudonym that the host gives the user, if any.
    pub(crate) fn subject(&self) -> Option<Pseudonym> {
        client_hints::subject(self.meta.as_ref()?.get())
    }

    /// Answers a call that came too soon, in words that a model understands.
    pub(crate) fn rate_limited(
        app: &App,
        asker: &CallerContext,
        wait: Duration,
    ) -> Result<String, RpcError> {
        let seconds = wait.as_secs_f64().ceil().max(1.0);
        let failure = Failure::caller("too many calls")
            .hint(format!("wait {seconds} seconds, then call again"));
        result_format(app, asker).failed(failure, &app.inner().identity.wire)
    }

    /// Answers a call of somebody who has to sign in first, or with more scopes.
    pub(crate) fn forbidden(
        app: &App,
        asker: &CallerContext,
        challenge: String,
    ) -> Result<String, RpcError> {
        let failure = if asker.caller.is_anonymous() {
            Failure::caller("Authentication required.")
                .hint("ask the user to sign in, then call again")
        } else {
            Failure::caller("this needs more than was granted")
                .hint("ask the user to sign in again and grant it, then call again")
        };
        let failure = failure.meta("mcp/www_authenticate", vec![challenge]);
        result_format(app, asker).failed(failure, &app.inner().identity.wire)
    }

    /// Runs the tool. `Err` is a protocol error; a failed tool is an `Ok` that says so.
    pub(crate) async fn run(
        self,
        app: &App,
        asker: &CallerContext,
        cancel: CancellationToken,
        back: Option<NotificationChannel>,
    ) -> Result<String, RpcError> {
        let mut watch = self.record(app, asker);
        let mut end = |outcome: CallStatus, touched: Vec<String>| {
            if let Some(watch) = &mut watch {
                (watch.outcome, watch.touched) = (outcome, touched);
            }
        };
        let Some(entry) = app.tool(&self.name) else {
            end(CallStatus::Mistaken, Vec::new());
            return Err(invalid_params(format!("there is no tool `{}`", self.name)));
        };
        let context = Context {
            caller: asker.caller.clone(),
            revision: asker.revision,
            meta: RequestMeta::new(self.meta),
            cancel,
            back,
            round: self.round,
            prose: app.inner().text == TextForm::Prose,
            locales: app.inner().locales.clone(),
            watched: app.inner().observer.is_some(),
        };
        let arguments = self.arguments.as_deref().map_or("{}", RawValue::get);
        let (shape, server) = (result_format(app, asker), &app.inner().identity.wire);
        let span =
            tracing::info_span!(target: SPANS, "tool", tool = self.name.as_str(), outcome = Empty);
        let work = entry.tool.call(arguments, entry.output, context);
        let work = run_guarded(asker.patience, work).instrument(span.clone());
        let outcome = match work.await {
            Ok(Ok(mut payloads)) => {
                span.record("outcome", "done");
                end(CallStatus::Done, std::mem::take(&mut payloads.touched));
                return Ok(shape.done(payloads, server));
            }
            Ok(Err(failure)) => shape.failed(failure.explained(app.inner().explain), server),
            Err(error) => Err(error),
        };
        let is_ours = outcome.as_ref().is_err_and(|error| error.code == INTERNAL);
        let ended = if is_ours {
            CallStatus::Failed
        } else {
            CallStatus::Mistaken
        };
        let told = if is_ours { "failed" } else { "mistaken" };
        span.record("outcome", told);
        end(ended, Vec::new());
        outcome
    }

    /// Whoever watches calls hears of this one, when what is returned is dropped.
    pub(crate) fn record(&self, app: &App, asker: &CallerContext) -> Option<CallRecorder> {
        let sent = (self.arguments.clone(), self.meta.clone());
        CallRecorder::new(app, (CallKind::Tool, &self.name), sent, asker)
    }
}

fn result_format(app: &App, asker: &CallerContext) -> ResultFormat {
    ResultFormat {
        revision: asker.revision,
        dual: app.inner().dual,
    }
}

impl InputRound {
    pub(crate) fn parse(params: &RpcParams<'_>) -> Result<Self, RpcError> {
        let responses = match params.input_responses.map(RawValue::get) {
            None => None,
            Some(raw) => Some(
                serde_json::from_str(raw)
                    .map_err(|_| invalid_params("`inputResponses` must be an object"))?,
            ),
        };
        let state = match params.request_state {
            None => None,
            Some(raw) => Some(
                RpcParams::string(Some(raw))
                    .ok_or_else(|| invalid_params("`requestState` must be a string"))?,
            ),
        };
        Ok(Self { responses, state })
    }
}

/// Runs somebody else's code: a panic and an endless wait both become an answer. Without this the
/// client of a panicking handler would wait for ever.
pub(crate) async fn run_guarded<T>(
    patience: Duration,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<Result<T, Failure>, RpcError> {
    let caught = AssertUnwindSafe(work).catch_unwind();
    match tokio::time::timeout(patience, caught).await {
        Ok(Ok(outcome)) => Ok(outcome),
        Ok(Err(panic)) => Err(internal(&HandlerPanic(panic_text(panic.as_ref())))),
        Err(_) => Ok(Err(Failure::caller(format!(
            "this took longer than {} seconds and was stopped",
            patience.as_secs()
        ))
        .hint("ask for less, or try again later"))),
    }
}

#[derive(Debug, thiserror::Error)]
#[error("a handler panicked: {0}")]
struct HandlerPanic(String);

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}

pub(crate) fn invalid_params(message: impl Into<std::borrow::Cow<'static, str>>) -> RpcError {
    RpcError::new(-32602, message)
}
