//! What tools say to hosts in particular: status texts, icons, schemes, keys of their own.

use serde_json::Value;

use super::super::{Fault, Seen, Verdict, name, of_tools, within};
use crate::report::Severity::Warning;

/// Judges the tools that have such a thing.
fn having(
    seen: &Seen,
    has: impl Fn(&Value) -> bool,
    judge: impl Fn(&Value) -> Option<Fault>,
) -> Verdict {
    if !seen.tools.is_empty() && !seen.tools.iter().any(has) {
        return Verdict::Skipped("no tool has any");
    }
    of_tools(seen, judge)
}

fn meta<'a>(tool: &'a Value, key: &str) -> Option<&'a Value> {
    within(tool, &["_meta", key])
}

const STATUS: [&str; 2] = [
    "openai/toolInvocation/invoking",
    "openai/toolInvocation/invoked",
];

pub(super) fn status_texts(seen: &Seen) -> Verdict {
    let has = |tool: &Value| STATUS.iter().any(|key| meta(tool, key).is_some());
    having(seen, has, |tool| {
        let wrong = |key: &&str| {
            let value = meta(tool, key);
            value.is_some_and(|value| value.as_str().is_none_or(|text| text.chars().count() > 64))
        };
        let key = STATUS.into_iter().find(wrong)?;
        let what = format!(
            "`{key}` of `{}` is no text of up to 64 characters",
            name(tool)
        );
        Some(Fault::new(what).seen(meta(tool, key)?))
    })
}

pub(super) fn icons(seen: &Seen) -> Verdict {
    having(
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
                Fault::new(format!(
                    "an icon of `{}` has no https or data address",
                    name(tool)
                ))
                .seen(icons)
            })
        },
    )
}

pub(super) fn security_schemes(seen: &Seen) -> Verdict {
    let has = |tool: &Value| {
        tool.get("securitySchemes").is_some() || meta(tool, "securitySchemes").is_some()
    };
    having(seen, has, |tool| {
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
                Fault::new(format!(
                    "the security schemes of `{}` are not of the two kinds",
                    name(tool)
                ))
                .seen(found),
            );
        }
        (top != mirror).then(|| {
            let what = format!(
                "the security schemes of `{}` stand in one of the two places only",
                name(tool)
            );
            Fault::new(what).seen(found).at_most(Warning)
        })
    })
}

pub(super) fn file_params(seen: &Seen) -> Verdict {
    having(
        seen,
        |tool| meta(tool, "openai/fileParams").is_some(),
        |tool| {
            let listed = meta(tool, "openai/fileParams")?;
            let known = |name: &Value| {
                let name = name.as_str().unwrap_or_default();
                within(tool, &["inputSchema", "properties", name]).is_some()
            };
            let good = listed
                .as_array()
                .is_some_and(|names| names.iter().all(known));
            (!good).then(|| {
                Fault::new(format!(
                    "`openai/fileParams` of `{}` names what is no property",
                    name(tool)
                ))
                .seen(listed)
            })
        },
    )
}

pub(super) fn retired_keys(seen: &Seen) -> Verdict {
    const RETIRED: [&str; 2] = ["openai/visibility", "openai/resultCanProduceWidget"];
    of_tools(seen, |tool| {
        let key = RETIRED.into_iter().find(|key| meta(tool, key).is_some())?;
        // The new key beside the old one serves hosts of both years.
        let replaced =
            key == "openai/visibility" && within(tool, &["_meta", "ui", "visibility"]).is_some();
        (!replaced).then(|| {
            Fault::new(format!("the tool `{}` uses `{key}`", name(tool)))
                .seen(tool.get("_meta").unwrap_or(&Value::Null))
        })
    })
}

pub(super) fn result_size_key(seen: &Seen) -> Verdict {
    const KEY: &str = "anthropic/maxResultSizeChars";
    having(
        seen,
        |tool| meta(tool, KEY).is_some(),
        |tool| {
            let found = meta(tool, KEY)?;
            let good = found
                .as_u64()
                .is_some_and(|size| (1..=500_000).contains(&size));
            (!good).then(|| {
                Fault::new(format!("`{KEY}` of `{}` is out of range", name(tool))).seen(found)
            })
        },
    )
}

pub(super) fn visibility(seen: &Seen) -> Verdict {
    having(
        seen,
        |tool| within(tool, &["_meta", "ui", "visibility"]).is_some(),
        |tool| {
            let found = within(tool, &["_meta", "ui", "visibility"])?;
            let known = |one: &Value| one == "model" || one == "app";
            let good = found
                .as_array()
                .is_some_and(|all| !all.is_empty() && all.iter().all(known));
            (!good).then(|| {
                Fault::new(format!(
                    "the visibility of `{}` is not of `model` and `app`",
                    name(tool)
                ))
                .seen(found)
            })
        },
    )
}
