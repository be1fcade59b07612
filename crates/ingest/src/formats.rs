//! Format registry and detection: picks the parser of a file by its signature (magic bytes) and extension.
//!
//! Content takes precedence: a PDF called `notes.md` is a PDF. Only formats that are plain text are told
//! apart by their extension.
//!
//! To add a format, write a module with a `FORMAT` constant, declare it with `mod`, and list it in
//! [`FORMATS`], or in [`PACKAGES`](package::PACKAGES) if it is inside a zip package. If [`UNSUPPORTED_SIGNATURES`]
//! lists the format, remove it there. `CONTRIBUTING.md` has the other files to edit.

pub(crate) mod archive;
pub(crate) mod bibtex;
pub(crate) mod code;
pub(crate) mod docx;
pub(crate) mod epub;
pub(crate) mod file_format;
pub(crate) mod html;
pub(crate) mod mail;
pub(crate) mod markdown;
pub(crate) mod notebook;
pub(crate) mod odt;
pub(crate) mod package;
pub(crate) mod pdf;
pub(crate) mod pptx;
pub(crate) mod text;

use crate::decoding;
use crate::error::IngestError;
use crate::formats::file_format::FileFormat;
use crate::records::{csv, json, jsonl, parquet, sheet, sqlite};

/// All supported formats. Signatures are checked in this order.
pub(crate) const FORMATS: &[FileFormat] = &[
    html::FORMAT,
    package::FORMAT,
    pdf::FORMAT,
    markdown::FORMAT,
    jsonl::FORMAT,
    csv::FORMAT,
    json::FORMAT,
    bibtex::FORMAT,
    notebook::FORMAT,
    code::FORMAT,
    sheet::FORMAT,
    sqlite::FORMAT,
    parquet::FORMAT,
    mail::MBOX,
    mail::EML,
    archive::TAR,
    archive::GZIP,
    text::FORMAT,
];

/// Finds a format by its name.
pub(crate) fn by_name(name: &str) -> Option<&'static FileFormat> {
    FORMATS.iter().find(|format| format.name == name)
}

/// Finds a format by an extension in lower case.
pub(crate) fn by_extension(extension: &str) -> Option<&'static FileFormat> {
    let mut formats = FORMATS.iter();
    formats.find(|format| format.all_extensions().any(|one| one == extension))
}

/// Signatures of known formats that are not supported, so that reports can name them. An owner who reads `7z` knows
/// what to unpack; for most of these files the only other answer would be that they are binary.
const UNSUPPORTED_SIGNATURES: &[(&[u8], &str)] = &[
    (b"{\\rtf", "rtf"),
    (b"\x28\xB5\x2F\xFD", "zstd"),
    (b"\xFD7zXZ", "xz"),
    (b"7z\xBC\xAF\x27\x1C", "7z"),
    (b"\x89PNG", "png"),
    (b"\xFF\xD8\xFF", "jpeg"),
    (b"\x7FELF", "program"),
];

/// Detects the format of a file from its first bytes and its extension.
pub(crate) fn detect(head: &[u8], extension: &str) -> Result<&'static FileFormat, IngestError> {
    if let Some(format) = FORMATS.iter().find(|format| (format.has_signature)(head)) {
        return Ok(format);
    }
    if let Some((_, kind)) = UNSUPPORTED_SIGNATURES
        .iter()
        .find(|(magic, _)| head.starts_with(magic))
    {
        return Err(IngestError::Unsupported {
            kind: (*kind).to_owned(),
        });
    }
    if decoding::is_binary(head) {
        return Err(IngestError::Binary);
    }
    let unsupported = || IngestError::Unsupported {
        kind: extension.to_owned(),
    };
    by_extension(extension).ok_or_else(unsupported)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(head: &[u8], extension: &str, expect: Result<&str, &str>) {
        let found = detect(head, extension);
        let found = found
            .as_ref()
            .map(|format| format.name)
            .map_err(|reason| reason.code());
        assert_eq!(
            found,
            expect,
            "{:?} {extension}",
            String::from_utf8_lossy(head)
        );
    }

    #[test]
    fn content_speaks_before_the_name() {
        check(b"%PDF-1.7", "md", Ok("pdf"));
        check(b"PK\x03\x04", "txt", Ok("package"));
        check(b"{\\rtf1", "txt", Err("unsupported"));
        check(b"a\0b", "md", Err("binary"));
        check(b"plain", "pdf", Ok("pdf"));
    }

    #[test]
    fn names_tell_texts_apart() {
        check(b"# a", "md", Ok("markdown"));
        check(b"{}", "ndjson", Ok("jsonl"));
        check(b"a", "", Ok("text"));
        check(b"", "txt", Ok("text"));
        check(b"\xFF\xFEa\0", "txt", Ok("text"));
        check(b"body {}", "css", Ok("code"));
        check(b"{}", "ipynb", Ok("notebook"));
        check(b"#!/bin/sh", "", Ok("code"));
        check(b"a", "xyz", Err("unsupported"));
    }

    #[test]
    fn only_our_own_parsers_stay_in_the_server() {
        let own: Vec<_> = FORMATS
            .iter()
            .filter(|format| format.is_trusted)
            .map(|format| format.name)
            .collect();
        assert_eq!(own, ["markdown", "jsonl", "text"]);
        // A parser of lists of records that is not streamed here would bound their length for no reason.
        let streamed = FORMATS.iter().filter(|format| format.stream.is_some());
        let streamed: Vec<_> = streamed.map(|format| format.name).collect();
        assert_eq!(streamed, ["jsonl", "csv", "json"]);
        assert!(by_name("nothing").is_none());
    }

    #[test]
    fn no_extension_has_two_formats() {
        let mut all: Vec<_> = FORMATS
            .iter()
            .flat_map(FileFormat::all_extensions)
            .collect();
        let count = all.len();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
