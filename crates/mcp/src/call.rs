//! Execution of one `tools/call`, from checked JSON to the JSON of its result.
//!
//! All transports share it, whether the answer comes at once or on a stream.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use tracing::field::Empty;

use crate::app::App;
use crate::auth::{Caller, MissingScope};
use crate::call_observer::{CallKind, CallRecorder, CallStatus, ObservedCall};
use crate::client_hints::{self, Pseudonym};
use crate::error::Failure;
use crate::protocol_version::shorten_for_message;
use crate::request_context::{Context, ContextParams, InputRound, NotificationChannel};
use crate::request_meta::RequestMeta;
use crate::result::{ResultFormat, TextForm, internal};
use crate::revision::Revision;
use crate::rpc::{INTERNAL_ERROR, RpcError};
use crate::rpc_message::RpcParams;
use crate::trace::{SPANS, TraceParent};

/// A `tools/call` request with its parameters checked and copied out of the message buffer.
#[derive(Debug)]
pub(crate) struct ToolCall {
    pub(crate) name: String,
    arguments: Option<Box<RawValue>>,
    params: ContextParams,
}

/// The caller, the protocol revision and the time limit under which all work of one request runs.
///
/// `missing_scope` is what the caller lacks for the tool it calls. `trace` is the trace context of the transport. The request may name another one in its `_meta`, which takes
/// precedence.
#[derive(Debug, Clone)]
pub(crate) struct CallerContext {
    pub(crate) caller: Caller,
    pub(crate) revision: Revision,
    pub(crate) handler_timeout: Duration,
    pub(crate) missing_scope: Option<MissingScope>,
    pub(crate) trace: Option<TraceParent>,
}

impl CallerContext {
    /// The cache scope of a result: only answers to anonymous callers may be shared between users.
    pub(crate) const fn cache_scope(&self) -> &'static str {
        if self.caller.is_anonymous() {
            "public"
        } else {
            "private"
        }
    }

    /// Creates the context of a request of this caller, from its parameters.
    pub(crate) fn context(
        &self,
        app: &App,
        params: ContextParams,
        cancel: CancellationToken,
        notifications: Option<NotificationChannel>,
    ) -> Context {
        let inner = app.inner();
        Context {
            caller: self.caller.clone(),
            revision: self.revision,
            meta: RequestMeta::new(params.meta),
            cancel,
            notifications,
            round: params.round,
            prose: inner.text == TextForm::Prose,
            locales: inner.locales.clone(),
            is_observed: inner.observer.is_some(),
        }
    }

    /// Starts a record of a call of this caller, if the app has an observer. The observer receives it when the recorder
    /// is dropped.
    pub(crate) fn record(&self, app: &App, call: ObservedCall<'_>) -> Option<CallRecorder> {
        let observer = app.inner().observer.clone()?;
        Some(CallRecorder::new(observer, call, &self.caller, self.trace))
    }
}

impl ToolCall {
    pub(crate) fn parse(params: &RpcParams<'_>) -> Result<Self, RpcError> {
        let name = RpcParams::string(params.name)
            .ok_or_else(|| RpcError::invalid_params("`name` must be a string"))?;
        if params
            .arguments
            .is_some_and(|raw| !raw.get().starts_with('{'))
        {
            return Err(RpcError::invalid_params("`arguments` must be an object"));
        }
        if params.meta.is_some_and(|raw| !raw.get().starts_with('{')) {
            return Err(RpcError::invalid_params("`_meta` must be an object"));
        }
        Ok(Self {
            name,
            arguments: params.arguments.map(ToOwned::to_owned),
            params: ContextParams::parse(params)?,
        })
    }

    /// Whether the client asked for progress notifications, which need a stream.
    pub(crate) fn wants_progress(&self) -> bool {
        let meta = self.params.meta.as_ref();
        meta.is_some_and(|meta| meta.get().contains("\"progressToken\""))
    }

    /// Returns the pseudonym under which the host reports its user, if it sent one.
    pub(crate) fn subject(&self) -> Option<Pseudonym> {
        client_hints::subject(self.params.meta.as_ref()?.get())
    }

    /// Answers a call over the rate limit with a tool error that tells the model how long to wait before it retries.
    pub(crate) fn rate_limited(
        app: &App,
        caller_context: &CallerContext,
        wait: Duration,
    ) -> Result<String, RpcError> {
        let seconds = wait.as_secs_f64().ceil().max(1.0);
        let failure = Failure::caller("too many calls")
            .hint(format!("wait {seconds} seconds, then call again"));
        result_format(app, caller_context).failed(failure, &app.inner().identity.wire)
    }

