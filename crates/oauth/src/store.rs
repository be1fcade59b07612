//! Persistent store of the authorization server: registered clients, authorization codes, grants and keys,
//! in files that only the owner can read.
//!
//! `sign-in.redb` is a transactional database, because redeeming a code and creating its grant have to be
//! atomic. A database has one writer at a time, so client registrations, which anybody may send, have a
//! file of their own (`registrations.redb`) and cannot delay a token refresh. A transaction is durable when
//! it returns. Clients' secrets (codes, refresh tokens) are stored as digests only.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;
use std::sync::Arc;

use redb::{
    Database, ReadableDatabase as _, ReadableTable as _, ReadableTableMetadata as _,
    TableDefinition, WriteTransaction,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The size of the database's page cache.
const CACHE_BYTES: usize = 4 * 1024 * 1024;

/// The database of authorized clients, codes, grants and keys.
pub(crate) const NAME: &str = "sign-in.redb";
/// The database of clients that no user has authorized yet.
pub(crate) const REGISTRATIONS: &str = "registrations.redb";

/// A table of JSON rows by a text key.
pub(crate) type StoreTable = TableDefinition<'static, &'static str, &'static [u8]>;
/// A secondary index that orders a table's keys by a time, so that the oldest is found without reading the
/// rest.
pub(crate) type TimeIndex = TableDefinition<'static, (u64, &'static str), ()>;

/// Dynamically registered clients that a user has authorized, by client id.
pub(crate) const CLIENTS: StoreTable = TableDefinition::new("clients");
/// The index of [`CLIENTS`] by expiry time.
pub(crate) const CLIENTS_BY_END: TimeIndex = TableDefinition::new("clients_by_end");
/// Dynamically registered clients that no user has authorized yet. Older versions kept them in
/// `sign-in.redb`.
pub(crate) const NEWCOMERS: StoreTable = TableDefinition::new("newcomers");
/// The index by registration time of the pending clients that no authorization request has named yet.
pub(crate) const UNSEEN_BY_TIME: TimeIndex = TableDefinition::new("newcomers_by_time");
/// The index by registration time of the pending clients that a browser or the client itself has come back
/// with.
pub(crate) const SEEN_BY_TIME: TimeIndex = TableDefinition::new("seen_newcomers_by_time");
/// Authorization codes, by the digest of the code.
pub(crate) const CODES: StoreTable = TableDefinition::new("codes");
/// Grants, by the digest of their id.
pub(crate) const GRANTS: StoreTable = TableDefinition::new("grants");
/// Signing keys by their key id, and the HMAC secret.
pub(crate) const KEYS: StoreTable = TableDefinition::new("keys");

/// The name, tables and indexes of one database file.
struct StoreLayout {
    name: &'static str,
    tables: &'static [StoreTable],
    indexes: &'static [TimeIndex],
}

const SIGN_IN_LAYOUT: StoreLayout = StoreLayout {
    name: NAME,
    tables: &[CLIENTS, CODES, GRANTS, KEYS],
    indexes: &[CLIENTS_BY_END],
};
const REGISTRATIONS_LAYOUT: StoreLayout = StoreLayout {
    name: REGISTRATIONS,
    tables: &[NEWCOMERS],
    indexes: &[UNSEEN_BY_TIME, SEEN_BY_TIME],
};

