//! MCP over a connection that carries many messages: stdio, or the HTTP+SSE transport of 2024-11-05.
//!
//! It stores only what belongs to the connection: the revision that `initialize` negotiated, and the requests in
//! flight. Both end with the connection.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use crate::answer_error;
use crate::answer_queue::AnswerQueue;
use crate::auth::Caller;
use crate::byte_budget::{ByteReservation, ConnectionShare};
use crate::call::CallerContext;
use crate::dispatcher::{PARSE_PERMIT_TIMEOUT, RequestDispatcher};
use crate::protocol_version::{
    DeclaredProtocol, is_bare_discover, negotiate_revision, unsupported_version,
};
use crate::reply::Reply;
use crate::revision::Revision;
use crate::rpc::{RequestId, RpcError};
use crate::rpc_message::{self, RpcMessage, RpcNotification, RpcRequest};
use crate::trace::{self, TraceParent};

/// The sender of a message: the verified caller, and the trace context of the transport.
pub(crate) struct MessageSender {
    pub(crate) caller: Caller,
    pub(crate) trace: Option<TraceParent>,
}

/// What a message holds until it is answered: its parse permit, if it is large, and the reserved memory of its body.
pub(crate) struct MessagePermits {
    _parse: Option<OwnedSemaphorePermit>,
    _body: Option<ByteReservation>,
}

/// What a request holds while it is worked on: its in-flight permits, and the permits of its message.
struct RequestPermits {
    _in_flight: Vec<OwnedSemaphorePermit>,
    _message: Arc<MessagePermits>,
}

/// The outcome of receiving a message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MessageReceipt {
    /// The message was accepted; its response follows, if it has one.
    Taken,
    /// The call exceeds the size limit. The text is the error response.
    TooLarge(String),
    /// Too many requests are in flight. The text is the error response.
    Busy(String),
}

/// The destination of a connection's responses.
#[derive(Clone)]
pub(crate) enum AnswerSink {
    /// A pipe, with backpressure: while the client does not read its responses, its requests wait. `read` is notified
    /// when the client has read some.
    Pipe {
        answers: mpsc::Sender<(String, ByteReservation)>,
        share: Arc<ConnectionShare>,
        read: Arc<Notify>,
    },
    /// An event stream, which is closed when its reader falls too far behind.
    Stream(Arc<AnswerQueue>),
}

/// One connection. Its responses go to the sink it was created with.
#[derive(Clone)]
pub(crate) struct McpConnection(Arc<McpConnectionState>);

struct McpConnectionState {
    dispatcher: RequestDispatcher,
    sink: AnswerSink,
    /// The in-flight limits, from each of which a request needs a permit: the connection's own and the server's.
    in_flight: Vec<Arc<Semaphore>>,
    revision: Mutex<Revision>,
    cancellations: Mutex<HashMap<RequestId, CancellationToken>>,
    /// Cancels all work, including that of requests whose id a later request has reused.
    ended: CancellationToken,
    tasks: TaskTracker,
}

impl McpConnection {
    pub(crate) fn new(
        dispatcher: RequestDispatcher,
        sink: AnswerSink,
        in_flight: Vec<Arc<Semaphore>>,
    ) -> Self {
        Self(Arc::new(McpConnectionState {
            dispatcher: dispatcher.for_connection(),
            sink,
            in_flight,
            revision: Mutex::new(Revision::ASSUMED),
            cancellations: Mutex::default(),
            ended: CancellationToken::new(),
            tasks: TaskTracker::new(),
        }))
    }

