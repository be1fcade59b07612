//! The `find` tool: search with typed filters, facets, sorting and pagination.
//!
//! Hosts allow `search` only one parameter. `find` is for hosts that can use more, and its parameters are generated
//! from the fields of the documents.

mod description;
mod find_answer;
mod find_query;
mod parameters;
mod schema;

use std::sync::Arc;

use docent_mcp::{Answer, Context, Failure, Tool, ToolAnnotations, ToolDescriptor};
use docent_search::{Filter, ParsedQuery, Query, ReaderIdentity, grammar};
use serde_json::{Map, Value};

use self::find_query::FindQuery;
use self::parameters::FindParameters;
use super::{plain_text, search_notes};
use crate::knowledge_base::KnowledgeBase;

/// The answer size that is declared to Claude Code; a hundred results have up to 200,000 characters.
const MAX_ANSWER_CHARS: usize = 500_000;

/// The `find` tool of a knowledge base. Its name, list name and members come from the settings.
pub struct FindTool(pub Arc<KnowledgeBase>);

impl FindTool {
    /// Validates the arguments, searches, and builds the answer.
    async fn answer(
        &self,
        arguments: &Map<String, Value>,
        context: &Context,
    ) -> Result<Answer<Value>, Failure> {
        let reader = self.0.reader(context.caller());
        let (catalog, _) = self.0.fields(&reader).await?;
        let parameters = FindParameters::new(&catalog, &self.0.find);
        let question = find_query::read(arguments, &parameters, &catalog)?;
        let mut parsed = grammar::parse(&question.query, &catalog, (self.0.today)());
        let report = search_notes::query_report(&parsed);
        let ignored = std::mem::take(&mut parsed.ignored);
        add_filters(&mut parsed, &question)?;
        let query = self.query(&parsed, &question, reader);
        let found = self.0.engine.search(query).await?;
        let ids = context.touched(found.hits.iter().map(|hit| hit.id.as_str()));
        let mut answer = find_answer::answer(&self.0, &question, &found, parameters.offset);
        if !ignored.is_empty() {
            parsed.ignored = ignored;
            // Ignored filters are reported even when there are results.
            let note = search_notes::search_note(
                &parsed,
                &catalog,
                search_notes::ResultAvailability::Some,
            );
            answer.extend(note.map(|text| (find_answer::NOTE.to_owned(), text.into())));
        }
        let answer = Answer::new(Value::Object(answer)).touched(ids);
        let answer = answer.meta_json(search_notes::SEARCH_META, report.into());
        Ok(search_notes::with_unready(answer, &self.0))
    }

    fn query(&self, parsed: &ParsedQuery, question: &FindQuery, reader: ReaderIdentity) -> Query {
        let facets = question.facets.iter().map(|(_, field)| field.clone());
        Query::parsed(parsed, question.limit, reader)
            .method(self.0.method)
            .diversity(self.0.diversity)
            .offset(question.offset)
            .sort(question.sort)
            .facets(facets.collect())
            .count_total()
            .excerpts()
    }
}

/// Combines the filters of the parameters with those of the query (AND). Without words and filters, the query lists
/// all documents.
fn add_filters(parsed: &mut ParsedQuery, question: &FindQuery) -> Result<(), Failure> {
    let mut all: Vec<Filter> = parsed.filter.take().into_iter().collect();
    all.extend(question.filters.iter().cloned());
    let is_blank = ["", "*"].contains(&parsed.text.trim())
        && parsed.phrases.is_empty()
        && parsed.excluded.is_empty();
    if is_blank {
        parsed.text.clear();
    }
    parsed.filter = match all.len() {
        0 if !is_blank => None,
        1 => all.pop(),
        _ => Some(Filter::All(all)),
    };
    let checked = parsed.filter.as_ref().map_or(Ok(()), Filter::check);
    checked.map_err(|error| Failure::caller(error.to_string()).hint("simplify the filter"))
}

impl Tool for FindTool {
    type Input = Map<String, Value>;
    type Output = Value;

    fn descriptor(&self) -> ToolDescriptor {
        let catalog = self.0.catalog();
        let find = &self.0.find;
        let parameters = FindParameters::new(&catalog, find);
        let noun = find.noun();
        let description = description::description(&self.0, &catalog, &parameters);
        ToolDescriptor::new(
            &find.name,
            &find.title,
            description,
            ToolAnnotations::READ_ONLY,
        )
        .input_schema(schema::input(&parameters, find))
        .output_schema(schema::output(find))
        .meta("openai/toolInvocation/invoking", status("Searching", noun))
        .meta("openai/toolInvocation/invoked", status("Searched", noun))
        .meta("anthropic/maxResultSizeChars", MAX_ANSWER_CHARS)
    }

    async fn call(&self, input: Self::Input, context: Context) -> Result<Answer<Value>, Failure> {
        self.answer(&input, &context).await
    }

    fn prose(&self, output: &Value) -> Option<String> {
        Some(plain_text::lines(output))
    }
}

/// The status text that a host shows while the tool runs, at most 64 characters.
fn status(doing: &str, noun: &str) -> String {
    let noun = if noun.len() > 48 { "documents" } else { noun };
    format!("{doing} {noun}")
}
