//! Turns: while the budget of unread responses is strained, requests wait before their answers are computed.
//!
//! A request costs less memory than its response. Without turns, a fast server would compute answers faster than
//! stalled connections are evicted, and would have to refuse other clients for lack of room.

use std::sync::atomic::Ordering;

use tokio::sync::SemaphorePermit;
use tokio::time::{Instant, timeout_at};

use super::{ByteBudget, ConnectionShare};

/// Number of requests that are answered at a time while the budget is nearly spent. Without this limit, answers would be
/// computed faster than connections are evicted, and would fill the wait queue.
pub(super) const TURNS: usize = 4;
/// Number of requests of one connection that are answered at a time while half of the budget is used. An HTTP/2 client
/// that reads nothing would otherwise have as many answers computed as it may open streams, most of which exceed its
/// share and are thrown away.
pub(super) const CONNECTION_TURNS: usize = 2;

/// Permits to answer a request while the budget is strained, to be kept until the response is charged.
#[derive(Debug)]
pub(crate) struct AnswerTurn<'a> {
    _of_connection: Option<SemaphorePermit<'a>>,
    _of_budget: Option<SemaphorePermit<'a>>,
}

impl ByteBudget {
    /// Whether requests are held back: above fifteen sixteenths. Between the high-water mark and this one, a client
    /// that reads is answered at once, while others are evicted.
    fn is_nearly_spent(&self) -> bool {
        self.used.load(Ordering::Relaxed) > self.total - self.total / 16
    }

    /// Holds a request back while the budget is nearly spent: requests are answered [`TURNS`] at a time, in the order
    /// in which they came, once others were evicted.
    async fn wait_for_turn(&self, deadline: Instant) -> Option<SemaphorePermit<'_>> {
        let _held_back = self.wait_queue.hold_back();
        self.wait_queue.request_eviction();
        let turn = timeout_at(deadline, self.turns.acquire()).await.ok()?.ok();
        while self.is_nearly_spent() && Instant::now() < deadline {
            self.wait_queue.request_eviction();
            self.wait_queue.next_look(deadline).await;
        }
        turn
    }
}

impl ConnectionShare {
    /// Holds a request back while the budget is strained. A request costs less memory than its response, so it is
    /// better to wait before the answer is computed than after. After `max_wait` the request continues anyway.
    pub(crate) async fn wait_for_turn(&self) -> Option<AnswerTurn<'_>> {
        let budget = &self.budget;
        if !budget.is_half_used() || !budget.wait_queue.is_evicting() {
            return None;
        }
        let deadline = budget.wait_queue.deadline()?;
        let of_connection = timeout_at(deadline, self.turns.acquire()).await.ok()?.ok();
        let of_budget = if budget.is_nearly_spent() {
            budget.wait_for_turn(deadline).await
        } else {
            None
        };
        Some(AnswerTurn {
            _of_connection: of_connection,
            _of_budget: of_budget,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::task::Poll;

    use futures::future::join_all;
    use futures::{FutureExt as _, poll};

    use super::super::tests::{TOTAL, share, spent};
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_request_is_held_back_while_others_are_evicted() {
        let (budget, stalled) = spent(TOTAL);
        let own = share(&budget);
        let mut held_back = Box::pin(own.wait_for_turn());
        assert!(poll!(held_back.as_mut()).is_pending());
        budget.wait_queue().eviction_requested().await;
        drop(stalled);
        assert!(held_back.await.is_some());
        let free = own.wait_for_turn().now_or_never();
        assert!(matches!(free, Some(None)), "there is room");
        // If no connection is evicted, the request continues after the wait; without eviction it continues at once.
        let (budget, _stalled) = spent(TOTAL);
        share(&budget).wait_for_turn().await;
        let budget = ByteBudget::new(TOTAL);
        let own = share(&budget);
        let _held = own.reserve(TOTAL, None).unwrap();
        assert!(own.wait_for_turn().now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_spent_budget_answers_a_few_requests_at_a_time_in_their_order() {
        let (budget, stalled) = spent(TOTAL);
        let shares: Vec<_> = (0..=TURNS).map(|_| share(&budget)).collect();
        let mut waiting: Vec<_> = shares
            .iter()
            .map(|own| Box::pin(own.wait_for_turn()))
            .collect();
        for turn in &mut waiting {
            assert!(poll!(turn.as_mut()).is_pending());
        }
        drop(stalled);
        let mut last = waiting.pop().unwrap();
        let mut turns = join_all(waiting).await;
        assert!(turns.iter().all(Option::is_some));
        assert!(poll!(last.as_mut()).is_pending(), "one more than may");
        turns.pop();
        assert!(last.await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_half_used_budget_answers_two_requests_of_a_connection_at_a_time() {
        let (budget, _stalled) = spent(TOTAL / 2);
        let own = share(&budget);
        let mut turns = Vec::new();
        for _ in 0..CONNECTION_TURNS {
            turns.push(own.wait_for_turn().now_or_never().flatten().unwrap());
        }
        let mut third = Box::pin(own.wait_for_turn());
        assert!(poll!(third.as_mut()).is_pending());
        let other = share(&budget);
        assert!(other.wait_for_turn().now_or_never().flatten().is_some());
        turns.pop();
        assert!(matches!(poll!(third.as_mut()), Poll::Ready(Some(_))));

        let (budget, _stalled) = spent(TOTAL / 2 - 1);
        let own = share(&budget);
        assert!(matches!(own.wait_for_turn().now_or_never(), Some(None)));
    }
}
