//! Redirect URI validation: which URIs a client may register, and whether a request's URI matches a
//! registered one.

use url::{Host, Url};

use super::reverse_domain::is_reverse_domain;

/// The maximum number of redirect URIs of one client.
pub(crate) const MAX_URIS: usize = 20;
/// The maximum length of one redirect URI.
pub(crate) const MAX_BYTES: usize = 2_048;
/// The maximum total length of a client's redirect URIs.
pub(crate) const MAX_TOTAL_BYTES: usize = 4_096;

/// Loopback hosts, where native apps listen on whatever port is free (RFC 8252, section 7.3).
const LOOPBACK: [&str; 3] = ["http://127.0.0.1", "http://[::1]", "http://localhost"];

/// Allowlist of private-use URI schemes that are no reverse domain names. Each entry is what a real client
/// registers, down to the path that receives authorization responses: the same schemes also open files and
/// install extensions.
const KNOWN_PROGRAMS: [&str; 4] = [
    // The Cursor editor's own handler.
    "cursor://anysphere.cursor-mcp/oauth/",
    // Cline, in each edition of VS Code. VS Code itself listens on a loopback port or at vscode.dev.
    "vscode://saoudrizwan.claude-dev/mcp-auth/",
    "vscode-insiders://saoudrizwan.claude-dev/mcp-auth/",
    "cursor://saoudrizwan.claude-dev/mcp-auth/",
];

/// True for an acceptable redirect URI: https, http on a loopback host, a private-use scheme that is a
/// reverse domain name (RFC 8252, section 7.1), or an entry of the allowlist. What an operating system does
/// with any other scheme is unknown, and some of them run programs, so this is an allowlist and no
/// blocklist.
pub(crate) fn is_acceptable(address: &str) -> bool {
    let plain = address.len() <= MAX_BYTES
        && address.bytes().all(|byte| byte.is_ascii_graphic())
        && !address.contains(['#', '\\', '"', '<', '>', '`']);
    let Some(url) = Url::parse(address).ok().filter(|_| plain) else {
        return false;
    };
    if !url.username().is_empty() || url.password().is_some() {
        return false;
    }
    match url.scheme() {
        "https" => address
            .strip_prefix("https://")
            .is_some_and(|rest| !rest.starts_with('/') && url.has_host() && url.port() != Some(0)),
        "http" => split_loopback(address).is_some(),
        scheme if is_reverse_domain(scheme) => address
            .get(scheme.len()..)
            .is_some_and(|rest| rest.starts_with(":/")),
        _ => is_known_program(address),
    }
}

/// True for a URI below an entry of the allowlist, without path traversal out of it.
fn is_known_program(address: &str) -> bool {
    KNOWN_PROGRAMS.iter().any(|known| {
        address.strip_prefix(known).is_some_and(|rest| {
            let path = rest.split('?').next().unwrap_or_default();
            !path.contains("..") && !path.contains('%')
        })
    })
}

/// True when the `requested` URI matches a `registered` one: identical strings, or identical except for the
/// port of a loopback host (RFC 8252, section 7.3).
pub(crate) fn matches(registered: &str, requested: &str) -> bool {
    if registered == requested {
        return true;
    }
    match (split_loopback(registered), split_loopback(requested)) {
        (Some(known), Some(wanted)) => known == wanted,
        _ => false,
    }
}

/// Splits a loopback URI into its host and what follows the port, dropping the port.
fn split_loopback(address: &str) -> Option<(&str, &str)> {
    LOOPBACK.iter().find_map(|host| {
        let rest = address.strip_prefix(host)?;
        let rest = match rest.strip_prefix(':') {
            None => rest,
            Some(after) => {
                let end = after
                    .bytes()
                    .position(|byte| !byte.is_ascii_digit())
                    .unwrap_or(after.len());
                let (port, rest) = after.split_at_checked(end)?;
                port.parse::<u16>().ok().filter(|port| *port != 0)?;
                rest
            }
        };
        let ends = rest.is_empty() || rest.starts_with('/') || rest.starts_with('?');
        ends.then_some((*host, rest))
    })
}

