//! Byte budgets: limits on the memory that all clients together can make the server hold.
//!
//! There are two for each server: responses that wait to be written, and request heads and bodies that are not
//! answered yet. Each is shared by dynamic thresholds, as packet switches share their buffers: a connection may hold
//! at most a sixteenth of what is still free, a verified caller half of it. One greedy connection gets a 17th of the
//! budget, twenty-four of them leave more than a fifth, and no list of greedy clients is needed. Anonymous callers
//! have the shares of their connections only: behind a proxy all of them come from one address, and one of them must
//! not use up the share of all.
//!
//! Shares do not stop many connections that hold one response each. So a budget that is nearly spent requests
//! eviction of the connections that make no progress ([`budget_wait_queue`]), and a request that needs room waits
//! briefly for it. A client that reads holds a response for milliseconds, and one that does not read holds it
//! indefinitely, so age distinguishes them.
//!
//! Charging a response costs three atomic additions and takes no lock.

mod answer_turn;
mod budget_wait_queue;

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

#[cfg(feature = "http")]
use axum::response::Response;
use tokio::sync::Semaphore;

use self::answer_turn::{CONNECTION_TURNS, TURNS};
pub(crate) use self::budget_wait_queue::BudgetWaitQueue;
use crate::auth::Caller;
use crate::limits::HttpLimits;

/// A connection may hold one part in this many of what is free.
const CONNECTION_PART: usize = 16;
/// A verified caller may hold one part in this many of what is free, on all of its connections together. Half of the
/// rest is always left for the next caller, however many hosts one user has connected.
const CALLER_PART: usize = 2;
/// Number of counters for verified callers. Callers are hashed onto them with a random key, so an attacker cannot
/// choose whose counter to share, and the memory does not grow with the number of callers.
const CALLER_SLOTS: usize = 1024;
/// Bytes that a connection which holds nothing may take even if the budget is spent, so that health probes and
/// sign-in keep working. Together these may exceed the budget by [`overdraft`].
pub(crate) const ALWAYS_ADMITTED: usize = 4 * 1024;

/// The budget of all connections together. `oversized` is set while a single item larger than the whole budget
/// exists.
#[derive(Debug)]
pub(crate) struct ByteBudget {
    total: usize,
    used: AtomicUsize,
    callers: Box<[AtomicUsize]>,
    hasher: RandomState,
    oversized: AtomicBool,
    wait_queue: BudgetWaitQueue,
    turns: Semaphore,
}

/// Returns how far small items may exceed the budget: a sixteenth of it, and 16 small responses at least.
const fn overdraft(total: usize) -> usize {
    let part = total / 16;
    if part > 16 * ALWAYS_ADMITTED {
        part
    } else {
        16 * ALWAYS_ADMITTED
    }
}

/// The reason why a reservation failed, which decides whether waiting helps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReservationError {
    /// A connection or a caller has used up its share, so waiting for others does not help.
    Share,
    /// The budget is nearly spent, and stalled connections can be evicted.
    Budget,
}

/// The index of the counter of a verified caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallerSlot(usize);

impl ByteBudget {
    /// Creates a budget without eviction: what does not fit is refused at once.
    pub(crate) fn new(total: usize) -> Arc<Self> {
        Self::evicting(total, Duration::ZERO)
    }

    /// Creates a budget with eviction, in which a reservation waits up to `max_wait` for room.
    pub(crate) fn evicting(total: usize, max_wait: Duration) -> Arc<Self> {
        Arc::new(Self {
            total,
            used: AtomicUsize::new(0),
            callers: (0..CALLER_SLOTS).map(|_| AtomicUsize::new(0)).collect(),
            hasher: RandomState::new(),
            oversized: AtomicBool::new(false),
            wait_queue: BudgetWaitQueue::new(max_wait),
            turns: Semaphore::new(TURNS),
        })
    }

    /// Returns the high-water mark above which eviction starts: seven eighths. Eviction takes some milliseconds to free
    /// memory; the last eighth is what other clients use meanwhile, so that they need not wait for it.
    fn high_water(&self) -> usize {
        self.total - self.total / 8
    }

