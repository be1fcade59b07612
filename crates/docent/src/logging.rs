//! A filter such as `info,tantivy=warn` into log lines on stderr.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

/// Starts logging. A second start changes nothing.
///
/// The filter was checked with the other settings; see [`check`].
pub(crate) fn start(filter: &str) {
    let Ok(filter) = EnvFilter::try_new(filter) else {
        return;
    };
    let started = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .try_init();
    if started.is_err() {
        tracing::debug!("logging was started before");
    }
}

/// True when a text can be used as a filter.
pub(crate) fn check(filter: &str) -> bool {
    EnvFilter::try_new(filter).is_ok()
}
