//! TOML files of other programs, edited in place: order, spaces and comments stay as they are.

use serde_json::Value;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike};

use super::json_file::UneditableReason;
use super::server_entry::{EntryPath, ServerEntry};

/// The whole file as a value, dates as texts.
pub(super) fn value(text: &str) -> Result<Value, UneditableReason> {
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().and_then(|span| text.get(..span.start));
        let line = line.map_or(1, |before| before.matches('\n').count() + 1);
        format!("is not valid TOML at line {line}: {}", error.message())
    })?;
    serde_json::to_value(table).map_err(|error| format!("cannot be read: {error}"))
}

/// The text with an entry in a section, in place of one of the same name.
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
    if servers.get(name).is_none_or(|there| !there.is_table_like()) {
        servers.insert(name, Item::Table(Table::new()));
    }
    let there = servers.get_mut(name).and_then(Item::as_table_like_mut);
    merge(there.ok_or_else(wrong)?, entry);
    Ok(document.to_string())
}

/// The text without the entry of this name.
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

fn merge(there: &mut dyn TableLike, entry: &ServerEntry) {
    for key in entry.dropped() {
        there.remove(key);
    }
    for (key, value) in &entry.set {
        let Some(mut wanted) = input(value) else {
            continue;
        };
        match there.get_mut(key).and_then(Item::as_value_mut) {
            Some(old) => {
                // What stood around the old value, such as a comment behind it, stands around the new one.
                *wanted.decor_mut() = old.decor().clone();
                *old = wanted;
            }
            None => {
                there.insert(key, Item::Value(wanted));
            }
        }
    }
}

/// A value in TOML, which has no null.
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
