//! Dispatch of one JSON-RPC request to its handler, for every transport.
//!
//! There are two paths. `tools/list`, and calls of tools that send nothing while they work, are answered directly.
//! Everything else, and every call that may send progress or log messages, runs on rmcp, which keeps the stream of
//! messages in order and knows the rules of each revision.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{ClientJsonRpcMessage, ProtocolVersion};
use rmcp::service::serve_directly_with_ct;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::auth::{Auth, Caller, MissingScope};
use crate::byte_budget::ConnectionShare;
use crate::call::{CallerContext, ToolCall};
use crate::call_observer::{CallRecorder, CallStatus};
use crate::call_rate_limiter::CallRateLimiter;
use crate::descriptor;
use crate::error::BuildError;
use crate::limits::HttpLimits;
use crate::listeners::{ListenerPermit, ListenerPermits};
use crate::reply::{AnswerMeter, Reply, ReplyTransport};
use crate::result::{SERVER_INFO, internal};
use crate::revision::Revision;
use crate::rpc::{RpcError, result_answer};
use crate::rpc_message::{RpcParams, RpcRequest};
use crate::trace::TraceParent;

/// How long a large body may wait for its parse permit on HTTP. After that the client gets a 503 with `Retry-After: 1`.
/// Its bytes are in memory while it waits, so a long queue of large bodies would spend the budget that small calls
/// need.
pub(crate) const PARSE_PERMIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum size of a `subscriptions/listen` request in bytes. Its filter stays in memory as long as the client
/// listens, so 2,000 listeners hold 32 MiB at most; 200 resource URIs fit.
const LISTEN_BYTES: usize = 16 * 1024;

/// The request dispatcher of one app, with the limits that all of its connections share.
///
/// `own_listeners` bounds the listeners of a single connection, where a connection carries many messages.
/// `big_parses` holds the permits for parsing large bodies, and `call_rate_limiter` the token buckets for tool calls.
#[derive(Clone)]
pub(crate) struct RequestDispatcher {
    pub(crate) app: App,
    pub(crate) limits: Arc<HttpLimits>,
    pub(crate) auth: Option<Auth>,
    listeners: Arc<ListenerPermits>,
    own_listeners: Option<Arc<Semaphore>>,
    big_parses: Arc<Semaphore>,
    call_rate_limiter: Arc<CallRateLimiter>,
}

/// What bounds the answer to a request while it is computed: the token that fires when the client cancels or
/// disconnects, and the byte budget of its connection.
struct AnswerBounds<'a> {
    cancel: CancellationToken,
    share: Option<&'a Arc<ConnectionShare>>,
}

/// The wait for a parse permit timed out, because too many large bodies are being processed.
#[derive(Debug)]
pub(crate) struct ParsePermitTimeout;

impl RequestDispatcher {
    pub(crate) fn new(app: App, limits: Arc<HttpLimits>, auth: Option<Auth>) -> Self {
        let listeners = ListenerPermits::new(limits.listen_streams);
        let big_parses = Arc::new(Semaphore::new(limits.big_parses));
        let call_rate_limiter = Arc::new(CallRateLimiter::new(limits.calls_per_minute));
        Self {
            app,
            limits,
            auth,
            listeners,
            own_listeners: None,
            big_parses,
            call_rate_limiter,
        }
    }

    /// Returns a dispatcher for one connection that carries many messages, with a limit on its own listeners.
    pub(crate) fn for_connection(mut self) -> Self {
        self.own_listeners = Some(Arc::new(Semaphore::new(self.limits.stream_in_flight)));
        self
    }

    /// Waits for a permit to parse a body of this size, for at most `max_wait`. Small bodies need none.
    ///
    /// Large ones are limited on every transport, and keep their permit until they are answered: parsed JSON takes
    /// more memory than its bytes. Nothing else is held during the wait, so waiting bodies take no slot from small
    /// calls.
    pub(crate) async fn parse_permit(
        &self,
        bytes: usize,
        max_wait: Option<Duration>,
    ) -> Result<Option<OwnedSemaphorePermit>, ParsePermitTimeout> {
        if bytes <= self.limits.big_body {
            return Ok(None);
        }
        let permit = self.big_parses.clone().acquire_owned();
        let permit = match max_wait {
            Some(max_wait) => timeout(max_wait, permit)
                .await
                .map_err(|_| ParsePermitTimeout)?,
            None => permit.await,
        };
        permit.map(Some).map_err(|_| ParsePermitTimeout)
    }

    /// Returns the error for a message over the size limit of its method, on every transport.
    pub(crate) fn oversized(&self, request: &RpcRequest<'_>) -> Option<String> {
        let (what, most) = match request.method.as_ref() {
            "tools/call" => ("a tool call", self.limits.call_bytes),
            "subscriptions/listen" => ("`subscriptions/listen`", LISTEN_BYTES),
            _ => return None,
        };
        let size = request.raw.len();
        if size <= most {
            return None;
        }
        let error =
            RpcError::invalid_request(format!("{what} may have {most} bytes, this has {size}"));
        Some(error.answer(Some(&request.id)))
    }

