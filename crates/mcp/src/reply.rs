//! Replies: the messages that answer one request, on their way from rmcp to the transport.
//!
//! rmcp delivers JSON trees. Each message is serialized here as soon as it is sent, and its length is charged to the
//! byte budget of the connection. Otherwise a client that does not read could make the server hold trees that no
//! budget counts.

use std::future::Future;
use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::answer_error;
use crate::byte_budget::{ByteReservation, CallerSlot, ConnectionShare};
use crate::listeners::ListenerPermit;
use crate::rpc::to_text;

/// Capacity of the message queue of one request. When it is full, the work waits for the reader (backpressure): a tool
/// that reports progress faster than its client reads is slowed down instead of filling memory.
const QUEUE: usize = 16;
/// Memory overhead of a queued message in bytes, beside its text.
const OVERHEAD: usize = 64;

/// The reply to one request.
pub(crate) enum Reply {
    /// The complete response, with the error code if it is an error.
    Whole(String, Option<i32>),
    /// Messages that arrive while the work goes on; the last one is the response.
    Stream(Box<ReplyStream>),
}

/// Charges queued messages to the byte budget of the connection, and of the caller if it is known.
#[derive(Debug, Clone)]
pub(crate) struct AnswerMeter {
    pub(crate) share: Arc<ConnectionShare>,
    pub(crate) caller: Option<CallerSlot>,
}

/// The role of a message within its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MessageKind {
    Notification,
    Answer,
    Error(i32),
}

/// A serialized message, charged to the byte budget while it is queued.
#[derive(Debug)]
struct QueuedMessage {
    text: String,
    kind: MessageKind,
    _counted: Option<ByteReservation>,
}

/// The message stream of one request. Dropping it cancels the work. `permit_sender` sends an in-flight permit to the task that
/// does the work.
pub(crate) struct ReplyStream {
    first: Option<QueuedMessage>,
    rest: mpsc::Receiver<QueuedMessage>,
    _cancel: DropGuard,
    listener: Option<ListenerPermit>,
    permit_sender: Option<oneshot::Sender<OwnedSemaphorePermit>>,
}

impl ReplyStream {
    /// Whether this is a listener, which may stay open for hours and has no response to wait for.
    pub(crate) fn is_listener(&self) -> bool {
        self.listener.is_some()
    }

    /// Holds the in-flight permit until the work is done, whether or not its messages have been read by then.
    /// Listeners release it at once, because listening is not work.
    pub(crate) fn keep(&mut self, permit: OwnedSemaphorePermit) {
        if let Some(sender) = self.permit_sender.take().filter(|_| !self.is_listener()) {
            // If sending fails, the work is already done, and the permit is released.
            drop(sender.send(permit));
        }
    }

    /// Returns the next message as JSON; `None` after the response.
    pub(crate) async fn next(&mut self) -> Option<String> {
        let message = match self.first.take() {
            Some(first) => Some(first),
            None => self.rest.recv().await,
        };
        message.map(|message| message.text)
    }
}

/// The rmcp transport of one request: it delivers the request and collects the messages.
pub(crate) struct ReplyTransport {
    request: Option<ClientJsonRpcMessage>,
    messages: mpsc::Sender<QueuedMessage>,
    answered: CancellationToken,
    meter: Option<AnswerMeter>,
}

/// The receiving end of a [`ReplyTransport`].
pub(crate) struct ReplyReceiver(mpsc::Receiver<QueuedMessage>);

impl ReplyReceiver {
    /// Waits for the first message, which decides whether the reply is whole or a stream. `None` if rmcp ends without
    /// one.
    pub(crate) async fn reply(
        mut self,
        cancel: DropGuard,
        listener: Option<ListenerPermit>,
        permit_sender: oneshot::Sender<OwnedSemaphorePermit>,
    ) -> Option<Reply> {
        let first = self.0.recv().await?;
        Some(match first.kind {
            MessageKind::Answer => Reply::Whole(first.text, None),
            MessageKind::Error(code) => Reply::Whole(first.text, Some(code)),
            MessageKind::Notification => Reply::Stream(Box::new(ReplyStream {
                first: Some(first),
                rest: self.0,
                _cancel: cancel,
                listener,
                permit_sender: Some(permit_sender),
            })),
        })
    }
}

