//! Parser for `[fields]` of `docent.toml`: one rule per table, each validated.

use docent_ingest::clean_line;
use docent_search::{DocumentValue, FieldKind};

use super::setting_value::{InvalidSetting, SettingValue};
use crate::display_text::shorten;
use crate::document_transform::value_cast::{KINDS, cast};
use crate::document_transform::{DATE, Pattern, Rule, TITLE, URL};

/// Name of the section in the file.
pub(super) const SECTION: &str = "fields";

const MAX_RULES: usize = 256;

/// Maximum length of a field name; the same limit applies to names in the files.
const MAX_NAME_CHARS: usize = 128;

/// Maximum length of a constant, and of a path pattern.
const MAX_VALUE_CHARS: usize = 1_000;

/// Reserved names: parts of a document that are not fields.
const FIXED: [&str; 2] = ["id", "text"];

/// Known keys of a rule.
const KEYS: [&str; 6] = ["from", "type", "hide", "path", "value", "under"];

/// An invalid value, with the key under which it is in the file.
type FieldSettingError = (String, InvalidSetting);

/// Parses all rules of the section.
pub(super) fn read(section: toml::Value) -> Result<Vec<Rule>, FieldSettingError> {
    let toml::Value::Table(table) = section else {
        let hint = "write a table for each field: `[fields.author]`";
        return Err(field_error(
            SECTION,
            &SettingValue::Toml(section),
            "is not a table",
            hint,
        ));
    };
    if table.len() > MAX_RULES {
        let shown = SettingValue::Text(table.len().to_string());
        let what = format!("has more than {MAX_RULES} tables");
        return Err(field_error(SECTION, &shown, &what, "name fewer fields"));
    }
    table
        .into_iter()
        .map(|(name, value)| rule(&name, value))
        .collect()
}

fn field_error(key: &str, given: &SettingValue, what: &str, hint: &str) -> FieldSettingError {
    (key.to_owned(), given.invalid(what, hint))
}

fn rule(name: &str, value: toml::Value) -> Result<Rule, FieldSettingError> {
    let key = format!("{SECTION}.{}", shorten(name, MAX_NAME_CHARS));
    let long = name.chars().nth(MAX_NAME_CHARS).is_some();
    if name.is_empty() || long || clean_line(name) != name {
        let shown = SettingValue::Text(name.to_owned());
        let hint = format!("a name has 1 to {MAX_NAME_CHARS} visible characters on one line");
        return Err(field_error(
            SECTION,
            &shown,
            "has an invalid field name",
            &hint,
        ));
    }
    if FIXED.contains(&name) {
        let shown = SettingValue::Text(name.to_owned());
        let hint = "`id` and `text` are not fields; set them in the files themselves";
        return Err(field_error(SECTION, &shown, "has a reserved name", hint));
    }
    let toml::Value::Table(table) = value else {
        let hint = "write a table, such as `{ from = \"Author Name\" }`";
        return Err(field_error(
            &key,
            &SettingValue::Toml(value),
            "is not a table",
            hint,
        ));
    };
    let mut rule = Rule::of(name);
    let mut given: Vec<_> = table.into_iter().collect();
    // The type first, because constants are converted to it.
    given.sort_by_key(|(what, _)| what != "type");
    for (what, value) in given {
        let value = SettingValue::Toml(value);
        if !KEYS.contains(&what.as_str()) {
            let hint = format!(
                "known are `{}`; a name with a point is written in quotes: `[fields.\"a.b\"]`",
                KEYS.join("`, `")
            );
            return Err(field_error(
                &key,
                &SettingValue::Text(what),
                "has no setting",
                &hint,
            ));
        }
        set(&mut rule, &what, &value).map_err(|wrong| (format!("{key}.{what}"), wrong))?;
    }
    consistent(&rule).map_err(|(what, hint)| {
        field_error(&key, &SettingValue::Text(name.to_owned()), what, hint)
    })?;
    Ok(rule)
}

