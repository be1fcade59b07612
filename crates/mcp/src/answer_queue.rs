//! The queue of responses for the reader of an event stream.
//!
//! It is separate from the body of the stream, because a body whose client does not read is never polled: the queue
//! has to be freed from outside.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use crate::byte_budget::{ByteReservation, CallerSlot, ConnectionShare};

/// Maximum number of queued responses per stream, whatever their size. The byte budget alone would allow a client that
/// reads nothing to pile up hundreds of thousands of tiny ones, each with an allocation of its own.
const MAX_WAITING: usize = 256;
/// Overhead of a queued response in bytes, beside its text: its place in the queue, its allocation and its reservation.
/// Without it, responses of a few bytes would cost several times what the budget counts.
const OVERHEAD: usize = 64;

/// A FIFO queue of responses, charged to the byte budget of the connection that carries the stream.
#[derive(Debug)]
pub(crate) struct AnswerQueue {
    share: Arc<ConnectionShare>,
    caller: Option<CallerSlot>,
    waiting: Mutex<WaitingAnswers>,
    ready: Notify,
}

#[derive(Debug, Default)]
struct WaitingAnswers {
    answers: VecDeque<(String, ByteReservation)>,
    ended: bool,
}

impl AnswerQueue {
    pub(crate) fn new(share: Arc<ConnectionShare>, caller: Option<CallerSlot>) -> Self {
        Self {
            share,
            caller,
            waiting: Mutex::default(),
            ready: Notify::new(),
        }
    }

    fn with<T>(&self, work: impl FnOnce(&mut WaitingAnswers) -> T) -> T {
        work(&mut self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Appends a response. On overflow the stream ends and everything queued is freed. Dropping single responses
    /// instead would leave a client waiting for them for ever; one that sees its stream end connects again and repeats
    /// its requests.
    pub(crate) fn push(&self, text: String) -> bool {
        let counted = self.share.reserve(text.len() + OVERHEAD, self.caller);
        let added = self.with(|waiting| match counted {
            Some(counted) if !waiting.ended && waiting.answers.len() < MAX_WAITING => {
                waiting.answers.push_back((text, counted));
                true
            }
            _ => false,
        });
        if added {
            self.ready.notify_one();
        } else {
            self.end();
        }
        added
    }

    /// Waits for the next response; `None` once the stream has ended.
    pub(crate) async fn next(&self) -> Option<String> {
        loop {
            let (next, ended) = self.with(|waiting| (waiting.answers.pop_front(), waiting.ended));
            match next {
                Some((text, _)) => return Some(text),
                None if ended => return None,
                None => self.ready.notified().await,
            }
        }
    }

    /// Ends the stream and frees everything queued.
    pub(crate) fn end(&self) {
        let dropped = self.with(|waiting| {
            waiting.ended = true;
            std::mem::take(&mut waiting.answers)
        });
        drop(dropped);
        self.ready.notify_one();
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.with(|waiting| waiting.ended)
    }

    pub(crate) fn share(&self) -> &Arc<ConnectionShare> {
        &self.share
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;
    use crate::byte_budget::ByteBudget;

    fn queue(budget: &Arc<ByteBudget>) -> AnswerQueue {
        AnswerQueue::new(ConnectionShare::new(budget), None)
    }

    #[test]
    fn answers_leave_in_order_and_are_counted_until_then() {
        let budget = ByteBudget::new(1 << 20);
        let queue = queue(&budget);
        assert!(queue.push("a".to_owned()) && queue.push("b".to_owned()));
        assert!(budget.used() >= 2);
        assert_eq!(queue.next().now_or_never(), Some(Some("a".to_owned())));
        assert_eq!(queue.next().now_or_never(), Some(Some("b".to_owned())));
        assert_eq!((budget.used(), queue.next().now_or_never()), (0, None));
        queue.end();
        assert_eq!(queue.next().now_or_never(), Some(None));
        assert!(!queue.push("c".to_owned()), "an ended queue takes nothing");
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn one_answer_too_many_ends_the_stream_and_frees_all() {
        let budget = ByteBudget::new(64 << 20);
        let queue = queue(&budget);
        for _ in 0..MAX_WAITING {
            assert!(queue.push("x".to_owned()));
        }
        assert!(!queue.has_ended());
        assert!(!queue.push("x".to_owned()));
        assert_eq!((queue.has_ended(), budget.used()), (true, 0));
    }

    #[test]
    fn one_byte_too_many_ends_the_stream() {
        let budget = ByteBudget::new(1_700_000);
        let queue = queue(&budget);
        // A single connection gets a 17th of the budget.
        assert!(queue.push("x".repeat(50_000 - OVERHEAD)));
        assert!(queue.push("x".repeat(50_000 - OVERHEAD)));
        assert!(!queue.push("x".to_owned()));
        assert_eq!((queue.has_ended(), budget.used()), (true, 0));
    }
}
