//! HTML parser: one document per web page. It extracts the main content without menus and other boilerplate,
//! renders headings as Markdown, and reads title, date, URL and fields from the head.
//!
//! The page is processed as a token stream. No DOM is built, so that deep nesting costs nothing.

mod charset;
mod confluence;
mod element;
mod element_stack;
mod emitter;
mod head;
mod page_builder;
mod properties;
mod unread_meta;

use html5gum::Tokenizer;

use crate::error::IngestError;
use crate::fields::front_matter;
use crate::fields::metadata::{KeyMapping, extract_metadata};
use crate::formats::file_format::FileFormat;
use crate::parser::{ParsedFile, ParserInput};
use crate::reader_field::{ReaderFault, ReaderField, ReaderKeys};
use crate::single_document::build_document;

pub(crate) use charset::decode;
pub(crate) use page_builder::ParsedPage;

pub(crate) const FORMAT: FileFormat = FileFormat {
    name: "html",
    kind: "html",
    extensions: &["html", "htm", "xhtml", "xht"],
    has_signature: has_html_signature,
    parse,
    stream: None,
    is_trusted: false,
    kind_inside: None,
    packages: &[],
};

/// The keys under which documents with a head store title and URL.
pub(crate) const KEYS: KeyMapping = KeyMapping {
    title: &["title"],
    text: &[],
    url: &["url"],
};

/// Whether a file begins like a page, after white space, processing instructions and comments. Other opening
/// tags prove nothing: Markdown may begin with a `<div>`.
fn has_html_signature(head: &[u8]) -> bool {
    let text = charset::decode(head).unwrap_or_default();
    let mut rest = text.trim_start_matches('\u{FEFF}').trim_start();
    while rest.starts_with("<!--") || rest.starts_with("<?") {
        let end = if rest.starts_with("<?") { "?>" } else { "-->" };
        let Some((_, after)) = rest.split_once(end) else {
            return false;
        };
        rest = after.trim_start();
    }
    ["<!doctype html", "<html", "<head>", "<body"]
        .iter()
        .any(|start| {
            let (found, after) = rest.split_at_checked(start.len()).unwrap_or_default();
            found.eq_ignore_ascii_case(start)
                && (start.ends_with('>')
                    || after.starts_with(|c: char| c == '>' || c.is_whitespace()))
        })
}

fn parse(input: &ParserInput<'_>) -> Result<ParsedFile, IngestError> {
    let readers = ReaderKeys::for_input(input);
    let (unread, all_metas) = match readers.is_configured() {
        true => {
            let text = charset::decode(input.bytes)?;
            let all_metas = unread_meta::count(&text, &readers);
            (front_matter::unread(&text, &readers), all_metas)
        }
        false => (ReaderField::Absent, 0),
    };
    let page = read(input.bytes, readers)?;
    let parsed_metas = page.head.metas_with_readers();
    let mut facts = extract_metadata(page.head.into_keys(), &KEYS, input);
    if all_metas > parsed_metas {
        facts.readers = ReaderField::Malformed(ReaderFault::Misplaced);
    }
    if unread != ReaderField::Absent {
        facts.readers = unread;
    }
    build_document(input, page.text, facts)
}

/// Parses a page into its text and its head.
pub(crate) fn read(bytes: &[u8], readers: ReaderKeys) -> Result<ParsedPage, IngestError> {
    let text = charset::decode(bytes)?;
    let is_xml = text.trim_start().starts_with("<?xml");
    let mut page = page_builder::HtmlPageBuilder::new(is_xml, readers);
    let mut tokens =
        Tokenizer::new_with_emitter(text.as_str(), emitter::HtmlEmitter::new(&mut page));
    // The emitter yields a token only to stop the tokenizer, once the page exceeds its limit.
    let _limit_token = tokens.next();
    drop(tokens);
    page.finish()
}

#[cfg(test)]
mod tests;
