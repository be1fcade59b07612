//! What outlives a restart: registered clients, codes, grants and keys, in files that only the owner reads.
//!
//! `sign-in.redb` is one file with transactions, because a code has to be spent and its grant made in one step that
//! lasts or never was. A database has one writer at a time, so what strangers may write without being asked, their
//! registrations, has a file of its own (`registrations.redb`) and never keeps a refresh waiting. What a transaction
//! returned is on the disk. Secrets of others are kept as digests only.

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

/// What of the file is kept in memory.
const CACHE_BYTES: usize = 4 * 1024 * 1024;

/// The file of what people allowed.
pub(crate) const NAME: &str = "sign-in.redb";
/// The file of clients that nobody allowed anything yet.
pub(crate) const REGISTRATIONS: &str = "registrations.redb";

/// One kind of rows: JSON by a text.
pub(crate) type StoreTable = TableDefinition<'static, &'static str, &'static [u8]>;
/// Keys of a table in the order of a time, so that the first of them is found without reading the others.
pub(crate) type TimeIndex = TableDefinition<'static, (u64, &'static str), ()>;

/// Clients that registered themselves and were allowed something, by their id.
pub(crate) const CLIENTS: StoreTable = TableDefinition::new("clients");
/// The same by when they end.
pub(crate) const CLIENTS_BY_END: TimeIndex = TableDefinition::new("clients_by_end");
/// Clients that registered themselves and were not yet allowed anything. Older versions kept them in `sign-in.redb`.
pub(crate) const NEWCOMERS: StoreTable = TableDefinition::new("newcomers");
/// Those of them that nobody has asked for yet, by when they registered.
pub(crate) const UNSEEN_BY_TIME: TimeIndex = TableDefinition::new("newcomers_by_time");
/// Those of them that a browser or the client itself came with, by when they registered.
pub(crate) const SEEN_BY_TIME: TimeIndex = TableDefinition::new("seen_newcomers_by_time");
/// Codes, by their digest.
pub(crate) const CODES: StoreTable = TableDefinition::new("codes");
/// Grants, by the digest of their id.
pub(crate) const GRANTS: StoreTable = TableDefinition::new("grants");
/// Keys that sign, by their id, and the secret behind every seal.
pub(crate) const KEYS: StoreTable = TableDefinition::new("keys");

/// What one of the files holds.
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

/// Why something could not be read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    /// The file cannot be made or opened.
    #[error("the file of the sign-in cannot be opened")]
    Open(#[source] io::Error),
    /// Another process has it.
    #[error("another process keeps the file of the sign-in")]
    Taken,
    /// The disk or the file fails.
    #[error("the file of the sign-in fails")]
    Failed(#[source] Box<redb::Error>),
    /// A row is not what was written.
    #[error("a row of the sign-in is damaged")]
    Row(#[from] serde_json::Error),
    /// The work was given up.
    #[error("the file of the sign-in was given up")]
    Gone,
    /// The system gave no randomness.
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

/// An open file.
#[derive(Clone)]
pub(crate) struct AuthStore(Arc<Database>);

impl AuthStore {
    /// Opens the file of what people allowed in `dir`, or makes an empty one that only its owner can read.
    pub(crate) fn open(dir: &Path) -> Result<Self, StoreError> {
        Self::open_layout(dir, &SIGN_IN_LAYOUT)
    }

    /// The same for clients that nobody allowed anything yet.
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

    /// Changes rows: all of it lasts when this returns, or nothing happened.
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

    /// Keeps every other writer of this file waiting until it is dropped.
    #[cfg(test)]
    pub(crate) fn hold_writer(&self) -> WriteTransaction {
        self.0.begin_write().unwrap()
    }

    /// The same away from the threads that answer requests: a commit waits for the disk.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        change: impl FnOnce(&StoreTransaction) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let store = self.clone();
        tokio::task::spawn_blocking(move || store.change(change))
            .await
            .map_err(|_| StoreError::Gone)?
    }

    /// One row.
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

/// A file from an older umask or a copy is made private again.
#[cfg(unix)]
fn make_private_file(file: &std::fs::File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    file.set_permissions(std::fs::Permissions::from_mode(0o600))
}

/// Every row, within one transaction.
pub(crate) struct StoreTransaction {
    transaction: WriteTransaction,
    /// Rows and entries that were looked at or changed, for tests of what an operation costs.
    #[cfg(test)]
    touched: std::cell::Cell<usize>,
}

impl StoreTransaction {
    /// One row.
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

    /// Writes a row over whatever was there.
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

    /// Takes a row away.
    pub(crate) fn remove(&self, table: StoreTable, key: &str) -> Result<(), StoreError> {
        self.touch();
        self.transaction.open_table(table)?.remove(key)?;
        Ok(())
    }

    /// How many rows of a kind there are.
    pub(crate) fn count(&self, table: StoreTable) -> Result<usize, StoreError> {
        let count = self.transaction.open_table(table)?.len()?;
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// How many entries an index has.
    pub(crate) fn count_entries(&self, index: TimeIndex) -> Result<usize, StoreError> {
        let count = self.transaction.open_table(index)?.len()?;
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// Every row of a kind. The kinds are bounded where rows are made.
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

    /// Removes a table that this version no longer keeps here.
    pub(crate) fn drop_table(&self, table: StoreTable) -> Result<(), StoreError> {
        self.transaction.delete_table(table)?;
        Ok(())
    }

    /// Enters a key under a time.
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

    /// Takes the entry of a key under a time away; false when there is none.
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

    /// The first entry of an index.
    pub(crate) fn first(&self, index: TimeIndex) -> Result<Option<(u64, String)>, StoreError> {
        self.touch();
        let index = self.transaction.open_table(index)?;
        let first = index.first()?;
        Ok(first.map(|(key, _)| {
            let (time, key) = key.value();
            (time, key.to_owned())
        }))
    }

    /// The first entries that `wanted` chooses, at most `limit` of them. Reads keys, and no row.
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

    /// Takes every entry of an index away.
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

    /// Rows and entries that were looked at or changed so far.
    #[cfg(test)]
    pub(crate) fn touched(&self) -> usize {
        self.touched.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_was_written_is_there_after_opening_again() {
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
