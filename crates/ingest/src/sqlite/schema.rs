//! The schema of a database into tables with typed columns.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Result};
use serde_json::{Map, Value as Raw};

use crate::column_types::put_date_and_time;
use crate::dates::{self, DateOrder, from_epoch_millis};
use crate::sheet::as_number;

/// Tables of one database. One more is listed, which says that there are more.
pub(super) const MOST_TABLES: usize = 1_000;

/// One table or view, and how its rows are told apart.
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
    /// The number that SQLite gives every row, by the name under which it can be had.
    RowId(&'static str),
    /// Nothing but the order of the rows.
    Position,
}

#[derive(Debug)]
pub(super) struct SqliteColumn {
    pub name: String,
    pub kind: DeclaredType,
}

/// What a declared type says that the stored value does not.
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

/// The ordinary tables, or the one table or view of that name.
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
            // A table that cannot be described says so when it is read, and costs no other.
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
        // Hidden columns belong to virtual tables; generated ones are like all others.
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
    /// The columns of all rows, and behind them what tells the rows apart.
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

/// Text as text, nothing as nothing, and whatever else as something that is no text.
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

/// A moment that was stored as seconds or milliseconds since 1970. Small numbers are years or days.
fn date_from_unix_time(number: i64) -> Option<dates::DateAndTime> {
    match number.unsigned_abs() {
        100_000_000..20_000_000_000 => from_epoch_millis(number.checked_mul(1_000)?),
        100_000_000_000..20_000_000_000_000 => from_epoch_millis(number),
        _ => None,
    }
}
