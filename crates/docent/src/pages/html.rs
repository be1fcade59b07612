//! The HTML template of a document page. The page is self-contained, and everything in it is escaped here or in
//! [`block_html`](super::block_html).

use std::fmt::Write as _;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use docent_mcp::escape_html;
use sha2::{Digest as _, Sha256};

use super::{DocumentPage, PASSAGES, block_html};
use crate::layout::MarkdownLayout;
use crate::tools::document_view;

pub(super) const STYLE: &str = include_str!("../../assets/pages/page.css");

/// The most fields that a page shows, and the most characters of each value.
const MAX_FIELDS: usize = 64;
const MAX_FIELD_CHARS: usize = 1_000;

/// The fewest headings that are worth a table of contents.
const MIN_CONTENTS: usize = 3;

/// The CSP of a page: its own style by hash, and no other resource. A script in a document could not run even if
/// escaping failed.
pub(super) fn policy() -> String {
    let hash = BASE64_STANDARD.encode(Sha256::digest(STYLE));
    format!(
        "default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'"
    )
}

/// Renders a whole page: header with fields, table of contents, passages, and navigation above and below them.
pub(super) fn page(page: &DocumentPage<'_>) -> String {
    let document = page.document;
    let title = escape_html(&document_view::title(document));
    let corpus = escape_html(page.corpus);
    let language = document.language().unwrap_or("en");
    let mut html = format!(
        "<!doctype html>\n<html lang=\"{language}\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title} · {corpus}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<article>\n<header>\n<p class=\"corpus\" lang=\"en\">{corpus}</p>\n\
         <h1 dir=\"auto\">{title}</h1>\n"
    );
    facts(page, &mut html);
    html.push_str("</header>\n");
    contents(page, &mut html);
    let around = page_navigation(page);
    html.push_str(&around);
    text(page, &mut html);
    html.push_str(&around);
    html.push_str("</article>\n</body>\n</html>\n");
    html
}

/// The description list of date, fields and source file, and the link to the original document.
fn facts(page: &DocumentPage<'_>, html: &mut String) {
    let document = page.document;
    html.push_str("<dl>\n");
    let mut row = |name: &str, value: &str| {
        let (name, value) = (escape_html(&name.replace('_', " ")), escape_html(value));
        // Writing to a String cannot fail.
        let _ = writeln!(
            html,
            "<div><dt dir=\"auto\">{name}</dt><dd dir=\"auto\">{value}</dd></div>"
        );
    };
    let day = document_view::day(document);
    if !day.is_empty() && document.fields.iter().all(|(name, _)| name != "date") {
        row("Date", &day);
    }
    for field in document_view::fields(document, MAX_FIELDS, MAX_FIELD_CHARS) {
        row(&field.name, &field.value);
    }
    if !document.source.is_empty() {
        row("File", &document.source);
    }
    html.push_str("</dl>\n");
    if let Some(original) = page.original {
        let original = escape_html(original);
        let _ = writeln!(
            html,
            "<p class=\"original\" lang=\"en\"><a href=\"{original}\" rel=\"noopener noreferrer nofollow\">Open the original</a> \
             <span class=\"print\">{original}</span></p>"
        );
    }
}

/// The table of contents, when the page shows the whole document and has at least three headings.
fn contents(page: &DocumentPage<'_>, html: &mut String) {
    let headings = document_view::outline(&page.document.text, page.passages);
    let last = page.passages.last().map_or(0, |passage| passage.range.end);
    let is_whole = page.passages.len() == page.total && last > 0;
    if headings.len() < MIN_CONTENTS || !is_whole {
        return;
    }
    html.push_str(
        "<nav aria-label=\"Contents\" lang=\"en\"><details><summary>Contents</summary><ol>\n",
    );
    for heading in headings {
        let _ = writeln!(
            html,
            "<li class=\"level-{}\"><a href=\"#p{}\" dir=\"auto\">{}</a></li>",
            heading.level,
            heading.passage,
            escape_html(&heading.title)
        );
    }
    html.push_str("</ol></details></nav>\n");
}

