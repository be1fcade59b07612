//! Validation of widget pages: finds what the sandbox of a host would block.

use crate::csp;

/// Maximum size of a page. Hosts fetch it whole before they show anything; our own pages are under a tenth of it.
pub(crate) const MAX_HTML_BYTES: usize = 4 * 1024 * 1024;

/// How many characters are searched for the doctype, which may follow a byte order mark, spaces and a comment.
const BEGINNING: usize = 1024;

/// Returns what is wrong with a page, and how to fix it.
pub(super) fn check(html: &str, resource_domains: &[String]) -> Result<(), String> {
    if html.len() > MAX_HTML_BYTES {
        let size = html.len();
        return Err(format!(
            "has {size} bytes, the limit is {MAX_HTML_BYTES}: make the page smaller"
        ));
    }
    let beginning: String = html
        .chars()
        .take(BEGINNING)
        .collect::<String>()
        .to_ascii_lowercase();
    if !beginning.contains("<!doctype html") {
        return Err("is not an HTML5 page: start it with `<!doctype html>`".to_owned());
    }
    match loaded_urls(html).find(|address| !may_load(address, resource_domains)) {
        Some(address) => Err(format!(
            "loads `{address}`, which no host lets it: put it inside the page, or name its origin with \
             `resource_domain`"
        )),
        None => Ok(()),
    }
}

fn may_load(address: &str, resource_domains: &[String]) -> bool {
    let inside = ["data:", "#"];
    inside.iter().any(|start| address.starts_with(start))
        || csp::covers_url(resource_domains, address)
}

/// Returns the URLs of scripts and style sheets. The content of script elements is skipped, so that text in it which
/// looks like a tag is not taken for one.
fn loaded_urls(html: &str) -> impl Iterator<Item = &str> {
    let mut rest = html;
    std::iter::from_fn(move || {
        loop {
            let (_, from) = rest.split_once('<')?;
            let (tag, after) = tag(from);
            rest = after;
            let name = tag
                .split(|c: char| !c.is_ascii_alphanumeric())
                .next()
                .unwrap_or_default();
            let found = match name.to_ascii_lowercase().as_str() {
                "script" => {
                    rest = skip(after, "</script");
                    attribute(tag, "src")
                }
                "style" => {
                    rest = skip(after, "</style");
                    None
                }
                "link" if is_style(tag) => attribute(tag, "href"),
                "" if tag.starts_with("!--") => {
                    rest = from.split_once("-->").map_or("", |(_, after)| after);
                    None
                }
                _ => None,
            };
            if found.is_some() {
                return found;
            }
        }
    })
}

fn is_style(tag: &str) -> bool {
    let loading = ["stylesheet", "modulepreload", "preload"];
    attribute(tag, "rel").is_some_and(|rel| {
        rel.split_ascii_whitespace()
            .any(|word| loading.iter().any(|kind| word.eq_ignore_ascii_case(kind)))
    })
}

/// Splits after the end of a tag, ignoring a `>` inside quotes.
fn tag(from: &str) -> (&str, &str) {
    let mut quote = None;
    for (at, c) in from.char_indices() {
        match (quote, c) {
            (None, '>') => {
                return (
                    from.get(..at).unwrap_or_default(),
                    from.get(at + 1..).unwrap_or_default(),
                );
            }
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            _ => {}
        }
    }
    (from, "")
}

fn skip<'a>(text: &'a str, end: &str) -> &'a str {
    let bytes = end.as_bytes();
    let found = text
        .as_bytes()
        .windows(bytes.len())
        .position(|window| window.eq_ignore_ascii_case(bytes));
    found.and_then(|at| text.get(at..)).unwrap_or_default()
}

/// Returns the value of an attribute of a tag.
fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = tag
        .split_once(|c: char| c.is_ascii_whitespace() || c == '/')?
        .1;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
        if rest.is_empty() {
            return None;
        }
        let end = rest
            .find(|c: char| c.is_ascii_whitespace() || c == '=' || c == '/')
            .unwrap_or(rest.len());
        let (key, after) = rest.split_at_checked(end)?;
        let Some(value) = after.trim_ascii_start().strip_prefix('=') else {
            // A separator at the start is skipped; otherwise the loop would make no progress.
            rest = if key.is_empty() {
                after.get(1..)?
            } else {
                after
            };
            continue;
        };
        let value = value.trim_ascii_start();
        let (value, after) = match value.chars().next() {
            Some(quote @ ('"' | '\'')) => {
                let inside = value.get(1..)?;
                inside.split_once(quote).unwrap_or((inside, ""))
            }
            _ => {
                let end = value
                    .find(|c: char| c.is_ascii_whitespace())
                    .unwrap_or(value.len());
                value.split_at_checked(end)?
            }
        };
        if key.eq_ignore_ascii_case(name) {
            return Some(value.trim());
        }
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_brings_everything_passes() {
        let pages = [
            "<!doctype html><p>",
            "\u{feff}<!-- made --> <!DOCTYPE HTML><script>let x = '<script src=\"https://a.example/x\">';</script>",
            "<!doctype html><script type=module>import('x')</script><style>@import 'x'</style>",
            "<!doctype html><a href=\"https://a.example\">a</a><link rel=icon href='/x.png'>",
            "<!doctype html><!-- <script src=x></script> -->",
            "<!doctype html><script src=\"data:text/javascript,1\"></script>",
            "<!doctype html><p title='a > b <script src=x>'>",
        ];
        for page in pages {
            assert_eq!(check(page, &[]), Ok(()), "{page}");
        }
    }

    #[test]
    fn a_page_that_loads_something_says_what() {
        let origins = ["https://cdn.example.com".to_owned()];
        for (page, address) in [
            (
                "<script src=\"https://a.example/x.js\"></script>",
                "https://a.example/x.js",
            ),
            (
                "<script async type='module' src='/assets/x.js'></script>",
                "/assets/x.js",
            ),
            ("<SCRIPT SRC=x.js>", "x.js"),
            (
                "<script>1</script><script defer src = x.js></script>",
                "x.js",
            ),
            ("<link href=x.css rel=\"preload stylesheet\">", "x.css"),
            (
                "<link rel=stylesheet href=\"https://fonts.example/css\">",
                "https://fonts.example/css",
            ),
        ] {
            let page = format!("<!doctype html>{page}");
            let problem = check(&page, &origins).unwrap_err();
            assert!(
                problem.contains(&format!("`{address}`")),
                "{page}: {problem}"
            );
        }
        let page = "<!doctype html><script src=\"https://cdn.example.com/x.js\"></script>";
        assert_eq!(check(page, &origins), Ok(()));
    }

    #[test]
    fn a_page_has_a_beginning_and_a_bound() {
        assert!(check("<p>x", &[]).unwrap_err().contains("<!doctype html>"));
        let page = |size: usize| {
            let start = "<!doctype html>";
            start.to_owned() + &"x".repeat(size - start.len())
        };
        assert_eq!(check(&page(MAX_HTML_BYTES), &[]), Ok(()));
        assert!(check(&page(MAX_HTML_BYTES + 1), &[]).is_err());
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_to_its_end(text in "[<>=/'\" a-z!é-]{0,200}") {
            let _ = check(&format!("<!doctype html>{text}"), &[]);
        }
    }
}
