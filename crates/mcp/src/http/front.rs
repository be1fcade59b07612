//! The MCP endpoint: one POST in, one answer out, for every revision.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request as HttpRequest;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::future::join_all;
use http::{HeaderMap, StatusCode, Uri, header};
use serde_json::value::RawValue;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::answer::{self, Form};
use super::budget::{ByteReservation, ConnectionShares};
use super::{body, era, refusal};
use crate::auth::Caller;
use crate::call::Asker;
use crate::era::{is_bare_discover, with_metadata};
use crate::exchange::{Exchange, Reply, Stream};
use crate::message::{self, Message, Params, Request};
use crate::revision::Revision;
use crate::rpc::RpcError;
use crate::trace::{self, TraceParent};

/// What every POST shares.
#[derive(Clone)]
pub(crate) struct Front {
    pub(crate) exchange: Exchange,
    pub(crate) lenient: bool,
    pub(crate) in_flight: Arc<Semaphore>,
}

impl Front {
    pub(crate) fn new(exchange: Exchange, lenient: bool) -> Self {
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
        let sender = Sender {
            caller,
            headers: &received.headers,
            path: received.uri.path(),
        };
        let answer = self.answer(&sender, &received.bytes).await;
        ConnectionShares::assign(received.shares.as_ref(), caller, answer)
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
struct Sender<'a> {
    caller: &'a Caller,
    headers: &'a HeaderMap,
    path: &'a str,
}

impl Sender<'_> {
    /// ChatGPT offers to sign in for one tool when the tool's result says so, and takes a 401 for a broken
    /// server; everybody else needs the 401.
    fn reads_challenges_in_results(&self, request: &Request<'_>) -> bool {
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
    front: &Front,
    request: HttpRequest<Body>,
) -> Result<ReceivedRequest, Response> {
    let (mut parts, body) = request.into_parts();
    if !is_json(&parts.headers) {
        let error = RpcError::invalid_request("`Content-Type` must be `application/json`");
        return Err(answer::refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, &error));
    }
    let limits = &front.exchange.limits;
    let shares = parts.extensions.remove::<ConnectionShares>();
    let share = shares.as_ref().map(|shares| &shares.bodies);
    let received = body::receive(body, limits.body_bytes, limits, share)
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

impl Front {
    async fn answer(&self, sender: &Sender<'_>, bytes: &[u8]) -> Response {
        let limits = &self.exchange.limits;
        let Ok(permit) = self.in_flight.clone().try_acquire_owned() else {
            return refusal::busy();
        };
        let _turn = self.exchange.parse_turn(bytes.len()).await;
        match message::split(bytes, limits.json_depth, limits.batch) {
            Err(error) => answer::refuse(StatusCode::BAD_REQUEST, &error),
            Ok(message::Body::Batch(items)) => self.batch(sender, &items).await,
            Ok(message::Body::One(text)) => {
                let form = Form::of(sender.headers);
                match self.one(sender, text, true).await {
                    Ok(Done::Reply(Reply::Whole(text, code), revision)) => {
                        answer::whole(text, answer::status(code, revision.is_modern()), form)
                    }
                    Ok(Done::Reply(Reply::Stream(stream), _)) if form == Form::Json => {
                        unstreamed(stream).await
                    }
                    Ok(Done::Reply(Reply::Stream(stream), _)) => {
                        // Only work counts as in flight, and listening is none.
                        let kept = (!stream.is_listener()).then_some(permit);
                        answer::stream(stream, limits.sse_keep_alive, kept)
                    }
                    Ok(Done::Accepted) => StatusCode::ACCEPTED.into_response(),
                    Ok(Done::Forbidden(refusal)) => *refusal,
                    Err((status, text)) => answer::json(status, text),
                }
            }
        }
    }

    /// One message; `alone` when the status of the answer is its own.
    async fn one(
        &self,
        sender: &Sender<'_>,
        text: &str,
        alone: bool,
    ) -> Result<Done, (StatusCode, String)> {
        let bad = |error: &RpcError, id| (StatusCode::BAD_REQUEST, error.answer(id));
        match message::parse(text) {
            Err(unread) => Err(bad(&unread.error, unread.id.as_ref())),
            Ok(Message::Response) => Err(bad(
                &RpcError::invalid_request("this server asks nothing, so nothing can be answered"),
                None,
            )),
            // Closing the connection is how a client of a stateless server cancels.
            Ok(Message::Notification(_)) => Ok(Done::Accepted),
            Ok(Message::Request(request)) => {
                if let Some(refusal) = self.forbidden(sender, &request).filter(|_| alone) {
                    return Ok(Done::Forbidden(Box::new(refusal)));
                }
                self.request(sender, &request).await
            }
        }
    }

