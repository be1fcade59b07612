//! Clients that registered themselves (RFC 7591): kept for a day until somebody allows them something, then for as
//! long as that lasts.

use serde::{Deserialize, Serialize};

use super::client::Client;
use super::seal;
use super::store::{CLIENTS, NEWCOMERS, Rows, Store, StoreError, Table};

/// How long a client is kept that nobody allowed anything, in seconds: a day.
pub(crate) const NEW_FOR: u64 = 86_400;
/// Such clients at once.
pub(crate) const MAX_NEW: usize = 1_000;
/// How long such a client cannot be pushed out by another: as long as somebody may look for their password.
pub(crate) const SAFE_FOR: u64 = 600;
/// Clients that somebody allowed something.
pub(crate) const MAX_KEPT: usize = 20_000;
/// How long a client outlives its last grant, so that an app can find its way back: 30 days.
const OUTLIVES: u64 = 30 * 86_400;

#[derive(Serialize, Deserialize)]
struct Row {
    client: Client,
    made: u64,
    ends: u64,
}

/// There is no room for one more for now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

/// Clients that registered themselves.
pub(crate) struct Registry {
    store: Store,
}

impl Registry {
    pub(crate) const fn new(store: Store) -> Self {
        Self { store }
    }

    /// Keeps a client under a new id.
    pub(crate) async fn add(
        &self,
        client: Client,
        now: u64,
    ) -> Result<Result<Client, Full>, StoreError> {
        let id = seal::encode(&seal::random::<16>()?);
        let client = Client { id, ..client };
        self.store
            .write(move |rows| {
                let mut left = swept(rows, NEWCOMERS, now)?;
                if left.len() >= MAX_NEW {
                    left.sort_by_key(|(_, row)| row.made);
                    match left.first() {
                        Some((id, row)) if now >= row.made.saturating_add(SAFE_FOR) => {
                            rows.remove(NEWCOMERS, id)?;
                        }
                        _ => return Ok(Err(Full)),
                    }
                }
                let row = Row {
                    client: client.clone(),
                    made: now,
                    ends: now.saturating_add(NEW_FOR),
                };
                rows.put(NEWCOMERS, &client.id, &row)?;
                Ok(Ok(client))
            })
            .await
    }

    /// The client of an id.
    pub(crate) async fn find(&self, id: &str, now: u64) -> Result<Option<Client>, StoreError> {
        // Our ids are this long; anything else is not looked for.
        if id.len() != 22 {
            return Ok(None);
        }
        for table in [CLIENTS, NEWCOMERS] {
            let row: Option<Row> = self.store.get(table, id).await?;
            if let Some(row) = row.filter(|row| now < row.ends) {
                return Ok(Some(row.client));
            }
        }
        Ok(None)
    }
}

/// Keeps a client as long as a grant that ends at `ends`; does nothing for one that did not register.
pub(crate) fn keep(rows: &Rows, id: &str, ends: u64) -> Result<(), StoreError> {
    let known = rows.get::<Row>(CLIENTS, id)?;
    let row = match known {
        Some(row) => Some(row),
        None => rows.get::<Row>(NEWCOMERS, id)?,
    };
    let Some(row) = row else { return Ok(()) };
    rows.remove(NEWCOMERS, id)?;
    let ends = row.ends.max(ends.saturating_add(OUTLIVES));
    rows.put(CLIENTS, id, &Row { ends, ..row })?;
    if rows.count(CLIENTS)? > MAX_KEPT {
        let mut all = rows.all::<Row>(CLIENTS)?;
        all.sort_by_key(|(_, row)| row.ends);
        for (id, _) in all.iter().take(all.len().saturating_sub(MAX_KEPT)) {
            rows.remove(CLIENTS, id)?;
        }
    }
    Ok(())
}

/// Drops every client whose time is over.
pub(crate) fn sweep(rows: &Rows, now: u64) -> Result<(), StoreError> {
    swept(rows, NEWCOMERS, now)?;
    swept(rows, CLIENTS, now)?;
    Ok(())
}

