//! What every tool must say about itself.

use serde_json::Value;

use super::{Rule, Server, name};
use crate::report::{Finding, Severity, shown};

/// Every tool says by itself whether it only reads, whether it can destroy, and whether it acts on the open
/// world; a missing hint is taken for the worst.
pub(super) struct HintsExplicit;

const ID: &str = "tools/hints-explicit";
const HINTS: [&str; 3] = ["readOnlyHint", "destructiveHint", "openWorldHint"];

impl Rule for HintsExplicit {
    fn id(&self) -> &'static str {
        ID
    }

    fn check(&self, server: &Server) -> Vec<Finding> {
        server.tools.iter().filter_map(silent).collect()
    }
}

fn silent(tool: &Value) -> Option<Finding> {
    let annotations = tool.get("annotations").unwrap_or(&Value::Null);
    let is_missing = |hint: &&str| annotations.get(hint).and_then(Value::as_bool).is_none();
    let missing: Vec<_> = HINTS
        .into_iter()
        .filter(is_missing)
        .map(|hint| format!("`{hint}`"))
        .collect();
    (!missing.is_empty()).then(|| Finding {
        rule: ID,
        severity: Severity::Error,
        message: format!(
            "the tool `{}` has no true or false for {}",
            name(tool),
            missing.join(", ")
        ),
        evidence: shown(&annotations.to_string()),
        hint: "set all three hints in `annotations` to true or false",
        source: "OpenAI, plugins/reference",
        as_of: "2026-11-15",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(annotations: &Value, expect: &[&str]) {
        let server = Server {
            tools: vec![json!({"name": "search", "annotations": annotations})],
        };
        let found: Vec<_> = HintsExplicit
            .check(&server)
            .into_iter()
            .map(|finding| finding.message)
            .collect();
        let expect: Vec<_> = expect
            .iter()
            .map(|hints| format!("the tool `search` has no true or false for {hints}"))
            .collect();
        assert_eq!(found, expect);
    }

    #[test]
    fn all_three_hints_must_be_booleans() {
        check(
            &json!({"readOnlyHint": true, "destructiveHint": false, "openWorldHint": false}),
            &[],
        );
        check(
            &json!({"readOnlyHint": true, "openWorldHint": false}),
            &["`destructiveHint`"],
        );
        check(
            &json!({"readOnlyHint": "true", "destructiveHint": null, "openWorldHint": 0}),
            &["`readOnlyHint`, `destructiveHint`, `openWorldHint`"],
        );
        check(
            &json!(null),
            &["`readOnlyHint`, `destructiveHint`, `openWorldHint`"],
        );
    }

    #[test]
    fn a_tool_that_is_no_object_is_found_too() {
        let found = HintsExplicit.check(&Server {
            tools: vec![json!(5)],
        });
        assert!(found[0].message.starts_with("the tool `(no name)` has no"));
    }
}