    /// The answer to a call that needs signing in, or more than was granted, for clients that act on its
    /// status.
    fn forbidden(&self, sender: &Sender<'_>, request: &Request<'_>) -> Option<Response> {
        let auth = self.exchange.auth.as_ref()?;
        if request.method != "tools/call" || sender.reads_challenges_in_results(request) {
            return None;
        }
        let name = Params::string(request.params.name)?;
        let lack = self.exchange.lack(sender.caller, &name)?;
        let trace = TraceParent::of(sender.headers);
        let asker = self.exchange.asker(sender.caller, Revision::ASSUMED, trace);
        self.exchange.refused(&request.params, &asker);
        Some(auth.refuse_lack(&lack, sender.headers, sender.path))
    }

    async fn request(
        &self,
        sender: &Sender<'_>,
        request: &Request<'_>,
    ) -> Result<Done, (StatusCode, String)> {
        if let Some(answer) = self.exchange.oversized(request) {
            return Err((StatusCode::PAYLOAD_TOO_LARGE, answer));
        }
        let (headers, caller) = (sender.headers, sender.caller);
        let revision = era::revision(headers, request, &self.exchange.app, self.lenient)
            .map_err(|error| refused(headers, request, &error))?;
        let trace = TraceParent::of(headers);
        let asker = self.exchange.asker(caller, revision, trace);
        let span = trace::request(&request.method, trace, request.params.meta);
        let work = self.work(request, asker).instrument(span.clone());
        let reply = work.await;
        if let Reply::Whole(_, Some(code)) = &reply {
            span.record("code", code);
        }
        Ok(Done::Reply(reply, revision))
    }

    /// The answer to a request whose revision is known.
    async fn work(&self, request: &Request<'_>, asker: Asker) -> Reply {
        let cancel = CancellationToken::new();
        let is_modern = asker.revision.is_modern();
        let needs_metadata = is_bare_discover(request) || (self.lenient && is_modern);
        if needs_metadata {
            let text = with_metadata(request.raw);
            if let Ok(Message::Request(request)) = message::parse(&text) {
                return self.exchange.answer(&request, asker, cancel).await;
            }
        }
        self.exchange.answer(request, asker, cancel).await
    }

    /// A batch, for the one revision that had them.
    async fn batch(&self, sender: &Sender<'_>, items: &[&RawValue]) -> Response {
        let headers = sender.headers;
        let version = headers
            .get("mcp-protocol-version")
            .and_then(|value| value.to_str().ok());
        if version.is_some_and(|version| version.trim() != Revision::V2025_03_26.as_str()) {
            let error = RpcError::invalid_request("only revision 2025-03-26 has batches");
            return answer::refuse(StatusCode::BAD_REQUEST, &error);
        }
        // At once, so that a batch may take as long as one call and no longer.
        let work = items.iter().map(|item| async move {
            match self.one(sender, item.get(), false).await {
                Ok(Done::Accepted | Done::Forbidden(_)) => None,
                Ok(Done::Reply(Reply::Stream(stream), _)) if stream.is_listener() => None,
                Ok(Done::Reply(Reply::Stream(stream), _)) => Some(answer::last(stream).await),
                Ok(Done::Reply(Reply::Whole(text, _), _)) => Some(text),
                Err((_, text)) => Some(text),
            }
        });
        let answers: Vec<String> = join_all(work).await.into_iter().flatten().collect();
        if answers.is_empty() {
            return StatusCode::ACCEPTED.into_response();
        }
        if Form::of(headers) == Form::EventStream && !accepts_json(headers) {
            let events: String = answers
                .iter()
                .map(|text| format!("data: {text}\n\n"))
                .collect();
            return answer::stream_head(Body::from(events));
        }
        answer::json(StatusCode::OK, format!("[{}]", answers.join(",")))
    }
}

/// What became of one message.
enum Done {
    Reply(Reply, Revision),
    Accepted,
    Forbidden(Box<Response>),
}

/// A stream for a client that takes JSON alone: its last message is the answer.
async fn unstreamed(stream: Box<Stream>) -> Response {
    if stream.is_listener() {
        let error =
            RpcError::invalid_request("`subscriptions/listen` needs `Accept: text/event-stream`");
        return answer::refuse(StatusCode::NOT_ACCEPTABLE, &error);
    }
    answer::json(StatusCode::OK, answer::last(stream).await)
}

fn accepts_json(headers: &HeaderMap) -> bool {
    let mut values = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .peekable();
    values.peek().is_none()
        || values.any(|value| {
            let value = value.to_ascii_lowercase();
            value.contains("application/json") || value.contains("*/*")
        })
}

/// A refusal by the headers is worth a log line: it is how a host's change is noticed first.
fn refused(headers: &HeaderMap, request: &Request<'_>, error: &RpcError) -> (StatusCode, String) {
    let agent = headers
        .get(header::USER_AGENT)
        .and_then(|value| value.to_str().ok())
        .unwrap_or("-");
    let (agent, method) = (crate::era::short(agent), crate::era::short(&request.method));
    tracing::warn!(code = error.code, %agent, %method, reason = %error.message, "a request was refused");
    (StatusCode::BAD_REQUEST, error.answer(Some(&request.id)))
}
