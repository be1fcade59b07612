//! Registry of dynamically registered clients (RFC 7591). A client is kept for a day until a user
//! authorizes it, and then for 30 days beyond its last grant.

use std::collections::HashSet;
use std::path::Path;

use super::oauth_client::OAuthClient;
use super::pending_clients::{ClientRow, PendingClients, RegistrationError};
use super::store::{AuthStore, CLIENTS, CLIENTS_BY_END, NEWCOMERS, StoreError, StoreTransaction};

/// The maximum number of authorized clients. There are no more grants than this, so when the registry is
/// over it, at least one client has no grant and can be evicted.
pub(crate) const MAX_CLIENTS: usize = 20_000;
/// How long a client outlives its last grant: 30 days. Hosts store the client id and do not register again when the
/// user signs in anew. A client that was removed at once would get an error that only a new connection in the host
/// cures.
const RETENTION_AFTER_GRANT: u64 = 30 * 86_400;

/// A client that may request tokens: a registered one, or one whose id is the URL of its metadata document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KnownClient {
    pub(crate) id: String,
    /// The registered metadata; `None` for a client with a metadata document.
    pub(crate) registered: Option<OAuthClient>,
}

impl From<&OAuthClient> for KnownClient {
    fn from(client: &OAuthClient) -> Self {
        Self {
            id: client.id.clone(),
            registered: (!client.has_document()).then(|| client.clone()),
        }
    }
}

/// The registry: authorized clients in the main store, pending ones in a file of their own.
pub(crate) struct ClientRegistry {
    store: AuthStore,
    pending: PendingClients,
}

impl ClientRegistry {
    /// Opens the pending registrations in `dir`, next to the main store.
    pub(crate) fn open(dir: &Path, store: AuthStore) -> Result<Self, StoreError> {
        let pending = PendingClients::open(dir)?;
        // Migration: older versions kept pending clients in the main store. They are written to the new
        // file before they are deleted from the old one, so that a crash in between loses none.
        let old = store.change(|rows| rows.all::<ClientRow>(NEWCOMERS))?;
        if !old.is_empty() {
            pending.import(&old)?;
        }
        store.change(|rows| rows.drop_table(NEWCOMERS))?;
        Ok(Self { store, pending })
    }

    /// Registers a client under a new random id.
    pub(crate) async fn add(
        &self,
        client: OAuthClient,
        now: u64,
    ) -> Result<OAuthClient, RegistrationError> {
        self.pending.add(client, now).await
    }

    /// Looks a client up by its id.
    pub(crate) async fn find(&self, id: &str, now: u64) -> Result<Option<OAuthClient>, StoreError> {
        // Our ids have this length; a lookup of anything else is skipped.
        if id.len() != 22 {
            return Ok(None);
        }
        let row: Option<ClientRow> = self.store.get(CLIENTS, id).await?;
        match row.filter(|row| now < row.ends) {
            Some(row) => Ok(Some(row.client)),
            None => self.pending.find(id, now).await,
        }
    }

    /// Holds the write lock of the registrations until the result is dropped.
    #[cfg(test)]
    pub(crate) fn hold_writer(&self) -> redb::WriteTransaction {
        self.pending.hold_writer()
    }
}

/// Extends the lifetime of an authorized client beyond a grant that ends at `ends`; a no-op for a client
/// with a metadata document. If the table is full, the clients that expire first are evicted, except those
/// in `in_use`.
pub(crate) fn retain_client(
    rows: &StoreTransaction,
    client: &KnownClient,
    ends: u64,
    in_use: impl FnOnce() -> HashSet<String>,
) -> Result<(), StoreError> {
    let Some(client) = &client.registered else {
        return Ok(());
    };
    let id = client.id.as_str();
    let mut row = ClientRow {
        client: client.clone(),
        made: 0,
        ends: ends.saturating_add(RETENTION_AFTER_GRANT),
    };
    if let Some(known) = rows.get::<ClientRow>(CLIENTS, id)? {
        rows.remove_index_entry(CLIENTS_BY_END, known.ends, id)?;
        row.ends = row.ends.max(known.ends);
    }
    rows.insert_index_entry(CLIENTS_BY_END, row.ends, id)?;
    rows.put(CLIENTS, id, &row)?;
    let over = rows.count(CLIENTS)?.saturating_sub(MAX_CLIENTS);
    if over > 0 {
        let in_use = in_use();
        let leave = rows.select_index_entries(CLIENTS_BY_END, over, |other| {
            other != id && !in_use.contains(other)
        })?;
        for (ends, id) in leave {
            rows.remove_index_entry(CLIENTS_BY_END, ends, &id)?;
            rows.remove(CLIENTS, &id)?;
        }
    }
    Ok(())
}

