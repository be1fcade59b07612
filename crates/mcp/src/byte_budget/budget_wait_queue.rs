//! Wait queue of a byte budget: a bounded number of reservations that wait for room, and their requests for eviction.
//!
//! A budget does not know which connections to evict. It signals, the accept loop cuts the connections that have made
//! no progress for longest, and request bodies that arrive too slowly end themselves. What they free wakes the
//! waiting reservations one by one.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// Waiting items are in memory but not charged yet, so they may be one part in this many of the budget: the budget and
/// its queue together stay below nine eighths of the limit. One item may wait whatever its size, or a large one would
/// never get room.
const WAITING_PART: usize = 8;
/// Interval at which a waiting reservation repeats its request for eviction, because connections that were too
/// young to be evicted get older.
const EVICTION_REQUEST_INTERVAL: Duration = Duration::from_millis(25);

/// The wait queue of a budget, and its signals for eviction.
#[derive(Debug)]
pub(crate) struct BudgetWaitQueue {
    max_wait: Duration,
    eviction_requests: Notify,
    freed: Notify,
    freed_for_held_back: Notify,
    forwarded_requests: Notify,
    waiters: AtomicUsize,
    waiting_bytes: AtomicUsize,
    held_back: AtomicUsize,
}

impl BudgetWaitQueue {
    pub(super) fn new(max_wait: Duration) -> Self {
        Self {
            max_wait,
            eviction_requests: Notify::new(),
            freed: Notify::new(),
            freed_for_held_back: Notify::new(),
            forwarded_requests: Notify::new(),
            waiters: AtomicUsize::new(0),
            waiting_bytes: AtomicUsize::new(0),
            held_back: AtomicUsize::new(0),
        }
    }

    /// Whether the budget evicts at all.
    pub(super) fn is_evicting(&self) -> bool {
        !self.max_wait.is_zero()
    }

    /// Returns when something that starts to wait now has to stop; `None` if it may wait forever.
    pub(super) fn deadline(&self) -> Option<Instant> {
        Instant::now().checked_add(self.max_wait)
    }

    pub(crate) fn has_waiters(&self) -> bool {
        self.waiters.load(Ordering::Relaxed) > 0
    }

    /// Whether a reservation waits for room, or a request is held back until there is some.
    pub(crate) fn is_contended(&self) -> bool {
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

    /// Requests eviction. Repeated requests coalesce until the accept loop reacts.
    pub(super) fn request_eviction(&self) {
        self.eviction_requests.notify_one();
    }

    /// Waits for a request for eviction. Only the accept loop may use it.
    pub(super) async fn eviction_requested(&self) {
        self.eviction_requests.notified().await;
    }

    /// Forwards a request for eviction to everything that can free memory by itself.
    pub(crate) fn forward_eviction(&self) {
        self.forwarded_requests.notify_waiters();
    }

    /// Waits for a forwarded request for eviction.
    pub(crate) fn eviction_forwarded(&self) -> impl Future<Output = ()> {
        self.forwarded_requests.notified()
    }

    /// Wakes a waiting reservation, and all requests that are held back, because bytes were freed.
    pub(super) fn freed(&self) {
        if self.held_back.load(Ordering::Relaxed) > 0 {
            self.freed_for_held_back.notify_waiters();
        }
        if self.has_waiters() {
            self.freed.notify_one();
        }
    }

    /// Waits until a held-back request should look again: bytes were freed, or it is time to request eviction again.
    pub(super) async fn next_look(&self, deadline: Instant) {
        let soon = Instant::now() + EVICTION_REQUEST_INTERVAL;
        let _ = timeout_at(deadline.min(soon), self.freed_for_held_back.notified()).await;
    }

    /// Enters the wait queue; `None` if it is full.
    pub(super) fn enter(&self, bytes: usize, total: usize) -> Option<QueuedReservation<'_>> {
        if !self.is_evicting() {
            return None;
        }
        let reservation = QueuedReservation {
            queue: self,
            bytes,
            deadline: self.deadline(),
        };
        self.waiters.fetch_add(1, Ordering::SeqCst);
        let before = self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        let fits = before == 0 || before.saturating_add(bytes) <= total / WAITING_PART;
        fits.then_some(reservation)
    }
}

/// Guard of a request that is held back because there is no room for its response.
#[derive(Debug)]
pub(super) struct HeldBack<'a>(&'a BudgetWaitQueue);

impl Drop for HeldBack<'_> {
    fn drop(&mut self) {
        self.0.held_back.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A reservation in the wait queue.
#[derive(Debug)]
pub(super) struct QueuedReservation<'a> {
    queue: &'a BudgetWaitQueue,
    bytes: usize,
    deadline: Option<Instant>,
}

impl QueuedReservation<'_> {
    /// Waits until it is worth trying again; false once the deadline has passed. It subscribes when it is called,
    /// before the first poll, so no release after that is missed.
    pub(super) fn next_chance(&mut self) -> impl Future<Output = bool> {
        let mut freed = Box::pin(self.queue.freed.notified());
        freed.as_mut().enable();
        async move {
            self.queue.request_eviction();
            let now = Instant::now();
            let soon = now + EVICTION_REQUEST_INTERVAL;
            let until = self.deadline.map_or(soon, |deadline| deadline.min(soon));
            let _ = timeout_at(until, freed).await;
            self.deadline
                .is_none_or(|deadline| Instant::now() < deadline)
        }
    }
}

impl Drop for QueuedReservation<'_> {
    fn drop(&mut self) {
        self.queue
            .waiting_bytes
            .fetch_sub(self.bytes, Ordering::Relaxed);
        self.queue.waiters.fetch_sub(1, Ordering::SeqCst);
        // What was freed may be enough for the next waiter too.
        self.queue.freed();
    }
}
