//! Explanations of a search: a query report in `_meta` for programs, a note as the last result for the model, and a
//! virtual document with all fields and the filter syntax.
//!
//! Hosts cache the tool list when they scan it, so the answer itself has to tell which filters exist.

use std::fmt::Write as _;
use std::sync::Arc;

use docent_mcp::{Answer, JsonObject};
use docent_search::{Catalog, CatalogField, FieldKind, ParsedQuery, RangeBound};

use crate::display_text::{one_line, pluralize};
use crate::knowledge_base::KnowledgeBase;

/// The id of the virtual document about fields and filters. A real document with this id has precedence.
pub const ID: &str = "docent:about-this-search";

/// The title of the virtual document and of the note.
pub const TITLE: &str = "About this search";

/// The `_meta` member with the query report.
pub const SEARCH_META: &str = "docent/search";

/// The `_meta` member with the filterable fields.
pub const FIELDS_META: &str = "docent/fields";

/// The `_meta` member that lists the parts of the index that are not ready, so the answer may be incomplete.
const UNREADY_META: &str = "docent/unready";

/// The most fields, and values of each, in an answer; the virtual document lists all of them.
const MAX_FIELDS: usize = 16;
const MAX_VALUES: usize = 8;

/// The length limit of a value, in characters.
const MAX_VALUE_CHARS: usize = 64;

/// The query report as JSON: which filters were applied, and which were ignored and why.
#[must_use]
pub fn query_report(parsed: &ParsedQuery) -> String {
    let applied = parsed.applied.iter().map(|one| {
        let mut members = JsonObject::with_capacity(128);
        members.text("written", &one.written);
        members.text("meaning", &one.meaning);
        members.end()
    });
    let ignored = parsed.ignored.iter().map(|one| {
        let mut members = JsonObject::with_capacity(128);
        members.text("written", &one.written);
        members.json("reason", &one.reason);
        members.json("meant", &one.meant);
        members.end()
    });
    let mut members = JsonObject::with_capacity(parsed.text.len() + 128);
    members.text("text", &parsed.text);
    members.json("phrases", &parsed.phrases);
    members.json("excluded", &parsed.excluded);
    members.raw("applied", &list(applied));
    members.raw("ignored", &list(ignored));
    members.end()
}

fn list(items: impl Iterator<Item = String>) -> String {
    let mut list = String::from("[");
    for item in items {
        if list.len() > 1 {
            list.push(',');
        }
        list.push_str(&item);
    }
    list.push(']');
    list
}

/// Marks an answer as possibly incomplete while parts of the index are not ready.
pub(super) fn with_unready<T>(answer: Answer<T>, knowledge: &KnowledgeBase) -> Answer<T> {
    match knowledge.unready() {
        Some(parts) => answer.meta_json(UNREADY_META, parts),
        None => answer,
    }
}

/// The filterable fields as JSON. The knowledge base caches it for each catalog, because all answers of an index
/// generation share it.
#[must_use]
pub fn fields(catalog: &Catalog) -> Arc<str> {
    let fields = catalog.fields.iter().take(MAX_FIELDS).map(|field| {
        let values = field.values.iter().take(MAX_VALUES);
        let values: Vec<_> = values.map(|(value, _)| short(value)).collect();
        let mut members = JsonObject::with_capacity(256);
        members.text("name", &field.name);
        members.text("type", kind(field.kind));
        if !values.is_empty() {
            members.json("values", &values);
        }
        if field.more || field.values.len() > MAX_VALUES {
            members.json("more", &true);
        }
        if let Some((from, to)) = &field.range {
            members.json("range", &[bound(from), bound(to)]);
        }
        members.end()
    });
    list(fields).into()
}

/// Whether a search found documents, as far as the note is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultAvailability {
    /// At least one result was found.
    Some,
    /// Nothing was found in the complete index.
    None,
    /// Nothing was found yet; the first sync is still running.
    NoneYet,
}

impl ResultAvailability {
    pub(super) fn of(found: usize, knowledge: &KnowledgeBase) -> Self {
        match found {
            0 if knowledge.is_first_sync() => Self::NoneYet,
            0 => Self::None,
            _ => Self::Some,
        }
    }
}

/// The note for the model when a filter was ignored or nothing was found; `None` when all went well.
#[must_use]
pub fn search_note(
    parsed: &ParsedQuery,
    catalog: &Catalog,
    outcome: ResultAvailability,
) -> Option<String> {
    if outcome == ResultAvailability::Some && parsed.ignored.is_empty() {
        return None;
    }
    let mut text = String::new();
    if outcome == ResultAvailability::NoneYet {
        text.push_str(
            "Nothing was found so far: the documents are still being read. Ask again in a moment. ",
        );
    }
    if outcome == ResultAvailability::None {
        text.push_str("Nothing was found. ");
        if !parsed.applied.is_empty() {
            let filters: Vec<_> = parsed
                .applied
                .iter()
                .map(|one| one.meaning.as_str())
                .collect();
            let _ = write!(text, "Applied: {}. ", filters.join("; "));
        }
        text.push_str("Try other or fewer words, or fewer filters. ");
    }
    for one in &parsed.ignored {
        let _ = write!(text, "Ignored `{}`: {}", one.written, one.reason);
        if let Some(meant) = &one.meant {
            let _ = write!(text, "; write `{meant}`");
        }
        text.push_str(". ");
    }
    let names: Vec<_> = catalog
        .fields
        .iter()
        .take(MAX_FIELDS)
        .map(|field| field.name.as_str())
        .collect();
    if !names.is_empty() {
        let _ = write!(
            text,
            "Filters: {}. Fetch `{ID}` for their values.",
            names.join(", ")
        );
    }
    Some(one_line(&text, 1_000))
}