    /// Whether connections without progress have to be evicted.
    pub(crate) fn needs_eviction(&self) -> bool {
        self.wait_queue.has_waiters() || self.is_above_high_water()
    }

    fn is_above_high_water(&self) -> bool {
        self.used.load(Ordering::Relaxed) > self.high_water()
    }

    /// Returns how many bytes eviction should free: down to three quarters, plus room for the waiting reservations. The
    /// goal is below the mark at which eviction starts, so that it does not start again with the next response.
    pub(crate) fn eviction_goal(&self) -> usize {
        if !self.needs_eviction() {
            return 0;
        }
        let used = self.used.load(Ordering::Relaxed);
        let needed = used.saturating_add(self.wait_queue.waiting_bytes());
        let goal = needed.saturating_sub(self.total - self.total / 4);
        goal.max(usize::from(self.wait_queue.has_waiters()))
    }

    pub(crate) fn wait_queue(&self) -> &BudgetWaitQueue {
        &self.wait_queue
    }

    /// Whether half of the budget is used, from where on slow readers have to make room.
    pub(crate) fn is_half_used(&self) -> bool {
        let used = self.used.load(Ordering::Relaxed);
        used > 0 && used.saturating_mul(2) >= self.total
    }

    pub(crate) fn total(&self) -> usize {
        self.total
    }

    #[cfg(test)]
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Returns the counter of this caller; `None` for an anonymous one.
    pub(crate) fn slot(&self, caller: &Caller) -> Option<CallerSlot> {
        let hash = self.hasher.hash_one(caller.key()?);
        let slot = hash % CALLER_SLOTS as u64;
        usize::try_from(slot).ok().map(CallerSlot)
    }

    fn counter(&self, slot: Option<CallerSlot>) -> Option<&AtomicUsize> {
        self.callers.get(slot?.0)
    }
}

/// The share of one connection in a budget. `taken` counts all bytes that the client has ever read.
#[derive(Debug)]
pub(crate) struct ConnectionShare {
    budget: Arc<ByteBudget>,
    held: AtomicUsize,
    taken: AtomicU64,
    turns: Semaphore,
}

impl ConnectionShare {
    pub(crate) fn new(budget: &Arc<ByteBudget>) -> Arc<Self> {
        Arc::new(Self {
            budget: Arc::clone(budget),
            held: AtomicUsize::new(0),
            taken: AtomicU64::new(0),
            turns: Semaphore::new(CONNECTION_TURNS),
        })
    }

    pub(crate) fn budget(&self) -> &Arc<ByteBudget> {
        &self.budget
    }

    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    pub(crate) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Records that the client read some bytes.
    pub(crate) fn record_taken(&self, bytes: usize) {
        self.taken.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Whether the connection may start another response.
    pub(crate) fn has_room(&self) -> bool {
        let (held, used) = (self.held(), self.budget.used.load(Ordering::Relaxed));
        held == 0 || held < self.budget.total.saturating_sub(used) / CONNECTION_PART
    }

    /// Reserves bytes until the reservation is dropped; `None` if they exceed a share or the budget.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        bytes: usize,
        caller: Option<CallerSlot>,
    ) -> Option<ByteReservation> {
        let mut reservation = self.empty(caller);
        reservation.grow(bytes).then_some(reservation)
    }

    /// Like [`reserve`](Self::reserve), but waits briefly for others to be evicted if the budget is spent.
    pub(crate) async fn reserve_evicting(
        self: &Arc<Self>,
        bytes: usize,
        caller: Option<CallerSlot>,
    ) -> Option<ByteReservation> {
        let mut reservation = self.empty(caller);
        reservation
            .grow_evicting(bytes)
            .await
            .then_some(reservation)
    }

    fn empty(self: &Arc<Self>, caller: Option<CallerSlot>) -> ByteReservation {
        ByteReservation {
            share: Arc::clone(self),
            caller,
            bytes: 0,
            oversized: None,
        }
    }

