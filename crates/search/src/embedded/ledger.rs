//! The ledger: a durable list of the documents in the index, against which index and vectors are checked.
//!
//! It is a write-ahead record. A batch is written here first, as pending. It counts once a commit of the
//! index carries its generation, and is merged into the rows together with the next batch. A process that
//! ends in between leaves a pending batch that either the commit confirms or nothing does, so that ledger and
//! index always agree.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use redb::{
    Database, ReadableDatabase as _, ReadableTable, Table, TableDefinition, WriteTransaction,
};

use super::set_digest::SetDigest;
use crate::engine::{DocumentChange, Generation, InventoryEntry, InventoryEntryRef};
use crate::error::SearchError;
use crate::failpoints;

/// The file name of the ledger.
pub(super) const NAME: &str = "ledger.redb";

/// The page cache of the database. Rows are read in order or by the batch, so a small one is enough.
const CACHE_BYTES: usize = 8 * 1024 * 1024;

/// The source and the content hash of a document, keyed by its id.
type LedgerRow = (&'static str, &'static str);

const ROWS: TableDefinition<'_, &str, LedgerRow> = TableDefinition::new("rows");

/// What a pending batch does to each document it names: its new row, or `None` where it is removed.
const PENDING: TableDefinition<'_, &str, Option<LedgerRow>> = TableDefinition::new("coming");

/// The generation of the pending batch, under the key [`GENERATION`].
const STATE: TableDefinition<'_, &str, u64> = TableDefinition::new("state");
const GENERATION: &str = "generation";

/// The ledger of an index. The database is closed after a failure, because only opening it again shows what
/// has reached the disk.
pub(super) struct DocumentLedger {
    path: PathBuf,
    open: Option<OpenLedger>,
}

struct OpenLedger {
    database: Database,
    rows: SetDigest,
    pending: PendingBatch,
}

/// A batch that was recorded, and may or may not be committed. `rows` is the digest of all rows with it
/// applied.
#[derive(Clone, Copy, Default)]
struct PendingBatch {
    generation: Generation,
    rows: SetDigest,
}

impl DocumentLedger {
    /// Opens the ledger in `dir`, or creates an empty one. Every row is read and verified, so that damage is
    /// found here and not later.
    pub(super) fn open(dir: &Path) -> Result<Self, SearchError> {
        let path = dir.join(NAME);
        let open = Some(OpenLedger::at(&path)?);
        Ok(Self { path, open })
    }

    /// Records `changes` write-ahead, as the pending batch that the commit of generation `next` will confirm,
    /// and returns the digest of the rows there will be. `present` is the generation that is committed now.
    pub(super) fn record_pending(
        &mut self,
        changes: &[DocumentChange],
        present: Generation,
        next: Generation,
    ) -> Result<SetDigest, SearchError> {
        let path = self.path.clone();
        failpoints::pass("ledger").map_err(|source| SearchError::io(&path, source))?;
        let mut open = self.take()?;
        let digest = open
            .record_pending(changes, present, next)
            .map_err(|error| map_redb_error(&path, error))?;
        self.open = Some(open);
        failpoints::pass("ledger-written").map_err(|source| SearchError::io(&path, source))?;
        Ok(digest)
    }

