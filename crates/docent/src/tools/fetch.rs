//! The `fetch` tool: returns a document, or one part of a long document, in exactly the shape that hosts require.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use docent_mcp::{
    Answer, Context, EscapedJson, Failure, JsonObject, Tool, ToolAnnotations, ToolDescriptor,
};
use docent_search::{DocId, Document, ReaderIdentity, SearchError, passages};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::search::heading;
use super::text_facts::TextFacts;
use super::{document_parts, search_notes};
use crate::display_text::{one_line, shorten};
use crate::document_transform;
use crate::knowledge_base::KnowledgeBase;

/// The length limit of a title, in characters.
const MAX_TITLE_CHARS: usize = 512;

/// The length limit of one value in `metadata`, in characters.
const MAX_VALUE_CHARS: usize = 1_000;

/// The most characters of all fields of a document in `metadata`. Together with the text this stays below the limit
/// that Claude displays.
const MAX_METADATA_CHARS: usize = 8_000;

/// Reserved names in `metadata`. A document field with such a name gets the prefix `field.`, so that no document can
/// redirect a reader to another one with a forged `next`.
const RESERVED_NAMES: [&str; 8] = [
    "anchors",
    "date",
    "next",
    "part",
    "sha256",
    "source",
    "total_chars",
    "truncated",
];

/// The `fetch` tool of a knowledge base. The record tool and the widgets resolve ids through it too.
pub struct FetchTool(pub Arc<KnowledgeBase>);

/// Input of `fetch`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FetchInput {
    id: String,
}

/// Output of `fetch`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FetchOutput {
    /// The requested id.
    pub id: String,
    /// Title of the document.
    pub title: String,
    /// Text of the document, or one part of it.
    pub text: String,
    /// Absolute http or https URL, or an empty string if the document has none.
    pub url: String,
    /// Fields and other metadata of the document. Hosts require that it is omitted when it is empty.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}

impl FetchTool {
    /// Reads the document or part with this id; `None` when it does not exist or the reader may not see it.
    pub async fn read(
        &self,
        id: &str,
        reader: &ReaderIdentity,
    ) -> Result<Option<FetchOutput>, SearchError> {
        let Some(part) = self.part(id, reader).await? else {
            return if id == search_notes::ID {
                self.search_help(reader).await.map(Some)
            } else {
                Ok(None)
            };
        };
        let document = &part.document;
        let facts = self.0.facts.of(document);
        let mut metadata = metadata(document, &facts);
        let anchors = facts.anchors.within(&part.range);
        if !anchors.is_empty() {
            metadata.insert("anchors".to_owned(), join_within(&anchors, MAX_VALUE_CHARS));
        }
        if part.of > 1 {
            let total = document.text.chars().count();
            metadata.insert("total_chars".to_owned(), total.to_string());
            metadata.insert("part".to_owned(), format!("{} of {}", part.number, part.of));
        }
        if let Some(next) = &part.next {
            metadata.insert("truncated".to_owned(), "true".to_owned());
            metadata.insert("next".to_owned(), next.clone());
        }
        Ok(Some(FetchOutput {
            id: id.to_owned(),
            title: part.title(),
            text: part.text().to_owned(),
            url: self.0.address(document),
            metadata,
        }))
    }

    /// Resolves an id to a part; the id of a document means its first part.
    pub(super) async fn part(
        &self,
        id: &str,
        reader: &ReaderIdentity,
    ) -> Result<Option<DocumentPart>, SearchError> {
        let Some((document, number)) = self.resolve(id, reader).await? else {
            return Ok(None);
        };
        let ranges = document_parts::split(&document.text, self.0.max_chars);
        let Some(range) = ranges.get(number - 1).cloned() else {
            return Ok(None);
        };
        let next = if number < ranges.len() {
            Some(self.part_id(&document.id, number + 1, reader).await?)
        } else {
            None
        };
        Ok(Some(DocumentPart {
            document,
            range,
            number,
            of: ranges.len(),
            next,
        }))
    }

