//! Document pages at `/d/{id}`: the HTML view of a document that a person can read, print and cite. Citations link here
//! when a document has no URL of its own.
//!
//! A page is self-contained and runs no script. The URL alone selects and highlights a passage: `?p=7#p7`.

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
use docent_unicode::truncate_chars;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use url::form_urlencoded;

pub(crate) use self::signed_links::LinkSigner;
use crate::knowledge_base::KnowledgeBase;
use crate::links::UrlTemplate;
use crate::settings::ServerSettings;

/// The page size in passages, which bounds the size of the HTML; most documents have fewer.
pub(crate) const PASSAGES: usize = 200;

/// The length limit of the query whose matches are highlighted, in characters.
const MAX_WORDS_CHARS: usize = 200;

/// `Cache-Control` of public documents: shared caches keep a page for a minute and then revalidate it by `ETag`.
const CACHE_PUBLIC: &str = "public, max-age=60";

/// `Cache-Control` of restricted documents: no shared cache stores them, and browsers revalidate on every visit.
const CACHE_PRIVATE: &str = "private, no-cache";

/// `Cache-Control` of pages behind signed links: only the browser that has the link may cache them.
const CACHE_SIGNED: &str = "private, max-age=60";

/// The URL template of document pages; `None` if pages are off or the server has no public URL.
#[must_use]
pub fn template(server: &ServerSettings) -> Option<UrlTemplate> {
    let public = server.public_url.as_ref().filter(|_| server.pages)?;
    let base = public.as_str().trim_end_matches('/');
    // Some people configure the URL of the MCP endpoint as the public URL.
    let base = base.strip_suffix("/mcp").unwrap_or(base);
    UrlTemplate::parse(&format!("{base}/d/{{+id}}"))
}

/// The URL of a page with its signature, if any, that scrolls to a passage. Passage 0 is the top of the page.
#[must_use]
pub fn page_url(address: &str, passage: usize, signature: Option<String>) -> String {
    let start = (passage > 0).then(|| format!("p={passage}"));
    let query: Vec<String> = signature.into_iter().chain(start).collect();
    let separator = if query.is_empty() { "" } else { "?" };
    let fragment = match passage {
        0 => String::new(),
        passage => format!("#p{passage}"),
    };
    format!("{address}{separator}{}{fragment}", query.join("&"))
}

/// The route that serves document pages; the observer is notified of every visit, as of a tool call.
#[must_use]
pub fn route(knowledge: Arc<KnowledgeBase>, observer: Option<Arc<dyn CallObserver>>) -> Route {
    // Open, because a browser sends no access token: the handler checks the signed link or the permissions itself.
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

/// Records a visit for the audit log and the traces, in the same form as a tool call.
fn notify_observer(
    observer: &dyn CallObserver,
    visit: &RouteRequest,
    answered: &Result<Option<RouteResponse>, Failure>,
    start: Instant,
) {
    let id = visit.var("id").unwrap_or_default().to_owned();
    let arguments = json!({"id": id}).to_string();
    let (outcome, touched) = match answered {
        Ok(Some(_)) => (CallStatus::Done, vec![id]),
        Ok(None) => (CallStatus::Mistaken, Vec::new()),
        Err(_) => (CallStatus::Failed, Vec::new()),
    };
    observer.on_call(&CallRecord {
        what: CallKind::Page,
        tool: "page",
        arguments: &arguments,
        caller: visit.caller(),
        client: None,
        trace: visit.trace(),
        outcome,
        touched: &touched,
        took: start.elapsed(),
    });
}

/// The query parameters of a page, parsed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PageRequest {
    /// The passage to begin with, from `p`.
    passage: usize,
    /// The search query whose matches are highlighted, from `q`.
    words: String,
    /// The verified signature, which the links between the parts of a long document repeat.
    signature: String,
}

impl PageRequest {
    /// Parses `p` and `q`. Unknown parameters are ignored, and only the first 16 parameters are read.
    fn read(query: &str) -> Self {
        let mut request = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()).take(16) {
            match name.as_ref() {
                "p" => request.passage = value.parse().unwrap_or(0),
                "q" => request.words = truncate_chars(&value, MAX_WORDS_CHARS).to_owned(),
                _ => {}
            }
        }
        request
    }
}

