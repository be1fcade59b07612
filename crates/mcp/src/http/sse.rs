//! The HTTP+SSE transport of 2024-11-05: `GET /sse` opens a stream and names the address to which
//! the messages go. The stream is the connection; when it ends, nothing of it is left.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::extract::{Extension, Query, Request as HttpRequest, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::StatusCode;
use tokio::sync::mpsc;

use super::answer;
use super::front::{Front, receive};
use crate::auth::Caller;
use crate::conversation::{Conversation, Sender};
use crate::rpc::RpcError;
use crate::trace::TraceParent;

/// Answers that may wait for a reader; one that falls further behind blocks only itself.
const QUEUE: usize = 64;

/// The open streams, by the random id in their address.
#[derive(Clone)]
pub(crate) struct Streams {
    front: Front,
    open: Arc<Mutex<HashMap<String, (Caller, Conversation)>>>,
}

impl Streams {
    pub(crate) fn new(front: Front) -> Self {
        Self {
            front,
            open: Arc::default(),
        }
    }

    fn with<T>(&self, work: impl FnOnce(&mut HashMap<String, (Caller, Conversation)>) -> T) -> T {
        work(&mut self.open.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Forgets the stream when its response is dropped.
struct Open {
    streams: Streams,
    id: String,
}

impl Drop for Open {
    fn drop(&mut self) {
        if let Some((_, conversation)) = self.streams.with(|open| open.remove(&self.id)) {
            conversation.cancel_all();
        }
    }
}

/// `GET /sse`.
pub(crate) async fn open(
    State(streams): State<Streams>,
    Extension(caller): Extension<Caller>,
) -> Response {
    let exchange = streams.front.exchange.clone();
    let limits = exchange.limits.clone();
    let closing = exchange.app.inner().closing.clone();
    let (out, answers) = mpsc::channel::<String>(QUEUE);
    let conversation = Conversation::new(exchange, out);
    let id = uuid::Uuid::new_v4().simple().to_string();
    let admitted = streams.with(|open| {
        let room = open.len() < limits.listen_streams;
        if room {
            open.insert(id.clone(), (caller, conversation));
        }
        room
    });
    if !admitted {
        let error = RpcError::new(-32603, "too many streams are open; try again later");
        return answer::refuse(StatusCode::SERVICE_UNAVAILABLE, &error);
    }
    let first = format!("event: endpoint\ndata: /messages?sessionId={id}\n\n");
    let state = (Some(first), answers, Open { streams, id });
    let keep_alive = limits.sse_keep_alive;
    let events = futures::stream::unfold(state, move |(first, mut answers, open)| {
        let closing = closing.clone();
        async move {
            let event = match first {
                Some(first) => first,
                None => tokio::select! {
                    answer = answers.recv() => format!("event: message\ndata: {}\n\n", answer?),
                    () = tokio::time::sleep(keep_alive) => ":\n\n".to_owned(),
                    () = closing.cancelled() => return None,
                },
            };
            Some((
                Ok::<_, std::convert::Infallible>(Bytes::from(event)),
                (None, answers, open),
            ))
        }
    });
    answer::stream_head(Body::from_stream(events))
}

/// `POST /messages?sessionId=…`.
pub(crate) async fn message(
    State(streams): State<Streams>,
    Extension(caller): Extension<Caller>,
    Query(query): Query<HashMap<String, String>>,
    request: HttpRequest<Body>,
) -> Response {
    let id = query.get("sessionId").or_else(|| query.get("session_id"));
    let found = id.and_then(|id| streams.with(|open| open.get(id).cloned()));
    // The id alone opens nothing: a stream belongs to whoever opened it.
    let own = found.filter(|(opener, _)| opener.key() == caller.key());
    let Some((_, conversation)) = own else {
        let error = RpcError::new(-32001, "this stream is not open; connect to `/sse` again");
        return answer::refuse(StatusCode::NOT_FOUND, &error);
    };
    let (parts, body) = request.into_parts();
    match receive(&streams.front, &parts.headers, body).await {
        Ok(bytes) => {
            let trace = TraceParent::of(&parts.headers);
            let sender = Sender { caller, trace };
            conversation.receive(&bytes, &sender).await;
            StatusCode::ACCEPTED.into_response()
        }
        Err(refusal) => refusal,
    }
}
