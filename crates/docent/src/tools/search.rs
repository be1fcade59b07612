//! A question into results: the `search` tool, in exactly the shape that hosts demand.

use std::sync::Arc;

use docent_mcp::{
    Answer, Context, EscapedJson, Failure, JsonObject, Tool, ToolAnnotations, ToolDescriptor,
};
use docent_search::{ParsedQuery, Query, ReaderIdentity, SearchError, SearchHit, grammar};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::about::{self, Outcome};
use crate::knowledge::Knowledge;

/// The `search` tool.
pub struct Search(pub Arc<Knowledge>);

/// What `search` takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    query: String,
}

/// What `search` gives. `results` is the only key that hosts accept.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// The results, best first.
    pub results: Vec<Found>,
}

/// One result.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Found {
    /// The id to fetch it by.
    pub id: String,
    /// What it is called.
    pub title: String,
    /// An absolute http or https address, or an empty text.
    pub url: String,
    /// The passage that fits best, at most 300 characters.
    pub text: String,
}

/// An answer with what was understood of its question.
#[derive(Debug)]
pub struct Answered {
    /// The results, the last of them about the search itself where there is something to say.
    pub output: Output,
    /// The question, taken apart.
    pub parsed: ParsedQuery,
    /// The fields that can be filtered by, as JSON.
    pub fields: Arc<str>,
}

impl Search {
    /// What a reader finds with a query, and what was understood of it.
    pub async fn results(
        &self,
        query: &str,
        reader: ReaderIdentity,
    ) -> Result<Answered, SearchError> {
        let (catalog, fields) = self.0.fields(&reader).await?;
        let parsed = grammar::parse(query, &catalog, (self.0.today)());
        let query = Query::parsed(&parsed, self.0.results, reader)
            .method(self.0.method)
            .diversity(self.0.diversity);
        let hits = self.0.engine.search(query).await?.hits;
        let remarks = about::search_note(&parsed, &catalog, Outcome::of(hits.len(), &self.0));
        let mut results: Vec<_> = hits.into_iter().map(|hit| self.result_item(hit)).collect();
        results.extend(remarks.map(|text| Found {
            id: about::ID.to_owned(),
            title: about::TITLE.to_owned(),
            url: String::new(),
            text,
        }));
        Ok(Answered {
            output: Output { results },
            parsed,
            fields,
        })
    }

    fn result_item(&self, hit: SearchHit) -> Found {
        let id = hit.id.as_str().to_owned();
        Found {
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
        let Knowledge {
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

impl Tool for Search {
    type Input = Input;
    type Output = Output;

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
            "properties": {"results": {"type": "array", "items": {
                "type": "object",
                "properties": {
                    "id": {"type": "string"},
                    "title": {"type": "string"},
                    "url": {"type": "string"},
                    "text": {"type": "string"}
                },
                "required": ["id", "title", "url"]
            }}},
            "required": ["results"]
        }))
        .meta("openai/toolInvocation/invoking", "Searching documents…")
        .meta("openai/toolInvocation/invoked", "Searched documents")
        .dual()
    }

    async fn call(&self, input: Input, context: Context) -> Result<Answer<Output>, Failure> {
        let reader = self.0.reader(context.caller());
        let answered = self.results(&input.query, reader).await?;
        let ids = context.touched(answered.output.results.iter().map(|found| &found.id));
        let understood = about::query_report(&answered.parsed);
        let answer = Answer::new(answered.output)
            .touched(ids)
            .meta_json(about::SEARCH_META, understood.into())
            .meta_json(about::FIELDS_META, answered.fields);
        Ok(about::with_unready(answer, &self.0))
    }

    fn json(&self, output: &Output) -> Option<EscapedJson> {
        let room = output
            .results
            .iter()
            .map(Found::json_capacity)
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

    fn prose(&self, output: &Output) -> Option<String> {
        if output.results.is_empty() {
            return Some("No results.".to_owned());
        }
        let blocks: Vec<_> = output.results.iter().map(Found::prose).collect();
        Some(blocks.join("\n\n---\n\n"))
    }
}

impl Found {
    /// About how many bytes its JSON has.
    fn json_capacity(&self) -> usize {
        self.id.len() + self.title.len() + self.url.len() + self.text.len() + 64
    }

    /// Its JSON behind what is there already.
    fn json(&self, data: EscapedJson) -> EscapedJson {
        let mut object = JsonObject::append_to(data);
        object.text("id", &self.id);
        object.text("title", &self.title);
        object.text("url", &self.url);
        object.text("text", &self.text);
        object.end()
    }

    /// The result for a reader. The id is there too, because `fetch` needs it.
    fn prose(&self) -> String {
        heading(&self.title, &self.url, &self.id) + &self.text
    }
}

/// The lines above a result or a document in prose.
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

    fn tool(title: &str, description: Option<&str>) -> Search {
        let settings = Settings {
            title: Some(title.to_owned()),
            description: description.map(str::to_owned),
            ..Settings::default()
        };
        Search(Arc::new(Knowledge::new(
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
        // Claude Code cuts descriptions after 2 KB; these are the longest that settings allow.
        let longest = tool(&"ü".repeat(120), Some(&"ü".repeat(500))).description();
        assert!(longest.len() < 2048, "{}", longest.len());
    }

    #[test]
    fn prose_has_one_block_a_result() {
        let found = |id: &str, url: &str| Found {
            id: id.to_owned(),
            title: format!("T{id}"),
            url: url.to_owned(),
            text: "words".to_owned(),
        };
        let output = Output {
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
            tool.prose(&Output {
                results: Vec::new()
            })
            .unwrap(),
            "No results."
        );
    }
}
