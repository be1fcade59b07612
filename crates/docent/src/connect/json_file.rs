//! Format-preserving edits of JSON configuration files: order, whitespace and comments are kept.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use serde_json::Value;

use super::config_location::ConfigFileFormat;
use super::server_entry::{EntryPath, ServerEntry};

/// Why a file cannot be edited, worded to complete a sentence that begins with the file's name.
pub(super) type UneditableReason = String;

/// Parses the whole file into a value.
pub(super) fn value(text: &str, form: ConfigFileFormat) -> Result<Value, UneditableReason> {
    if form == ConfigFileFormat::Json {
        // The client's parser is strict, so a file that it rejects must not be edited as if it were valid.
        let parsed = serde_json::from_str(text);
        return parsed.map_err(|error| format!("is not valid JSON: {error}"));
    }
    let root = parse(text, form)?;
    Ok(root.to_serde_value().unwrap_or(Value::Null))
}

/// Inserts an entry into a section of the text, or merges it into the entry of the same name.
pub(super) fn put(
    text: &str,
    form: ConfigFileFormat,
    at: EntryPath<'_>,
    entry: &ServerEntry,
) -> Result<String, UneditableReason> {
    let root = parse(text, form)?;
    let EntryPath { section, name } = at;
    let top = root.object_value().ok_or("does not hold a JSON object")?;
    let wrong = || format!("has a `{section}` that is not an object");
    let servers = top.object_value_or_create(section).ok_or_else(wrong)?;
    match servers.get(name).and_then(|prop| prop.object_value()) {
        Some(existing) => merge(&existing, entry),
        None => {
            if let Some(invalid) = servers.get(name) {
                invalid.remove();
            }
            servers.append(name, input(&entry.to_value()));
        }
    }
    Ok(root.to_string())
}

/// Removes the entry of this name from the text.
pub(super) fn take(
    text: &str,
    form: ConfigFileFormat,
    at: EntryPath<'_>,
) -> Result<String, UneditableReason> {
    let root = parse(text, form)?;
    let servers = root
        .object_value()
        .and_then(|top| top.object_value(at.section));
    if let Some(existing) = servers.and_then(|servers| servers.get(at.name)) {
        existing.remove();
    }
    Ok(root.to_string())
}

fn merge(existing: &CstObject, entry: &ServerEntry) {
    for key in entry.dropped() {
        if let Some(old) = existing.get(key) {
            old.remove();
        }
    }
    for (key, value) in &entry.set {
        match existing.get(key) {
            Some(old) if old.to_serde_value().as_ref() == Some(value) => {}
            Some(old) => old.set_value(input(value)),
            None => {
                existing.append(key, input(value));
            }
        }
    }
}

fn parse(text: &str, form: ConfigFileFormat) -> Result<CstRootNode, UneditableReason> {
    let options = ParseOptions {
        allow_comments: form != ConfigFileFormat::Json,
        allow_trailing_commas: form == ConfigFileFormat::Jsonc,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    CstRootNode::parse(text, &options).map_err(|error| format!("is not valid JSON: {error}"))
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(on) => CstInputValue::Bool(*on),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(members) => {
            let members = members
                .iter()
                .map(|(key, value)| (key.clone(), input(value)));
            CstInputValue::Object(members.collect())
        }
    }
}
