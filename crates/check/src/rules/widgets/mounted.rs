//! What happened when a browser showed the widgets.

use super::super::{Note, RuleVerdict, RuleViolation, ServerSurvey};
use crate::browser::{WidgetHost, WidgetMount};

/// What is wrong with each mount of each widget.
fn for_each_mount(
    seen: &ServerSurvey,
    judge: impl Fn(&WidgetMount) -> Option<RuleViolation>,
) -> RuleVerdict {
    if seen.widgets.is_empty() {
        return super::NO_WIDGETS;
    }
    match &seen.mounts {
        None => RuleVerdict::Skipped("widgets are mounted with `--browser` only"),
        Some(Err(_)) => RuleVerdict::Skipped("the browser did not work"),
        Some(Ok(mounts)) if mounts.is_empty() => RuleVerdict::Skipped("no widget could be read"),
        Some(Ok(mounts)) => RuleVerdict::Evaluated(mounts.iter().filter_map(judge).collect()),
    }
}

fn mount_label(mount: &WidgetMount) -> String {
    format!("`{}`, mounted as in {},", mount.uri, mount.host)
}

pub(super) fn csp(seen: &ServerSurvey) -> RuleVerdict {
    for_each_mount(seen, |mount| {
        let first = mount.violations.first()?;
        let what = format!("{} breaks its policy: {first}", mount_label(mount));
        let mut fault = RuleViolation::new(what).with_excerpt(&mount.violations.join("; "));
        fault.sent = mount.policy.clone();
        Some(fault)
    })
}

pub(super) fn handshake(seen: &ServerSurvey) -> RuleVerdict {
    for_each_mount(seen, |mount| {
        // ChatGPT also has its older way, which needs no greeting.
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
        // Nothing is loaded from elsewhere during a check, so what is missing may be there.
        Some(if mount.requests.is_empty() {
            fault
        } else {
            fault.at_most(Note)
        })
    })
}

pub(super) fn errors(seen: &ServerSurvey) -> RuleVerdict {
    for_each_mount(seen, |mount| {
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

pub(super) fn network(seen: &ServerSurvey) -> RuleVerdict {
    for_each_mount(seen, |mount| {
        let first = mount.requests.first()?;
        let what = format!("{} asks for `{first}`", mount_label(mount));
        Some(RuleViolation::new(what).with_excerpt(&mount.requests.join(" ")))
    })
}
