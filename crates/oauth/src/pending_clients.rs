//! Dynamically registered clients (RFC 7591) that no user has authorized yet.
//!
//! Anybody may register, so the cost is bounded. The rows are in a file of their own, whose writer delays
//! nobody else. A registration reads and writes a constant number of rows: the count is the table's own,
//! and the oldest client is the first entry of a time index. Concurrent registrations share one commit
//! (group commit), and each is answered once it is durable.
//!
//! A full table evicts the oldest client, and those that no authorization request has named (unseen) before
//! the others (seen), so a flood that only registers evicts nobody whose consent page is open. A flood that
//! opens pages too must not evict new clients at once, so the unseen ones have a guaranteed share.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use tokio::sync::{Mutex as AsyncMutex, oneshot};

use super::crypto;
use super::oauth_client::OAuthClient;
use super::store::{
    AuthStore, NEWCOMERS, SEEN_BY_TIME, StoreError, StoreTransaction, TimeIndex, UNSEEN_BY_TIME,
};

/// The lifetime in seconds of a client that no user authorizes: a day. A login follows its registration within minutes.
/// Hosts that register first and open the login later do so on the same day.
pub(crate) const PENDING_LIFETIME: u64 = 86_400;
/// The maximum number of pending clients. Within the 15 minutes in which a consent form is valid, the rate
/// limits of one site, and the shared one behind a proxy with its reserve, admit fewer than this minus the
/// share below. So no flood within them evicts a client whose consent page is open.
pub(crate) const MAX_PENDING: usize = 4_096;
/// The share of unseen clients. Above it they are evicted first, below it they are safe from clients that were seen. So
/// neither a flood of registrations nor one of opened pages drives out what the other kind needs.
pub(crate) const UNSEEN_SHARE: usize = 1_024;
/// The maximum number of registrations in the queue for the next commit (backpressure). A commit is a disk flush that
/// takes milliseconds and may hold any number of rows, so a longer queue means that the disk does not keep up, and
/// waiting would not help.
pub(crate) const MAX_QUEUED: usize = 256;
/// The maximum number of evictions for each inserted client, which keeps the cost of a registration
/// constant.
const MAX_EVICTIONS_PER_INSERT: usize = 2;

/// A registered client as it is stored, with its registration and expiry time.
#[derive(Serialize, Deserialize)]
pub(crate) struct ClientRow {
    pub(crate) client: OAuthClient,
    pub(crate) made: u64,
    pub(crate) ends: u64,
}

/// Why a client registration failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RegistrationError {
    /// The queue is full; the client gets a 503.
    #[error("the registration queue is full")]
    Busy,
    #[error(transparent)]
    Store(#[from] StoreError),
}

struct QueuedRegistration {
    row: ClientRow,
    done: oneshot::Sender<OAuthClient>,
}

/// The pending clients, in a database of their own.
pub(crate) struct PendingClients {
    store: AuthStore,
    queue: Arc<Mutex<Vec<QueuedRegistration>>>,
    /// Registration times and ids of the clients that have been seen since the last commit. That only
    /// matters for evictions, so it is written with the next registration, and no authorization request
    /// waits for the disk. A restart loses it. Only stored clients enter here, so the set is bounded too.
    seen: Arc<Mutex<HashSet<(u64, String)>>>,
    /// Held by whoever commits. A registration that waits for it is most likely in the batch that is being
    /// committed.
    commit_lock: AsyncMutex<()>,
    #[cfg(test)]
    commits: Arc<std::sync::atomic::AtomicUsize>,
}

impl PendingClients {
    pub(crate) fn open(dir: &Path) -> Result<Self, StoreError> {
        Ok(Self {
            store: AuthStore::open_registrations(dir)?,
            queue: Arc::default(),
            seen: Arc::default(),
            commit_lock: AsyncMutex::default(),
            #[cfg(test)]
            commits: Arc::default(),
        })
    }

    /// Imports clients from the store of an older version.
    pub(crate) fn import(&self, old: &[(String, ClientRow)]) -> Result<(), StoreError> {
        self.store.change(|rows| {
            for (_, row) in old {
                insert(rows, row, row.made)?;
            }
            Ok(())
        })
    }

