//! What happens when a byte budget is nearly spent: a call for eviction, and a bounded queue of those who wait for room.
//!
//! A budget does not know whom to evict. It calls, the accept loop cuts the connections that have made no progress for
//! longest, and bodies that come too slowly end themselves. What they held wakes those who wait, one by one.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// What waits for room is in memory and not counted yet, so it may be an eighth of the budget at most. One may wait
/// whatever its size.
const WAITING_PART: usize = 8;
/// How often somebody who waits calls again: whoever was too young to be evicted is older then.
const CALL_EVERY: Duration = Duration::from_millis(25);

/// The queue of a budget, and its calls for eviction.
#[derive(Debug)]
pub(crate) struct Pressure {
    patience: Duration,
    calls: Notify,
    freed: Notify,
    spread: Notify,
    waiters: AtomicUsize,
    waiting_bytes: AtomicUsize,
    held_back: AtomicUsize,
}

impl Pressure {
    pub(super) fn new(patience: Duration) -> Self {
        Self {
            patience,
            calls: Notify::new(),
            freed: Notify::new(),
            spread: Notify::new(),
            waiters: AtomicUsize::new(0),
            waiting_bytes: AtomicUsize::new(0),
            held_back: AtomicUsize::new(0),
        }
    }

    /// Whether anybody is evicted for those who wait.
    pub(super) fn is_evicting(&self) -> bool {
        !self.patience.is_zero()
    }

    pub(crate) fn has_waiters(&self) -> bool {
        self.waiters.load(Ordering::Relaxed) > 0
    }

    /// Whether somebody waits for room, or is held back until there is some.
    pub(crate) fn is_urgent(&self) -> bool {
        self.has_waiters() || self.held_back.load(Ordering::Relaxed) > 0
    }

    /// Notes that a request is held back, until this is dropped.
    pub(super) fn hold_back(&self) -> HeldBack<'_> {
        self.held_back.fetch_add(1, Ordering::Relaxed);
        HeldBack(self)
    }

    pub(super) fn waiting_bytes(&self) -> usize {
        self.waiting_bytes.load(Ordering::Relaxed)
    }

    /// Calls for eviction. Calls that nobody has heard yet are one.
    pub(super) fn call(&self) {
        self.calls.notify_one();
    }

    /// Waits for a call: for the accept loop alone.
    pub(super) async fn called(&self) {
        self.calls.notified().await;
    }

    /// Passes a call on to everybody who can let go of something by themselves.
    pub(crate) fn spread(&self) {
        self.spread.notify_waiters();
    }

    /// Waits until a call is passed on.
    pub(crate) fn spreading(&self) -> impl Future<Output = ()> {
        self.spread.notified()
    }

    /// Some bytes were let go of.
    pub(super) fn freed(&self) {
        if self.has_waiters() {
            self.freed.notify_one();
        }
    }

    /// A place in the queue, unless the queue is full.
    pub(super) fn enter(&self, bytes: usize, total: usize) -> Option<WaitingPlace<'_>> {
        if !self.is_evicting() {
            return None;
        }
        let place = WaitingPlace {
            pressure: self,
            bytes,
            deadline: Instant::now().checked_add(self.patience),
        };
        self.waiters.fetch_add(1, Ordering::SeqCst);
        let before = self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        let fits = before == 0 || before.saturating_add(bytes) <= total / WAITING_PART;
        fits.then_some(place)
    }
}

/// A request that is not worked on yet because there is no room for its answer.
#[derive(Debug)]
pub(super) struct HeldBack<'a>(&'a Pressure);

impl Drop for HeldBack<'_> {
    fn drop(&mut self) {
        self.0.held_back.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Somebody who waits for room.
#[derive(Debug)]
pub(super) struct WaitingPlace<'a> {
    pressure: &'a Pressure,
    bytes: usize,
    deadline: Option<Instant>,
}

impl WaitingPlace<'_> {
    /// Waits until it is worth trying again; false when the time is over. Listens from the moment it is called, so
    /// nothing that is freed after that goes unnoticed.
    pub(super) fn next_chance(&mut self) -> impl Future<Output = bool> {
        let mut freed = Box::pin(self.pressure.freed.notified());
        freed.as_mut().enable();
        async move {
            self.pressure.call();
            let now = Instant::now();
            let soon = now + CALL_EVERY;
            let until = self.deadline.map_or(soon, |deadline| deadline.min(soon));
            let _ = timeout_at(until, freed).await;
            self.deadline
                .is_none_or(|deadline| Instant::now() < deadline)
        }
    }
}

impl Drop for WaitingPlace<'_> {
    fn drop(&mut self) {
        self.pressure
            .waiting_bytes
            .fetch_sub(self.bytes, Ordering::Relaxed);
        self.pressure.waiters.fetch_sub(1, Ordering::SeqCst);
        // What was freed may be enough for the next one too.
        self.pressure.freed();
    }
}
