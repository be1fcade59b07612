//! The MCP endpoint: one POST in, one answer out, for every revision.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request as HttpRequest;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderMap, StatusCode, Uri, header};
use serde_json::value::RawValue;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::batch::Batch;
use super::byte_budget::{ByteReservation, ConnectionShare, ConnectionShares};
use super::responses::{self, ResponseFormat};
use super::{body, error_response, protocol_headers};
use crate::auth::Caller;
use crate::call::CallerContext;
use crate::dispatcher::{RequestDispatcher, TURN_PATIENCE};
use crate::protocol_version::{is_bare_discover, with_protocol_metadata};
use crate::reply::{Reply, ReplyStream};
use crate::revision::Revision;
use crate::rpc::RpcError;
use crate::rpc_message::{self, RpcMessage, RpcParams, RpcRequest};
use crate::trace::{self, TraceParent};

/// What every POST shares.
#[derive(Clone)]
pub(crate) struct McpEndpoint {
    pub(crate) exchange: RequestDispatcher,
    pub(crate) lenient: bool,
    pub(crate) in_flight: Arc<Semaphore>,
}

impl McpEndpoint {
    pub(crate) fn new(exchange: RequestDispatcher, lenient: bool) -> Self {
        let limits = &exchange.limits;
        let in_flight = Arc::new(Semaphore::new(limits.in_flight));
        Self {
            exchange,
            lenient,
            in_flight,
        }
    }

    /// `POST /`, `/mcp` and `/mcp/`.
    pub(crate) async fn post(&self, caller: &Caller, request: HttpRequest<Body>) -> Response {
        let received = match receive(self, request).await {
            Ok(received) => received,
            Err(refusal) => return refusal,
        };
        let sender = HttpSender {
            caller,
            headers: &received.headers,
            path: received.uri.path(),
            share: received.shares.as_ref().map(|shares| &shares.answers),
        };
        let answer = self.answer(&sender, &received.bytes).await;
        ConnectionShares::charge_to_caller(received.shares.as_ref(), caller, answer)
    }
}

/// A request whose body came whole.
pub(crate) struct ReceivedRequest {
    pub(crate) headers: HeaderMap,
    uri: Uri,
    pub(crate) bytes: Bytes,
    pub(crate) counted: Option<ByteReservation>,
    shares: Option<ConnectionShares>,
}

/// Who sent a message, and how.
pub(super) struct HttpSender<'a> {
    pub(super) caller: &'a Caller,
    pub(super) headers: &'a HeaderMap,
    path: &'a str,
    /// What the connection holds of the budget for answers, on a server of ours.
    pub(super) share: Option<&'a Arc<ConnectionShare>>,
}

impl HttpSender<'_> {
    /// ChatGPT offers to sign in for one tool when the tool's result says so, and takes a 401 for a broken
    /// server; everybody else needs the 401.
    fn reads_challenges_in_results(&self, request: &RpcRequest<'_>) -> bool {
        let agent = self.headers.get(header::USER_AGENT);
        let agent = agent.and_then(|value| value.to_str().ok());
        let named = agent.is_some_and(|agent| agent.to_ascii_lowercase().starts_with("openai-mcp"));
        let meta = request.params.meta.map(RawValue::get);
        named || meta.is_some_and(|meta| meta.contains("\"openai/"))
    }
}

/// Reads the body if its type and size are acceptable. No permit is taken before it is there: who sends slowly takes
/// nothing from others.
pub(crate) async fn receive(
    front: &McpEndpoint,
    request: HttpRequest<Body>,
) -> Result<ReceivedRequest, Response> {
    let (mut parts, body) = request.into_parts();
    if !is_json(&parts.headers) {
        let error = RpcError::invalid_request("`Content-Type` must be `application/json`");
        return Err(responses::rpc_error_response(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            &error,
        ));
    }
    let limits = &front.exchange.limits;
    let shares = parts.extensions.remove::<ConnectionShares>();
    let account = shares.as_ref().map(|shares| body::BodyAccount {
        share: &shares.bodies,
        headers: &parts.headers,
    });
    let received = body::receive(body, limits.body_bytes, limits, account)
        .await
        .map_err(IntoResponse::into_response)?;
    Ok(ReceivedRequest {
        headers: parts.headers,
        uri: parts.uri,
        bytes: received.bytes,
        counted: received.counted,
        shares,
    })
}

