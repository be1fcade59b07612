//! Rules about the CSP that a widget declares.
//!
//! The hosts read different keys with different member names, so a policy under one key may not exist for another host.
//! That host blocks every foreign origin, and the widget fails there although it works elsewhere. A declaration without
//! any domain needs no second key.

use serde_json::Value;

use super::super::{RuleVerdict, RuleViolation, ServerSurvey, at_path};
use super::for_each_widget;

const STANDARD: [&str; 4] = [
    "connectDomains",
    "resourceDomains",
    "frameDomains",
    "baseUriDomains",
];
const OPENAI: [&str; 4] = [
    "connect_domains",
    "resource_domains",
    "frame_domains",
    "redirect_domains",
];

pub(super) fn csp_form(survey: &ServerSurvey) -> RuleVerdict {
    for_each_widget(survey, |widget, _| {
        for (path, known) in [
            (&["ui", "csp"][..], STANDARD),
            (&["openai/widgetCSP"][..], OPENAI),
        ] {
            let Some(csp) = widget.meta(path) else {
                continue;
            };
            let members = csp.as_object();
            let strange = members
                .into_iter()
                .flatten()
                .find(|(key, value)| !known.contains(&key.as_str()) || !is_origins(value));
            if members.is_none() || strange.is_some() {
                let key = strange.map(|(key, _)| key.as_str()).unwrap_or_default();
                return Some(
                    RuleViolation::new(format!(
                        "`{}` of `{}`: `{key}` is not a list of origins under a known name",
                        path.join("."),
                        widget.uri
                    ))
                    .with_excerpt(csp),
                );
            }
        }
        None
    })
}

fn is_origins(value: &Value) -> bool {
    let is_origin = |one: &Value| {
        let text = one.as_str().unwrap_or_default();
        let rest = ["https://", "wss://", "http://localhost", "http://127.0.0.1"]
            .into_iter()
            .find_map(|start| text.strip_prefix(start));
        rest.is_some_and(|rest| !rest.contains('/') && !rest.contains(char::is_whitespace))
    };
    value
        .as_array()
        .is_some_and(|all| all.iter().all(is_origin))
}

pub(super) fn csp_both_keys(survey: &ServerSurvey) -> RuleVerdict {
    for_each_widget(survey, |widget, contents| {
        let (standard, openai) = (
            widget.meta(&["ui", "csp"]),
            widget.meta(&["openai/widgetCSP"]),
        );
        // A CSP without any domain means the same as none, so it needs no second key.
        let one = standard.is_some() != openai.is_some();
        let has_domains = |csp: &Value| {
            csp.as_object().is_some_and(|members| {
                members
                    .values()
                    .any(|list| list.as_array().is_some_and(|all| !all.is_empty()))
            })
        };
        let matters = standard.or(openai).is_some_and(has_domains);
        (one && matters).then(|| {
            RuleViolation::new(format!(
                "the CSP of `{}` is declared under one key only",
                widget.uri
            ))
            .with_excerpt(contents.get("_meta").unwrap_or(&Value::Null))
        })
    })
}

pub(super) fn meta_on_contents(survey: &ServerSurvey) -> RuleVerdict {
    for_each_widget(survey, |widget, contents| {
        let entry = widget.entry.as_ref()?;
        let keys: [&[&str]; 2] = [&["_meta", "ui", "csp"], &["_meta", "openai/widgetCSP"]];
        let lost = keys
            .into_iter()
            .find(|path| at_path(entry, path).is_some() && at_path(contents, path).is_none())?;
        Some(
            RuleViolation::new(format!(
                "`{}` of `{}` is declared in `resources/list` only",
                lost.join("."),
                widget.uri
            ))
            .with_exchange(&widget.read),
        )
    })
}

pub(super) fn frames(survey: &ServerSurvey) -> RuleVerdict {
    for_each_widget(survey, |widget, _| {
        let keys: [&[&str]; 2] = [
            &["ui", "csp", "frameDomains"],
            &["openai/widgetCSP", "frame_domains"],
        ];
        let named = keys
            .into_iter()
            .filter_map(|path| widget.meta(path))
            .find(|list| list.as_array().is_some_and(|all| !all.is_empty()))?;
        Some(RuleViolation::new(format!("`{}` embeds other pages", widget.uri)).with_excerpt(named))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_told_from_addresses() {
        let good = |text: &str| is_origins(&serde_json::json!([text]));
        assert!(
            good("https://a.example")
                && good("https://*.a.example")
                && good("wss://a.example:8443")
        );
        assert!(!good("https://a.example/path") && !good("a.example") && !good("*"));
    }
}