    /// The virtual document about the filters of the corpus, to which search notes refer.
    async fn search_help(&self, reader: &ReaderIdentity) -> Result<FetchOutput, SearchError> {
        let (catalog, _) = self.0.fields(reader).await?;
        let text = search_notes::document(&catalog);
        let end = document_parts::split(&text, self.0.max_chars)
            .into_iter()
            .next();
        Ok(FetchOutput {
            id: search_notes::ID.to_owned(),
            title: search_notes::TITLE.to_owned(),
            text: end
                .and_then(|range| text.get(range))
                .unwrap_or_default()
                .to_owned(),
            url: String::new(),
            metadata: BTreeMap::new(),
        })
    }

    /// Resolves an id to a document and a part number, starting at 1. An existing document id has precedence over its
    /// reading as a part or passage of another document.
    async fn resolve(
        &self,
        id: &str,
        reader: &ReaderIdentity,
    ) -> Result<Option<(Arc<Document>, usize)>, SearchError> {
        if let Some(document) = self.document(id, reader).await? {
            return Ok(Some((document, 1)));
        }
        if let Some((id, number)) = document_parts::parse_part_id(id) {
            return Ok(self
                .document(&id, reader)
                .await?
                .map(|document| (document, number)));
        }
        let Some((id, index)) = document_parts::parse_passage_id(id) else {
            return Ok(None);
        };
        let Some(document) = self.document(id, reader).await? else {
            return Ok(None);
        };
        // A passage resolves to the part in which it begins.
        let passage = passages(&document).into_iter().nth(index);
        let ranges = document_parts::split(&document.text, self.0.max_chars);
        let number = passage.and_then(|passage| {
            let holds = |range: &Range<usize>| range.contains(&passage.range.start);
            ranges.iter().position(holds)
        });
        Ok(number.map(|number| (document, number + 1)))
    }

    /// Resolves an id to a document and, for the id of a part or passage, the position in it.
    pub(super) async fn locate(
        &self,
        id: &str,
        reader: &ReaderIdentity,
    ) -> Result<Option<(Arc<Document>, Option<DocumentPosition>)>, SearchError> {
        if let Some(document) = self.document(id, reader).await? {
            return Ok(Some((document, None)));
        }
        if let Some((id, index)) = document_parts::parse_passage_id(id)
            && let Some(document) = self.document(id, reader).await?
        {
            return Ok(Some((document, Some(DocumentPosition::Passage(index)))));
        }
        let part = self.part(id, reader).await?;
        Ok(part.map(|part| {
            (
                part.document,
                Some(DocumentPosition::Byte(part.range.start)),
            )
        }))
    }

    async fn document(
        &self,
        id: &str,
        reader: &ReaderIdentity,
    ) -> Result<Option<Arc<Document>>, SearchError> {
        let Ok(id) = DocId::parse(id) else {
            return Ok(None);
        };
        self.0.engine.fetch(id, reader.clone()).await
    }

    /// The id of a part: the first candidate that is not the id of a document.
    async fn part_id(
        &self,
        id: &DocId,
        number: usize,
        reader: &ReaderIdentity,
    ) -> Result<String, SearchError> {
        let mut free = String::new();
        for name in document_parts::part_ids(id.as_str(), number) {
            let taken = self.document(&name, reader).await?.is_some();
            free = name;
            if !taken {
                break;
            }
        }
        Ok(free)
    }
}

/// A position in a document, from the id of a passage or part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DocumentPosition {
    /// A passage by its index in the document.
    Passage(usize),
    /// A byte offset in the text.
    Byte(usize),
}

/// One part of a document; most documents have only one.
pub(super) struct DocumentPart {
    pub document: Arc<Document>,
    range: Range<usize>,
    /// The part number, starting at 1.
    pub number: usize,
    /// The number of parts of the document.
    pub of: usize,
    /// The id of the next part, if there is one.
    pub next: Option<String>,
}

