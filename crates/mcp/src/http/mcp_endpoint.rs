//! The MCP endpoint: the handler of `POST /mcp` for every revision, from body to response.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request as HttpRequest;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderMap, StatusCode, Uri, header};
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::batch::Batch;
use super::responses::{self, ResponseFormat};
use super::{body, protocol_headers};
use crate::auth::{Caller, MissingScope};
use crate::byte_budget::{ByteReservation, ConnectionShare, ConnectionShares};
use crate::dispatcher::{PARSE_PERMIT_TIMEOUT, RequestDispatcher};
use crate::json_response;
use crate::reply::{Reply, ReplyStream};
use crate::revision::Revision;
use crate::rpc::RpcError;
use crate::rpc_message::{self, RpcMessage, RpcRequest};
use crate::trace::{self, TraceParent};

/// The state that all POST requests share: the dispatcher, leniency towards incomplete modern headers, and the
/// in-flight limit.
#[derive(Clone)]
pub(crate) struct McpEndpoint {
    pub(crate) dispatcher: RequestDispatcher,
    pub(crate) lenient: bool,
    pub(crate) in_flight: Arc<Semaphore>,
}

impl McpEndpoint {
    pub(crate) fn new(dispatcher: RequestDispatcher, lenient: bool) -> Self {
        let limits = &dispatcher.limits;
        let in_flight = Arc::new(Semaphore::new(limits.in_flight));
        Self {
            dispatcher,
            lenient,
            in_flight,
        }
    }

    /// Handles a POST to `/`, `/mcp` or `/mcp/` of an authenticated caller.
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

/// A request with its complete body.
pub(crate) struct ReceivedRequest {
    pub(crate) headers: HeaderMap,
    uri: Uri,
    pub(crate) bytes: Bytes,
    pub(crate) counted: Option<ByteReservation>,
    shares: Option<ConnectionShares>,
}

/// The sender of a message: the caller, the headers and path of its request, and the byte budget of its connection.
pub(super) struct HttpSender<'a> {
    pub(super) caller: &'a Caller,
    pub(super) headers: &'a HeaderMap,
    path: &'a str,
    /// The share of the connection in the response budget; absent in an embedded router.
    pub(super) share: Option<&'a Arc<ConnectionShare>>,
}

impl HttpSender<'_> {
    /// Whether the client reads sign-in challenges in tool results. ChatGPT offers to sign in for a single tool that
    /// way, and takes a 401 for a broken server; every other client needs the 401.
    fn reads_challenges_in_results(&self, request: &RpcRequest<'_>) -> bool {
        let agent = self.headers.get(header::USER_AGENT);
        let agent = agent.and_then(|value| value.to_str().ok());
        let named = agent.is_some_and(|agent| agent.to_ascii_lowercase().starts_with("openai-mcp"));
        named || request.params.meta.is_some_and(has_openai_key)
    }
}

/// Whether `_meta` has a key in the namespace of ChatGPT. Values do not count, because any client may carry such text.
fn has_openai_key(meta: &RawValue) -> bool {
    let members: Option<HashMap<Cow<'_, str>, IgnoredAny>> = serde_json::from_str(meta.get()).ok();
    members.is_some_and(|members| members.keys().any(|key| key.starts_with("openai/")))
}

