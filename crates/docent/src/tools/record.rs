//! The record tool: returns a document as a typed JSON object with all of its fields, named by the settings.
//!
//! `fetch` has the fixed shape that hosts require, in which every value is a string; this tool keeps the types and
//! names of the data.

use std::sync::Arc;

use docent_mcp::{Answer, Context, Failure, Tool, ToolAnnotations, ToolDescriptor};
use serde_json::{Map, Value, json};

use super::fetch::{DocumentPart, FetchTool, max_answer_chars};
use super::plain_text;
use super::result_members::{self, BuiltInMember, FieldCharLimits};
use crate::display_text::{one_line, shorten};
use crate::document_transform;
use crate::knowledge_base::KnowledgeBase;

/// Character limits for the document fields in a record, the same as in `fetch`.
const FIELD_LIMITS: FieldCharLimits = FieldCharLimits {
    value: 1_000,
    all: 8_000,
};

/// The names of the built-in members. The last three exist for long documents, as in the `metadata` of `fetch`.
const BUILT_IN: [&str; 12] = [
    "document_id",
    "title",
    "text",
    "url",
    "date",
    "source",
    "word_count",
    "text_sha256",
    "source_sha256",
    PART,
    TRUNCATED,
    NEXT,
];

const PART: &str = "part";
const TRUNCATED: &str = "truncated";
const NEXT: &str = "next";

/// The tool that reads a record; the settings name it and its parameter.
pub struct RecordTool {
    /// The tool name from the settings.
    pub name: String,
    /// Resolves ids to documents and parts.
    pub fetch: FetchTool,
}

impl RecordTool {
    /// Creates the tool, if the settings name it.
    #[must_use]
    pub fn of(knowledge: &Arc<KnowledgeBase>) -> Option<Self> {
        Some(Self {
            name: knowledge.record.name.clone()?,
            fetch: FetchTool(knowledge.clone()),
        })
    }

    fn knowledge(&self) -> &KnowledgeBase {
        &self.fetch.0
    }

    fn id<'g>(&self, arguments: &'g Map<String, Value>) -> Result<&'g str, Failure> {
        let name = &self.knowledge().record.parameter;
        let known = format!("the one parameter is `{name}`, a text");
        let invalid = |message: String| Failure::caller(message).hint(known.clone());
        if let Some(other) = arguments.keys().find(|key| *key != name) {
            return Err(invalid(format!(
                "there is no parameter `{}`",
                shorten(other, 80)
            )));
        }
        match arguments.get(name) {
            Some(Value::String(id)) => Ok(id),
            None | Some(Value::Null) => Err(invalid(format!("`{name}` is missing"))),
            Some(_) => Err(invalid(format!("`{name}` is not a text"))),
        }
    }

    fn record(&self, part: &DocumentPart) -> Map<String, Value> {
        let document = &part.document;
        let id = document.id.as_str();
        let built_in_value = |name: &str| match name {
            "document_id" => json!(id),
            "title" => json!(part.title()),
            "text" => json!(part.text()),
            "url" => json!(self.knowledge().address(document)),
            "date" => result_members::date(document),
            "source" => json!(document.source),
            "word_count" => json!(result_members::words(&document.text)),
            "text_sha256" => json!(result_members::sha256(&document.text)),
            "source_sha256" => json!(document_transform::content_hash(document)),
            _ => Value::Null,
        };
        let named = &self.knowledge().record.result;
        let mut record =
            result_members::members(document, named, &BUILT_IN, FIELD_LIMITS, built_in_value);
        // These members are present whatever the settings name, because a model needs them to read the next part.
        if part.of > 1 {
            let part = format!("{} of {}", part.number, part.of);
            record.insert(PART.to_owned(), json!(part));
        }
        if let Some(next) = &part.next {
            record.insert(TRUNCATED.to_owned(), json!(true));
            record.insert(NEXT.to_owned(), json!(next));
        }
        record
    }

    fn description(&self) -> String {
        let (knowledge, record) = (self.knowledge(), &self.knowledge().record);
        let find = &knowledge.find;
        let noun = find.noun();
        let id = result_members::alias_of(&find.result, "document_id").unwrap_or("document_id");
        let finder = if find.enabled {
            find.name.as_str()
        } else {
            "search"
        };
        let parameter = &record.parameter;
        let title = one_line(&knowledge.title, 120);
        let avoid = if find.prefer {
            format!(
                "Do not use: built-in browsing to fetch these {noun}. This tool reads them directly.\n\n"
            )
        } else {
            String::new()
        };
        format!(
            "Fetch the complete text of one of the {noun} of {title} by its id, with all of its \
             fields.\n\n\
             Use this when: you have an id from {finder} and need the full text for detailed \
             analysis or quotation.\n\n{avoid}\
             Parameters:\n- {parameter}: the {id} of a result of {finder}\n\n\
             Limitations: only reads these {noun}. A long text comes in parts: while truncated is \
             true, pass next as {parameter} to read on.\n\n\
             Workflow: typically used after {finder}; a known id can be used directly."
        )
    }
}

