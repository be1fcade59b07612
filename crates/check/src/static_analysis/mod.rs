//! Static analysis of a widget's document: which URLs a browser would load, and which calls its scripts make.
//!
//! A bundle contains many URLs that nothing ever loads: namespaces, schema ids, links in error messages, the base of a
//! `new URL`. So a URL counts only in a position that loads it, and only when its host is a literal. HTML, CSS and
//! JavaScript are each tokenized for that; nothing is executed.

mod markup;
mod script;
mod stylesheet;

pub(crate) use script::ScriptCall;

use crate::text::truncate_chars;

/// The most loads, and the most calls, that are kept of one document.
const MAX_FOUND: usize = 200;

/// The kind of a loaded resource, which decides the CSP directive that must allow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoadKind {
    /// Scripts and stylesheets, which should be inside the document.
    Code,
    Media,
    Frame,
    /// Data over `fetch`, `WebSocket`, `sendBeacon` and the like.
    Connection,
}

/// What makes the browser load a resource, from certain to uncertain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoadTrigger {
    /// Markup, a rule of a stylesheet, or a static import: loaded with the document.
    Document,
    /// A call that runs as soon as the script does.
    Call,
    /// A call in a function, a font, or a custom property: loaded only if that is used.
    Deferred,
    /// A script assigns the URL to something that may load it, such as `src`.
    Assignment,
}

/// One URL that a document loads, with its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResourceLoad {
    pub kind: LoadKind,
    pub trigger: LoadTrigger,
    pub address: String,
    pub origin: String,
}

/// The result of scanning one document.
#[derive(Debug, Default)]
pub(crate) struct DocumentScan {
    pub loads: Vec<ResourceLoad>,
    pub calls: Vec<ScriptCall>,
}

impl DocumentScan {
    pub(crate) fn of(html: &str) -> Self {
        let mut scan = Self::default();
        markup::scan(html, &mut scan);
        scan
    }

    /// Records a URL that names a host. `is_open` says that the literal is continued at run time, by a placeholder or a
    /// concatenation, so that the host counts only when a `/`, `?` or `#` ends it.
    fn load(&mut self, kind: LoadKind, trigger: LoadTrigger, text: &str, is_open: bool) {
        let Some(origin) = origin(text.trim(), is_open) else {
            return;
        };
        let load = ResourceLoad {
            kind,
            trigger,
            address: truncate_chars(text.trim(), 300).to_owned(),
            origin,
        };
        if self.loads.len() < MAX_FOUND && !self.loads.contains(&load) {
            self.loads.push(load);
        }
    }

    fn call(&mut self, call: ScriptCall) {
        if self.calls.len() < MAX_FOUND && !self.calls.contains(&call) {
            self.calls.push(call);
        }
    }
}

/// The origin of an absolute URL; `None` where it is relative or its host is not a literal.
fn origin(address: &str, is_open: bool) -> Option<String> {
    let (scheme, rest) = match address.split_once("//")? {
        ("", rest) => ("https".to_owned(), rest),
        (scheme, rest) => (scheme.strip_suffix(':')?.to_ascii_lowercase(), rest),
    };
    if !matches!(scheme.as_str(), "http" | "https" | "ws" | "wss") {
        return None;
    }
    let end = rest.find(['/', '?', '#']);
    if is_open && end.is_none() {
        return None;
    }
    let authority = rest.get(..end.unwrap_or(rest.len()))?;
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let is_name = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'))
    };
    let inner = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let is_host = match inner {
        Some(inner) => inner.parse::<std::net::Ipv6Addr>().is_ok(),
        None => !host.is_empty() && is_name(host),
    };
    let is_port = port.is_none_or(|port| port.parse::<u16>().is_ok());
    (is_host && is_port).then(|| {
        let host = host.to_ascii_lowercase();
        match port.filter(|port| Some(*port) != default_port(&scheme)) {
            Some(port) => format!("{scheme}://{host}:{port}"),
            None => format!("{scheme}://{host}"),
        }
    })
}

fn default_port(scheme: &str) -> Option<&'static str> {
    match scheme {
        "http" | "ws" => Some("80"),
        "https" | "wss" => Some("443"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_needs_a_host_that_is_spelled_out() {
        for (address, whole, open) in [
            (
                "https://a.example/x",
                Some("https://a.example"),
                Some("https://a.example"),
            ),
            ("https://a.example", Some("https://a.example"), None),
            (
                "//A.example:443?x",
                Some("https://a.example"),
                Some("https://a.example"),
            ),
            (
                "wss://a.example:8443/",
                Some("wss://a.example:8443"),
                Some("wss://a.example:8443"),
            ),
            (
                "http://[::1]:80/x",
                Some("http://[::1]"),
                Some("http://[::1]"),
            ),
            ("http://[${x}]", None, None),
            ("http://", None, None),
            ("https://${host}/x", None, None),
            ("https://a.example:port/", None, None),
            ("data:text/plain,//x", None, None),
            ("/path//x", None, None),
            ("urn:x", None, None),
        ] {
            assert_eq!(origin(address, false).as_deref(), whole, "{address}");
            assert_eq!(origin(address, true).as_deref(), open, "{address}, open");
        }
    }

    #[test]
    fn the_number_of_recorded_loads_is_limited() {
        let image = |n: usize| format!("<img src=https://h{n}.example/>");
        let html: String = (0..=MAX_FOUND).map(image).collect();
        assert_eq!(DocumentScan::of(&html).loads.len(), MAX_FOUND);
    }
}