/// The virtual document: the filter syntax and all fields with their values.
#[must_use]
pub fn document(catalog: &Catalog) -> String {
    let mut text = format!(
        "# {TITLE}\n\nThere are {}. A query may hold filters beside its words:\n\n\
         - `field:value`, `field:\"two words\"`, `field:one,other` (either), `-field:value` (not)\n\
         - `date:2024-06`, `date:2024-06..2024-09`, `since:30d`, `before:2024-05-01`\n\
         - `number:>10`, `number:5..20`\n\
         - `\"exact words\"`, `-word`, and `(field:a OR field:b)`\n\n\
         What is not a filter is searched for as words.\n\n## Fields\n\n",
        pluralize(catalog.documents, "document")
    );
    if catalog.fields.is_empty() {
        text.push_str("The documents have no fields.\n");
    }
    for field in &catalog.fields {
        text.push_str(&line(field));
    }
    text
}

fn line(field: &CatalogField) -> String {
    let mut text = format!(
        "- **{}** ({}, in {})",
        field.name,
        kind(field.kind),
        pluralize(field.documents, "document")
    );
    if let Some((from, to)) = &field.range {
        let _ = write!(text, ": {} to {}", bound(from), bound(to));
    }
    let values: Vec<_> = field
        .values
        .iter()
        .map(|(value, count)| format!("{} ({count})", short(value)))
        .collect();
    if !values.is_empty() {
        let _ = write!(text, ": {}", values.join(", "));
    }
    if field.more {
        text.push_str(", and more");
    }
    text.push('\n');
    text
}

/// The name of a field kind in answers.
#[must_use]
pub fn kind(kind: FieldKind) -> &'static str {
    match kind {
        FieldKind::Keyword => "keyword",
        FieldKind::Text => "text",
        FieldKind::List => "list",
        FieldKind::Number => "number",
        FieldKind::Date => "date",
        FieldKind::Bool => "boolean",
    }
}

fn bound(bound: &RangeBound) -> String {
    match bound {
        RangeBound::Number(number) => number.to_string(),
        RangeBound::Date(day) => day.clone(),
    }
}

fn short(value: &str) -> String {
    one_line(value, MAX_VALUE_CHARS)
}

#[cfg(test)]
mod tests {
    use docent_search::{CatalogBuilder, Day, grammar};
    use serde_json::{Value, json};

    use super::*;

    fn catalog() -> Catalog {
        let mut builder = CatalogBuilder::new();
        builder.documents(40);
        builder.text("party", "Labor", 30);
        builder.text("party", "Greens", 10);
        builder.number("words", (3.0, 90.5), 40);
        builder.build()
    }

    fn parse(text: &str) -> ParsedQuery {
        grammar::parse(text, &catalog(), Day::new(2024, 6, 30).unwrap())
    }

    #[test]
    fn a_note_exists_only_when_something_went_wrong() {
        let remark = |text: &str, outcome| search_note(&parse(text), &catalog(), outcome);
        assert_eq!(
            remark("housing party:labor", ResultAvailability::Some),
            None
        );
        let early = remark("housing", ResultAvailability::NoneYet).unwrap();
        assert!(early.contains("still being read. Ask again"), "{early}");
        let ignored = remark("housing party:Labour", ResultAvailability::Some).unwrap();
        assert!(ignored.starts_with("Ignored `party:Labour`"), "{ignored}");
        assert!(ignored.contains("write `party:Labor`"), "{ignored}");
        let nothing = remark("housing party:labor", ResultAvailability::None).unwrap();
        assert!(nothing.contains("Applied: party is Labor."), "{nothing}");
        assert!(
            nothing.ends_with(
                "Filters: party, words. Fetch `docent:about-this-search` for their values."
            ),
            "{nothing}"
        );
    }

    #[test]
    fn the_query_report_is_json() {
        let parsed = parse("\"exact words\" -dull boat party:labor party:Labour");
        let wire: Value = serde_json::from_str(&query_report(&parsed)).unwrap();
        let expected = json!({
            "text": parsed.text,
            "phrases": ["exact words"],
            "excluded": ["dull"],
            "applied": [
                {"written": "\"exact words\"", "meaning": "with `exact words`"},
                {"written": "-dull", "meaning": "without `dull`"},
                {"written": "party:labor", "meaning": "party is Labor"},
            ],
            "ignored": [{
                "written": "party:Labour",
                "reason": parsed.ignored[0].reason,
                "meant": "party:Labor",
            }],
        });
        assert_eq!(wire, expected);
    }

    #[test]
    fn the_document_names_every_field_with_its_values() {
        let text = document(&catalog());
        assert!(
            text.contains("- **party** (keyword, in 40 documents): Labor (30), Greens (10)\n"),
            "{text}"
        );
        assert!(
            text.contains("- **words** (number, in 40 documents): 3 to 90.5\n"),
            "{text}"
        );
    }

    #[test]
    fn an_answer_names_no_more_than_its_bounds() {
        let mut builder = CatalogBuilder::new();
        builder.documents(400);
        for n in 0..=MAX_FIELDS {
            for value in 0..=MAX_VALUES {
                builder.text(&format!("f{n:02}"), &format!("v{value}"), 20);
            }
        }
        let wire: Value = serde_json::from_str(&fields(&builder.build())).unwrap();
        let list = wire.as_array().unwrap();
        assert_eq!(list.len(), MAX_FIELDS);
        assert_eq!(list[0]["values"].as_array().unwrap().len(), MAX_VALUES);
        assert_eq!(list[0]["more"], true);
    }
}
