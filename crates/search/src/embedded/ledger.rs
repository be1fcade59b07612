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

use super::tally::Tally;
use crate::engine::{Change, Generation, Held, Holding};
use crate::error::Error;
use crate::faults;

/// The file of the ledger.
pub(super) const NAME: &str = "ledger.redb";

/// What of the file is kept in memory. Rows are read in order or by the batch.
const CACHE_BYTES: usize = 8 * 1024 * 1024;

/// A document by its id: its source and its hash.
type Row = (&'static str, &'static str);

const ROWS: TableDefinition<'_, &str, Row> = TableDefinition::new("rows");

/// What becomes of documents with the batch that is coming; nothing for those that go.
const COMING: TableDefinition<'_, &str, Option<Row>> = TableDefinition::new("coming");

/// The generation of the batch that is coming, under [`GENERATION`].
const STATE: TableDefinition<'_, &str, u64> = TableDefinition::new("state");
const GENERATION: &str = "generation";

pub(super) struct Ledger {
    path: PathBuf,
    /// Nothing after a failure: what the disk took can only be found out by opening it again.
    open: Option<Opened>,
}

struct Opened {
    database: Database,
    rows: Tally,
    pending: Coming,
}

/// A batch that is written down and perhaps not committed.
#[derive(Clone, Copy, Default)]
struct Coming {
    generation: Generation,
    /// The rows with it.
    rows: Tally,
}

impl Ledger {
    /// Opens the ledger in `dir`, or makes an empty one. Every row is read, so that damage is found
    /// here and not later.
    pub(super) fn open(dir: &Path) -> Result<Self, Error> {
        let path = dir.join(NAME);
        let open = Some(Opened::at(&path)?);
        Ok(Self { path, open })
    }

    /// Writes down what `changes` make of the rows of the generation `present`, as the batch that
    /// `next` will name, and returns the rows there will be.
    pub(super) fn record_pending(
        &mut self,
        changes: &[Change],
        present: Generation,
        next: Generation,
    ) -> Result<Tally, Error> {
        let path = self.path.clone();
        faults::pass("ledger").map_err(|source| Error::io(&path, source))?;
        let mut open = self.take()?;
        let announced = open
            .record_pending(changes, present, next)
            .map_err(|error| map_redb_error(&path, error))?;
        self.open = Some(open);
        faults::pass("ledger-written").map_err(|source| Error::io(&path, source))?;
        Ok(announced)
    }

    /// Shows what is held in the generation `present`, in no order.
    pub(super) fn visit_inventory(
        &mut self,
        present: Generation,
        each: &mut dyn FnMut(Holding<'_>),
    ) -> Result<(), Error> {
        let open = self.take()?;
        open.visit_inventory(present, each)
            .map_err(|error| map_redb_error(&self.path, error))?;
        self.open = Some(open);
        Ok(())
    }

    /// How much is held in the generation `present`.
    pub(super) fn digest_at(&mut self, present: Generation) -> Result<Tally, Error> {
        let open = self.take()?;
        let tally = open.digest_at(present);
        self.open = Some(open);
        Ok(tally)
    }

    /// Makes these rows all there is in the generation `present`.
    pub(super) fn replace(&mut self, held: &[Held], present: Generation) -> Result<(), Error> {
        let path = self.path.clone();
        let mut open = self.take()?;
        open.replace(held, present)
            .map_err(|error| map_redb_error(&path, error))?;
        self.open = Some(open);
        Ok(())
    }

    /// The open ledger, to be put back unless something fails.
    fn take(&mut self) -> Result<Opened, Error> {
        match self.open.take() {
            Some(open) => Ok(open),
            None => Opened::at(&self.path),
        }
    }
}

impl Opened {
    fn at(path: &Path) -> Result<Self, Error> {
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
        let mut rows = Tally::default();
        for row in table.iter()? {
            let (id, row) = row?;
            rows.add(id.value(), row.value());
        }
        let generation = transaction.open_table(STATE)?.get(GENERATION)?;
        let generation = generation.map_or(0, |number| number.value());
        let mut coming = Coming {
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

    fn digest_at(&self, present: Generation) -> Tally {
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
        changes: &[Change],
        present: Generation,
        next: Generation,
    ) -> Result<Tally, redb::Error> {
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
        self.pending = Coming {
            generation: next,
            rows: after,
        };
        Ok(after)
    }

    fn replace(&mut self, held: &[Held], present: Generation) -> Result<(), redb::Error> {
        let transaction = self.database.begin_write()?;
        transaction.delete_table(ROWS)?;
        transaction.delete_table(COMING)?;
        let mut rows = Tally::default();
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
        self.pending = Coming {
            generation: present,
            rows,
        };
        Ok(())
    }

    fn visit_inventory(
        &self,
        present: Generation,
        each: &mut dyn FnMut(Holding<'_>),
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

fn inventory_entry<'h>(id: &'h str, (source, hash): (&'h str, &'h str)) -> Holding<'h> {
    Holding { id, source, hash }
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
    rows: &mut Table<'_, &'static str, Row>,
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
fn outcomes(changes: &[Change]) -> BTreeMap<&str, Option<(&str, &str)>> {
    changes.iter().map(outcome).collect()
}

fn outcome(change: &Change) -> (&str, Option<(&str, &str)>) {
    match change {
        Change::Put(document) => {
            let row = (document.source.as_str(), document.hash.as_str());
            (document.id.as_str(), Some(row))
        }
        Change::Remove(id) => (id.as_str(), None),
    }
}

impl Tally {
    /// Counts a row in, out, or in the place of another.
    fn change(
        &mut self,
        rows: &impl ReadableTable<&'static str, Row>,
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

fn map_redb_error(path: &Path, error: impl Into<redb::Error>) -> Error {
    let dir = path.parent().unwrap_or(path);
    match error.into() {
        redb::Error::Io(source) => match source.kind() {
            // A file that ends before it should.
            std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::InvalidData => {
                Error::corrupt(dir, format!("`{NAME}`: {source}"))
            }
            _ => Error::io(path, source),
        },
        redb::Error::DatabaseAlreadyOpen => Error::Locked {
            path: dir.to_owned(),
        },
        error @ (redb::Error::Corrupted(_)
        | redb::Error::UpgradeRequired(_)
        | redb::Error::TableTypeMismatch { .. }
        | redb::Error::TypeDefinitionChanged { .. }
        | redb::Error::RepairAborted) => Error::corrupt(dir, format!("`{NAME}`: {error}")),
        other => Error::engine(other),
    }
}