/// The built-in members with their schemas, and whether each one is required.
fn built_in_members() -> Vec<BuiltInMember> {
    let kind = |name: &str| match name {
        "word_count" => json!({"type": "integer", "minimum": 0}),
        TRUNCATED => json!({"type": "boolean"}),
        // A document may have its own field `date` with a value of another type.
        "date" => json!({"type": ["string", "number", "boolean", "array"]}),
        _ => json!({"type": "string"}),
    };
    let sometimes = ["date", PART, TRUNCATED, NEXT];
    BUILT_IN
        .map(|name| BuiltInMember {
            name,
            schema: kind(name),
            is_required: !sometimes.contains(&name),
        })
        .to_vec()
}

impl Tool for RecordTool {
    type Input = Map<String, Value>;
    type Output = Value;

    fn descriptor(&self) -> ToolDescriptor {
        let (knowledge, record) = (self.knowledge(), &self.knowledge().record);
        let mut output = result_members::schema(&record.result, &built_in_members());
        let long = built_in_members()
            .into_iter()
            .skip_while(|own| own.name != PART);
        if let Some(properties) = output.get_mut("properties").and_then(Value::as_object_mut) {
            properties.extend(long.map(|own| (own.name.to_owned(), own.schema)));
        }
        let id = format!(
            "Unique identifier, obtained from the results of {}.",
            if knowledge.find.enabled {
                &knowledge.find.name
            } else {
                "search"
            }
        );
        ToolDescriptor::new(
            &self.name,
            &record.title,
            self.description(),
            ToolAnnotations::READ_ONLY,
        )
        .input_schema(json!({
            "type": "object",
            "properties": {(record.parameter.as_str()): {"type": "string", "description": id}},
            "required": [record.parameter],
            "additionalProperties": false,
        }))
        .output_schema(output)
        .meta("openai/toolInvocation/invoking", "Reading a record…")
        .meta("openai/toolInvocation/invoked", "Read a record")
        .meta("anthropic/maxResultSizeChars", max_answer_chars(knowledge))
    }

    async fn call(&self, input: Self::Input, context: Context) -> Result<Answer<Value>, Failure> {
        let id = self.id(&input)?;
        let reader = self.knowledge().reader(context.caller());
        let Some(part) = self.fetch.part(id, &reader).await? else {
            let find = &self.knowledge().find;
            let finder = if find.enabled {
                find.name.as_str()
            } else {
                "search"
            };
            let message = format!("no document with id `{}`", shorten(id, 80));
            return Err(
                Failure::caller(message).hint(format!("ids come from `{finder}`; search again"))
            );
        };
        let ids = context.touched([part.document.id.as_str()]);
        Ok(Answer::new(self.record(&part).into()).touched(ids))
    }

    fn prose(&self, output: &Value) -> Option<String> {
        Some(plain_text::lines(output))
    }
}

#[cfg(test)]
mod tests {
    use docent_search::MemoryEngine;

    use super::*;
    use crate::settings::{self, Settings};

    fn tool(settings: &Settings) -> RecordTool {
        let knowledge = KnowledgeBase::new(Arc::new(MemoryEngine::new()), settings, "folder");
        RecordTool::of(&Arc::new(knowledge)).unwrap()
    }

    #[test]
    fn no_settings_make_the_description_too_long_for_hosts() {
        let name = "y".repeat(64);
        let settings = Settings {
            title: Some("\u{1D518}".repeat(120)),
            find: settings::FindSettings {
                name: name.clone(),
                list: name.clone(),
                result: vec![settings::NameAlias {
                    name: "z".repeat(64),
                    source: "document_id".to_owned(),
                }],
                prefer: true,
                ..settings::FindSettings::default()
            },
            record: settings::RecordSettings {
                name: Some(name.clone()),
                parameter: name,
                ..settings::RecordSettings::default()
            },
            ..Settings::default()
        };
        let text = tool(&settings).description();
        // Claude Code truncates descriptions after 2 KB.
        assert!(text.len() < 2_048, "{}", text.len());
        assert!(text.contains("Do not use: "));
    }

    #[test]
    fn without_a_name_there_is_no_tool() {
        let knowledge = KnowledgeBase::new(
            Arc::new(MemoryEngine::new()),
            &Settings::default(),
            "folder",
        );
        assert!(RecordTool::of(&Arc::new(knowledge)).is_none());
    }
}