/// Exactly `application/json`, with or without parameters. A browser sends anything else across
/// origins without asking first.
fn is_json(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(header::CONTENT_TYPE).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return false;
    };
    let kind = value
        .to_str()
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default();
    kind.trim().eq_ignore_ascii_case("application/json")
}

impl McpEndpoint {
    async fn answer(&self, sender: &HttpSender<'_>, bytes: &[u8]) -> Response {
        let limits = &self.exchange.limits;
        // First the turn: those who wait for one hold no place that a small call could have.
        let turn = self.exchange.parse_turn(bytes.len(), Some(TURN_PATIENCE));
        let Ok(_turn) = turn.await else {
            return error_response::busy();
        };
        let Ok(permit) = self.in_flight.clone().try_acquire_owned() else {
            return error_response::busy();
        };
        match rpc_message::split(bytes, limits.json_depth, limits.batch) {
            Err(error) => responses::rpc_error_response(StatusCode::BAD_REQUEST, &error),
            Ok(rpc_message::RpcBody::Batch(items)) => self.batch(sender, &items, permit).await,
            Ok(rpc_message::RpcBody::One(text)) => {
                let form = ResponseFormat::of(sender.headers);
                match self.handle_message(sender, text, None).await {
                    Ok(MessageOutcome::Reply(Reply::Whole(text, code), revision)) => {
                        responses::whole(text, responses::status(code, revision.is_modern()), form)
                    }
                    Ok(MessageOutcome::Reply(Reply::Stream(stream), _))
                        if form == ResponseFormat::Json =>
                    {
                        collect_stream(stream).await
                    }
                    Ok(MessageOutcome::Reply(Reply::Stream(mut stream), _)) => {
                        stream.keep(permit);
                        responses::stream(stream, limits.sse_keep_alive)
                    }
                    Ok(MessageOutcome::Accepted) => StatusCode::ACCEPTED.into_response(),
                    Ok(MessageOutcome::Forbidden(refusal)) => *refusal,
                    Err((status, text)) => responses::json(status, text),
                }
            }
        }
    }

    /// One message. In a batch, the status of the answer is not its own, and it takes a place of its own.
    pub(super) async fn handle_message(
        &self,
        sender: &HttpSender<'_>,
        text: &str,
        batch: Option<&Batch<'_>>,
    ) -> Result<MessageOutcome, (StatusCode, String)> {
        let bad = |error: &RpcError, id| (StatusCode::BAD_REQUEST, error.answer(id));
        match rpc_message::parse(text) {
            Err(unread) => Err(bad(&unread.error, unread.id.as_ref())),
            Ok(RpcMessage::Response) => Err(bad(
                &RpcError::invalid_request("this server asks nothing, so nothing can be answered"),
                None,
            )),
            // Closing the connection is how a client of a stateless server cancels.
            Ok(RpcMessage::Notification(_)) => Ok(MessageOutcome::Accepted),
            Ok(RpcMessage::Request(request)) => {
                let Some(batch) = batch else {
                    if let Some(refusal) = self.forbidden(sender, &request) {
                        return Ok(MessageOutcome::Forbidden(Box::new(refusal)));
                    }
                    return self.request(sender, &request).await;
                };
                let permit = batch
                    .admit(&self.in_flight)
                    .map_err(|error| (StatusCode::OK, error.answer(Some(&request.id))))?;
                let mut done = self.request(sender, &request).await?;
                if let MessageOutcome::Reply(Reply::Stream(stream), _) = &mut done {
                    stream.keep(permit);
                }
                Ok(done)
            }
        }
    }

