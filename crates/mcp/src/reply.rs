//! Replies: the messages that answer one request, on their way from a method to the transport.
//!
//! A message is charged to the byte budget of the connection as soon as it is sent. Otherwise a client that does not
//! read could make the server hold messages that no budget counts.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio_util::sync::DropGuard;

use crate::answer_error;
use crate::byte_budget::{ByteReservation, CallerSlot, ConnectionShare};
use crate::listeners::ListenerPermit;
use crate::rpc::{RequestId, RpcError, result_answer};

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
    is_answered: bool,
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
            Some(first) => first,
            // The work may have left a sender behind, in a task of its own.
            None if self.is_answered => return None,
            None => self.rest.recv().await?,
        };
        self.is_answered = message.kind != MessageKind::Notification;
        Some(message.text)
    }
}

/// The sending end of a reply, for the work of one request.
#[derive(Debug, Clone)]
pub(crate) struct ReplySender {
    messages: mpsc::Sender<QueuedMessage>,
    meter: Option<AnswerMeter>,
}

/// The receiving end of a reply.
pub(crate) struct ReplyReceiver(mpsc::Receiver<QueuedMessage>);

impl ReplyReceiver {
    /// Waits for the first message, which decides whether the reply is whole or a stream. `None` if the work ends
    /// without one.
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
                is_answered: false,
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

impl ReplySender {
    pub(crate) fn new(meter: Option<AnswerMeter>) -> (Self, ReplyReceiver) {
        let (messages, rest) = mpsc::channel(QUEUE);
        (Self { messages, meter }, ReplyReceiver(rest))
    }

    /// Sends a notification. Without room it is dropped: a listener ends in order when a notification fails, and
    /// progress is optional.
    pub(crate) async fn notify(&self, text: String) -> Result<(), Undelivered> {
        let counted = match &self.meter {
            None => None,
            Some(AnswerMeter { share, caller }) => {
                let counted = share.reserve(text.len() + OVERHEAD, *caller);
                Some(counted.ok_or(Undelivered)?)
            }
        };
        self.deliver(text, MessageKind::Notification, counted).await
    }

    /// Sends the response, after which the reply ends. Without room it is replaced by an error.
    pub(crate) async fn answer(self, id: &RequestId, outcome: Result<String, RpcError>) {
        let (text, kind) = match outcome {
            Ok(result) => (result_answer(id, result), MessageKind::Answer),
            Err(error) => (error.answer(Some(id)), MessageKind::Error(error.code)),
        };
        // Spare capacity is released, because the budget counts the length only.
        let text = shrink_spare(text);
        let sent = match &self.meter {
            None => self.deliver(text, kind, None).await,
            Some(AnswerMeter { share, caller }) => {
                let bytes = text.len() + OVERHEAD;
                match share.reserve_evicting(bytes, *caller).await {
                    Some(counted) => self.deliver(text, kind, Some(counted)).await,
                    None => {
                        drop(text);
                        let error = answer_error::too_many_unread();
                        let kind = MessageKind::Error(error.code);
                        self.deliver(error.answer(Some(id)), kind, None).await
                    }
                }
            }
        };
        if sent.is_err() {
            tracing::debug!("client disconnected before its response");
        }
    }

    async fn deliver(
        &self,
        text: String,
        kind: MessageKind,
        counted: Option<ByteReservation>,
    ) -> Result<(), Undelivered> {
        let message = QueuedMessage {
            text,
            kind,
            _counted: counted,
        };
        self.messages.send(message).await.map_err(|_| Undelivered)
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
    use serde_json::Value;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::byte_budget::ByteBudget;

    const ID: RequestId = RequestId::Number(1);

    fn progress() -> String {
        r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#.to_owned()
    }

    fn result(size: usize) -> Result<String, RpcError> {
        Ok(serde_json::json!({"text": "x".repeat(size)}).to_string())
    }

    fn metered(budget: &Arc<ByteBudget>) -> (ReplySender, ReplyReceiver) {
        ReplySender::new(Some(AnswerMeter {
            share: ConnectionShare::new(budget),
            caller: None,
        }))
    }

    #[tokio::test]
    async fn messages_that_wait_are_counted_by_their_length_until_they_are_taken() {
        let budget = ByteBudget::new(17 << 20);
        let (sender, receiver) = metered(&budget);
        let left_behind = sender.clone();
        sender.notify(progress()).await.unwrap();
        sender.answer(&ID, result(100_000)).await;
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
        // A sender that outlives the response does not keep the stream open.
        assert!(stream.next().await.is_none());
        drop(left_behind);
    }

    #[tokio::test]
    async fn an_answer_without_room_is_an_error_and_progress_without_room_is_left_out() {
        let budget = ByteBudget::new(17 << 20);
        let other = ConnectionShare::new(&budget).reserve(17 << 20, None);
        let (sender, receiver) = metered(&budget);
        let filler = sender.meter.as_ref().unwrap().share.charge(5_000);
        assert!(sender.notify(progress()).await.is_err());
        sender.answer(&ID, result(100_000)).await;
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
            let (sender, receiver) = ReplySender::new(None);
            sender.notify(progress()).await.unwrap();
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
