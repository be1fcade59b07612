//! The `list_fields` tool: the filterable fields of the corpus with their types, ranges and most frequent values.

use std::sync::Arc;

use docent_mcp::{Answer, Context, Failure, Tool, ToolAnnotations, ToolDescriptor};
use docent_search::Catalog;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::plain_text;
use crate::display_text::shorten;
use crate::fields;
use crate::knowledge_base::KnowledgeBase;

/// Maximum number of values per field in a list of all fields.
const MAX_VALUES: usize = 10;

/// The `list_fields` tool of a knowledge base. It reads the cached catalog, without a search.
pub struct ListFieldsTool(pub Arc<KnowledgeBase>);

/// Input of `list_fields`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListFieldsInput {
    field: Option<String>,
}

impl ListFieldsTool {
    fn list(&self, catalog: &Catalog, requested: Option<&str>) -> Result<Value, Failure> {
        let today = (self.0.today)();
        let entries: Vec<_> = match requested {
            Some(name) => {
                let field = catalog.field(name).ok_or_else(|| unknown(catalog, name))?;
                vec![fields::entry(field, catalog, usize::MAX, today)]
            }
            None => {
                let all = catalog.fields.iter();
                all.map(|field| fields::entry(field, catalog, MAX_VALUES, today))
                    .collect()
            }
        };
        Ok(json!({"documents": catalog.documents, "fields": entries, "more": catalog.more}))
    }
}

fn unknown(catalog: &Catalog, name: &str) -> Failure {
    let known: Vec<_> = catalog
        .fields
        .iter()
        .map(|field| format!("`{}`", shorten(&field.name, 64)))
        .collect();
    let meant = catalog.nearest(name);
    let meant = meant.map(|field| format!("did you mean `{}`? ", field.name));
    let message = format!("there is no field `{}`", shorten(name, 80));
    let hint = format!(
        "{}fields are {}",
        meant.unwrap_or_default(),
        known.join(", ")
    );
    Failure::caller(message).hint(hint)
}

impl Tool for ListFieldsTool {
    type Input = ListFieldsInput;
    type Output = Value;

    fn descriptor(&self) -> ToolDescriptor {
        let description = "Use this when you want to narrow a search and need to know what the \
            documents can be filtered by. Returns every field with its type, the number of \
            documents that have it, its range or most frequent values with their counts, and a \
            filter that can stand in the query of search. Pass field to see all known values of \
            one field.";
        let value = json!({"type": "object",
            "properties": {"value": {"type": "string"}, "count": {"type": "integer"}},
            "required": ["value", "count"]});
        let end = json!({"type": ["number", "string"]});
        let kinds = ["keyword", "text", "list", "number", "date", "boolean"];
        let field = json!({"type": "object",
            "properties": {
                "name": {"type": "string"},
                "type": {"type": "string", "enum": kinds},
                "documents": {"type": "integer"},
                "from": end,
                "to": end,
                "values": {"type": "array", "items": value},
                "more": {"type": "boolean"},
                "filter": {"type": "string"}
            },
            "required": ["name", "type", "documents"]});
        ToolDescriptor::new("list_fields", "List fields", description, ToolAnnotations::READ_ONLY)
            .input_schema(json!({
                "type": "object",
                "properties": {"field": {"type": "string", "description": "Name of a single field to list, with all of its known values."}},
                "additionalProperties": false
            }))
            .output_schema(json!({
                "type": "object",
                "properties": {
                    "documents": {"type": "integer"},
                    "fields": {"type": "array", "items": field},
                    "more": {"type": "boolean"}
                },
                "required": ["documents", "fields", "more"]
            }))
            .meta("openai/toolInvocation/invoking", "Listing fields…")
            .meta("openai/toolInvocation/invoked", "Listed fields")
    }

    async fn call(
        &self,
        input: ListFieldsInput,
        context: Context,
    ) -> Result<Answer<Value>, Failure> {
        let reader = self.0.reader(context.caller());
        let (catalog, _) = self.0.fields(&reader).await?;
        self.list(&catalog, input.field.as_deref()).map(Answer::new)
    }

    fn prose(&self, output: &Value) -> Option<String> {
        Some(plain_text::lines(output))
    }
}
