//! The HTTP+SSE transport of 2024-11-05: `GET /sse` opens a stream and announces the URL that messages are posted to.
//!
//! The stream is the connection; when it ends, no state of it remains.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::extract::{Extension, Query, Request as HttpRequest, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::StatusCode;
use tokio::sync::Semaphore;

use super::mcp_endpoint::{McpEndpoint, receive};
use super::responses;
use crate::answer_queue::AnswerQueue;
use crate::auth::Caller;
use crate::byte_budget::{ConnectionShares, ServerBudgets};
use crate::json_response;
use crate::mcp_connection::{AnswerSink, McpConnection, MessageReceipt, MessageSender};
use crate::rpc::RpcError;
use crate::trace::TraceParent;

/// The open streams by the random id in their URL. `budgets` is for requests that did not arrive on a connection of
/// ours, as in an embedded router.
#[derive(Clone)]
pub(crate) struct SseStreams {
    endpoint: McpEndpoint,
    open: Arc<Mutex<HashMap<String, OpenSseStream>>>,
    budgets: ServerBudgets,
}

#[derive(Clone)]
struct OpenSseStream {
    caller: Caller,
    connection: McpConnection,
    queue: Arc<AnswerQueue>,
}

impl SseStreams {
    pub(crate) fn new(endpoint: McpEndpoint) -> Self {
        let budgets = ServerBudgets::new(&endpoint.dispatcher.limits);
        Self {
            endpoint,
            open: Arc::default(),
            budgets,
        }
    }

