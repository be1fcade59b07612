//! Content Security Policy of widgets: the policy that a host derives from the origins a widget declares.
//!
//! Previewing and checking use the one function [`policy`], so that a widget is tested under the rules it will really
//! meet. Their sources:
//!
//! - MCP Apps, specification 2026-01-26: "Host Behavior" has the policy for a widget that declares no domains, "CSP
//!   Construction from Metadata" the one for a widget that does.
//! - ChatGPT follows that text (OpenAI, plugins reference: `_meta.ui.csp`, with `openai/widgetCSP` as its alias). It
//!   allows declared frames, and reviews such apps more strictly.
//! - Claude follows it too, without frames: `frameDomains` is restricted there (Claude, MCP Apps troubleshooting). No
//!   host allows `eval`.

/// The origins that a widget may use, by purpose. Empty lists are the safe default, which every host accepts.
///
/// ```rust
/// use docent_mcp::csp::{HostStyle, WidgetDomains, policy};
///
/// let domains = WidgetDomains {
///     connect: vec!["https://api.tides.example".to_owned()],
///     ..WidgetDomains::default()
/// };
/// let header = policy(Some(&domains), HostStyle::Claude);
/// assert!(header.contains("connect-src 'self' https://api.tides.example;"));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WidgetDomains {
    /// Origins for `fetch`, XHR and web sockets (`connect-src`).
    pub connect: Vec<String>,
    /// Origins for scripts, styles, images, fonts and media.
    pub resource: Vec<String>,
    /// Origins for frames inside the widget (`frame-src`).
    pub frame: Vec<String>,
    /// Origins for the document's base URL (`base-uri`).
    pub base_uri: Vec<String>,
    /// Origins of links that ChatGPT opens without a warning. They are not part of the policy.
    pub redirect: Vec<String>,
}

/// The host whose policy applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostStyle {
    /// ChatGPT, which allows declared frames.
    ChatGpt,
    /// Claude, which allows no frames at all.
    Claude,
}

/// Maximum number of origins in one list. A widget that needs more should use a proxy of its own.
pub const MAX_DOMAINS: usize = 32;

/// Maximum length of an origin in characters: the longest DNS name, a scheme and a port.
const MAX_DOMAIN_CHARS: usize = 270;

/// Returns the policy that a host applies to a widget; `None` stands for a widget that declares nothing at all.
///
/// Entries that are not origins are left out, since a host would ignore them too.
#[must_use]
pub fn policy(domains: Option<&WidgetDomains>, style: HostStyle) -> String {
    let Some(domains) = domains else {
        return "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; \
                img-src 'self' data:; media-src 'self' data:; connect-src 'none'"
            .to_owned();
    };
    let with = |fixed: &str, listed: &[String]| {
        let origins = listed
            .iter()
            .filter(|entry| is_origin(entry))
            .take(MAX_DOMAINS);
        let mut sources: Vec<&str> = Some(fixed)
            .filter(|fixed| !fixed.is_empty())
            .into_iter()
            .collect();
        sources.extend(origins.map(String::as_str));
        sources.join(" ")
    };
    let or = |sources: String, otherwise: &str| {
        Some(sources)
            .filter(|sources| !sources.is_empty())
            .unwrap_or_else(|| otherwise.to_owned())
    };
    let resource = &domains.resource;
    let frames = match style {
        HostStyle::ChatGpt => or(with("", &domains.frame), "'none'"),
        HostStyle::Claude => "'none'".to_owned(),
    };
    [
        ("default-src", "'none'".to_owned()),
        ("script-src", with("'self' 'unsafe-inline'", resource)),
        ("style-src", with("'self' 'unsafe-inline'", resource)),
        ("connect-src", with("'self'", &domains.connect)),
        ("img-src", with("'self' data:", resource)),
        ("font-src", with("'self'", resource)),
        ("media-src", with("'self' data:", resource)),
        ("frame-src", frames),
        ("object-src", "'none'".to_owned()),
        ("base-uri", or(with("", &domains.base_uri), "'self'")),
    ]
    .map(|(directive, sources)| format!("{directive} {sources}"))
    .join("; ")
}

/// Whether a text is an origin: a scheme and a host, with an optional `*.` prefix and port, and nothing else. An
/// entry of a policy must not be able to end its directive. Plain `http` and `ws` are allowed for localhost only.
pub(crate) fn is_origin(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else {
        return false;
    };
    let (host, port) = match rest.rsplit_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (rest, None),
    };
    let is_local = matches!(host, "localhost" | "127.0.0.1");
    let scheme_fits = match scheme {
        "https" | "wss" => true,
        "http" | "ws" => is_local,
        _ => false,
    };
    let name = host.strip_prefix("*.").unwrap_or(host);
    let is_label = |label: &str| {
        !label.is_empty()
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let port_fits =
        port.is_none_or(|port| port == "*" || port.parse::<u16>().is_ok_and(|port| port > 0));
    text.len() <= MAX_DOMAIN_CHARS && scheme_fits && port_fits && name.split('.').all(is_label)
}

