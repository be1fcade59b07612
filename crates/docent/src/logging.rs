//! Logging setup: log lines on stderr under a filter such as `info,tantivy=warn`, and request spans to the OTLP
//! exporter if one is configured.

use std::io::IsTerminal as _;

use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::prelude::*;
use tracing_subscriber::{EnvFilter, fmt};

use crate::telemetry::SpanExportLayer;

/// Directives that come before the user's filter, so that they hold unless it names the same target. tantivy
/// reports every commit at `info`. `docent_span` events are for traces only.
const QUIET: &str = "tantivy=warn,docent_span=off";

/// Installs the global subscriber. A second call changes nothing, and neither does an invalid filter, which the
/// settings have already rejected with [`check`].
pub(crate) fn start(filter: &str, spans: Option<SpanExportLayer>) {
    let Ok(filter) = EnvFilter::try_new(format!("{QUIET},{filter}")) else {
        return;
    };
    let lines = fmt::layer()
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    let lines = tracing_subscriber::registry().with(lines.with_filter(filter));
    let started = match spans {
        Some(spans) => lines
            .with(spans.with_filter(filter_fn(SpanExportLayer::is_request_span)))
            .try_init(),
        None => lines.try_init(),
    };
    if started.is_err() {
        tracing::debug!("logging was started before");
    }
}

/// Whether a text is a valid log filter.
pub(crate) fn check(filter: &str) -> bool {
    EnvFilter::try_new(filter).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quiet_libraries_are_loud_only_when_they_are_named() {
        let made = |filter: &str| EnvFilter::new(format!("{QUIET},{filter}")).to_string();
        assert!(made("debug").contains("tantivy=warn"));
        let named = made("debug,tantivy=debug");
        assert!(
            named.contains("tantivy=debug") && !named.contains("tantivy=warn"),
            "{named}"
        );
    }

    #[test]
    fn nonsense_is_no_filter() {
        assert!(check("info,tantivy=warn") && !check("info,tantivy=loud"));
    }
}
