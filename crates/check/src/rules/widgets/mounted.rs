//! Rules about what happened when a browser mounted the widgets.
//!
//! Every foreign request is blocked during a check, and few tools are called. An error may have either cause, and a
//! missing handshake the first; where that is possible, the finding is only a note.

use super::super::{Note, RuleVerdict, RuleViolation, ServerSurvey};
use crate::browser::{WidgetHost, WidgetMount};

/// Evaluates a rule for each mount of each widget.
fn for_each_mount(
    survey: &ServerSurvey,
    judge: impl Fn(&WidgetMount) -> Option<RuleViolation>,
) -> RuleVerdict {
    if survey.widgets.is_empty() {
        return super::NO_WIDGETS;
    }
    match &survey.mounts {
        None => RuleVerdict::Skipped("widgets are mounted only with `--browser`"),
        Some(Err(_)) => RuleVerdict::Skipped("the browser failed"),
        Some(Ok(mounts)) if mounts.is_empty() => RuleVerdict::Skipped("no widget could be read"),
        Some(Ok(mounts)) => RuleVerdict::Evaluated(mounts.iter().filter_map(judge).collect()),
    }
}

fn mount_label(mount: &WidgetMount) -> String {
    format!("`{}`, mounted as in {},", mount.uri, mount.host)
}

pub(super) fn csp(survey: &ServerSurvey) -> RuleVerdict {
    for_each_mount(survey, |mount| {
        let first = mount.violations.first()?;
        let what = format!("{} violates its CSP: {first}", mount_label(mount));
        let mut fault = RuleViolation::new(what).with_excerpt(&mount.violations.join("; "));
        fault.sent = mount.policy.clone();
        Some(fault)
    })
}

pub(super) fn handshake(survey: &ServerSurvey) -> RuleVerdict {
    for_each_mount(survey, |mount| {
        // ChatGPT also supports `window.openai`, which needs no handshake.
        let older = mount.host == WidgetHost::ChatGpt.name() && mount.has_received("window.openai");
        let what = if !mount.has_received("loaded") {
            "never finishes loading"
        } else if older || mount.has_received("ui/notifications/initialized") {
            return None;
        } else if mount.has_received("ui/initialize") {
            "asks `ui/initialize` and never sends `ui/notifications/initialized`"
        } else {
            "never asks `ui/initialize`"
        };
        let fault = RuleViolation::new(format!("{} {what}", mount_label(mount)))
            .with_excerpt(&mount.host_messages.join(", "));
        // External requests are blocked during a check, so the handshake code may be in a script that was not loaded.
        Some(if mount.requests.is_empty() {
            fault
        } else {
            fault.at_most(Note)
        })
    })
}

pub(super) fn errors(survey: &ServerSurvey) -> RuleVerdict {
    for_each_mount(survey, |mount| {
        let first = mount.errors.first()?;
        let what = format!("{} reports an error: {first}", mount_label(mount));
        let fault = RuleViolation::new(what).with_excerpt(&mount.errors.join("; "));
        Some(if mount.requests.is_empty() && !mount.lacks_data() {
            fault
        } else {
            fault.at_most(Note)
        })
    })
}

pub(super) fn network(survey: &ServerSurvey) -> RuleVerdict {
    for_each_mount(survey, |mount| {
        let first = mount.requests.first()?;
        let what = format!("{} requests `{first}`", mount_label(mount));
        Some(RuleViolation::new(what).with_excerpt(&mount.requests.join(" ")))
    })
}
