//! CSS scanner: finds the URLs in `url()` and `@import`.
//!
//! Not every URL in a stylesheet is loaded. A namespace is only a name, an `@import` after the first rule is invalid,
//! and a font or a custom property loads only when something uses it. The first two are left out, and the others are
//! marked as deferred, so that no rule takes them for certain.

use super::{DocumentScan, LoadKind, LoadTrigger};

pub(super) fn scan(css: &str, found: &mut DocumentScan) {
    let mut rest = css;
    // The at-rule or declaration that the next URL belongs to.
    let mut at_rule = AtRule::None;
    // An `@import` is valid only before the first rule.
    let mut has_rules = false;
    while let Some(c) = rest.chars().next() {
        if let Some(comment) = rest.strip_prefix("/*") {
            let end = comment.find("*/").map(|end| end + 2);
            rest = end.and_then(|end| comment.get(end..)).unwrap_or_default();
            continue;
        }
        match c {
            '"' | '\'' => {
                let (text, next) = quoted(rest, c);
                if at_rule == AtRule::Import && !has_rules {
                    found.load(LoadKind::Code, LoadTrigger::Document, text, false);
                    at_rule = AtRule::None;
                }
                rest = next;
            }
            ';' | '{' | '}' => {
                has_rules |= c == '{';
                at_rule = match (at_rule, c) {
                    (AtRule::FontFace, ';' | '{') => AtRule::FontFace,
                    _ => AtRule::None,
                };
                rest = rest.get(1..).unwrap_or_default();
            }
            '@' => {
                let (word, next) = word(rest.get(1..).unwrap_or_default());
                at_rule = AtRule::of(word);
                rest = next;
            }
            _ if is_word(c) => {
                let (word, next) = word(rest);
                rest = next;
                if word.starts_with("--") && next.trim_start().starts_with(':') {
                    at_rule = AtRule::Variable;
                }
                if word.eq_ignore_ascii_case("url")
                    && let Some(inside) = next.strip_prefix('(')
                {
                    let (address, next) = url(inside);
                    rest = next;
                    match at_rule {
                        // The URL of a namespace is only a name.
                        AtRule::Namespace => {}
                        AtRule::Import if has_rules => {}
                        AtRule::Import => {
                            found.load(LoadKind::Code, LoadTrigger::Document, address, false);
                        }
                        AtRule::FontFace | AtRule::Variable => {
                            found.load(LoadKind::Media, LoadTrigger::Deferred, address, false);
                        }
                        AtRule::None => {
                            found.load(LoadKind::Media, LoadTrigger::Document, address, false);
                        }
                    }
                }
            }
            _ => rest = rest.get(c.len_utf8()..).unwrap_or_default(),
        }
    }
}

#[derive(PartialEq, Eq)]
enum AtRule {
    None,
    Import,
    Namespace,
    /// A font is loaded only when some text uses it, and not where a `local()` font exists.
    FontFace,
    /// A custom property, which loads nothing until it is used.
    Variable,
}

impl AtRule {
    fn of(word: &str) -> Self {
        match word.to_ascii_lowercase().as_str() {
            "import" => Self::Import,
            "namespace" => Self::Namespace,
            "font-face" => Self::FontFace,
            _ => Self::None,
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_')
}

fn word(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c| !is_word(c)).unwrap_or(text.len()))
}

/// Splits off the quoted string at the start of a text.
fn quoted(text: &str, quote: char) -> (&str, &str) {
    let inside = text.get(1..).unwrap_or_default();
    let mut escaped = false;
    for (at, c) in inside.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote || c == '\n' => {
                let (text, rest) = inside.split_at(at);
                return (text, rest.get(1..).unwrap_or_default());
            }
            _ => {}
        }
    }
    (inside, "")
}

/// Parses the argument of `url(`, and returns it with what follows the `)`.
fn url(text: &str) -> (&str, &str) {
    let trimmed = text.trim_start();
    let (address, rest) = match trimmed.chars().next() {
        Some(quote @ ('"' | '\'')) => quoted(trimmed, quote),
        _ => trimmed.split_at(trimmed.find(')').unwrap_or(trimmed.len())),
    };
    let end = rest.find(')').map(|at| at + 1);
    (
        address.trim(),
        end.and_then(|end| rest.get(end..)).unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(css: &str) -> Vec<(LoadKind, String)> {
        let mut found = DocumentScan::default();
        scan(css, &mut found);
        found
            .loads
            .into_iter()
            .map(|load| (load.kind, load.origin))
            .collect()
    }

    #[test]
    fn addresses_that_styles_load_are_found() {
        let (code, media) = (LoadKind::Code, LoadKind::Media);
        for (css, kind) in [
            ("@import \"https://a.example/x.css\";", code),
            ("@IMPORT url( 'https://a.example/x.css' ) screen;", code),
            ("b{background:url(https://a.example/y.png)}", media),
            (
                "@font-face{font-family:x;src:local('y'),URL(\"https://a.example/f.woff2\") format('woff2')}",
                media,
            ),
            (
                "b::before{content:\"it's /* no comment\"}c{background:url(https://a.example/)}",
                media,
            ),
        ] {
            assert_eq!(
                found(css),
                [(kind, "https://a.example".to_owned())],
                "{css}"
            );
        }
    }

    #[test]
    fn loads_that_may_be_unused_are_deferred() {
        for (css, trigger) in [
            (
                "@font-face{src:local('x'),url(https://a.example/f)}",
                LoadTrigger::Deferred,
            ),
            (
                "@font-face{font-family:x;src:url(https://a.example/f)}",
                LoadTrigger::Deferred,
            ),
            (
                ":root{--image: url(https://a.example/x.png)}",
                LoadTrigger::Deferred,
            ),
            (
                "@font-face{src:local('x')}b{background:url(https://a.example/f)}",
                LoadTrigger::Document,
            ),
            (
                "b{--x:1;background:url(https://a.example/f)}",
                LoadTrigger::Document,
            ),
        ] {
            let mut found = DocumentScan::default();
            scan(css, &mut found);
            let triggers: Vec<_> = found.loads.iter().map(|load| load.trigger).collect();
            assert_eq!(triggers, [trigger], "{css}");
        }
    }

    #[test]
    fn other_addresses_are_not() {
        for css in [
            "/* url(https://a.example/) */",
            "@namespace svg url(http://www.w3.org/2000/svg);",
            "b{content:\"url(https://a.example/)\"}",
            "b{background:url(data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg'%3E)}",
            "b{background:url(\"data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg'>\")}",
            "b{--curl(https://a.example/)}",
            "b{color:red}@import 'https://a.example/x.css';",
            "b{color:red}@import url(https://a.example/x.css);",
            "url(",
            "@import",
            "b{content:'\\",
        ] {
            assert_eq!(found(css), [], "{css}");
        }
    }
}