    /// Registers a client under a new random id. It is durable when this returns.
    pub(crate) async fn add(
        &self,
        client: OAuthClient,
        now: u64,
    ) -> Result<OAuthClient, RegistrationError> {
        let id = crypto::encode(&crypto::random::<16>().map_err(StoreError::from)?);
        let row = ClientRow {
            client: OAuthClient { id, ..client },
            made: now,
            ends: now.saturating_add(PENDING_LIFETIME),
        };
        let (done, mut answer) = oneshot::channel();
        {
            let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            if queue.len() >= MAX_QUEUED {
                return Err(RegistrationError::Busy);
            }
            queue.push(QueuedRegistration { row, done });
        }
        let _commit_lock = self.commit_lock.lock().await;
        if let Ok(client) = answer.try_recv() {
            return Ok(client);
        }
        self.commit(now).await?;
        Ok(answer.await.map_err(|_| StoreError::Gone)?)
    }

    /// Commits the whole queue in one transaction and answers every registration in it.
    async fn commit(&self, now: u64) -> Result<(), StoreError> {
        let (store, queue, seen) = (self.store.clone(), self.queue.clone(), self.seen.clone());
        #[cfg(test)]
        let commits = self.commits.clone();
        let written = tokio::task::spawn_blocking(move || {
            let batch = std::mem::take(&mut *queue.lock().unwrap_or_else(PoisonError::into_inner));
            if batch.is_empty() {
                return Ok(());
            }
            #[cfg(test)]
            commits.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            let seen = std::mem::take(&mut *seen.lock().unwrap_or_else(PoisonError::into_inner));
            store.change(|rows| {
                for (made, id) in &seen {
                    mark_seen(rows, *made, id)?;
                }
                for queued in &batch {
                    insert(rows, &queued.row, now)?;
                }
                Ok(())
            })?;
            for QueuedRegistration { row, done } in batch {
                // The receiver is gone if the client has disconnected.
                let _ = done.send(row.client);
            }
            Ok(())
        });
        written.await.map_err(|_| StoreError::Gone)?
    }

    /// Looks a client up and marks it as seen: a browser named it at `/authorize`, or the client itself
    /// called `/token`.
    pub(crate) async fn find(&self, id: &str, now: u64) -> Result<Option<OAuthClient>, StoreError> {
        let row: Option<ClientRow> = self.store.get(NEWCOMERS, id).await?;
        let Some(row) = row.filter(|row| now < row.ends) else {
            return Ok(None);
        };
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() < MAX_PENDING {
            seen.insert((row.made, row.client.id.clone()));
        }
        Ok(Some(row.client))
    }

    /// Holds the write lock of the registrations until the result is dropped.
    #[cfg(test)]
    pub(crate) fn hold_writer(&self) -> redb::WriteTransaction {
        self.store.hold_writer()
    }
}

/// Moves a client from the unseen to the seen index, unless it is there already or has been evicted.
fn mark_seen(rows: &StoreTransaction, made: u64, id: &str) -> Result<(), StoreError> {
    if rows.remove_index_entry(UNSEEN_BY_TIME, made, id)? {
        rows.insert_index_entry(SEEN_BY_TIME, made, id)?;
    }
    Ok(())
}

/// Inserts a client, and evicts expired ones or, in a full table, the next in order.
fn insert(rows: &StoreTransaction, row: &ClientRow, now: u64) -> Result<(), StoreError> {
    for _ in 0..MAX_EVICTIONS_PER_INSERT {
        let Some((index, made, id)) = next_to_leave(rows, now)? else {
            break;
        };
        rows.remove_index_entry(index, made, &id)?;
        rows.remove(NEWCOMERS, &id)?;
    }
    rows.insert_index_entry(UNSEEN_BY_TIME, row.made, &row.client.id)?;
    rows.put(NEWCOMERS, &row.client.id, row)
}