/// Why the store could not be read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    /// The file cannot be created or opened.
    #[error("cannot open the sign-in store")]
    Open(#[source] io::Error),
    /// Another process holds the file's lock.
    #[error("the sign-in store is locked by another process")]
    Taken,
    /// The disk or the database failed.
    #[error("the sign-in store failed")]
    Failed(#[source] Box<redb::Error>),
    /// A row does not have the expected JSON.
    #[error("corrupt row in the sign-in store")]
    Row(#[from] serde_json::Error),
    /// The blocking task was cancelled or panicked.
    #[error("a task of the sign-in store was cancelled")]
    Gone,
    /// The operating system's random number generator failed.
    #[error(transparent)]
    NoRandomness(#[from] super::crypto::RandomnessError),
}

macro_rules! fails_with {
    ($($error:ty),*) => {
        $(impl From<$error> for StoreError {
            fn from(error: $error) -> Self {
                Self::Failed(Box::new(error.into()))
            }
        })*
    };
}
fails_with!(
    redb::DatabaseError,
    redb::TransactionError,
    redb::TableError,
    redb::StorageError,
    redb::CommitError
);

/// An open database; a clone shares it.
#[derive(Clone)]
pub(crate) struct AuthStore(Arc<Database>);

impl AuthStore {
    /// Opens the main database in `dir`, or creates an empty one with mode 0600.
    pub(crate) fn open(dir: &Path) -> Result<Self, StoreError> {
        Self::open_layout(dir, &SIGN_IN_LAYOUT)
    }

    /// Opens the database of pending client registrations, in the same way.
    pub(crate) fn open_registrations(dir: &Path) -> Result<Self, StoreError> {
        Self::open_layout(dir, &REGISTRATIONS_LAYOUT)
    }

    fn open_layout(dir: &Path, layout: &StoreLayout) -> Result<Self, StoreError> {
        let path = dir.join(layout.name);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path).map_err(StoreError::Open)?;
        #[cfg(unix)]
        make_private_file(&file).map_err(StoreError::Open)?;
        drop(file);
        let database = Database::builder()
            .set_cache_size(CACHE_BYTES)
            .create(&path)
            .map_err(|error| match error {
                redb::DatabaseError::DatabaseAlreadyOpen => StoreError::Taken,
                other => other.into(),
            })?;
        let store = Self(Arc::new(database));
        store.change(|rows| {
            for table in layout.tables {
                rows.transaction.open_table(*table)?;
            }
            for index in layout.indexes {
                rows.transaction.open_table(*index)?;
            }
            Ok(())
        })?;
        Ok(store)
    }

    /// Runs a write transaction: when this returns, either all changes are durable or none was made.
    pub(crate) fn change<T>(
        &self,
        change: impl FnOnce(&StoreTransaction) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let rows = StoreTransaction {
            transaction: self.0.begin_write()?,
            #[cfg(test)]
            touched: std::cell::Cell::new(0),
        };
        let done = change(&rows)?;
        rows.transaction.commit()?;
        Ok(done)
    }

    /// Holds the write lock, so that every other writer of this file waits until it is dropped.
    #[cfg(test)]
    pub(crate) fn hold_writer(&self) -> WriteTransaction {
        self.0.begin_write().unwrap()
    }

    /// Runs a write transaction on a blocking thread, because a commit waits for the disk.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        change: impl FnOnce(&StoreTransaction) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let store = self.clone();
        tokio::task::spawn_blocking(move || store.change(change))
            .await
            .map_err(|_| StoreError::Gone)?
    }

    /// Reads one row on a blocking thread.
    pub(crate) async fn get<R: DeserializeOwned + Send + 'static>(
        &self,
        table: StoreTable,
        key: &str,
    ) -> Result<Option<R>, StoreError> {
        let (store, key) = (self.clone(), key.to_owned());
        tokio::task::spawn_blocking(move || {
            let read = store.0.begin_read()?;
            let table = read.open_table(table)?;
            let row = table.get(key.as_str())?;
            Ok(row
                .map(|row| serde_json::from_slice(row.value()))
                .transpose()?)
        })
        .await
        .map_err(|_| StoreError::Gone)?
    }
}

/// Restores mode 0600 on a file that came from a copy or was made under an older umask.
#[cfg(unix)]
fn make_private_file(file: &std::fs::File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    file.set_permissions(std::fs::Permissions::from_mode(0o600))
}

/// A write transaction over all tables of one file.
pub(crate) struct StoreTransaction {
    transaction: WriteTransaction,
    /// The number of rows and index entries that were read or changed, for tests of an operation's cost.
    #[cfg(test)]
    touched: std::cell::Cell<usize>,
}

impl StoreTransaction {
    /// Reads one row within the transaction.
    pub(crate) fn get<R: DeserializeOwned>(
        &self,
        table: StoreTable,
        key: &str,
    ) -> Result<Option<R>, StoreError> {
        self.touch();
        let table = self.transaction.open_table(table)?;
        let row = table.get(key)?;
        Ok(row
            .map(|row| serde_json::from_slice(row.value()))
            .transpose()?)
    }

    /// Inserts or replaces one row.
    pub(crate) fn put<R: Serialize>(
        &self,
        table: StoreTable,
        key: &str,
        row: &R,
    ) -> Result<(), StoreError> {
        self.touch();
        let bytes = serde_json::to_vec(row)?;
        let mut table = self.transaction.open_table(table)?;
        table.insert(key, bytes.as_slice())?;
        Ok(())
    }

    /// Deletes one row, if it exists.
    pub(crate) fn remove(&self, table: StoreTable, key: &str) -> Result<(), StoreError> {
        self.touch();
        self.transaction.open_table(table)?.remove(key)?;
        Ok(())
    }

