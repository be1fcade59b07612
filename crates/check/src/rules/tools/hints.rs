//! Rules about the annotations `readOnlyHint`, `destructiveHint` and `openWorldHint`.
//!
//! Hosts decide by them whether a call needs the confirmation of the user; without them, every call asks. What a tool
//! really does cannot be seen from outside. Only its name can contradict `readOnlyHint`, by the verb that it begins
//! with.

use serde_json::Value;

use super::super::{RuleVerdict, RuleViolation, ServerSurvey, for_each_tool, name, text};

const HINTS: [&str; 3] = ["readOnlyHint", "destructiveHint", "openWorldHint"];

fn hint(tool: &Value, hint: &str) -> Option<bool> {
    tool.get("annotations")?.get(hint)?.as_bool()
}

pub(super) fn hints_explicit(survey: &ServerSurvey) -> RuleVerdict {
    for_each_tool(survey, |tool| {
        let missing: Vec<_> = HINTS
            .into_iter()
            .filter(|found| hint(tool, found).is_none())
            .map(|hint| format!("`{hint}`"))
            .collect();
        let annotations = tool.get("annotations").unwrap_or(&Value::Null);
        (!missing.is_empty()).then(|| {
            let what = format!(
                "the tool `{}` does not set {} to true or false",
                name(tool),
                missing.join(", ")
            );
            RuleViolation::new(what).with_excerpt(annotations)
        })
    })
}

pub(super) fn hints_either(survey: &ServerSurvey) -> RuleVerdict {
    for_each_tool(survey, |tool| {
        let says =
            hint(tool, "readOnlyHint") == Some(true) || hint(tool, "destructiveHint").is_some();
        let annotations = tool.get("annotations").unwrap_or(&Value::Null);
        (!says).then(|| {
            let what = format!(
                "the tool `{}` does not say whether it reads or destroys",
                name(tool)
            );
            RuleViolation::new(what).with_excerpt(annotations)
        })
    })
}

pub(super) fn hints_agree(survey: &ServerSurvey) -> RuleVerdict {
    for_each_tool(survey, |tool| {
        let both =
            hint(tool, "readOnlyHint") == Some(true) && hint(tool, "destructiveHint") == Some(true);
        both.then(|| {
            RuleViolation::new(format!(
                "the tool `{}` only reads and is destructive",
                name(tool)
            ))
            .with_excerpt(tool.get("annotations").unwrap_or(&Value::Null))
        })
    })
}

pub(super) fn hints_honest(survey: &ServerSurvey) -> RuleVerdict {
    const CHANGES: [&str; 12] = [
        "delete", "remove", "update", "create", "write", "send", "insert", "drop", "purge",
        "rename", "upload", "publish",
    ];
    for_each_tool(survey, |tool| {
        let first = text(tool, "name")
            .split(['_', '-', '.'])
            .next()
            .unwrap_or_default()
            .to_ascii_lowercase();
        let wrong = hint(tool, "readOnlyHint") == Some(true) && CHANGES.contains(&first.as_str());
        wrong.then(|| {
            RuleViolation::new(format!("the tool `{}` claims to only read", name(tool)))
                .with_excerpt(tool.get("annotations").unwrap_or(&Value::Null))
        })
    })
}
