//! A file's first bytes and name into the parser that reads it. Content speaks first: a PDF called
//! `notes.md` is a PDF. Only formats that are plain text inside are told apart by name.
//!
//! To add a format: write one file with a `FORMAT`, and name it in [`FORMATS`].

use docent_search::Document;

use crate::error::{Reason, Skipped, Warning};
use crate::limits::Limits;
use crate::{html, jsonl, markdown, package, pdf, text};

/// Every format that can be read.
const FORMATS: &[Format] = &[
    html::FORMAT,
    package::FORMAT,
    pdf::FORMAT,
    markdown::FORMAT,
    jsonl::FORMAT,
    text::FORMAT,
];

/// How many bytes from a file's start are enough to tell its format.
pub(crate) const HEAD_BYTES: usize = 8 * 1024;

/// One format: how to know it and how to read it.
pub(crate) struct Format {
    /// What reports call it.
    pub name: &'static str,
    /// Extensions in lower case, without the dot. The empty one stands for a name without extension.
    /// They decide for texts, where no beginning gave the format away.
    pub extensions: &'static [&'static str],
    /// Whether the first [`HEAD_BYTES`] of a file give it away, whatever its name is.
    pub begins: fn(&[u8]) -> bool,
    /// Reads a whole file. It gets bytes and gives documents and touches nothing else, so that it can
    /// move into a child process as it is.
    pub parse: fn(&Input<'_>) -> Result<Parsed, Reason>,
}

/// One file as its parser sees it.
pub(crate) struct Input<'a> {
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
}

/// What a parser made of one file.
#[derive(Debug, Default)]
pub(crate) struct Parsed {
    pub documents: Vec<Document>,
    pub skipped: Vec<Skipped>,
    pub warnings: Vec<Warning>,
}

/// For formats that are plain text inside, which begin with anything.
pub(crate) fn begins_with_anything(_head: &[u8]) -> bool {
    false
}

/// Starts of files that are no text, or text for machines, and are not read so far.
const FOREIGN: &[(&[u8], &str)] = &[
    (b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1", "old office"),
    (b"{\\rtf", "rtf"),
    (b"\x1F\x8B", "gzip"),
    (b"\x28\xB5\x2F\xFD", "zstd"),
    (b"\xFD7zXZ", "xz"),
    (b"7z\xBC\xAF\x27\x1C", "7z"),
    (b"\x89PNG", "png"),
    (b"\xFF\xD8\xFF", "jpeg"),
    (b"\x7FELF", "program"),
];

/// The format of a file that starts with `head` and whose name ends in `extension`.
pub(crate) fn detect(head: &[u8], extension: &str) -> Result<&'static Format, Reason> {
    if let Some(format) = FORMATS.iter().find(|format| (format.begins)(head)) {
        return Ok(format);
    }
    if let Some((_, kind)) = FOREIGN.iter().find(|(magic, _)| head.starts_with(magic)) {
        return Err(Reason::Unsupported {
            kind: (*kind).to_owned(),
        });
    }
    if text::is_binary(head) {
        return Err(Reason::Binary);
    }
    let by_name = |format: &&Format| format.extensions.contains(&extension);
    let unsupported = || Reason::Unsupported {
        kind: extension.to_owned(),
    };
    FORMATS.iter().find(by_name).ok_or_else(unsupported)
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
        check(b"body {}", "css", Err("unsupported"));
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
