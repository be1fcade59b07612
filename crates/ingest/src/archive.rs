//! Archives into the documents of the files inside them, each read as if it lay in a folder of the archive's
//! name. Nothing is unpacked to a disk. What unpacks to too much, lies too deep or has a name that leads
//! elsewhere is left out, and said so.

mod member_path;
mod unpack_budget;
mod unpacker;

use std::io::Cursor;

use ::zip::ZipArchive;

use self::unpacker::{ArchiveKind, ArchiveUnpacker};
use crate::error::IngestError;
use crate::format::{FileFormat, ParsedFile, ParserInput};

pub(crate) const TAR: FileFormat = FileFormat {
    name: "tar",
    extensions: &["tar"],
    has_signature: is_tar,
    parse: |input| open(input, ArchiveKind::Tar),
};

/// One packed file, or a whole packed tar.
pub(crate) const GZIP: FileFormat = FileFormat {
    name: "gzip",
    extensions: &["gz", "tgz"],
    has_signature: |head| head.starts_with(b"\x1F\x8B"),
    parse: |input| open(input, ArchiveKind::Gzip),
};

/// Names that tell an office document, an e-book or the like from a plain archive.
const PACKAGES: &[&[u8]] = &[
    b"[Content_Types].xml",
    b"mimetype",
    b"META-INF/container.xml",
];

/// Reads a plain zip archive; what is a document of its own is not one.
pub(crate) fn zip(input: &ParserInput<'_>) -> Result<ParsedFile, IngestError> {
    if !is_plain_zip(input.bytes) {
        return Err(IngestError::Unsupported {
            kind: "office".to_owned(),
        });
    }
    open(input, ArchiveKind::Zip)
}

/// True for a zip that is no document of its own. Only such a zip is opened here, and inside an archive it is
/// known by the same question, so that archives inside archives are always counted.
pub(crate) fn is_plain_zip(bytes: &[u8]) -> bool {
    is_zip(bytes)
        && ZipArchive::new(Cursor::new(bytes)).map_or(true, |zip| {
            !zip.file_names_raw().any(|name| PACKAGES.contains(&name))
        })
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