    /// Answers a call without a sign-in, or with too few scopes. The challenge in `_meta` makes ChatGPT open its
    /// sign-in.
    pub(crate) fn forbidden(
        app: &App,
        caller_context: &CallerContext,
        challenge: String,
    ) -> Result<String, RpcError> {
        let failure = if caller_context.caller.is_anonymous() {
            Failure::caller("Authentication required.")
                .hint("ask the user to sign in, then call again")
        } else {
            Failure::caller("this needs more than was granted")
                .hint("ask the user to sign in again and grant it, then call again")
        };
        let failure = failure.meta("mcp/www_authenticate", vec![challenge]);
        result_format(app, caller_context).failed(failure, &app.inner().identity.wire)
    }

    /// Runs the tool. `Err` is a protocol error; a tool that failed is an `Ok` whose result has `isError`.
    pub(crate) async fn run(
        self,
        app: &App,
        caller_context: &CallerContext,
        cancel: CancellationToken,
        notifications: Option<NotificationChannel>,
    ) -> Result<String, RpcError> {
        let mut recorder = self.record(app, caller_context);
        let mut end = |outcome: CallStatus, touched: Vec<String>| {
            if let Some(recorder) = &mut recorder {
                (recorder.outcome, recorder.touched) = (outcome, touched);
            }
        };
        let Some(entry) = app.tool(&self.name) else {
            end(CallStatus::Mistaken, Vec::new());
            return Err(RpcError::invalid_params(format!(
                "there is no tool `{}`",
                shorten_for_message(&self.name)
            )));
        };
        let context = caller_context.context(app, self.params, cancel, notifications);
        let arguments = self.arguments.as_deref().map_or("{}", RawValue::get);
        let (shape, server) = (
            result_format(app, caller_context),
            &app.inner().identity.wire,
        );
        let span =
            tracing::info_span!(target: SPANS, "tool", tool = self.name.as_str(), outcome = Empty);
        let work = entry.tool.call(arguments, entry.output, context);
        let work = run_guarded(caller_context.handler_timeout, work).instrument(span.clone());
        let outcome = match work.await {
            Ok(Ok(mut payloads)) => {
                span.record("outcome", "done");
                end(CallStatus::Done, std::mem::take(&mut payloads.touched));
                return Ok(shape.done(payloads, server));
            }
            Ok(Err(failure)) => shape.failed(failure.explained(app.inner().explain), server),
            Err(error) => Err(error),
        };
        let is_ours = outcome
            .as_ref()
            .is_err_and(|error| error.code == INTERNAL_ERROR);
        let ended = if is_ours {
            CallStatus::Failed
        } else {
            CallStatus::Mistaken
        };
        let label = if is_ours { "failed" } else { "mistaken" };
        span.record("outcome", label);
        end(ended, Vec::new());
        outcome
    }

    /// Starts a record of this call, if the app has an observer.
    pub(crate) fn record(&self, app: &App, caller_context: &CallerContext) -> Option<CallRecorder> {
        let call = ObservedCall {
            kind: CallKind::Tool,
            name: &self.name,
            arguments: self.arguments.clone(),
            meta: self.params.meta.clone(),
        };
        caller_context.record(app, call)
    }
}

fn result_format(app: &App, caller_context: &CallerContext) -> ResultFormat {
    ResultFormat {
        revision: caller_context.revision,
        dual: app.inner().dual,
    }
}

impl InputRound {
    pub(crate) fn parse(params: &RpcParams<'_>) -> Result<Self, RpcError> {
        let responses = match params.input_responses.map(RawValue::get) {
            None => None,
            Some(raw) => Some(
                serde_json::from_str(raw)
                    .map_err(|_| RpcError::invalid_params("`inputResponses` must be an object"))?,
            ),
        };
        let state = match params.request_state {
            None => None,
            Some(raw) => Some(
                RpcParams::string(Some(raw))
                    .ok_or_else(|| RpcError::invalid_params("`requestState` must be a string"))?,
            ),
        };
        Ok(Self { responses, state })
    }
}

/// Runs a handler of the app with a panic guard and a timeout, and turns both into an answer. Without this the client
/// of a panicking handler would wait forever.
pub(crate) async fn run_guarded<T>(
    handler_timeout: Duration,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<Result<T, Failure>, RpcError> {
    let caught = AssertUnwindSafe(work).catch_unwind();
    match tokio::time::timeout(handler_timeout, caught).await {
        Ok(Ok(outcome)) => Ok(outcome),
        Ok(Err(panic)) => Err(internal(&HandlerPanic(panic_text(panic.as_ref())))),
        Err(_) => Ok(Err(Failure::caller(format!(
            "this took longer than {} seconds and was stopped",
            handler_timeout.as_secs()
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
