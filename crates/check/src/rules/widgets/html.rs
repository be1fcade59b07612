//! Rules about what a template loads and calls, by static analysis of its text.
//!
//! A bundle contains much code that never runs. So the severity follows the evidence: what a browser requested counts
//! as certain, else how sure the analysis is that the load happens. A call inside a `try` is a feature test and no
//! fault.

use serde_json::Value;

use super::super::{Error, Note, RuleVerdict, RuleViolation, ServerSurvey, Severity, Warning};
use super::for_each_widget;
use crate::static_analysis::{DocumentScan, LoadKind, LoadTrigger, ResourceLoad, ScriptCall};
use crate::survey::SurveyedWidget;

/// The size limit of a template in bytes, for the rule `widgets/size`.
const MAX_SIZE: usize = 1024 * 1024;

pub(super) fn inline(survey: &ServerSurvey) -> RuleVerdict {
    for_each_widget(survey, |widget, _| {
        let scan = DocumentScan::of(&widget.html()?);
        let is_code = |load: &&ResourceLoad| {
            load.kind == LoadKind::Code && load.trigger == LoadTrigger::Document
        };
        let load = scan.loads.iter().find(is_code)?;
        Some(
            RuleViolation::new(format!(
                "`{}` loads code or styles from elsewhere",
                widget.uri
            ))
            .with_excerpt(&load.address),
        )
    })
}