    /// Receives one message, or a batch if the revision is 2025-03-26, and starts the work on it.
    pub(crate) async fn receive(
        &self,
        bytes: &[u8],
        sender: &MessageSender,
        body: Option<ByteReservation>,
    ) -> MessageReceipt {
        let dispatcher = &self.0.dispatcher;
        // A pipe has one client, which can wait; on HTTP other clients may hold all permits.
        let max_wait = match &self.0.sink {
            AnswerSink::Pipe { .. } => None,
            AnswerSink::Stream(_) => Some(PARSE_PERMIT_TIMEOUT),
        };
        let Ok(parse_permit) = dispatcher.parse_permit(bytes.len(), max_wait).await else {
            return MessageReceipt::Busy(answer_error::too_busy().answer(None));
        };
        let message_permits = Arc::new(MessagePermits {
            _parse: parse_permit,
            _body: body,
        });
        let limits = &dispatcher.limits;
        match rpc_message::split(bytes, limits.json_depth, limits.batch) {
            Err(error) => self.send(error.answer(None)).await,
            Ok(rpc_message::RpcBody::One(text)) => {
                return self.receive_one(text, sender, &message_permits).await;
            }
            Ok(rpc_message::RpcBody::Batch(_)) if self.revision() != Revision::V2025_03_26 => {
                let error = RpcError::invalid_request("only revision 2025-03-26 has batches");
                self.send(error.answer(None)).await;
            }
            Ok(rpc_message::RpcBody::Batch(items)) => {
                for item in items {
                    match self.receive_one(item.get(), sender, &message_permits).await {
                        MessageReceipt::Taken => {}
                        MessageReceipt::TooLarge(answer) | MessageReceipt::Busy(answer) => {
                            self.send(answer).await;
                        }
                    }
                }
            }
        }
        MessageReceipt::Taken
    }

    /// Refuses a message that is too long to be read.
    pub(crate) async fn refuse(&self, message: &'static str) {
        self.send(RpcError::invalid_request(message).answer(None))
            .await;
    }

    /// Sends a response that is already rendered.
    pub(crate) async fn answer(&self, text: String) {
        self.send(text).await;
    }

