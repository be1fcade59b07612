//! The `show_document` tool behind the reader widget: opens a document at the passage that matches best.
//! `widgets/src/payload.ts` declares the payload in `_meta`.

use std::sync::Arc;

use docent_mcp::{Answer, Context, Failure, Tool, ToolAnnotations, ToolAudience, ToolDescriptor};
use docent_search::{
    Document, MAX_PASSAGES, MatchHighlighter, Passage, ReaderIdentity, grammar, passages,
};
use docent_unicode::truncate_chars;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::document_view::{self, FieldValue, MAX_STRUCTURED_BYTES, OutlineHeading};
use super::fetch::{DocumentPosition, FetchTool};
use crate::display_text::{one_line, shorten};
use crate::knowledge_base::KnowledgeBase;
use crate::layout::{LayoutBlock, MarkdownLayout};

/// The name of the widget; its payload is the member `docent/document` of `_meta`.
pub const WIDGET: &str = "document";
const META: &str = "docent/document";

/// Number of passages in one answer, and how many of them precede the opened passage.
const PASSAGES: usize = 5;
const BEFORE: usize = 1;

/// Maximum number of matching passages in an answer.
const MAX_HITS: usize = 500;

/// Maximum number of fields, and of characters of each value.
const MAX_FIELDS: usize = 32;
const MAX_FIELD_CHARS: usize = 300;

/// Character budgets for the passage that the model reads, tried in this order until the output fits.
const BUDGETS: [usize; 4] = [1_800, 900, 300, 0];

/// The `show_document` tool of a knowledge base. The widget calls it too, to load more passages.
pub struct ShowDocumentTool(pub Arc<KnowledgeBase>);

/// Input of `show_document`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShowDocumentInput {
    id: String,
    query: Option<String>,
    passage: Option<usize>,
    first: Option<usize>,
}

/// Output of `show_document` for the model.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ShowDocumentOutput {
    /// Id of the document.
    id: String,
    /// Title of the document.
    title: String,
    /// Absolute http or https URL, or an empty string if the document has none.
    url: String,
    /// Date of the document as YYYY-MM-DD, or an empty string.
    date: String,
    /// Index of the opened passage; the first passage has index 0.
    passage: usize,
    /// Number of passages of the document.
    total: usize,
    /// Headings above the passage.
    path: String,
    /// Text of the passage.
    text: String,
}

/// The payload of the widget, sent in `_meta` so that the model does not read it.
#[derive(Debug, Serialize)]
struct DocumentView {
    id: String,
    title: String,
    url: String,
    source: String,
    date: String,
    query: String,
    fields: Vec<FieldValue>,
    total: usize,
    at: usize,
    hits: Vec<usize>,
    outline: Vec<OutlineHeading>,
    passages: Vec<PassageView>,
}

#[derive(Debug, Serialize)]
struct PassageView {
    index: usize,
    path: String,
    blocks: Vec<LayoutBlock>,
}

impl ShowDocumentTool {
    async fn view(
        &self,
        input: ShowDocumentInput,
        reader: &ReaderIdentity,
    ) -> Result<(DocumentView, ShowDocumentOutput), Failure> {
        let fetch = FetchTool(self.0.clone());
        let Some((document, start)) = fetch.locate(&input.id, reader).await? else {
            let message = format!("no document with id `{}`", shorten(&input.id, 80));
            return Err(Failure::caller(message).hint("ids come from `search`; search again"));
        };
        let query = input.query.unwrap_or_default();
        let (catalog, _) = self.0.fields(reader).await?;
        let words = grammar::parse(&query, &catalog, (self.0.today)()).text;
        let marker = MatchHighlighter::new(&document, &words);
        let all = passages(&document);
        let (mut hits, best) = document_view::matching_passages(&document, &all, &marker);
        hits.truncate(MAX_HITS);
        let start = input.passage.map(DocumentPosition::Passage).or(start);
        let at = start.map_or(best, |start| document_view::passage_at(&all, start));
        let first = input.first.unwrap_or_else(|| at.saturating_sub(BEFORE));
        let window: Vec<_> = all.iter().skip(first).take(PASSAGES).collect();
        let begin = window.first().map_or(0, |passage| passage.range.start);
        let mut layout = MarkdownLayout::at(&document.text, begin);
        let id = document.id.as_str();
        let view = DocumentView {
            id: id.to_owned(),
            title: document_view::title(&document),
            url: self.0.address_at(&document, at),
            source: one_line(&document.source, 300),
            date: document_view::day(&document),
            query,
            fields: document_view::fields(&document, MAX_FIELDS, MAX_FIELD_CHARS),
            total: all.len(),
            at,
            hits,
            outline: document_view::outline(&document.text, &all),
            passages: window
                .into_iter()
                .map(|passage| PassageView::new(&document, passage, &marker, &mut layout))
                .collect(),
        };
        let output = view.model_output(&document, all.get(at));
        Ok((view, output))
    }
}

