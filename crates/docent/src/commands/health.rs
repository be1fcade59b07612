//! `docent health`: asks a running server how it is, for health checks of containers that hold no other program.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use docent_check::get;
use url::Url;

use crate::args::HealthArgs;
use crate::cli_error::CliError;
use crate::output;
use crate::settings::{Settings, shorten};

/// The most of an answer that is shown; `/readyz` says how far everything is.
const SHOWN: usize = 400;

pub(super) fn run(health: &HealthArgs, settings: &Settings) -> Result<ExitCode, CliError> {
    let base = match &health.url {
        Some(typed) => typed_base(typed)?,
        None => own_base(settings.server.listen, settings.server.tls.scheme()),
    };
    let page = if health.ready { "readyz" } else { "healthz" };
    let address = format!("{base}/{page}");
    let found = get(&address, Duration::from_secs(health.timeout)).map_err(|unmet| {
        let hint = "is `docent serve` running there? name its address, such as `docent health http://127.0.0.1:8787`";
        CliError::failed(format!("`{address}`: {unmet}")).hint(hint)
    })?;
    let told = shorten(&found.text, SHOWN);
    if found.status == 200 && is_docent_response(&found.text) {
        output::data(&told)?;
        return Ok(ExitCode::SUCCESS);
    }
    let problem = match found.status {
        200 => CliError::failed(format!("something else than docent answers at `{base}`")),
        503 => CliError::failed(format!("the server at `{base}` is not ready: {told}"))
            .hint("a new folder is being indexed, or the server is ending; ask again"),
        status => CliError::failed(format!("`{address}` answers with status {status}: {told}")),
    };
    Err(problem)
}

/// What both pages of ours say when all is well.
fn is_docent_response(text: &str) -> bool {
    text.contains(r#""status":"ok""#) || text.contains(r#""ready":true"#)
}

/// The address of a server without the path of its MCP endpoint.
fn typed_base(typed: &str) -> Result<String, CliError> {
    let url = Url::parse(typed).ok();
    let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let url = url.ok_or_else(|| {
        CliError::usage(format!("not a web address: `{}`", shorten(typed, 200)))
            .hint("example: `docent health http://127.0.0.1:8787`")
    })?;
    let base = url.as_str().trim_end_matches('/');
    Ok(base.strip_suffix("/mcp").unwrap_or(base).to_owned())
}

/// Where a server with these settings is reached from its own machine.
fn own_base(listen: SocketAddr, scheme: &str) -> String {
    let mut here = listen;
    if here.ip().is_unspecified() {
        here.set_ip(match here.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    format!("{scheme}://{here}")
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
        for (typed, expected) in [
            ("http://127.0.0.1:8787", "http://127.0.0.1:8787"),
            ("https://docs.example.org/mcp", "https://docs.example.org"),
            ("https://example.org/docs/mcp/", "https://example.org/docs"),
        ] {
            assert_eq!(typed_base(typed).unwrap(), expected);
        }
        for typed in ["", "127.0.0.1:8787", "ftp://127.0.0.1", "http://"] {
            assert_eq!(typed_base(typed).unwrap_err().exit, 2, "{typed}");
        }
    }
}
