//! Leader election: a lease makes one of the processes that share an index its only writer.
//!
//! The lease is stored in the index head: the holder's name, an epoch, and a counter that the holder raises with
//! every heartbeat. A process that sees the counter stand still for [`LEASE_TIMEOUT`] by its own clock takes
//! over, so no two clocks are ever compared. It raises the epoch, which fences the previous writer off: the
//! next commit of that writer fails its compare-and-set. It also marks the generation as aborted that the
//! previous writer may have begun, so that whatever arrives late belongs to a generation that nobody ever
//! sees.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::ClusterInner;
use super::collections;
use super::head::{HeadSummary, IndexHead, MAX_ABORTED};
use super::request::RequestDeadline;
use crate::error::SearchError;

/// How long a writer may go without a heartbeat before its lease expires. The shorter it is, the sooner another process
/// takes over from a writer that died. But every takeover aborts the batch that was begun, so a slow node must not cost
/// a living writer its lease.
const LEASE_TIMEOUT: Duration = Duration::from_secs(10);

/// How often the writer sends a heartbeat: five times within [`LEASE_TIMEOUT`]. So a few lost heartbeats, while a node
/// fails over, do not cost the writer its lease; a change of leadership aborts the batch that was begun.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(2);

/// How often a process that waits for the lease reads the head again. Several reads fall between two heartbeats, so a
/// rise of the counter is noticed at once, and the wait ends soon after the lease expires.
const LEASE_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The deadline for releasing the lease on shutdown. Releasing only saves the next writer its wait for the lease to
/// expire, so a cluster that does not answer must not hold up the end of the process.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(2);

/// What a writer remembers between batches, and what a process that is not the writer knows about the one
/// that is. The mutex around it also serialises the changes within this process.
#[derive(Default)]
pub(super) struct WriterLease {
    other: Option<OtherWriter>,
    /// Whether a batch was begun and not committed. The lease is then acquired anew, under a new epoch and
    /// with the batch's generation aborted.
    pub is_dirty: bool,
    /// Term ids that are known to be in the terms collection already.
    pub terms: HashSet<u32>,
    /// Generations whose ended versions await garbage collection, and when each was committed.
    pub commits: VecDeque<(u64, Instant)>,
    /// Passage collections of models that no longer answer, and when each was retired.
    pub retired: Vec<(String, Instant)>,
    /// Models whose HNSW graphs are deferred until all vectors are written.
    pub deferred: HashSet<String>,
    /// Older index formats: the last summary seen of each, and since when it has not changed.
    pub older: HashMap<u32, (HeadSummary, Instant)>,
}

/// The writer that holds the lease in place of this process. `seen` is the highest pair of epoch and
/// heartbeat counter that was read, `since` is when it was first read, and `heartbeats` counts how often it
/// has risen.
struct OtherWriter {
    seen: (u64, u64),
    since: Instant,
    heartbeats: u32,
}

/// How many heartbeats a writer must send until it is believed to be alive. One is not enough: nodes that
/// stopped together with the writer may have kept two different counters, and answer with the one or the
/// other forever.
const MIN_HEARTBEATS: u32 = 2;

/// A name for this process that no other process has.
pub(super) fn writer_id() -> String {
    let random = RandomState::new().hash_one(std::process::id());
    format!("{}-{random:016x}", std::process::id())
}

impl ClusterInner {
    /// Whether this process holds the lease, or acquires it now: leader election without waiting.
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

    /// Acquires the writer lease and returns the index head. While it is unknown whether the current holder
    /// is alive, this waits until the lease has expired or heartbeats prove otherwise.
    pub(super) fn acquire_lease(
        self: &Arc<Self>,
        lease: &mut WriterLease,
    ) -> Result<IndexHead, SearchError> {
        if self.is_read_only {
            return Err(SearchError::ReadOnly {
                path: self.names.head.clone().into(),
            });
        }
        // Heartbeats from before this wait do not prove that the holder is still alive.
        if let Some(other) = &mut lease.other {
            other.heartbeats = 0;
        }
        loop {
            match self.try_acquire_lease(lease) {
                // A holder that is alive sends a heartbeat sooner or later.
                Err(SearchError::Locked { .. }) if !lease.is_other_alive() => {
                    std::thread::sleep(LEASE_POLL_INTERVAL);
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
            // The collection must exist before the head names its model.
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
            "acquired the writer lease, this process is the leader now"
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
            // Started only now: it may take longer than the lease lasts without a heartbeat.
            self.reconcile_collections(lease, &next);
        }
        Ok(next)
    }

    /// The head with this process as its leader under a new epoch, the fencing token of every later write.
    fn with_new_epoch(&self, head: &IndexHead) -> IndexHead {
        let mut next = head.clone();
        next.epoch += 1;
        next.heartbeat_count += 1;
        next.holder.clone_from(&self.writer_id);
        // The previous writer may have begun the next generation, and may still write to it.
        if head.epoch > 0 {
            next.advance();
            next.aborted_generations.push(next.generation);
            if next.aborted_generations.len() > MAX_ABORTED {
                next.aborted_generations.remove(0);
            }
        }
        next
    }

    pub(super) fn locked_error(&self) -> SearchError {
        SearchError::Locked {
            path: self.names.head.clone().into(),
        }
    }

    /// The epoch under which this process writes, while it is the leader.
    fn leader_epoch(&self) -> Option<u64> {
        *self
            .leader_epoch
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a heartbeat, which renews the lease. Returns false when this process is no longer the writer.
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
                tracing::warn!("lost the writer lease, another process is the leader now");
                *self
                    .leader_epoch
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner) = None;
                false
            }
            // The cluster is unreachable, for the other processes too, so none of them can take over.
            Err(error) => {
                tracing::warn!(%error, "heartbeat failed, the writer lease was not renewed");
                true
            }
        }
    }
}

impl WriterLease {
    /// Whether the holder that the head names has sent no heartbeat for [`LEASE_TIMEOUT`].
    fn has_expired(&mut self, head: &IndexHead) -> bool {
        let latest = (head.epoch, head.heartbeat_count);
        match &mut self.other {
            Some(other) if latest <= other.seen => other.since.elapsed() >= LEASE_TIMEOUT,
            other => {
                *other = Some(OtherWriter {
                    seen: latest,
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

/// The heartbeat thread. It ends when the lease is lost or nobody has the index open any more.
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
    /// Releases the lease, so that the next writer need not wait for it to expire.
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
                tracing::debug!(%error, "could not release the writer lease, the next writer waits until it expires");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(heartbeat_count: u64) -> IndexHead {
        IndexHead {
            epoch: 3,
            heartbeat_count,
            ..IndexHead::default()
        }
    }

    #[test]
    fn a_writer_that_counts_up_lives() {
        let mut lease = WriterLease::default();
        for (heartbeat_count, is_alive) in [(7, false), (7, false), (8, false), (9, true)] {
            assert!(!lease.has_expired(&head(heartbeat_count)));
            assert_eq!(lease.is_other_alive(), is_alive, "{heartbeat_count}");
        }
    }

    #[test]
    fn two_numbers_that_take_turns_are_a_dead_writer() {
        let mut lease = WriterLease::default();
        for heartbeat_count in [8, 7, 8, 7, 9, 8, 9, 7] {
            assert!(!lease.has_expired(&head(heartbeat_count)));
            assert!(!lease.is_other_alive(), "{heartbeat_count}");
        }
        let other = lease.other.as_mut().unwrap();
        other.since = other.since.checked_sub(LEASE_TIMEOUT).unwrap();
        assert!(lease.has_expired(&head(7)));
    }
}
