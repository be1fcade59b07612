//! File type detection without parsing, for reports: names a type such as `docx` by the first bytes of a
//! file, and for zip packages by the central directory at its end.

use std::io::{Read as _, Seek as _, SeekFrom};

use cap_std::fs::File;

use super::FolderSource;
use crate::error::IngestError;
use crate::folder::file_entry::FileEntry;
use crate::formats::file_format::FileFormat;
use crate::formats::package::PackageFormat;
use crate::formats::{by_extension, detect};
use crate::parser::HEAD_BYTES;
use crate::source_path::stem_and_extension;

/// How many bytes at the end of a package are searched. The central directory of an office document has a few
/// kilobytes. Looking there tells the kind of a file without unpacking it, which a report does for each of thousands of
/// files.
const TAIL_BYTES: u64 = 256 * 1024;

/// The most characters of an extension that is reported as a file type.
const MAX_EXTENSION_CHARS: usize = 12;

/// The signatures of a central directory entry and of the end-of-central-directory record.
const ENTRY: &[u8] = b"PK\x01\x02";
const END: &[u8] = b"PK\x05\x06";

impl FolderSource {
    /// The type of a file, by content first. A file that cannot be opened, or whose format is not supported,
    /// is named by its extension.
    pub fn kind(&self, entry: &FileEntry) -> String {
        let (_, extension) = stem_and_extension(&entry.place.relative);
        match self.known_kind(entry, &extension) {
            Ok(kind) => kind.to_owned(),
            Err(IngestError::Unsupported { kind }) if is_plain(&kind) => kind,
            Err(_) => match by_extension(&extension) {
                Some(format) if !format.packages.is_empty() => extension,
                Some(format) => format.kind.to_owned(),
                None if is_plain(&extension) => extension,
                None => "other".to_owned(),
            },
        }
    }

    fn known_kind(&self, entry: &FileEntry, extension: &str) -> Result<&'static str, IngestError> {
        let (mut file, _) = self.open_file(&entry.place.relative)?;
        let mut head = Vec::new();
        super::read_prefix(&mut file, HEAD_BYTES as u64, &mut head)?;
        let format = detect(&head, extension)?;
        if format.packages.is_empty() {
            return Ok(format.kind);
        }
        let kind = kind_from_mimetype(format, &head);
        Ok(kind.unwrap_or_else(|| kind_from_part_names(format, &tail(&mut file))))
    }
}

fn is_plain(extension: &str) -> bool {
    (1..=MAX_EXTENSION_CHARS).contains(&extension.len())
        && extension.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Reads the end of a file; empty if it cannot be read.
fn tail(file: &mut File) -> Vec<u8> {
    let mut bytes = Vec::new();
    let size = file.seek(SeekFrom::End(0)).unwrap_or(0);
    let start = SeekFrom::Start(size.saturating_sub(TAIL_BYTES));
    if file.seek(start).is_ok() && file.take(TAIL_BYTES).read_to_end(&mut bytes).is_err() {
        bytes.clear();
    }
    bytes
}

/// The type in the `mimetype` part, which OpenDocument and EPUB store first and uncompressed.
fn kind_from_mimetype(format: &FileFormat, head: &[u8]) -> Option<&'static str> {
    if head.get(30..38) != Some(b"mimetype") {
        return None;
    }
    let words = String::from_utf8_lossy(head.get(38..128).unwrap_or_default());
    let is_named = |package: &&PackageFormat| {
        let mut types = package.media_types.iter();
        types.any(|media_type| words.contains(media_type))
    };
    let found = format.packages.iter().find(is_named);
    found.map(|package| package.name)
}