/// Every origin that the CSP of a widget allows.
fn allowed(widget: &SurveyedWidget) -> Vec<String> {
    let keys: [&[&str]; 6] = [
        &["ui", "csp", "resourceDomains"],
        &["ui", "csp", "connectDomains"],
        &["ui", "csp", "frameDomains"],
        &["openai/widgetCSP", "resource_domains"],
        &["openai/widgetCSP", "connect_domains"],
        &["openai/widgetCSP", "frame_domains"],
    ];
    let lists = keys
        .into_iter()
        .filter_map(|path| widget.meta(path))
        .filter_map(Value::as_array);
    lists
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

/// Whether a CSP entry matches an origin, as browsers compare them. Malformed entries are reported by
/// `widgets/csp-form`, so here they count as what their author meant.
fn covers(allowed: &str, origin: &str) -> bool {
    let (scheme, rest) = origin.split_once("://").unwrap_or(("https", origin));
    let (allowed_scheme, allowed_rest) = match allowed.split_once("://") {
        Some((scheme, rest)) => (scheme, rest),
        None if allowed.ends_with(':') => (allowed.trim_end_matches(':'), "*"),
        None => (scheme, allowed),
    };
    let is_scheme = allowed_scheme == scheme
        || matches!((allowed_scheme, scheme), ("http", "https") | ("ws", "wss"));
    let host = allowed_rest.split('/').next().unwrap_or_default();
    let is_host = match host.strip_prefix('*') {
        Some(suffix) => suffix.is_empty() || rest.ends_with(suffix),
        None => host.eq_ignore_ascii_case(rest),
    };
    is_scheme && is_host
}

pub(super) fn csp_covers(survey: &ServerSurvey) -> RuleVerdict {
    for_each_widget(survey, |widget, _| {
        let allowed = allowed(widget);
        let scan = DocumentScan::of(&widget.html()?);
        let is_blocked =
            |load: &&ResourceLoad| !allowed.iter().any(|one| covers(one, &load.origin));
        let blocked = || scan.loads.iter().filter(is_blocked);
        let ranked = blocked().map(|load| {
            (
                load_severity(load, was_requested(survey, widget, &load.origin)),
                load,
            )
        });
        // Of several loads, report the first of the highest severity.
        let (severity, load) =
            ranked.reduce(|best, next| if next.0 > best.0 { next } else { best })?;
        let verb = if severity == Error {
            "loads"
        } else {
            "may load"
        };
        let fault = RuleViolation::new(format!(
            "`{}` {verb} from `{}`, which its CSP does not list",
            widget.uri, load.origin
        ))
        .with_excerpt(&load.address);
        Some(if severity == Error {
            fault
        } else {
            fault.at_most(severity)
        })
    })
}

/// The severity of a load that the CSP does not allow: by what the browser requested where the widget was mounted, else
/// by how certain the static analysis is.
fn load_severity(load: &ResourceLoad, is_requested: Option<bool>) -> Severity {
    match (is_requested, load.trigger) {
        (Some(true), _) => Error,
        (Some(false), _) => Note,
        (None, LoadTrigger::Document | LoadTrigger::Call) => Error,
        (None, LoadTrigger::Deferred) => Warning,
        (None, LoadTrigger::Assignment) => Note,
    }
}

/// Whether a mounted widget requested anything from this origin; `None` where it was not mounted.
fn was_requested(survey: &ServerSurvey, widget: &SurveyedWidget, origin: &str) -> Option<bool> {
    let mounts = survey.mounts.as_ref()?.as_ref().ok()?;
    let mut shown = mounts
        .iter()
        .filter(|mount| mount.uri == widget.uri && mount.has_received("loaded"))
        .peekable();
    shown.peek()?;
    Some(shown.any(|mount| mount.has_requested(origin)))
}

pub(super) fn eval(survey: &ServerSurvey) -> RuleVerdict {
    const RUN: [&str; 4] = ["eval(", "new Function(", "setTimeout(\"", "setInterval(\""];
    for_each_widget(survey, |widget, _| {
        let scan = DocumentScan::of(&widget.html()?);
        // A call in a `try` is a feature test, as in zod and pdf.js.
        let is_run = |call: &&ScriptCall| RUN.contains(&call.name) && !call.is_tried;
        let run = || scan.calls.iter().filter(is_run);
        let certain = run().find(|call| call.is_certain);
        let found = certain.or_else(|| run().next())?.name;
        let verb = if certain.is_some() {
            "calls"
        } else {
            "may call"
        };
        let fault =
            RuleViolation::new(format!("`{}` {verb} `{found}…)`", widget.uri)).with_excerpt(&found);
        Some(if certain.is_some() {
            fault
        } else {
            fault.at_most(Note)
        })
    })
}

pub(super) fn sandbox(survey: &ServerSurvey) -> RuleVerdict {
    const FORBIDDEN: [&str; 4] = ["alert(", "confirm(", "prompt(", "localStorage."];
    for_each_widget(survey, |widget, _| {
        let scan = DocumentScan::of(&widget.html()?);
        // Storage access in a `try` may fail: the widget works without it.
        let is_probe = |call: &ScriptCall| call.name == "localStorage." && call.is_tried;
        let is_forbidden = |call: &&ScriptCall| FORBIDDEN.contains(&call.name) && !is_probe(call);
        let found = scan.calls.iter().find(is_forbidden)?.name;
        Some(RuleViolation::new(format!("`{}` uses `{found}`", widget.uri)).with_excerpt(&found))
    })
}

pub(super) fn size(survey: &ServerSurvey) -> RuleVerdict {
    for_each_widget(survey, |widget, _| {
        let length = widget.html()?.len();
        (length > MAX_SIZE).then(|| {
            RuleViolation::new(format!("`{}` has {length} bytes", widget.uri)).with_excerpt(&length)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_covered_as_browsers_compare() {
        for allowed in [
            "https://x.a.example",
            "https://*.a.example",
            "https://*",
            "https:",
            "*",
            "http://x.a.example",
            "x.a.example",
            "https://x.a.example/",
            "https://X.a.example/path",
        ] {
            assert!(covers(allowed, "https://x.a.example"), "{allowed}");
        }
        for allowed in [
            "https://a.example",
            "https://*.x.a.example",
            "https://*.b.example",
            "https://xx.a.example",
            "https://x.a.example:8443",
            "wss://x.a.example",
            "",
        ] {
            assert!(!covers(allowed, "https://x.a.example"), "{allowed}");
        }
        assert!(!covers("https://*.a.example", "https://xa.example"));
        assert!(!covers("https://a.example", "http://a.example"));
    }
}