    /// Visits the documents of the generation `present`, in no particular order.
    pub(super) fn visit_inventory(
        &mut self,
        present: Generation,
        each: &mut dyn FnMut(InventoryEntryRef<'_>),
    ) -> Result<(), SearchError> {
        let open = self.take()?;
        open.visit_inventory(present, each)
            .map_err(|error| map_redb_error(&self.path, error))?;
        self.open = Some(open);
        Ok(())
    }

    /// The digest of the documents of the generation `present`.
    pub(super) fn digest_at(&mut self, present: Generation) -> Result<SetDigest, SearchError> {
        let open = self.take()?;
        let digest = open.digest_at(present);
        self.open = Some(open);
        Ok(digest)
    }

    /// Replaces all rows by the documents of the generation `present`.
    pub(super) fn replace(
        &mut self,
        entries: &[InventoryEntry],
        present: Generation,
    ) -> Result<(), SearchError> {
        let path = self.path.clone();
        let mut open = self.take()?;
        open.replace(entries, present)
            .map_err(|error| map_redb_error(&path, error))?;
        self.open = Some(open);
        Ok(())
    }

    /// Takes the open database, or opens it again after a failure. The caller puts it back on success.
    fn take(&mut self) -> Result<OpenLedger, SearchError> {
        match self.open.take() {
            Some(open) => Ok(open),
            None => OpenLedger::at(&self.path),
        }
    }
}

impl OpenLedger {
    fn at(path: &Path) -> Result<Self, SearchError> {
        // Corrupt data can make its reader do anything, panic included.
        catch_unwind(AssertUnwindSafe(|| Self::read(path)))
            .unwrap_or_else(|_| Err(redb::Error::Corrupted("the file is unreadable".to_owned())))
            .map_err(|error| map_redb_error(path, error))
    }

    fn read(path: &Path) -> Result<Self, redb::Error> {
        let mut database = Database::builder()
            .set_cache_size(CACHE_BYTES)
            .create(path)?;
        if !database.check_integrity()? {
            return Err(redb::Error::Corrupted("checksum mismatch".to_owned()));
        }
        make_tables(&database)?;
        let transaction = database.begin_read()?;
        let table = transaction.open_table(ROWS)?;
        let mut rows = SetDigest::default();
        for row in table.iter()? {
            let (id, row) = row?;
            rows.add(id.value(), row.value());
        }
        let generation = transaction.open_table(STATE)?.get(GENERATION)?;
        let generation = generation.map_or(0, |number| number.value());
        let mut pending = PendingBatch {
            generation: Generation(generation),
            rows,
        };
        for change in transaction.open_table(PENDING)?.iter()? {
            let (id, row) = change?;
            pending.rows.change(&table, id.value(), row.value())?;
        }
        Ok(Self {
            database,
            rows,
            pending,
        })
    }

    fn digest_at(&self, present: Generation) -> SetDigest {
        if self.is_confirmed(present) {
            self.pending.rows
        } else {
            self.rows
        }
    }

    fn is_confirmed(&self, present: Generation) -> bool {
        self.pending.generation == present
    }

    fn record_pending(
        &mut self,
        changes: &[DocumentChange],
        present: Generation,
        next: Generation,
    ) -> Result<SetDigest, redb::Error> {
        let transaction = self.database.begin_write()?;
        let rows = self.digest_at(present);
        let mut after = rows;
        {
            let mut table = transaction.open_table(ROWS)?;
            if self.is_confirmed(present) {
                apply_pending(&transaction, &mut table)?;
            }
            transaction.delete_table(PENDING)?;
            let mut pending = transaction.open_table(PENDING)?;
            for (id, row) in outcomes(changes) {
                after.change(&table, id, row)?;
                pending.insert(id, row)?;
            }
        }
        transaction.open_table(STATE)?.insert(GENERATION, next.0)?;
        transaction.commit()?;
        self.rows = rows;
        self.pending = PendingBatch {
            generation: next,
            rows: after,
        };
        Ok(after)
    }

    fn replace(
        &mut self,
        entries: &[InventoryEntry],
        present: Generation,
    ) -> Result<(), redb::Error> {
        let transaction = self.database.begin_write()?;
        transaction.delete_table(ROWS)?;
        transaction.delete_table(PENDING)?;
        let mut rows = SetDigest::default();
        {
            let mut table = transaction.open_table(ROWS)?;
            for one in entries {
                let row = (one.source.as_str(), one.hash.as_str());
                rows.change(&table, one.id.as_str(), Some(row))?;
                table.insert(one.id.as_str(), row)?;
            }
            transaction.open_table(PENDING)?;
        }
        let mut state = transaction.open_table(STATE)?;
        state.insert(GENERATION, present.0)?;
        drop(state);
        transaction.commit()?;
        self.rows = rows;
        self.pending = PendingBatch {
            generation: present,
            rows,
        };
        Ok(())
    }

