//! What the text of a template loads and calls.

use serde_json::Value;

use super::super::{Fault, Seen, Verdict};
use super::of_widgets;
use crate::survey::Widget;

/// The most characters of a template, in bytes; see the rule.
const MAX_SIZE: usize = 1024 * 1024;

/// Addresses that the document loads by itself: those in tags that fetch, and in calls that fetch.
fn loads(html: &str) -> Vec<(&'static str, String)> {
    const STARTS: [(&str, &str); 12] = [
        ("<script", "src="),
        ("<link", "href="),
        ("<img", "src="),
        ("<source", "src="),
        ("<video", "src="),
        ("<audio", "src="),
        ("import ", "from "),
        ("import(", ""),
        ("@import ", ""),
        ("fetch(", ""),
        ("new websocket(", ""),
        ("url(", ""),
    ];
    let lower = html.to_ascii_lowercase();
    let mut found = Vec::new();
    for (start, key) in STARTS {
        for (at, _) in lower.match_indices(start).take(500) {
            let end = if start.starts_with('<') {
                lower.get(at..).and_then(|rest| rest.find('>'))
            } else {
                Some(300)
            };
            let piece = window(html, at + start.len(), end.unwrap_or(300).min(2_000));
            // These open a connection and load nothing.
            if start == "<link"
                && ["preconnect", "dns-prefetch", "canonical"]
                    .into_iter()
                    .any(|rel| piece.contains(rel))
            {
                continue;
            }
            let from = if key.is_empty() {
                Some(0)
            } else {
                piece
                    .to_ascii_lowercase()
                    .find(key)
                    .map(|at| at + key.len())
            };
            let address = from
                .and_then(|from| piece.get(from..))
                .map(|rest| rest.trim_start_matches(['"', '\'', '`', '(', ' ']));
            let address =
                address.and_then(|rest| rest.split(['"', '\'', '`', ' ', ')', '>', '\n']).next());
            if let Some(address) = address.filter(|address| {
                address.starts_with("https://")
                    || address.starts_with("http://")
                    || address.starts_with("//")
                    || address.starts_with("wss://")
            }) {
                found.push((start, address.to_owned()));
            }
        }
    }
    found
}

/// A piece of a text that begins at a byte and is about so long.
fn window(text: &str, from: usize, length: usize) -> &str {
    let mut end = (from + length).min(text.len());
    while end > from && !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(from..end).unwrap_or_default()
}

fn origin(address: &str) -> String {
    let whole = if address.starts_with("//") {
        format!("https:{address}")
    } else {
        address.to_owned()
    };
    let (scheme, rest) = whole.split_once("://").unwrap_or(("https", &whole));
    format!(
        "{scheme}://{}",
        rest.split(['/', '?', '#']).next().unwrap_or_default()
    )
}

pub(super) fn inline(seen: &Seen) -> Verdict {
    of_widgets(seen, |widget, _| {
        let loads = loads(&widget.html()?);
        let code = ["<script", "<link", "import ", "import(", "@import "];
        let (_, address) = loads.iter().find(|(start, _)| code.contains(start))?;
        Some(
            Fault::new(format!(
                "`{}` loads code or styles from elsewhere",
                widget.uri
            ))
            .seen(address),
        )
    })
}

