//! `docent preview`: serves a local page that simulates an MCP host for a server.

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use docent_mcp::http::limits::HttpLimits;
use docent_mcp::http::{HttpOptions, serve_routes};
use tokio_util::sync::CancellationToken;
use url::Url;

use super::serve::{bind, signals};
use crate::args::PreviewArgs;
use crate::cli_error::CliError;
use crate::display_text::shorten;
use crate::output;
use crate::preview::{PreviewTarget, routes};

/// Maximum body size. The page posts widgets here to have them framed, and a widget may have a few megabytes.
const MAX_BODY: usize = 16 * 1024 * 1024;
/// Handler timeout. The page waits as long as a slow tool.
const HANDLER_TIMEOUT: Duration = Duration::from_secs(120);

pub(super) fn run(preview: &PreviewArgs) -> Result<ExitCode, CliError> {
    let listen = address(&preview.listen)?;
    if let Some(url) = &preview.url {
        let is_web = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
        if !Url::parse(url).is_ok_and(|url| is_web(&url)) {
            return Err(
                CliError::usage(format!("`{}` is not a web address", shorten(url, 80)))
                    .hint("example: `http://127.0.0.1:8787/mcp`"),
            );
        }
    }
    let runtime = super::runtime()?;
    let outcome = runtime.block_on(serve(preview, listen));
    runtime.shutdown_background();
    outcome.map(|()| ExitCode::SUCCESS)
}

/// Parses the listen address, which must be loopback: the page is a proxy that sends requests for anyone who can reach
/// it.
fn address(text: &str) -> Result<SocketAddr, CliError> {
    let shown = shorten(text, 80);
    let address: SocketAddr = text.parse().map_err(|_| {
        CliError::usage(format!("`--listen` is not an address: `{shown}`"))
            .hint("example: `127.0.0.1:8790`")
    })?;
    if address.ip().is_loopback() {
        return Ok(address);
    }
    Err(CliError::usage(format!(
        "the preview listens only on loopback addresses, not on `{shown}`"
    ))
    .hint("use `127.0.0.1:8790`, or `docent serve --preview` for a page that others can open"))
}

async fn serve(preview: &PreviewArgs, listen: SocketAddr) -> Result<(), CliError> {
    let listener = bind(listen).await?;
    let stop = CancellationToken::new();
    signals::watch(stop.clone())?;
    if let Ok(bound) = listener.local_addr() {
        let page = format!("http://{bound}/preview");
        output::say(&format!("preview at {page}"));
        if !preview.no_open && std::io::stderr().is_terminal() {
            open(&page);
        }
    }
    let options = HttpOptions {
        limits: HttpLimits {
            body_bytes: MAX_BODY,
            handler: HANDLER_TIMEOUT,
            ..HttpLimits::default()
        },
        allowed_origins: Vec::new(),
        routes: routes(&PreviewTarget::Any(preview.url.clone())),
        ..HttpOptions::default()
    };
    let served = serve_routes(options, listener, stop).await;
    served.map_err(|error| CliError::failed("the preview stopped").because(error))
}

/// Opens the page in the default browser. A failure is ignored, since the URL has been printed.
fn open(page: &str) {
    let program = if cfg!(target_os = "macos") {
        "open"
    } else if cfg!(windows) {
        "explorer"
    } else {
        "xdg-open"
    };
    let spawned = Command::new(program)
        .arg(page)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if let Err(error) = spawned {
        tracing::debug!(%error, "cannot open a browser");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preview_stays_on_this_machine() {
        for (text, good) in [
            ("127.0.0.1:8790", true),
            ("[::1]:0", true),
            ("0.0.0.0:8790", false),
            ("192.168.1.5:8790", false),
            ("8790", false),
        ] {
            assert_eq!(address(text).is_ok(), good, "{text}");
        }
    }
}
