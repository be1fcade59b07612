//! Byte budgets: memory that clients can make the server hold, bounded for all of them together.
//!
//! There are two for each server: answers that wait to be written, and request bodies that are not answered yet.
//! Each is shared out by dynamic thresholds, as packet switches share their buffers: a connection may hold at most
//! a sixteenth of what is still free, a verified caller half of it. One greedy connection gets a 17th of the budget,
//! twenty-four of them leave more than a fifth, and no list of who is greedy has to be kept. Anonymous callers have the
//! shares of their connections alone: behind a proxy all of them come from one address, and one of them must not
//! spend the share of all.
//!
//! What is counted costs three atomic additions for an answer, and no lock.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use axum::response::Response;

use super::limits::Limits;
use crate::auth::Caller;

/// One connection may hold this part of what is free.
const CONNECTION_PART: usize = 16;
/// One verified caller may hold this part of what is free, on all connections together.
const CALLER_PART: usize = 2;
/// Counters for verified callers. Callers are hashed onto them with a random key, so nobody can choose whose
/// counter to share, and the memory for them does not grow with their number.
const CALLER_SLOTS: usize = 1024;
/// What a connection that holds nothing may always take: probes and sign-in go on when the budget is spent.
pub(crate) const ALWAYS_ADMITTED: usize = 4 * 1024;

/// Bytes that all connections together may hold.
#[derive(Debug)]
pub(crate) struct ByteBudget {
    total: usize,
    used: AtomicUsize,
    callers: Box<[AtomicUsize]>,
    hasher: RandomState,
}

/// The counter of a verified caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OwnerSlot(usize);

impl ByteBudget {
    pub(crate) fn new(total: usize) -> Arc<Self> {
        Arc::new(Self {
            total,
            used: AtomicUsize::new(0),
            callers: (0..CALLER_SLOTS).map(|_| AtomicUsize::new(0)).collect(),
            hasher: RandomState::new(),
        })
    }