/// Every origin that the CSP of a widget allows.
fn allowed(widget: &Widget) -> Vec<String> {
    let keys: [&[&str]; 6] = [
        &["ui", "csp", "resourceDomains"],
        &["ui", "csp", "connectDomains"],
        &["ui", "csp", "frameDomains"],
        &["openai/widgetCSP", "resource_domains"],
        &["openai/widgetCSP", "connect_domains"],
        &["openai/widgetCSP", "frame_domains"],
    ];
    let lists = keys
        .into_iter()
        .filter_map(|path| widget.meta(path))
        .filter_map(Value::as_array);
    lists
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

fn covers(allowed: &str, origin: &str) -> bool {
    if let Some((scheme, suffix)) = allowed.split_once("*.") {
        let rest = origin.strip_prefix(scheme);
        return rest.is_some_and(|rest| rest.ends_with(&format!(".{suffix}")));
    }
    allowed == origin
}

pub(super) fn csp_covers(seen: &Seen) -> Verdict {
    of_widgets(seen, |widget, _| {
        let allowed = allowed(widget);
        let loads = loads(&widget.html()?);
        let is_blocked = |address: &str| {
            let origin = origin(address);
            !allowed.iter().any(|one| covers(one, &origin))
        };
        let (_, address) = loads.iter().find(|(_, address)| is_blocked(address))?;
        Some(
            Fault::new(format!(
                "`{}` loads from `{}`, which its CSP does not list",
                widget.uri,
                origin(address)
            ))
            .seen(address),
        )
    })
}

/// A call by this name that is not part of a longer one.
fn calls(html: &str, name: &str) -> bool {
    html.match_indices(name).any(|(at, _)| {
        let before = html.get(..at).and_then(|text| text.chars().last());
        before.is_none_or(|c| !c.is_alphanumeric() && !matches!(c, '_' | '$' | '.' | '-'))
    })
}

pub(super) fn eval(seen: &Seen) -> Verdict {
    of_widgets(seen, |widget, _| {
        let html = widget.html()?;
        let found = ["eval(", "new Function("]
            .into_iter()
            .find(|name| calls(&html, name))?;
        Some(Fault::new(format!("`{}` calls `{found}…)`", widget.uri)).seen(&found))
    })
}

pub(super) fn sandbox(seen: &Seen) -> Verdict {
    const FORBIDDEN: [&str; 8] = [
        "alert(",
        "confirm(",
        "prompt(",
        "window.alert(",
        "window.confirm(",
        "window.prompt(",
        "localStorage.",
        "window.localStorage.",
    ];
    of_widgets(seen, |widget, _| {
        let html = widget.html()?;
        let found = FORBIDDEN.into_iter().find(|name| calls(&html, name))?;
        Some(Fault::new(format!("`{}` uses `{found}`", widget.uri)).seen(&found))
    })
}

pub(super) fn size(seen: &Seen) -> Verdict {
    of_widgets(seen, |widget, _| {
        let length = widget.html()?.len();
        (length > MAX_SIZE)
            .then(|| Fault::new(format!("`{}` has {length} bytes", widget.uri)).seen(&length))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_document_loads_is_found_and_links_are_not() {
        let html = "<link rel=preconnect href=https://pre.example><script type=module src='https://cdn.example/a.js'></script><a href=\"https://a.example/\">x</a>\
            <img alt=x src=\"//img.example/b.png\"><style>@import \"https://c.example/x.css\"; b{background:url(https://d.example/y.png)}</style>\
            <script>fetch(`https://api.example/v1`); import x from 'https://e.example/z.js'; // see https://doc.example\n</script>";
        let origins: Vec<String> = loads(html)
            .iter()
            .map(|(_, address)| origin(address))
            .collect();
        for wanted in [
            "https://cdn.example",
            "https://img.example",
            "https://c.example",
            "https://d.example",
            "https://api.example",
            "https://e.example",
        ] {
            assert!(
                origins.contains(&wanted.to_owned()),
                "{wanted} in {origins:?}"
            );
        }
        assert!(!origins.contains(&"https://pre.example".to_owned()));
        assert!(
            !origins.contains(&"https://a.example".to_owned())
                && !origins.contains(&"https://doc.example".to_owned())
        );
    }

    #[test]
    fn an_origin_is_covered_by_itself_and_by_its_wildcard() {
        assert!(covers("https://a.example", "https://a.example"));
        assert!(covers("https://*.a.example", "https://x.a.example"));
        assert!(!covers("https://*.a.example", "https://xa.example"));
        assert!(!covers("https://a.example", "http://a.example"));
    }

    #[test]
    fn a_call_is_told_from_a_longer_name() {
        assert!(calls("x=eval(y)", "eval("));
        assert!(!calls("retrieval(x); obj.eval(x); medieval(1)", "eval("));
    }
}