    fn with<T>(&self, work: impl FnOnce(&mut HashMap<String, OpenSseStream>) -> T) -> T {
        work(&mut self.open.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Registers a stream, unless there are too many in total, for its caller or on its connection. Anonymous callers
    /// cannot be told apart, so only the connection counts for them.
    fn admit(&self, id: &str, stream: OpenSseStream) -> bool {
        let limits = &self.endpoint.dispatcher.limits;
        self.with(|open| {
            let same = |other: &&OpenSseStream| match stream.caller.key() {
                Some(key) => other.caller.key() == Some(key),
                None => Arc::ptr_eq(other.queue.share(), stream.queue.share()),
            };
            let room = open.len() < limits.listen_streams
                && open.values().filter(same).count() < limits.streams_per_caller;
            if room {
                open.insert(id.to_owned(), stream);
            }
            room
        })
    }
}

/// Removes the stream when its response is dropped.
struct SseStreamGuard {
    streams: SseStreams,
    id: String,
}

impl Drop for SseStreamGuard {
    fn drop(&mut self) {
        if let Some(stream) = self.streams.with(|open| open.remove(&self.id)) {
            stream.connection.cancel_all();
            stream.queue.end();
        }
    }
}

/// Handles `GET /sse`: opens an event stream for an authenticated caller.
pub(crate) async fn open(
    State(streams): State<SseStreams>,
    Extension(caller): Extension<Caller>,
    shares: Option<Extension<ConnectionShares>>,
) -> Response {
    let dispatcher = streams.endpoint.dispatcher.clone();
    let limits = dispatcher.limits.clone();
    let closing = dispatcher.app.inner().closing.clone();
    let shares = shares.map_or_else(|| streams.budgets.connection(), |found| found.0);
    let slot = shares.answers.budget().slot(&caller);
    let queue = Arc::new(AnswerQueue::new(Arc::clone(&shares.answers), slot));
    let sink = AnswerSink::Stream(Arc::clone(&queue));
    let id = uuid::Uuid::new_v4().simple().to_string();
    // Its own in-flight limit, so that one stream cannot use up the server's.
    let own = Arc::new(Semaphore::new(limits.stream_in_flight));
    let in_flight = vec![own, Arc::clone(&streams.endpoint.in_flight)];
    let stream = OpenSseStream {
        caller: caller.clone(),
        connection: McpConnection::new(dispatcher, sink, in_flight),
        queue: Arc::clone(&queue),
    };
    if !streams.admit(&id, stream) {
        let hint = "close the streams that are no longer read, or try again later";
        let error = RpcError::new(-32603, "too many streams are open");
        let answer = error
            .with_data(serde_json::json!({"hint": hint}))
            .answer(None);
        return json_response::retry_later(answer);
    }
    let first = format!("event: endpoint\ndata: /messages?sessionId={id}\n\n");
    let state = (Some(first), queue, SseStreamGuard { streams, id });
    let keep_alive = limits.sse_keep_alive;
    let events = futures::stream::unfold(state, move |(first, queue, open)| {
        let closing = closing.clone();
        async move {
            let event = match first {
                Some(first) => first,
                None => tokio::select! {
                    answer = queue.next() => responses::event("event: message\n", &answer?),
                    () = tokio::time::sleep(keep_alive) => ":\n\n".to_owned(),
                    () = closing.cancelled() => return None,
                },
            };
            Some((
                Ok::<_, std::convert::Infallible>(Bytes::from(event)),
                (None, queue, open),
            ))
        }
    });
    let answer = responses::stream_head(Body::from_stream(events));
    ConnectionShares::charge_to_caller(Some(&shares), &caller, answer)
}

/// Handles `POST /messages?sessionId=…`: a message for an open stream.
pub(crate) async fn message(
    State(streams): State<SseStreams>,
    Extension(caller): Extension<Caller>,
    Query(query): Query<HashMap<String, String>>,
    request: HttpRequest<Body>,
) -> Response {
    let id = query.get("sessionId").or_else(|| query.get("session_id"));
    let found = id.and_then(|id| streams.with(|open| open.get(id).cloned()));
    // The id alone is not a credential: a stream accepts messages of the caller who opened it only.
    let own = found
        .filter(|stream| stream.caller.key() == caller.key())
        .filter(|stream| !stream.queue.has_ended());
    let Some(stream) = own else {
        let error = RpcError::new(-32001, "this stream is not open; connect to `/sse` again");
        return json_response::rpc_error_response(StatusCode::NOT_FOUND, &error);
    };
    let body = match receive(&streams.endpoint, request).await {
        Ok(body) => body,
        Err(refusal) => return refusal,
    };
    // A stream whose reader falls behind gets no new work until it has caught up (backpressure).
    if !stream.queue.share().has_room() {
        return json_response::refuse_unread();
    }
    let trace = TraceParent::of(&body.headers);
    let sender = MessageSender { caller, trace };
    let connection = &stream.connection;
    let receiving = connection.receive(&body.bytes, &sender, body.counted);
    match receiving.await {
        MessageReceipt::Busy(answer) => json_response::retry_later(answer),
        MessageReceipt::Taken => StatusCode::ACCEPTED.into_response(),
        MessageReceipt::TooLarge(answer) => {
            json_response::json(StatusCode::PAYLOAD_TOO_LARGE, answer)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::App;
    use crate::dispatcher::RequestDispatcher;
    use crate::limits::HttpLimits;

    const EACH: usize = 2;
    const ALL: usize = 7;

    fn streams() -> SseStreams {
        let app = App::builder("streams", "1.0.0").build().unwrap();
        let limits = HttpLimits {
            streams_per_caller: EACH,
            listen_streams: ALL,
            ..HttpLimits::default()
        };
        SseStreams::new(McpEndpoint::new(
            RequestDispatcher::new(app, Arc::new(limits), None),
            false,
        ))
    }

    fn known(subject: &str) -> Caller {
        Caller::verified("i", subject, None, Default::default(), Default::default())
    }

    async fn opened(streams: &SseStreams, caller: &Caller, shares: &ConnectionShares) -> Response {
        let shares = Some(Extension(shares.clone()));
        open(State(streams.clone()), Extension(caller.clone()), shares).await
    }

    #[tokio::test]
    async fn a_verified_caller_has_so_many_streams_on_all_connections() {
        let streams = streams();
        let mut kept = Vec::new();
        for (count, expected) in [(0, 200), (1, 200), (EACH, 503)] {
            let response = opened(&streams, &known("a"), &streams.budgets.connection()).await;
            assert_eq!(response.status(), expected, "{count}");
            kept.push(response);
        }
        let shares = streams.budgets.connection();
        assert_eq!(opened(&streams, &known("b"), &shares).await.status(), 200);
        drop(kept);
        assert_eq!(opened(&streams, &known("a"), &shares).await.status(), 200);
    }

    #[tokio::test]
    async fn callers_without_a_name_have_so_many_on_one_connection_and_the_server_in_all() {
        let streams = streams();
        let (nobody, mut kept) = (Caller::anonymous(), Vec::new());
        for _ in 0..ALL / EACH {
            let shares = streams.budgets.connection();
            for _ in 0..EACH {
                kept.push(opened(&streams, &nobody, &shares).await);
            }
            let refused = opened(&streams, &nobody, &shares).await;
            assert_eq!(refused.status(), 503);
            assert_eq!(refused.headers()["retry-after"], "1");
        }
        assert!(kept.iter().all(|response| response.status() == 200));
        // The seventh stream fits, the eighth does not.
        let shares = streams.budgets.connection();
        let last = opened(&streams, &nobody, &shares).await;
        assert_eq!(last.status(), 200);
        assert_eq!(opened(&streams, &nobody, &shares).await.status(), 503);
        drop((kept, last));
        assert!(streams.with(|open| open.is_empty()));
    }
}