/// Deletes expired clients and rebuilds the expiry index, which older versions did not have.
pub(crate) fn sweep(rows: &StoreTransaction, now: u64) -> Result<(), StoreError> {
    rows.clear(CLIENTS_BY_END)?;
    for (id, row) in rows.all::<ClientRow>(CLIENTS)? {
        if now < row.ends {
            rows.insert_index_entry(CLIENTS_BY_END, row.ends, &id)?;
        } else {
            rows.remove(CLIENTS, &id)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pending_clients::PENDING_LIFETIME;

    fn client(id: &str) -> OAuthClient {
        OAuthClient {
            id: id.to_owned(),
            name: "Chart room".to_owned(),
            redirects: vec!["https://app.example/cb".to_owned()],
            refreshes: true,
        }
    }

    fn known(id: &str) -> KnownClient {
        KnownClient::from(&client(id))
    }

    fn row(id: &str, made: u64, ends: u64) -> ClientRow {
        let client = client(id);
        ClientRow { client, made, ends }
    }

    fn there(store: &AuthStore, id: &str) -> bool {
        let there = store.change(|rows| rows.get::<ClientRow>(CLIENTS, id));
        there.unwrap().is_some()
    }

    #[tokio::test]
    async fn of_the_authorized_the_first_to_end_makes_room_and_never_one_in_use() {
        let dir = tempfile::tempdir().unwrap();
        let store = AuthStore::open(dir.path()).unwrap();
        // The first client to expire is not the first in key order.
        let most = MAX_CLIENTS as u64;
        store
            .change(|rows| {
                for n in 0..most {
                    let id = format!("{n:022}");
                    rows.put(CLIENTS, &id, &row(&id, 1_000, 1_000_000 + most - n))?;
                }
                sweep(rows, 1_000)
            })
            .unwrap();
        let id = |n: u64| format!("{:022}", most - n);
        let nobody = HashSet::new;
        let keep_one = |id: &str, ends: u64, in_use: HashSet<String>| {
            let kept = store.change(|rows| retain_client(rows, &known(id), ends, || in_use));
            kept.unwrap();
        };
        // A client that is there already needs no room.
        keep_one(&id(2), 2_000_000, nobody());
        assert!(there(&store, &id(1)));
        keep_one("new", 1_000, nobody());
        assert!(!there(&store, &id(1)), "it ended first");
        assert!(there(&store, &id(2)) && there(&store, "new"));
        // The next to expire has a live grant, so the one after it is evicted.
        keep_one("newer", 1_000, HashSet::from([id(3)]));
        assert!(there(&store, &id(3)) && !there(&store, &id(4)));
        let count = |rows: &StoreTransaction| rows.count(CLIENTS);
        assert_eq!(store.change(count).unwrap(), MAX_CLIENTS);
        // A client with a metadata document is not stored.
        keep_one("https://app.example/client.json", 9_000_000, nobody());
        assert!(!there(&store, "https://app.example/client.json"));
        store.change(|rows| sweep(rows, 1_000_005)).unwrap();
        assert!(!there(&store, &id(5)) && there(&store, &id(6)));
    }

    #[tokio::test]
    async fn an_authorized_client_is_kept_for_a_month_after_its_grant() {
        let dir = tempfile::tempdir().unwrap();
        let store = AuthStore::open(dir.path()).unwrap();
        let registry = ClientRegistry::open(dir.path(), store.clone()).unwrap();
        let unused = registry.add(client(""), 1_000).await.unwrap();
        let used = registry.add(client(""), 1_000).await.unwrap();
        let kept = KnownClient::from(&used);
        store
            .change(|rows| retain_client(rows, &kept, 500_000, HashSet::new))
            .unwrap();
        for (client, now, known) in [
            (&unused, 1_000 + PENDING_LIFETIME - 1, true),
            (&unused, 1_000 + PENDING_LIFETIME, false),
            (&used, 500_000 + RETENTION_AFTER_GRANT - 1, true),
            (&used, 500_000 + RETENTION_AFTER_GRANT, false),
        ] {
            let found = registry.find(&client.id, now).await.unwrap();
            assert_eq!(found.is_some(), known, "{now}");
        }
    }

    #[tokio::test]
    async fn clients_of_an_older_store_are_taken_over_once() {
        let dir = tempfile::tempdir().unwrap();
        let store = AuthStore::open(dir.path()).unwrap();
        let (new, old) = ("n".repeat(22), "o".repeat(22));
        store
            .change(|rows| {
                rows.put(NEWCOMERS, &new, &row(&new, 1_000, 1_000 + PENDING_LIFETIME))?;
                rows.put(CLIENTS, &old, &row(&old, 1_000, 9_000_000))
            })
            .unwrap();
        for _ in 0..2 {
            store.change(|rows| sweep(rows, 1_000)).unwrap();
            let registry = ClientRegistry::open(dir.path(), store.clone()).unwrap();
            let found = async |id: &str, now: u64| registry.find(id, now).await.unwrap();
            assert_eq!(found(&new, 1_001).await, Some(client(&new)));
            assert_eq!(found(&new, 1_000 + PENDING_LIFETIME).await, None);
            assert_eq!(found(&old, 1_001).await, Some(client(&old)));
            let left = store.change(|rows| rows.count(NEWCOMERS)).unwrap();
            assert_eq!(left, 0, "they are in the file of registrations alone");
        }
        let first = store.change(|rows| rows.first(CLIENTS_BY_END)).unwrap();
        assert_eq!(first, Some((9_000_000, old)));
    }
}
