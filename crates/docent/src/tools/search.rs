//! The `search` tool: full-text and semantic search with one query parameter, in exactly the shape that hosts require.

use std::sync::Arc;

use docent_mcp::{
    Answer, Context, EscapedJson, Failure, JsonObject, Tool, ToolAnnotations, ToolDescriptor,
};
use docent_search::{ParsedQuery, Query, ReaderIdentity, SearchError, SearchHit, grammar};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::search_notes::{self, ResultAvailability};
use crate::knowledge_base::KnowledgeBase;

/// The member with the passage, which hosts do not require.
const PASSAGE: &str = "text";

/// The `search` tool of a knowledge base. Its description names the corpus and its size.
pub struct SearchTool(pub Arc<KnowledgeBase>);

/// Input of `search`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchInput {
    query: String,
}

/// Output of `search`. `results` is the only key that hosts accept.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SearchOutput {
    /// Search results, best first.
    pub results: Vec<SearchResultItem>,
}

/// One search result.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct SearchResultItem {
    /// Id of the document or passage, for `fetch`.
    pub id: String,
    /// Title of the document.
    pub title: String,
    /// Absolute http or https URL, or an empty string if the document has none.
    pub url: String,
    /// Best matching passage, at most 300 characters.
    pub text: String,
}

/// The results of a search with the parsed query, for the report in `_meta`.
#[derive(Debug)]
pub struct SearchAnswer {
    /// The results. If something went wrong, the last one is a search note.
    pub output: SearchOutput,
    /// The parsed query with applied and ignored filters.
    pub parsed: ParsedQuery,
    /// The filterable fields as JSON.
    pub fields: Arc<str>,
}

impl SearchTool {
    /// Searches with the permissions of a reader.
    pub async fn results(
        &self,
        query: &str,
        reader: ReaderIdentity,
    ) -> Result<SearchAnswer, SearchError> {
        let (catalog, fields) = self.0.fields(&reader).await?;
        let parsed = grammar::parse(query, &catalog, (self.0.today)());
        let query = Query::parsed(&parsed, self.0.results, reader)
            .method(self.0.method)
            .diversity(self.0.diversity);
        let hits = self.0.engine.search(query).await?.hits;
        let note = search_notes::search_note(
            &parsed,
            &catalog,
            ResultAvailability::of(hits.len(), &self.0),
        );
        let mut results: Vec<_> = hits.into_iter().map(|hit| self.result_item(hit)).collect();
        results.extend(note.map(|text| SearchResultItem {
            id: search_notes::ID.to_owned(),
            title: search_notes::TITLE.to_owned(),
            url: String::new(),
            text,
        }));
        Ok(SearchAnswer {
            output: SearchOutput { results },
            parsed,
            fields,
        })
    }

    fn result_item(&self, hit: SearchHit) -> SearchResultItem {
        let id = hit.id.as_str().to_owned();
        SearchResultItem {
            url: self.0.address(&hit.document),
            title: if hit.title.is_empty() {
                id.clone()
            } else {
                hit.title
            },
            text: hit.snippet,
            id,
        }
    }

    fn description(&self) -> String {
        let KnowledgeBase {
            title,
            description,
            results,
            ..
        } = &*self.0;
        let about = description
            .as_ref()
            .map(|text| format!(" {text}"))
            .unwrap_or_default();
        format!(
            "Use this when the user asks about {title}.{about} Searches {} and returns up to \
             {results} results, best first, each with its id, title, url and a short passage. \
             Read a document in full with fetch.",
            self.0.size()
        )
    }
}

impl Tool for SearchTool {
    type Input = SearchInput;
    type Output = SearchOutput;

    fn descriptor(&self) -> ToolDescriptor {
        ToolDescriptor::new(
            "search",
            "Search documents",
            self.description(),
            ToolAnnotations::READ_ONLY,
        )
        .input_schema(json!({
            "type": "object",
            "properties": {"query": {"type": "string", "description": "Search query."}},
            "required": ["query"],
            "additionalProperties": false
        }))
        .output_schema(json!({
            "type": "object",
            "properties": {"results": {"type": "array", "items": SearchResultItem::schema()}},
            "required": ["results"]
        }))
        .meta("openai/toolInvocation/invoking", "Searching documents…")
        .meta("openai/toolInvocation/invoked", "Searched documents")
        .dual()
    }

    async fn call(
        &self,
        input: SearchInput,
        context: Context,
    ) -> Result<Answer<SearchOutput>, Failure> {
        let reader = self.0.reader(context.caller());
        let answered = self.results(&input.query, reader).await?;
        let ids = context.touched(answered.output.results.iter().map(|found| &found.id));
        let report = search_notes::query_report(&answered.parsed);
        let answer = Answer::new(answered.output)
            .touched(ids)
            .meta_json(search_notes::SEARCH_META, report.into())
            .meta_json(search_notes::FIELDS_META, answered.fields);
        Ok(search_notes::with_unready(answer, &self.0))
    }

