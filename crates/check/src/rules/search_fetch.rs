//! Rules about the tools `search` and `fetch`, which deep research and company knowledge call by their exact
//! signatures: their declarations, and what they return.
//!
//! Declarations are judged only where both tools exist. One alone is usually an unrelated tool of that name, and
//! `search-fetch/exist` reports the missing one.

mod behavior;
mod payload;

use serde_json::Value;

use super::{
    ChatGpt, CheckRule, CompanyKnowledge, DeepResearch, Note, RETRIEVAL, RETRIEVAL_SHOULD,
    RuleVerdict, RuleViolation, ServerSurvey, Submission, Warning, corroborated, official,
    own_measure,
};

const CONTRACT: &str =
    "OpenAI, api/docs/mcp: building MCP servers for plugins and API integrations";
const DATE: &str = "2026-11-15";

pub(super) const RULES: &[CheckRule] = &[
    CheckRule {
        id: "search-fetch/exist",
        requirement: "there are tools called `search` and `fetch`",
        severities: RETRIEVAL,
        source: official(CONTRACT, DATE),
        fix: "add both tools under exactly these names; developer mode does not need them",
        evaluate: exist,
    },
    CheckRule {
        id: "search-fetch/signatures",
        requirement: "`search` takes one text called `query`, `fetch` takes one text called `id`, and neither takes more",
        severities: RETRIEVAL,
        source: official(CONTRACT, DATE),
        fix: "declare one required string each; put filters into another tool",
        evaluate: signatures,
    },
    CheckRule {
        id: "search-fetch/read-only",
        requirement: "both tools say that they only read",
        severities: RETRIEVAL_SHOULD,
        source: official(CONTRACT, DATE),
        fix: "set `annotations.readOnlyHint` to true on both",
        evaluate: read_only,
    },
    CheckRule {
        id: "search-fetch/output-schema",
        requirement: "both tools declare what they return",
        severities: &[
            (DeepResearch, Note),
            (CompanyKnowledge, Note),
            (Submission, Warning),
        ],
        source: official("OpenAI, plugins/build/mcp-server", DATE),
        fix: "add `outputSchema` with `results`, or with `id`, `title`, `text` and `url`",
        evaluate: output_schema,
    },
    CheckRule {
        id: "search-fetch/finds",
        requirement: "`search` finds something",
        severities: RETRIEVAL_SHOULD,
        source: official(CONTRACT, DATE),
        fix: "check that documents are indexed; name a question with an answer by `--query`",
        evaluate: behavior::finds,
    },
    CheckRule {
        id: "search-fetch/one-text",
        requirement: "a result holds exactly one text item, and that text is JSON",
        severities: RETRIEVAL,
        source: official(CONTRACT, DATE),
        fix: "return `content: [{\"type\": \"text\", \"text\": \"<the JSON as a string>\"}]` and nothing else in it",
        evaluate: payload::one_text,
    },
    CheckRule {
        id: "search-fetch/structured",
        requirement: "`structuredContent` is there, and equal to the JSON in the text",
        severities: RETRIEVAL,
        source: official("OpenAI, apps-sdk/build/mcp-server, company knowledge", DATE),
        fix: "return one value twice: as `structuredContent`, and as JSON in the text item",
        evaluate: payload::structured,
    },
    CheckRule {
        id: "search-fetch/results-form",
        requirement: "`search` returns `results`, each with `id`, `title` and `url` as texts",
        severities: RETRIEVAL,
        source: official(CONTRACT, DATE),
        fix: "return `{\"results\": [{\"id\": \"…\", \"title\": \"…\", \"url\": \"…\"}]}`; an url that does not exist is `\"\"`, not null",
        evaluate: payload::results_form,
    },
    CheckRule {
        id: "search-fetch/results-alone",
        requirement: "`results` is the only member of what `search` returns",
        severities: RETRIEVAL_SHOULD,
        source: official(CONTRACT, DATE),
        fix: "move paging, notices and timing to `_meta`",
        evaluate: payload::results_alone,
    },
    CheckRule {
        id: "search-fetch/document-form",
        requirement: "`fetch` returns `id`, `title`, `text` and `url` as texts, and `metadata` as an object of texts if at all",
        severities: RETRIEVAL,
        source: official(CONTRACT, DATE),
        fix: "return all four as texts; leave `metadata` out when it is empty",
        evaluate: payload::document_form,
    },
    CheckRule {
        id: "search-fetch/url-absolute",
        requirement: "an url is an http or https address, or empty",
        severities: RETRIEVAL,
        source: official(CONTRACT, DATE),
        fix: "put addresses there that a person can open; internal keys belong in `id`",
        evaluate: payload::url_absolute,
    },
    CheckRule {
        id: "search-fetch/url-cites",
        requirement: "results have urls, since ChatGPT cites only what has one",
        severities: RETRIEVAL_SHOULD,
        source: corroborated(
            "inite-ai/inite-brain-service#574 and OpenAI's sample schema",
            "2026-11-15",
        ),
        fix: "give each document an address; a page on the same server will do",
        evaluate: payload::url_cites,
    },
    CheckRule {
        id: "search-fetch/url-opens",
        requirement: "the urls of results open",
        severities: RETRIEVAL_SHOULD,
        source: official(CONTRACT, DATE),
        fix: "serve the address, or return the one at which the document is served",
        evaluate: behavior::url_opens,
    },
    CheckRule {
        id: "search-fetch/ids-round-trip",
        requirement: "every id that `search` returns can be fetched, and comes back unchanged",
        severities: RETRIEVAL,
        source: official(CONTRACT, DATE),
        fix: "accept in `fetch` what `search` returned, and return the same `id`",
        evaluate: behavior::ids_round_trip,
    },
    CheckRule {
        id: "search-fetch/ids-unique",
        requirement: "no id stands twice among the results of one search",
        severities: RETRIEVAL_SHOULD,
        source: official(CONTRACT, DATE),
        fix: "group passages by document, or give each passage an id of its own",
        evaluate: behavior::ids_unique,
    },
    CheckRule {
        id: "search-fetch/text-full",
        requirement: "`fetch` returns the text of the document",
        severities: RETRIEVAL_SHOULD,
        source: official(CONTRACT, DATE),
        fix: "put the full text into `text`; a document without text should not be found",
        evaluate: behavior::text_full,
    },
    CheckRule {
        id: "search-fetch/finds-title",
        requirement: "searching for the title of a document finds that document",
        severities: &[(DeepResearch, Warning), (CompanyKnowledge, Warning)],
        source: own_measure(
            "a search that cannot find its own titles finds little else",
            "2026-11-15",
        ),
        fix: "index titles, and tokenize queries and titles the same way",
        evaluate: behavior::finds_title,
    },
    CheckRule {
        id: "search-fetch/same-twice",
        requirement: "the same question gets the same results",
        severities: RETRIEVAL_SHOULD,
        source: own_measure(
            "deep research and company knowledge call again and again",
            "2026-11-15",
        ),
        fix: "break ties by id, and do not answer from an incomplete index",
        evaluate: behavior::same_twice,
    },
    CheckRule {
        id: "search-fetch/empty-query",
        requirement: "an empty question gets no results, or a message; not a failure",
        severities: RETRIEVAL_SHOULD,
        source: official(CONTRACT, DATE),
        fix: "return `{\"results\": []}`, or `isError: true` with a sentence",
        evaluate: behavior::empty_query,
    },
    CheckRule {
        id: "search-fetch/odd-queries",
        requirement: "quotes, brackets, other scripts, long and hostile questions are answered",
        severities: RETRIEVAL,
        source: official(
            "MCP specification 2025-11-25, server/tools: servers MUST validate all inputs",
            "2025-11-25",
        ),
        fix: "treat the query as text: escape it, bound its length and nesting, answer with no results",
        evaluate: behavior::odd_queries,
    },
    CheckRule {
        id: "search-fetch/missing-argument",
        requirement: "a call without its argument is refused with a message",
        severities: &[
            (DeepResearch, Warning),
            (CompanyKnowledge, Warning),
            (ChatGpt, Warning),
        ],
        source: official(
            "MCP specification 2025-11-25, server/tools, error handling",
            "2025-11-25",
        ),
        fix: "answer with `isError: true` and name the argument that is missing",
        evaluate: behavior::missing_argument,
    },
    CheckRule {
        id: "search-fetch/unknown-id",
        requirement: "an id that does not exist is answered with `isError` and a message",
        severities: RETRIEVAL_SHOULD,
        source: official(
            "MCP specification 2025-11-25, server/tools, error handling",
            "2025-11-25",
        ),
        fix: "return `isError: true` with a sentence such as `no document with this id; search again`",
        evaluate: behavior::unknown_id,
    },
];

