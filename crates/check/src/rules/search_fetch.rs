//! The tools `search` and `fetch`, which deep research and company knowledge call by their exact signatures.

use serde_json::Value;

use super::{Rule, Server};
use crate::report::{Finding, Severity, shown};

/// `search` takes one text called `query`, `fetch` takes one text called `id`, and neither takes more.
pub(super) struct Signatures;

const ID: &str = "search-fetch/signatures";

impl Rule for Signatures {
    fn id(&self) -> &'static str {
        ID
    }

    fn check(&self, server: &Server) -> Vec<Finding> {
        let tool = |name: &str| {
            server
                .tools
                .iter()
                .find(|tool| tool.get("name").is_some_and(|found| found == name))
        };
        let (search, fetch) = (tool("search"), tool("fetch"));
        if search.is_none() && fetch.is_none() {
            return vec![finding(
                Severity::Warning,
                "there are no tools `search` and `fetch`, so deep research and company knowledge will not use this server".to_owned(),
                String::new(),
            )];
        }
        [("search", "query", search), ("fetch", "id", fetch)]
            .into_iter()
            .flat_map(|(name, argument, tool)| match tool {
                Some(tool) => signature(
                    name,
                    argument,
                    tool.get("inputSchema").unwrap_or(&Value::Null),
                ),
                None => vec![finding(
                    Severity::Error,
                    format!("there is no tool `{name}`"),
                    String::new(),
                )],
            })
            .collect()
    }
}

/// What is wrong with one input schema.
fn signature(tool: &str, argument: &str, schema: &Value) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut wrong = |message: String, seen: &Value| {
        findings.push(finding(Severity::Error, message, shown(&seen.to_string())));
    };
    let part = |name: &str| schema.get(name).unwrap_or(&Value::Null);
    if part("type") != "object" {
        wrong(
            format!("the input schema of `{tool}` does not have the type `object`"),
            part("type"),
        );
    }
    let properties = part("properties");
    let property = properties.get(argument).unwrap_or(&Value::Null);
    if property.get("type").is_none_or(|kind| kind != "string") {
        wrong(
            format!("`{tool}` does not take a text called `{argument}`"),
            property,
        );
    }
    let is_required = part("required")
        .as_array()
        .is_some_and(|names| names.iter().any(|name| name == argument));
    if !is_required {
        wrong(
            format!("`{argument}` is not required by `{tool}`"),
            part("required"),
        );
    }
    let others = properties.as_object().map(|all| {
        all.keys()
            .filter(|name| *name != argument)
            .cloned()
            .collect()
    });
    let others: Vec<String> = others.unwrap_or_default();
    if !others.is_empty() {
        wrong(
            format!("`{tool}` takes more than `{argument}`"),
            &Value::from(others),
        );
    }
    findings
}

fn finding(severity: Severity, message: String, evidence: String) -> Finding {
    Finding {
        rule: ID,
        severity,
        message,
        evidence,
        hint: "declare `search` with one required string `query` and `fetch` with one required string `id`; put filters into another tool",
        source: "OpenAI, api/docs/mcp",
        as_of: "2026-11-15",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn messages(tools: &[Value]) -> Vec<String> {
        let found = Signatures.check(&Server {
            tools: tools.to_vec(),
        });
        found.into_iter().map(|finding| finding.message).collect()
    }

    fn tool(name: &str, schema: &Value) -> Value {
        json!({"name": name, "inputSchema": schema})
    }

    fn good(name: &str, argument: &str) -> Value {
        tool(
            name,
            &json!({"type": "object", "properties": {argument: {"type": "string"}}, "required": [argument], "additionalProperties": false}),
        )
    }

    #[test]
    fn the_exact_signatures_pass() {
        assert_eq!(
            messages(&[
                good("search", "query"),
                good("other", "x"),
                good("fetch", "id")
            ]),
            [""; 0]
        );
    }

    #[test]
    fn missing_tools_are_found() {
        assert_eq!(
            messages(&[good("search", "query")]),
            ["there is no tool `fetch`"]
        );
        assert_eq!(
            messages(&[good("fetch", "id")]),
            ["there is no tool `search`"]
        );
        let neither = Signatures.check(&Server {
            tools: vec![json!(5), json!({"name": 7})],
        });
        assert_eq!((neither.len(), neither[0].severity), (1, Severity::Warning));
    }

    #[test]
    fn every_departure_is_found() {
        let check = |schema: Value, expect: &[&str]| {
            let found = messages(&[tool("search", &schema), good("fetch", "id")]);
            assert_eq!(found, expect, "{schema}");
        };
        let no_object = "the input schema of `search` does not have the type `object`";
        let no_text = "`search` does not take a text called `query`";
        let not_required = "`query` is not required by `search`";
        let more = "`search` takes more than `query`";
        check(json!(null), &[no_object, no_text, not_required]);
        check(
            json!({"type": "object", "properties": {"query": {"type": "string"}}}),
            &[not_required],
        );
        check(
            json!({"type": "object", "properties": {"query": {"type": ["string", "null"]}}, "required": ["query"]}),
            &[no_text],
        );
        check(
            json!({"type": "object", "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}}, "required": ["query"]}),
            &[more],
        );
        check(
            json!({"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}),
            &[no_text, not_required, more],
        );
        check(
            json!({"properties": {"query": {"type": "string"}}, "required": ["query"]}),
            &[no_object],
        );
    }
}