/// The next client to evict: an expired one, or in a full table the oldest unseen one while they exceed
/// their share, else the oldest seen one.
fn next_to_leave(
    rows: &StoreTransaction,
    now: u64,
) -> Result<Option<(TimeIndex, u64, String)>, StoreError> {
    let full = rows.count(NEWCOMERS)? >= MAX_PENDING;
    let unseen_first = rows.count_entries(UNSEEN_BY_TIME)? > UNSEEN_SHARE;
    let order = if unseen_first {
        [UNSEEN_BY_TIME, SEEN_BY_TIME]
    } else {
        [SEEN_BY_TIME, UNSEEN_BY_TIME]
    };
    let mut oldest = None;
    for index in order {
        if let Some((made, id)) = rows.first(index)? {
            if now >= made.saturating_add(PENDING_LIFETIME) {
                return Ok(Some((index, made, id)));
            }
            oldest = oldest.or(Some((index, made, id)));
        }
    }
    Ok(oldest.filter(|_| full))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    fn client() -> OAuthClient {
        OAuthClient {
            id: String::new(),
            name: "Chart room".to_owned(),
            redirects: vec!["https://app.example/cb".to_owned()],
            refreshes: true,
        }
    }

    fn row(n: usize, made: u64) -> ClientRow {
        let id = format!("{n:022}");
        ClientRow {
            client: OAuthClient { id, ..client() },
            made,
            ends: made + PENDING_LIFETIME,
        }
    }

    fn pending() -> (tempfile::TempDir, PendingClients) {
        let dir = tempfile::tempdir().unwrap();
        let pending = PendingClients::open(dir.path()).unwrap();
        (dir, pending)
    }

    fn fill(pending: &PendingClients, rows: impl Iterator<Item = ClientRow>) {
        let rows: Vec<_> = rows.map(|row| (String::new(), row)).collect();
        pending.import(&rows).unwrap();
    }

    fn count(pending: &PendingClients) -> usize {
        let count = |rows: &StoreTransaction| rows.count(NEWCOMERS);
        pending.store.change(count).unwrap()
    }

    #[tokio::test]
    async fn one_more_than_there_is_room_for_replaces_the_oldest_at_once() {
        let (_dir, pending) = pending();
        // The oldest client is not the first in key order.
        fill(&pending, (0..MAX_PENDING).map(|n| row(n, 9_000 - n as u64)));
        let added = pending.add(client(), 9_001).await.unwrap();
        assert_eq!(count(&pending), MAX_PENDING);
        let there = async |n: usize| {
            let found = pending.find(&format!("{n:022}"), 9_001).await;
            found.unwrap().is_some()
        };
        assert!(!there(MAX_PENDING - 1).await, "it came first");
        assert!(there(MAX_PENDING - 2).await && there(0).await);
        assert!(pending.find(&added.id, 9_001).await.unwrap().is_some());
    }

    /// True when a client is stored; unlike a lookup this does not mark it as seen.
    fn there(pending: &PendingClients, n: usize) -> bool {
        let row = |rows: &StoreTransaction| rows.get::<ClientRow>(NEWCOMERS, &format!("{n:022}"));
        pending.store.change(row).unwrap().is_some()
    }

    async fn come_with(pending: &PendingClients, clients: impl Iterator<Item = usize>) {
        for n in clients {
            let found = pending.find(&format!("{n:022}"), 2_000).await;
            assert!(found.unwrap().is_some(), "{n}");
        }
    }

    #[tokio::test]
    async fn clients_without_an_opened_consent_page_are_evicted_first() {
        let (_dir, pending) = pending();
        fill(&pending, (0..MAX_PENDING).map(|n| row(n, 1_000 + n as u64)));
        // The oldest of all has its consent page open.
        come_with(&pending, [0, 2].into_iter()).await;
        for _ in 0..3 {
            pending.add(client(), 6_000).await.unwrap();
        }
        assert_eq!(count(&pending), MAX_PENDING);
        let left: Vec<_> = (0..6).filter(|n| there(&pending, *n)).collect();
        assert_eq!(left, [0, 2, 5]);
        // They also survive a flood that fills the whole table once more.
        fill(
            &pending,
            (10_000..10_000 + MAX_PENDING).map(|n| row(n, 7_000)),
        );
        assert!(there(&pending, 0) && there(&pending, 2) && !there(&pending, 5));
        assert_eq!(count(&pending), MAX_PENDING);
        // They expire after a day like any other.
        pending
            .add(client(), 1_002 + PENDING_LIFETIME)
            .await
            .unwrap();
        assert!(!there(&pending, 0) && !there(&pending, 2));
    }

    #[tokio::test]
    async fn a_flood_that_opens_pages_leaves_the_next_one_its_place() {
        let (_dir, pending) = pending();
        fill(&pending, (0..MAX_PENDING).map(|n| row(n, 1_000 + n as u64)));
        come_with(&pending, 0..MAX_PENDING).await;
        let late = pending.add(client(), 6_000).await.unwrap();
        let others = (0..UNSEEN_SHARE - 1).map(|n| row(20_000 + n, 6_001));
        fill(&pending, others);
        assert_eq!(count(&pending), MAX_PENDING);
        let known = |id: &str| {
            let row = |rows: &StoreTransaction| rows.get::<ClientRow>(NEWCOMERS, id);
            pending.store.change(row).unwrap().is_some()
        };
        assert!(known(&late.id), "those whose pages are open left instead");
        assert!(!there(&pending, UNSEEN_SHARE - 1) && there(&pending, UNSEEN_SHARE));
        fill(
            &pending,
            [row(30_000, 6_002), row(30_001, 6_003)].into_iter(),
        );
        assert!(!known(&late.id), "it came first of more than the share");
    }

    #[tokio::test]
    async fn a_registration_costs_the_same_however_many_there_are() {
        let (_dir, pending) = pending();
        let cost = |n: usize, now: u64| {
            let added = pending.store.change(|rows| {
                insert(rows, &row(n, now), now)?;
                Ok(rows.touched())
            });
            added.unwrap()
        };
        let empty = cost(1_000_000, 1_000);
        fill(&pending, (1..MAX_PENDING).map(|n| row(n, 2_000)));
        let full = cost(1_000_001, 2_000);
        let over = cost(1_000_002, 2_000 + PENDING_LIFETIME);
        assert!(
            empty <= 4 && full <= 8 && over <= 10,
            "{empty} {full} {over}"
        );
    }

    #[tokio::test]
    async fn those_who_come_together_share_a_commit() {
        let (_dir, pending) = pending();
        let first = pending.commit_lock.lock().await;
        let all = futures::future::join_all((0..64).map(|_| pending.add(client(), 1_000)));
        let release = async {
            let waiting = || pending.queue.lock().unwrap().len();
            while waiting() < 64 {
                tokio::task::yield_now().await;
            }
            drop(first);
        };
        let (all, ()) = futures::future::join(all, release).await;
        let ids: std::collections::HashSet<_> =
            all.into_iter().map(|client| client.unwrap().id).collect();
        assert_eq!((ids.len(), count(&pending)), (64, 64));
        assert_eq!(pending.commits.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn the_queue_of_registrations_is_limited() {
        let (_dir, pending) = pending();
        for n in 0..MAX_QUEUED {
            let (done, _) = oneshot::channel();
            let row = row(n, 1_000);
            pending
                .queue
                .lock()
                .unwrap()
                .push(QueuedRegistration { row, done });
        }
        let refused = pending.add(client(), 1_000).await;
        assert!(matches!(refused, Err(RegistrationError::Busy)));
        pending.queue.lock().unwrap().pop();
        assert!(pending.add(client(), 1_000).await.is_ok());
        assert_eq!(count(&pending), MAX_QUEUED);
    }

    #[tokio::test]
    async fn a_client_that_is_never_authorized_expires_after_a_day() {
        let (_dir, pending) = pending();
        let old = pending.add(client(), 1_000).await.unwrap();
        let known = async |now: u64| pending.find(&old.id, now).await.unwrap().is_some();
        assert!(known(1_000 + PENDING_LIFETIME - 1).await);
        assert!(!known(1_000 + PENDING_LIFETIME).await);
        pending
            .add(client(), 1_000 + PENDING_LIFETIME)
            .await
            .unwrap();
        assert_eq!(count(&pending), 1, "the next one took its place");
    }

    #[tokio::test]
    async fn an_acknowledged_registration_survives_a_restart() {
        let (dir, pending) = pending();
        let client = pending.add(client(), 1_000).await.unwrap();
        drop(pending);
        let pending = PendingClients::open(dir.path()).unwrap();
        assert_eq!(pending.find(&client.id, 1_000).await.unwrap(), Some(client));
    }
}
