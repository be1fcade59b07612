//! One request in, its answer out, whatever transport carried it.
//!
//! There are two ways through. `tools/list`, and calls of tools that say nothing while they work,
//! are answered at once. Everything else, and every call that may send progress or log messages,
//! runs on rmcp, which keeps the stream of messages in order and knows the rules of each revision.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{ClientJsonRpcMessage, ProtocolVersion, ServerJsonRpcMessage};
use rmcp::service::serve_directly_with_ct;
use rmcp::transport::OneshotTransport;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::app::App;
use crate::auth::Caller;
use crate::call::{Asker, ToolCall, invalid};
use crate::http::limits::Limits;
use crate::message::{Params, Request};
use crate::rate::Rates;
use crate::result::{SERVER_INFO, internal};
use crate::revision::Revision;
use crate::rpc::{RpcError, result_answer, to_text};

/// Answers requests for one app.
#[derive(Clone)]
pub(crate) struct Exchange {
    pub(crate) app: App,
    pub(crate) limits: Arc<Limits>,
    listeners: Arc<Semaphore>,
    rates: Arc<Rates>,
}

/// What comes back for one request.
pub(crate) enum Reply {
    /// The whole answer, and the error code when it is an error.
    Whole(String, Option<i32>),
    /// Messages that come while the work goes on, the last of them the answer.
    Stream(Box<Stream>),
}

/// The messages of one request. Dropping it cancels the work behind it.
pub(crate) struct Stream {
    first: Option<ServerJsonRpcMessage>,
    rest: mpsc::Receiver<ServerJsonRpcMessage>,
    _cancel: DropGuard,
    listener: Option<OwnedSemaphorePermit>,
}

impl Stream {
    /// True for a listener, which may stay for hours and has no answer to wait for.
    pub(crate) fn is_listener(&self) -> bool {
        self.listener.is_some()
    }

    /// The next message as JSON text; nothing after the answer.
    pub(crate) async fn next(&mut self) -> Option<String> {
        let message = match self.first.take() {
            Some(first) => Some(first),
            None => self.rest.recv().await,
        };
        message.map(|message| to_text(&message))
    }
}

impl Exchange {
    pub(crate) fn new(app: App, limits: Arc<Limits>) -> Self {
        let listeners = Arc::new(Semaphore::new(limits.listen_streams));
        let rates = Arc::new(Rates::new(limits.calls_per_minute));
        Self {
            app,
            limits,
            listeners,
            rates,
        }
    }

    pub(crate) fn asker(&self, revision: Revision) -> Asker {
        Asker {
            caller: Caller::anonymous(),
            revision,
            patience: self.limits.handler,
        }
    }

    /// Answers one request. `cancel` fires when the client cancels or has gone.
    pub(crate) async fn answer(
        &self,
        request: &Request<'_>,
        revision: Revision,
        cancel: CancellationToken,
    ) -> Reply {
        let asker = self.asker(revision);
        let outcome = match request.method.as_ref() {
            "tools/list" => self.tool_list(request, revision),
            "tools/call" => match self.admit(&request.params, &asker) {
                Ok(Err(wait)) => ToolCall::too_soon(&self.app, &asker, wait),
                Ok(Ok(call)) if self.must_stream(&call) => {
                    return self.drive(request, asker, Some(call), cancel).await;
                }
                Ok(Ok(call)) => {
                    let _guard = cancel.clone().drop_guard();
                    call.run(&self.app, &asker, cancel, None).await
                }
                Err(error) => Err(error),
            },
            _ => return self.drive(request, asker, None, cancel).await,
        };
        whole(request, outcome)
    }

    /// Reads a call, and counts it; the inner error is how long its caller has to wait.
    fn admit(
        &self,
        params: &Params<'_>,
        asker: &Asker,
    ) -> Result<Result<ToolCall, Duration>, RpcError> {
        let call = ToolCall::parse(params)?;
        let counted = self
            .rates
            .take(&asker.caller, || call.subject(), Instant::now());
        Ok(counted.map(|()| call))
    }

    fn must_stream(&self, call: &ToolCall) -> bool {
        call.wants_progress() || self.app.tool(&call.name).is_some_and(|entry| entry.streams)
    }

    fn tool_list(&self, request: &Request<'_>, revision: Revision) -> Result<String, RpcError> {
        if request.raw.contains("\"cursor\"") && has_cursor(request.raw) {
            return Err(invalid(
                "this list has one page; call it without a `cursor`",
            ));
        }
        let tools = self.app.tool_list().map_err(|error| internal(&error))?;
        if !revision.is_modern() {
            return Ok(format!(r#"{{"tools":{tools}}}"#));
        }
        let inner = self.app.inner();
        Ok(format!(
            r#"{{"resultType":"complete","tools":{tools},"ttlMs":{},"cacheScope":"public","_meta":{{"{SERVER_INFO}":{}}}}}"#,
            inner.cache.list_ms, inner.identity.wire
        ))
    }

    /// Runs a request on rmcp: a service of its own, for this one message, without a session.
    async fn drive(
        &self,
        request: &Request<'_>,
        asker: Asker,
        call: Option<ToolCall>,
        cancel: CancellationToken,
    ) -> Reply {
        let listener = if request.method == "subscriptions/listen" {
            match self.listeners.clone().try_acquire_owned() {
                Ok(permit) => Some(permit),
                Err(_) => return whole(request, Err(busy())),
            }
        } else {
            None
        };
        let message: ClientJsonRpcMessage = match serde_json::from_str(request.raw) {
            Ok(message) => message,
            Err(_) => {
                return whole(
                    request,
                    Err(RpcError::invalid_request("not a JSON-RPC request")),
                );
            }
        };
        let peer = peer(&asker, request);
        let served = crate::handler::Served::new(self.app.clone(), asker, call);
        let (transport, mut rest) = OneshotTransport::new(message);
        let running = serve_directly_with_ct(served, transport, peer, cancel.clone());
        tokio::spawn(async move {
            if let Err(error) = running.waiting().await {
                tracing::error!(%error, "the task of a request ended badly");
            }
        });
        let guard = cancel.drop_guard();
        match rest.recv().await {
            Some(ServerJsonRpcMessage::Error(error)) => {
                let code = error.error.code.0;
                Reply::Whole(to_text(&ServerJsonRpcMessage::Error(error)), Some(code))
            }
            Some(answer @ ServerJsonRpcMessage::Response(_)) => {
                Reply::Whole(to_text(&answer), None)
            }
            Some(first) => Reply::Stream(Box::new(Stream {
                first: Some(first),
                rest,
                _cancel: guard,
                listener,
            })),
            None => whole(request, Err(internal(&Unanswered))),
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the service ended without an answer")]
struct Unanswered;

fn busy() -> RpcError {
    RpcError::new(-32603, "too many clients are listening; try again later")
}

fn whole(request: &Request<'_>, outcome: Result<String, RpcError>) -> Reply {
    match outcome {
        Ok(result) => Reply::Whole(result_answer(&request.id, &result), None),
        Err(error) => Reply::Whole(error.answer(Some(&request.id)), Some(error.code)),
    }
}

/// rmcp learns the revision of a legacy request only from what the handshake left behind. There
/// is no handshake behind a stateless request, so its result is stated here.
fn peer(asker: &Asker, request: &Request<'_>) -> Option<rmcp::model::InitializeRequestParams> {
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
