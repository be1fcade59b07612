//! A value into a value of another kind, where it can be one.

use docent_ingest::{clean_line, parse_date};
use docent_search::{Kind, MAX_KEYWORD_CHARS, Value};

/// The kinds by the names that settings and messages use.
pub(crate) const KINDS: [(&str, Kind); 6] = [
    ("text", Kind::Text),
    ("keyword", Kind::Keyword),
    ("list", Kind::List),
    ("number", Kind::Number),
    ("date", Kind::Date),
    ("boolean", Kind::Bool),
];

/// What settings and messages call a kind.
pub(crate) fn name(kind: Kind) -> &'static str {
    let found = KINDS.iter().find(|(_, known)| *known == kind);
    found.map_or("text", |(name, _)| name)
}

/// The value as one of this kind; nothing where it is none.
pub(crate) fn cast(kind: Kind, value: &Value) -> Option<Value> {
    match kind {
        Kind::Text => Some(Value::Text(value.to_string())),
        Kind::Keyword => keyword(value),
        Kind::List => list(value),
        Kind::Number => number(value).map(Value::Number),
        Kind::Date => date(value).map(Value::Date),
        Kind::Bool => flag(value).map(Value::Bool),
    }
}

/// A word or phrase on one line, short enough to be offered as a choice.
fn keyword(value: &Value) -> Option<Value> {
    if let Value::List(items) = value
        && items.len() != 1
    {
        return None;
    }
    let text = clean_line(&value.to_string());
    let fits = !text.is_empty() && text.chars().count() <= MAX_KEYWORD_CHARS;
    fits.then_some(Value::Text(text))
}

/// A text is cut at semicolons or bars, or else at commas.
fn list(value: &Value) -> Option<Value> {
    let Value::Text(text) = value else {
        return Some(match value {
            Value::List(items) => Value::List(items.clone()),
            other => Value::List(vec![other.to_string()]),
        });
    };
    let mark = |c: char| match text.contains([';', '|']) {
        true => matches!(c, ';' | '|'),
        false => matches!(c, ',' | '\n'),
    };
    let items = text.split(mark).map(clean_line);
    let items: Vec<_> = items.filter(|item| !item.is_empty()).collect();
    (!items.is_empty()).then_some(Value::List(items))
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => Some(*number),
        Value::Text(text) => {
            // Rust also reads `inf` and `nan`, which are no numbers to anyone else.
            let plain = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
            let text = text.trim();
            let found = text.parse().ok().filter(|_| text.chars().all(plain));
            found.filter(|number: &f64| number.is_finite())
        }
        _ => None,
    }
}

fn date(value: &Value) -> Option<String> {
    match value {
        Value::Date(text) | Value::Text(text) => parse_date(text),
        _ => None,
    }
}

fn flag(value: &Value) -> Option<bool> {
    let text = match value {
        Value::Bool(flag) => return Some(*flag),
        Value::Text(text) => text.trim().to_lowercase(),
        Value::Number(_) => value.to_string(),
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

    fn text(text: &str) -> Value {
        Value::Text(text.to_owned())
    }

    fn items(items: &[&str]) -> Value {
        Value::List(items.iter().map(|item| (*item).to_owned()).collect())
    }

    #[test]
    fn values_become_what_they_can_be() {
        let day = |day: &str| Value::Date(day.to_owned());
        for (kind, value, expect) in [
            (Kind::Number, text(" 12.5 "), Some(Value::Number(12.5))),
            (Kind::Number, text("inf"), None),
            (Kind::Number, text("1e999"), None),
            (Kind::Number, text("12 boats"), None),
            (Kind::Number, day("2024-03-12"), None),
            (Kind::Date, text("12 Mar 2024"), Some(day("2024-03-12"))),
            (Kind::Date, text("12.03.2024"), Some(day("2024-03-12"))),
            (
                Kind::Date,
                text("2024-03-12T10:00:00Z"),
                Some(day("2024-03-12")),
            ),
            (Kind::Date, text("03/04/2024"), None),
            (Kind::Date, Value::Number(2024.0), None),
            (Kind::Bool, text("Yes"), Some(Value::Bool(true))),
            (Kind::Bool, Value::Number(0.0), Some(Value::Bool(false))),
            (Kind::Bool, text("maybe"), None),
            (Kind::Text, Value::Number(7.0), Some(text("7"))),
            (Kind::Text, day("2024-03-12"), Some(text("2024-03-12"))),
            (Kind::List, text("a, b"), Some(items(&["a", "b"]))),
            (Kind::List, text("a, b; c"), Some(items(&["a, b", "c"]))),
            (Kind::List, text(" , "), None),
            (Kind::List, Value::Bool(true), Some(items(&["true"]))),
            (Kind::Keyword, text("a\nb"), Some(text("a b"))),
            (Kind::Keyword, items(&["a"]), Some(text("a"))),
            (Kind::Keyword, items(&["a", "b"]), None),
        ] {
            assert_eq!(cast(kind, &value), expect, "{kind:?} {value}");
        }
    }

    #[test]
    fn keywords_end_at_their_bound() {
        let long = |chars: usize| text(&"é".repeat(chars));
        assert!(cast(Kind::Keyword, &long(MAX_KEYWORD_CHARS)).is_some());
        assert!(cast(Kind::Keyword, &long(MAX_KEYWORD_CHARS + 1)).is_none());
    }
}