/// Whether both tools exist. One alone is usually an unrelated tool of that name, such as one that fetches web pages,
/// and `search-fetch/exist` already reports the missing one.
fn has_both(survey: &ServerSurvey) -> bool {
    survey.tool("search").is_some() && survey.tool("fetch").is_some()
}

const NO_PAIR: RuleVerdict = RuleVerdict::Skipped("there is no pair of `search` and `fetch`");

fn exist(survey: &ServerSurvey) -> RuleVerdict {
    let missing = ["search", "fetch"]
        .into_iter()
        .filter(|name| survey.tool(name).is_none());
    let names: Vec<String> = survey.tools.iter().map(super::name).take(20).collect();
    let fault = |name: &str| {
        let what =
            format!("deep research and company knowledge need a tool `{name}`, and there is none");
        RuleViolation::new(what).with_excerpt(&names.join(", "))
    };
    RuleVerdict::Evaluated(missing.map(fault).collect())
}

const PAIR: [(&str, &str); 2] = [("search", "query"), ("fetch", "id")];

fn signatures(survey: &ServerSurvey) -> RuleVerdict {
    if !has_both(survey) {
        return NO_PAIR;
    }
    let tools = PAIR
        .into_iter()
        .filter_map(|(name, argument)| Some((name, argument, survey.tool(name)?)));
    RuleVerdict::Evaluated(
        tools
            .flat_map(|(name, argument, tool)| {
                signature(
                    name,
                    argument,
                    tool.get("inputSchema").unwrap_or(&Value::Null),
                )
            })
            .collect(),
    )
}

