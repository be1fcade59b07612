//! The schemas of tools, and whether results keep them.

use serde_json::Value;

use super::super::{Fault, Seen, Verdict, name, of_calls, of_tools, text};
use crate::schema;
use crate::survey::{Call, Purpose};
use crate::text::shown;

/// What is wrong with one schema of each tool.
fn flaws(seen: &Seen, key: &str, what: &str) -> Verdict {
    let any = seen.tools.iter().any(|tool| tool.get(key).is_some());
    if !any && !seen.tools.is_empty() {
        return Verdict::Skipped("no tool has such a schema");
    }
    of_tools(seen, |tool| {
        let found = tool.get(key)?;
        let flaws = schema::flaws(found);
        (!flaws.is_empty()).then(|| {
            Fault::new(format!(
                "the {what} schema of `{}` is wrong: {}",
                name(tool),
                flaws.join("; ")
            ))
            .seen(found)
        })
    })
}

pub(super) fn input(seen: &Seen) -> Verdict {
    flaws(seen, "inputSchema", "input")
}

pub(super) fn output(seen: &Seen) -> Verdict {
    flaws(seen, "outputSchema", "output")
}

pub(super) fn input_object(seen: &Seen) -> Verdict {
    of_tools(seen, |tool| {
        let found = tool.get("inputSchema")?;
        let good = found.get("type").is_some_and(|kind| kind == "object");
        (!good).then(|| {
            Fault::new(format!(
                "the input schema of `{}` does not have the type `object`",
                name(tool)
            ))
            .seen(found)
        })
    })
}

pub(super) fn input_choices(seen: &Seen) -> Verdict {
    of_tools(seen, |tool| {
        let found = tool.get("inputSchema")?;
        let choice = ["oneOf", "anyOf", "allOf"]
            .into_iter()
            .find(|key| found.get(key).is_some())?;
        Some(
            Fault::new(format!(
                "the input schema of `{}` begins with `{choice}`",
                name(tool)
            ))
            .seen(found),
        )
    })
}

/// The lists that clients before 2026-07-28 get.
pub(super) fn output_object(seen: &Seen) -> Verdict {
    if !seen.legacy {
        return Verdict::Skipped("the server speaks 2026-07-28 only");
    }
    let tools = match &seen.tools_other_era {
        Some(other) if seen.modern => other,
        _ => &seen.tools,
    };
    let fault = |tool: &Value| {
        let found = tool.get("outputSchema")?;
        let good = found.get("type").is_some_and(|kind| kind == "object");
        (!good).then(|| {
            Fault::new(format!(
                "the output schema of `{}` does not have the type `object`",
                name(tool)
            ))
            .seen(found)
        })
    };
    Verdict::Judged(tools.iter().filter_map(fault).collect())
}

pub(super) fn output_declared(seen: &Seen) -> Verdict {
    of_tools(seen, |tool| {
        let missing = !tool.get("outputSchema").is_some_and(Value::is_object);
        missing.then(|| {
            Fault::new(format!(
                "the tool `{}` does not declare what it returns",
                name(tool)
            ))
            .seen(&name(tool))
        })
    })
}

pub(super) fn remote_refs(seen: &Seen) -> Verdict {
    of_tools(seen, |tool| {
        let schemas = ["inputSchema", "outputSchema"]
            .into_iter()
            .filter_map(|key| tool.get(key));
        let link = schemas.flat_map(schema::remote_refs).next()?;
        Some(
            Fault::new(format!(
                "a schema of `{}` refers to the network",
                name(tool)
            ))
            .seen(&link),
        )
    })
}

pub(super) fn parameter_descriptions(seen: &Seen) -> Verdict {
    of_tools(seen, |tool| {
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
            .map(|(name, _)| shown(name, 60))
            .collect();
        (!names.is_empty()).then(|| {
            let all = names.join("`, `");
            Fault::new(format!(
                "the tool `{}` does not say what `{all}` means",
                name(tool)
            ))
            .seen(tool.get("inputSchema").unwrap_or(&Value::Null))
        })
    })
}

pub(super) fn output_kept(seen: &Seen) -> Verdict {
    let declares = |call: &Call| {
        seen.tool(&call.tool)
            .and_then(|tool| tool.get("outputSchema"))
    };
    if !seen
        .calls
        .iter()
        .any(|call| declares(call).is_some() && call.success().is_some())
    {
        return Verdict::Skipped("no tool with an output schema was called");
    }
    of_calls(seen, Purpose::GOOD, |call| {
        let declared = declares(call)?;
        let result = call.success()?;
        let Some(found) = result.get("structuredContent") else {
            let complete = result
                .get("resultType")
                .is_none_or(|kind| kind == "complete");
            return complete.then(|| {
                Fault::new(format!(
                    "`{}` has an output schema, but returns no `structuredContent`",
                    call.tool
                ))
            });
        };
        let misfits = schema::misfits(found, declared);
        (!misfits.is_empty()).then(|| {
            Fault::new(format!(
                "`{}` does not keep its output schema: {}",
                call.tool,
                misfits.join("; ")
            ))
        })
    })
}
