//! Rules about the schemas of tools, and about results that do not conform to them.
//!
//! A model builds its arguments from the input schema, and strict clients validate results against the output schema.
//! Both are judged with the validator of `schema`, which overlooks a fault rather than report one that is none.

use serde_json::Value;

use super::super::{
    RuleVerdict, RuleViolation, ServerSurvey, for_calls, for_each_tool, name, text,
};
use crate::schema;
use crate::survey::{CallPurpose, SurveyedCall};
use crate::text::printable;

/// Validates one schema of each tool.
fn flaws(survey: &ServerSurvey, key: &str, what: &str) -> RuleVerdict {
    let any = survey.tools.iter().any(|tool| tool.get(key).is_some());
    if !any && !survey.tools.is_empty() {
        return RuleVerdict::Skipped("no tool has such a schema");
    }
    for_each_tool(survey, |tool| {
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

pub(super) fn input(survey: &ServerSurvey) -> RuleVerdict {
    flaws(survey, "inputSchema", "input")
}

pub(super) fn output(survey: &ServerSurvey) -> RuleVerdict {
    flaws(survey, "outputSchema", "output")
}

pub(super) fn input_object(survey: &ServerSurvey) -> RuleVerdict {
    for_each_tool(survey, |tool| {
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

pub(super) fn input_choices(survey: &ServerSurvey) -> RuleVerdict {
    for_each_tool(survey, |tool| {
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

/// Checks the tools that legacy clients get, since 2026-07-28 allows other types at the root.
pub(super) fn output_object(survey: &ServerSurvey) -> RuleVerdict {
    if !survey.legacy {
        return RuleVerdict::Skipped("the server speaks 2026-07-28 only");
    }
    let tools = match &survey.tools_other_era {
        Some(other) if survey.modern => other,
        _ => &survey.tools,
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

pub(super) fn output_declared(survey: &ServerSurvey) -> RuleVerdict {
    for_each_tool(survey, |tool| {
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

pub(super) fn remote_refs(survey: &ServerSurvey) -> RuleVerdict {
    for_each_tool(survey, |tool| {
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

pub(super) fn parameter_descriptions(survey: &ServerSurvey) -> RuleVerdict {
    for_each_tool(survey, |tool| {
        let properties = tool.get("inputSchema")?.get("properties")?.as_object()?;
        let silent = |(_, schema): &(&String, &Value)| {
            let is_described = !text(schema, "description").trim().is_empty();
            // The target of a `$ref` may have the description.
            !is_described && schema.get("$ref").is_none()
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

pub(super) fn output_kept(survey: &ServerSurvey) -> RuleVerdict {
    let declares = |call: &SurveyedCall| {
        survey
            .tool(&call.tool)
            .and_then(|tool| tool.get("outputSchema"))
    };
    if !survey
        .calls
        .iter()
        .any(|call| declares(call).is_some() && call.success().is_some())
    {
        return RuleVerdict::Skipped("no tool with an output schema was called");
    }
    for_calls(survey, CallPurpose::GOOD, |call| {
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
                "a result of `{}` does not conform to its output schema: {}",
                call.tool,
                misfits.join("; ")
            ))
        })
    })
}