/// Reads the body, if its type and size are acceptable. No in-flight permit is taken before the body is complete, so
/// slow senders take nothing from others.
pub(crate) async fn receive(
    endpoint: &McpEndpoint,
    request: HttpRequest<Body>,
) -> Result<ReceivedRequest, Response> {
    let (mut parts, body) = request.into_parts();
    if !is_json(&parts.headers) {
        let error = RpcError::invalid_request("`Content-Type` must be `application/json`");
        return Err(json_response::rpc_error_response(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            &error,
        ));
    }
    let limits = &endpoint.dispatcher.limits;
    let shares = parts.extensions.remove::<ConnectionShares>();
    let charge = shares.as_ref().map(|shares| body::BodyCharge {
        share: &shares.bodies,
        headers: &parts.headers,
    });
    let received = body::receive(body, limits.body_bytes, limits, charge)
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

/// Whether the content type is exactly `application/json`, with or without parameters. A browser sends other types
/// across origins without a preflight.
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
        let limits = &self.dispatcher.limits;
        // The parse permit comes first: while a large body waits for one, it holds no in-flight permit that a small
        // call could use.
        let max_wait = Some(PARSE_PERMIT_TIMEOUT);
        let parse_permit = self.dispatcher.parse_permit(bytes.len(), max_wait);
        let Ok(_parse_permit) = parse_permit.await else {
            return json_response::busy();
        };
        let Ok(permit) = self.in_flight.clone().try_acquire_owned() else {
            return json_response::busy();
        };
        match rpc_message::split(bytes, limits.json_depth, limits.batch) {
            Err(error) => json_response::rpc_error_response(StatusCode::BAD_REQUEST, &error),
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
                    Err((status, text)) => json_response::json(status, text),
                }
            }
        }
    }

    /// Handles one message. In a batch it takes its own in-flight permit, and its status does not become that of the
    /// response.
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
                &RpcError::invalid_request(
                    "this server sends no requests, so it accepts no responses",
                ),
                None,
            )),
            // A client of a stateless server cancels by closing the connection, so notifications need no action.
            Ok(RpcMessage::Notification(_)) => Ok(MessageOutcome::Accepted),
            Ok(RpcMessage::Request(request)) => {
                let missing = self.dispatcher.missing_scope_for(sender.caller, &request);
                let Some(batch) = batch else {
                    if let Some(refusal) = self.forbidden(sender, &request, missing.as_ref()) {
                        return Ok(MessageOutcome::Forbidden(Box::new(refusal)));
                    }
                    return self.request(sender, &request, missing).await;
                };
                let permit = batch
                    .admit(&self.in_flight)
                    .map_err(|error| (StatusCode::OK, error.answer(Some(&request.id))))?;
                let mut done = self.request(sender, &request, missing).await?;
                if let MessageOutcome::Reply(Reply::Stream(stream), _) = &mut done {
                    stream.keep(permit);
                }
                Ok(done)
            }
        }
    }

    /// Returns a 401 or 403 for a call without sufficient sign-in, for clients that act on the HTTP status.
    fn forbidden(
        &self,
        sender: &HttpSender<'_>,
        request: &RpcRequest<'_>,
        missing: Option<&MissingScope>,
    ) -> Option<Response> {
        let (auth, missing) = (self.dispatcher.auth.as_ref()?, missing?);
        if sender.reads_challenges_in_results(request) {
            return None;
        }
        let trace = TraceParent::of(sender.headers);
        let caller_context =
            self.dispatcher
                .caller_context(sender.caller, Revision::ASSUMED, None, trace);
        self.dispatcher
            .record_refused(&request.params, &caller_context);
        Some(auth.refuse_missing_scope(missing, sender.headers, sender.path))
    }

    async fn request(
        &self,
        sender: &HttpSender<'_>,
        request: &RpcRequest<'_>,
        missing: Option<MissingScope>,
    ) -> Result<MessageOutcome, (StatusCode, String)> {
        if let Some(answer) = self.dispatcher.oversized(request) {
            return Err((StatusCode::PAYLOAD_TOO_LARGE, answer));
        }
        let (headers, caller) = (sender.headers, sender.caller);
        let revision = protocol_headers::request_revision(
            headers,
            request,
            &self.dispatcher.app,
            self.lenient,
        )
        .map_err(|error| log_refusal(headers, request, &error))?;
        let trace = TraceParent::of(headers);
        let caller_context = self
            .dispatcher
            .caller_context(caller, revision, missing, trace);
        let span = trace::request_span(&request.method, trace, request.params.meta);
        let cancel = CancellationToken::new();
        let work = self
            .dispatcher
            .answer(request, caller_context, cancel, sender.share);
        let reply = work.instrument(span.clone()).await;
        if let Reply::Whole(_, Some(code)) = &reply {
            span.record("code", code);
        }
        Ok(MessageOutcome::Reply(reply, revision))
    }
}

/// The outcome of one message.
pub(super) enum MessageOutcome {
    Reply(Reply, Revision),
    Accepted,
    Forbidden(Box<Response>),
}

/// Collects a stream for a client that accepts JSON only: the last message is the response.
async fn collect_stream(stream: Box<ReplyStream>) -> Response {
    if stream.is_listener() {
        let error =
            RpcError::invalid_request("`subscriptions/listen` needs `Accept: text/event-stream`");
        return json_response::rpc_error_response(StatusCode::NOT_ACCEPTABLE, &error);
    }
    json_response::json(StatusCode::OK, responses::last_message(stream).await)
}

/// Logs a request that was refused because of its headers: this is where a change of a host shows first.
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
