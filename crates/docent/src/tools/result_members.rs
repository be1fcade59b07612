//! The members of a result object: built-in members and document fields, selected and renamed by the settings.

use docent_search::{Document, DocumentValue as Field};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::display_text::one_line;
use crate::settings::NameAlias;

/// The prefix of a document field whose name collides with a built-in member. In the settings it always means a field.
const PREFIX: &str = "field.";

/// The length limit of a member name, in characters.
const MAX_NAME_CHARS: usize = 64;

/// The most items of a list value.
const MAX_ITEMS: usize = 64;

/// Character limits for the document fields in an answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct FieldCharLimits {
    /// The limit of one string or one list item.
    pub value: usize,
    /// The limit of all names and values together.
    pub all: usize,
}

/// A member that results have beside the fields of the document.
#[derive(Clone)]
pub(super) struct BuiltInMember {
    pub name: &'static str,
    pub schema: Value,
    pub is_required: bool,
}

/// The remaining character budget of a result.
struct CharBudget {
    limits: FieldCharLimits,
    left: usize,
}

impl CharBudget {
    /// Renders a value and charges it to the budget; `None` when it does not fit.
    fn take(&mut self, name: &str, value: &Field) -> Option<Value> {
        let value = field_json(value, self.limits.value);
        let cost = name.chars().count() + size(&value);
        self.left = self.left.checked_sub(cost)?;
        Some(value)
    }
}

/// Builds the members of a result.
///
/// `named` selects and renames the members. When it is empty, the result has all members of `built_in` in order, then
/// the fields of the document. `built_in_value` computes the value of a built-in member.
pub(super) fn members(
    document: &Document,
    named: &[NameAlias],
    built_in: &[&str],
    limits: FieldCharLimits,
    built_in_value: impl Fn(&str) -> Value,
) -> Map<String, Value> {
    let left = limits.all;
    let mut budget = CharBudget { limits, left };
    let mut object = Map::new();
    if named.is_empty() {
        object.extend(
            built_in
                .iter()
                .map(|name| ((*name).to_owned(), built_in_value(name))),
        );
        for (name, value) in &document.fields {
            let mut name = one_line(name, MAX_NAME_CHARS);
            if built_in.contains(&name.as_str()) {
                name.insert_str(0, PREFIX);
            }
            if !name.is_empty() && !object.contains_key(&name) {
                let value = budget.take(&name, value);
                object.extend(value.map(|value| (name, value)));
            }
        }
    }
    for NameAlias { name, source } in named {
        let value = if built_in.contains(&source.as_str()) {
            Some(built_in_value(source))
        } else {
            let value = field(document, source.strip_prefix(PREFIX).unwrap_or(source));
            value.and_then(|value| budget.take(name, value))
        };
        object.extend(value.map(|value| (name.clone(), value)));
    }
    // NaN and infinity have no JSON representation and become null.
    object.retain(|_, value| !value.is_null());
    object
}

/// The JSON schema of these members. Only built-in members have a fixed type: another document may hold a value of
/// another type in the same field.
pub(super) fn schema(named: &[NameAlias], built_in: &[BuiltInMember]) -> Value {
    let kinds = ["string", "number", "boolean", "array"];
    let any = json!({"type": kinds, "items": {"type": "string"}});
    let all: Vec<_> = if named.is_empty() {
        built_in.iter().map(|own| (own.name, own.name)).collect()
    } else {
        let named = named.iter();
        named
            .map(|one| (one.name.as_str(), one.source.as_str()))
            .collect()
    };
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (name, source) in all {
        let known = built_in.iter().find(|own| own.name == source);
        let schema = known.map_or(&any, |own| &own.schema);
        properties.insert(name.to_owned(), schema.clone());
        required.extend(known.filter(|own| own.is_required).map(|_| name));
    }
    let others = if named.is_empty() { any } else { json!(false) };
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": others,
    })
}

/// The name of a member in the answer, if the settings select it.
pub(super) fn alias_of<'n>(named: &'n [NameAlias], source: &'n str) -> Option<&'n str> {
    if named.is_empty() {
        return Some(source);
    }
    let one = named.iter().find(|one| one.source == source);
    one.map(|one| one.name.as_str())
}

/// The first value of a field with this name.
fn field<'d>(document: &'d Document, name: &str) -> Option<&'d Field> {
    let mut fields = document.fields.iter();
    fields.find(|(own, _)| own == name).map(|(_, value)| value)
}

/// The value of the document's field `date`, or else the date of the document.
pub(super) fn date(document: &Document) -> Value {
    match field(document, "date") {
        Some(value) => field_json(value, MAX_NAME_CHARS),
        None => json!(document.date),
    }
}

/// The number of words, separated by white space.
pub(super) fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

