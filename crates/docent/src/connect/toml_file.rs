//! Format-preserving edits of TOML configuration files: order, whitespace and comments are kept.

use serde_json::Value;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike};

use super::json_file::UneditableReason;
use super::server_entry::{EntryPath, ServerEntry};

/// Parses the whole file into a JSON value, with dates as text.
pub(super) fn value(text: &str) -> Result<Value, UneditableReason> {
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().and_then(|span| text.get(..span.start));
        let line = line.map_or(1, |before| before.matches('\n').count() + 1);
        format!("is not valid TOML at line {line}: {}", error.message())
    })?;
    serde_json::to_value(table).map_err(|error| format!("cannot be read: {error}"))
}

/// Inserts an entry into a section of the text, or merges it into the entry of the same name.
pub(super) fn put(
    text: &str,
    at: EntryPath<'_>,
    entry: &ServerEntry,
) -> Result<String, UneditableReason> {
    let mut document = parse(text)?;
    let EntryPath { section, name } = at;
    let servers = document.entry(section).or_insert_with(|| {
        // The section itself needs no header of its own above `[mcp_servers.name]`.
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    let wrong = || format!("has a `{section}` that is not a table");
    let servers = servers.as_table_like_mut().ok_or_else(wrong)?;
    if servers
        .get(name)
        .is_none_or(|existing| !existing.is_table_like())
    {
        servers.insert(name, Item::Table(Table::new()));
    }
    let existing = servers.get_mut(name).and_then(Item::as_table_like_mut);
    merge(existing.ok_or_else(wrong)?, entry);
    Ok(document.to_string())
}

/// Removes the entry of this name from the text.
pub(super) fn take(text: &str, at: EntryPath<'_>) -> Result<String, UneditableReason> {
    let mut document = parse(text)?;
    let servers = document
        .get_mut(at.section)
        .and_then(Item::as_table_like_mut);
    if let Some(servers) = servers {
        servers.remove(at.name);
    }
    Ok(document.to_string())
}

fn parse(text: &str) -> Result<DocumentMut, UneditableReason> {
    text.parse()
        .map_err(|error: toml_edit::TomlError| format!("is not valid TOML: {}", error.message()))
}

fn merge(existing: &mut dyn TableLike, entry: &ServerEntry) {
    for key in entry.dropped() {
        existing.remove(key);
    }
    for (key, value) in &entry.set {
        let Some(mut new_value) = input(value) else {
            continue;
        };
        match existing.get_mut(key).and_then(Item::as_value_mut) {
            Some(old) => {
                // Keeps the whitespace and comments around the old value.
                *new_value.decor_mut() = old.decor().clone();
                *old = new_value;
            }
            None => {
                existing.insert(key, Item::Value(new_value));
            }
        }
    }
}

/// Converts a JSON value to TOML; `None` for null, which TOML does not have.
fn input(value: &Value) -> Option<toml_edit::Value> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(on) => (*on).into(),
        Value::Number(number) => number
            .as_i64()
            .map(Into::into)
            .or_else(|| number.as_f64().map(Into::into))?,
        Value::String(text) => text.clone().into(),
        Value::Array(items) => {
            toml_edit::Value::Array(items.iter().filter_map(input).collect::<Array>())
        }
        Value::Object(members) => {
            let members = members
                .iter()
                .filter_map(|(key, value)| Some((key.as_str(), input(value)?)));
            toml_edit::Value::InlineTable(members.collect::<InlineTable>())
        }
    })
}
