//! A connection that carries many messages: stdio, or the HTTP+SSE transport of 2024-11-05.
//!
//! All it remembers is what the connection itself is: the revision that `initialize` settled on
//! and which requests are still being worked on. It ends with the connection.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::RequestId;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use crate::auth::Caller;
use crate::call::CallerContext;
use crate::dispatcher::{RequestDispatcher, TURN_PATIENCE};
use crate::http::answer_queue::AnswerQueue;
use crate::http::byte_budget::{ByteReservation, ConnectionShare};
use crate::http::error_response;
use crate::protocol_version::{
    DeclaredProtocol, is_bare_discover, negotiate_revision, unsupported_version,
    with_protocol_metadata,
};
use crate::reply::Reply;
use crate::revision::Revision;
use crate::rpc::RpcError;
use crate::rpc_message::{self, RpcMessage, RpcNotification, RpcRequest};
use crate::trace::{self, TraceParent};

/// Who sends a message, and in which trace.
pub(crate) struct MessageSender {
    pub(crate) caller: Caller,
    pub(crate) trace: Option<TraceParent>,
}

/// What a message occupies until it is answered: its turn to be parsed where it is large, and the memory of its body.
pub(crate) struct OccupiedMemory {
    _turn: Option<OwnedSemaphorePermit>,
    _body: Option<ByteReservation>,
}

/// What a request holds while it is worked on.
struct RequestHold {
    _permits: Vec<OwnedSemaphorePermit>,
    _memory: Arc<OccupiedMemory>,
}

/// What became of a message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MessageReceipt {
    /// Its answer follows, if it has one.
    Taken,
    /// It was a larger call than allowed; this answers it.
    TooLarge(String),
    /// It was a request while too many are being worked on; this answers it.
    Busy(String),
}

/// Where the answers of a connection go.
#[derive(Clone)]
pub(crate) enum AnswerSink {
    /// A pipe. Whoever does not read it is not heard either.
    Pipe {
        answers: mpsc::Sender<(String, ByteReservation)>,
        share: Arc<ConnectionShare>,
        /// Told when some of it was read.
        read: Arc<Notify>,
    },
    /// An event stream. It ends when its reader falls too far behind.
    Stream(Arc<AnswerQueue>),
}

/// One connection. Answers leave through the sink it was made with.
#[derive(Clone)]
pub(crate) struct McpConnection(Arc<McpConnectionState>);

struct McpConnectionState {
    exchange: RequestDispatcher,
    out: AnswerSink,
    /// Places for requests in flight, each of which a request needs: its own, and those of the whole server.
    in_flight: Vec<Arc<Semaphore>>,
    revision: Mutex<Revision>,
    working: Mutex<HashMap<RequestId, CancellationToken>>,
    /// Ends all work, that of requests whose id another one has taken over too.
    ended: CancellationToken,
    tasks: TaskTracker,
}

impl McpConnection {
    pub(crate) fn new(
        exchange: RequestDispatcher,
        out: AnswerSink,
        in_flight: Vec<Arc<Semaphore>>,
    ) -> Self {
        Self(Arc::new(McpConnectionState {
            exchange: exchange.for_connection(),
            out,
            in_flight,
            revision: Mutex::new(Revision::ASSUMED),
            working: Mutex::default(),
            ended: CancellationToken::new(),
            tasks: TaskTracker::new(),
        }))
    }

