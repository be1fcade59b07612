//! A document's id into a page that a person can read, print and cite: `/d/{id}`. It is where citations lead
//! when a document has no address of its own.
//!
//! The page loads nothing and runs no script. A passage is marked by the address alone: `?p=7#p7`.

mod block_html;
mod html;
mod signed_links;

use std::sync::Arc;
use std::time::Instant;

use docent_mcp::http::{Route, RouteRequest, RouteResponse};
use docent_mcp::{CallKind, CallObserver, CallRecord, CallStatus, Failure};
use docent_search::{
    AllowedReaders, DocId, Document, MatchHighlighter, Passage, ReaderIdentity, grammar, passages,
};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use url::form_urlencoded;

pub(crate) use self::signed_links::LinkSigner;
use crate::knowledge_base::KnowledgeBase;
use crate::links::UrlTemplate;
use crate::settings::ServerSettings;

/// How many passages stand on one page, which bounds its size; most documents have fewer.
pub(crate) const PASSAGES: usize = 200;

/// The most characters of the words that are marked.
const MAX_WORDS_CHARS: usize = 200;

/// Pages may be kept for a minute and are then asked for again, which costs nothing when nothing changed.
const CACHE_PUBLIC: &str = "public, max-age=60";

/// What not everyone may read is kept by nobody in between, and asked for again each time.
const CACHE_PRIVATE: &str = "private, no-cache";
/// A page that opens to a link alone is kept by whoever has the link, and by nobody in between.
const CACHE_SIGNED: &str = "private, max-age=60";

/// The address of the page of each document, where others can reach this server.
#[must_use]
pub fn template(server: &ServerSettings) -> Option<UrlTemplate> {
    let public = server.public_url.as_ref().filter(|_| server.pages)?;
    let base = public.as_str().trim_end_matches('/');
    // People also give the address of the MCP endpoint itself.
    let base = base.strip_suffix("/mcp").unwrap_or(base);
    UrlTemplate::parse(&format!("{base}/d/{{+id}}"))
}

/// An address of a page, with what opens it, that leads to a passage.
#[must_use]
pub fn page_url(address: &str, passage: usize, seal: Option<String>) -> String {
    let leads = (passage > 0).then(|| format!("p={passage}"));
    let query: Vec<String> = seal.into_iter().chain(leads).collect();
    let mark = if query.is_empty() { "" } else { "?" };
    let place = match passage {
        0 => String::new(),
        passage => format!("#p{passage}"),
    };
    format!("{address}{mark}{}{place}", query.join("&"))
}

/// The route that serves the pages, with somebody who hears of every visit.
#[must_use]
pub fn route(knowledge: Arc<KnowledgeBase>, observer: Option<Arc<dyn CallObserver>>) -> Route {
    // The page looks at its address by itself: a browser has no token.
    Route::get("/d/{+id}", move |visit: RouteRequest| {
        let (knowledge, observer) = (knowledge.clone(), observer.clone());
        async move {
            let start = Instant::now();
            let answered = answer(&knowledge, &visit).await;
            if let Some(observer) = observer {
                notify_observer(observer.as_ref(), &visit, &answered, start);
            }
            let id = visit.var("id").unwrap_or_default();
            answered?.ok_or_else(|| Failure::not_found(id))
        }
    })
    .open()
}

/// Tells of a visit, as of a call.
fn notify_observer(
    observer: &dyn CallObserver,
    visit: &RouteRequest,
    answered: &Result<Option<RouteResponse>, Failure>,
    start: Instant,
) {
    let id = visit.var("id").unwrap_or_default().to_owned();
    let asked = json!({"id": id}).to_string();
    let (outcome, touched) = match answered {
        Ok(Some(_)) => (CallStatus::Done, vec![id]),
        Ok(None) => (CallStatus::Mistaken, Vec::new()),
        Err(_) => (CallStatus::Failed, Vec::new()),
    };
    observer.on_call(&CallRecord {
        what: CallKind::Page,
        tool: "page",
        arguments: &asked,
        caller: visit.caller(),
        client: None,
        trace: visit.trace(),
        outcome,
        touched: &touched,
        took: start.elapsed(),
    });
}

/// What of a document is asked for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PageRequest {
    /// The passage to begin with.
    passage: usize,
    /// The words to mark.
    words: String,
    /// What opened the page, to be kept in its own links.
    signature: String,
}

