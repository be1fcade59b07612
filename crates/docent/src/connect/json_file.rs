//! JSON files of other programs, edited in place: order, spaces and comments stay as they are.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use serde_json::Value;

use super::config_location::ConfigFileFormat;
use super::server_entry::{EntryPath, ServerEntry};

/// Why a file cannot be edited, as the end of a sentence that begins with its name.
pub(super) type UneditableReason = String;

/// The whole file as a value.
pub(super) fn value(text: &str, form: ConfigFileFormat) -> Result<Value, UneditableReason> {
    if form == ConfigFileFormat::Json {
        // The client reads strictly, so what its parser refuses is not ours to repair.
        let parsed = serde_json::from_str(text);
        return parsed.map_err(|error| format!("is not valid JSON: {error}"));
    }
    let root = parse(text, form)?;
    Ok(root.to_serde_value().unwrap_or(Value::Null))
}

/// The text with an entry in a section, in place of one of the same name.
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
        Some(there) => merge(&there, entry),
        None => {
            if let Some(odd) = servers.get(name) {
                odd.remove();
            }
            servers.append(name, input(&entry.to_value()));
        }
    }
    Ok(root.to_string())
}

/// The text without the entry of this name.
pub(super) fn take(
    text: &str,
    form: ConfigFileFormat,
    at: EntryPath<'_>,
) -> Result<String, UneditableReason> {
    let root = parse(text, form)?;
    let servers = root
        .object_value()
        .and_then(|top| top.object_value(at.section));
    if let Some(there) = servers.and_then(|servers| servers.get(at.name)) {
        there.remove();
    }
    Ok(root.to_string())
}

fn merge(there: &CstObject, entry: &ServerEntry) {
    for key in entry.dropped() {
        if let Some(old) = there.get(key) {
            old.remove();
        }
    }
    for (key, value) in &entry.set {
        match there.get(key) {
            Some(old) if old.to_serde_value().as_ref() == Some(value) => {}
            Some(old) => old.set_value(input(value)),
            None => {
                there.append(key, input(value));
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
