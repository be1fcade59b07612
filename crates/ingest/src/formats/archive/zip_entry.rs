//! One entry of a zip directory: its name, whether its content can be unpacked, and the bytes that it is unpacked from.

use std::cell::Cell;
use std::io::{self, Cursor, Read, Seek, SeekFrom};

use ::zip::CompressionMethod;
use ::zip::read::ZipFileEntry;

use crate::error::IngestError;
use crate::formats::by_extension;
use crate::limits::Limits;

/// The name of an entry; bytes that are no text in any encoding become replacement characters.
pub(super) fn entry_name(entry: &ZipFileEntry<'_>) -> String {
    let raw = || String::from_utf8_lossy(entry.name_raw()).into_owned();
    entry
        .name()
        .map_or_else(|_| raw(), |name| name.into_owned())
}

/// Refuses an entry that need not, or cannot, be unpacked.
pub(super) fn check_entry(
    entry: &ZipFileEntry<'_>,
    extension: &str,
    limits: &Limits,
) -> Result<(), IngestError> {
    let limit = limits.max_file_bytes;
    match entry.compression() {
        _ if entry.is_symlink() => Err(IngestError::Link),
        _ if entry.encrypted() => Err(IngestError::Encrypted),
        CompressionMethod::Stored | CompressionMethod::Deflated if entry.size() > limit => {
            let bytes = entry.size();
            Err(IngestError::TooLarge { bytes, limit })
        }
        CompressionMethod::Stored | CompressionMethod::Deflated => Ok(()),
        method => Err(unsupported_storage(&method_name(method), extension)),
    }
}

#[expect(deprecated, reason = "no constant covers all unsupported methods")]
fn method_name(method: CompressionMethod) -> String {
    match method {
        CompressionMethod::Unsupported(number) => match CompressionMethod::name_from_u16(number) {
            "Unknown" => format!("zip method {number}"),
            name => name.to_lowercase(),
        },
        method => format!("{method:?}"),
    }
}

/// The error for a member that is stored in a way we do not read. Its content is lost if its format is one that we do
/// read.
pub(super) fn unsupported_storage(method: &str, extension: &str) -> IngestError {
    if by_extension(extension).is_some() {
        let method = method.to_owned();
        IngestError::UnsupportedStorage { method }
    } else {
        let kind = extension.to_owned();
        IngestError::Unsupported { kind }
    }
}

/// The bytes of a zip until they are closed. When the `zip` crate drops a member, it reads the rest of its packed bytes.
/// After damage near the start that may be the whole archive, once for each of thousands of members that overlap.
pub(super) struct ClosableBytes<'a> {
    bytes: Cursor<&'a [u8]>,
    is_closed: &'a Cell<bool>,
}

impl<'a> ClosableBytes<'a> {
    pub(super) fn new(bytes: &'a [u8], is_closed: &'a Cell<bool>) -> Self {
        let bytes = Cursor::new(bytes);
        Self { bytes, is_closed }
    }
}

impl Read for ClosableBytes<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.is_closed.get() {
            return Ok(0);
        }
        self.bytes.read(buffer)
    }
}

impl Seek for ClosableBytes<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.bytes.seek(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_of_supported_formats_is_lost_when_it_cannot_be_unpacked() {
        let check = |extension: &str, code: &str, lost: u64| {
            let reason = unsupported_storage("bzip2", extension);
            assert_eq!((reason.code(), reason.lost_items()), (code, lost));
        };
        check("md", "unsupported-storage", 1);
        check("zip", "unsupported-storage", 1);
        check("png", "unsupported", 0);
    }

    #[test]
    fn closed_bytes_are_not_read() {
        let is_closed = Cell::new(false);
        let mut from = ClosableBytes::new(b"abc", &is_closed);
        let mut buffer = [0; 2];
        assert_eq!(from.read(&mut buffer).unwrap(), 2);
        is_closed.set(true);
        assert_eq!(from.read(&mut buffer).unwrap(), 0);
    }
}
