//! SQLite parser: one document per row of every ordinary table, or of what the settings select. SQLite
//! itself reads the database from memory and is restricted to reading: no writes, no other files, no
//! extensions, and an interrupt after a number of steps.

mod connection;
mod schema;
mod zotero;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error, ErrorCode, Row, Statement};
use serde_json::{Map, Value as Raw};

use crate::clean::{clean_line, truncate_chars};
use crate::error::IngestError;
use crate::formats::file_format::FileFormat;
use crate::parser::{IdPass, ParsedFile, ParserInput};
use crate::reader_field;
use crate::records::record_ids::{UniqueIds, two_pass};
use crate::records::{RecordCollector, RecordLocation};
use schema::{RowKey, SqliteColumn, SqliteTable};

pub(crate) const FORMAT: FileFormat = FileFormat {
    name: "sqlite",
    kind: "sqlite",
    extensions: &[],
    has_signature: |head| head.starts_with(MAGIC),
    parse,
    stream: None,
    is_trusted: false,
    kind_inside: None,
    packages: &[],
};

const MAGIC: &[u8] = b"SQLite format 3\0";

/// Virtual machine steps allowed for one file; half a million rows of a hundred columns take a tenth of
/// them.
const MOST_STEPS: u64 = 1_000_000_000;

fn parse(input: &ParserInput<'_>) -> Result<ParsedFile, IngestError> {
    two_pass(input, |input| parse_within(input, MOST_STEPS))
}

fn parse_within(input: &ParserInput<'_>, steps: u64) -> Result<ParsedFile, IngestError> {
    let mut connection = connection::open(input.bytes, steps).map_err(|_| damaged("database"))?;
    let options = &input.options.sqlite;
    let mut records = RecordCollector::new(input);
    if let Some(query) = &options.query {
        connection::restrict_to_reads(&mut connection).map_err(|_| damaged("database"))?;
        read_query(&connection, query, input, &mut records)?;
        return records.finish();
    }
    let tables = schema::tables(&connection, options.table.as_deref())
        .map_err(|error| read_error(&error, "list of tables"))?;
    if options.table.is_none() && zotero::is_library(&tables) {
        connection::restrict_to_reads(&mut connection).map_err(|_| damaged("database"))?;
        read_query(&connection, zotero::ITEMS_QUERY, input, &mut records)?;
        return records.finish();
    }
    if let (Some(name), true) = (&options.table, tables.is_empty()) {
        return Err(IngestError::Query {
            why: clean_line(&format!("there is no table `{name}`")),
        });
    }
    connection::restrict_to_reads(&mut connection).map_err(|_| damaged("database"))?;
    for (at, table) in tables.iter().enumerate() {
        if at >= schema::MOST_TABLES {
            let limit = schema::MOST_TABLES as u64;
            records.skip_part(&table.name, IngestError::TooMuchInside { limit });
            break;
        }
        if table.columns.len() > input.limits.max_columns {
            let limit = input.limits.max_columns;
            records.skip_part(&table.name, IngestError::TooManyColumns { limit });
            continue;
        }
        match read_table(&connection, table, input, &mut records) {
            Ok(true) => {}
            Ok(false) => break,
            // The other tables may be intact.
            Err(error) => records.skip_part(&table.name, read_error(&error, "table")),
        }
    }
    records.finish()
}

fn damaged(what: &str) -> IngestError {
    IngestError::Damaged {
        what: format!("the {what} cannot be read").into(),
    }
}

fn read_error(error: &Error, what: &str) -> IngestError {
    if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) {
        return IngestError::Query {
            why: "it takes too many steps".to_owned(),
        };
    }
    damaged(what)
}

/// Reads one table. Returns `false` when no more records are accepted.
fn read_table(
    connection: &Connection,
    table: &SqliteTable,
    input: &ParserInput<'_>,
    records: &mut RecordCollector<'_>,
) -> Result<bool, Error> {
    let mut statement = connection.prepare(&table.select())?;
    // An id scan ends at the first row, so checking the keys would be wasted.
    let has_keys = input.ids != IdPass::Scan && has_unique_keys(&mut statement, table)?;
    let mut rows = statement.query([])?;
    let mut number = 0;
    while let Some(row) = rows.next()? {
        number += 1;
        let key = if has_keys { key_of(row, table) } else { None };
        let location = RecordLocation::Table {
            table: &table.name,
            row: number,
            key: key.as_deref(),
            sole: false,
        };
        if !records.begin(location) {
            return Ok(false);
        }
        add(row, location, &table.columns, input, records);
    }
    Ok(true)
}

