//! Widgets into what happens when a browser really shows them: each is mounted as ChatGPT and as Claude do it,
//! under the policy that the host derives from what the widget declares.
//!
//! The browser has no network. It gets the host's page and the widget from here, and every other address that
//! anything in it asks for is noted and refused.

mod csp;
mod deadline;
mod devtools_pipe;
mod mount;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

pub(crate) use csp::WidgetHost;
pub(crate) use mount::WidgetMount;

use crate::survey::ServerSurvey;

/// The longest that all mounts together may take.
const MOUNT_BUDGET: Duration = Duration::from_secs(120);
/// The names under which the programs are installed.
const NAMES: [&str; 5] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
];
/// Where macOS keeps them.
const PLACES: [&str; 2] = [
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
];

/// Why no browser could be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BrowserError {
    #[error("a folder for the browser's profile cannot be made: {0}")]
    Folder(std::io::Error),
    #[cfg_attr(not(unix), expect(dead_code, reason = "no browser is started there"))]
    #[error("`{0}` cannot be started: {1}")]
    Start(PathBuf, std::io::Error),
    #[cfg_attr(unix, expect(dead_code, reason = "it is for other systems"))]
    #[error("widgets are mounted on Unix systems only")]
    System,
    #[error("the browser ended: {0}")]
    Ended(String),
    #[error("the browser does not answer")]
    Silent,
    #[error("the browser refuses `{0}`: {1}")]
    Refused(String, String),
}

/// A Chromium or Chrome of this machine, by the names and places of its packages.
#[must_use]
pub fn find() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let named =
        std::env::split_paths(&folders).flat_map(|folder| NAMES.map(|name| folder.join(name)));
    named
        .chain(PLACES.into_iter().map(PathBuf::from))
        .find(|path| path.is_file())
}

/// Mounts every widget that could be read, in both hosts.
pub(crate) fn mount_widgets(
    program: &Path,
    seen: &ServerSurvey,
) -> Result<Vec<WidgetMount>, BrowserError> {
    let mut mounts = Vec::new();
    let read = seen.widgets.iter().filter_map(|widget| {
        let html = widget.html()?;
        Some((widget, html))
    });
    let end = Instant::now() + MOUNT_BUDGET;
    let mut browser: Option<devtools_pipe::DevtoolsPipe> = None;
    for (widget, html) in read {
        for host in WidgetHost::BOTH {
            if Instant::now() >= end {
                return Ok(mounts);
            }
            let pipe = match browser.take() {
                Some(pipe) => browser.insert(pipe),
                None => browser.insert(devtools_pipe::DevtoolsPipe::start(program)?),
            };
            let play = mount::MountSession {
                widget,
                html: &html,
                host,
                results: tool_results(seen),
            };
            match play.run(pipe, end)? {
                Some(mount) => mounts.push(mount),
                None => return Ok(mounts),
            }
        }
    }
    Ok(mounts)
}

/// What tools answered during the check, by their names: what a widget would be shown.
fn tool_results(seen: &ServerSurvey) -> serde_json::Map<String, Value> {
    let good = seen.calls.iter().filter_map(|call| {
        let result = call.success()?;
        Some((call.tool.clone(), result.clone()))
    });
    good.collect()
}
