//! What happened when a browser showed the widgets.

use super::super::{Fault, Note, Seen, Verdict};
use crate::browser::{Host, Mount};

/// What is wrong with each mount of each widget.
fn of_mounts(seen: &Seen, judge: impl Fn(&Mount) -> Option<Fault>) -> Verdict {
    if seen.widgets.is_empty() {
        return super::NO_WIDGETS;
    }
    match &seen.mounts {
        None => Verdict::Skipped("widgets are mounted with `--browser` only"),
        Some(Err(_)) => Verdict::Skipped("the browser did not work"),
        Some(Ok(mounts)) if mounts.is_empty() => Verdict::Skipped("no widget could be read"),
        Some(Ok(mounts)) => Verdict::Judged(mounts.iter().filter_map(judge).collect()),
    }
}

fn place(mount: &Mount) -> String {
    format!("`{}`, mounted as in {},", mount.uri, mount.host)
}

pub(super) fn csp(seen: &Seen) -> Verdict {
    of_mounts(seen, |mount| {
        let first = mount.violations.first()?;
        let what = format!("{} breaks its policy: {first}", place(mount));
        let mut fault = Fault::new(what).seen(&mount.violations.join("; "));
        fault.sent = mount.policy.clone();
        Some(fault)
    })
}

pub(super) fn handshake(seen: &Seen) -> Verdict {
    of_mounts(seen, |mount| {
        // ChatGPT also has its older way, which needs no greeting.
        let older = mount.host == Host::ChatGpt.name() && mount.has_heard("window.openai");
        let what = if !mount.has_heard("loaded") {
            "never finishes loading"
        } else if older || mount.has_heard("ui/notifications/initialized") {
            return None;
        } else if mount.has_heard("ui/initialize") {
            "asks `ui/initialize` and never sends `ui/notifications/initialized`"
        } else {
            "never asks `ui/initialize`"
        };
        let fault = Fault::new(format!("{} {what}", place(mount))).seen(&mount.heard.join(", "));
        // Nothing is loaded from elsewhere during a check, so what is missing may be there.
        Some(if mount.requests.is_empty() {
            fault
        } else {
            fault.at_most(Note)
        })
    })
}

pub(super) fn errors(seen: &Seen) -> Verdict {
    of_mounts(seen, |mount| {
        let first = mount.errors.first()?;
        let what = format!("{} reports an error: {first}", place(mount));
        let fault = Fault::new(what).seen(&mount.errors.join("; "));
        Some(if mount.requests.is_empty() && !mount.lacks_data() {
            fault
        } else {
            fault.at_most(Note)
        })
    })
}

pub(super) fn network(seen: &Seen) -> Verdict {
    of_mounts(seen, |mount| {
        let first = mount.requests.first()?;
        let what = format!("{} asks for `{first}`", place(mount));
        Some(Fault::new(what).seen(&mount.requests.join(" ")))
    })
}