    /// The number of rows of a table, which the database keeps and need not count.
    pub(crate) fn count(&self, table: StoreTable) -> Result<usize, StoreError> {
        let count = self.transaction.open_table(table)?.len()?;
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// The number of entries of an index.
    pub(crate) fn count_entries(&self, index: TimeIndex) -> Result<usize, StoreError> {
        let count = self.transaction.open_table(index)?.len()?;
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// Reads a whole table. Tables are bounded where rows are inserted.
    pub(crate) fn all<R: DeserializeOwned>(
        &self,
        table: StoreTable,
    ) -> Result<Vec<(String, R)>, StoreError> {
        let table = self.transaction.open_table(table)?;
        let mut rows = Vec::new();
        for row in table.iter()? {
            self.touch();
            let (key, value) = row?;
            rows.push((
                key.value().to_owned(),
                serde_json::from_slice(value.value())?,
            ));
        }
        Ok(rows)
    }

    /// Deletes a table that this version no longer uses.
    pub(crate) fn drop_table(&self, table: StoreTable) -> Result<(), StoreError> {
        self.transaction.delete_table(table)?;
        Ok(())
    }

    /// Adds an index entry for a key at a time.
    pub(crate) fn insert_index_entry(
        &self,
        index: TimeIndex,
        time: u64,
        key: &str,
    ) -> Result<(), StoreError> {
        self.touch();
        let mut index = self.transaction.open_table(index)?;
        index.insert((time, key), ())?;
        Ok(())
    }

    /// Deletes the index entry of a key at a time; false when there was none.
    pub(crate) fn remove_index_entry(
        &self,
        index: TimeIndex,
        time: u64,
        key: &str,
    ) -> Result<bool, StoreError> {
        self.touch();
        let mut index = self.transaction.open_table(index)?;
        let there = index.remove((time, key))?.is_some();
        Ok(there)
    }

    /// The first entry of an index, which is the one with the earliest time.
    pub(crate) fn first(&self, index: TimeIndex) -> Result<Option<(u64, String)>, StoreError> {
        self.touch();
        let index = self.transaction.open_table(index)?;
        let first = index.first()?;
        Ok(first.map(|(key, _)| {
            let (time, key) = key.value();
            (time, key.to_owned())
        }))
    }

    /// The first entries that `wanted` selects, at most `limit`. It reads index entries only, no rows.
    pub(crate) fn select_index_entries(
        &self,
        index: TimeIndex,
        limit: usize,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Vec<(u64, String)>, StoreError> {
        let index = self.transaction.open_table(index)?;
        let mut found = Vec::new();
        for entry in index.iter()? {
            if found.len() >= limit {
                break;
            }
            self.touch();
            let (key, _) = entry?;
            let (time, key) = key.value();
            if wanted(key) {
                found.push((time, key.to_owned()));
            }
        }
        Ok(found)
    }

    /// Deletes every entry of an index.
    pub(crate) fn clear(&self, index: TimeIndex) -> Result<(), StoreError> {
        self.transaction.delete_table(index)?;
        self.transaction.open_table(index)?;
        Ok(())
    }

    #[cfg(test)]
    fn touch(&self) {
        self.touched.set(self.touched.get() + 1);
    }

    #[cfg(not(test))]
    #[allow(clippy::unused_self, reason = "only tests count")]
    const fn touch(&self) {}

    /// The number of rows and index entries read or changed so far.
    #[cfg(test)]
    pub(crate) fn touched(&self) -> usize {
        self.touched.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn committed_rows_survive_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let store = AuthStore::open(dir.path()).unwrap();
        store
            .write(|rows| rows.put(CODES, "a", &vec![1, 2]))
            .await
            .unwrap();
        let undone: Result<(), _> = store.change(|rows| {
            rows.put(CODES, "b", &0)?;
            Err(StoreError::Gone)
        });
        assert!(undone.is_err());
        drop(store);
        let store = AuthStore::open(dir.path()).unwrap();
        assert_eq!(store.get(CODES, "a").await.unwrap(), Some(vec![1, 2]));
        assert_eq!(store.get::<i32>(CODES, "b").await.unwrap(), None);
        assert_eq!(
            store.change(|rows| rows.all::<Vec<i32>>(CODES)).unwrap(),
            [("a".to_owned(), vec![1, 2])]
        );
    }

    #[test]
    fn a_second_process_is_told_that_the_file_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let _first = AuthStore::open(dir.path()).unwrap();
        assert!(matches!(
            AuthStore::open(dir.path()),
            Err(StoreError::Taken)
        ));
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_reads_the_file_even_where_it_was_open_to_all() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(NAME);
        std::fs::write(&path, "").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        drop(AuthStore::open(dir.path()).unwrap());
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_damaged_file_is_an_error_and_not_an_empty_store() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(NAME), vec![b'x'; 8192]).unwrap();
        assert!(AuthStore::open(dir.path()).is_err());
    }
}
