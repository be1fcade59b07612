//! `docent health`: requests the health or readiness endpoint of a running server, for containers without curl.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use docent_check::get;
use url::Url;

use crate::args::HealthArgs;
use crate::cli_error::CliError;
use crate::display_text::shorten;
use crate::output;
use crate::settings::Settings;

/// Maximum number of characters of the response to show. `/readyz` contains the progress of the sync.
const SHOWN: usize = 400;

pub(super) fn run(health: &HealthArgs, settings: &Settings) -> Result<ExitCode, CliError> {
    let base = match &health.url {
        Some(given_url) => typed_base(given_url)?,
        None => own_base(settings.server.listen, settings.server.tls.scheme()),
    };
    let page = if health.ready { "readyz" } else { "healthz" };
    let address = format!("{base}/{page}");
    let response = get(&address, Duration::from_secs(health.timeout)).map_err(|error| {
        let hint = "check that `docent serve` is running there, or pass its URL, such as `docent health http://127.0.0.1:8787`";
        CliError::failed(format!("`{address}`: {error}")).hint(hint)
    })?;
    let body = shorten(&response.text, SHOWN);
    if response.status == 200 && is_docent_response(&response.text) {
        output::data(&body)?;
        return Ok(ExitCode::SUCCESS);
    }
    let problem = match response.status {
        200 => CliError::failed(format!("another program answers at `{base}`")),
        503 => CliError::failed(format!("the server at `{base}` is not ready: {body}"))
            .hint("a new folder is being indexed, or the server is shutting down; try again"),
        status => CliError::failed(format!("`{address}` answers with status {status}: {body}")),
    };
    Err(problem)
}

/// Recognizes the success bodies of `/healthz` and `/readyz`.
fn is_docent_response(text: &str) -> bool {
    text.contains(r#""status":"ok""#) || text.contains(r#""ready":true"#)
}

/// Base URL of a server, without the path of its MCP endpoint.
fn typed_base(given_url: &str) -> Result<String, CliError> {
    let url = Url::parse(given_url).ok();
    let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let url = url.ok_or_else(|| {
        CliError::usage(format!("not a web address: `{}`", shorten(given_url, 200)))
            .hint("example: `docent health http://127.0.0.1:8787`")
    })?;
    let base = url.as_str().trim_end_matches('/');
    Ok(base.strip_suffix("/mcp").unwrap_or(base).to_owned())
}

/// Base URL at which a server with these settings is reachable from its own machine.
fn own_base(listen: SocketAddr, scheme: &str) -> String {
    let mut address = listen;
    if address.ip().is_unspecified() {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    format!("{scheme}://{address}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_listens_everywhere_is_asked_on_loopback() {
        for (listen, scheme, expected) in [
            ("0.0.0.0:8787", "http", "http://127.0.0.1:8787"),
            ("[::]:443", "https", "https://[::1]:443"),
            ("192.0.2.7:80", "http", "http://192.0.2.7:80"),
        ] {
            assert_eq!(own_base(listen.parse().unwrap(), scheme), expected);
        }
    }

    #[test]
    fn any_address_of_the_server_will_do() {
        for (given_url, expected) in [
            ("http://127.0.0.1:8787", "http://127.0.0.1:8787"),
            ("https://docs.example.org/mcp", "https://docs.example.org"),
            ("https://example.org/docs/mcp/", "https://example.org/docs"),
        ] {
            assert_eq!(typed_base(given_url).unwrap(), expected);
        }
        for given_url in ["", "127.0.0.1:8787", "ftp://127.0.0.1", "http://"] {
            assert_eq!(typed_base(given_url).unwrap_err().exit, 2, "{given_url}");
        }
    }
}
