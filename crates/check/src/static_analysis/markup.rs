//! HTML scanner: finds tags with their attributes, and the contents of scripts and styles.
//!
//! It follows browsers where it matters for what loads: raw text elements, unclosed tags, inert `template` content and
//! scripts that are data. It never fails, and each step consumes at least one character, so hostile markup ends too.

use super::script::{self, ScriptStart};
use super::{DocumentScan, LoadKind, LoadTrigger, stylesheet};

/// Raw text elements, whose content is not markup. Only `script` and `style` are analysed further.
const RAW: [&str; 9] = [
    "script", "style", "textarea", "title", "noscript", "xmp", "iframe", "noembed", "noframes",
];

/// An opening tag with its attributes, whose names are in lower case.
struct OpenTag<'a> {
    name: String,
    attributes: Vec<(String, &'a str)>,
}

impl<'a> OpenTag<'a> {
    fn attribute(&self, name: &str) -> Option<&'a str> {
        let found = self.attributes.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| *value)
    }
}

pub(super) fn scan(html: &str, found: &mut DocumentScan) {
    let mut rest = html;
    // The content of a `template` is loaded only if a script clones it.
    let mut templates = 0usize;
    while let Some(at) = rest.find('<') {
        rest = rest.get(at..).unwrap_or_default();
        if let Some(comment) = rest.strip_prefix("<!--") {
            rest = after(comment, "-->");
            continue;
        }
        if let Some(close) = rest.strip_prefix("</") {
            if starts_with_name(close, "template") {
                templates = templates.saturating_sub(1);
            }
            rest = after(close, ">");
            continue;
        }
        if !is_tag(rest) {
            rest = rest.get(1..).unwrap_or_default();
            continue;
        }
        // An unclosed tag consumes the rest of the document, as in browsers.
        let Some((tag, next)) = open_tag(rest) else {
            return;
        };
        rest = next;
        let mut content = "";
        if RAW.contains(&tag.name.as_str()) {
            (content, rest) = raw_text(rest, &tag.name);
        }
        if tag.name == "template" && tag.attribute("shadowrootmode").is_none() {
            templates += 1;
        }
        if templates == 0 {
            element(&tag, content, found);
        }
    }
}

fn after<'a>(text: &'a str, end: &str) -> &'a str {
    let at = text.find(end).map(|at| at + end.len());
    at.and_then(|at| text.get(at..)).unwrap_or_default()
}

fn starts_with_name(text: &str, name: &str) -> bool {
    let start = text.get(..name.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(name))
        && !text
            .get(name.len()..)
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '-'))
}

/// Splits a text after the content of a raw text element: the content, and what follows the closing tag.
fn raw_text<'a>(text: &'a str, name: &str) -> (&'a str, &'a str) {
    let mut from = 0;
    while let Some(at) = text.get(from..).and_then(|rest| rest.find("</")) {
        let at = from + at;
        if starts_with_name(text.get(at + 2..).unwrap_or_default(), name) {
            let rest = text.get(at..).unwrap_or_default();
            return (text.get(..at).unwrap_or_default(), after(rest, ">"));
        }
        from = at + 2;
    }
    (text, "")
}

fn is_tag(text: &str) -> bool {
    text.strip_prefix('<')
        .is_some_and(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()))
}

/// Parses the tag at the start of a text, and returns it with the rest; `None` where the tag is not closed.
fn open_tag(text: &str) -> Option<(OpenTag<'_>, &str)> {
    let text = text.strip_prefix('<')?;
    let end = text.find(|c: char| c.is_whitespace() || c == '/' || c == '>')?;
    let (name, mut rest) = text.split_at(end);
    let mut attributes = Vec::new();
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '/');
        if rest.is_empty() {
            return None;
        }
        if let Some(next) = rest.strip_prefix('>') {
            let name = name.to_ascii_lowercase();
            return Some((OpenTag { name, attributes }, next));
        }
        // As in browsers, a name may begin with `=`, so every iteration consumes at least one character.
        let first = rest.chars().next().map_or(1, char::len_utf8);
        let ends = |c: char| c.is_whitespace() || matches!(c, '/' | '>' | '=');
        let end = rest.get(first..).and_then(|more| more.find(ends));
        let (key, next) = rest.split_at(end.map_or(rest.len(), |end| first + end));
        let (value, next) = attribute_value(next);
        attributes.push((key.to_ascii_lowercase(), value));
        rest = next;
    }
}