/// The violations of the required signature in one input schema.
fn signature(tool: &str, argument: &str, schema: &Value) -> Vec<RuleViolation> {
    let mut faults = Vec::new();
    let mut wrong = |message: String, found: &Value| {
        faults.push(RuleViolation::new(message).with_excerpt(found));
    };
    let part = |name: &str| schema.get(name).unwrap_or(&Value::Null);
    let properties = part("properties");
    let property = properties.get(argument).unwrap_or(&Value::Null);
    if property.get("type").is_none_or(|kind| kind != "string") {
        wrong(
            format!("`{tool}` does not take a text called `{argument}`"),
            property,
        );
    }
    let required = part("required").as_array();
    if !required.is_some_and(|names| names.iter().any(|name| name == argument)) {
        wrong(
            format!("`{argument}` is not required by `{tool}`"),
            part("required"),
        );
    }
    let others = properties
        .as_object()
        .into_iter()
        .flat_map(|all| all.keys())
        .filter(|name| *name != argument);
    let others: Vec<String> = others.cloned().collect();
    if !others.is_empty() {
        wrong(
            format!("`{tool}` takes more than `{argument}`"),
            &Value::from(others),
        );
    }
    faults
}

fn read_only(survey: &ServerSurvey) -> RuleVerdict {
    if !has_both(survey) {
        return NO_PAIR;
    }
    let tools = PAIR
        .into_iter()
        .filter_map(|(name, _)| Some((name, survey.tool(name)?)));
    let fault = |(name, tool): (&str, &Value)| {
        let annotations = tool.get("annotations").unwrap_or(&Value::Null);
        let good = annotations.get("readOnlyHint") == Some(&Value::Bool(true));
        (!good).then(|| {
            RuleViolation::new(format!("`{name}` does not say that it only reads"))
                .with_excerpt(annotations)
        })
    };
    RuleVerdict::Evaluated(tools.filter_map(fault).collect())
}

fn output_schema(survey: &ServerSurvey) -> RuleVerdict {
    if !has_both(survey) {
        return NO_PAIR;
    }
    let tools = PAIR
        .into_iter()
        .filter_map(|(name, _)| Some((name, survey.tool(name)?)));
    let silent = tools.filter(|(_, tool)| !tool.get("outputSchema").is_some_and(Value::is_object));
    RuleVerdict::Evaluated(
        silent
            .map(|(name, _)| RuleViolation::new(format!("`{name}` declares no `outputSchema`")))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(schema: &Value, expect: &[&str]) {
        let found = signature("search", "query", schema);
        let found: Vec<_> = found.into_iter().map(|fault| fault.message).collect();
        assert_eq!(found, expect, "{schema}");
    }

    #[test]
    fn every_departure_from_the_signature_is_found() {
        let no_text = "`search` does not take a text called `query`";
        let not_required = "`query` is not required by `search`";
        let more = "`search` takes more than `query`";
        check(
            &json!({"properties": {"query": {"type": "string"}}, "required": ["query"]}),
            &[],
        );
        check(&json!(null), &[no_text, not_required]);
        check(
            &json!({"properties": {"query": {"type": "string"}}}),
            &[not_required],
        );
        check(
            &json!({"properties": {"query": {"type": ["string", "null"]}}, "required": ["query"]}),
            &[no_text],
        );
        check(
            &json!({"properties": {"query": {"type": "string"}, "limit": {}}, "required": ["query"]}),
            &[more],
        );
        check(
            &json!({"properties": {"q": {"type": "string"}}, "required": ["q"]}),
            &[no_text, not_required, more],
        );
    }
}
