//! Rules about changes since a baseline: ChatGPT caches the tools until the user presses Refresh, and a reviewed plugin
//! keeps them until the next review.
//!
//! So a host may call tools that are gone, with arguments that the server no longer accepts. What breaks such a call is
//! an error. Texts that differ and members that results lost are warnings, and a new tool is a note.

use serde_json::Value;

use super::{
    Apps, ChatGpt, CheckProfile, CheckRule, CompanyKnowledge, DeepResearch, Error, Note,
    RuleVerdict, RuleViolation, ServerSurvey, Severity, Submission, Warning, corroborated, name,
    text,
};
use crate::rule::RuleSource;

const FROZEN: RuleSource = corroborated(
    "openai/tunnel-client#42, dbcls/togomcp#188: calls to tools months after they were gone",
    "2026-11-15",
);
const BREAKS: &[(CheckProfile, Severity)] = &[
    (ChatGpt, Error),
    (DeepResearch, Error),
    (CompanyKnowledge, Error),
    (Apps, Error),
    (Submission, Error),
];
const STALE: &[(CheckProfile, Severity)] =
    &[(ChatGpt, Warning), (Apps, Warning), (Submission, Warning)];

pub(super) const RULES: &[CheckRule] = &[
    CheckRule {
        id: "baseline/tools-kept",
        requirement: "every tool that a host knows is still there",
        severities: BREAKS,
        source: FROZEN,
        fix: "keep the old name answering, at least with a message, until every host has refreshed",
        evaluate: tools_kept,
    },
    CheckRule {
        id: "baseline/inputs-kept",
        requirement: "arguments that a host knows are still accepted, and no new one is required",
        severities: BREAKS,
        source: FROZEN,
        fix: "make new parameters optional, and keep old ones and their types",
        evaluate: inputs_kept,
    },
    CheckRule {
        id: "baseline/outputs-kept",
        requirement: "results keep the members that a host knows",
        severities: STALE,
        source: FROZEN,
        fix: "keep the members that were declared, or refresh every host",
        evaluate: outputs_kept,
    },
    CheckRule {
        id: "baseline/words-kept",
        requirement: "descriptions, hints and `_meta` are those that a host saw",
        severities: STALE,
        source: corroborated(
            "OpenAI's scan freezes them; a change needs a new one",
            "2026-11-15",
        ),
        fix: "press Refresh in ChatGPT, or scan and submit again",
        evaluate: words_kept,
    },
    CheckRule {
        id: "baseline/tools-new",
        requirement: "there is no tool that a host has not seen",
        severities: &[(ChatGpt, Note), (Submission, Note)],
        source: FROZEN,
        fix: "press Refresh in ChatGPT, or scan and submit again",
        evaluate: tools_new,
    },
];

const NO_BASELINE: RuleVerdict =
    RuleVerdict::Skipped("there is nothing to compare with; see `--baseline`");

/// Evaluates a rule for each tool of the baseline and the current tool of the same name.
fn for_each_pair(
    survey: &ServerSurvey,
    judge: impl Fn(&Value, &Value) -> Option<RuleViolation>,
) -> RuleVerdict {
    let Some(baseline) = &survey.baseline else {
        return NO_BASELINE;
    };
    let pairs = baseline
        .iter()
        .filter_map(|old| Some((old, survey.tool(text(old, "name"))?)));
    RuleVerdict::Evaluated(pairs.filter_map(|(old, new)| judge(old, new)).collect())
}

fn tools_kept(survey: &ServerSurvey) -> RuleVerdict {
    let Some(baseline) = &survey.baseline else {
        return NO_BASELINE;
    };
    let gone = baseline
        .iter()
        .filter(|old| survey.tool(text(old, "name")).is_none());
    RuleVerdict::Evaluated(
        gone.map(|old| RuleViolation::new(format!("the tool `{}` is gone", name(old))))
            .collect(),
    )
}