/// Parses the value after an attribute's name, and returns it with the rest.
fn attribute_value(text: &str) -> (&str, &str) {
    let Some(value) = text.trim_start().strip_prefix('=') else {
        return ("", text);
    };
    let value = value.trim_start();
    for quote in ['"', '\''] {
        if let Some(quoted) = value.strip_prefix(quote) {
            return quoted.split_once(quote).unwrap_or((quoted, ""));
        }
    }
    let end = value.find(|c: char| c.is_whitespace() || c == '>');
    value.split_at(end.unwrap_or(value.len()))
}

fn element(tag: &OpenTag, content: &str, found: &mut DocumentScan) {
    for (key, value) in &tag.attributes {
        if key == "style" {
            stylesheet::scan(value, found);
        } else if key.starts_with("on") {
            let start = match key.as_str() {
                "onload" => ScriptStart::Document,
                _ => ScriptStart::Event,
            };
            script::scan(value, start, found);
        }
    }
    let (kind, names): (LoadKind, &[&str]) = match tag.name.as_str() {
        "script" if !is_script(tag) => return,
        "script" => {
            // Browsers ignore the content of a script that has `src`.
            if tag.attribute("src").is_none() {
                script::scan(content, ScriptStart::Document, found);
            }
            (LoadKind::Code, &["src"])
        }
        "style" => return stylesheet::scan(content, found),
        "link" if tag.attribute("disabled").is_some() => return,
        "link" if has_rel(tag, &["stylesheet", "modulepreload"]) => (LoadKind::Code, &["href"]),
        "link" if has_rel(tag, &["preload", "prefetch"]) => (LoadKind::Media, &["href"]),
        "img" | "source" => (LoadKind::Media, &["src", "srcset"]),
        "video" => (LoadKind::Media, &["src", "poster"]),
        "audio" | "track" | "embed" => (LoadKind::Media, &["src"]),
        "object" => (LoadKind::Media, &["data"]),
        "input"
            if tag
                .attribute("type")
                .is_some_and(|kind| kind.eq_ignore_ascii_case("image")) =>
        {
            (LoadKind::Media, &["src"])
        }
        "image" | "use" => (LoadKind::Media, &["href", "xlink:href"]),
        "iframe" | "frame" => (LoadKind::Frame, &["src"]),
        _ => return,
    };
    for name in names {
        let value = tag.attribute(name).unwrap_or_default();
        if *name == "srcset" {
            for address in srcset(value) {
                found.load(kind, LoadTrigger::Document, address, false);
            }
        } else {
            found.load(kind, LoadTrigger::Document, value, false);
        }
    }
}

/// The URLs of a `srcset`, split as browsers do: a URL extends up to white space, so that commas inside a `data:` URL
/// belong to it. Commas at its end, or after the descriptors that follow it, end the candidate.
fn srcset(value: &str) -> Vec<&str> {
    let mut addresses = Vec::new();
    let mut rest = value;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',');
        if rest.is_empty() {
            return addresses;
        }
        let end = rest.find(|c: char| c.is_ascii_whitespace());
        let (word, next) = rest.split_at(end.unwrap_or(rest.len()));
        let address = word.trim_end_matches(',');
        addresses.push(address);
        rest = if address.len() < word.len() {
            next
        } else {
            after_descriptors(next)
        };
    }
}