/// Pagination: links to the previous and the next page of a document that has several. The links keep the signature
/// that opened this page.
fn page_navigation(page: &DocumentPage<'_>) -> String {
    let first = page.passages.first().map_or(0, |passage| passage.index);
    let after = first + page.passages.len();
    if first == 0 && after >= page.total {
        return String::new();
    }
    let link = |passage: usize, words: &str| {
        let signature = Some(&page.request.signature).filter(|signature| !signature.is_empty());
        let signature = signature.map(|signature| format!("{}&amp;", escape_html(signature)));
        format!(
            "<a href=\"?{}p={passage}\">{words}</a>",
            signature.unwrap_or_default()
        )
    };
    let before = first.checked_sub(PASSAGES).map(|at| link(at, "Earlier"));
    let next = (after < page.total).then(|| link(after, "Later"));
    format!(
        "<nav class=\"sheets\" aria-label=\"Parts\" lang=\"en\">{}<span>Passages {} to {after} of {}</span>{}</nav>\n",
        before.unwrap_or_default(),
        first + 1,
        page.total,
        next.unwrap_or_default()
    )
}

fn text(page: &DocumentPage<'_>, html: &mut String) {
    if page.passages.is_empty() {
        html.push_str("<p class=\"soft\" lang=\"en\">This document has no text.</p>\n");
    }
    let begin = page.passages.first().map_or(0, |one| one.range.start);
    let mut layout = MarkdownLayout::at(&page.document.text, begin);
    for passage in page.passages {
        let words = page.document.text.get(passage.range.clone());
        // The requested passage is highlighted by a class too, because proxies and chats drop URL fragments.
        let here = page.request.passage == passage.index && passage.index > 0;
        let class = if here { "passage here" } else { "passage" };
        let _ = writeln!(
            html,
            "<section id=\"p{}\" class=\"{class}\" dir=\"auto\">",
            passage.index
        );
        let words = words.unwrap_or_default();
        let blocks = layout.blocks(words, &page.marker.highlights(words));
        block_html::write(&blocks, html);
        html.push_str("</section>\n");
    }
}

#[cfg(test)]
mod tests {
    use docent_search::{
        AllowedReaders, DocId, Document, DocumentValue, MatchHighlighter, passages,
    };

    use super::super::PageRequest;
    use super::*;

    fn shown_with(document: &Document, words: &str, request: &PageRequest) -> String {
        let all = passages(document);
        let marker = MatchHighlighter::new(document, words);
        page(&DocumentPage {
            corpus: "<b>Corpus</b>",
            document,
            original: document.url.as_deref(),
            passages: &all,
            total: all.len(),
            request,
            marker: &marker,
        })
    }

    fn document(text: &str) -> Document {
        Document {
            id: DocId::parse("a").unwrap(),
            title: "Fares & Piers".to_owned(),
            text: text.to_owned(),
            url: Some("https://a.example/?x=1&y='2'".to_owned()),
            date: Some("2024-05-28".to_owned()),
            fields: vec![(
                "said_by".to_owned(),
                DocumentValue::Text("A \"Nobody\"".to_owned()),
            )],
            source: "a.md".to_owned(),
            hash: String::new(),
            readers: AllowedReaders::Everyone,
        }
    }

    #[test]
    fn a_page_shows_the_document_and_marks_the_words() {
        let html = shown_with(
            &document("# Fares\n\nThe ferries sail."),
            "ferry",
            &PageRequest::default(),
        );
        for part in [
            "<title>Fares &amp; Piers · &lt;b&gt;Corpus&lt;/b&gt;</title>",
            "<dt dir=\"auto\">said by</dt><dd dir=\"auto\">A &quot;Nobody&quot;</dd>",
            "<dd dir=\"auto\">2024-05-28</dd>",
            "href=\"https://a.example/?x=1&amp;y=&#39;2&#39;\"",
            "<section id=\"p0\" class=\"passage\" dir=\"auto\">",
            "The <mark>ferries</mark> sail.",
        ] {
            assert!(html.contains(part), "{part} is not in {html}");
        }
    }

    #[test]
    fn nothing_in_a_document_becomes_markup() {
        let evil = "</style><script>alert(1)</script><img src=x onerror=alert(1)>\"'>";
        let text = format!("# {evil}\n\n- {evil}\n\n> {evil}\n\n```\n{evil}\n```\n\n{evil}");
        let mut document = document(&text);
        document.title = evil.to_owned();
        document.source = evil.to_owned();
        document.fields = vec![(evil.to_owned(), DocumentValue::Text(evil.to_owned()))];
        let html = shown_with(&document, "alert script", &PageRequest::default());
        for tag in ["<script", "<img", "onerror=alert(1)>\"", "</style><"] {
            assert!(!html.contains(tag), "{tag}");
        }
        assert_eq!(html.matches("</style>").count(), 1);
    }

    #[test]
    fn the_style_is_whole_and_its_hash_is_in_the_policy() {
        assert!(!STYLE.contains("</") && !STYLE.contains("url("));
        assert!(policy().contains("style-src 'sha256-"));
    }
}