    /// Charges bytes that are already held, even if they exceed the budget.
    pub(crate) fn charge(self: &Arc<Self>, bytes: usize) -> ByteReservation {
        self.held.fetch_add(bytes, Ordering::Relaxed);
        self.budget.used.fetch_add(bytes, Ordering::Relaxed);
        let mut reservation = self.empty(None);
        reservation.bytes = bytes;
        reservation
    }
}

/// The permit for an item larger than the whole budget. Only one exists at a time.
#[derive(Debug)]
struct OversizedSlot(Arc<ByteBudget>);

impl OversizedSlot {
    fn claim(budget: &Arc<ByteBudget>) -> Option<Self> {
        let taken = budget.oversized.swap(true, Ordering::AcqRel);
        (!taken).then(|| Self(Arc::clone(budget)))
    }
}

impl Drop for OversizedSlot {
    fn drop(&mut self) {
        self.0.oversized.store(false, Ordering::Release);
        self.0.wait_queue.freed();
    }
}

/// Reserved bytes, which are released when this is dropped.
#[derive(Debug)]
pub(crate) struct ByteReservation {
    share: Arc<ConnectionShare>,
    caller: Option<CallerSlot>,
    bytes: usize,
    oversized: Option<OversizedSlot>,
}

impl ByteReservation {
    /// Extends the reservation. Returns false and changes nothing if there is no room.
    pub(crate) fn grow(&mut self, more: usize) -> bool {
        self.try_grow(more).is_ok()
    }

    /// Like [`grow`](Self::grow), but waits briefly for others to be evicted if the budget is spent.
    pub(crate) async fn grow_evicting(&mut self, more: usize) -> bool {
        match self.try_grow(more) {
            Ok(()) => true,
            Err(ReservationError::Share) => false,
            // Boxed, because waiting is rare and its state would be part of every request.
            Err(ReservationError::Budget) => Box::pin(self.wait_for_room(more)).await,
        }
    }

    async fn wait_for_room(&mut self, more: usize) -> bool {
        let budget = Arc::clone(&self.share.budget);
        let Some(mut queued) = budget.wait_queue.enter(more, budget.total) else {
            return false;
        };
        loop {
            let next = queued.next_chance();
            match self.try_grow(more) {
                Ok(()) => return true,
                Err(ReservationError::Share) => return false,
                Err(ReservationError::Budget) => {}
            }
            if !next.await {
                return self.grow(more);
            }
        }
    }

    fn try_grow(&mut self, more: usize) -> Result<(), ReservationError> {
        let budget = &self.share.budget;
        let mut own = self.bytes.saturating_add(more);
        let mut slot = None;
        if own > budget.total.max(ALWAYS_ADMITTED) {
            // An item larger than the budget is admitted, one at a time, and charged as half of it: the whole budget
            // would never be free beside others.
            own = (budget.total / 2).max(self.bytes);
            if self.oversized.is_none() {
                slot = OversizedSlot::claim(budget);
                if slot.is_none() {
                    return Err(ReservationError::Budget);
                }
            }
        }
        let more = own - self.bytes;
        let held = self.share.held.fetch_add(more, Ordering::Relaxed) + more;
        let used = budget.used.fetch_add(more, Ordering::Relaxed) + more;
        let counter = budget.counter(self.caller);
        let of_caller = counter.map_or(own, |held| held.fetch_add(more, Ordering::Relaxed) + more);
        self.bytes = own;
        let is_above_high_water = used > budget.high_water();
        if is_above_high_water {
            budget.wait_queue.request_eviction();
        }
        // A connection that holds nothing else may take one item of any size, as long as there is room for it.
        let within = |free: usize| {
            (held == own || held <= free / CONNECTION_PART)
                && (of_caller == own || of_caller <= free / CALLER_PART)
        };
        let total = budget.total;
        let fits = used <= total && within(total - used);
        let small = held == own && own <= ALWAYS_ADMITTED && used <= total + overdraft(total);
        if fits || small {
            if slot.is_some() {
                self.oversized = slot;
            }
            return Ok(());
        }
        // Eviction helps if the item would be admitted on an otherwise empty server.
        let error = if is_above_high_water && within(total.saturating_sub(held)) {
            ReservationError::Budget
        } else {
            ReservationError::Share
        };
        self.release(more);
        Err(error)
    }

