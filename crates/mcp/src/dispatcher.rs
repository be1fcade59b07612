//! One request in, its answer out, whatever transport carried it.
//!
//! There are two ways through. `tools/list`, and calls of tools that say nothing while they work,
//! are answered at once. Everything else, and every call that may send progress or log messages,
//! runs on rmcp, which keeps the stream of messages in order and knows the rules of each revision.

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
use crate::call::{CallerContext, ToolCall, invalid_params};
use crate::call_observer::{CallRecorder, CallStatus};
use crate::call_rate_limiter::CallRateLimiter;
use crate::descriptor;
use crate::error::BuildError;
use crate::http::byte_budget::ConnectionShare;
use crate::http::limits::HttpLimits;
use crate::listeners::{ListenerPermit, ListenerPlaces};
use crate::reply::{AnswerMeter, Reply, ReplyTransport};
use crate::result::{SERVER_INFO, internal};
use crate::revision::Revision;
use crate::rpc::{RpcError, result_answer};
use crate::rpc_message::{RpcParams, RpcRequest};
use crate::trace::TraceParent;

/// How long a large body waits for its turn on HTTP; then its sender is told to come back in a second.
pub(crate) const TURN_PATIENCE: Duration = Duration::from_secs(2);

/// Bytes of a `subscriptions/listen`. What it asks for is kept for as long as it listens, so 2,000 listeners keep 32 MiB
/// at most; 200 addresses of resources fit.
const LISTEN_BYTES: usize = 16 * 1024;

/// Answers requests for one app.
#[derive(Clone)]
pub(crate) struct RequestDispatcher {
    pub(crate) app: App,
    pub(crate) limits: Arc<HttpLimits>,
    pub(crate) auth: Option<Auth>,
    listeners: Arc<ListenerPlaces>,
    /// The listeners of one connection, where it carries many messages.
    own_listeners: Option<Arc<Semaphore>>,
    big_parses: Arc<Semaphore>,
    rates: Arc<CallRateLimiter>,
}

/// Too many large bodies are being worked on.
#[derive(Debug)]
pub(crate) struct NoTurn;

impl RequestDispatcher {
    pub(crate) fn new(app: App, limits: Arc<HttpLimits>, auth: Option<Auth>) -> Self {
        let listeners = ListenerPlaces::new(limits.listen_streams);
        let big_parses = Arc::new(Semaphore::new(limits.big_parses));
        let rates = Arc::new(CallRateLimiter::new(limits.calls_per_minute));
        Self {
            app,
            limits,
            auth,
            listeners,
            own_listeners: None,
            big_parses,
            rates,
        }
    }

    /// The same for one connection that carries many messages: it has a bound on its listeners.
    pub(crate) fn for_connection(mut self) -> Self {
        self.own_listeners = Some(Arc::new(Semaphore::new(self.limits.stream_in_flight)));
        self
    }

    /// Waits until a body of this size may be parsed, for as long as `patience` where there is a bound. Large ones take
    /// turns, on every transport, and keep their turn until they are answered: what is made of them is larger than they
    /// are. Nothing else is held meanwhile, so that those who wait take nothing from small calls.
    pub(crate) async fn parse_turn(
        &self,
        bytes: usize,
        patience: Option<Duration>,
    ) -> Result<Option<OwnedSemaphorePermit>, NoTurn> {
        if bytes <= self.limits.big_body {
            return Ok(None);
        }
        let turn = self.big_parses.clone().acquire_owned();
        let turn = match patience {
            Some(patience) => timeout(patience, turn).await.map_err(|_| NoTurn)?,
            None => turn.await,
        };
        turn.map(Some).map_err(|_| NoTurn)
    }

    /// The answer to a message that is larger than allowed, on every transport.
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

    /// Somebody who asks, in the trace that the transport named.
    pub(crate) fn caller_context(
        &self,
        caller: &Caller,
        revision: Revision,
        trace: Option<TraceParent>,
    ) -> CallerContext {
        CallerContext {
            caller: caller.clone(),
            revision,
            patience: self.limits.handler,
            trace,
        }
    }

    /// Has whoever watches hear of a call that its transport refused.
    pub(crate) fn record_refused(&self, params: &RpcParams<'_>, asker: &CallerContext) {
        if let Ok(call) = ToolCall::parse(params) {
            record_outcome(call.record(&self.app, asker), CallStatus::Forbidden);
        }
    }

    /// What this caller lacks to call a tool; nothing for a tool that is not there.
    pub(crate) fn missing_scope(&self, caller: &Caller, tool: &str) -> Option<MissingScope> {
        let entry = self.app.tool(tool)?;
        match &self.auth {
            Some(auth) => auth.missing_scope(caller, entry.security.as_deref()),
            // `http::serve` does not start like this, but a router can be embedded.
            None if entry.requires_sign_in() && !caller.is_owner() => Some(MissingScope::unknown()),
            None => None,
        }
    }

