//! PDF parser: one file becomes one document with the text of its pages in reading order, page breaks
//! between them, lines in larger type as headings, and the document properties as metadata.

mod char_codes;
mod decompression_limit;
mod form_xobjects;
mod glyphs;
mod information;
mod reading_order;
mod render;
mod segment;

use hayro_interpret::hayro_syntax::{DecryptionError, LoadPdfError, Pdf};

use crate::clean::clean_line;
use crate::error::IngestError;
use crate::fields::metadata::extract_metadata;
use crate::formats::file_format::FileFormat;
use crate::formats::html::KEYS;
use crate::layout::clean_pages;
use crate::parser::{ParsedFile, ParserInput};
use crate::reader_field::{ReaderField, ReaderKeys};
use crate::single_document::build_document;

pub(crate) const FORMAT: FileFormat = FileFormat {
    name: "pdf",
    kind: "pdf",
    extensions: &["pdf"],
    has_signature: has_pdf_signature,
    parse,
    stream: None,
    is_trusted: false,
    kind_inside: None,
    packages: &[],
};

/// Where the `%PDF-` signature is looked for. Old mail programs and web servers put some bytes in front of it. PDF
/// viewers tolerate them, and so do we, because a file that opens for a person has to be found as well.
const MARK_BYTES: usize = 1_024;

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
    let readers = ReaderKeys::for_input(input);
    let (keys, is_read) = information::properties(&pdf, &readers);
    let mut metadata = extract_metadata(keys, &KEYS, input);
    if !is_read && metadata.readers == ReaderField::Absent {
        metadata.mark_readers_malformed(&readers);
    }
    if metadata.title.is_none() {
        let mut title = clean_line(&rendered.first_heading);
        crate::clean::truncate_chars(&mut title, input.limits.max_title_chars);
        metadata.title = Some(title).filter(|title| !title.is_empty());
    }
    build_document(input, clean_pages(&rendered.text), metadata)
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
}