    /// Splits off a part of the reservation without charging it again.
    pub(crate) fn split(&mut self, bytes: usize) -> Self {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Self {
            share: Arc::clone(&self.share),
            caller: self.caller,
            bytes,
            oversized: None,
        }
    }

    pub(crate) fn share(&self) -> &Arc<ConnectionShare> {
        &self.share
    }

    fn release(&mut self, bytes: usize) {
        let budget = &self.share.budget;
        self.share.held.fetch_sub(bytes, Ordering::Relaxed);
        budget.used.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(held) = budget.counter(self.caller) {
            held.fetch_sub(bytes, Ordering::Relaxed);
        }
        self.bytes -= bytes;
    }
}

impl Drop for ByteReservation {
    fn drop(&mut self) {
        self.release(self.bytes);
        self.share.budget.wait_queue.freed();
    }
}

/// The two budgets of a server, one for responses and one for requests.
#[derive(Debug, Clone)]
pub(crate) struct ServerBudgets {
    answers: Arc<ByteBudget>,
    bodies: Arc<ByteBudget>,
}

impl ServerBudgets {
    pub(crate) fn new(limits: &HttpLimits) -> Self {
        Self {
            answers: ByteBudget::evicting(limits.unread_bytes, limits.room_wait),
            bodies: ByteBudget::evicting(limits.request_bytes, limits.room_wait),
        }
    }

    /// Returns the budget of responses that wait to be written.
    pub(crate) fn answers(&self) -> &ByteBudget {
        &self.answers
    }

    /// Returns the budget of requests that are not answered yet: heads and bodies.
    pub(crate) fn requests(&self) -> &ByteBudget {
        &self.bodies
    }

    /// Waits until one of the budgets requests eviction.
    pub(crate) async fn eviction_requested(&self) {
        tokio::select! {
            () = self.answers.wait_queue.eviction_requested() => {}
            () = self.bodies.wait_queue.eviction_requested() => {}
        }
    }

    pub(crate) fn connection(&self) -> ConnectionShares {
        ConnectionShares {
            answers: ConnectionShare::new(&self.answers),
            bodies: ConnectionShare::new(&self.bodies),
        }
    }
}

/// The shares of one connection in both budgets, in the extensions of every request.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionShares {
    pub(crate) answers: Arc<ConnectionShare>,
    pub(crate) bodies: Arc<ConnectionShare>,
}

/// The caller to whose share a response is charged, in the extensions of the response.
#[cfg(feature = "http")]
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResponseCaller(pub(crate) CallerSlot);

