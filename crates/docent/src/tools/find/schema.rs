//! The JSON schemas of the input and output of `find`.

use docent_search::{MAX_FACETS, MAX_LIMIT, MAX_OFFSET};
use serde_json::{Map, Value, json};

use super::find_answer;
use super::find_query::DEFAULT_LIMIT;
use super::parameters::{
    FACETS, FilterParameter, FindParameters, LIMIT, OFFSET, ParameterKind, QUERY, SORT,
};
use crate::display_text::one_line;
use crate::settings::FindSettings;
use crate::tools::result_members;

/// The most characters of all `enum` values in the schema. A field that would exceed it has no `enum`; its values are
/// validated all the same, and `list_fields` lists them.
const MAX_ENUM_CHARS: usize = 4_000;

/// The most characters of all values in one parameter description.
const MAX_OPTIONS_CHARS: usize = 160;

/// The most characters of one value including its quotation marks.
const MAX_OPTION_CHARS: usize = 66;

/// The sort orders, the default first.
pub(super) const ORDERS: [&str; 3] = ["relevance", "newest", "oldest"];

/// The input schema; descriptions contain example values from the corpus.
pub(super) fn input(parameters: &FindParameters, find: &FindSettings) -> Value {
    let noun = find.noun();
    let mut properties = Map::new();
    let mut add = |name: &str, schema: Value| properties.insert(name.to_owned(), schema);
    add(
        QUERY,
        json!({"type": "string", "description": format!(
            "Natural language search query for the content of the {noun}; empty to list them."
        )}),
    );
    let mut room = MAX_ENUM_CHARS;
    for parameter in &parameters.filters {
        add(&parameter.name, property(parameter, noun, &mut room));
    }
    add(
        LIMIT,
        json!({"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT,
        "description": format!(
            "Maximum number of results to return (1-{MAX_LIMIT}, default {DEFAULT_LIMIT})."
        )}),
    );
    if parameters.offset {
        add(
            OFFSET,
            json!({"type": "integer", "minimum": 0, "maximum": MAX_OFFSET, "default": 0,
                "description": "Number of results to skip: next_offset of the previous answer."}),
        );
    }
    if parameters.sort {
        add(
            SORT,
            json!({"type": "string", "enum": ORDERS, "default": ORDERS[0],
                "description": "The order of the results: the best first, or by date."}),
        );
    }
    if !parameters.facets.is_empty() {
        let names: Vec<_> = parameters.facets.iter().map(|(name, _)| name).collect();
        add(
            FACETS,
            json!({"type": "array", "items": {"type": "string", "enum": names},
            "maxItems": MAX_FACETS, "description": format!(
                "Fields whose values to count among all {noun} found."
            )}),
        );
    }
    json!({
        "type": "object",
        "properties": properties,
        "required": [QUERY],
        "additionalProperties": false,
    })
}

fn property(parameter: &FilterParameter, noun: &str, room: &mut usize) -> Value {
    let field = one_line(&parameter.field, 64);
    match &parameter.kind {
        ParameterKind::OneOf(values) => {
            let options = options(values, MAX_OPTIONS_CHARS);
            let text = format!("Filter by {field}. Options: {options}");
            let size: usize = values.iter().map(|value| value.chars().count()).sum();
            match room.checked_sub(size) {
                Some(left) => {
                    *room = left;
                    json!({"type": "string", "enum": values, "description": text})
                }
                None => json!({"type": "string", "description": text}),
            }
        }
        ParameterKind::Text(examples) => {
            let text = format!("Filter by {field}.");
            let text = match options(examples, MAX_OPTIONS_CHARS) {
                examples if examples.is_empty() => text,
                examples => format!("{text} Examples: {examples}"),
            };
            json!({"type": "string", "description": text})
        }
        ParameterKind::AtLeast(range) => number(&format!("Least {field}."), *range),
        ParameterKind::AtMost(range) => number(&format!("Greatest {field}."), *range),
        ParameterKind::From(range) => day("Start", "after", &field, noun, range.as_ref()),
        ParameterKind::To(range) => day("End", "before", &field, noun, range.as_ref()),
        ParameterKind::Flag => {
            json!({"type": "boolean", "description": format!("Filter by {field}: true or false.")})
        }
    }
}

