//! Network checks: whether the port is free or who uses it, and whether the public URL reaches this server.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, SystemTime};

use docent_check::{CheckTarget, ProbeError, get, probe};
use url::Url;

use super::DoctorFinding;
use crate::connect::ClientTransport;
use crate::connect::setup_steps::shell_quote;

/// Timeout of each request to a port or the public URL.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Tolerated clock skew. With much more, access tokens are rejected as expired or not yet valid.
const MAX_CLOCK_SKEW: Duration = Duration::from_secs(60);

/// Checks whether `docent serve` could listen on an address, and who listens there if not.
pub(crate) fn port(listen: SocketAddr) -> DoctorFinding {
    let error = match TcpListener::bind(listen) {
        Ok(_) => return DoctorFinding::good("port", format!("`{listen}` is free")),
        Err(error) => error,
    };
    let other = "choose another one with `--listen`, such as `--listen 127.0.0.1:0`";
    match error.kind() {
        ErrorKind::AddrInUse => port_in_use(listen, other),
        ErrorKind::PermissionDenied => DoctorFinding::wrong(
            "port",
            format!("permission denied for `{listen}`"),
            "choose a port above 1023 with `--listen`",
        ),
        _ => DoctorFinding::wrong(
            "port",
            format!("`{listen}` is not an address of this machine: {error}"),
            other,
        ),
    }
}

fn port_in_use(listen: SocketAddr, other: &str) -> DoctorFinding {
    let mut here = listen;
    if here.ip().is_unspecified() {
        here.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
    }
    match probe(
        &CheckTarget::Url(format!("http://{here}/mcp")),
        None,
        REQUEST_TIMEOUT,
    ) {
        Ok(summary) if summary.name == "docent" => DoctorFinding::good(
            "port",
            format!(
                "docent {} serves `{}` at `{listen}`",
                summary.version, summary.server
            ),
        ),
        Ok(summary) => DoctorFinding::wrong(
            "port",
            format!(
                "`{listen}` is taken by another MCP server, `{}`",
                summary.server
            ),
            other,
        ),
        Err(ProbeError::SignInRequired) => DoctorFinding::good(
            "port",
            format!("an MCP server with sign-in serves at `{listen}`"),
        ),
        Err(_) => DoctorFinding::wrong(
            "port",
            format!("`{listen}` is taken by another program"),
            format!("{other}; `ss -ltnp` shows which program it is"),
        ),
    }
}

/// Checks whether the public URL reaches docent: requests `/healthz` through the public DNS name, proxy and TLS.
pub(crate) fn public(url: Option<&Url>, listen: SocketAddr, folder: &str) -> Vec<DoctorFinding> {
    let Some(url) = url else {
        let hint = format!(
            "if they should, run `docent serve {} --public-url https://…` behind a proxy or a tunnel",
            shell_quote(folder)
        );
        return vec![DoctorFinding::warning(
            "public",
            "no public URL is set, so ChatGPT and claude.ai cannot reach this machine",
            hint,
        )];
    };
    let mut found = Vec::new();
    if !ClientTransport::Http(url.clone()).is_public() {
        found.push(DoctorFinding::warning(
            "public",
            format!("`{url}` is not a public https URL"),
            "ChatGPT and claude.ai need one; clients on this network may work without",
        ));
    }
    let base = url.as_str().trim_end_matches('/').trim_end_matches("/mcp");
    found.extend(healthz(base, listen, folder));
    found
}