    fn visit_inventory(
        &self,
        present: Generation,
        each: &mut dyn FnMut(InventoryEntryRef<'_>),
    ) -> Result<(), redb::Error> {
        let transaction = self.database.begin_read()?;
        let pending = transaction.open_table(PENDING)?;
        let is_confirmed = self.is_confirmed(present);
        let rows = transaction.open_table(ROWS)?;
        for row in rows.iter()? {
            let (id, row) = row?;
            if !is_confirmed || pending.get(id.value())?.is_none() {
                each(inventory_entry(id.value(), row.value()));
            }
        }
        if is_confirmed {
            for change in pending.iter()? {
                let (id, row) = change?;
                if let Some(row) = row.value() {
                    each(inventory_entry(id.value(), row));
                }
            }
        }
        Ok(())
    }
}

fn inventory_entry<'h>(id: &'h str, (source, hash): (&'h str, &'h str)) -> InventoryEntryRef<'h> {
    InventoryEntryRef { id, source, hash }
}

/// Creates the tables of a new ledger. Writing costs a disk flush, so it happens once.
fn make_tables(database: &Database) -> Result<(), redb::Error> {
    if database.begin_read()?.list_tables()?.next().is_some() {
        return Ok(());
    }
    let transaction = database.begin_write()?;
    transaction.open_table(ROWS)?;
    transaction.open_table(PENDING)?;
    transaction.open_table(STATE)?;
    transaction.commit()?;
    Ok(())
}

/// Merges the confirmed batch into the rows.
fn apply_pending(
    transaction: &WriteTransaction,
    rows: &mut Table<'_, &'static str, LedgerRow>,
) -> Result<(), redb::Error> {
    let pending = transaction.open_table(PENDING)?;
    for change in pending.iter()? {
        let (id, row) = change?;
        match row.value() {
            Some(row) => rows.insert(id.value(), row)?,
            None => rows.remove(id.value())?,
        };
    }
    Ok(())
}

/// The outcome of a batch for each document it names: the last change wins.
fn outcomes(changes: &[DocumentChange]) -> BTreeMap<&str, Option<(&str, &str)>> {
    changes.iter().map(outcome).collect()
}

fn outcome(change: &DocumentChange) -> (&str, Option<(&str, &str)>) {
    match change {
        DocumentChange::Put(document) => {
            let row = (document.source.as_str(), document.hash.as_str());
            (document.id.as_str(), Some(row))
        }
        DocumentChange::Remove(id) => (id.as_str(), None),
    }
}

impl SetDigest {
    /// Adds a row to the digest, removes it, or replaces one by another.
    fn change(
        &mut self,
        rows: &impl ReadableTable<&'static str, LedgerRow>,
        id: &str,
        row: Option<(&str, &str)>,
    ) -> Result<(), redb::Error> {
        if let Some(before) = rows.get(id)? {
            self.remove(id, before.value());
        }
        if let Some(row) = row {
            self.add(id, row);
        }
        Ok(())
    }
}

fn map_redb_error(path: &Path, error: impl Into<redb::Error>) -> SearchError {
    let dir = path.parent().unwrap_or(path);
    match error.into() {
        redb::Error::Io(source) => match source.kind() {
            // The file ends before its content does.
            std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::InvalidData => {
                SearchError::corrupt(dir, format!("`{NAME}`: {source}"))
            }
            _ => SearchError::io(path, source),
        },
        redb::Error::DatabaseAlreadyOpen => SearchError::Locked {
            path: dir.to_owned(),
        },
        error @ (redb::Error::Corrupted(_)
        | redb::Error::UpgradeRequired(_)
        | redb::Error::TableTypeMismatch { .. }
        | redb::Error::TypeDefinitionChanged { .. }
        | redb::Error::RepairAborted) => SearchError::corrupt(dir, format!("`{NAME}`: {error}")),
        other => SearchError::engine(other),
    }
}
