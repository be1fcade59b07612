//! Pressure on a byte budget: calls for eviction, and a bounded queue of reservations that wait for room.
//!
//! A budget does not know which connections to evict. It signals, the accept loop cuts the connections that have made
//! no progress for longest, and request bodies that arrive too slowly end themselves. What they free wakes the
//! waiting reservations one by one.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// Waiting items are in memory but not charged yet, so they may be one part in this many of the budget. One may wait
/// whatever its size.
const WAITING_PART: usize = 8;
/// Interval at which a waiting reservation repeats its call, because connections that were too young to be evicted
/// get older.
const CALL_EVERY: Duration = Duration::from_millis(25);

/// The wait queue of a budget, and its signals for eviction.
#[derive(Debug)]
pub(crate) struct Pressure {
    max_wait: Duration,
    calls: Notify,
    freed: Notify,
    spread: Notify,
    waiters: AtomicUsize,
    waiting_bytes: AtomicUsize,
    held_back: AtomicUsize,
}

impl Pressure {
    pub(super) fn new(max_wait: Duration) -> Self {
        Self {
            max_wait,
            calls: Notify::new(),
            freed: Notify::new(),
            spread: Notify::new(),
            waiters: AtomicUsize::new(0),
            waiting_bytes: AtomicUsize::new(0),
            held_back: AtomicUsize::new(0),
        }
    }

    /// Whether the budget evicts at all.
    pub(super) fn is_evicting(&self) -> bool {
        !self.max_wait.is_zero()
    }

    pub(crate) fn has_waiters(&self) -> bool {
        self.waiters.load(Ordering::Relaxed) > 0
    }

    /// Whether a reservation waits for room, or a request is held back until there is some.
    pub(crate) fn is_urgent(&self) -> bool {
        self.has_waiters() || self.held_back.load(Ordering::Relaxed) > 0
    }

    /// Marks a request as held back until the guard is dropped.
    pub(super) fn hold_back(&self) -> HeldBack<'_> {
        self.held_back.fetch_add(1, Ordering::Relaxed);
        HeldBack(self)
    }

    pub(super) fn waiting_bytes(&self) -> usize {
        self.waiting_bytes.load(Ordering::Relaxed)
    }

    /// Calls for eviction. Repeated calls coalesce until the accept loop reacts.
    pub(super) fn call(&self) {
        self.calls.notify_one();
    }

    /// Waits for a call. Only the accept loop may use it.
    pub(super) async fn called(&self) {
        self.calls.notified().await;
    }

    /// Forwards a call to everything that can free memory by itself.
    pub(crate) fn spread(&self) {
        self.spread.notify_waiters();
    }

    /// Waits for a forwarded call.
    pub(crate) fn spreading(&self) -> impl Future<Output = ()> {
        self.spread.notified()
    }

    /// Wakes a waiting reservation because bytes were freed.
    pub(super) fn freed(&self) {
        if self.has_waiters() {
            self.freed.notify_one();
        }
    }

    /// Enters the wait queue; `None` if it is full.
    pub(super) fn enter(&self, bytes: usize, total: usize) -> Option<WaitingPlace<'_>> {
        if !self.is_evicting() {
            return None;
        }
        let place = WaitingPlace {
            pressure: self,
            bytes,
            deadline: Instant::now().checked_add(self.max_wait),
        };
        self.waiters.fetch_add(1, Ordering::SeqCst);
        let before = self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        let fits = before == 0 || before.saturating_add(bytes) <= total / WAITING_PART;
        fits.then_some(place)
    }
}

/// Guard of a request that is held back because there is no room for its response.
#[derive(Debug)]
pub(super) struct HeldBack<'a>(&'a Pressure);

impl Drop for HeldBack<'_> {
    fn drop(&mut self) {
        self.0.held_back.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A reservation in the wait queue.
#[derive(Debug)]
pub(super) struct WaitingPlace<'a> {
    pressure: &'a Pressure,
    bytes: usize,
    deadline: Option<Instant>,
}

impl WaitingPlace<'_> {
    /// Waits until it is worth trying again; false once the deadline has passed. It subscribes when it is called,
    /// before the first poll, so no release after that is missed.
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
        // What was freed may be enough for the next waiter too.
        self.pressure.freed();
    }
}
