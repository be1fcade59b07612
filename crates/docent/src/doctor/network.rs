//! The addresses: is the port free, or who has it, and does the public address lead here.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, SystemTime};

use docent_check::{CheckTarget, ProbeError, get, probe};
use url::Url;

use super::DoctorFinding;
use crate::connect::ClientTransport;
use crate::connect::setup_steps::shell_quote;

/// How long an address may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How far two clocks may be apart. Tokens are refused when they are much further.
const TOLERANCE: Duration = Duration::from_secs(60);

/// Whether `docent serve` could listen, and who does when it cannot.
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
            format!("`{listen}` is not allowed to this user"),
            "choose a port above 1023 with `--listen`",
        ),
        _ => DoctorFinding::wrong(
            "port",
            format!("`{listen}` is no address of this machine: {error}"),
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
        PATIENCE,
    ) {
        Ok(met) if met.name == "docent" => DoctorFinding::good(
            "port",
            format!(
                "docent {} serves `{}` at `{listen}`",
                met.version, met.server
            ),
        ),
        Ok(met) => DoctorFinding::wrong(
            "port",
            format!(
                "`{listen}` is taken by another MCP server, `{}`",
                met.server
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
            format!("{other}; `ss -ltnp` tells which program it is"),
        ),
    }
}

/// Whether the public address leads to docent, as seen from this machine through the public way.
pub(crate) fn public(url: Option<&Url>, listen: SocketAddr, folder: &str) -> Vec<DoctorFinding> {
    let Some(url) = url else {
        let hint = format!(
            "for those, `docent serve {} --public-url https://…` behind a proxy or a tunnel",
            shell_quote(folder)
        );
        return vec![DoctorFinding::warning(
            "public",
            "no public address is set; ChatGPT and claude.ai cannot reach this machine",
            hint,
        )];
    };
    let mut found = Vec::new();
    if !ClientTransport::Http(url.clone()).is_public() {
        found.push(DoctorFinding::warning(
            "public",
            format!("`{url}` is not a public https address"),
            "ChatGPT and claude.ai reach only such; clients on this network may be fine",
        ));
    }
    let base = url.as_str().trim_end_matches('/').trim_end_matches("/mcp");
    found.extend(healthz(base, listen, folder));
    found
}

fn healthz(base: &str, listen: SocketAddr, folder: &str) -> Vec<DoctorFinding> {
    let serve = format!("docent serve {} --public-url {base}", shell_quote(folder));
    let page = match get(&format!("{base}/healthz"), PATIENCE) {
        Ok(page) => page,
        Err(unmet) => {
            let hint =
                format!("is `{serve}` running, and does the proxy or tunnel lead to `{listen}`?");
            return vec![DoctorFinding::wrong(
                "public",
                format!("`{base}`: {unmet}"),
                hint,
            )];
        }
    };
    let ours = page.text.contains("\"status\":\"ok\"");
    let answer = match page.status {
        200 if ours => DoctorFinding::good("public", format!("`{base}` leads to a healthy docent")),
        200 => DoctorFinding::wrong(
            "public",
            format!("something else than docent answers at `{base}`"),
            format!("lead it to `{listen}`"),
        ),
        300..=399 => {
            let to = page.location.as_deref().unwrap_or("nowhere");
            DoctorFinding::wrong(
                "public",
                format!("`{base}` leads on to `{to}`; hosts drop their credentials on the way"),
                "set `server.public_url` to the address where it ends",
            )
        }
        403 => DoctorFinding::wrong(
            "public",
            format!("`{base}` is refused, because docent does not know that name"),
            format!("start it with `{serve}`"),
        ),
        502..=504 => DoctorFinding::wrong(
            "public",
            format!(
                "the proxy at `{base}` does not reach docent (status {})",
                page.status
            ),
            format!("start `{serve}` and lead the proxy to `{listen}`"),
        ),
        status => DoctorFinding::wrong(
            "public",
            format!("`{base}/healthz` answers with status {status}"),
            format!("lead it to `{listen}`"),
        ),
    };
    let mut found = vec![answer];
    found.extend(page.date.and_then(|date| clock(&date, SystemTime::now())));
    found
}

/// What another machine's clock says about ours.
fn clock(date: &str, now: SystemTime) -> Option<DoctorFinding> {
    let theirs = httpdate::parse_http_date(date).ok()?;
    let apart = match now.duration_since(theirs) {
        Ok(behind) => behind,
        Err(ahead) => ahead.duration(),
    };
    let seconds = apart.as_secs();
    Some(if apart > TOLERANCE {
        DoctorFinding::wrong(
            "clock",
            format!(
                "this clock and the one of the public address are {seconds} seconds apart; sign-in fails when they are"
            ),
            "`timedatectl set-ntp true`",
        )
    } else {
        DoctorFinding::good(
            "clock",
            format!("{seconds} seconds apart from the public address"),
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
        // Whoever has it hangs up, so that nobody waits.
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
            clock(date, now + TOLERANCE).unwrap().state,
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