impl PageRequest {
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
pub(crate) struct DocumentPage<'a> {
    corpus: &'a str,
    document: &'a Document,
    /// The address of the document itself, if it has one.
    original: Option<&'a str>,
    /// The passages of this page.
    passages: &'a [Passage],
    /// How many there are in all.
    total: usize,
    request: &'a PageRequest,
    marker: &'a MatchHighlighter,
}

/// The page, if it is there for the visitor.
async fn answer(
    knowledge: &KnowledgeBase,
    visit: &RouteRequest,
) -> Result<Option<RouteResponse>, Failure> {
    let Ok(id) = DocId::parse(visit.var("id").unwrap_or_default()) else {
        return Ok(None);
    };
    let reader = knowledge.reader(visit.caller());
    let mut wish = PageRequest::read(visit.query());
    // A good link was given by somebody who may read the document, and opens it to whoever has it. To others
    // it is there if they may read it, and only where pages open without a link at all.
    let document = knowledge.engine.fetch(id, ReaderIdentity::owner()).await?;
    let document = document.filter(|document| match knowledge.link_signer() {
        Some(seal) => match seal.verify(document, visit.query()) {
            Some(kept) => {
                wish.signature = kept;
                true
            }
            None => !seal.is_required() && reader.can_see(document),
        },
        None => reader.can_see(document),
    });
    let Some(document) = document else {
        return Ok(None);
    };
    let keep = match knowledge.link_signer() {
        _ if document.readers != AllowedReaders::Everyone => CACHE_PRIVATE,
        Some(_) => CACHE_SIGNED,
        None => CACHE_PUBLIC,
    };
    let tag = etag(knowledge, &document, visit.query());
    if matches_etag(visit.header("if-none-match"), &tag) {
        let page = RouteResponse::new(304, "text/html; charset=utf-8", Vec::new())
            .header("etag", tag)
            .header("cache-control", keep)
            .header("vary", "authorization");
        return Ok(Some(page));
    }
    let (catalog, _) = knowledge.fields(&ReaderIdentity::everyone()).await?;
    let words = grammar::parse(&wish.words, &catalog, (knowledge.today)()).text;
    let marker = MatchHighlighter::new(&document, &words);
    let all = passages(&document);
    let first = (wish.passage.min(all.len().saturating_sub(1)) / PASSAGES) * PASSAGES;
    let shown = all.get(first..).unwrap_or_default();
    let shown = shown.get(..PASSAGES).unwrap_or(shown);
    let sheet = DocumentPage {
        corpus: &knowledge.title,
        document: &document,
        original: document
            .url
            .as_deref()
            .filter(|url| crate::links::is_web_url(url)),
        passages: shown,
        total: all.len(),
        request: &wish,
        marker: &marker,
    };
    let page = RouteResponse::html(html::page(&sheet))
        .header("content-security-policy", html::policy())
        .header("cache-control", keep)
        .header("vary", "authorization")
        .header("etag", tag)
        // What is served to whoever has the link is not therefore meant for search engines.
        .header("x-robots-tag", "noindex");
    Ok(Some(page))
}

/// What changes whenever the page does.
fn etag(knowledge: &KnowledgeBase, document: &Document, query: &str) -> String {
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
fn matches_etag(header: Option<&str>, tag: &str) -> bool {
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
            page_url("https://a.example/d/x", 7, None),
            "https://a.example/d/x?p=7#p7"
        );
        assert_eq!(
            page_url("https://a.example/d/x", 0, None),
            "https://a.example/d/x"
        );
        let sealed = |passage| page_url("https://a.example/d/x", passage, Some("e=1".to_owned()));
        assert_eq!(sealed(7), "https://a.example/d/x?e=1&p=7#p7");
        assert_eq!(sealed(0), "https://a.example/d/x?e=1");
    }

    #[test]
    fn what_an_address_wishes_is_read_within_bounds() {
        let wish = |query: &str| PageRequest::read(query);
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
        assert!(matches_etag(Some("\"a\", W/\"b\""), "\"b\""));
        assert!(matches_etag(Some("*"), "\"b\""));
        assert!(!matches_etag(Some("\"a\""), "\"b\"") && !matches_etag(None, "\"b\""));
    }
}