fn swept(rows: &Rows, table: Table, now: u64) -> Result<Vec<(String, Row)>, StoreError> {
    let mut left = Vec::new();
    for (id, row) in rows.all::<Row>(table)? {
        if now < row.ends {
            left.push((id, row));
        } else {
            rows.remove(table, &id)?;
        }
    }
    Ok(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client() -> Client {
        Client {
            id: String::new(),
            name: "Chart room".to_owned(),
            redirects: vec!["https://app.example/cb".to_owned()],
            refreshes: true,
        }
    }

    #[tokio::test]
    async fn one_more_than_there_is_room_for_waits_or_replaces_the_oldest() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let rows: Vec<_> = (0..MAX_NEW as u64)
            .map(|n| (format!("{n:022}"), 1000 + n / 500))
            .collect();
        let wanted = rows.clone();
        store
            .change(|all| {
                for (id, made) in wanted {
                    let client = Client {
                        id: id.clone(),
                        ..client()
                    };
                    all.put(
                        NEWCOMERS,
                        &id,
                        &Row {
                            client,
                            made,
                            ends: made + NEW_FOR,
                        },
                    )?;
                }
                Ok(())
            })
            .unwrap();
        let registry = Registry::new(store.clone());
        let full = registry.add(client(), 1000 + SAFE_FOR - 1).await.unwrap();
        assert_eq!(full, Err(Full));
        let added = registry
            .add(client(), 1000 + SAFE_FOR)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(store.change(|all| all.count(NEWCOMERS)).unwrap(), MAX_NEW);
        assert!(registry.find(&added.id, 2000).await.unwrap().is_some());
    }

    #[tokio::test]
    async fn of_those_who_were_allowed_something_the_first_to_end_makes_room() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let row = |ends: u64| Row {
            client: client(),
            made: 1000,
            ends,
        };
        // The first to end is not the first by name.
        let most = MAX_KEPT as u64;
        store
            .change(|rows| {
                for n in 0..most {
                    rows.put(CLIENTS, &format!("{n:022}"), &row(1_000_000 + most - n))?;
                }
                rows.put(NEWCOMERS, "new", &row(1000 + NEW_FOR))
            })
            .unwrap();
        let there = |id: &str| {
            let there = store.change(|rows| rows.get::<Row>(CLIENTS, id));
            there.unwrap().is_some()
        };
        let id = |n: u64| format!("{:022}", most - n);
        // One that is known already needs no room.
        store.change(|rows| keep(rows, &id(2), 2_000_000)).unwrap();
        assert!(there(&id(1)));
        store.change(|rows| keep(rows, "new", 1000)).unwrap();
        assert!(!there(&id(1)) && there(&id(2)) && there("new"));
        assert_eq!(store.change(|rows| rows.count(CLIENTS)).unwrap(), MAX_KEPT);
        assert_eq!(store.change(|rows| rows.count(NEWCOMERS)).unwrap(), 0);
        // A client that did not register is not kept.
        store
            .change(|rows| keep(rows, "stranger", 9_000_000))
            .unwrap();
        assert!(!there("stranger"));
        store.change(|rows| sweep(rows, 1_000_003)).unwrap();
        assert!(!there(&id(3)) && there(&id(4)));
    }

    #[tokio::test]
    async fn of_those_who_are_new_the_oldest_makes_room() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        store
            .change(|rows| {
                for n in 0..MAX_NEW as u64 {
                    let row = Row {
                        client: client(),
                        made: 5000 - n,
                        ends: 90_000,
                    };
                    rows.put(NEWCOMERS, &format!("{n:022}"), &row)?;
                }
                Ok(())
            })
            .unwrap();
        let registry = Registry::new(store);
        registry.add(client(), 6000).await.unwrap().unwrap();
        let there = async |n: usize| {
            let found = registry.find(&format!("{n:022}"), 6000).await;
            found.unwrap().is_some()
        };
        assert!(!there(MAX_NEW - 1).await, "it came first");
        assert!(there(MAX_NEW - 2).await && there(0).await);
    }

    #[tokio::test]
    async fn who_is_never_used_is_forgotten_after_a_day_and_who_is_used_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let registry = Registry::new(store.clone());
        let unused = registry.add(client(), 1000).await.unwrap().unwrap();
        let used = registry.add(client(), 1000).await.unwrap().unwrap();
        let id = used.id.clone();
        store.change(move |rows| keep(rows, &id, 500_000)).unwrap();
        for (client, now, known) in [
            (&unused, 1000 + NEW_FOR - 1, true),
            (&unused, 1000 + NEW_FOR, false),
            (&used, 500_000 + OUTLIVES - 1, true),
            (&used, 500_000 + OUTLIVES, false),
        ] {
            let found = registry.find(&client.id, now).await.unwrap();
            assert_eq!(found.is_some(), known, "{now}");
        }
        store.change(|rows| sweep(rows, 1000 + NEW_FOR)).unwrap();
        assert_eq!(store.change(|rows| rows.count(NEWCOMERS)).unwrap(), 0);
        assert_eq!(store.change(|rows| rows.count(CLIENTS)).unwrap(), 1);
    }
}
