//! An id into a document, or into one part of a long one: the `fetch` tool, in exactly the shape
//! that hosts demand.

use std::collections::BTreeMap;
use std::sync::Arc;

use docent_mcp::{Answer, Context, Descriptor, Failure, Hints, Tool};
use docent_search::{DocId, Document, Error, Reader};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::parts;
use super::search::heading;
use crate::knowledge::{Knowledge, one_line};
use crate::settings::shorten;

/// The most characters of a title.
const MAX_TITLE_CHARS: usize = 512;

/// The most characters of one value in `metadata`.
const MAX_VALUE_CHARS: usize = 1_000;

/// The most characters of all names and values that a document brings to `metadata`. Together
/// with the text this stays below what Claude shows.
const MAX_METADATA_CHARS: usize = 8_000;

/// The names in `metadata` that are ours; a document's field of such a name gets a prefix, so
/// that no document can send a reader to another by a `next` of its own.
const OURS: [&str; 6] = ["date", "next", "part", "source", "total_chars", "truncated"];

/// The `fetch` tool.
pub struct Fetch(pub Arc<Knowledge>);

/// What `fetch` takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    id: String,
}

/// What `fetch` gives.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// The id that was asked for.
    pub id: String,
    /// What the document is called.
    pub title: String,
    /// Its text, or one part of it.
    pub text: String,
    /// An absolute http or https address, or an empty text.
    pub url: String,
    /// What else is known about it. Hosts want it left out rather than empty.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}

impl Fetch {
    /// The document or part of this id, if there is one.
    pub async fn read(&self, id: &str) -> Result<Option<Output>, Error> {
        let Some((document, number)) = self.find(id).await? else {
            return Ok(None);
        };
        let ranges = parts::cut(&document.text, self.0.max_chars);
        let Some(range) = ranges.get(number - 1) else {
            return Ok(None);
        };
        let mut metadata = metadata(&document);
        if ranges.len() > 1 {
            let total = document.text.chars().count();
            metadata.insert("total_chars".to_owned(), total.to_string());
            metadata.insert("part".to_owned(), format!("{number} of {}", ranges.len()));
        }
        if number < ranges.len() {
            metadata.insert("truncated".to_owned(), "true".to_owned());
            metadata.insert(
                "next".to_owned(),
                self.name(&document.id, number + 1).await?,
            );
        }
        let own_id = document.id.as_str();
        let title = one_line(&document.title, MAX_TITLE_CHARS);
        Ok(Some(Output {
            id: id.to_owned(),
            title: if title.is_empty() {
                own_id.to_owned()
            } else {
                title
            },
            text: document
                .text
                .get(range.clone())
                .unwrap_or_default()
                .to_owned(),
            url: self.0.address(own_id, document.url.as_deref()),
            metadata,
        }))
    }

    /// The document that an id stands for, and the number of the part, from 1. A document's own
    /// id wins over one that looks like a part of another.
    async fn find(&self, id: &str) -> Result<Option<(Arc<Document>, usize)>, Error> {
        if let Some(document) = self.document(id).await? {
            return Ok(Some((document, 1)));
        }
        let Some((id, number)) = parts::parse(id) else {
            return Ok(None);
        };
        Ok(self.document(&id).await?.map(|document| (document, number)))
    }

    async fn document(&self, id: &str) -> Result<Option<Arc<Document>>, Error> {
        let Ok(id) = DocId::parse(id) else {
            return Ok(None);
        };
        self.0.engine.fetch(id, Reader::everyone()).await
    }

    /// The id of a part: the first name that no document has.
    async fn name(&self, id: &DocId, number: usize) -> Result<String, Error> {
        let mut free = String::new();
        for name in parts::names(id.as_str(), number) {
            let taken = self.document(&name).await?.is_some();
            free = name;
            if !taken {
                break;
            }
        }
        Ok(free)
    }
}

