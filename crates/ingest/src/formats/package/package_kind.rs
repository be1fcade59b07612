//! The kind of a zip package without unpacking it, for reports: by its first part, or by the central directory at its
//! end.

use std::io::{Read as _, Seek as _, SeekFrom};

use cap_std::fs::File;

use super::{PACKAGES, PackageFormat};

/// How many bytes at the end of a package are searched. The central directory of an office document has a few
/// kilobytes. Looking there tells the kind of a file without unpacking it, which a report does for each of thousands of
/// files.
const TAIL_BYTES: u64 = 256 * 1024;

/// The signatures of a central directory entry and of the end-of-central-directory record.
const ENTRY: &[u8] = b"PK\x01\x02";
const END: &[u8] = b"PK\x05\x06";

/// The name of the format inside a package; `None` for a plain archive.
pub(super) fn kind(file: &File, head: &[u8]) -> Option<&'static str> {
    kind_from_mimetype(head).or_else(|| kind_from_part_names(&tail(file)))
}

/// Reads the end of a file; empty if it cannot be read.
fn tail(mut file: &File) -> Vec<u8> {
    let mut bytes = Vec::new();
    let size = file.seek(SeekFrom::End(0)).unwrap_or(0);
    let start = SeekFrom::Start(size.saturating_sub(TAIL_BYTES));
    if file.seek(start).is_ok() && file.take(TAIL_BYTES).read_to_end(&mut bytes).is_err() {
        bytes.clear();
    }
    bytes
}

/// The type in the `mimetype` part, which OpenDocument and EPUB store first and uncompressed.
fn kind_from_mimetype(head: &[u8]) -> Option<&'static str> {
    if head.get(30..38) != Some(b"mimetype") {
        return None;
    }
    let words = String::from_utf8_lossy(head.get(38..128).unwrap_or_default());
    let is_named = |package: &&PackageFormat| {
        let mut types = package.media_types.iter();
        types.any(|media_type| words.contains(media_type))
    };
    let found = PACKAGES.iter().find(is_named);
    found.map(|package| package.name)
}

/// The type by part names. Only the last central directory counts, since an embedded document has its own
/// before it.
fn kind_from_part_names(tail: &[u8]) -> Option<&'static str> {
    let end = tail.windows(END.len()).rposition(|window| window == END);
    let end = end?;
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
        found = found.or_else(|| PACKAGES.iter().find(is_shown));
        at += 46 + length(28) + length(30) + length(32);
    }
    let known = found.filter(|package| is_office || package.main_kind.is_none());
    known.map(|package| package.name)
}

fn two(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_le_bytes(bytes.try_into().ok()?))
}

fn four(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}
