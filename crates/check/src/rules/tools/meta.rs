//! Rules about the host-specific metadata of tools: status texts, icons, security schemes, `_meta` keys.
//!
//! The keys are optional, so most of these rules are skipped where no tool has the key in question. A retired key is no
//! fault where its replacement stands beside it, because both together serve old and new hosts.

use serde_json::Value;

use super::super::{RuleVerdict, RuleViolation, ServerSurvey, at_path, for_each_tool, name};
use crate::report::Severity::Warning;

/// Evaluates a rule for each tool, and skips it where no tool has the member in question.
fn for_tools_having(
    survey: &ServerSurvey,
    has: impl Fn(&Value) -> bool,
    judge: impl Fn(&Value) -> Option<RuleViolation>,
) -> RuleVerdict {
    if !survey.tools.is_empty() && !survey.tools.iter().any(has) {
        return RuleVerdict::Skipped("no tool has this member");
    }
    for_each_tool(survey, judge)
}

fn meta<'a>(tool: &'a Value, key: &str) -> Option<&'a Value> {
    at_path(tool, &["_meta", key])
}

const STATUS: [&str; 2] = [
    "openai/toolInvocation/invoking",
    "openai/toolInvocation/invoked",
];

pub(super) fn status_texts(survey: &ServerSurvey) -> RuleVerdict {
    let has = |tool: &Value| STATUS.iter().any(|key| meta(tool, key).is_some());
    for_tools_having(survey, has, |tool| {
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

pub(super) fn icons(survey: &ServerSurvey) -> RuleVerdict {
    for_tools_having(
        survey,
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

pub(super) fn security_schemes(survey: &ServerSurvey) -> RuleVerdict {
    let has = |tool: &Value| {
        tool.get("securitySchemes").is_some() || meta(tool, "securitySchemes").is_some()
    };
    for_tools_having(survey, has, |tool| {
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
                    "the security schemes of `{}` are no list of `noauth` and `oauth2`",
                    name(tool)
                ))
                .with_excerpt(found),
            );
        }
        (top != mirror).then(|| {
            let what = format!(
                "the security schemes of `{}` differ between the tool and its `_meta`",
                name(tool)
            );
            RuleViolation::new(what)
                .with_excerpt(found)
                .at_most(Warning)
        })
    })
}

pub(super) fn file_params(survey: &ServerSurvey) -> RuleVerdict {
    for_tools_having(
        survey,
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
                    "`openai/fileParams` of `{}` lists a name that is no property",
                    name(tool)
                ))
                .with_excerpt(listed)
            })
        },
    )
}

pub(super) fn retired_keys(survey: &ServerSurvey) -> RuleVerdict {
    const RETIRED: [&str; 2] = ["openai/visibility", "openai/resultCanProduceWidget"];
    for_each_tool(survey, |tool| {
        let key = RETIRED.into_iter().find(|key| meta(tool, key).is_some())?;
        // Both keys together serve old and new hosts.
        let replaced =
            key == "openai/visibility" && at_path(tool, &["_meta", "ui", "visibility"]).is_some();
        (!replaced).then(|| {
            RuleViolation::new(format!("the tool `{}` uses `{key}`", name(tool)))
                .with_excerpt(tool.get("_meta").unwrap_or(&Value::Null))
        })
    })
}

pub(super) fn result_size_key(survey: &ServerSurvey) -> RuleVerdict {
    const KEY: &str = "anthropic/maxResultSizeChars";
    for_tools_having(
        survey,
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

pub(super) fn visibility(survey: &ServerSurvey) -> RuleVerdict {
    for_tools_having(
        survey,
        |tool| at_path(tool, &["_meta", "ui", "visibility"]).is_some(),
        |tool| {
            let found = at_path(tool, &["_meta", "ui", "visibility"])?;
            let known = |one: &Value| one == "model" || one == "app";
            let good = found
                .as_array()
                .is_some_and(|all| !all.is_empty() && all.iter().all(known));
            (!good).then(|| {
                RuleViolation::new(format!(
                    "the visibility of `{}` is no list of `model` and `app`",
                    name(tool)
                ))
                .with_excerpt(found)
            })
        },
    )
}
