//! Archive formats (zip, tar, gzip): every member is parsed as if it lay in a folder named after the archive.
//!
//! Nothing is unpacked to disk. Zip bombs, archives nested too deeply and member names that would escape the
//! archive (path traversal, also called zip slip) are skipped and reported.

mod member_path;
mod unpack_budget;
mod unpacker;
mod zip_entry;

use self::unpacker::{ArchiveKind, ArchiveUnpacker, open_zip};
use crate::error::IngestError;
use crate::formats::file_format::FileFormat;
use crate::parser::{ParsedFile, ParserInput};

pub(crate) const TAR: FileFormat = FileFormat {
    name: "tar",
    kind: "tar",
    extensions: &["tar"],
    has_signature: is_tar,
    parse: |input| open(input, ArchiveKind::Tar),
    stream: None,
    is_trusted: false,
    kind_inside: None,
    packages: &[],
};

/// A single compressed file, or a compressed tar archive. Both begin with the same magic bytes, so that only the
/// decompressed content tells them apart; the extension is no help, because `.tgz` and `.gz` are used for both.
pub(crate) const GZIP: FileFormat = FileFormat {
    name: "gzip",
    kind: "gzip",
    extensions: &["gz", "tgz"],
    has_signature: |head| head.starts_with(b"\x1F\x8B"),
    parse: |input| open(input, ArchiveKind::Gzip),
    stream: None,
    is_trusted: false,
    kind_inside: None,
    packages: &[],
};

/// Member names that mark a zip container as a document format of its own, such as an office document or an
/// e-book.
const PACKAGES: &[&[u8]] = &[
    b"[Content_Types].xml",
    b"mimetype",
    b"META-INF/container.xml",
];

/// Parses a plain zip archive. A zip container that is a document format of its own is refused as
/// unsupported.
pub(crate) fn zip(input: &ParserInput<'_>) -> Result<ParsedFile, IngestError> {
    if !is_plain_zip(input.bytes) {
        return Err(IngestError::Unsupported {
            kind: "office".to_owned(),
        });
    }
    open(input, ArchiveKind::Zip)
}

/// Whether a zip is a plain archive and not the container of an office document or an e-book. Nested archives
/// are recognized by the same check that admits the outer one, so that no level escapes the nesting limit.
pub(crate) fn is_plain_zip(bytes: &[u8]) -> bool {
    is_zip(bytes) && !holds_package_part(bytes).unwrap_or(false)
}

fn holds_package_part(bytes: &[u8]) -> Result<bool, IngestError> {
    let mut zip = open_zip(bytes)?;
    let entries = zip.files().map_err(|_| unpack_budget::damaged())?;
    let mut entries = entries.map_while(Result::ok);
    Ok(entries.any(|entry| PACKAGES.contains(&entry.name_raw())))
}

pub(crate) fn is_zip(head: &[u8]) -> bool {
    head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06")
}

fn is_tar(head: &[u8]) -> bool {
    head.get(257..262) == Some(b"ustar")
}

fn detect_archive_kind(bytes: &[u8]) -> Option<ArchiveKind> {
    if is_tar(bytes) {
        Some(ArchiveKind::Tar)
    } else if (GZIP.has_signature)(bytes) {
        Some(ArchiveKind::Gzip)
    } else {
        is_plain_zip(bytes).then_some(ArchiveKind::Zip)
    }
}

fn open(input: &ParserInput<'_>, kind: ArchiveKind) -> Result<ParsedFile, IngestError> {
    let mut unpack = ArchiveUnpacker::new(input);
    let opened = unpack.archive(
        &member_path::MemberPath::from_input(input),
        input.bytes,
        kind,
        0,
    );
    unpack.finish(input, opened)
}

#[cfg(test)]
mod tests;