    /// Waits until all requests in flight are answered.
    pub(crate) async fn drain(&self) {
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    /// Cancels all requests in flight.
    pub(crate) fn cancel_all(&self) {
        self.0.ended.cancel();
    }

    async fn receive_one(
        &self,
        text: &str,
        sender: &MessageSender,
        message_permits: &Arc<MessagePermits>,
    ) -> MessageReceipt {
        match rpc_message::parse(text) {
            Err(unread) => self.send(unread.error.answer(unread.id.as_ref())).await,
            Ok(RpcMessage::Response) => {}
            Ok(RpcMessage::Notification(note)) => self.handle_notification(&note),
            Ok(RpcMessage::Request(request)) => {
                if let Some(answer) = self.0.dispatcher.oversized(&request) {
                    return MessageReceipt::TooLarge(answer);
                }
                match self.revision_of(&request) {
                    Ok(revision) => {
                        let Some(in_flight) = self.in_flight_permits().await else {
                            return MessageReceipt::Busy(
                                answer_error::too_busy().answer(Some(&request.id)),
                            );
                        };
                        let permits = RequestPermits {
                            _in_flight: in_flight,
                            _message: Arc::clone(message_permits),
                        };
                        self.start(&request, revision, sender, permits);
                    }
                    Err(error) => self.send(error.answer(Some(&request.id))).await,
                }
            }
        }
        MessageReceipt::Taken
    }

    /// Takes the in-flight permits of a request. A pipe waits for them, and for its client to read pending responses:
    /// the pipe fills up, and no message is refused. A stream gets an error and can retry.
    async fn in_flight_permits(&self) -> Option<Vec<OwnedSemaphorePermit>> {
        let limits = self.0.in_flight.iter().cloned();
        let AnswerSink::Pipe { share, read, .. } = &self.0.sink else {
            return limits.map(|limit| limit.try_acquire_owned().ok()).collect();
        };
        while share.budget().is_half_used() {
            read.notified().await;
        }
        let mut permits = Vec::new();
        for limit in limits {
            permits.push(limit.acquire_owned().await.ok()?);
        }
        Some(permits)
    }

    fn handle_notification(&self, note: &RpcNotification<'_>) {
        if note.method != "notifications/cancelled" {
            return;
        }
        let id = note
            .params
            .request_id
            .and_then(|raw| serde_json::from_str(raw.get()).ok());
        if let Some(token) = id.and_then(|id: RequestId| lock(&self.0.cancellations).remove(&id)) {
            token.cancel();
        }
    }

    fn revision(&self) -> Revision {
        *lock(&self.0.revision)
    }

    fn revision_of(&self, request: &RpcRequest<'_>) -> Result<Revision, RpcError> {
        let declared = DeclaredProtocol::of(&request.params);
        if let Some(version) = declared.version() {
            let revision =
                Revision::parse(&version).ok_or_else(|| unsupported_version(&version))?;
            return match declared.missing_member().filter(|_| revision.is_modern()) {
                Some(error) => Err(error),
                None => Ok(revision),
            };
        }
        if request.method == "initialize" {
            let revision = negotiate_revision(&request.params);
            *lock(&self.0.revision) = revision;
            return Ok(revision);
        }
        Ok(if is_bare_discover(request) {
            Revision::V2026_07_28
        } else {
            self.revision()
        })
    }

    /// Runs a request in its own task, so that a slow tool does not block other messages.
    fn start(
        &self,
        request: &RpcRequest<'_>,
        revision: Revision,
        sender: &MessageSender,
        permits: RequestPermits,
    ) {
        let cancel = self.0.ended.child_token();
        lock(&self.0.cancellations).insert(request.id.clone(), cancel.clone());
        let text = request.raw.to_owned();
        let (this, id) = (self.clone(), request.id.clone());
        let dispatcher = &self.0.dispatcher;
        let missing_scope = dispatcher.missing_scope_for(&sender.caller, request);
        let caller_context =
            dispatcher.caller_context(&sender.caller, revision, missing_scope, sender.trace);
        self.0.tasks.spawn(async move {
            tokio::select! {
                reply = this.work(text, caller_context, cancel.clone()) => {
                    this.deliver(reply, &cancel, permits).await;
                }
                // A cancelled request gets no response, as the protocol requires.
                () = cancel.cancelled() => {}
            }
            lock(&this.0.cancellations).remove(&id);
        });
    }

    /// Runs a request. Its text is dropped with this future, because a listener may stay open for hours.
    async fn work(
        &self,
        text: String,
        caller_context: CallerContext,
        cancel: CancellationToken,
    ) -> Option<Reply> {
        let Ok(RpcMessage::Request(request)) = rpc_message::parse(&text) else {
            return None;
        };
        let span = trace::request_span(&request.method, caller_context.trace, request.params.meta);
        let share = match &self.0.sink {
            // The backpressure of a pipe already bounds what is queued.
            AnswerSink::Pipe { .. } => None,
            AnswerSink::Stream(queue) => Some(queue.share()),
        };
        let work = self
            .0
            .dispatcher
            .answer(&request, caller_context, cancel, share);
        Some(work.instrument(span).await)
    }

    async fn deliver(
        &self,
        reply: Option<Reply>,
        cancel: &CancellationToken,
        permits: RequestPermits,
    ) {
        match reply {
            None => {}
            Some(Reply::Whole(text, _)) => self.send(text).await,
            Some(Reply::Stream(mut stream)) => {
                // Listeners release their permits, because listening is not work.
                let _permits = (!stream.is_listener()).then_some(permits);
                loop {
                    let text = tokio::select! {
                        text = stream.next() => text,
                        () = cancel.cancelled() => return,
                    };
                    let Some(text) = text else { return };
                    self.send(text).await;
                }
            }
        }
    }

    async fn send(&self, text: String) {
        match &self.0.sink {
            AnswerSink::Pipe { answers, share, .. } => {
                let counted = share.charge(text.len());
                if answers.send((text, counted)).await.is_err() {
                    tracing::debug!("client disconnected before its response");
                }
            }
            AnswerSink::Stream(queue) => {
                if !queue.push(text) {
                    tracing::debug!("event stream closed: the client reads too slowly");
                    self.cancel_all();
                }
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
