//! The tools `search` and `fetch`, which deep research and company knowledge call by their exact
//! signatures: how they are declared, and what they really return.

mod live;
mod payload;

use serde_json::Value;

use super::{
    ChatGpt, CompanyKnowledge, DeepResearch, Fault, Note, RETRIEVAL, RETRIEVAL_SHOULD, Rule, Seen,
    Submission, Verdict, Warning, ours, owner, several,
};

const CONTRACT: &str =
    "OpenAI, api/docs/mcp: building MCP servers for plugins and API integrations";
const DATE: &str = "2026-11-15";

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "search-fetch/exist",
        demand: "there are tools called `search` and `fetch`",
        weights: RETRIEVAL,
        source: owner(CONTRACT, DATE),
        fix: "add both tools under exactly these names; developer mode does not need them",
        judge: exist,
    },
    Rule {
        id: "search-fetch/signatures",
        demand: "`search` takes one text called `query`, `fetch` takes one text called `id`, and neither takes more",
        weights: RETRIEVAL,
        source: owner(CONTRACT, DATE),
        fix: "declare one required string each; put filters into another tool",
        judge: signatures,
    },
    Rule {
        id: "search-fetch/read-only",
        demand: "both tools say that they only read",
        weights: RETRIEVAL_SHOULD,
        source: owner(CONTRACT, DATE),
        fix: "set `annotations.readOnlyHint` to true on both",
        judge: read_only,
    },
    Rule {
        id: "search-fetch/output-schema",
        demand: "both tools declare what they return",
        weights: &[
            (DeepResearch, Note),
            (CompanyKnowledge, Note),
            (Submission, Warning),
        ],
        source: owner("OpenAI, plugins/build/mcp-server", DATE),
        fix: "add `outputSchema` with `results`, or with `id`, `title`, `text` and `url`",
        judge: output_schema,
    },
    Rule {
        id: "search-fetch/finds",
        demand: "`search` finds something",
        weights: RETRIEVAL_SHOULD,
        source: owner(CONTRACT, DATE),
        fix: "check that documents are indexed; name a question with an answer by `--query`",
        judge: live::finds,
    },
    Rule {
        id: "search-fetch/one-text",
        demand: "a result holds exactly one text item, and that text is JSON",
        weights: RETRIEVAL,
        source: owner(CONTRACT, DATE),
        fix: "return `content: [{\"type\": \"text\", \"text\": \"<the JSON as a string>\"}]` and nothing else in it",
        judge: payload::one_text,
    },
    Rule {
        id: "search-fetch/structured",
        demand: "`structuredContent` is there, and equal to the JSON in the text",
        weights: RETRIEVAL,
        source: owner("OpenAI, apps-sdk/build/mcp-server, company knowledge", DATE),
        fix: "return one value twice: as `structuredContent`, and as JSON in the text item",
        judge: payload::structured,
    },
    Rule {
        id: "search-fetch/results-form",
        demand: "`search` returns `results`, each with `id`, `title` and `url` as texts",
        weights: RETRIEVAL,
        source: owner(CONTRACT, DATE),
        fix: "return `{\"results\": [{\"id\": \"…\", \"title\": \"…\", \"url\": \"…\"}]}`; an url that does not exist is `\"\"`, not null",
        judge: payload::results_form,
    },
    Rule {
        id: "search-fetch/results-alone",
        demand: "`results` is the only member of what `search` returns",
        weights: RETRIEVAL_SHOULD,
        source: owner(CONTRACT, DATE),
        fix: "move paging, notices and timing to `_meta`",
        judge: payload::results_alone,
    },
    Rule {
        id: "search-fetch/document-form",
        demand: "`fetch` returns `id`, `title`, `text` and `url` as texts, and `metadata` as an object of texts if at all",
        weights: RETRIEVAL,
        source: owner(CONTRACT, DATE),
        fix: "return all four as texts; leave `metadata` out when it is empty",
        judge: payload::document_form,
    },
    Rule {
        id: "search-fetch/url-absolute",
        demand: "an url is an http or https address, or empty",
        weights: RETRIEVAL,
        source: owner(CONTRACT, DATE),
        fix: "put addresses there that a person can open; internal keys belong in `id`",
        judge: payload::url_absolute,
    },
    Rule {
        id: "search-fetch/url-cites",
        demand: "results have urls, since ChatGPT cites only what has one",
        weights: RETRIEVAL_SHOULD,
        source: several(
            "inite-ai/inite-brain-service#574 and OpenAI's sample schema",
            "2026-11-15",
        ),
        fix: "give each document an address; a page on the same server will do",
        judge: payload::url_cites,
    },
    Rule {
        id: "search-fetch/url-opens",
        demand: "the urls of results open",
        weights: RETRIEVAL_SHOULD,
        source: owner(CONTRACT, DATE),
        fix: "serve the address, or return the one at which the document is served",
        judge: live::url_opens,
    },
    Rule {
        id: "search-fetch/ids-round-trip",
        demand: "every id that `search` returns can be fetched, and comes back unchanged",
        weights: RETRIEVAL,
        source: owner(CONTRACT, DATE),
        fix: "accept in `fetch` what `search` returned, and return the same `id`",
        judge: live::ids_round_trip,
    },
    Rule {
        id: "search-fetch/ids-unique",
        demand: "no id stands twice among the results of one search",
        weights: RETRIEVAL_SHOULD,
        source: owner(CONTRACT, DATE),
        fix: "group passages by document, or give each passage an id of its own",
        judge: live::ids_unique,
    },
    Rule {
        id: "search-fetch/text-full",
        demand: "`fetch` returns the text of the document",
        weights: RETRIEVAL_SHOULD,
        source: owner(CONTRACT, DATE),
        fix: "put the full text into `text`; a document without text should not be found",
        judge: live::text_full,
    },
    Rule {
        id: "search-fetch/finds-title",
        demand: "searching for the title of a document finds that document",
        weights: &[(DeepResearch, Warning), (CompanyKnowledge, Warning)],
        source: ours(
            "a search that cannot find its own titles finds little else",
            "2026-11-15",
        ),
        fix: "index titles, and cut words of questions and titles alike",
        judge: live::finds_title,
    },
    Rule {
        id: "search-fetch/same-twice",
        demand: "the same question gets the same results",
        weights: RETRIEVAL_SHOULD,
        source: ours(
            "deep research and company knowledge call again and again",
            "2026-11-15",
        ),
        fix: "break ties by id, and do not answer from half an index",
        judge: live::same_twice,
    },
    Rule {
        id: "search-fetch/empty-query",
        demand: "an empty question gets no results, or a message; not a failure",
        weights: RETRIEVAL_SHOULD,
        source: owner(CONTRACT, DATE),
        fix: "return `{\"results\": []}`, or `isError: true` with a sentence",
        judge: live::empty_query,
    },
    Rule {
        id: "search-fetch/odd-queries",
        demand: "quotes, brackets, other scripts, long and hostile questions are answered",
        weights: RETRIEVAL,
        source: owner(
            "MCP specification 2025-11-25, server/tools: servers MUST validate all inputs",
            "2025-11-25",
        ),
        fix: "treat the query as text: escape it, bound its length and nesting, answer with no results",
        judge: live::odd_queries,
    },
    Rule {
        id: "search-fetch/missing-argument",
        demand: "a call without its argument is refused with a message",
        weights: &[
            (DeepResearch, Warning),
            (CompanyKnowledge, Warning),
            (ChatGpt, Warning),
        ],
        source: owner(
            "MCP specification 2025-11-25, server/tools, error handling",
            "2025-11-25",
        ),
        fix: "answer with `isError: true` and name the argument that is missing",
        judge: live::missing_argument,
    },
    Rule {
        id: "search-fetch/unknown-id",
        demand: "an id that does not exist is answered with `isError` and a message",
        weights: RETRIEVAL_SHOULD,
        source: owner(
            "MCP specification 2025-11-25, server/tools, error handling",
            "2025-11-25",
        ),
        fix: "return `isError: true` with a sentence such as `no document with this id; search again`",
        judge: live::unknown_id,
    },
];