    /// Combines a caller with the revision, the handler timeout and the trace context of its request.
    pub(crate) fn caller_context(
        &self,
        caller: &Caller,
        revision: Revision,
        trace: Option<TraceParent>,
    ) -> CallerContext {
        CallerContext {
            caller: caller.clone(),
            revision,
            handler_timeout: self.limits.handler,
            trace,
        }
    }

    /// Records a call that its transport refused, so that observers see it too.
    pub(crate) fn record_refused(&self, params: &RpcParams<'_>, caller_context: &CallerContext) {
        if let Ok(call) = ToolCall::parse(params) {
            record_outcome(
                call.record(&self.app, caller_context),
                CallStatus::Forbidden,
            );
        }
    }

    /// Returns the scopes that this caller needs to call a tool and does not have. An unknown tool needs none.
    pub(crate) fn missing_scope(&self, caller: &Caller, tool: &str) -> Option<MissingScope> {
        let entry = self.app.tool(tool)?;
        match &self.auth {
            Some(auth) => auth.missing_scope(caller, entry.security.as_deref()),
            // `http::serve` refuses to start like this, but an embedded router can get here.
            None if entry.requires_sign_in() && !caller.is_owner() => Some(MissingScope::unknown()),
            None => None,
        }
    }

    /// Answers one request. `cancel` fires when the client cancels or disconnects. Queued messages count against the
    /// byte budget of `share`.
    pub(crate) async fn answer(
        &self,
        request: &RpcRequest<'_>,
        caller_context: CallerContext,
        cancel: CancellationToken,
        share: Option<&Arc<ConnectionShare>>,
    ) -> Reply {
        let outcome = match request.method.as_ref() {
            "tools/list" => self.tool_list(request, &caller_context),
            "tools/call" => match self.parse_and_rate_limit(&request.params, &caller_context) {
                Ok(Ok(call))
                    if self
                        .missing_scope(&caller_context.caller, &call.name)
                        .is_some() =>
                {
                    record_outcome(
                        call.record(&self.app, &caller_context),
                        CallStatus::Forbidden,
                    );
                    self.forbidden(&caller_context, &call.name)
                }
                Ok(Err((call, wait))) => {
                    record_outcome(call.record(&self.app, &caller_context), CallStatus::TooSoon);
                    ToolCall::rate_limited(&self.app, &caller_context, wait)
                }
                Ok(Ok(call)) if self.must_stream(&call) => {
                    let bounds = AnswerBounds { cancel, share };
                    return self
                        .run_on_rmcp(request, caller_context, Some(call), bounds)
                        .await;
                }
                Ok(Ok(call)) => {
                    let _guard = cancel.clone().drop_guard();
                    call.run(&self.app, &caller_context, cancel, None).await
                }
                Err(error) => Err(error),
            },
            _ => {
                let bounds = AnswerBounds { cancel, share };
                return self
                    .run_on_rmcp(request, caller_context, None, bounds)
                    .await;
            }
        };
        whole_reply(request, outcome)
    }

    /// Parses a call and takes a token for it. The inner error is a call over the rate limit, with the time to wait.
    fn parse_and_rate_limit(
        &self,
        params: &RpcParams<'_>,
        caller_context: &CallerContext,
    ) -> Result<Result<ToolCall, (ToolCall, Duration)>, RpcError> {
        let call = ToolCall::parse(params)?;
        let counted =
            self.call_rate_limiter
                .take(&caller_context.caller, || call.subject(), Instant::now());
        Ok(match counted {
            Ok(()) => Ok(call),
            Err(wait) => Err((call, wait)),
        })
    }

    fn must_stream(&self, call: &ToolCall) -> bool {
        call.wants_progress() || self.app.tool(&call.name).is_some_and(|entry| entry.streams)
    }

    /// Answers a call without sufficient sign-in with a tool error that contains the challenge, which is the form
    /// that ChatGPT reacts to.
    fn forbidden(&self, caller_context: &CallerContext, tool: &str) -> Result<String, RpcError> {
        let missing = self.missing_scope(&caller_context.caller, tool);
        let challenge = self
            .auth
            .as_ref()
            .zip(missing)
            .map(|(auth, missing)| auth.in_band_challenge(&missing));
        ToolCall::forbidden(&self.app, caller_context, challenge.unwrap_or_default())
    }