    fn json(&self, output: &SearchOutput) -> Option<EscapedJson> {
        let room = output
            .results
            .iter()
            .map(SearchResultItem::json_capacity)
            .sum::<usize>()
            + 16;
        let mut data = EscapedJson::with_capacity(room);
        data.push(r#"{"results":["#);
        for (at, found) in output.results.iter().enumerate() {
            if at > 0 {
                data.push(",");
            }
            data = found.json(data);
        }
        data.push("]}");
        Some(data)
    }

    fn prose(&self, output: &SearchOutput) -> Option<String> {
        if output.results.is_empty() {
            return Some("No results.".to_owned());
        }
        let blocks: Vec<_> = output.results.iter().map(SearchResultItem::prose).collect();
        Some(blocks.join("\n\n---\n\n"))
    }
}

impl SearchResultItem {
    /// The members of a result in their order on the wire. The schema and the JSON are both made from them.
    fn members(&self) -> [(&'static str, &str); 4] {
        [
            ("id", &self.id),
            ("title", &self.title),
            ("url", &self.url),
            (PASSAGE, &self.text),
        ]
    }

    /// The JSON Schema of a result: texts, of which hosts require all but the passage.
    fn schema() -> Value {
        let names = Self::default().members().map(|(name, _)| name);
        let properties = names.map(|name| (name.to_owned(), json!({"type": "string"})));
        let required = names.into_iter().filter(|name| *name != PASSAGE);
        json!({
            "type": "object",
            "properties": Map::from_iter(properties),
            "required": required.collect::<Vec<_>>()
        })
    }

    /// Estimated size of the JSON in bytes, to allocate once.
    fn json_capacity(&self) -> usize {
        let texts = self.members().map(|(_, text)| text.len());
        texts.iter().sum::<usize>() + 64
    }

    /// Appends the JSON of the result to a buffer.
    fn json(&self, data: EscapedJson) -> EscapedJson {
        let mut object = JsonObject::append_to(data);
        for (name, text) in self.members() {
            object.text(name, text);
        }
        object.end()
    }

    /// The result as plain text, with the id that `fetch` needs.
    fn prose(&self) -> String {
        heading(&self.title, &self.url, &self.id) + &self.text
    }
}

/// The header lines of a result or document in plain text.
pub(crate) fn heading(title: &str, url: &str, id: &str) -> String {
    let url = if url.is_empty() {
        String::new()
    } else {
        format!("URL: {url}\n")
    };
    format!("Title: {title}\n{url}ID: {id}\n\n")
}

#[cfg(test)]
mod tests {
    use docent_search::MemoryEngine;

    use super::*;
    use crate::settings::Settings;

    fn tool(title: &str, description: Option<&str>) -> SearchTool {
        let settings = Settings {
            title: Some(title.to_owned()),
            description: description.map(str::to_owned),
            ..Settings::default()
        };
        SearchTool(Arc::new(KnowledgeBase::new(
            Arc::new(MemoryEngine::new()),
            &settings,
            "folder",
        )))
    }

    #[test]
    fn the_description_says_when_and_what_and_stays_within_two_kilobytes() {
        let text = tool(
            "the Parliament of Corrowin",
            Some("Speeches of both chambers"),
        )
        .description();
        assert_eq!(
            text,
            "Use this when the user asks about the Parliament of Corrowin. Speeches of both \
             chambers. Searches 0 documents and returns up to 10 results, best first, each with \
             its id, title, url and a short passage. Read a document in full with fetch."
        );
        // Claude Code truncates descriptions after 2 KB; these are the longest that settings allow.
        let longest = tool(&"ü".repeat(120), Some(&"ü".repeat(500))).description();
        assert!(longest.len() < 2048, "{}", longest.len());
    }

    #[test]
    fn prose_has_one_block_a_result() {
        let found = |id: &str, url: &str| SearchResultItem {
            id: id.to_owned(),
            title: format!("T{id}"),
            url: url.to_owned(),
            text: "words".to_owned(),
        };
        let output = SearchOutput {
            results: vec![found("1", "https://a.example/"), found("2", "")],
        };
        let tool = tool("x", None);
        assert_eq!(
            tool.prose(&output).unwrap(),
            "Title: T1\nURL: https://a.example/\nID: 1\n\nwords\n\n---\n\nTitle: T2\nID: 2\n\nwords"
        );
        let data = tool.json(&output).unwrap();
        assert_eq!(data.as_str(), serde_json::to_string(&output).unwrap());
        assert_eq!(
            tool.prose(&SearchOutput {
                results: Vec::new()
            })
            .unwrap(),
            "No results."
        );
    }
}
