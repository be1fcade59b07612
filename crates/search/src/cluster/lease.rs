//! Which of the processes that share an index writes to it.
//!
//! The writer's name stands in the head, and a number beside it counts up while the writer lives. Who
//! sees that number stand still for [`PATIENCE`] by its own clock takes over: it raises the epoch,
//! and declares the generation void that the other may have begun. Whatever of that one arrives later
//! belongs to the void generation, so nobody ever sees it, and its commit fails for its epoch.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::ClusterInner;
use super::collections;
use super::head::{HeadSummary, IndexHead, MAX_ABORTED};
use super::request::RequestDeadline;
use crate::error::SearchError;

/// How long a writer may be silent.
const LEASE_TIMEOUT: Duration = Duration::from_secs(10);

/// How often it shows that it lives.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(2);

/// How often somebody looks who waits for it.
const LEASE_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The longest that letting go may take.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(2);

/// What the one who writes knows.
#[derive(Default)]
pub(super) struct WriterLease {
    /// The writer that was seen last.
    other: Option<OtherWriter>,
    /// Whether a batch was begun and not finished.
    pub is_dirty: bool,
    /// Terms that are known to be in the collection of terms.
    pub terms: HashSet<u32>,
    /// Generations of which something may have to be removed, and when they came to count.
    pub commits: VecDeque<(u64, Instant)>,
    /// Collections of passages that answers no longer come from, and since when.
    pub retired: Vec<(String, Instant)>,
    /// The models whose graphs wait until all vectors are there.
    pub deferred: HashSet<String>,
    /// Older formats, what was last seen of each, and since when that stands still.
    pub older: HashMap<u32, (HeadSummary, Instant)>,
}

/// A writer that is not this process.
struct OtherWriter {
    /// Its epoch and its number, as high as they were seen.
    seen: (u64, u64),
    /// Since when that stands still.
    since: Instant,
    /// How often it has counted up.
    heartbeats: u32,
}

/// How often a writer has to count up until it is believed to live. Nodes that stopped together with it may have kept
/// two numbers, and say the one or the other for ever.
const MIN_HEARTBEATS: u32 = 2;

/// A name that no other process has.
pub(super) fn writer_id() -> String {
    let random = RandomState::new().hash_one(std::process::id());
    format!("{}-{random:016x}", std::process::id())
}

