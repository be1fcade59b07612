//! Which documents are held: what the words and the vectors are compared with.
//!
//! A batch is written down here first, as what is coming. It counts as held once the commit of its
//! words carries its generation, and then becomes part of the rows together with the next batch. A
//! process that ends in between leaves a batch that either the commit or nothing confirms, so that
//! rows and words always tell the same.

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

/// The file of the ledger.
pub(super) const NAME: &str = "ledger.redb";

/// What of the file is kept in memory. Rows are read in order or by the batch.
const CACHE_BYTES: usize = 8 * 1024 * 1024;

/// A document by its id: its source and its hash.
type LedgerRow = (&'static str, &'static str);

const ROWS: TableDefinition<'_, &str, LedgerRow> = TableDefinition::new("rows");

/// What becomes of documents with the batch that is coming; nothing for those that go.
const COMING: TableDefinition<'_, &str, Option<LedgerRow>> = TableDefinition::new("coming");

/// The generation of the batch that is coming, under [`GENERATION`].
const STATE: TableDefinition<'_, &str, u64> = TableDefinition::new("state");
const GENERATION: &str = "generation";

pub(super) struct DocumentLedger {
    path: PathBuf,
    /// Nothing after a failure: what the disk took can only be found out by opening it again.
    open: Option<OpenLedger>,
}

struct OpenLedger {
    database: Database,
    rows: SetDigest,
    pending: PendingBatch,
}

/// A batch that is written down and perhaps not committed.
#[derive(Clone, Copy, Default)]
struct PendingBatch {
    generation: Generation,
    /// The rows with it.
    rows: SetDigest,
}

impl DocumentLedger {
    /// Opens the ledger in `dir`, or makes an empty one. Every row is read, so that damage is found
    /// here and not later.
    pub(super) fn open(dir: &Path) -> Result<Self, SearchError> {
        let path = dir.join(NAME);
        let open = Some(OpenLedger::at(&path)?);
        Ok(Self { path, open })
    }

    /// Writes down what `changes` make of the rows of the generation `present`, as the batch that
    /// `next` will name, and returns the rows there will be.
    pub(super) fn record_pending(
        &mut self,
        changes: &[DocumentChange],
        present: Generation,
        next: Generation,
    ) -> Result<SetDigest, SearchError> {
        let path = self.path.clone();
        failpoints::pass("ledger").map_err(|source| SearchError::io(&path, source))?;
        let mut open = self.take()?;
        let announced = open
            .record_pending(changes, present, next)
            .map_err(|error| map_redb_error(&path, error))?;
        self.open = Some(open);
        failpoints::pass("ledger-written").map_err(|source| SearchError::io(&path, source))?;
        Ok(announced)
    }

    /// Shows what is held in the generation `present`, in no order.
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

    /// How much is held in the generation `present`.
    pub(super) fn digest_at(&mut self, present: Generation) -> Result<SetDigest, SearchError> {
        let open = self.take()?;
        let tally = open.digest_at(present);
        self.open = Some(open);
        Ok(tally)
    }

    /// Makes these rows all there is in the generation `present`.
    pub(super) fn replace(
        &mut self,
        held: &[InventoryEntry],
        present: Generation,
    ) -> Result<(), SearchError> {
        let path = self.path.clone();
        let mut open = self.take()?;
        open.replace(held, present)
            .map_err(|error| map_redb_error(&path, error))?;
        self.open = Some(open);
        Ok(())
    }

    /// The open ledger, to be put back unless something fails.
    fn take(&mut self) -> Result<OpenLedger, SearchError> {
        match self.open.take() {
            Some(open) => Ok(open),
            None => OpenLedger::at(&self.path),
        }
    }
}

impl OpenLedger {
    fn at(path: &Path) -> Result<Self, SearchError> {
        // A damaged file can lead its reader anywhere, a panic included.
        catch_unwind(AssertUnwindSafe(|| Self::read(path)))
            .unwrap_or_else(|_| Err(redb::Error::Corrupted("it cannot be read".to_owned())))
            .map_err(|error| map_redb_error(path, error))
    }

    fn read(path: &Path) -> Result<Self, redb::Error> {
        let mut database = Database::builder()
            .set_cache_size(CACHE_BYTES)
            .create(path)?;
        if !database.check_integrity()? {
            return Err(redb::Error::Corrupted("a sum does not match".to_owned()));
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
        let mut coming = PendingBatch {
            generation: Generation(generation),
            rows,
        };
        for change in transaction.open_table(COMING)?.iter()? {
            let (id, row) = change?;
            coming.rows.change(&table, id.value(), row.value())?;
        }
        Ok(Self {
            database,
            rows,
            pending: coming,
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
            transaction.delete_table(COMING)?;
            let mut coming = transaction.open_table(COMING)?;
            for (id, row) in outcomes(changes) {
                after.change(&table, id, row)?;
                coming.insert(id, row)?;
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

    fn replace(&mut self, held: &[InventoryEntry], present: Generation) -> Result<(), redb::Error> {
        let transaction = self.database.begin_write()?;
        transaction.delete_table(ROWS)?;
        transaction.delete_table(COMING)?;
        let mut rows = SetDigest::default();
        {
            let mut table = transaction.open_table(ROWS)?;
            for one in held {
                let row = (one.source.as_str(), one.hash.as_str());
                rows.change(&table, one.id.as_str(), Some(row))?;
                table.insert(one.id.as_str(), row)?;
            }
            transaction.open_table(COMING)?;
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
        let coming = transaction.open_table(COMING)?;
        let is_confirmed = self.is_confirmed(present);
        let rows = transaction.open_table(ROWS)?;
        for row in rows.iter()? {
            let (id, row) = row?;
            if !is_confirmed || coming.get(id.value())?.is_none() {
                each(inventory_entry(id.value(), row.value()));
            }
        }
        if is_confirmed {
            for change in coming.iter()? {
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

/// Makes the tables of a ledger that has none. Writing costs a flush of the disk, so it is done once.
fn make_tables(database: &Database) -> Result<(), redb::Error> {
    if database.begin_read()?.list_tables()?.next().is_some() {
        return Ok(());
    }
    let transaction = database.begin_write()?;
    transaction.open_table(ROWS)?;
    transaction.open_table(COMING)?;
    transaction.open_table(STATE)?;
    transaction.commit()?;
    Ok(())
}

/// Makes the batch that was confirmed part of the rows.
fn apply_pending(
    transaction: &WriteTransaction,
    rows: &mut Table<'_, &'static str, LedgerRow>,
) -> Result<(), redb::Error> {
    let coming = transaction.open_table(COMING)?;
    for change in coming.iter()? {
        let (id, row) = change?;
        match row.value() {
            Some(row) => rows.insert(id.value(), row)?,
            None => rows.remove(id.value())?,
        };
    }
    Ok(())
}

/// What becomes of each document that a batch names, the last change of each.
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
    /// Counts a row in, out, or in the place of another.
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
            // A file that ends before it should.
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