    /// Answers one request. `cancel` fires when the client cancels or has gone. Messages that wait for their reader
    /// count against `share`.
    pub(crate) async fn answer(
        &self,
        request: &RpcRequest<'_>,
        asker: CallerContext,
        cancel: CancellationToken,
        share: Option<&Arc<ConnectionShare>>,
    ) -> Reply {
        let outcome = match request.method.as_ref() {
            "tools/list" => self.tool_list(request, &asker),
            "tools/call" => match self.parse_and_rate_limit(&request.params, &asker) {
                Ok(Ok(call)) if self.missing_scope(&asker.caller, &call.name).is_some() => {
                    record_outcome(call.record(&self.app, &asker), CallStatus::Forbidden);
                    self.forbidden(&asker, &call.name)
                }
                Ok(Err((call, wait))) => {
                    record_outcome(call.record(&self.app, &asker), CallStatus::TooSoon);
                    ToolCall::rate_limited(&self.app, &asker, wait)
                }
                Ok(Ok(call)) if self.must_stream(&call) => {
                    return self
                        .run_on_rmcp(request, (asker, Some(call)), cancel, share)
                        .await;
                }
                Ok(Ok(call)) => {
                    let _guard = cancel.clone().drop_guard();
                    call.run(&self.app, &asker, cancel, None).await
                }
                Err(error) => Err(error),
            },
            _ => {
                return self
                    .run_on_rmcp(request, (asker, None), cancel, share)
                    .await;
            }
        };
        whole_reply(request, outcome)
    }

    /// Reads a call, and counts it; the inner error has how long its caller has to wait.
    fn parse_and_rate_limit(
        &self,
        params: &RpcParams<'_>,
        asker: &CallerContext,
    ) -> Result<Result<ToolCall, (ToolCall, Duration)>, RpcError> {
        let call = ToolCall::parse(params)?;
        let counted = self
            .rates
            .take(&asker.caller, || call.subject(), Instant::now());
        Ok(match counted {
            Ok(()) => Ok(call),
            Err(wait) => Err((call, wait)),
        })
    }

    fn must_stream(&self, call: &ToolCall) -> bool {
        call.wants_progress() || self.app.tool(&call.name).is_some_and(|entry| entry.streams)
    }

    /// A call that needs signing in, or more than was granted, in the words that ChatGPT acts upon.
    fn forbidden(&self, asker: &CallerContext, tool: &str) -> Result<String, RpcError> {
        let lack = self.missing_scope(&asker.caller, tool);
        let challenge = self
            .auth
            .as_ref()
            .zip(lack)
            .map(|(auth, lack)| auth.in_band_challenge(&lack));
        ToolCall::forbidden(&self.app, asker, challenge.unwrap_or_default())
    }

    fn tool_list(
        &self,
        request: &RpcRequest<'_>,
        asker: &CallerContext,
    ) -> Result<String, RpcError> {
        if request.raw.contains("\"cursor\"") && has_cursor(request.raw) {
            return Err(invalid_params(
                "this list has one page; call it without a `cursor`",
            ));
        }
        let tools = self
            .tools_for(&asker.caller)
            .map_err(|error| internal(&error))?;
        if !asker.revision.is_modern() {
            return Ok(format!(r#"{{"tools":{tools}}}"#));
        }
        let inner = self.app.inner();
        Ok(format!(
            r#"{{"resultType":"complete","tools":{tools},"ttlMs":{},"cacheScope":"{}","_meta":{{"{SERVER_INFO}":{}}}}}"#,
            inner.cache.list_ms,
            asker.cache_scope(),
            inner.identity.wire
        ))
    }

    /// The tools as a JSON array: all of them for somebody who has yet to sign in, and for somebody who
    /// has, those that they may call. Each says which sign-in it wants.
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

    /// A place to listen, for a request that does.
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

    /// Runs a request on rmcp: a service of its own, for this one message, without a session.
    async fn run_on_rmcp(
        &self,
        request: &RpcRequest<'_>,
        (asker, call): (CallerContext, Option<ToolCall>),
        cancel: CancellationToken,
        share: Option<&Arc<ConnectionShare>>,
    ) -> Reply {
        let listener = match self.listener(request, &asker.caller) {
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
        let peer = peer(&asker, request);
        let meter = share.map(|share| AnswerMeter {
            owner: share.budget().slot(&asker.caller),
            share: Arc::clone(share),
        });
        let served = crate::rmcp_service::RmcpService::new(self.app.clone(), asker, call);
        let (transport, messages) = ReplyTransport::new(message, meter);
        let running = serve_directly_with_ct(served, transport, peer, cancel.clone());
        let (work, kept) = oneshot::channel();
        tokio::spawn(async move {
            if let Err(error) = running.waiting().await {
                tracing::error!(%error, "the task of a request ended badly");
            }
            // What was given to it meanwhile goes with it.
            drop(kept);
        });
        let reply = messages.reply(cancel.drop_guard(), listener, work).await;
        reply.unwrap_or_else(|| whole_reply(request, Err(internal(&NoAnswerError))))
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the service ended without an answer")]
struct NoAnswerError;

/// Tells whoever watches that a call has ended before it began.
fn record_outcome(watch: Option<CallRecorder>, outcome: CallStatus) {
    if let Some(mut watch) = watch {
        watch.outcome = outcome;
    }
}

fn whole_reply(request: &RpcRequest<'_>, outcome: Result<String, RpcError>) -> Reply {
    match outcome {
        Ok(result) => Reply::Whole(result_answer(&request.id, result), None),
        Err(error) => Reply::Whole(error.answer(Some(&request.id)), Some(error.code)),
    }
}

/// rmcp learns the revision of a legacy request only from what the handshake left behind. There
/// is no handshake behind a stateless request, so its result is stated here.
fn peer(
    asker: &CallerContext,
    request: &RpcRequest<'_>,
) -> Option<rmcp::model::InitializeRequestParams> {
    if request.method == "initialize" {
        return None;
    }
    let version: ProtocolVersion = serde_json::from_value(json!(asker.revision.as_str())).ok()?;
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
