//! Presents the fields of the documents over MCP: entries for `list_fields`, a resource per field, and completions for
//! filters while they are typed.

use std::sync::Arc;

use docent_mcp::{Caller, Completer, Context, Failure, ResourceBody, ResourceTemplate};
use docent_search::{Catalog, CatalogField, Day, FieldKind, Filter, RangeBound, grammar};
use serde_json::{Value, json};

use crate::knowledge_base::KnowledgeBase;
use crate::tools::search_notes;

/// URI template of the resource that describes one field.
pub(crate) const FIELD: &str = "docent://fields/{field}";

/// Describes a field as JSON, with at most `most` of its values.
pub(crate) fn entry(field: &CatalogField, catalog: &Catalog, most: usize, today: Day) -> Value {
    let values = field.values.iter().take(most);
    let values: Vec<_> = values
        .map(|(value, count)| json!({"value": value, "count": count}))
        .collect();
    let range = field.range.as_ref();
    let has_more = field.more || field.values.len() > most;
    let members = [
        ("name", json!(field.name)),
        ("type", json!(search_notes::kind(field.kind))),
        ("documents", json!(field.documents)),
        ("from", json!(range.map(|(from, _)| bound(from)))),
        ("to", json!(range.map(|(_, to)| bound(to)))),
        ("values", json!((!values.is_empty()).then_some(values))),
        ("more", json!(has_more.then_some(true))),
        ("filter", json!(example(field, catalog, today))),
    ];
    let known = members.into_iter().filter(|(_, value)| !value.is_null());
    let known = known.map(|(name, value)| (name.to_owned(), value));
    Value::Object(known.collect())
}

fn bound(bound: &RangeBound) -> Value {
    match bound {
        RangeBound::Number(number) => json!(number),
        RangeBound::Date(day) => json!(day),
    }
}

/// An example filter for a field, in query syntax. It is parsed back before it is shown, so that models never see a
/// filter that the grammar would not read as meant; a field whose name contains a colon has none.
fn example(field: &CatalogField, catalog: &Catalog, today: Day) -> Option<String> {
    let value = match (field.kind, &field.range) {
        (FieldKind::Number | FieldKind::Date, Some((from, to))) => {
            let text = |bound: &RangeBound| match bound {
                RangeBound::Number(number) => number.to_string(),
                RangeBound::Date(day) => day.clone(),
            };
            format!("{}..{}", text(from), text(to))
        }
        _ => quoted_value(&field.values.first()?.0),
    };
    let filter = format!("{}:{value}", field.name.replace(char::is_whitespace, "_"));
    let parsed = grammar::parse(&filter, catalog, today);
    let round_trips =
        matches!(&parsed.filter, Some(Filter::Field { name, .. }) if *name == field.name);
    (round_trips && parsed.ignored.is_empty() && parsed.text.is_empty()).then_some(filter)
}

/// Quotes a value for use after a colon, if it contains more than letters, digits, `_` and `-`.
fn quoted_value(value: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    if value.chars().all(plain) {
        value.to_owned()
    } else {
        format!("\"{value}\"")
    }
}

/// Resource template with one resource per field, which lists all known values.
pub(crate) fn template(knowledge: &Arc<KnowledgeBase>) -> ResourceTemplate {
    let (shared, for_completion) = (knowledge.clone(), knowledge.clone());
    let read = move |vars: docent_mcp::TemplateVars, context: Context| {
        let knowledge = shared.clone();
        async move {
            let requested = vars.get("field").map(String::as_str).unwrap_or_default();
            let reader = knowledge.reader(context.caller());
            let (catalog, _) = knowledge.fields(&reader).await?;
            let decoded = percent_decode(requested);
            let field = catalog.field(requested).or_else(|| catalog.field(&decoded));
            let field =
                field.ok_or_else(|| Failure::not_found(FIELD.replace("{field}", requested)))?;
            let entry = entry(field, &catalog, usize::MAX, (knowledge.today)());
            Ok(ResourceBody::Text(entry.to_string()))
        }
    };
    ResourceTemplate::new(FIELD, "field", "application/json", read)
        .title("A field of the documents")
        .description("The values of one field, with the number of documents that have each.")
        .complete("field", completer(for_completion, names))
}

/// Completer over the fields of the documents that the caller may read, so that completions reveal nothing else.
pub(crate) fn completer(
    knowledge: Arc<KnowledgeBase>,
    suggest: fn(&Catalog, &str) -> Vec<String>,
) -> Completer {
    Completer::for_caller(move |typed: String, caller: Caller| {
        let knowledge = knowledge.clone();
        async move {
            let reader = knowledge.reader(&caller);
            let (catalog, _) = knowledge.fields(&reader).await?;
            Ok(suggest(&catalog, &typed))
        }
    })
}

/// Percent-decodes a URI component. Invalid escapes stay as they are.
fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let hex = tail.get(..2).filter(|_| *first == b'%');
        let hex = hex.and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = tail.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Completes the name of a field.
pub(crate) fn names(catalog: &Catalog, typed: &str) -> Vec<String> {
    let names = catalog.fields.iter().map(|field| field.name.clone());
    names
        .filter(|name| starts_with_ignoring_case(name, typed))
        .collect()
}