fn number(text: &str, range: Option<(f64, f64)>) -> Value {
    let range = range.map(|(least, most)| format!(" In the data: {least} to {most}."));
    let text = format!("{text}{}", range.unwrap_or_default());
    json!({"type": "number", "description": text})
}

fn day(
    which: &str,
    side: &str,
    field: &str,
    noun: &str,
    range: Option<&(String, String)>,
) -> Value {
    let what = if field == "date" {
        format!("{which} date")
    } else {
        format!("{which} of {field}")
    };
    let example = range.map(|(first, last)| if which == "Start" { first } else { last });
    let example = example.map(|day| format!(" Example: {day}."));
    let text = format!(
        "{what} in ISO 8601 format (YYYY-MM-DD).{} Only {noun} on or {side} this date are returned.",
        example.unwrap_or_default()
    );
    json!({"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}$", "description": text})
}

/// Joins as many values as fit into `most` characters, with an ellipsis for the rest.
pub(super) fn options(values: &[String], most: usize) -> String {
    let mut text = String::new();
    for value in values {
        let value = one_line(value, MAX_OPTION_CHARS);
        let separator = if text.is_empty() { "" } else { ", " };
        text.push_str(separator);
        if text.chars().count() + value.chars().count() > most {
            text.push('…');
            break;
        }
        text.push_str(&value);
    }
    text
}

/// The output schema; member names follow the settings.
pub(super) fn output(find: &FindSettings) -> Value {
    let counts = json!({"type": "array", "items": {
        "type": "object",
        "properties": {"value": {"type": "string"}, "count": {"type": "integer"}},
        "required": ["value", "count"],
    }});
    let facets = json!({"type": "array", "items": {
        "type": "object",
        "properties": {
            "field": {"type": "string"}, "values": counts, "more": {"type": "boolean"},
        },
        "required": ["field", "values", "more"],
    }});
    let properties = [
        (
            find.list.as_str(),
            json!({"type": "array", "items": result_members::schema(&find.result, &find_answer::built_in_members())}),
        ),
        (find_answer::TOTAL, json!({"type": "integer"})),
        (find_answer::QUERY, json!({"type": "string"})),
        (find_answer::NEXT, json!({"type": "integer"})),
        (find_answer::FACETS, facets),
        (find_answer::NOTE, json!({"type": "string"})),
    ];
    let required = [find.list.as_str(), find_answer::TOTAL, find_answer::QUERY];
    let properties: Map<_, _> = properties
        .into_iter()
        .map(|(name, schema)| (name.to_owned(), schema))
        .collect();
    json!({"type": "object", "properties": properties, "required": required})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_end_at_their_bound() {
        let values = ["aaa", "bbb", "ccc"].map(str::to_owned);
        assert_eq!(options(&values, 13), "aaa, bbb, ccc");
        assert_eq!(options(&values, 12), "aaa, bbb, …");
        assert_eq!(options(&values, 2), "…");
        assert_eq!(options(&[], 4), "");
    }

    #[test]
    fn long_lists_of_values_are_not_in_the_schema() {
        let values = |count: usize, letter: &str| -> Vec<_> {
            (0..count)
                .map(|n| format!("{n:02}{}", letter.repeat(48)))
                .collect()
        };
        let parameter = |name: &str, values: Vec<String>| FilterParameter {
            name: name.to_owned(),
            field: name.to_owned(),
            kind: ParameterKind::OneOf(values),
        };
        let parameters = FindParameters {
            // Eighty values of fifty characters reach the limit exactly.
            filters: vec![
                parameter("a", values(50, "a")),
                parameter("b", values(30, "b")),
                parameter("c", vec!["c".to_owned()]),
            ],
            ..FindParameters::default()
        };
        let schema = input(&parameters, &FindSettings::default());
        let properties = &schema["properties"];
        assert_eq!(properties["a"]["enum"].as_array().unwrap().len(), 50);
        assert_eq!(properties["b"]["enum"].as_array().unwrap().len(), 30);
        assert_eq!(properties["c"].get("enum"), None);
        assert!(
            properties["b"]["description"]
                .as_str()
                .unwrap()
                .chars()
                .count()
                < 200
        );
    }
}
