//! Mounts widgets in a headless browser, as ChatGPT and as Claude do it, each under the CSP that the host derives from
//! what the widget declares.
//!
//! The browser has no network. The check serves the host's page and the widget; every other request is recorded and
//! blocked.

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

/// The time limit of all mounts together; widgets that are left then are not mounted.
const MOUNT_BUDGET: Duration = Duration::from_secs(120);
/// The program names of Chromium and Chrome, which are looked up in `PATH`.
const NAMES: [&str; 5] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
];
/// The paths of the macOS application bundles.
const MACOS_BUNDLE_PATHS: [&str; 2] = [
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
];

/// Why the browser could not be started or controlled.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BrowserError {
    #[error("the browser profile directory cannot be created: {0}")]
    Folder(std::io::Error),
    #[cfg_attr(
        not(unix),
        expect(dead_code, reason = "the browser is started on Unix only")
    )]
    #[error("`{0}` cannot be started: {1}")]
    Start(PathBuf, std::io::Error),
    #[cfg_attr(
        unix,
        expect(dead_code, reason = "returned on systems other than Unix")
    )]
    #[error("widgets are mounted on Unix systems only")]
    System,
    #[error("the browser exited: {0}")]
    Ended(String),
    #[error("the browser does not respond")]
    Silent,
    #[error("the browser rejected `{0}`: {1}")]
    Refused(String, String),
}

/// Finds Chromium or Chrome on this machine, in `PATH` or among the macOS applications.
#[must_use]
pub fn find() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let named =
        std::env::split_paths(&folders).flat_map(|folder| NAMES.map(|name| folder.join(name)));
    named
        .chain(MACOS_BUNDLE_PATHS.into_iter().map(PathBuf::from))
        .find(|path| path.is_file())
}

/// Mounts every widget that could be read, once for each host, until the time limit.
pub(crate) fn mount_widgets(
    program: &Path,
    survey: &ServerSurvey,
) -> Result<Vec<WidgetMount>, BrowserError> {
    let mut mounts = Vec::new();
    let read = survey.widgets.iter().filter_map(|widget| {
        let html = widget.html()?;
        Some((widget, html))
    });
    let deadline = Instant::now() + MOUNT_BUDGET;
    let mut browser: Option<devtools_pipe::DevtoolsPipe> = None;
    for (widget, html) in read {
        for host in WidgetHost::BOTH {
            if Instant::now() >= deadline {
                return Ok(mounts);
            }
            let pipe = match browser.take() {
                Some(pipe) => browser.insert(pipe),
                None => browser.insert(devtools_pipe::DevtoolsPipe::start(program)?),
            };
            let session = mount::MountSession {
                widget,
                html: &html,
                host,
                results: tool_results(survey),
            };
            match session.run(pipe, deadline)? {
                Some(mount) => mounts.push(mount),
                None => return Ok(mounts),
            }
        }
    }
    Ok(mounts)
}

/// The last successful result of each tool, by name, which a mounted widget receives.
fn tool_results(survey: &ServerSurvey) -> serde_json::Map<String, Value> {
    let good = survey.calls.iter().filter_map(|call| {
        let result = call.success()?;
        Some((call.tool.clone(), result.clone()))
    });
    good.collect()
}