/// The client has disconnected, or reads too slowly for its budget.
#[derive(Debug, thiserror::Error)]
#[error("the message was not delivered")]
pub(crate) struct Undelivered;

impl ReplyTransport {
    pub(crate) fn new(
        request: ClientJsonRpcMessage,
        meter: Option<AnswerMeter>,
    ) -> (Self, ReplyReceiver) {
        let (messages, rest) = mpsc::channel(QUEUE);
        let transport = Self {
            request: Some(request),
            messages,
            answered: CancellationToken::new(),
            meter,
        };
        (transport, ReplyReceiver(rest))
    }
}

/// A serialized message that is not charged to a budget yet.
struct RenderedMessage {
    text: String,
    kind: MessageKind,
    id: Option<RequestId>,
}

impl RenderedMessage {
    fn of(message: &ServerJsonRpcMessage) -> Self {
        let (kind, id) = match message {
            ServerJsonRpcMessage::Response(answer) => (MessageKind::Answer, Some(&answer.id)),
            ServerJsonRpcMessage::Error(error) => {
                (MessageKind::Error(error.error.code.0), error.id.as_ref())
            }
            _ => (MessageKind::Notification, None),
        };
        Self {
            // Spare capacity is released, because the budget counts the length only.
            text: shrink_spare(to_text(message)),
            kind,
            id: id.cloned(),
        }
    }

    /// Charges the message to the budget. Without room, a response is replaced by an error and any other message is
    /// dropped: a listener ends in order when a notification fails, and progress is optional.
    async fn counted(self, meter: Option<AnswerMeter>) -> Option<QueuedMessage> {
        let Some(AnswerMeter { share, caller }) = meter else {
            return Some(QueuedMessage::uncounted(self.text, self.kind));
        };
        let is_last = self.kind != MessageKind::Notification;
        let bytes = self.text.len() + OVERHEAD;
        let counted = if is_last {
            share.reserve_evicting(bytes, caller).await
        } else {
            share.reserve(bytes, caller)
        };
        match counted {
            Some(counted) => Some(QueuedMessage {
                text: self.text,
                kind: self.kind,
                _counted: Some(counted),
            }),
            None => is_last.then(|| QueuedMessage::too_many(self.id.as_ref())),
        }
    }
}

impl QueuedMessage {
    fn uncounted(text: String, kind: MessageKind) -> Self {
        Self {
            text,
            kind,
            _counted: None,
        }
    }

    /// The error that replaces a response for which there is no room.
    fn too_many(id: Option<&RequestId>) -> Self {
        let error = answer_error::too_many_unread();
        Self::uncounted(error.answer(id), MessageKind::Error(error.code))
    }
}

impl Transport<RoleServer> for ReplyTransport {
    type Error = Undelivered;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Undelivered>> + Send + 'static {
        // Serialized now instead of when the queue has room, so that the tree is freed before anything waits.
        let rendered = RenderedMessage::of(&message);
        drop(message);
        let (messages, answered) = (self.messages.clone(), self.answered.clone());
        let meter = self.meter.clone();
        async move {
            let queued = rendered.counted(meter).await.ok_or(Undelivered)?;
            let is_last = queued.kind != MessageKind::Notification;
            messages.send(queued).await.map_err(|_| Undelivered)?;
            if is_last {
                answered.cancel();
            }
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        let request = self.request.take();
        if request.is_none() {
            self.answered.cancelled().await;
        }
        request
    }

    async fn close(&mut self) -> Result<(), Undelivered> {
        self.request = None;
        Ok(())
    }
}

/// Frees the spare capacity of a text, because what waits to be written is charged by its length.
pub(crate) fn shrink_spare(text: String) -> String {
    let spare = text.capacity() - text.len();
    if spare > SPARE.max(text.len() / 8) {
        // Copied, because `shrink_to_fit` would keep the block: mimalloc does not move an allocation that fills half
        // of its block.
        return text.as_str().to_owned();
    }
    text
}

