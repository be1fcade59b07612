//! The schemas of tools, and whether results keep them.

use serde_json::Value;

use super::super::{
    RuleVerdict, RuleViolation, ServerSurvey, for_calls, for_each_tool, name, text,
};
use crate::schema;
use crate::survey::{CallPurpose, SurveyedCall};
use crate::text::printable;

/// What is wrong with one schema of each tool.
fn flaws(seen: &ServerSurvey, key: &str, what: &str) -> RuleVerdict {
    let any = seen.tools.iter().any(|tool| tool.get(key).is_some());
    if !any && !seen.tools.is_empty() {
        return RuleVerdict::Skipped("no tool has such a schema");
    }
    for_each_tool(seen, |tool| {
        let found = tool.get(key)?;
        let flaws = schema::validate_schema(found);
        (!flaws.is_empty()).then(|| {
            RuleViolation::new(format!(
                "the {what} schema of `{}` is wrong: {}",
                name(tool),
                flaws.join("; ")
            ))
            .with_excerpt(found)
        })
    })
}

pub(super) fn input(seen: &ServerSurvey) -> RuleVerdict {
    flaws(seen, "inputSchema", "input")
}

pub(super) fn output(seen: &ServerSurvey) -> RuleVerdict {
    flaws(seen, "outputSchema", "output")
}

pub(super) fn input_object(seen: &ServerSurvey) -> RuleVerdict {
    for_each_tool(seen, |tool| {
        let found = tool.get("inputSchema")?;
        let good = found.get("type").is_some_and(|kind| kind == "object");
        (!good).then(|| {
            RuleViolation::new(format!(
                "the input schema of `{}` does not have the type `object`",
                name(tool)
            ))
            .with_excerpt(found)
        })
    })
}

pub(super) fn input_choices(seen: &ServerSurvey) -> RuleVerdict {
    for_each_tool(seen, |tool| {
        let found = tool.get("inputSchema")?;
        let choice = ["oneOf", "anyOf", "allOf"]
            .into_iter()
            .find(|key| found.get(key).is_some())?;
        Some(
            RuleViolation::new(format!(
                "the input schema of `{}` begins with `{choice}`",
                name(tool)
            ))
            .with_excerpt(found),
        )
    })
}

/// The lists that clients before 2026-07-28 get.
pub(super) fn output_object(seen: &ServerSurvey) -> RuleVerdict {
    if !seen.legacy {
        return RuleVerdict::Skipped("the server speaks 2026-07-28 only");
    }
    let tools = match &seen.tools_other_era {
        Some(other) if seen.modern => other,
        _ => &seen.tools,
    };
    let fault = |tool: &Value| {
        let found = tool.get("outputSchema")?;
        let good = found.get("type").is_some_and(|kind| kind == "object");
        (!good).then(|| {
            RuleViolation::new(format!(
                "the output schema of `{}` does not have the type `object`",
                name(tool)
            ))
            .with_excerpt(found)
        })
    };
    RuleVerdict::Evaluated(tools.iter().filter_map(fault).collect())
}

pub(super) fn output_declared(seen: &ServerSurvey) -> RuleVerdict {
    for_each_tool(seen, |tool| {
        let missing = !tool.get("outputSchema").is_some_and(Value::is_object);
        missing.then(|| {
            RuleViolation::new(format!(
                "the tool `{}` does not declare what it returns",
                name(tool)
            ))
            .with_excerpt(&name(tool))
        })
    })
}

pub(super) fn remote_refs(seen: &ServerSurvey) -> RuleVerdict {
    for_each_tool(seen, |tool| {
        let schemas = ["inputSchema", "outputSchema"]
            .into_iter()
            .filter_map(|key| tool.get(key));
        let link = schemas.flat_map(schema::remote_refs).next()?;
        Some(
            RuleViolation::new(format!(
                "a schema of `{}` refers to the network",
                name(tool)
            ))
            .with_excerpt(&link),
        )
    })
}

pub(super) fn parameter_descriptions(seen: &ServerSurvey) -> RuleVerdict {
    for_each_tool(seen, |tool| {
        let properties = tool.get("inputSchema")?.get("properties")?.as_object()?;
        let silent = |(_, schema): &(&String, &Value)| {
            let is_told = !text(schema, "description").trim().is_empty();
            // A link may lead to a part of the schema that says it.
            !is_told && schema.get("$ref").is_none()
        };
        let names: Vec<String> = properties
            .iter()
            .filter(silent)
            .take(20)
            .map(|(name, _)| printable(name, 60))
            .collect();
        (!names.is_empty()).then(|| {
            let all = names.join("`, `");
            RuleViolation::new(format!(
                "the tool `{}` does not say what `{all}` means",
                name(tool)
            ))
            .with_excerpt(tool.get("inputSchema").unwrap_or(&Value::Null))
        })
    })
}

pub(super) fn output_kept(seen: &ServerSurvey) -> RuleVerdict {
    let declares = |call: &SurveyedCall| {
        seen.tool(&call.tool)
            .and_then(|tool| tool.get("outputSchema"))
    };
    if !seen
        .calls
        .iter()
        .any(|call| declares(call).is_some() && call.success().is_some())
    {
        return RuleVerdict::Skipped("no tool with an output schema was called");
    }
    for_calls(seen, CallPurpose::GOOD, |call| {
        let declared = declares(call)?;
        let result = call.success()?;
        let Some(found) = result.get("structuredContent") else {
            let complete = result
                .get("resultType")
                .is_none_or(|kind| kind == "complete");
            return complete.then(|| {
                RuleViolation::new(format!(
                    "`{}` has an output schema, but returns no `structuredContent`",
                    call.tool
                ))
            });
        };
        let misfits = schema::validate_value(found, declared);
        (!misfits.is_empty()).then(|| {
            RuleViolation::new(format!(
                "`{}` does not keep its output schema: {}",
                call.tool,
                misfits.join("; ")
            ))
        })
    })
}