    /// True while half of it is spent: whoever does not take what waits for them has to make room then.
    pub(crate) fn is_strained(&self) -> bool {
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

    /// The counter of this caller; none for somebody without a name.
    pub(crate) fn slot(&self, caller: &Caller) -> Option<OwnerSlot> {
        let hash = self.hasher.hash_one(caller.key()?);
        let slot = hash % CALLER_SLOTS as u64;
        usize::try_from(slot).ok().map(OwnerSlot)
    }

    fn counter(&self, slot: Option<OwnerSlot>) -> Option<&AtomicUsize> {
        self.callers.get(slot?.0)
    }
}

/// What one connection holds of a budget.
#[derive(Debug)]
pub(crate) struct ConnectionShare {
    budget: Arc<ByteBudget>,
    held: AtomicUsize,
    /// Bytes that the peer has taken, ever.
    taken: AtomicU64,
}

impl ConnectionShare {
    pub(crate) fn new(budget: &Arc<ByteBudget>) -> Arc<Self> {
        Arc::new(Self {
            budget: Arc::clone(budget),
            held: AtomicUsize::new(0),
            taken: AtomicU64::new(0),
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

    /// Notes that the peer took some bytes.
    pub(crate) fn took(&self, bytes: usize) {
        self.taken.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Whether it is worth working on one more answer for this connection.
    pub(crate) fn has_room(&self) -> bool {
        let (held, used) = (self.held(), self.budget.used.load(Ordering::Relaxed));
        held == 0 || held < self.budget.total.saturating_sub(used) / CONNECTION_PART
    }

    /// Counts some bytes until the reservation is dropped; nothing when they exceed a share or the budget.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        bytes: usize,
        caller: Option<OwnerSlot>,
    ) -> Option<ByteReservation> {
        let mut reservation = ByteReservation {
            share: Arc::clone(self),
            caller,
            bytes: 0,
        };
        reservation.grow(bytes).then_some(reservation)
    }

    /// Counts some bytes that are held already, whatever the budget says.
    pub(crate) fn charge(self: &Arc<Self>, bytes: usize) -> ByteReservation {
        self.held.fetch_add(bytes, Ordering::Relaxed);
        self.budget.used.fetch_add(bytes, Ordering::Relaxed);
        ByteReservation {
            share: Arc::clone(self),
            caller: None,
            bytes,
        }
    }
}

/// Bytes that are counted until this is dropped.
#[derive(Debug)]
pub(crate) struct ByteReservation {
    share: Arc<ConnectionShare>,
    caller: Option<OwnerSlot>,
    bytes: usize,
}

impl ByteReservation {
    /// Counts more bytes, or leaves everything as it is and says no.
    pub(crate) fn grow(&mut self, more: usize) -> bool {
        let budget = &self.share.budget;
        // What is larger than the budget needs all of it, and can still be answered.
        let more = more.min(budget.total.saturating_sub(self.bytes));
        let own = self.bytes + more;
        let held = self.share.held.fetch_add(more, Ordering::Relaxed) + more;
        let used = budget.used.fetch_add(more, Ordering::Relaxed) + more;
        let counter = budget.counter(self.caller);
        let of_caller = counter.map_or(own, |held| held.fetch_add(more, Ordering::Relaxed) + more);
        self.bytes = own;
        let free = budget.total.saturating_sub(used);
        // Whoever holds nothing else may take one thing of any size, as long as there is room for it.
        let fits = used <= budget.total
            && (held == own || held <= free / CONNECTION_PART)
            && (of_caller == own || of_caller <= free / CALLER_PART);
        let admitted = fits || (held == own && own <= ALWAYS_ADMITTED);
        if !admitted {
            self.release(more);
        }
        admitted
    }

    /// Gives some of it to somebody else, without counting anew.
    pub(crate) fn split(&mut self, bytes: usize) -> Self {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Self {
            share: Arc::clone(&self.share),
            caller: self.caller,
            bytes,
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
    }
}

/// The two budgets of a server.
#[derive(Debug, Clone)]
pub(crate) struct ServerBudgets {
    answers: Arc<ByteBudget>,
    bodies: Arc<ByteBudget>,
}

impl ServerBudgets {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            answers: ByteBudget::new(limits.unread_bytes),
            bodies: ByteBudget::new(limits.request_bytes),
        }
    }

    /// True while answers that nobody takes have to make room.
    pub(crate) fn is_strained(&self) -> bool {
        self.answers.is_strained()
    }

    pub(crate) fn connection(&self) -> ConnectionShares {
        ConnectionShares {
            answers: ConnectionShare::new(&self.answers),
            bodies: ConnectionShare::new(&self.bodies),
        }
    }
}

/// What one connection holds of both budgets: in the extensions of every request.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionShares {
    pub(crate) answers: Arc<ConnectionShare>,
    pub(crate) bodies: Arc<ConnectionShare>,
}

/// Whose share an answer counts against: in the extensions of the answer to a verified caller.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnswerOwner(pub(crate) OwnerSlot);

impl ConnectionShares {
    /// Has the answer count against the share of its caller, if the caller is known.
    pub(crate) fn assign(shares: Option<&Self>, caller: &Caller, mut answer: Response) -> Response {
        let slot = shares.and_then(|shares| shares.answers.budget.slot(caller));
        if let Some(slot) = slot {
            answer.extensions_mut().insert(AnswerOwner(slot));
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOTAL: usize = 1700 * 1024;

    fn share(budget: &Arc<ByteBudget>) -> Arc<ConnectionShare> {
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
        assert!(half.is_some() && budget.is_strained());
        assert!(two.reserve(TOTAL / 2 + 1, None).is_none());
        let rest = two.reserve(TOTAL / 2, None);
        assert!(rest.is_some());
        drop((half, rest));
        // More than the budget takes all of it.
        let all = one.reserve(TOTAL * 3, None);
        assert_eq!((all.is_some(), budget.used()), (true, TOTAL));
        assert!(two.reserve(ALWAYS_ADMITTED + 1, None).is_none());
        assert!(two.reserve(ALWAYS_ADMITTED, None).is_some(), "probes go on");
        drop(all);
        assert_eq!((budget.used(), one.held(), two.held()), (0, 0, 0));
    }

    #[test]
    fn a_caller_has_one_share_on_all_connections() {
        let budget = ByteBudget::new(TOTAL);
        let slot = Some(OwnerSlot(7));
        let mut kept = Vec::new();
        for _ in 0..40 {
            kept.extend(share(&budget).reserve(TOTAL / 20, slot));
        }
        assert!(budget.used() <= TOTAL / 3, "{}", budget.used());
        assert!(budget.used() > TOTAL / 3 - TOTAL / 20);
        // Another caller, and somebody unknown.
        assert!(
            share(&budget)
                .reserve(TOTAL / 20, Some(OwnerSlot(8)))
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
