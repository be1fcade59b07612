//! Type conversion of field values: casts a value to a field kind, or fails when it has no such reading.

use docent_ingest::{clean_line, parse_date};
use docent_search::{DocumentValue, FieldKind, MAX_KEYWORD_CHARS};

/// The field kinds with their names in settings and messages.
pub(crate) const KINDS: [(&str, FieldKind); 6] = [
    ("text", FieldKind::Text),
    ("keyword", FieldKind::Keyword),
    ("list", FieldKind::List),
    ("number", FieldKind::Number),
    ("date", FieldKind::Date),
    ("boolean", FieldKind::Bool),
];

/// The name of a field kind in settings and messages.
pub(crate) fn name(kind: FieldKind) -> &'static str {
    let found = KINDS.iter().find(|(_, known)| *known == kind);
    found.map_or("text", |(name, _)| name)
}

/// Casts a value to this kind; `None` when it cannot be converted.
pub(crate) fn cast(kind: FieldKind, value: &DocumentValue) -> Option<DocumentValue> {
    match kind {
        FieldKind::Text => Some(DocumentValue::Text(value.to_string())),
        FieldKind::Keyword => keyword(value),
        FieldKind::List => list(value),
        FieldKind::Number => number(value).map(DocumentValue::Number),
        FieldKind::Date => date(value).map(DocumentValue::Date),
        FieldKind::Bool => flag(value).map(DocumentValue::Bool),
    }
}

/// Casts to a keyword: one line, short enough to be offered as a facet value.
fn keyword(value: &DocumentValue) -> Option<DocumentValue> {
    if let DocumentValue::List(items) = value
        && items.len() != 1
    {
        return None;
    }
    let text = clean_line(&value.to_string());
    let fits = !text.is_empty() && text.chars().count() <= MAX_KEYWORD_CHARS;
    fits.then_some(DocumentValue::Text(text))
}

/// Casts to a list. Text is split at semicolons or bars, or at commas and line breaks when it has neither, so that
/// `a, b; c` keeps its commas.
fn list(value: &DocumentValue) -> Option<DocumentValue> {
    let DocumentValue::Text(text) = value else {
        return Some(match value {
            DocumentValue::List(items) => DocumentValue::List(items.clone()),
            other => DocumentValue::List(vec![other.to_string()]),
        });
    };
    let mark = |c: char| match text.contains([';', '|']) {
        true => matches!(c, ';' | '|'),
        false => matches!(c, ',' | '\n'),
    };
    let items = text.split(mark).map(clean_line);
    let items: Vec<_> = items.filter(|item| !item.is_empty()).collect();
    (!items.is_empty()).then_some(DocumentValue::List(items))
}

fn number(value: &DocumentValue) -> Option<f64> {
    match value {
        DocumentValue::Number(number) => Some(*number),
        DocumentValue::Text(text) => {
            // Rust also parses `inf` and `nan`, which are not numbers in a document.
            let plain = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
            let text = text.trim();
            let found = text.parse().ok().filter(|_| text.chars().all(plain));
            found.filter(|number: &f64| number.is_finite())
        }
        _ => None,
    }
}

fn date(value: &DocumentValue) -> Option<String> {
    match value {
        DocumentValue::Date(text) | DocumentValue::Text(text) => parse_date(text),
        _ => None,
    }
}

fn flag(value: &DocumentValue) -> Option<bool> {
    let text = match value {
        DocumentValue::Bool(flag) => return Some(*flag),
        DocumentValue::Text(text) => text.trim().to_lowercase(),
        DocumentValue::Number(_) => value.to_string(),
        _ => return None,
    };
    match text.as_str() {
        "true" | "yes" | "y" | "on" | "1" => Some(true),
        "false" | "no" | "n" | "off" | "0" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> DocumentValue {
        DocumentValue::Text(text.to_owned())
    }

    fn items(items: &[&str]) -> DocumentValue {
        DocumentValue::List(items.iter().map(|item| (*item).to_owned()).collect())
    }

    #[test]
    fn values_become_what_they_can_be() {
        let day = |day: &str| DocumentValue::Date(day.to_owned());
        for (kind, value, expect) in [
            (
                FieldKind::Number,
                text(" 12.5 "),
                Some(DocumentValue::Number(12.5)),
            ),
            (FieldKind::Number, text("inf"), None),
            (FieldKind::Number, text("1e999"), None),
            (FieldKind::Number, text("12 boats"), None),
            (FieldKind::Number, day("2024-03-12"), None),
            (
                FieldKind::Date,
                text("12 Mar 2024"),
                Some(day("2024-03-12")),
            ),
            (FieldKind::Date, text("12.03.2024"), Some(day("2024-03-12"))),
            (
                FieldKind::Date,
                text("2024-03-12T10:00:00Z"),
                Some(day("2024-03-12")),
            ),
            (FieldKind::Date, text("03/04/2024"), None),
            (FieldKind::Date, DocumentValue::Number(2024.0), None),
            (
                FieldKind::Bool,
                text("Yes"),
                Some(DocumentValue::Bool(true)),
            ),
            (
                FieldKind::Bool,
                DocumentValue::Number(0.0),
                Some(DocumentValue::Bool(false)),
            ),
            (FieldKind::Bool, text("maybe"), None),
            (FieldKind::Text, DocumentValue::Number(7.0), Some(text("7"))),
            (FieldKind::Text, day("2024-03-12"), Some(text("2024-03-12"))),
            (FieldKind::List, text("a, b"), Some(items(&["a", "b"]))),
            (
                FieldKind::List,
                text("a, b; c"),
                Some(items(&["a, b", "c"])),
            ),
            (FieldKind::List, text(" , "), None),
            (
                FieldKind::List,
                DocumentValue::Bool(true),
                Some(items(&["true"])),
            ),
            (FieldKind::Keyword, text("a\nb"), Some(text("a b"))),
            (FieldKind::Keyword, items(&["a"]), Some(text("a"))),
            (FieldKind::Keyword, items(&["a", "b"]), None),
        ] {
            assert_eq!(cast(kind, &value), expect, "{kind:?} {value}");
        }
    }

    #[test]
    fn keywords_end_at_their_bound() {
        let long = |chars: usize| text(&"é".repeat(chars));
        assert!(cast(FieldKind::Keyword, &long(MAX_KEYWORD_CHARS)).is_some());
        assert!(cast(FieldKind::Keyword, &long(MAX_KEYWORD_CHARS + 1)).is_none());
    }
}