    fn tool_list(
        &self,
        request: &RpcRequest<'_>,
        caller_context: &CallerContext,
    ) -> Result<String, RpcError> {
        if request.raw.contains("\"cursor\"") && has_cursor(request.raw) {
            return Err(RpcError::invalid_params(
                "this list has one page; call it without a `cursor`",
            ));
        }
        let tools = self
            .tools_for(&caller_context.caller)
            .map_err(|error| internal(&error))?;
        if !caller_context.revision.is_modern() {
            return Ok(format!(r#"{{"tools":{tools}}}"#));
        }
        let inner = self.app.inner();
        Ok(format!(
            r#"{{"resultType":"complete","tools":{tools},"ttlMs":{},"cacheScope":"{}","_meta":{{"{SERVER_INFO}":{}}}}}"#,
            inner.cache.list_ms,
            caller_context.cache_scope(),
            inner.identity.wire
        ))
    }

    /// Returns the tools as a JSON array, each with its sign-in methods. An anonymous caller sees all of them; a
    /// signed-in caller sees only those it may call.
    fn tools_for(&self, caller: &Caller) -> Result<Arc<str>, BuildError> {
        let list = self.app.tool_list()?;
        let Some(auth) = &self.auth else {
            return Ok(list);
        };
        let mut tools: Vec<Value> = serde_json::from_str(&list).unwrap_or_default();
        tools.retain_mut(|tool| {
            let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
            if !caller.is_anonymous() && self.missing_scope(caller, name).is_some() {
                return false;
            }
            let own = self
                .app
                .tool(name)
                .and_then(|entry| entry.security.as_deref());
            descriptor::add_security_schemes(tool, &auth.security_schemes(own));
            true
        });
        Ok(Value::Array(tools).to_string().into())
    }

    /// Takes a listener permit, if the request is `subscriptions/listen`.
    fn listener(
        &self,
        request: &RpcRequest<'_>,
        caller: &Caller,
    ) -> Result<Option<ListenerPermit>, RpcError> {
        if request.method != "subscriptions/listen" {
            return Ok(None);
        }
        let own = self.own_listeners.as_ref();
        self.listeners.take(caller, own).map(Some)
    }

    /// Runs a request on rmcp, in a service instance for this single message and without a session.
    async fn run_on_rmcp(
        &self,
        request: &RpcRequest<'_>,
        caller_context: CallerContext,
        call: Option<ToolCall>,
        bounds: AnswerBounds<'_>,
    ) -> Reply {
        let AnswerBounds { cancel, share } = bounds;
        let listener = match self.listener(request, &caller_context.caller) {
            Ok(listener) => listener,
            Err(error) => return whole_reply(request, Err(error)),
        };
        let message: ClientJsonRpcMessage = match serde_json::from_str(request.raw) {
            Ok(message) => message,
            Err(_) => {
                return whole_reply(
                    request,
                    Err(RpcError::invalid_request("not a JSON-RPC request")),
                );
            }
        };
        let peer = peer(&caller_context, request);
        let meter = share.map(|share| AnswerMeter {
            caller: share.budget().slot(&caller_context.caller),
            share: Arc::clone(share),
        });
        let served = crate::rmcp_service::RmcpService::new(self.app.clone(), caller_context, call);
        let (transport, messages) = ReplyTransport::new(message, meter);
        let running = serve_directly_with_ct(served, transport, peer, cancel.clone());
        let (work, permit) = oneshot::channel();
        tokio::spawn(async move {
            if let Err(error) = running.waiting().await {
                tracing::error!(%error, "request task failed");
            }
            // Releases the in-flight permit that the receiver got while the work ran.
            drop(permit);
        });
        let reply = messages.reply(cancel.drop_guard(), listener, work).await;
        reply.unwrap_or_else(|| whole_reply(request, Err(internal(&NoAnswerError))))
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the service ended without a response")]
struct NoAnswerError;

/// Records the status of a call that ended before it began.
fn record_outcome(recorder: Option<CallRecorder>, outcome: CallStatus) {
    if let Some(mut recorder) = recorder {
        recorder.outcome = outcome;
    }
}

fn whole_reply(request: &RpcRequest<'_>, outcome: Result<String, RpcError>) -> Reply {
    match outcome {
        Ok(result) => Reply::Whole(result_answer(&request.id, result), None),
        Err(error) => Reply::Whole(error.answer(Some(&request.id)), Some(error.code)),
    }
}

/// Builds the handshake data from which rmcp takes the revision of a legacy request. A stateless request has no
/// handshake, so the data is stated here.
fn peer(
    caller_context: &CallerContext,
    request: &RpcRequest<'_>,
) -> Option<rmcp::model::InitializeRequestParams> {
    if request.method == "initialize" {
        return None;
    }
    let version: ProtocolVersion =
        serde_json::from_value(json!(caller_context.revision.as_str())).ok()?;
    serde_json::from_value(json!({
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": {"name": "unknown", "version": "0"},
    }))
    .ok()
}

fn has_cursor(raw: &str) -> bool {
    let message: Value = serde_json::from_str(raw).unwrap_or_default();
    message
        .pointer("/params/cursor")
        .is_some_and(|cursor| !cursor.is_null())
}