fn healthz(base: &str, listen: SocketAddr, folder: &str) -> Vec<DoctorFinding> {
    let serve = format!("docent serve {} --public-url {base}", shell_quote(folder));
    let page = match get(&format!("{base}/healthz"), REQUEST_TIMEOUT) {
        Ok(page) => page,
        Err(error) => {
            let hint = format!(
                "check that `{serve}` is running and that the proxy or tunnel forwards to `{listen}`"
            );
            return vec![DoctorFinding::wrong(
                "public",
                format!("`{base}`: {error}"),
                hint,
            )];
        }
    };
    let ours = page.text.contains("\"status\":\"ok\"");
    let answer = match page.status {
        200 if ours => DoctorFinding::good("public", format!("`{base}` reaches a healthy docent")),
        200 => DoctorFinding::wrong(
            "public",
            format!("another program answers at `{base}`"),
            format!("forward it to `{listen}`"),
        ),
        300..=399 => {
            let to = page.location.as_deref().unwrap_or("nowhere");
            DoctorFinding::wrong(
                "public",
                format!("`{base}` redirects to `{to}`; hosts drop credentials on redirects"),
                "set `server.public_url` to the final URL",
            )
        }
        403 => DoctorFinding::wrong(
            "public",
            format!("docent refuses `{base}`: host name not allowed"),
            format!("start it with `{serve}`"),
        ),
        502..=504 => DoctorFinding::wrong(
            "public",
            format!(
                "the proxy at `{base}` does not reach docent (status {})",
                page.status
            ),
            format!("start `{serve}` and let the proxy forward to `{listen}`"),
        ),
        status => DoctorFinding::wrong(
            "public",
            format!("`{base}/healthz` answers with status {status}"),
            format!("forward it to `{listen}`"),
        ),
    };
    let mut found = vec![answer];
    found.extend(page.date.and_then(|date| clock(&date, SystemTime::now())));
    found
}

/// Compares our clock with the `Date` header of another machine.
fn clock(date: &str, now: SystemTime) -> Option<DoctorFinding> {
    let theirs = httpdate::parse_http_date(date).ok()?;
    let skew = match now.duration_since(theirs) {
        Ok(behind) => behind,
        Err(ahead) => ahead.duration(),
    };
    let seconds = skew.as_secs();
    Some(if skew > MAX_CLOCK_SKEW {
        DoctorFinding::wrong(
            "clock",
            format!(
                "this clock and that of the public URL are {seconds} seconds apart, so sign-in fails"
            ),
            "`timedatectl set-ntp true`",
        )
    } else {
        DoctorFinding::good(
            "clock",
            format!("{seconds} seconds apart from the public URL"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::FindingStatus;
    use super::*;

    #[test]
    fn a_port_is_free_or_taken_by_somebody() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        // The listener closes every connection, so that the probe does not wait for its timeout.
        std::thread::spawn(move || listener.incoming().for_each(drop));
        let finding = port(address);
        assert_eq!(finding.state, FindingStatus::Wrong);
        assert!(
            finding.says.ends_with("is taken by another program"),
            "{finding:?}"
        );
        assert_eq!(
            port("127.0.0.1:0".parse().unwrap()).state,
            FindingStatus::Good
        );
        assert_eq!(
            port("192.0.2.1:80".parse().unwrap()).state,
            FindingStatus::Wrong
        );
    }

    #[test]
    fn clocks_are_compared() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        assert_eq!(clock(date, now).unwrap().state, FindingStatus::Good);
        assert_eq!(
            clock(date, now + MAX_CLOCK_SKEW).unwrap().state,
            FindingStatus::Good
        );
        let late = Duration::from_secs(61);
        assert_eq!(clock(date, now + late).unwrap().state, FindingStatus::Wrong);
        assert_eq!(clock(date, now - late).unwrap().state, FindingStatus::Wrong);
        assert_eq!(clock("yesterday", now), None);
    }

    #[test]
    fn without_a_public_address_it_is_said_who_cannot_come() {
        let listen = "127.0.0.1:8787".parse().unwrap();
        let found = public(None, listen, "/srv/dam");
        assert_eq!(found[0].state, FindingStatus::Warning);
        let dead = Url::parse("http://127.0.0.1:1/mcp").unwrap();
        let found = public(Some(&dead), listen, "/srv/dam");
        assert_eq!(
            found.iter().map(|f| f.state).collect::<Vec<_>>(),
            [FindingStatus::Warning, FindingStatus::Wrong]
        );
    }
}
