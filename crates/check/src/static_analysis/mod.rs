//! Static analysis of a widget's document: which addresses stand where a browser loads them, and what its
//! scripts call.
//!
//! A bundle holds many addresses that nothing ever loads: namespaces, schema ids, links in error messages, the
//! base of a `new URL`. So only positions that load count, and an address counts only when its host is spelled
//! out there. HTML, CSS and JavaScript are each tokenized for that; none of them is run.

mod markup;
mod script;
mod stylesheet;

pub(crate) use script::ScriptCall;

/// The most loads and calls of one document that are kept.
const MAX_FOUND: usize = 200;

/// What is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoadKind {
    /// Scripts and stylesheets, which decide what the widget does and how it looks.
    Code,
    Media,
    Frame,
    /// Data, over `fetch` and its relatives.
    Connection,
}

/// What makes the browser load it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoadTrigger {
    /// It stands in markup, in a stylesheet or in a static import.
    Document,
    /// A script calls something that loads it as soon as the script runs.
    Call,
    /// Something else has to happen first: a function is called, a font or a variable of a stylesheet is used.
    Deferred,
    /// A script assigns it where it may be loaded, such as to `src`.
    Assignment,
}

/// One address that a document loads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResourceLoad {
    pub kind: LoadKind,
    pub trigger: LoadTrigger,
    pub address: String,
    pub origin: String,
}

/// What was found in one document.
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

    /// Keeps an address that names a host. `is_open` says that the text goes on in a way that only the running
    /// script knows, so that its host counts only when something ends it.
    fn load(&mut self, kind: LoadKind, trigger: LoadTrigger, text: &str, is_open: bool) {
        let Some(origin) = origin(text.trim(), is_open) else {
            return;
        };
        let load = ResourceLoad {
            kind,
            trigger,
            address: text.trim().chars().take(300).collect(),
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

/// The origin of an absolute address, or `None` where it is relative or its host is not plain.
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
    fn what_is_kept_has_a_bound() {
        let image = |n: usize| format!("<img src=https://h{n}.example/>");
        let html: String = (0..=MAX_FOUND).map(image).collect();
        assert_eq!(DocumentScan::of(&html).loads.len(), MAX_FOUND);
    }
}