    /// The answer to a call that needs signing in, or more than was granted, for clients that act on its
    /// status.
    fn forbidden(&self, sender: &HttpSender<'_>, request: &RpcRequest<'_>) -> Option<Response> {
        let auth = self.exchange.auth.as_ref()?;
        if request.method != "tools/call" || sender.reads_challenges_in_results(request) {
            return None;
        }
        let name = RpcParams::string(request.params.name)?;
        let lack = self.exchange.missing_scope(sender.caller, &name)?;
        let trace = TraceParent::of(sender.headers);
        let asker = self
            .exchange
            .caller_context(sender.caller, Revision::ASSUMED, trace);
        self.exchange.record_refused(&request.params, &asker);
        Some(auth.refuse_missing_scope(&lack, sender.headers, sender.path))
    }

    async fn request(
        &self,
        sender: &HttpSender<'_>,
        request: &RpcRequest<'_>,
    ) -> Result<MessageOutcome, (StatusCode, String)> {
        if let Some(answer) = self.exchange.oversized(request) {
            return Err((StatusCode::PAYLOAD_TOO_LARGE, answer));
        }
        let (headers, caller) = (sender.headers, sender.caller);
        let revision =
            protocol_headers::request_revision(headers, request, &self.exchange.app, self.lenient)
                .map_err(|error| log_refusal(headers, request, &error))?;
        let trace = TraceParent::of(headers);
        let asker = self.exchange.caller_context(caller, revision, trace);
        let span = trace::request_span(&request.method, trace, request.params.meta);
        let work = self.dispatch(request, asker, sender.share);
        let work = work.instrument(span.clone());
        let reply = work.await;
        if let Reply::Whole(_, Some(code)) = &reply {
            span.record("code", code);
        }
        Ok(MessageOutcome::Reply(reply, revision))
    }

    /// The answer to a request whose revision is known.
    async fn dispatch(
        &self,
        request: &RpcRequest<'_>,
        asker: CallerContext,
        share: Option<&Arc<ConnectionShare>>,
    ) -> Reply {
        let cancel = CancellationToken::new();
        let is_modern = asker.revision.is_modern();
        let needs_metadata = is_bare_discover(request) || (self.lenient && is_modern);
        if needs_metadata {
            let text = with_protocol_metadata(request.raw);
            if let Ok(RpcMessage::Request(request)) = rpc_message::parse(&text) {
                return self.exchange.answer(&request, asker, cancel, share).await;
            }
        }
        self.exchange.answer(request, asker, cancel, share).await
    }
}

/// What became of one message.
pub(super) enum MessageOutcome {
    Reply(Reply, Revision),
    Accepted,
    Forbidden(Box<Response>),
}

/// A stream for a client that takes JSON alone: its last message is the answer.
async fn collect_stream(stream: Box<ReplyStream>) -> Response {
    if stream.is_listener() {
        let error =
            RpcError::invalid_request("`subscriptions/listen` needs `Accept: text/event-stream`");
        return responses::rpc_error_response(StatusCode::NOT_ACCEPTABLE, &error);
    }
    responses::json(StatusCode::OK, responses::last_message(stream).await)
}

/// A refusal by the headers is worth a log line: it is how a host's change is noticed first.
fn log_refusal(
    headers: &HeaderMap,
    request: &RpcRequest<'_>,
    error: &RpcError,
) -> (StatusCode, String) {
    let agent = headers
        .get(header::USER_AGENT)
        .and_then(|value| value.to_str().ok())
        .unwrap_or("-");
    let (agent, method) = (
        crate::protocol_version::shorten_for_message(agent),
        crate::protocol_version::shorten_for_message(&request.method),
    );
    tracing::warn!(code = error.code, %agent, %method, reason = %error.message, "a request was refused");
    (StatusCode::BAD_REQUEST, error.answer(Some(&request.id)))
}