/// Spare capacity in bytes that is not worth a copy.
const SPARE: usize = 4 * 1024;

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::byte_budget::ByteBudget;

    fn request() -> ClientJsonRpcMessage {
        serde_json::from_value(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})).unwrap()
    }

    fn progress() -> ServerJsonRpcMessage {
        let params = json!({"progressToken": 1, "progress": 1.0});
        serde_json::from_value(
            json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}),
        )
        .unwrap()
    }

    fn answer(size: usize) -> ServerJsonRpcMessage {
        let result = rmcp::model::CustomResult(json!({"text": "x".repeat(size)}));
        ServerJsonRpcMessage::response(
            rmcp::model::ServerResult::CustomResult(result),
            RequestId::Number(1),
        )
    }

    fn metered(budget: &Arc<ByteBudget>) -> (ReplyTransport, ReplyReceiver) {
        let meter = AnswerMeter {
            share: ConnectionShare::new(budget),
            caller: None,
        };
        ReplyTransport::new(request(), Some(meter))
    }

    #[tokio::test]
    async fn messages_that_wait_are_counted_by_their_length_until_they_are_taken() {
        let budget = ByteBudget::new(17 << 20);
        let (mut transport, receiver) = metered(&budget);
        transport.send(progress()).await.unwrap();
        transport.send(answer(100_000)).await.unwrap();
        assert!(budget.used() > 100_000);
        let cancel = CancellationToken::new().drop_guard();
        let reply = receiver.reply(cancel, None, oneshot::channel().0).await;
        let Some(Reply::Stream(mut stream)) = reply else {
            panic!("not a stream");
        };
        assert!(stream.next().await.unwrap().contains("progress"));
        assert!(budget.used() > 100_000);
        assert!(stream.next().await.unwrap().len() > 100_000);
        assert_eq!(budget.used(), 0);
    }

    #[tokio::test]
    async fn an_answer_without_room_is_an_error_and_progress_without_room_is_left_out() {
        let budget = ByteBudget::new(17 << 20);
        let other = ConnectionShare::new(&budget).reserve(17 << 20, None);
        let (mut transport, receiver) = metered(&budget);
        transport.send(answer(100_000)).await.unwrap();
        let filler = transport.meter.as_ref().unwrap().share.charge(5_000);
        assert!(transport.send(progress()).await.is_err());
        let cancel = CancellationToken::new().drop_guard();
        let reply = receiver.reply(cancel, None, oneshot::channel().0).await;
        let Some(Reply::Whole(text, Some(-32603))) = reply else {
            panic!("not an error");
        };
        let text: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(text["id"], 1);
        drop((other, filler));
        assert_eq!(budget.used(), 0);
    }

    #[tokio::test]
    async fn a_place_in_flight_is_kept_for_work_and_not_for_a_reader_or_a_listener() {
        let places = Arc::new(tokio::sync::Semaphore::new(1));
        let listeners = crate::listeners::ListenerPermits::new(1);
        for is_listener in [false, true] {
            let (mut transport, receiver) = ReplyTransport::new(request(), None);
            transport.send(progress()).await.unwrap();
            let caller = crate::auth::Caller::anonymous();
            let listener = is_listener.then(|| listeners.take(&caller, None).unwrap());
            let (work, kept) = oneshot::channel();
            let cancel = CancellationToken::new().drop_guard();
            let Some(Reply::Stream(mut stream)) = receiver.reply(cancel, listener, work).await
            else {
                panic!("not a stream");
            };
            stream.keep(Arc::clone(&places).try_acquire_owned().unwrap());
            assert_eq!(places.available_permits(), usize::from(is_listener));
            // The work is done, but none of it has been read.
            drop(kept);
            assert_eq!(places.available_permits(), 1);
        }
    }
    #[test]
    fn a_text_takes_about_as_much_memory_as_it_is_long() {
        let text = |length: usize, capacity: usize| {
            let mut text = String::with_capacity(capacity);
            text.push_str(&"x".repeat(length));
            let kept = shrink_spare(text);
            (kept.len(), kept.capacity())
        };
        assert_eq!(text(100, SPARE + 100), (100, SPARE + 100));
        assert_eq!(text(100, SPARE + 101), (100, 100));
        assert_eq!(text(80_000, 90_000), (80_000, 90_000));
        assert_eq!(text(80_000, 90_001), (80_000, 80_000));
    }
}