/// Whether a list of declared origins covers a URL.
pub(crate) fn covers_url(origins: &[String], address: &str) -> bool {
    let Some((scheme, rest)) = address.split_once("://") else {
        return false;
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    origins.iter().any(|origin| match origin.split_once("://") {
        Some((listed, host)) if listed.eq_ignore_ascii_case(scheme) => match host.strip_prefix('*')
        {
            Some(tail) => authority
                .to_ascii_lowercase()
                .ends_with(&tail.to_ascii_lowercase()),
            None => authority.eq_ignore_ascii_case(host),
        },
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: &[&str]) -> Vec<String> {
        entries.iter().map(|&entry| entry.to_owned()).collect()
    }

    #[test]
    fn the_policy_is_the_specifications() {
        assert_eq!(
            policy(None, HostStyle::Claude),
            "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; \
             img-src 'self' data:; media-src 'self' data:; connect-src 'none'"
        );
        assert_eq!(
            policy(Some(&WidgetDomains::default()), HostStyle::ChatGpt),
            "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; \
             connect-src 'self'; img-src 'self' data:; font-src 'self'; media-src 'self' data:; \
             frame-src 'none'; object-src 'none'; base-uri 'self'"
        );
        let domains = WidgetDomains {
            connect: list(&["https://api.example.com", "wss://live.example.com"]),
            resource: list(&["https://*.cdn.example.com"]),
            frame: list(&["https://player.example.com"]),
            base_uri: list(&["https://base.example.com"]),
            redirect: list(&["https://shop.example.com"]),
        };
        let chatgpt = policy(Some(&domains), HostStyle::ChatGpt);
        assert_eq!(
            chatgpt,
            "default-src 'none'; script-src 'self' 'unsafe-inline' https://*.cdn.example.com; \
             style-src 'self' 'unsafe-inline' https://*.cdn.example.com; \
             connect-src 'self' https://api.example.com wss://live.example.com; \
             img-src 'self' data: https://*.cdn.example.com; font-src 'self' https://*.cdn.example.com; \
             media-src 'self' data: https://*.cdn.example.com; frame-src https://player.example.com; \
             object-src 'none'; base-uri https://base.example.com"
        );
        let claude = policy(Some(&domains), HostStyle::Claude);
        assert_eq!(
            claude,
            chatgpt.replace("https://player.example.com", "'none'")
        );
        assert!(!claude.contains("eval") && !claude.contains("shop.example.com"));
    }

    #[test]
    fn nothing_that_is_not_an_origin_gets_into_a_policy() {
        let hostile = [
            "https://a.example; script-src *",
            "https://a.example 'unsafe-eval'",
            "*",
            "https:",
            "data:",
            "'unsafe-eval'",
            "https://",
            "https://a.example/path",
            "https://user@a.example",
            "http://a.example",
            "https://a.example:0",
            "https://a.example:99999",
            "https://*",
            "https://a.*.example",
            "https://a..example",
            "https://a\n.example",
            &format!("https://{}.example", "a".repeat(MAX_DOMAIN_CHARS)),
        ];
        let bare = policy(Some(&WidgetDomains::default()), HostStyle::ChatGpt);
        for entry in hostile {
            assert!(!is_origin(entry), "{entry}");
            let domains = WidgetDomains {
                connect: list(&[entry]),
                resource: list(&[entry]),
                frame: list(&[entry]),
                base_uri: list(&[entry]),
                redirect: Vec::new(),
            };
            assert_eq!(policy(Some(&domains), HostStyle::ChatGpt), bare, "{entry}");
        }
        for entry in [
            "https://a.example",
            "https://*.a.example:8443",
            "wss://a.example",
            "http://localhost:5173",
        ] {
            assert!(is_origin(entry), "{entry}");
        }
    }

    #[test]
    fn a_list_counts_to_its_bound() {
        let many = (0..=MAX_DOMAINS)
            .map(|n| format!("https://h{n}.example"))
            .collect();
        let domains = WidgetDomains {
            connect: many,
            ..WidgetDomains::default()
        };
        let policy = policy(Some(&domains), HostStyle::Claude);
        assert!(policy.contains(&format!("h{}.example", MAX_DOMAINS - 1)));
        assert!(!policy.contains(&format!("h{MAX_DOMAINS}.example")));
    }

    #[test]
    fn an_address_is_covered_by_its_origin() {
        let origins = list(&["https://cdn.example.com", "https://*.img.example.com"]);
        for (address, expected) in [
            ("https://cdn.example.com/a.js", true),
            ("https://CDN.example.com", true),
            ("https://a.img.example.com/x?y", true),
            ("https://img.example.com/x", false),
            ("http://cdn.example.com/a.js", false),
            ("https://cdn.example.com.evil.example/a.js", false),
            ("/a.js", false),
        ] {
            assert_eq!(covers_url(&origins, address), expected, "{address}");
        }
    }
}