/// Whether every row has a key and the keys stay unique as text: `1` may be a number in one row and text in
/// another, and parts of a key may be null.
fn has_unique_keys(statement: &mut Statement<'_>, table: &SqliteTable) -> Result<bool, Error> {
    match table.key {
        RowKey::Position => return Ok(false),
        RowKey::RowId(_) => return Ok(true),
        RowKey::Columns(_) => {}
    }
    let mut unique = UniqueIds::for_table();
    let mut rows = statement.query([])?;
    // A damaged page ends the rows; those before it are read.
    while let Ok(Some(row)) = rows.next() {
        let key = key_of(row, table);
        if key.is_none_or(|key| unique.add(&key).is_err()) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The key of a row within its table: its primary key, or else its rowid.
fn key_of(row: &Row<'_>, table: &SqliteTable) -> Option<String> {
    let values = match &table.key {
        RowKey::Position => return None,
        RowKey::Columns(names) => names.len(),
        RowKey::RowId(_) => 1,
    };
    let mut parts = Vec::new();
    for at in 0..values {
        let part = match row.get_ref(table.columns.len() + at) {
            Ok(ValueRef::Integer(number)) => number.to_string(),
            Ok(ValueRef::Real(number)) => number.to_string(),
            Ok(ValueRef::Text(text)) => String::from_utf8_lossy(text).into_owned(),
            // Nulls and blobs have no text form.
            _ => return None,
        };
        parts.push(part);
    }
    Some(parts.join(","))
}

/// Reads the query from the settings. Each row becomes a record as if it came from a file of its own.
fn read_query(
    connection: &Connection,
    query: &str,
    input: &ParserInput<'_>,
    records: &mut RecordCollector<'_>,
) -> Result<(), IngestError> {
    let refused = |error: Error| {
        let mut why = clean_line(&error.to_string());
        truncate_chars(&mut why, 200);
        match error.sqlite_error_code() {
            Some(ErrorCode::OperationInterrupted) => read_error(&error, "query"),
            Some(ErrorCode::DatabaseCorrupt) => damaged("database"),
            _ => IngestError::Query { why },
        }
    };
    let mut statement = connection.prepare(query).map_err(refused)?;
    let columns = statement_columns(&statement);
    if columns.len() > input.limits.max_columns {
        let limit = input.limits.max_columns;
        return Err(IngestError::TooManyColumns { limit });
    }
    let mut rows = statement.query([]).map_err(refused)?;
    let mut number = 0;
    loop {
        match rows.next() {
            Ok(None) => return Ok(()),
            Ok(Some(row)) => {
                number += 1;
                let location = RecordLocation::Table {
                    table: "query",
                    row: number,
                    key: None,
                    sole: true,
                };
                if !records.begin(location) {
                    return Ok(());
                }
                add(row, location, &columns, input, records);
            }
            Err(error) if number == 0 => return Err(refused(error)),
            Err(error) => {
                records.skip_part("query", refused(error));
                return Ok(());
            }
        }
    }
}

fn statement_columns(statement: &Statement<'_>) -> Vec<SqliteColumn> {
    let column = |column: rusqlite::Column<'_>| SqliteColumn {
        name: column.name().to_owned(),
        kind: schema::DeclaredType::from_declaration(column.decl_type().unwrap_or_default()),
    };
    statement.columns().map(column).collect()
}

fn add(
    row: &Row<'_>,
    location: RecordLocation<'_>,
    columns: &[SqliteColumn],
    input: &ParserInput<'_>,
    records: &mut RecordCollector<'_>,
) {
    let (mut keys, mut readers) = (Map::new(), Map::new());
    let mut left = input.limits.max_line_bytes;
    for (at, column) in columns.iter().enumerate() {
        let value = row.get_ref(at).unwrap_or(ValueRef::Null);
        let bytes = match value {
            ValueRef::Text(text) => text.len(),
            _ => size_of::<f64>(),
        };
        if bytes > left {
            let limit = input.limits.max_line_bytes;
            return records.skip(location, IngestError::LineTooLong { limit });
        }
        left -= bytes;
        if records.reader_keys().covers_key(&column.name) {
            let value = schema::reader_value(value);
            reader_field::insert_keeping_duplicates(&mut readers, &column.name, value);
            continue;
        }
        column.put(value, &mut keys);
    }
    // Blobs become null because they are not text. A row of nothing else counts as empty.
    keys.retain(|_, value| *value != Raw::Null);
    keys.append(&mut readers);
    records.add(location, keys, None);
}

#[cfg(test)]
mod tests;