fn tools_new(survey: &ServerSurvey) -> RuleVerdict {
    let Some(baseline) = &survey.baseline else {
        return NO_BASELINE;
    };
    let known = |tool: &&Value| {
        baseline
            .iter()
            .any(|old| text(old, "name") == text(tool, "name"))
    };
    let new = survey.tools.iter().filter(|tool| !known(tool));
    RuleVerdict::Evaluated(
        new.map(|tool| RuleViolation::new(format!("the tool `{}` is new", name(tool))))
            .collect(),
    )
}

/// The properties of one schema of a tool, by name.
fn properties<'a>(tool: &'a Value, schema: &str) -> Vec<(&'a String, &'a Value)> {
    let found = tool
        .get(schema)
        .and_then(|schema| schema.get("properties"))
        .and_then(Value::as_object);
    found.into_iter().flatten().collect()
}

fn required<'a>(tool: &'a Value, schema: &str) -> Vec<&'a str> {
    let found = tool
        .get(schema)
        .and_then(|schema| schema.get("required"))
        .and_then(Value::as_array);
    found
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

fn inputs_kept(survey: &ServerSurvey) -> RuleVerdict {
    for_each_pair(survey, |old, new| {
        let (before, now) = (
            properties(old, "inputSchema"),
            properties(new, "inputSchema"),
        );
        let find = |name: &str| {
            now.iter()
                .find(|(found, _)| *found == name)
                .map(|(_, schema)| *schema)
        };
        let open = new
            .get("inputSchema")
            .and_then(|schema| schema.get("additionalProperties"))
            != Some(&Value::Bool(false));
        for (argument, schema) in before {
            match find(argument) {
                None if !open => {
                    return Some(changed(new, &format!("no longer takes `{argument}`")));
                }
                Some(found) if found.get("type") != schema.get("type") => {
                    return Some(changed(new, &format!("takes another type as `{argument}`")));
                }
                Some(found) if narrowed(schema, found) => {
                    return Some(changed(new, &format!("takes fewer values as `{argument}`")));
                }
                _ => {}
            }
        }
        let demanded = required(old, "inputSchema");
        let more = required(new, "inputSchema")
            .into_iter()
            .find(|name| !demanded.contains(name))?;
        Some(changed(new, &format!("now requires `{more}`")))
    })
}

/// Whether an `enum` lost a value or was added.
fn narrowed(old: &Value, new: &Value) -> bool {
    let listed = |schema: &Value| schema.get("enum").and_then(Value::as_array).cloned();
    match (listed(old), listed(new)) {
        (Some(before), Some(now)) => before.iter().any(|value| !now.contains(value)),
        (None, Some(_)) => true,
        _ => false,
    }
}

fn changed(tool: &Value, what: &str) -> RuleViolation {
    RuleViolation::new(format!("the tool `{}` {what}", name(tool)))
        .with_excerpt(tool.get("inputSchema").unwrap_or(&Value::Null))
}

fn outputs_kept(survey: &ServerSurvey) -> RuleVerdict {
    for_each_pair(survey, |old, new| {
        let now = properties(new, "outputSchema");
        let before = properties(old, "outputSchema");
        let lost = before
            .into_iter()
            .find(|(member, _)| !now.iter().any(|(found, _)| found == member));
        let (member, _) = lost?;
        Some(
            RuleViolation::new(format!(
                "the tool `{}` no longer declares `{member}` in what it returns",
                name(new)
            ))
            .with_excerpt(new.get("outputSchema").unwrap_or(&Value::Null)),
        )
    })
}

fn words_kept(survey: &ServerSurvey) -> RuleVerdict {
    for_each_pair(survey, |old, new| {
        let keys = [
            "title",
            "description",
            "annotations",
            "securitySchemes",
            "_meta",
        ];
        let changed: Vec<_> = keys
            .into_iter()
            .filter(|key| old.get(key) != new.get(key))
            .map(|key| format!("`{key}`"))
            .collect();
        (!changed.is_empty()).then(|| {
            RuleViolation::new(format!(
                "the tool `{}` has changed its {}",
                name(new),
                changed.join(", ")
            ))
        })
    })
}