    /// Takes one message of this sender, or the batch that 2025-03-26 allows, and starts the work on it.
    pub(crate) async fn receive(
        &self,
        bytes: &[u8],
        sender: &MessageSender,
        body: Option<ByteReservation>,
    ) -> MessageReceipt {
        let exchange = &self.0.exchange;
        // A pipe has one client, who waits; on HTTP somebody else may hold all turns.
        let patience = match &self.0.out {
            AnswerSink::Pipe { .. } => None,
            AnswerSink::Stream(_) => Some(TURN_PATIENCE),
        };
        let Ok(turn) = exchange.parse_turn(bytes.len(), patience).await else {
            return MessageReceipt::Busy(error_response::too_busy().answer(None));
        };
        let memory = Arc::new(OccupiedMemory {
            _turn: turn,
            _body: body,
        });
        let limits = &exchange.limits;
        match rpc_message::split(bytes, limits.json_depth, limits.batch) {
            Err(error) => self.send(error.answer(None)).await,
            Ok(rpc_message::RpcBody::One(text)) => {
                return self.receive_one(text, sender, &memory).await;
            }
            Ok(rpc_message::RpcBody::Batch(_)) if self.revision() != Revision::V2025_03_26 => {
                let error = RpcError::invalid_request("only revision 2025-03-26 has batches");
                self.send(error.answer(None)).await;
            }
            Ok(rpc_message::RpcBody::Batch(items)) => {
                for item in items {
                    match self.receive_one(item.get(), sender, &memory).await {
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

    /// Refuses a message that was too long to be read.
    pub(crate) async fn refuse(&self, message: &'static str) {
        self.send(RpcError::invalid_request(message).answer(None))
            .await;
    }

    /// Sends an answer that was made already.
    pub(crate) async fn answer(&self, text: String) {
        self.send(text).await;
    }

    /// Waits for the answers still being worked on.
    pub(crate) async fn drain(&self) {
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    /// Gives up everything still being worked on.
    pub(crate) fn cancel_all(&self) {
        self.0.ended.cancel();
    }

    async fn receive_one(
        &self,
        text: &str,
        sender: &MessageSender,
        memory: &Arc<OccupiedMemory>,
    ) -> MessageReceipt {
        match rpc_message::parse(text) {
            Err(unread) => self.send(unread.error.answer(unread.id.as_ref())).await,
            Ok(RpcMessage::Response) => {}
            Ok(RpcMessage::Notification(note)) => self.handle_notification(&note),
            Ok(RpcMessage::Request(request)) => {
                if let Some(answer) = self.0.exchange.oversized(&request) {
                    return MessageReceipt::TooLarge(answer);
                }
                match self.revision_of(&request) {
                    Ok(revision) => {
                        let Some(permits) = self.permits().await else {
                            return MessageReceipt::Busy(
                                error_response::too_busy().answer(Some(&request.id)),
                            );
                        };
                        let held = RequestHold {
                            _permits: permits,
                            _memory: Arc::clone(memory),
                        };
                        self.start(&request, revision, sender, held);
                    }
                    Err(error) => self.send(error.answer(Some(&request.id))).await,
                }
            }
        }
        MessageReceipt::Taken
    }

    /// Places for a request. A pipe waits for them, and until its client has read enough of what waits there: it fills
    /// up, and nothing is turned away. A stream is told to come back.
    async fn permits(&self) -> Option<Vec<OwnedSemaphorePermit>> {
        let places = self.0.in_flight.iter().cloned();
        let AnswerSink::Pipe { share, read, .. } = &self.0.out else {
            return places.map(|place| place.try_acquire_owned().ok()).collect();
        };
        while share.budget().is_strained() {
            read.notified().await;
        }
        let mut permits = Vec::new();
        for place in places {
            permits.push(place.acquire_owned().await.ok()?);
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
        if let Some(token) = id.and_then(|id: RequestId| lock(&self.0.working).remove(&id)) {
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

    /// Works on a request in a task of its own, so that a slow tool holds up nobody.
    fn start(
        &self,
        request: &RpcRequest<'_>,
        revision: Revision,
        sender: &MessageSender,
        held: RequestHold,
    ) {
        let cancel = self.0.ended.child_token();
        lock(&self.0.working).insert(request.id.clone(), cancel.clone());
        let bare = is_bare_discover(request);
        let text = if bare {
            with_protocol_metadata(request.raw)
        } else {
            request.raw.to_owned()
        };
        let (this, id) = (self.clone(), request.id.clone());
        let exchange = &self.0.exchange;
        let asker = exchange.caller_context(&sender.caller, revision, sender.trace);
        self.0.tasks.spawn(async move {
            tokio::select! {
                reply = this.work(text, asker, cancel.clone()) => {
                    this.deliver(reply, &cancel, held).await;
                }
                // A cancelled request gets no answer, as the protocol rules.
                () = cancel.cancelled() => {}
            }
            lock(&this.0.working).remove(&id);
        });
    }

    /// The answer to a request. Its text is let go of with the work: a listener stays for hours.
    async fn work(
        &self,
        text: String,
        asker: CallerContext,
        cancel: CancellationToken,
    ) -> Option<Reply> {
        let Ok(RpcMessage::Request(request)) = rpc_message::parse(&text) else {
            return None;
        };
        let span = trace::request_span(&request.method, asker.trace, request.params.meta);
        let share = match &self.0.out {
            // Whoever does not read a pipe is not heard, which bounds what waits.
            AnswerSink::Pipe { .. } => None,
            AnswerSink::Stream(queue) => Some(queue.share()),
        };
        let work = self.0.exchange.answer(&request, asker, cancel, share);
        Some(work.instrument(span).await)
    }

    async fn deliver(&self, reply: Option<Reply>, cancel: &CancellationToken, held: RequestHold) {
        match reply {
            None => {}
            Some(Reply::Whole(text, _)) => self.send(text).await,
            Some(Reply::Stream(mut stream)) => {
                // Only work counts as in flight, and listening is none.
                let _held = (!stream.is_listener()).then_some(held);
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
        match &self.0.out {
            AnswerSink::Pipe { answers, share, .. } => {
                let counted = share.charge(text.len());
                if answers.send((text, counted)).await.is_err() {
                    tracing::debug!("the client left before its answer");
                }
            }
            AnswerSink::Stream(queue) => {
                if !queue.push(text) {
                    tracing::debug!("an event stream ended, since nobody read it");
                    self.cancel_all();
                }
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