impl PassageView {
    fn new(
        document: &Document,
        passage: &Passage,
        marker: &MatchHighlighter,
        layout: &mut MarkdownLayout,
    ) -> Self {
        let text = document.text.get(passage.range.clone()).unwrap_or_default();
        Self {
            index: passage.index,
            path: one_line(&passage.path, 300),
            blocks: layout.blocks(text, &marker.highlights(text)),
        }
    }
}

impl DocumentView {
    /// The structured content for the model, within the size limit of all hosts.
    fn model_output(&self, document: &Document, passage: Option<&Passage>) -> ShowDocumentOutput {
        let text = passage.and_then(|passage| document.text.get(passage.range.clone()));
        let path = passage.map_or("", |passage| passage.path.as_str());
        let within = |most: usize| ShowDocumentOutput {
            id: self.id.clone(),
            title: self.title.clone(),
            url: Some(self.url.clone())
                .filter(|url| url.len() <= 2_000)
                .unwrap_or_default(),
            date: self.date.clone(),
            passage: self.at,
            total: self.total,
            path: one_line(path, 300),
            text: truncate_chars(text.unwrap_or_default(), most).to_owned(),
        };
        let fits = |output: &ShowDocumentOutput| {
            serde_json::to_string(output).is_ok_and(|json| json.len() <= MAX_STRUCTURED_BYTES)
        };
        let mut outputs = BUDGETS.into_iter().map(within);
        outputs.find(fits).unwrap_or_else(|| within(0))
    }
}

impl Tool for ShowDocumentTool {
    type Input = ShowDocumentInput;
    type Output = ShowDocumentOutput;

    fn descriptor(&self) -> ToolDescriptor {
        let description = format!(
            "Use this when the user wants to see or read a document of {}. Opens a reader at the passage that \
             fits the query best, with matches marked, an outline and a citation to copy. To read a document \
             yourself, call fetch.",
            self.0.title
        );
        let place = |about: &str| json!({"type": "integer", "minimum": 0, "maximum": MAX_PASSAGES, "description": about});
        ToolDescriptor::new("show_document", "Show a document", description, ToolAnnotations::READ_ONLY)
            .input_schema(json!({
                "type": "object",
                "properties": {
                    "id": {"type": "string", "description": "Document id from search."},
                    "query": {"type": "string", "description": "Search words: the document opens at the best match, with all matches marked."},
                    "passage": place("Index of the passage to open; the first passage has index 0."),
                    "first": place("First passage to load; only the widget uses this.")
                },
                "required": ["id"],
                "additionalProperties": false
            }))
            .widget(WIDGET)
            // The widget calls the tool for previous and next passages.
            .audience(ToolAudience::Everyone)
            .status("Opening a document…", "Document opened")
    }

    async fn call(
        &self,
        input: ShowDocumentInput,
        context: Context,
    ) -> Result<Answer<ShowDocumentOutput>, Failure> {
        let reader = self.0.reader(context.caller());
        let (view, output) = self.view(input, &reader).await?;
        let ids = context.touched([&output.id]);
        let text = format!(
            "The user reads \"{}\" (id: {}), passage {} of {}.",
            output.title,
            output.id,
            output.passage + 1,
            output.total.max(1)
        );
        Ok(Answer::new(output)
            .touched(ids)
            .text(text)
            .meta(META, serde_json::to_value(&view)?))
    }
}
