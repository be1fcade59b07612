//! Where a client wants the answer sent: which addresses may be registered, and which of them a request means.

use url::{Host, Url};

/// The most addresses of one client.
pub(crate) const MAX_URIS: usize = 20;
/// The most bytes of one.
pub(crate) const MAX_BYTES: usize = 2_048;

/// Hosts that are the user's own machine. Programs there listen on whatever port is free.
const LOOPBACK: [&str; 3] = ["http://127.0.0.1", "http://[::1]", "http://localhost"];

/// Schemes that browsers give a meaning of their own; a program's scheme is none of them.
const NOT_A_PROGRAM: [&str; 14] = [
    "about",
    "blob",
    "chrome",
    "data",
    "file",
    "filesystem",
    "ftp",
    "http",
    "https",
    "javascript",
    "mailto",
    "vbscript",
    "view-source",
    "ws",
];

/// True for an address that a client may register: https, http on the user's own machine, or the scheme of
/// a program.
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
            .is_some_and(|rest| !rest.starts_with('/') && url.has_host()),
        "http" => split_loopback(address).is_some(),
        "wss" => false,
        scheme => !NOT_A_PROGRAM.contains(&scheme),
    }
}

/// True when a request may use `asked` because `registered` is registered: the same text, or the same but for
/// the port of a program on the user's machine.
pub(crate) fn matches(registered: &str, asked: &str) -> bool {
    if registered == asked {
        return true;
    }
    match (split_loopback(registered), split_loopback(asked)) {
        (Some(known), Some(wanted)) => known == wanted,
        _ => false,
    }
}

/// An address on the user's own machine without its port: the host, and what follows.
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

/// What a person should know of an address before they send somebody there: its host, or the program's scheme.
pub(crate) fn shown(address: &str) -> String {
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
            "https://a.example/c b",
            "https://a.example\\@evil.example/",
            "https://a.example/\"><script>",
            "javascript:alert(1)",
            "data:text/html,x",
            "file:///etc/passwd",
            "JaVaScRiPt:alert(1)",
            "wss://a.example/cb",
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
            assert_eq!(shown(address), expected);
        }
    }
}
