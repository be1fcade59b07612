//! Dispatch of one JSON-RPC request to its handler, for every transport.
//!
//! `crate::methods` finds the handler. Work that sends nothing before its response runs in the task of its request;
//! work that may send progress, log messages or changes gets a task and a bounded queue of its own.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::app::App;
use crate::auth::{Auth, Caller, MissingScope};
use crate::byte_budget::ConnectionShare;
use crate::call::{CallerContext, ToolCall};
use crate::call_observer::CallStatus;
use crate::call_rate_limiter::CallRateLimiter;
use crate::limits::HttpLimits;
use crate::listeners::{ListenerPermit, ListenerPermits};
use crate::methods::{self, MethodAction, MethodScope, MethodWork};
use crate::reply::{AnswerMeter, Reply, ReplySender};
use crate::request_context::NotificationChannel;
use crate::result::internal;
use crate::revision::Revision;
use crate::rpc::{RpcError, result_answer};
use crate::rpc_message::{RpcParams, RpcRequest};
use crate::trace::TraceParent;

/// How long a large body may wait for its parse permit on HTTP. After that the client gets a 503 with `Retry-After: 1`.
/// Its bytes are in memory while it waits, so a long queue of large bodies would spend the budget that small calls
/// need.
pub(crate) const PARSE_PERMIT_TIMEOUT: Duration = Duration::from_secs(2);

/// How long work goes on after its client cancelled or disconnected, so that it can clean up.
const CANCEL_GRACE: Duration = Duration::from_secs(5);

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
    pub(crate) call_rate_limiter: Arc<CallRateLimiter>,
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

    /// Combines a caller with what its request says and what it lacks for it.
    pub(crate) fn caller_context(
        &self,
        caller: &Caller,
        revision: Revision,
        missing_scope: Option<MissingScope>,
        trace: Option<TraceParent>,
    ) -> CallerContext {
        CallerContext {
            caller: caller.clone(),
            revision,
            handler_timeout: self.limits.handler,
            missing_scope,
            trace,
        }
    }

    /// Records a call that its transport refused, so that observers see it too.
    pub(crate) fn record_refused(&self, params: &RpcParams<'_>, caller_context: &CallerContext) {
        if let Ok(call) = ToolCall::parse(params) {
            methods::record_status(
                call.record(&self.app, caller_context),
                CallStatus::Forbidden,
            );
        }
    }

    /// Returns the scopes that a caller lacks for a request, which only calls of tools need.
    pub(crate) fn missing_scope_for(
        &self,
        caller: &Caller,
        request: &RpcRequest<'_>,
    ) -> Option<MissingScope> {
        if request.method != "tools/call" {
            return None;
        }
        self.missing_scope(caller, &RpcParams::string(request.params.name)?)
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

    /// Takes a listener permit of the server, and one of the connection if it has a limit.
    pub(crate) fn listener_permit(&self, caller: &Caller) -> Result<ListenerPermit, RpcError> {
        self.listeners.take(caller, self.own_listeners.as_ref())
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
        let action = methods::handle(&MethodScope {
            dispatcher: self,
            request,
            caller_context: &caller_context,
        });
        let outcome = match action {
            Err(error) => Err(error),
            Ok(MethodAction::Result(result)) => Ok(result),
            Ok(MethodAction::Run(work)) if work.streams => {
                let meter = share.map(|share| AnswerMeter {
                    caller: share.budget().slot(&caller_context.caller),
                    share: Arc::clone(share),
                });
                return stream(request, work, cancel, meter).await;
            }
            Ok(MethodAction::Run(work)) => {
                let _guard = cancel.clone().drop_guard();
                (work.run)(cancel, None).await
            }
        };
        whole_reply(request, outcome)
    }
}

/// Runs work that may send messages before its response, in a task of its own. Work whose client has left has
/// [`CANCEL_GRACE`] to end by itself.
async fn stream(
    request: &RpcRequest<'_>,
    work: MethodWork,
    cancel: CancellationToken,
    meter: Option<AnswerMeter>,
) -> Reply {
    let (reply, messages) = ReplySender::new(meter);
    let notifications = NotificationChannel {
        reply: reply.clone(),
        progress: request.params.progress_token(),
    };
    let running = (work.run)(cancel.clone(), Some(notifications));
    let gone = cancel.clone();
    let (permit_sender, permit) = oneshot::channel();
    let id = request.id.clone();
    let task = async move {
        let left_alone = async {
            gone.cancelled().await;
            tokio::time::sleep(CANCEL_GRACE).await;
        };
        tokio::select! {
            outcome = running => reply.answer(&id, outcome).await,
            () = left_alone => {}
        }
        // Releases the in-flight permit that the receiver got while the work ran.
        drop(permit);
    };
    tokio::spawn(task.in_current_span());
    let reply = messages.reply(cancel.drop_guard(), work.listener, permit_sender);
    let reply = reply.await;
    reply.unwrap_or_else(|| whole_reply(request, Err(internal(&NoAnswerError))))
}

#[derive(Debug, thiserror::Error)]
#[error("the work ended without a response")]
struct NoAnswerError;

fn whole_reply(request: &RpcRequest<'_>, outcome: Result<String, RpcError>) -> Reply {
    match outcome {
        Ok(result) => Reply::Whole(result_answer(&request.id, result), None),
        Err(error) => Reply::Whole(error.answer(Some(&request.id)), Some(error.code)),
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use futures::FutureExt as _;
    use serde_json::json;
    use tokio::time::sleep;

    use super::*;
    use crate::rpc_message::{self, RpcMessage};

    #[tokio::test(start_paused = true)]
    async fn work_whose_client_left_ends_after_its_grace() {
        let held = Arc::new(());
        let at_work = Arc::downgrade(&held);
        let work = MethodWork {
            run: Box::new(move |_, notifications| {
                async move {
                    let _held = held;
                    notifications.unwrap().send("x", json!({})).await.unwrap();
                    pending().await
                }
                .boxed()
            }),
            streams: true,
            listener: None,
        };
        let parsed = rpc_message::parse(r#"{"jsonrpc":"2.0","id":1,"method":"x"}"#);
        let Ok(RpcMessage::Request(request)) = parsed else {
            panic!("not a request");
        };
        let reply = stream(&request, work, CancellationToken::new(), None).await;
        assert!(matches!(reply, Reply::Stream(_)));
        drop(reply);
        sleep(CANCEL_GRACE / 2).await;
        assert!(at_work.upgrade().is_some(), "it may still clean up");
        sleep(CANCEL_GRACE).await;
        assert!(at_work.upgrade().is_none());
    }
}