/// The SHA-256 checksum of a text in hexadecimal.
pub(super) fn sha256(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn field_json(value: &Field, most: usize) -> Value {
    match value {
        Field::Text(text) | Field::Date(text) => json!(one_line(text, most)),
        Field::Number(number) => number_of(*number),
        Field::Bool(flag) => json!(flag),
        Field::List(items) => {
            let items = items.iter().take(MAX_ITEMS);
            items
                .map(|item| Value::from(one_line(item, most)))
                .collect()
        }
    }
}

/// A JSON number; integral values are written without a decimal point.
pub(super) fn number_of(number: f64) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() <= EXACT {
        // Up to 2^53 every integer is represented exactly.
        #[expect(clippy::cast_possible_truncation, reason = "the bounds are checked")]
        let whole = number as i64;
        json!(whole)
    } else {
        json!(number)
    }
}

/// The characters that a value costs; numbers and booleans count as eight.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.chars().count(),
        Value::Array(items) => items.iter().map(|item| size(item) + 1).sum(),
        _ => 8,
    }
}

#[cfg(test)]
mod tests {
    use docent_search::DocId;

    use super::*;

    const LIMITS: FieldCharLimits = FieldCharLimits { value: 10, all: 60 };

    fn document(fields: Vec<(&str, Field)>) -> Document {
        let fields = fields.into_iter();
        Document {
            id: DocId::parse("a").unwrap(),
            title: String::new(),
            text: String::new(),
            url: None,
            date: Some("2024-03-12".to_owned()),
            fields: fields
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
            source: "a.md".to_owned(),
            hash: String::new(),
            readers: docent_search::AllowedReaders::Everyone,
        }
    }

    fn text(text: &str) -> Field {
        Field::Text(text.to_owned())
    }

    fn shown(fields: Vec<(&str, Field)>, named: &[(&str, &str)]) -> String {
        let named: Vec<_> = named
            .iter()
            .map(|(name, source)| NameAlias {
                name: (*name).to_owned(),
                source: (*source).to_owned(),
            })
            .collect();
        let document = document(fields);
        let own = |name: &str| match name {
            "id" => json!("own"),
            "date" => date(&document),
            _ => Value::Null,
        };
        Value::from(members(
            &document,
            &named,
            &["id", "date", "url"],
            LIMITS,
            own,
        ))
        .to_string()
    }

    #[test]
    fn built_in_members_come_first_and_fields_cannot_forge_them() {
        assert_eq!(
            shown(
                vec![
                    ("id", text("evil")),
                    ("tags", Field::List(vec!["a".to_owned()]))
                ],
                &[]
            ),
            r#"{"id":"own","date":"2024-03-12","field.id":"evil","tags":["a"]}"#
        );
        assert_eq!(
            shown(
                vec![
                    ("n", Field::Number(3.0)),
                    ("x", Field::Number(0.5)),
                    ("b", Field::Bool(true))
                ],
                &[]
            ),
            r#"{"id":"own","date":"2024-03-12","n":3,"x":0.5,"b":true}"#
        );
    }

    #[test]
    fn named_members_are_all_there_is_and_in_their_order() {
        let fields = || {
            vec![
                ("id", text("evil")),
                ("party", text("Labor")),
                ("state", text("x")),
            ]
        };
        assert_eq!(
            shown(
                fields(),
                &[
                    ("p", "party"),
                    ("speech_id", "id"),
                    ("own_id", "field.id"),
                    ("gone", "gone")
                ]
            ),
            r#"{"p":"Labor","speech_id":"own","own_id":"evil"}"#
        );
    }

    #[test]
    fn fields_end_at_their_bounds() {
        let long = |count: usize| text(&"é".repeat(count));
        assert_eq!(
            shown(vec![("a", long(10))], &[("a", "a")]),
            shown(vec![("a", long(11))], &[("a", "a")])
        );
        // Each field costs eleven characters including its name, so five fit into sixty.
        let many: Vec<_> = ["a", "b", "c", "d", "e", "f"]
            .map(|name| (name, long(10)))
            .into();
        let found: Value = serde_json::from_str(&shown(many, &[])).unwrap();
        assert_eq!(found.as_object().unwrap().len(), 2 + 5);
        let items = |count: usize| Field::List(vec![String::new(); count]);
        let length = |count: usize| field_json(&items(count), 1).as_array().unwrap().len();
        assert_eq!(
            (length(MAX_ITEMS), length(MAX_ITEMS + 1)),
            (MAX_ITEMS, MAX_ITEMS)
        );
    }

    #[test]
    fn checksums_word_counts_and_numbers_are_standard() {
        assert_eq!(
            sha256("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(words(" one\ntwo  three "), 3);
        assert_eq!(number_of(1e300).to_string(), "1e+300");
        assert_eq!(number_of(-2.0).to_string(), "-2");
        assert!(number_of(f64::NAN).is_null());
    }
}