fn set(rule: &mut Rule, what: &str, given: &SettingValue) -> Result<(), InvalidSetting> {
    match what {
        "from" => rule.from = names(given)?,
        "type" => rule.kind = Some(given.choice(&KINDS)?),
        "hide" => rule.hide = given.boolean()?,
        "path" => {
            let text = given.line(MAX_VALUE_CHARS)?;
            let pattern = Pattern::parse(&text, &rule.name);
            let wrong = |hint| given.invalid("is not a pattern of paths", hint);
            rule.path = Some(pattern.map_err(wrong)?);
        }
        "value" => rule.value = Some(constant(given, rule.kind)?),
        _ => rule.under = Some(folder(given)?),
    }
    Ok(())
}

/// Parses one source name, or a list of which the first name that exists is used.
fn names(given: &SettingValue) -> Result<Vec<String>, InvalidSetting> {
    let names = match given {
        SettingValue::Toml(toml::Value::Array(_)) => given.list()?,
        _ => vec![given.line(MAX_NAME_CHARS)?],
    };
    if names.is_empty() {
        return Err(given.invalid("names no field", "write a name, or a list of names"));
    }
    Ok(names)
}

fn constant(
    given: &SettingValue,
    kind: Option<FieldKind>,
) -> Result<DocumentValue, InvalidSetting> {
    let SettingValue::Toml(value) = given else {
        return Err(given.invalid("is not a value", "write a text in quotes"));
    };
    let value = match value {
        toml::Value::Integer(number) => DocumentValue::Number(*number as f64),
        toml::Value::Float(number) if number.is_finite() => DocumentValue::Number(*number),
        toml::Value::Boolean(flag) => DocumentValue::Bool(*flag),
        toml::Value::Datetime(day) => DocumentValue::Text(day.to_string()),
        toml::Value::Array(_) => DocumentValue::List(given.list()?),
        _ => DocumentValue::Text(given.line(MAX_VALUE_CHARS)?),
    };
    // Without a type, the type of a constant is inferred from its value, as it is for values in files.
    let dated =
        || cast(FieldKind::Date, &value).filter(|_| matches!(value, DocumentValue::Text(_)));
    match kind {
        Some(kind) => cast(kind, &value).ok_or_else(|| {
            given.invalid("is not of the field's type", "change the value or the type")
        }),
        None => Ok(dated().unwrap_or_else(|| value.clone())),
    }
}

/// Parses a subfolder of the documents folder. Paths that could leave it are rejected.
fn folder(given: &SettingValue) -> Result<String, InvalidSetting> {
    let text = given.line(MAX_VALUE_CHARS)?;
    let path = text.strip_prefix("./").unwrap_or(&text);
    let path = path.trim_end_matches('/');
    let leaves = path.is_empty() || path.split('/').any(|part| matches!(part, "" | "." | ".."));
    if leaves {
        return Err(given.invalid("is not a path inside the folder", "example: `minutes/2024`"));
    }
    Ok(path.to_owned())
}

