//! PDF parser: one file becomes one document with the text of its pages in reading order, page breaks
//! between them, lines in larger type as headings, and the document properties as metadata.

mod char_codes;
mod decompression_limit;
mod form_xobjects;
mod glyphs;
mod reading_order;
mod render;
mod segment;

use hayro_interpret::hayro_syntax::object::DateTime;
use hayro_interpret::hayro_syntax::{DecryptionError, LoadPdfError, Pdf, metadata::Metadata};
use serde_json::{Map, Value as Raw};

use crate::clean::clean_line;
use crate::error::IngestError;
use crate::format::{FileFormat, ParsedFile, ParserInput};
use crate::html::KEYS;
use crate::layout::clean_pages;
use crate::metadata::extract_metadata;
use crate::ooxml::ordered_properties;
use crate::reader_field::ReaderKeys;
use crate::single_document::build_document;

pub(crate) const FORMAT: FileFormat = FileFormat {
    name: "pdf",
    extensions: &["pdf"],
    has_signature: has_pdf_signature,
    parse,
};

/// Where the `%PDF-` signature is looked for. PDF viewers tolerate some bytes in front of it, and so do we.
const MARK_BYTES: usize = 1_024;

/// The most bytes kept of one document property.
const MAX_PROPERTY_BYTES: usize = 64 * 1024;

fn has_pdf_signature(head: &[u8]) -> bool {
    let start = head.get(..MARK_BYTES).unwrap_or(head);
    start.windows(5).any(|five| five == b"%PDF-") && !head.starts_with(b"PK")
}

fn parse(input: &ParserInput<'_>) -> Result<ParsedFile, IngestError> {
    decompression_limit::check(input.bytes, input.limits.max_unpacked_bytes)?;
    let pdf = Pdf::new(input.bytes.to_vec()).map_err(|error| match error {
        LoadPdfError::Decryption(DecryptionError::PasswordProtected) => IngestError::Encrypted,
        LoadPdfError::Decryption(_) => IngestError::Encrypted,
        LoadPdfError::Invalid => IngestError::Damaged {
            what: "it has no readable page".into(),
        },
    })?;
    let limit = input.limits.max_pages;
    if pdf.pages().len() > limit {
        return Err(IngestError::TooMuchInside {
            limit: limit as u64,
        });
    }
    let pages = glyphs::read(&pdf, input.limits.max_text_chars)?;
    let rendered = render::render(&pages);
    if rendered.text.trim().is_empty() {
        return Err(IngestError::NoText);
    }
    let mut metadata = extract_metadata(
        properties(pdf.metadata(), &ReaderKeys::for_input(input)),
        &KEYS,
        input,
    );
    if metadata.title.is_none() {
        let mut title = clean_line(&rendered.first_heading);
        crate::clean::truncate_chars(&mut title, input.limits.max_title_chars);
        metadata.title = Some(title).filter(|title| !title.is_empty());
    }
    build_document(input, clean_pages(&rendered.text), metadata)
}

fn properties(metadata: &Metadata, readers: &ReaderKeys) -> Map<String, Raw> {
    let (mut found, mut named) = (Map::new(), Map::new());
    let mut insert = |key: &str, bytes: &Option<Box<[u8]>>| {
        let words = bytes.as_deref().map(decode_pdf_string).unwrap_or_default();
        if let Some(words) = meaningful_property(&words) {
            found.insert(key.to_owned(), Raw::String(words));
        } else if bytes.is_some() && readers.covers_key(key) {
            named.insert(key.to_owned(), Raw::Null);
        }
    };
    insert("title", &metadata.title);
    insert("author", &metadata.author);
    insert("subject", &metadata.subject);
    insert("keywords", &metadata.keywords);
    for (key, moment) in [
        ("date", metadata.creation_date),
        ("modified", metadata.modification_date),
    ] {
        if let Some(moment) = moment {
            found.insert(key.to_owned(), Raw::String(day(moment)));
        }
    }
    let mut keys = ordered_properties(found);
    keys.append(&mut named);
    keys
}

fn day(moment: DateTime) -> String {
    format!("{:04}-{:02}-{:02}", moment.year, moment.month, moment.day)
}

/// Decodes a text string: UTF-16 or UTF-8 where it has a byte order mark, UTF-8 where it is valid, and
/// otherwise one byte a letter.
fn decode_pdf_string(bytes: &[u8]) -> String {
    let bytes = bytes.get(..MAX_PROPERTY_BYTES).unwrap_or(bytes);
    let (encoding, bytes) = match encoding_rs::Encoding::for_bom(bytes) {
        Some((encoding, mark)) => (encoding, bytes.get(mark..).unwrap_or_default()),
        None if std::str::from_utf8(bytes).is_ok() => (encoding_rs::UTF_8, bytes),
        None => (encoding_rs::WINDOWS_1252, bytes),
    };
    encoding.decode_without_bom_handling(bytes).0.into_owned()
}

/// A property that its author wrote, without prefixes and placeholders that programs put there.
fn meaningful_property(words: &str) -> Option<String> {
    let words = clean_line(words);
    let words = words.strip_prefix("Microsoft Word - ").unwrap_or(&words);
    let words = words
        .strip_prefix("Microsoft PowerPoint - ")
        .unwrap_or(words);
    let placeholders = [
        "",
        "untitled",
        "(anonymous)",
        "anonymous",
        "unspecified",
        "(unspecified)",
        "none",
    ];
    let is_placeholder = placeholders
        .iter()
        .any(|placeholder| words.eq_ignore_ascii_case(placeholder));
    (!is_placeholder).then(|| words.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pdf_may_begin_late() {
        assert!(has_pdf_signature(b"%PDF-1.7"));
        assert!(has_pdf_signature(b"\n\n%PDF-1.7"));
        let late = |before: usize| {
            has_pdf_signature(&[&vec![b' '; before], b"%PDF-1.7".as_slice()].concat())
        };
        assert!(late(MARK_BYTES - 5));
        assert!(!late(MARK_BYTES - 4));
        assert!(!has_pdf_signature(b"PK\x03\x04 %PDF-"));
    }

    #[test]
    fn properties_are_texts_that_somebody_wrote() {
        for (bytes, expect) in [
            (b"Slate".as_slice(), Some("Slate")),
            (b"\xFE\xFF\0S\0\xFC", Some("Sü")),
            (b"\xEF\xBB\xBFS\xC3\xBC", Some("Sü")),
            (b"S\xFC", Some("Sü")),
            (b"Microsoft Word - plan.doc", Some("plan.doc")),
            (b"(anonymous)", None),
            (b"Untitled", None),
            (b"", None),
        ] {
            assert_eq!(
                meaningful_property(&decode_pdf_string(bytes)).as_deref(),
                expect
            );
        }
    }
}