/// The type by part names. Only the last central directory counts, since an embedded document has its own
/// before it.
fn kind_from_part_names(format: &FileFormat, tail: &[u8]) -> &'static str {
    let end = tail.windows(END.len()).rposition(|window| window == END);
    let Some(end) = end else {
        return format.kind;
    };
    let size = four(tail, end + 12).unwrap_or(0) as usize;
    let mut at = end.saturating_sub(size);
    let (mut is_office, mut found) = (false, None);
    while tail.get(at..at + ENTRY.len()) == Some(ENTRY) {
        let length = |place: usize| usize::from(two(tail, at + place).unwrap_or(0));
        let name = tail.get(at + 46..at + 46 + length(28)).unwrap_or_default();
        is_office |= name == b"[Content_Types].xml";
        let is_shown = |package: &&PackageFormat| {
            !package.part.is_empty() && name.starts_with(package.part.as_bytes())
        };
        found = found.or_else(|| format.packages.iter().find(is_shown));
        at += 46 + length(28) + length(30) + length(32);
    }
    match found {
        Some(package) if is_office || package.main_kind.is_none() => package.name,
        _ => format.kind,
    }
}

fn two(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_le_bytes(bytes.try_into().ok()?))
}

fn four(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write as _};

    use zip::write::SimpleFileOptions;

    use super::*;
    use crate::limits::Limits;

    fn package(parts: &[(&str, &[u8])]) -> Vec<u8> {
        let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
        let stored =
            SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
        for (name, bytes) in parts {
            zip.start_file(*name, stored).unwrap();
            zip.write_all(bytes).unwrap();
        }
        zip.finish().unwrap().into_inner()
    }

    #[test]
    fn files_are_called_by_what_they_hold() {
        let types: (&str, &[u8]) = ("[Content_Types].xml", b"");
        let sheet = package(&[types, ("xl/workbook.xml", b"")]);
        let odt = b"application/vnd.oasis.opendocument.text";
        let files: Vec<(&str, Vec<u8>, &str)> = vec![
            (
                "a.bin",
                package(&[types, ("word/document.xml", b"")]),
                "docx",
            ),
            (
                "b.zip",
                package(&[types, ("ppt/presentation.xml", b"")]),
                "pptx",
            ),
            ("c.xlsx", sheet.clone(), "xlsx"),
            // A spreadsheet embedded in a text document does not make it a spreadsheet.
            (
                "d.docx",
                package(&[types, ("word/embeddings/a.xlsx", &sheet)]),
                "docx",
            ),
            ("e", package(&[("mimetype", odt)]), "odt"),
            (
                "f",
                package(&[("mimetype", b"application/epub+zip")]),
                "epub",
            ),
            ("g.docx", package(&[("xl/a", b"")]), "zip"),
            ("h.docx", b"PK\x03\x04PK\x05\x06".to_vec(), "zip"),
            ("i.xls", b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1".to_vec(), "xls"),
            ("j.txt", b"%PDF-1.7".to_vec(), "pdf"),
            ("k.md", b"words".to_vec(), "markdown"),
            ("l.bmpx", b"words".to_vec(), "bmpx"),
            ("m.md", b"\0\0".to_vec(), "markdown"),
            ("n.a-b", b"\0\0".to_vec(), "other"),
            ("o.txt", b"\x89PNG".to_vec(), "png"),
        ];
        let root = tempfile::tempdir().unwrap();
        for (name, bytes, _) in &files {
            std::fs::write(root.path().join(name), bytes).unwrap();
        }
        let source = FolderSource::open(root.path(), Limits::default()).unwrap();
        let found: Vec<_> = source.list().entries;
        let found: Vec<_> = found
            .iter()
            .map(|entry| (entry.path().to_owned(), source.kind(entry)))
            .collect();
        let expected: Vec<_> = files
            .iter()
            .map(|(name, _, kind)| ((*name).to_owned(), (*kind).to_owned()))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn extensions_end_at_their_bound() {
        assert!(is_plain(&"x".repeat(MAX_EXTENSION_CHARS)));
        assert!(!is_plain(&"x".repeat(MAX_EXTENSION_CHARS + 1)) && !is_plain(""));
    }
}
