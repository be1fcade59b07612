//! Reads the schema of a SQLite database: tables, typed columns and row keys.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Result};
use serde_json::{Map, Value as Raw};

use crate::dates::{self, DateOrder, from_epoch_millis};
use crate::records::column_types::put_date_and_time;
use crate::records::sheet::as_number;

/// The most tables of one database that are read. One more is listed, so that an excess is noticed.
pub(super) const MOST_TABLES: usize = 1_000;

/// A table or view, with the key that identifies its rows.
#[derive(Debug)]
pub(super) struct SqliteTable {
    pub name: String,
    pub columns: Vec<SqliteColumn>,
    pub key: RowKey,
}

#[derive(Debug)]
pub(super) enum RowKey {
    /// The columns of the primary key.
    Columns(Vec<String>),
    /// The rowid that SQLite assigns to every row, under whichever of its names is not taken by a column.
    RowId(&'static str),
    /// The row's position, where there is nothing better.
    Position,
}

#[derive(Debug)]
pub(super) struct SqliteColumn {
    pub name: String,
    pub kind: DeclaredType,
}

/// What a column's declared type adds to the stored value: booleans and dates are stored as numbers or
/// text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeclaredType {
    Plain,
    Bool,
    Moment,
}

impl DeclaredType {
    pub(super) fn from_declaration(declared: &str) -> Self {
        let declared = declared.to_ascii_uppercase();
        if declared.contains("BOOL") {
            Self::Bool
        } else if declared.contains("DATE") || declared.contains("TIMESTAMP") {
            Self::Moment
        } else {
            Self::Plain
        }
    }
}

/// All ordinary tables, or only the table or view of the given name.
pub(super) fn tables(connection: &Connection, only: Option<&str>) -> Result<Vec<SqliteTable>> {
    let mut statement = connection.prepare(
        "SELECT name, type, wr FROM pragma_table_list \
         WHERE schema = 'main' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name",
    )?;
    let rows = statement.query_map([], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get::<_, bool>(2)?))
    })?;
    let mut tables = Vec::new();
    for row in rows {
        let (name, kind, without_rowid): (String, String, bool) = row?;
        let wanted = match only {
            Some(only) => only.eq_ignore_ascii_case(&name) && (kind == "table" || kind == "view"),
            None => kind == "table",
        };
        if wanted && tables.len() <= MOST_TABLES {
            let described = describe(connection, &name, without_rowid || kind == "view");
            // A table whose description fails is reported when it is read, and does not affect other
            // tables.
            let (columns, key) = described.unwrap_or((Vec::new(), RowKey::Position));
            tables.push(SqliteTable { name, columns, key });
        }
    }
    Ok(tables)
}

fn describe(
    connection: &Connection,
    name: &str,
    without_rowid: bool,
) -> Result<(Vec<SqliteColumn>, RowKey)> {
    let mut statement =
        connection.prepare("SELECT name, type, pk, hidden FROM pragma_table_xinfo(?1)")?;
    let mut rows = statement.query([name])?;
    let mut columns = Vec::new();
    let mut keys = Vec::new();
    while let Some(row) = rows.next()? {
        let (column, declared): (String, String) = (row.get(0)?, row.get(1)?);
        let (at, hidden): (i64, i64) = (row.get(2)?, row.get(3)?);
        // Hidden columns belong to virtual tables. Generated columns (2 and 3) are read like all others.
        if hidden == 1 {
            continue;
        }
        if at > 0 {
            keys.push((at, column.clone()));
        }
        columns.push(SqliteColumn {
            name: column,
            kind: DeclaredType::from_declaration(&declared),
        });
    }
    keys.sort();
    let is_taken = |name: &&&str| {
        columns
            .iter()
            .any(|column: &SqliteColumn| column.name.eq_ignore_ascii_case(name))
    };
    let free = ["rowid", "_rowid_", "oid"]
        .iter()
        .find(|name| !is_taken(name));
    let key = match (keys.is_empty(), free) {
        (false, _) => RowKey::Columns(keys.into_iter().map(|(_, name)| name).collect()),
        (true, Some(name)) if !without_rowid => RowKey::RowId(name),
        _ => RowKey::Position,
    };
    Ok((columns, key))
}

impl SqliteTable {
    /// The `SELECT` for all columns, followed by the columns of the row key.
    pub(super) fn select(&self) -> String {
        let mut names: Vec<String> = self
            .columns
            .iter()
            .map(|column| quoted(&column.name))
            .collect();
        match &self.key {
            RowKey::Columns(keys) => names.extend(keys.iter().map(|key| quoted(key))),
            RowKey::RowId(name) => names.push((*name).to_owned()),
            RowKey::Position => {}
        }
        format!("SELECT {} FROM {}", names.join(", "), quoted(&self.name))
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The value for the reader field: text stays text, null stays null, and any other type becomes a value
/// that is malformed there.
pub(super) fn reader_value(value: ValueRef<'_>) -> Raw {
    match value {
        ValueRef::Null => Raw::Null,
        ValueRef::Text(text) => Raw::String(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Blob(_) => Raw::Bool(false),
    }
}

impl SqliteColumn {
    pub(super) fn put(&self, value: ValueRef<'_>, keys: &mut Map<String, Raw>) {
        let raw = match (self.kind, value) {
            (_, ValueRef::Null | ValueRef::Blob(_)) => return,
            (DeclaredType::Bool, ValueRef::Integer(flag @ (0 | 1))) => Raw::Bool(flag == 1),
            (DeclaredType::Moment, ValueRef::Integer(number)) => {
                match date_from_unix_time(number) {
                    Some(moment) => return put_date_and_time(keys, &self.name, moment),
                    None => number.into(),
                }
            }
            (_, ValueRef::Integer(number)) => number.into(),
            (_, ValueRef::Real(number)) => as_number(number),
            (kind, ValueRef::Text(text)) => {
                let text = String::from_utf8_lossy(text);
                let moment = (kind == DeclaredType::Moment)
                    .then(|| dates::parse_in_order(text.trim(), DateOrder::YearFirst));
                if let Some(moment) = moment.flatten() {
                    return put_date_and_time(keys, &self.name, moment);
                }
                Raw::String(text.into_owned())
            }
        };
        keys.insert(self.name.clone(), raw);
    }
}

/// Interprets an integer as seconds or milliseconds since 1970. Smaller numbers are years or days and are
/// left alone.
fn date_from_unix_time(number: i64) -> Option<dates::DateAndTime> {
    match number.unsigned_abs() {
        100_000_000..20_000_000_000 => from_epoch_millis(number.checked_mul(1_000)?),
        100_000_000_000..20_000_000_000_000 => from_epoch_millis(number),
        _ => None,
    }
}
