//! A document's id into a page that a person can read, print and cite: `/d/{id}`. It is where citations lead
//! when a document has no address of its own.
//!
//! The page loads nothing and runs no script. A passage is marked by the address alone: `?p=7#p7`.

mod html;
mod prose;

use std::sync::Arc;

use docent_mcp::Failure;
use docent_mcp::http::{Page, Route, Visit};
use docent_search::{DocId, Document, Marker, Passage, Reader, grammar, passages};
use sha2::{Digest as _, Sha256};
use url::form_urlencoded;

use crate::knowledge::Knowledge;
use crate::links::Template;
use crate::settings::Server;

/// How many passages stand on one page, which bounds its size; most documents have fewer.
pub(crate) const PASSAGES: usize = 200;

/// The most characters of the words that are marked.
const MAX_WORDS_CHARS: usize = 200;

/// Pages may be kept for a minute and are then asked for again, which costs nothing when nothing changed.
const KEEP: &str = "public, max-age=60";

/// The address of the page of each document, where others can reach this server.
#[must_use]
pub fn template(server: &Server) -> Option<Template> {
    let public = server.public_url.as_ref().filter(|_| server.pages)?;
    let base = public.as_str().trim_end_matches('/');
    // People also give the address of the MCP endpoint itself.
    let base = base.strip_suffix("/mcp").unwrap_or(base);
    Template::parse(&format!("{base}/d/{{+id}}"))
}

/// An address of a page that leads to a passage.
#[must_use]
pub fn at(address: &str, passage: usize) -> String {
    format!("{address}?p={passage}#p{passage}")
}

/// The route that serves the pages.
#[must_use]
pub fn route(knowledge: Arc<Knowledge>) -> Route {
    Route::get("/d/{+id}", move |visit: Visit| {
        let knowledge = knowledge.clone();
        async move { answer(&knowledge, &visit).await }
    })
}

/// What of a document is asked for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Wish {
    /// The passage to begin with.
    passage: usize,
    /// The words to mark.
    words: String,
}

impl Wish {
    /// Reads `p` and `q` of an address; whatever else stands there means nothing.
    fn read(query: &str) -> Self {
        let mut wish = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()).take(16) {
            match name.as_ref() {
                "p" => wish.passage = value.parse().unwrap_or(0),
                "q" => wish.words = value.chars().take(MAX_WORDS_CHARS).collect(),
                _ => {}
            }
        }
        wish
    }
}

/// Everything that a page shows.
pub(crate) struct Sheet<'a> {
    corpus: &'a str,
    document: &'a Document,
    /// The address of the document itself, if it has one.
    original: Option<&'a str>,
    /// The passages of this page.
    passages: &'a [Passage],
    /// How many there are in all.
    total: usize,
    wish: &'a Wish,
    marker: &'a Marker,
}

async fn answer(knowledge: &Knowledge, visit: &Visit) -> Result<Page, Failure> {
    let id = visit.var("id").unwrap_or_default();
    let missing = || Failure::not_found(id);
    let id = DocId::parse(id).map_err(|_| missing())?;
    let document = knowledge.engine.fetch(id, Reader::everyone()).await?;
    let document = document.ok_or_else(missing)?;
    let wish = Wish::read(visit.query());
    let tag = tag(knowledge, &document, visit.query());
    if is_known(visit.header("if-none-match"), &tag) {
        return Ok(Page::new(304, "text/html; charset=utf-8", Vec::new())
            .header("etag", tag)
            .header("cache-control", KEEP));
    }
    let (catalog, _) = knowledge.fields().await?;
    let words = grammar::parse(&wish.words, &catalog, (knowledge.today)()).text;
    let marker = Marker::new(&document, &words);
    let all = passages(&document);
    let first = (wish.passage.min(all.len().saturating_sub(1)) / PASSAGES) * PASSAGES;
    let shown = all.get(first..).unwrap_or_default();
    let shown = shown.get(..PASSAGES).unwrap_or(shown);
    let sheet = Sheet {
        corpus: &knowledge.title,
        document: &document,
        original: document
            .url
            .as_deref()
            .filter(|url| crate::links::is_web(url)),
        passages: shown,
        total: all.len(),
        wish: &wish,
        marker: &marker,
    };
    Ok(Page::html(html::page(&sheet))
        .header("content-security-policy", html::policy())
        .header("cache-control", KEEP)
        .header("etag", tag)
        // What is served to whoever has the link is not therefore meant for search engines.
        .header("x-robots-tag", "noindex"))
}

/// What changes whenever the page does.
fn tag(knowledge: &Knowledge, document: &Document, query: &str) -> String {
    let mut digest = Sha256::new();
    let version = env!("CARGO_PKG_VERSION");
    let parts = [
        version,
        html::STYLE,
        &knowledge.title,
        document.id.as_str(),
        &document.title,
        &document.text,
        document.url.as_deref().unwrap_or_default(),
        document.date.as_deref().unwrap_or_default(),
        &document.source,
        query,
    ];
    for part in parts {
        digest.update(part.len().to_le_bytes());
        digest.update(part);
    }
    for (name, value) in &document.fields {
        digest.update(format!("{name}\0{value}\0"));
    }
    let hex: String = digest
        .finalize()
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("\"{hex}\"")
}

/// Whether a browser has the page already.
fn is_known(header: Option<&str>, tag: &str) -> bool {
    let mut tags = header.unwrap_or_default().split(',').map(str::trim);
    tags.any(|one| one == "*" || one.strip_prefix("W/").unwrap_or(one) == tag)
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;
    use crate::settings::Settings;

    #[test]
    fn pages_stand_below_the_public_address() {
        let mut server = Settings::default().server;
        assert_eq!(template(&server), None);
        for (public, expected) in [
            (
                "https://docs.example.org",
                "https://docs.example.org/d/a/b%20c",
            ),
            (
                "https://docs.example.org/mcp",
                "https://docs.example.org/d/a/b%20c",
            ),
            (
                "https://example.org/docs/",
                "https://example.org/docs/d/a/b%20c",
            ),
        ] {
            server.public_url = Some(Url::parse(public).unwrap());
            let address = crate::links::address(None, "a/b c", template(&server).as_ref());
            assert_eq!(address, expected);
        }
        server.pages = false;
        assert_eq!(template(&server), None);
        assert_eq!(
            at("https://a.example/d/x", 7),
            "https://a.example/d/x?p=7#p7"
        );
    }

    #[test]
    fn what_an_address_wishes_is_read_within_bounds() {
        let wish = |query: &str| Wish::read(query);
        assert_eq!(wish("p=7&q=winter+f%C3%A4hre&x=1").words, "winter fähre");
        assert_eq!(wish("p=7").passage, 7);
        assert_eq!(wish("p=-1").passage, 0);
        assert_eq!(wish("p=99999999999999999999").passage, 0);
        let long = |count: usize| {
            wish(&format!("q={}", "ä".repeat(count)))
                .words
                .chars()
                .count()
        };
        assert_eq!((long(200), long(201)), (200, 200));
    }

    #[test]
    fn a_browser_that_has_the_page_need_not_get_it() {
        assert!(is_known(Some("\"a\", W/\"b\""), "\"b\""));
        assert!(is_known(Some("*"), "\"b\""));
        assert!(!is_known(Some("\"a\""), "\"b\"") && !is_known(None, "\"b\""));
    }
}