/// The text after the descriptors of a candidate, which end at the first comma outside of parentheses.
fn after_descriptors(text: &str) -> &str {
    let mut depth = 0usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => return text.get(at..).unwrap_or_default(),
            _ => {}
        }
    }
    ""
}

/// Whether a `script` element is executed: other types are data blocks, which browsers neither fetch nor run.
fn is_script(tag: &OpenTag) -> bool {
    let kind = tag.attribute("type").unwrap_or_default().trim();
    let kind = kind.split(';').next().unwrap_or_default();
    let is_known = [
        "",
        "module",
        "text/javascript",
        "application/javascript",
        "text/ecmascript",
    ]
    .iter()
    .any(|known| kind.eq_ignore_ascii_case(known));
    // Browsers that support modules ignore `nomodule` scripts.
    is_known && tag.attribute("nomodule").is_none()
}

fn has_rel(tag: &OpenTag, wanted: &[&str]) -> bool {
    let rel = tag.attribute("rel").unwrap_or_default();
    rel.split_whitespace()
        .any(|word| wanted.iter().any(|known| word.eq_ignore_ascii_case(known)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origins(html: &str) -> Vec<String> {
        let loads = DocumentScan::of(html).loads;
        loads.into_iter().map(|load| load.origin).collect()
    }

    #[test]
    fn elements_that_load_are_found() {
        for html in [
            "<script type=module src='https://a.example/a.js'></script>",
            "<SCRIPT SRC=https://a.example/a.js></SCRIPT>",
            "<link rel=\"preload stylesheet\" href=\"https://a.example/x.css\">",
            "<img alt=\"a > b\" src=\"//a.example/b.png\">",
            "<img srcset=\"/x.png 1x, https://a.example/y.png 2x\">",
            "<img srcset=\"data:image/gif;base64,R0lGOD=,//b.example 1x,https://a.example/y.png 2x\">",
            "<img srcset=\"/x.png, https://a.example/y.png\">",
            "<img srcset=\" , https://a.example/y.png,,/x.png\">",
            "<img srcset=\"/x.png x(,//b.example/ ), https://a.example/y.png\">",
            "<video poster = 'https://a.example/p.jpg'></video>",
            "<iframe src=https://a.example/></iframe>",
            "<svg><use xlink:href=\"https://a.example/i.svg#x\"/></svg>",
            "<p style=\"background:url(https://a.example/y.png)\">",
            "<body onload=\"fetch('https://a.example/v1')\">",
            "<template shadowrootmode=open><img src=https://a.example/></template>",
            "<p title=<img><img src=https://a.example/>",
        ] {
            assert_eq!(origins(html), ["https://a.example"], "{html}");
        }
    }

    #[test]
    fn elements_that_only_name_an_address_are_not() {
        for html in [
            "<a href=\"https://a.example/\">x</a>",
            "<link rel=preconnect href=https://a.example>",
            "<link rel=icon href=https://a.example/i.png>",
            "<link rel=canonical href=https://a.example/>",
            "<svg xmlns=\"http://www.w3.org/2000/svg\"></svg>",
            "<!-- <img src=https://a.example/> -->",
            "<script type=application/json src=https://a.example/></script>",
            "<script type=application/ld+json>{\"@context\": \"https://schema.org\"}</script>",
            "<textarea><img src=https://a.example/></textarea>",
            "<noscript><img src=https://a.example/></noscript>",
            "<template><img src=https://a.example/></template>",
            "<img data-src=https://a.example/ src=data:image/png;base64,//a>",
            "<img src=https://a.example/",
            "<img srcset=\"data:image/gif;base64,R0lGOD=,//a.example 1x, data:image/png;base64,//8AAA/x 2x\">",
            "<img srcset=\"data:image/svg+xml,%3Csvg,https://a.example/\">",
            "<img srcset=', ,'>",
            "<link rel=stylesheet disabled href=https://a.example/x.css>",
            "<p>a < b <img",
        ] {
            assert_eq!(origins(html), [""; 0], "{html}");
        }
    }
}
