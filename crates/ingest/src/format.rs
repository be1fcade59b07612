//! A file's first bytes and name into the parser that reads it. Content speaks first: a PDF called
//! `notes.md` is a PDF. Only formats that are plain text inside are told apart by name.
//!
//! To add a format: write one file with a `FORMAT`, and name it in [`FORMATS`].

use std::io::Read;

use crate::reader_field::ParsedDocument;

use crate::document_sink::DocumentSink;
use crate::error::{IngestError, IngestWarning, SkippedItem};
use crate::exports::FolderContext;
use crate::limits::Limits;
use crate::options::IngestOptions;
use crate::record_ids::IdPass;
use crate::{
    archive, bibtex, code, csv, html, json, jsonl, mail, markdown, notebook, package, parquet, pdf,
    sheet, sqlite, text,
};

/// Every format that can be read.
const FORMATS: &[FileFormat] = &[
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

/// Formats that are read in the server itself: our own code, bounded in all it does. Every other one is read
/// in a child process.
const TRUSTED_FORMATS: &[&str] = &["markdown", "jsonl", "text"];

/// Reads a file while it comes.
pub(crate) type StreamParser =
    fn(&ParserInput<'_>, &mut dyn Read) -> Result<ParsedFile, IngestError>;

/// Formats that are read while they come, a piece at a time, so that a file may be of any length.
const STREAM_PARSERS: &[(&str, StreamParser)] = &[
    ("jsonl", jsonl::stream),
    ("csv", csv::stream),
    ("json", json::stream),
];

/// How many bytes from a file's start are enough to tell its format.
pub(crate) const HEAD_BYTES: usize = 8 * 1024;

/// One format: how to know it and how to read it.
pub(crate) struct FileFormat {
    /// What reports call it.
    pub name: &'static str,
    /// Extensions in lower case, without the dot. The empty one stands for a name without extension.
    /// They decide for texts, where no beginning gave the format away.
    pub extensions: &'static [&'static str],
    /// Whether the first [`HEAD_BYTES`] of a file give it away, whatever its name is.
    pub has_signature: fn(&[u8]) -> bool,
    /// Reads a whole file. It gets bytes and gives documents and touches nothing else, so that it can
    /// move into a child process as it is.
    pub parse: fn(&ParserInput<'_>) -> Result<ParsedFile, IngestError>,
}

/// One file as its parser sees it.
pub(crate) struct ParserInput<'a> {
    /// The file's id.
    pub id: &'a str,
    /// The path to show.
    pub path: &'a str,
    /// The name without folder and extension, for want of a better title.
    pub stem: &'a str,
    /// The whole content.
    pub bytes: &'a [u8],
    /// SHA-256 of the content, in hexadecimal.
    pub sha256: &'a str,
    /// The bounds to keep.
    pub limits: &'a Limits,
    /// What the owner asked for, format by format.
    pub options: &'a IngestOptions,
    /// What the folder around it tells.
    pub folder_context: &'a FolderContext,
    /// Who takes documents as they are made; nobody where they are wanted all together.
    pub sink: Option<&'a dyn DocumentSink>,
    /// What is done about the ids of records.
    pub ids: IdPass,
}

/// What a parser made of one file.
#[derive(Debug, Default)]
pub(crate) struct ParsedFile {
    pub documents: Vec<ParsedDocument>,
    pub skipped: Vec<SkippedItem>,
    pub warnings: Vec<IngestWarning>,
    /// Whether its records are numbered, for want of ids that tell them apart.
    pub numbered: bool,
}

impl ParsedFile {
    /// Puts what a scan of the same file told before everything else.
    pub(crate) fn prepend_warnings(&mut self, scan: Result<Self, IngestError>) {
        let told = scan.map(|scan| scan.warnings).unwrap_or_default();
        self.warnings.splice(0..0, told);
    }
}

impl FileFormat {
    /// Whether it may be read outside a child process.
    pub(crate) fn is_trusted(&self) -> bool {
        TRUSTED_FORMATS.contains(&self.name)
    }

    /// How to read it while it comes, where that can be done.
    pub(crate) fn stream_parser(&self) -> Option<StreamParser> {
        let found = STREAM_PARSERS.iter().find(|(name, _)| *name == self.name);
        found.map(|(_, stream)| *stream)
    }
}

/// The format of this name.
pub(crate) fn by_name(name: &str) -> Option<&'static FileFormat> {
    FORMATS.iter().find(|format| format.name == name)
}

/// The format of files with this extension, in lower case.
pub(crate) fn by_extension(extension: &str) -> Option<&'static FileFormat> {
    let mut formats = FORMATS.iter();
    formats.find(|format| format.extensions.contains(&extension))
}

/// For formats that are plain text inside, which begin with anything.
pub(crate) fn no_signature(_head: &[u8]) -> bool {
    false
}

/// Starts of files that are no text, or text for machines, and are not read so far.
const UNSUPPORTED_SIGNATURES: &[(&[u8], &str)] = &[
    (b"{\\rtf", "rtf"),
    (b"\x28\xB5\x2F\xFD", "zstd"),
    (b"\xFD7zXZ", "xz"),
    (b"7z\xBC\xAF\x27\x1C", "7z"),
    (b"\x89PNG", "png"),
    (b"\xFF\xD8\xFF", "jpeg"),
    (b"\x7FELF", "program"),
];

/// The format of a file that starts with `head` and whose name ends in `extension`.
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
    if text::is_binary(head) {
        return Err(IngestError::Binary);
    }
    let unsupported = || IngestError::Unsupported {
        kind: extension.to_owned(),
    };
    by_extension(extension).ok_or_else(unsupported)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Hands a parser a file that exists only for a test.
    pub(crate) fn with_input<T>(
        path: &str,
        bytes: &[u8],
        limits: &Limits,
        parse: impl FnOnce(&ParserInput<'_>) -> T,
    ) -> T {
        let (stem, _) = crate::file_entry::stem_and_extension(path.as_ref());
        parse(&ParserInput {
            id: path,
            path,
            stem: &stem,
            bytes,
            sha256: "",
            limits,
            options: &IngestOptions::default(),
            folder_context: &FolderContext::NONE,
            sink: None,
            ids: IdPass::Own,
        })
    }

    /// `id|title|text` for a document, `path:line:code` for what was left out.
    pub(crate) fn shown(parsed: &ParsedFile) -> Vec<String> {
        let documents = parsed
            .documents
            .iter()
            .map(|d| format!("{}|{}|{}", d.id, d.title, d.text.replace('\n', "/")));
        let skipped = parsed
            .skipped
            .iter()
            .map(|s| format!("{}:{}:{}", s.path, s.line.unwrap_or(0), s.reason.code()));
        documents.chain(skipped).collect()
    }

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
            .filter(|format| format.is_trusted())
            .map(|format| format.name)
            .collect();
        assert_eq!(own, TRUSTED_FORMATS);
        assert!(by_name("package").is_some_and(|format| !format.is_trusted()));
        assert!(by_name("nothing").is_none());
    }

    #[test]
    fn no_extension_has_two_formats() {
        let mut all: Vec<_> = FORMATS
            .iter()
            .flat_map(|format| format.extensions)
            .collect();
        let count = all.len();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