/// Whether both tools are there. One alone is a tool of that name for something else, such as one that fetches pages of
/// the web, and that the other is missing has been said.
fn has_both(seen: &Seen) -> bool {
    seen.tool("search").is_some() && seen.tool("fetch").is_some()
}

const NO_PAIR: Verdict = Verdict::Skipped("there is no pair of `search` and `fetch`");

fn exist(seen: &Seen) -> Verdict {
    let missing = ["search", "fetch"]
        .into_iter()
        .filter(|name| seen.tool(name).is_none());
    let names: Vec<String> = seen.tools.iter().map(super::name).take(20).collect();
    let fault = |name: &str| {
        let what =
            format!("deep research and company knowledge need a tool `{name}`, and there is none");
        Fault::new(what).seen(&names.join(", "))
    };
    Verdict::Judged(missing.map(fault).collect())
}

const PAIR: [(&str, &str); 2] = [("search", "query"), ("fetch", "id")];

fn signatures(seen: &Seen) -> Verdict {
    if !has_both(seen) {
        return NO_PAIR;
    }
    let tools = PAIR
        .into_iter()
        .filter_map(|(name, argument)| Some((name, argument, seen.tool(name)?)));
    Verdict::Judged(
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

/// What is wrong with one input schema.
fn signature(tool: &str, argument: &str, schema: &Value) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut wrong = |message: String, seen: &Value| faults.push(Fault::new(message).seen(seen));
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

fn read_only(seen: &Seen) -> Verdict {
    if !has_both(seen) {
        return NO_PAIR;
    }
    let tools = PAIR
        .into_iter()
        .filter_map(|(name, _)| Some((name, seen.tool(name)?)));
    let fault = |(name, tool): (&str, &Value)| {
        let annotations = tool.get("annotations").unwrap_or(&Value::Null);
        let good = annotations.get("readOnlyHint") == Some(&Value::Bool(true));
        (!good).then(|| {
            Fault::new(format!("`{name}` does not say that it only reads")).seen(annotations)
        })
    };
    Verdict::Judged(tools.filter_map(fault).collect())
}

fn output_schema(seen: &Seen) -> Verdict {
    if !has_both(seen) {
        return NO_PAIR;
    }
    let tools = PAIR
        .into_iter()
        .filter_map(|(name, _)| Some((name, seen.tool(name)?)));
    let silent = tools.filter(|(_, tool)| !tool.get("outputSchema").is_some_and(Value::is_object));
    Verdict::Judged(
        silent
            .map(|(name, _)| Fault::new(format!("`{name}` declares no `outputSchema`")))
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