/// What a document knows about itself, as text.
fn metadata(document: &Document) -> BTreeMap<String, String> {
    let ours = [
        ("date", document.date.as_deref()),
        ("source", Some(document.source.as_str())),
    ];
    let mut all: BTreeMap<String, String> = ours
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), one_line(value?, MAX_VALUE_CHARS))))
        .collect();
    let mut left = MAX_METADATA_CHARS;
    for (name, value) in &document.fields {
        let mut name = one_line(name, MAX_VALUE_CHARS);
        if OURS.contains(&name.as_str()) {
            name.insert_str(0, "field.");
        }
        let value = one_line(&value.to_string(), MAX_VALUE_CHARS);
        let cost = name.chars().count() + value.chars().count();
        if cost > left || all.contains_key(&name) {
            continue;
        }
        left -= cost;
        all.insert(name, value);
    }
    all.retain(|name, value| !name.is_empty() && !value.is_empty());
    all
}

impl Tool for Fetch {
    type Input = Input;
    type Output = Output;

    fn descriptor(&self) -> Descriptor {
        let description = "Use this when you have the id of a document from search and want to \
            read it. Returns its title, full text, url and metadata. A long document comes in \
            parts: while metadata.truncated is \"true\", fetch metadata.next to read on.";
        // The text travels twice, and quotation marks grow on the way.
        let most = (2 * self.0.max_chars + 30_000).min(500_000);
        Descriptor::new("fetch", "Read a document", description, Hints::READ_ONLY)
            .input_schema(json!({
                "type": "object",
                "properties": {"id": {"type": "string", "description": "Document id from search."}},
                "required": ["id"],
                "additionalProperties": false
            }))
            .output_schema(json!({
                "type": "object",
                "properties": {
                    "id": {"type": "string"},
                    "title": {"type": "string"},
                    "text": {"type": "string"},
                    "url": {"type": "string"},
                    "metadata": {"type": "object", "additionalProperties": {"type": "string"}}
                },
                "required": ["id", "title", "text", "url"]
            }))
            .meta("openai/toolInvocation/invoking", "Reading a document…")
            .meta("openai/toolInvocation/invoked", "Read a document")
            .meta("anthropic/maxResultSizeChars", most)
            .dual()
    }

    async fn call(&self, input: Input, _: Context) -> Result<Answer<Output>, Failure> {
        let found = self.read(&input.id).await?;
        found.map(Answer::new).ok_or_else(|| {
            Failure::caller(format!("no document with id `{}`", shorten(&input.id, 80)))
                .hint("ids come from `search`; search again")
        })
    }

    fn prose(&self, output: &Output) -> Option<String> {
        let known: Vec<_> = output
            .metadata
            .iter()
            .map(|(name, value)| format!("{name}: {value}\n"))
            .collect();
        let heading = heading(&output.title, &output.url, &output.id);
        Some(format!(
            "{}\n{}\n{}",
            heading.trim_end(),
            known.concat(),
            output.text
        ))
    }
}

#[cfg(test)]
mod tests {
    use docent_search::Value;

    use super::*;

    fn document(fields: Vec<(String, Value)>) -> Document {
        Document {
            id: DocId::parse("a").unwrap(),
            title: String::new(),
            text: String::new(),
            url: None,
            date: Some("2024-03-12".to_owned()),
            fields,
            source: "a.md".to_owned(),
            hash: String::new(),
        }
    }

    #[test]
    fn a_document_cannot_pass_its_fields_off_as_ours() {
        let text = |text: &str| Value::Text(text.to_owned());
        let fields = vec![
            ("next".to_owned(), text("evil")),
            ("date".to_owned(), text("never")),
            (
                "tags".to_owned(),
                Value::List(vec!["a".to_owned(), "b".to_owned()]),
            ),
            ("empty".to_owned(), text("")),
        ];
        let found = metadata(&document(fields));
        let found: Vec<_> = found
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        assert_eq!(
            found,
            [
                "date=2024-03-12",
                "field.date=never",
                "field.next=evil",
                "source=a.md",
                "tags=a, b"
            ]
        );
    }

    #[test]
    fn metadata_ends_at_its_bounds() {
        let value = |chars: usize| Value::Text("é".repeat(chars));
        let found = metadata(&document(vec![
            ("a".to_owned(), value(1_000)),
            ("b".to_owned(), value(1_001)),
        ]));
        assert_eq!(found["a"].chars().count(), 1_000);
        assert_eq!(found["b"].chars().count(), 1_000);
        // Each of these costs 1,000 characters with its name, so eight of them fit exactly.
        let many: Vec<_> = (0..9).map(|n| (n.to_string(), value(999))).collect();
        assert_eq!(metadata(&document(many)).len(), 2 + 8);
    }
}