impl DocumentPart {
    pub(super) fn text(&self) -> &str {
        self.document
            .text
            .get(self.range.clone())
            .unwrap_or_default()
    }

    /// The title of the document, or its id when the title is empty.
    pub(super) fn title(&self) -> String {
        let title = one_line(&self.document.name(), MAX_TITLE_CHARS);
        if title.is_empty() {
            return self.document.id.as_str().to_owned();
        }
        title
    }
}

impl FetchOutput {
    fn json(&self) -> EscapedJson {
        let room = self.text.len() + self.text.len() / 16 + 512;
        let mut object = JsonObject::append_to(EscapedJson::with_capacity(room));
        object.text("id", &self.id);
        object.text("title", &self.title);
        object.text("text", &self.text);
        object.text("url", &self.url);
        if !self.metadata.is_empty() {
            object.json("metadata", &self.metadata);
        }
        object.end()
    }
}

/// The metadata of a document as strings: built-in members first, then its fields within the size limit.
fn metadata(document: &Document, facts: &TextFacts) -> BTreeMap<String, String> {
    let words = facts.words.to_string();
    let built_in = [
        ("date", document.date.as_deref()),
        ("sha256", Some(document_transform::content_hash(document))),
        ("source", Some(document.source.as_str())),
    ];
    let mut all: BTreeMap<String, String> = built_in
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), one_line(value?, MAX_VALUE_CHARS))))
        .collect();
    let mut left = MAX_METADATA_CHARS;
    for (name, value) in &document.fields {
        let mut name = one_line(name, MAX_VALUE_CHARS);
        if RESERVED_NAMES.contains(&name.as_str()) {
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
    // A field of the document has precedence over the computed language and word count.
    let computed = [("language", facts.language), ("word_count", Some(&words))];
    for (name, value) in computed {
        if let Some(value) = value {
            all.entry(name.to_owned())
                .or_insert_with(|| value.to_owned());
        }
    }
    all.retain(|name, value| !name.is_empty() && !value.is_empty());
    all
}

/// Joins as many whole names as fit into `most` characters.
fn join_within(names: &[&str], most: usize) -> String {
    let mut line = String::new();
    let mut left = most;
    for name in names {
        let cost = name.chars().count() + 2;
        let Some(rest) = left.checked_sub(cost) else {
            line.push_str(", …");
            break;
        };
        left = rest;
        if !line.is_empty() {
            line.push_str(", ");
        }
        line.push_str(name);
    }
    line
}

/// The size that is declared to hosts for an answer with text: the text is sent twice, as structured content and as
/// JSON text, and escaping makes it longer.
pub(super) fn max_answer_chars(knowledge: &KnowledgeBase) -> usize {
    (2 * knowledge.max_chars + 30_000).min(500_000)
}

impl Tool for FetchTool {
    type Input = FetchInput;
    type Output = FetchOutput;

    fn descriptor(&self) -> ToolDescriptor {
        let description = "Use this when you have the id of a document from search and want to \
            read it. Returns its title, full text, url and metadata. A long document comes in \
            parts: while metadata.truncated is \"true\", fetch metadata.next to read on.";
        ToolDescriptor::new(
            "fetch",
            "Read a document",
            description,
            ToolAnnotations::READ_ONLY,
        )
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
        .meta("anthropic/maxResultSizeChars", max_answer_chars(&self.0))
        .dual()
    }

    async fn call(
        &self,
        input: FetchInput,
        context: Context,
    ) -> Result<Answer<FetchOutput>, Failure> {
        let reader = self.0.reader(context.caller());
        let found = self.read(&input.id, &reader).await?;
        let answer = |output: FetchOutput| {
            let ids = context.touched([&output.id]);
            Answer::new(output).touched(ids)
        };
        found.map(answer).ok_or_else(|| {
            Failure::caller(format!("no document with id `{}`", shorten(&input.id, 80)))
                .hint("ids come from `search`; search again")
        })
    }

    fn json(&self, output: &FetchOutput) -> Option<EscapedJson> {
        Some(output.json())
    }

    fn prose(&self, output: &FetchOutput) -> Option<String> {
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
    use docent_search::DocumentValue;

    use super::*;

    fn document(fields: Vec<(String, DocumentValue)>) -> Document {
        Document {
            id: DocId::parse("a").unwrap(),
            title: String::new(),
            text: String::new(),
            url: None,
            date: Some("2024-03-12".to_owned()),
            fields,
            source: "a.md".to_owned(),
            hash: String::new(),
            readers: docent_search::AllowedReaders::Everyone,
        }
    }

    fn metadata_of(document: &Document) -> BTreeMap<String, String> {
        metadata(document, &TextFacts::of(document))
    }

    #[test]
    fn a_document_cannot_pass_its_fields_off_as_ours() {
        let text = |text: &str| DocumentValue::Text(text.to_owned());
        let fields = vec![
            ("next".to_owned(), text("evil")),
            ("date".to_owned(), text("never")),
            (
                "tags".to_owned(),
                DocumentValue::List(vec!["a".to_owned(), "b".to_owned()]),
            ),
            ("empty".to_owned(), text("")),
        ];
        let found = metadata_of(&document(fields));
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
                "tags=a, b",
                "word_count=0"
            ]
        );
    }

    #[test]
    fn the_fast_json_writer_equals_serde() {
        let mut output = FetchOutput {
            id: "a\"b".to_owned(),
            title: "T\\".to_owned(),
            text: "one\ntwo \u{1} é".to_owned(),
            url: String::new(),
            metadata: BTreeMap::new(),
        };
        assert_eq!(
            output.json().as_str(),
            serde_json::to_string(&output).unwrap()
        );
        output.metadata.insert("k\"".to_owned(), "v".to_owned());
        assert_eq!(
            output.json().as_str(),
            serde_json::to_string(&output).unwrap()
        );
    }

    #[test]
    fn metadata_ends_at_its_bounds() {
        let value = |chars: usize| DocumentValue::Text("é".repeat(chars));
        let found = metadata_of(&document(vec![
            ("a".to_owned(), value(1_000)),
            ("b".to_owned(), value(1_001)),
        ]));
        assert_eq!(found["a"].chars().count(), 1_000);
        assert_eq!(found["b"].chars().count(), 1_000);
        // Each field costs 1,000 characters including its name, so exactly eight fit.
        let many: Vec<_> = (0..9).map(|n| (n.to_string(), value(999))).collect();
        assert_eq!(metadata_of(&document(many)).len(), 3 + 8);
    }

    #[test]
    fn fields_have_precedence_over_computed_metadata() {
        let text = |text: &str| DocumentValue::Text(text.to_owned());
        let own = vec![
            ("language".to_owned(), text("x")),
            ("word_count".to_owned(), DocumentValue::Number(9.0)),
            ("sha256".to_owned(), text("no")),
        ];
        let mut written = document(own);
        written.hash = "00-11".to_owned();
        written.text =
            "The ferry crosses the sound each morning, and it comes back at night.".to_owned();
        let found = metadata_of(&written);
        let values =
            ["language", "word_count", "sha256", "field.sha256"].map(|name| found[name].as_str());
        assert_eq!(values, ["x", "9", "00", "no"]);
        written.fields.clear();
        let found = metadata_of(&written);
        assert_eq!(
            (found["language"].as_str(), found["word_count"].as_str()),
            ("en", "13")
        );
    }

    #[test]
    fn anchors_are_whole_and_end_at_their_bound() {
        let names = ["ab", "cd"];
        assert_eq!(join_within(&names, 8), "ab, cd");
        assert_eq!(join_within(&names, 7), "ab, …");
    }
}