#[cfg(feature = "http")]
impl ConnectionShares {
    /// Marks a response to be charged to the share of its caller, if the caller is verified.
    pub(crate) fn charge_to_caller(
        shares: Option<&Self>,
        caller: &Caller,
        mut answer: Response,
    ) -> Response {
        let slot = shares.and_then(|shares| shares.answers.budget.slot(caller));
        if let Some(slot) = slot {
            answer.extensions_mut().insert(ResponseCaller(slot));
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use std::task::Poll;

    use futures::{FutureExt as _, poll};

    use super::*;

    pub(super) const TOTAL: usize = 1700 * 1024;

    pub(super) fn share(budget: &Arc<ByteBudget>) -> Arc<ConnectionShare> {
        ConnectionShare::new(budget)
    }

    #[test]
    fn one_connection_holds_a_17th_and_no_byte_more() {
        let budget = ByteBudget::new(TOTAL);
        let own = share(&budget);
        let _first = own.reserve(TOTAL / 17 - 100, None).unwrap();
        assert!(own.reserve(101, None).is_none());
        let last = own.reserve(100, None);
        assert!(last.is_some() && own.held() == TOTAL / 17);
        drop(last);
        assert_eq!(budget.used(), TOTAL / 17 - 100, "a refusal counts nothing");
        assert!(share(&budget).reserve(100, None).is_some(), "others go on");
    }

    #[test]
    fn greedy_connections_leave_room_for_others() {
        let budget = ByteBudget::new(TOTAL);
        let mut kept = Vec::new();
        let greedy: Vec<_> = (0..24).map(|_| share(&budget)).collect();
        for own in &greedy {
            while let Some(reservation) = own.reserve(1024, None) {
                kept.push(reservation);
            }
        }
        assert!(budget.used() <= TOTAL * 4 / 5, "{}", budget.used());
        assert!(share(&budget).reserve(TOTAL / 5, None).is_some());
        drop(kept);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn the_first_answer_of_a_connection_may_be_large_and_the_whole_budget_is_the_end() {
        let budget = ByteBudget::new(TOTAL);
        let (one, two) = (share(&budget), share(&budget));
        let half = one.reserve(TOTAL / 2, None);
        assert!(half.is_some() && budget.is_half_used());
        assert!(two.reserve(TOTAL / 2 + 1, None).is_none());
        let rest = two.reserve(TOTAL / 2, None);
        assert!(rest.is_some());
        assert!(share(&budget).reserve(ALWAYS_ADMITTED + 1, None).is_none());
        drop((half, rest));
        assert_eq!((budget.used(), one.held(), two.held()), (0, 0, 0));
    }

    #[test]
    fn first_answers_of_many_connections_stay_within_the_budget() {
        let budget = ByteBudget::new(TOTAL);
        let mut kept = Vec::new();
        for _ in 0..400 {
            kept.extend(share(&budget).reserve(TOTAL / 100, None));
        }
        assert_eq!((kept.len(), budget.used()), (100, TOTAL));
        // Small items still fit, and exceed the budget by a sixteenth at most.
        for _ in 0..400 {
            kept.extend(share(&budget).reserve(ALWAYS_ADMITTED, None));
        }
        let over = budget.used() - TOTAL;
        assert!(over > 0 && over <= TOTAL / 16, "{over}");
    }

    #[test]
    fn one_answer_larger_than_the_budget_at_a_time_counts_as_half_of_it() {
        let budget = ByteBudget::new(TOTAL);
        let (one, two) = (share(&budget), share(&budget));
        let beside = share(&budget).reserve(TOTAL / 4, None).unwrap();
        let huge = one.reserve(TOTAL * 3, None).unwrap();
        assert_eq!(budget.used(), TOTAL / 4 + TOTAL / 2);
        assert!(two.reserve(TOTAL + 1, None).is_none(), "one at a time");
        assert!(two.reserve(TOTAL / 4, None).is_some(), "others go on");
        drop((huge, beside));
        assert!(two.reserve(TOTAL + 1, None).is_some());
        assert_eq!((budget.used(), one.held(), two.held()), (0, 0, 0));
    }

    /// A budget with a wait of one second, of which another connection holds so many bytes.
    pub(super) fn spent(bytes: usize) -> (Arc<ByteBudget>, ByteReservation) {
        let budget = ByteBudget::evicting(TOTAL, Duration::from_secs(1));
        let reservation = share(&budget).reserve(bytes, None).unwrap();
        (budget, reservation)
    }

    #[tokio::test(start_paused = true)]
    async fn a_reservation_in_a_spent_budget_requests_eviction_and_succeeds() {
        let (budget, stalled) = spent(TOTAL);
        let newcomer = share(&budget);
        let mut waiting = Box::pin(newcomer.reserve_evicting(TOTAL / 2, None));
        assert!(poll!(waiting.as_mut()).is_pending());
        assert!(budget.wait_queue().has_waiters());
        assert!(budget.eviction_goal() >= TOTAL / 2);
        budget.wait_queue().eviction_requested().await;
        drop(stalled);
        assert!(waiting.await.is_some());
        assert!(!budget.wait_queue().has_waiters());
        assert_eq!(budget.eviction_goal(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_for_the_budget_has_a_deadline_and_shares_never_wait() {
        let (budget, _stalled) = spent(TOTAL);
        let newcomer = share(&budget);
        assert!(newcomer.reserve_evicting(TOTAL / 2, None).await.is_none());
        assert!(!budget.wait_queue().has_waiters());

        // One byte over a 17th is refused at once, however full the budget is.
        for bytes in [0, TOTAL - TOTAL / 17] {
            let (budget, _stalled) = spent(bytes);
            let own = share(&budget);
            let _first = own.reserve(TOTAL / 17, None).unwrap();
            let refused = own.reserve_evicting(1, None).now_or_never();
            assert!(matches!(refused, Some(None)), "{bytes}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_eighth_of_the_budget_may_wait_and_one_of_any_size() {
        let (budget, _stalled) = spent(TOTAL);
        let shares: Vec<_> = (0..3).map(|_| share(&budget)).collect();
        let mut huge = Box::pin(shares[0].reserve_evicting(TOTAL / 2, None));
        assert!(poll!(huge.as_mut()).is_pending());
        let mut next = Box::pin(shares[1].reserve_evicting(TOTAL / 8, None));
        assert!(matches!(poll!(next.as_mut()), Poll::Ready(None)));
        drop(huge);
        let mut eighth = Box::pin(shares[1].reserve_evicting(TOTAL / 8, None));
        assert!(poll!(eighth.as_mut()).is_pending());
        let mut more = Box::pin(shares[2].reserve_evicting(ALWAYS_ADMITTED + 1, None));
        assert!(matches!(poll!(more.as_mut()), Poll::Ready(None)));
    }

    #[test]
    fn seven_eighths_call_for_eviction_down_to_three_quarters() {
        let budget = ByteBudget::evicting(TOTAL, Duration::from_secs(1));
        let own = share(&budget);
        let mut held = own.reserve(TOTAL - TOTAL / 8, None).unwrap();
        assert!(
            budget
                .wait_queue()
                .eviction_requested()
                .now_or_never()
                .is_none()
        );
        assert_eq!(budget.eviction_goal(), 0);
        assert!(held.grow(1));
        assert!(
            budget
                .wait_queue()
                .eviction_requested()
                .now_or_never()
                .is_some()
        );
        assert_eq!(budget.eviction_goal(), TOTAL / 8 + 1);
    }

    #[test]
    fn a_caller_has_one_share_on_all_connections() {
        let budget = ByteBudget::new(TOTAL);
        let slot = Some(CallerSlot(7));
        let mut kept = Vec::new();
        for _ in 0..40 {
            kept.extend(share(&budget).reserve(TOTAL / 20, slot));
        }
        assert!(budget.used() <= TOTAL / 3, "{}", budget.used());
        assert!(budget.used() > TOTAL / 3 - TOTAL / 20);
        // Another verified caller, and an anonymous one.
        assert!(
            share(&budget)
                .reserve(TOTAL / 20, Some(CallerSlot(8)))
                .is_some()
        );
        assert!(share(&budget).reserve(TOTAL / 20, None).is_some());
        drop(kept);
        let counted = budget
            .callers
            .iter()
            .map(|held| held.load(Ordering::Relaxed));
        assert_eq!((budget.used(), counted.sum::<usize>()), (0, 0));
    }

    #[test]
    fn parts_are_counted_once() {
        let budget = ByteBudget::new(TOTAL);
        let own = share(&budget);
        let mut whole = own.reserve(1000, None).unwrap();
        let part = whole.split(400);
        assert_eq!(budget.used(), 1000);
        drop(whole);
        assert_eq!((budget.used(), own.held()), (400, 400));
        drop(part);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn only_verified_callers_have_a_counter() {
        let budget = ByteBudget::new(TOTAL);
        assert_eq!(budget.slot(&Caller::anonymous()), None);
        let budget_of_none = ByteBudget::new(0);
        let own = share(&budget_of_none);
        assert!(own.reserve(ALWAYS_ADMITTED, None).is_some());
        assert!(own.reserve(0, None).is_some());
    }
}