/// Completes the last condition of a filter: first the field name, then, after the colon, its value. Earlier conditions
/// are kept unchanged.
pub(crate) fn filters(catalog: &Catalog, typed: &str) -> Vec<String> {
    let (before, last) = typed
        .split_at_checked(last_condition(typed))
        .unwrap_or(("", typed));
    let suggestions: Vec<String> = match last.split_once(':') {
        None => {
            let names = catalog
                .fields
                .iter()
                .map(|field| format!("{}:", field.name));
            names
                .filter(|name| starts_with_ignoring_case(name, last))
                .collect()
        }
        Some((name, value)) => {
            let value = value.trim_start_matches('"');
            let fields = catalog.field(name).into_iter();
            let values = fields
                .flat_map(|field| &field.values)
                .map(|(value, _)| value);
            let values = values.filter(|known| starts_with_ignoring_case(known, value));
            values
                .map(|known| format!("{name}:{}", quoted_value(known)))
                .collect()
        }
    };
    let completed = suggestions.into_iter().map(|one| format!("{before}{one}"));
    completed.collect()
}

/// Byte offset of the last condition: after the last space outside quotation marks.
fn last_condition(typed: &str) -> usize {
    let (mut start, mut is_quoted) = (0, false);
    for (at, c) in typed.char_indices() {
        match c {
            '"' => is_quoted = !is_quoted,
            ' ' if !is_quoted => start = at + 1,
            _ => {}
        }
    }
    start
}

fn starts_with_ignoring_case(text: &str, typed: &str) -> bool {
    let mut letters = text.chars().flat_map(char::to_lowercase);
    typed
        .chars()
        .flat_map(char::to_lowercase)
        .all(|typed| letters.next() == Some(typed))
}

#[cfg(test)]
mod tests {
    use docent_search::CatalogBuilder;

    use super::*;

    fn today() -> Day {
        Day::new(2024, 6, 30).unwrap()
    }

    fn catalog() -> Catalog {
        let mut builder = CatalogBuilder::new();
        builder.documents(40);
        builder.text("party", "Civic Labour", 30);
        builder.text("party", "Greens", 10);
        builder.number("word count", (3.0, 90.5), 39);
        builder.date("date", (Day::new(2023, 2, 14).unwrap(), today()), 38);
        builder.flag("open", true, 37);
        builder.text("odd:name", "a", 36);
        builder.text("quote", "say \"a\"", 35);
        builder.build()
    }

    #[test]
    fn the_example_of_a_filter_works_in_a_query() {
        let catalog = catalog();
        let found: Vec<_> = catalog
            .fields
            .iter()
            .map(|field| (field.name.as_str(), example(field, &catalog, today())))
            .collect();
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            found,
            [
                ("party", some("party:\"Civic Labour\"")),
                ("word count", some("word_count:3..90.5")),
                ("date", some("date:2023-02-14..2024-06-30")),
                ("open", some("open:true")),
                // These cannot be expressed in the query syntax.
                ("odd:name", None),
                ("quote", None),
            ]
        );
    }

    #[test]
    fn an_entry_has_what_is_known_and_ends_at_its_bound() {
        let catalog = catalog();
        let party = catalog.field("party").unwrap();
        let value = |value: &str, count: u64| json!({"value": value, "count": count});
        assert_eq!(
            entry(party, &catalog, 2, today()),
            json!({"name": "party", "type": "keyword", "documents": 40,
                "values": [value("Civic Labour", 30), value("Greens", 10)],
                "filter": "party:\"Civic Labour\""})
        );
        let short = entry(party, &catalog, 1, today());
        assert_eq!(
            (&short["values"], &short["more"]),
            (&json!([value("Civic Labour", 30)]), &json!(true))
        );
        let date = entry(catalog.field("date").unwrap(), &catalog, 9, today());
        assert_eq!(
            (&date["from"], &date["to"]),
            (&json!("2023-02-14"), &json!("2024-06-30"))
        );
    }

    #[test]
    fn suggestions_follow_what_was_typed() {
        let catalog = catalog();
        for (typed, expected) in [
            ("pa", vec!["party:"]),
            ("party:", vec!["party:\"Civic Labour\"", "party:Greens"]),
            ("party:\"civic l", vec!["party:\"Civic Labour\""]),
            ("PARTY:g", vec!["PARTY:Greens"]),
            ("party:Greens op", vec!["party:Greens open:"]),
            (
                "party:\"Civic Labour\" open:",
                vec!["party:\"Civic Labour\" open:true"],
            ),
            ("x:", vec![]),
        ] {
            assert_eq!(filters(&catalog, typed), expected, "{typed}");
        }
        assert_eq!(filters(&catalog, "").len(), 6);
        assert_eq!(names(&catalog, "WORD"), ["word count"]);
    }

    #[test]
    fn addresses_are_decoded() {
        for (text, expected) in [
            ("word%20count", "word count"),
            ("100%", "100%"),
            ("%zz%C3%A9", "%zzé"),
            ("", ""),
        ] {
            assert_eq!(percent_decode(text), expected);
        }
    }
}