impl ClusterInner {
    /// Whether this process writes, or does from now on.
    pub(super) fn acquire_leadership(self: &Arc<Self>) -> Result<bool, SearchError> {
        if self.is_read_only {
            return Ok(false);
        }
        let mut lease = self.lease.lock().unwrap_or_else(PoisonError::into_inner);
        match self.try_acquire_lease(&mut lease) {
            Ok(_) => Ok(true),
            Err(SearchError::Locked { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Makes this process the writer, and gives the state of the index. Waits for a writer that may be dead.
    pub(super) fn acquire_lease(
        self: &Arc<Self>,
        lease: &mut WriterLease,
    ) -> Result<IndexHead, SearchError> {
        if self.is_read_only {
            return Err(SearchError::ReadOnly {
                path: self.names.head.clone().into(),
            });
        }
        // What it did before it was waited for is no sign that it still lives.
        if let Some(other) = &mut lease.other {
            other.heartbeats = 0;
        }
        loop {
            match self.try_acquire_lease(lease) {
                // A living one counts up sooner or later.
                Err(SearchError::Locked { .. }) if !lease.is_other_alive() => {
                    std::thread::sleep(LEASE_POLL_INTERVAL)
                }
                other => return other,
            }
        }
    }

    pub(super) fn try_acquire_lease(
        self: &Arc<Self>,
        lease: &mut WriterLease,
    ) -> Result<IndexHead, SearchError> {
        let deadline = self.write_deadline();
        let missing = || SearchError::Missing {
            path: self.names.head.clone().into(),
        };
        let head = IndexHead::read(&self.nodes, &self.names, deadline)?.ok_or_else(missing)?;
        let is_mine = head.holder == self.writer_id && self.leader_epoch() == Some(head.epoch);
        if is_mine && !lease.is_dirty {
            return Ok(head);
        }
        let is_free = is_mine || head.holder.is_empty() || head.holder == self.writer_id;
        if !is_free && !lease.has_expired(&head) {
            return Err(self.locked_error());
        }
        let mut next = self.with_new_epoch(&head);
        if let Some(own) = &self.models.own {
            // Before the head names it.
            collections::ensure_passages(&self.nodes, &self.settings, own, &head.fields)?;
            if next.model.is_empty() {
                next.model.clone_from(&own.name);
            }
        }
        if !head.replace(&next, &self.nodes, &self.names, deadline)? {
            return Err(self.locked_error());
        }
        tracing::info!(
            epoch = next.epoch,
            generation = next.generation,
            "this process writes to the index now"
        );
        let was_leading = self
            .leader_epoch
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .replace(next.epoch)
            .is_some();
        lease.other = None;
        lease.is_dirty = false;
        lease.deferred.clear();
        self.remove_aborted(&next, deadline)?;
        lease.commits.push_back((next.generation, Instant::now()));
        self.publish_head(next.clone(), Instant::now());
        if !was_leading {
            let weak = Arc::downgrade(self);
            let named = std::thread::Builder::new().name("docent-lease".to_owned());
            named
                .spawn(move || run_heartbeat(&weak))
                .map_err(SearchError::engine)?;
            // Only now, because it may take longer than a writer may be silent.
            self.reconcile_collections(lease, &next);
        }
        Ok(next)
    }

    /// The state of the index with this process as its writer.
    fn with_new_epoch(&self, head: &IndexHead) -> IndexHead {
        let mut next = head.clone();
        next.epoch += 1;
        next.beat += 1;
        next.holder.clone_from(&self.writer_id);
        // Whoever wrote before may have begun the next generation, and may still be about to.
        if head.epoch > 0 {
            next.generation += 1;
            next.void.push(next.generation);
            if next.void.len() > MAX_ABORTED {
                next.void.remove(0);
            }
        }
        next
    }

    pub(super) fn locked_error(&self) -> SearchError {
        SearchError::Locked {
            path: self.names.head.clone().into(),
        }
    }

    /// The epoch in which this process writes.
    fn leader_epoch(&self) -> Option<u64> {
        *self
            .leader_epoch
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows that this process lives; false when it does not write any more.
    fn heartbeat(&self) -> bool {
        let Some(epoch) = self.leader_epoch() else {
            return false;
        };
        let own = IndexHead {
            epoch,
            holder: self.writer_id.clone(),
            ..IndexHead::default()
        };
        match own.heartbeat(
            &self.nodes,
            &self.names,
            RequestDeadline::within(LEASE_TIMEOUT),
        ) {
            Ok(true) => true,
            Ok(false) => {
                tracing::warn!("another process writes to the index now");
                *self
                    .leader_epoch
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner) = None;
                false
            }
            // The cluster is away, for the others too.
            Err(error) => {
                tracing::warn!(%error, "the writer cannot show that it lives");
                true
            }
        }
    }
}

impl WriterLease {
    /// Whether the writer that the head names has been silent for too long.
    fn has_expired(&mut self, head: &IndexHead) -> bool {
        let said = (head.epoch, head.beat);
        match &mut self.other {
            Some(other) if said <= other.seen => other.since.elapsed() >= LEASE_TIMEOUT,
            other => {
                *other = Some(OtherWriter {
                    seen: said,
                    since: Instant::now(),
                    heartbeats: other.as_ref().map_or(0, |other| other.heartbeats + 1),
                });
                false
            }
        }
    }

    fn is_other_alive(&self) -> bool {
        let other = self.other.as_ref();
        other.is_some_and(|other| other.heartbeats >= MIN_HEARTBEATS)
    }
}

/// Shows that the writer lives for as long as somebody has the index open.
fn run_heartbeat(inner: &Weak<ClusterInner>) {
    loop {
        std::thread::sleep(HEARTBEAT_INTERVAL);
        match inner.upgrade() {
            Some(inner) if inner.heartbeat() => {}
            _ => return,
        }
    }
}

impl Drop for ClusterInner {
    /// Lets go of writing, so that the next one need not wait.
    fn drop(&mut self) {
        if let Some(epoch) = self.leader_epoch() {
            let holder = self.writer_id.clone();
            let own = IndexHead {
                epoch,
                holder,
                ..IndexHead::default()
            };
            let released = own.release(
                &self.nodes,
                &self.names,
                RequestDeadline::within(RELEASE_TIMEOUT),
            );
            if let Err(error) = released {
                tracing::debug!(%error, "the next writer waits until this one is taken for dead");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(beat: u64) -> IndexHead {
        IndexHead {
            epoch: 3,
            beat,
            ..IndexHead::default()
        }
    }

    #[test]
    fn a_writer_that_counts_up_lives() {
        let mut lease = WriterLease::default();
        for (beat, is_alive) in [(7, false), (7, false), (8, false), (9, true)] {
            assert!(!lease.has_expired(&head(beat)));
            assert_eq!(lease.is_other_alive(), is_alive, "{beat}");
        }
    }

    #[test]
    fn two_numbers_that_take_turns_are_a_dead_writer() {
        let mut lease = WriterLease::default();
        for beat in [8, 7, 8, 7, 9, 8, 9, 7] {
            assert!(!lease.has_expired(&head(beat)));
            assert!(!lease.is_other_alive(), "{beat}");
        }
        let other = lease.other.as_mut().unwrap();
        other.since = other.since.checked_sub(LEASE_TIMEOUT).unwrap();
        assert!(lease.has_expired(&head(7)));
    }
}