/// What the consent page shows of a redirect URI: its host, or the scheme of the program.
pub(crate) fn display_target(address: &str) -> String {
    let Ok(url) = Url::parse(address) else {
        return String::new();
    };
    match (url.scheme(), url.host()) {
        ("http", Some(_)) => "this computer".to_owned(),
        ("https", Some(Host::Domain(name))) => match url.port() {
            Some(port) => format!("{name}:{port}"),
            None => name.to_owned(),
        },
        ("https", Some(host)) => host.to_string(),
        (scheme, _) => format!("the program that opens {scheme}: links"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_may_be_registered() {
        for good in [
            "https://chatgpt.com/connector_platform_oauth_redirect",
            "https://app.example:8443/cb?x=1",
            "http://127.0.0.1/callback",
            "http://localhost:6274/oauth/callback",
            "http://[::1]:1/cb",
            "http://localhost",
            "cursor://anysphere.cursor-mcp/oauth/callback",
            "com.example.app:/callback",
            "com.example.app://callback?x=1",
            "dev.my-app2:/cb",
            "vscode://saoudrizwan.claude-dev/mcp-auth/callback/1f",
        ] {
            assert!(is_acceptable(good), "{good}");
        }
        let long = format!("https://a.example/{}", "a".repeat(MAX_BYTES));
        for bad in [
            "",
            "callback",
            "//a.example/cb",
            "http://a.example/cb",
            "http://localhost.evil.example/cb",
            "http://127.0.0.1.evil.example/cb",
            "http://127.0.0.1@evil.example/cb",
            "http://localhost:0/cb",
            "http://localhost:99999/cb",
            "http://localhost:80a/cb",
            "https://a.example/cb#frag",
            "https://user@a.example/cb",
            "https://user:pw@a.example/cb",
            "https:a.example/cb",
            "https:///cb",
            "https://a.example:0/cb",
            "https://a.example:00/cb",
            "https://a.example:65536/cb",
            "https://a.example/c b",
            "https://a.example\\@evil.example/",
            "https://a.example/\"><script>",
            "javascript:alert(1)",
            "data:text/html,x",
            "file:///etc/passwd",
            "JaVaScRiPt:alert(1)",
            "wss://a.example/cb",
            // Schemes with a dot that are no reverse domain names, or have no path.
            "z39.50s://a.example/",
            "ms.settings:/x",
            "jar.https:/a.example",
            "windows.immersivecontrolpanel:/x",
            "in.search-ms:/x",
            "x.:/cb",
            ".com:/cb",
            "com..app:/cb",
            "c.app:/cb",
            "com.-app:/cb",
            "com.example.app:cb",
            "com.example.app:",
            // Other functions of the allowlisted programs.
            "cursor://anysphere.cursor-deeplink/mcp/install?name=x",
            "cursor://anysphere.cursor-mcp/oauth/../../file/etc",
            "cursor://anysphere.cursor-mcp/oauth/%2e%2e/x",
            "cursor://anysphere.cursor-mcp.evil/oauth/cb",
            "cursor://x@anysphere.cursor-mcp/oauth/cb",
            "cursor://file/etc/passwd",
            "vscode://file/etc/passwd",
            "vscode://vscode-remote/ssh-remote+evil.example/",
            "vscode:mcp/install?x",
            "claude://callback",
            long.as_str(),
        ] {
            assert!(!is_acceptable(bad), "{bad}");
        }
        let longest = format!("https://a.example/{}", "a".repeat(MAX_BYTES - 18));
        assert!(longest.len() == MAX_BYTES && is_acceptable(&longest));
    }

    #[test]
    fn a_request_means_a_registered_address_exactly() {
        let web = "https://a.example/cb";
        assert!(matches(web, web));
        for other in [
            "https://a.example/cb/",
            "https://a.example/cbx",
            "https://a.example/c",
            "https://a.example/cb?x=1",
            "https://a.example/CB",
            "https://a.example:443/cb",
            "https://a.example.evil.example/cb",
            "https://evil.example/https://a.example/cb",
            "https://a.example@evil.example/cb",
            "https://A.example/cb",
            "http://a.example/cb",
            "https://a.example/x/../cb",
            "https://a.example/%63b",
            "",
        ] {
            assert!(!matches(web, other), "{other}");
        }
    }

    #[test]
    fn only_the_port_is_free_and_only_on_the_users_machine() {
        let home = "http://127.0.0.1/callback";
        for same in [
            "http://127.0.0.1:1/callback",
            "http://127.0.0.1:65535/callback",
        ] {
            assert!(matches(home, same), "{same}");
        }
        assert!(matches(
            "http://localhost:3000/cb",
            "http://localhost:4000/cb"
        ));
        for other in [
            "http://localhost:1/callback",
            "http://127.0.0.1:1/other",
            "http://127.0.0.1:1/callback?x",
            "http://127.0.0.1:0/callback",
            "http://127.0.0.1:65536/callback",
            "http://127.0.0.1:1:2/callback",
            "http://127.0.0.1:1@evil.example/callback",
            "http://127.0.0.2/callback",
            "https://127.0.0.1:1/callback",
            "http://127.0.0.1.evil.example/callback",
        ] {
            assert!(!matches(home, other), "{other}");
        }
        assert!(!matches("cursor://a/cb", "cursor://a:1/cb"));
    }

    #[test]
    fn a_person_sees_where_they_send_somebody() {
        for (address, expected) in [
            ("https://chatgpt.com/x", "chatgpt.com"),
            ("https://a.example:8443/x", "a.example:8443"),
            ("https://xn--80ak6aa92e.example/", "xn--80ak6aa92e.example"),
            ("http://localhost:1/cb", "this computer"),
            ("cursor://x/cb", "the program that opens cursor: links"),
        ] {
            assert_eq!(display_target(address), expected);
        }
    }
}
