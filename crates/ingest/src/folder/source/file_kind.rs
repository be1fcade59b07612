//! The names of file types in reports, such as `docx`: by content where that can be read, else by extension.

use cap_std::fs::File;

use crate::error::IngestError;
use crate::formats::by_extension;
use crate::formats::file_format::FileFormat;

/// The most characters of an extension that is reported as a file type.
const MAX_EXTENSION_CHARS: usize = 12;

/// The name of a type for reports. A file whose content does not tell it is named by its extension.
pub(super) fn kind_name(known: Result<String, IngestError>, extension: &str) -> String {
    match known {
        Ok(kind) => kind,
        Err(IngestError::Unsupported { kind }) if is_plain(&kind) => kind,
        Err(_) => match by_extension(extension) {
            Some(format) if !format.packages.is_empty() => extension.to_owned(),
            Some(format) => format.kind.to_owned(),
            None if is_plain(extension) => extension.to_owned(),
            None => "other".to_owned(),
        },
    }
}

/// The kind of a file whose format was recognized by its `head`.
pub(super) fn kind_in_content(
    format: &FileFormat,
    file: &File,
    head: &[u8],
    extension: &str,
) -> String {
    let inside = format.kind_inside.and_then(|kind| kind(file, head));
    // A container that holds nothing we know, under an extension that we do not know: the extension says more than the
    // container does, as in the case of `.msi`.
    let is_named = format.kind_inside.is_some()
        && format.packages.is_empty()
        && by_extension(extension).is_none()
        && is_plain(extension);
    match inside {
        None if is_named => extension.to_owned(),
        inside => inside.unwrap_or(format.kind).to_owned(),
    }
}

fn is_plain(extension: &str) -> bool {
    (1..=MAX_EXTENSION_CHARS).contains(&extension.len())
        && extension.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write as _};

    use zip::write::SimpleFileOptions;

    use super::*;
    use crate::folder::source::FolderSource;
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

    /// The header and the directory of a compound file with one stream.
    fn compound(stream: &str) -> Vec<u8> {
        let entry = |name: &str, kind: u8| {
            let mut entry: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
            entry.resize(128, 0);
            entry[66] = kind;
            entry
        };
        let mut bytes = b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1".to_vec();
        bytes.resize(512 * 3, 0);
        bytes[30] = 9;
        // The directory is in the third sector, counted from the one behind the header.
        bytes[48] = 2;
        bytes.extend([entry("Root Entry", 5), entry(stream, 2)].concat());
        bytes
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
            ("i1.doc", compound("WordDocument"), "doc"),
            ("i2.xls", compound("WordDocument"), "doc"),
            ("i3.bin", compound("Book"), "xls"),
            ("i4.ppt", compound("PowerPoint Document"), "ppt"),
            ("i5.msi", compound("Table"), "msi"),
            ("i6.txt", compound("Table"), "xls"),
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