/// The input of the page template.
pub(crate) struct DocumentPage<'a> {
    corpus: &'a str,
    document: &'a Document,
    /// The document's own URL, if it is a web address.
    original: Option<&'a str>,
    /// The passages of this page, out of `total` in the document.
    passages: &'a [Passage],
    total: usize,
    request: &'a PageRequest,
    marker: &'a MatchHighlighter,
}

/// Answers a visit. `None` means 404, for an unknown id and for a forbidden document alike, so that nobody can probe
/// which documents exist.
async fn answer(
    knowledge: &KnowledgeBase,
    visit: &RouteRequest,
) -> Result<Option<RouteResponse>, Failure> {
    let Ok(id) = DocId::parse(visit.var("id").unwrap_or_default()) else {
        return Ok(None);
    };
    let reader = knowledge.reader(visit.caller());
    let mut request = PageRequest::read(visit.query());
    // A valid signed link was issued to a reader of the document and opens it to whoever has the link. Without one, the
    // visitor's own permissions decide, unless the settings require a link.
    let document = knowledge.engine.fetch(id, ReaderIdentity::owner()).await?;
    let document = document.filter(|document| match knowledge.link_signer() {
        Some(signer) => match signer.verify(document, visit.query()) {
            Some(signature) => {
                request.signature = signature;
                true
            }
            None => !signer.is_required() && reader.can_see(document),
        },
        None => reader.can_see(document),
    });
    let Some(document) = document else {
        return Ok(None);
    };
    let cache_control = match knowledge.link_signer() {
        _ if document.readers != AllowedReaders::Everyone => CACHE_PRIVATE,
        Some(_) => CACHE_SIGNED,
        None => CACHE_PUBLIC,
    };
    let tag = etag(knowledge, &document, visit.query());
    if matches_etag(visit.header("if-none-match"), &tag) {
        let page = RouteResponse::new(304, "text/html; charset=utf-8", Vec::new())
            .header("etag", tag)
            .header("cache-control", cache_control)
            .header("vary", "authorization");
        return Ok(Some(page));
    }
    let (catalog, _) = knowledge.fields(&ReaderIdentity::everyone()).await?;
    let words = grammar::parse(&request.words, &catalog, (knowledge.today)()).text;
    let marker = MatchHighlighter::new(&document, &words);
    let all = passages(&document);
    let first = (request.passage.min(all.len().saturating_sub(1)) / PASSAGES) * PASSAGES;
    let shown = all.get(first..).unwrap_or_default();
    let shown = shown.get(..PASSAGES).unwrap_or(shown);
    let contents = DocumentPage {
        corpus: &knowledge.title,
        document: &document,
        original: document
            .url
            .as_deref()
            .filter(|url| crate::links::is_web_url(url)),
        passages: shown,
        total: all.len(),
        request: &request,
        marker: &marker,
    };
    let page = RouteResponse::html(html::page(&contents))
        .header("content-security-policy", html::policy())
        .header("cache-control", cache_control)
        .header("vary", "authorization")
        .header("etag", tag)
        // Whoever has a link may read the page, but search engines must not publish it.
        .header("x-robots-tag", "noindex");
    Ok(Some(page))
}

/// A strong `ETag`: a checksum over everything that the page is rendered from, with the program version and the style.
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

/// Whether `If-None-Match` contains the tag, so that the answer is 304 without a body.
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
        let signed = |passage| page_url("https://a.example/d/x", passage, Some("e=1".to_owned()));
        assert_eq!(signed(7), "https://a.example/d/x?e=1&p=7#p7");
        assert_eq!(signed(0), "https://a.example/d/x?e=1");
    }

    #[test]
    fn query_parameters_are_read_within_bounds() {
        let read = |query: &str| PageRequest::read(query);
        assert_eq!(read("p=7&q=winter+f%C3%A4hre&x=1").words, "winter fähre");
        assert_eq!(read("p=7").passage, 7);
        assert_eq!(read("p=-1").passage, 0);
        assert_eq!(read("p=99999999999999999999").passage, 0);
        let long = |count: usize| {
            read(&format!("q={}", "ä".repeat(count)))
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
