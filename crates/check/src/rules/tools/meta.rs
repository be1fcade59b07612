//! What tools say to hosts in particular: status texts, icons, schemes, keys of their own.

use serde_json::Value;

use super::super::{RuleVerdict, RuleViolation, ServerSurvey, at_path, for_each_tool, name};
use crate::report::Severity::Warning;

/// Judges the tools that have such a thing.
fn for_tools_having(
    seen: &ServerSurvey,
    has: impl Fn(&Value) -> bool,
    judge: impl Fn(&Value) -> Option<RuleViolation>,
) -> RuleVerdict {
    if !seen.tools.is_empty() && !seen.tools.iter().any(has) {
        return RuleVerdict::Skipped("no tool has any");
    }
    for_each_tool(seen, judge)
}

fn meta<'a>(tool: &'a Value, key: &str) -> Option<&'a Value> {
    at_path(tool, &["_meta", key])
}

const STATUS: [&str; 2] = [
    "openai/toolInvocation/invoking",
    "openai/toolInvocation/invoked",
];

pub(super) fn status_texts(seen: &ServerSurvey) -> RuleVerdict {
    let has = |tool: &Value| STATUS.iter().any(|key| meta(tool, key).is_some());
    for_tools_having(seen, has, |tool| {
        let wrong = |key: &&str| {
            let value = meta(tool, key);
            value.is_some_and(|value| value.as_str().is_none_or(|text| text.chars().count() > 64))
        };
        let key = STATUS.into_iter().find(wrong)?;
        let what = format!(
            "`{key}` of `{}` is no text of up to 64 characters",
            name(tool)
        );
        Some(RuleViolation::new(what).with_excerpt(meta(tool, key)?))
    })
}

pub(super) fn icons(seen: &ServerSurvey) -> RuleVerdict {
    for_tools_having(
        seen,
        |tool| tool.get("icons").is_some(),
        |tool| {
            let icons = tool.get("icons")?;
            let good = |icon: &Value| {
                let source = icon.get("src").and_then(Value::as_str).unwrap_or_default();
                source.starts_with("https://") || source.starts_with("data:")
            };
            let all = icons.as_array().is_some_and(|icons| icons.iter().all(good));
            (!all).then(|| {
                RuleViolation::new(format!(
                    "an icon of `{}` has no https or data address",
                    name(tool)
                ))
                .with_excerpt(icons)
            })
        },
    )
}

pub(super) fn security_schemes(seen: &ServerSurvey) -> RuleVerdict {
    let has = |tool: &Value| {
        tool.get("securitySchemes").is_some() || meta(tool, "securitySchemes").is_some()
    };
    for_tools_having(seen, has, |tool| {
        let (top, mirror) = (tool.get("securitySchemes"), meta(tool, "securitySchemes"));
        let found = top.or(mirror)?;
        let good = |scheme: &Value| match scheme.get("type").and_then(Value::as_str) {
            Some("noauth") => true,
            Some("oauth2") => scheme.get("scopes").is_none_or(|scopes| {
                scopes
                    .as_array()
                    .is_some_and(|all| all.iter().all(Value::is_string))
            }),
            _ => false,
        };
        let proper = found
            .as_array()
            .is_some_and(|schemes| !schemes.is_empty() && schemes.iter().all(good));
        if !proper {
            return Some(
                RuleViolation::new(format!(
                    "the security schemes of `{}` are not of the two kinds",
                    name(tool)
                ))
                .with_excerpt(found),
            );
        }
        (top != mirror).then(|| {
            let what = format!(
                "the security schemes of `{}` stand in one of the two places only",
                name(tool)
            );
            RuleViolation::new(what)
                .with_excerpt(found)
                .at_most(Warning)
        })
    })
}

pub(super) fn file_params(seen: &ServerSurvey) -> RuleVerdict {
    for_tools_having(
        seen,
        |tool| meta(tool, "openai/fileParams").is_some(),
        |tool| {
            let listed = meta(tool, "openai/fileParams")?;
            let known = |name: &Value| {
                let name = name.as_str().unwrap_or_default();
                at_path(tool, &["inputSchema", "properties", name]).is_some()
            };
            let good = listed
                .as_array()
                .is_some_and(|names| names.iter().all(known));
            (!good).then(|| {
                RuleViolation::new(format!(
                    "`openai/fileParams` of `{}` names what is no property",
                    name(tool)
                ))
                .with_excerpt(listed)
            })
        },
    )
}

pub(super) fn retired_keys(seen: &ServerSurvey) -> RuleVerdict {
    const RETIRED: [&str; 2] = ["openai/visibility", "openai/resultCanProduceWidget"];
    for_each_tool(seen, |tool| {
        let key = RETIRED.into_iter().find(|key| meta(tool, key).is_some())?;
        // The new key beside the old one serves hosts of both years.
        let replaced =
            key == "openai/visibility" && at_path(tool, &["_meta", "ui", "visibility"]).is_some();
        (!replaced).then(|| {
            RuleViolation::new(format!("the tool `{}` uses `{key}`", name(tool)))
                .with_excerpt(tool.get("_meta").unwrap_or(&Value::Null))
        })
    })
}

pub(super) fn result_size_key(seen: &ServerSurvey) -> RuleVerdict {
    const KEY: &str = "anthropic/maxResultSizeChars";
    for_tools_having(
        seen,
        |tool| meta(tool, KEY).is_some(),
        |tool| {
            let found = meta(tool, KEY)?;
            let good = found
                .as_u64()
                .is_some_and(|size| (1..=500_000).contains(&size));
            (!good).then(|| {
                RuleViolation::new(format!("`{KEY}` of `{}` is out of range", name(tool)))
                    .with_excerpt(found)
            })
        },
    )
}

pub(super) fn visibility(seen: &ServerSurvey) -> RuleVerdict {
    for_tools_having(
        seen,
        |tool| at_path(tool, &["_meta", "ui", "visibility"]).is_some(),
        |tool| {
            let found = at_path(tool, &["_meta", "ui", "visibility"])?;
            let known = |one: &Value| one == "model" || one == "app";
            let good = found
                .as_array()
                .is_some_and(|all| !all.is_empty() && all.iter().all(known));
            (!good).then(|| {
                RuleViolation::new(format!(
                    "the visibility of `{}` is not of `model` and `app`",
                    name(tool)
                ))
                .with_excerpt(found)
            })
        },
    )
}