/// Rejects rules that contradict themselves.
fn consistent(rule: &Rule) -> Result<(), (&'static str, &'static str)> {
    let makes = !rule.from.is_empty() || rule.path.is_some() || rule.value.is_some();
    if rule.hide && (makes || rule.kind.is_some()) {
        let hint = "remove `hide`, or all other keys except `under`";
        return Err(("both hides and defines a field", hint));
    }
    if rule.hide && rule.name == TITLE {
        return Err(("hides a required field", "choose another title with `from`"));
    }
    let fixed = match rule.name.as_str() {
        DATE => Some(FieldKind::Date),
        TITLE | URL => Some(FieldKind::Text),
        _ => None,
    };
    if fixed.is_some_and(|fixed| rule.kind.is_some_and(|kind| kind != fixed)) {
        return Err(("has a fixed type", "remove `type`"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(toml: &str) -> Result<Vec<Rule>, String> {
        let table: toml::Table = toml.parse().unwrap();
        let section = table.get(SECTION).unwrap().clone();
        read(section).map_err(|(key, wrong)| format!("`{key}` {}: `{}`", wrong.what, wrong.shown))
    }

    fn one(toml: &str) -> Rule {
        of(toml).unwrap().remove(0)
    }

    #[test]
    fn rules_are_read() {
        let rule = one("[fields.author]\nfrom = \"Author Name\"\ntype = \"keyword\"");
        assert_eq!(rule.from, ["Author Name"]);
        assert_eq!(rule.kind, Some(FieldKind::Keyword));
        let rule = one("[fields]\n\"a.b\" = { from = [\"x\", \"y\"], under = \"./m/2024/\" }");
        assert_eq!((rule.name.as_str(), rule.from.len()), ("a.b", 2));
        assert_eq!(rule.under.as_deref(), Some("m/2024"));
        assert!(one("[fields.secret]\nhide = true").hide);
        assert!(
            one("[fields.year]\npath = \"{year}/\"\ntype = \"number\"")
                .path
                .is_some()
        );
    }

    #[test]
    fn constants_are_typed() {
        let value = |rest: &str| one(&format!("[fields.x]\nvalue = {rest}")).value.unwrap();
        for (rest, expect) in [
            ("\"a\"", DocumentValue::Text("a".into())),
            ("3", DocumentValue::Number(3.0)),
            ("0.5", DocumentValue::Number(0.5)),
            ("true", DocumentValue::Bool(true)),
            ("2024-03-12", DocumentValue::Date("2024-03-12".into())),
            ("\"2024-03-12\"", DocumentValue::Date("2024-03-12".into())),
            (
                "\"2024-03-12\"\ntype = \"text\"",
                DocumentValue::Text("2024-03-12".into()),
            ),
            ("\"7\"\ntype = \"number\"", DocumentValue::Number(7.0)),
            (
                "[\"a\", \"b\"]",
                DocumentValue::List(vec!["a".into(), "b".into()]),
            ),
        ] {
            assert_eq!(value(rest), expect, "{rest}");
        }
    }

    #[test]
    fn errors_name_the_setting() {
        for (toml, expect) in [
            ("fields = 3", "`fields` is not a table: `3`"),
            ("[fields]\na = 3", "`fields.a` is not a table: `3`"),
            (
                "[fields.a.b]\nhide = true",
                "`fields.a` has no setting: `b`",
            ),
            ("[fields.a]\ntyp = 1", "`fields.a` has no setting: `typ`"),
            (
                "[fields.text]\nhide = true",
                "`fields` has a reserved name: `text`",
            ),
            (
                "[fields.title]\nhide = true",
                "`fields.title` hides a required field: `title`",
            ),
            (
                "[fields.date]\ntype = \"text\"",
                "`fields.date` has a fixed type: `date`",
            ),
            (
                "[fields.a]\nfrom = 3",
                "`fields.a.from` is not a line of 1 to 128 characters: `3`",
            ),
            (
                "[fields.a]\nfrom = []",
                "`fields.a.from` names no field: `[]`",
            ),
            (
                "[fields.a]\nhide = true\nvalue = 1",
                "`fields.a` both hides and defines a field: `a`",
            ),
            (
                "[fields.a]\npath = \"{b}/\"",
                "`fields.a.path` is not a pattern of paths: `{b}/`",
            ),
            (
                "[fields.a]\nunder = \"../b\"",
                "`fields.a.under` is not a path inside the folder: `../b`",
            ),
            (
                "[fields.a]\nvalue = \"x\"\ntype = \"date\"",
                "`fields.a.value` is not of the field's type: `x`",
            ),
            (
                "[fields.a]\ntype = \"day\"",
                "`fields.a.type` is not one of `text`, `keyword`, `list`, `number`, `date`, `boolean`: `day`",
            ),
            (
                "[fields.\"a\\nb\"]",
                "`fields` has an invalid field name: `a\u{FFFD}b`",
            ),
        ] {
            assert_eq!(of(toml).unwrap_err(), expect, "{toml}");
        }
    }

    #[test]
    fn rules_and_names_end_at_their_bounds() {
        let rules = |count: usize| {
            let tables = (0..count).map(|n| format!("[fields.f{n}]\nhide = true\n"));
            of(&tables.collect::<String>())
        };
        assert_eq!(rules(MAX_RULES).unwrap().len(), MAX_RULES);
        assert!(rules(MAX_RULES + 1).is_err());
        let named = |chars: usize| of(&format!("[fields.{}]", "x".repeat(chars)));
        assert!(named(MAX_NAME_CHARS).is_ok());
        assert!(named(MAX_NAME_CHARS + 1).is_err());
    }
}
