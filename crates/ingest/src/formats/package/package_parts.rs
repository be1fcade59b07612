//! Zip reader for packages: unpacks parts by name, with limits on their number, their names and their
//! unpacked size, so that a zip bomb is rejected.

use std::collections::BTreeMap;
use std::io::{Cursor, Read as _};

use zip::read::{Config, ZipFileEntry, ZipReadOptions};
use zip::unstable::read::ZipIterable;

use crate::error::IngestError;
use crate::formats::html;
use crate::limits::Limits;

/// The longest name of a part, in bytes. Names in office documents and books are short paths. All names are kept in
/// memory, and twice where their case differs, while a hostile package may have many thousands of them.
const MAX_NAME_BYTES: usize = 1_024;

/// Zip bomb limit: how many times its packed size a part may unpack to once it exceeds [`FREE_BYTES`]. Real
/// XML reaches thirty; ratios in the hundreds occur only in files made to do harm.
const MAX_RATIO: u64 = 200;

/// Unpacked size that a part is allowed whatever its compression ratio. Small XML parts with much repetition, such as
/// empty spreadsheets and default styles, compress far better than text; at this size even the highest ratio does no
/// harm.
const FREE_BYTES: u64 = 4 * 1024 * 1024;

pub(crate) struct PackageParts<'a> {
    reader: Cursor<&'a [u8]>,
    entries: BTreeMap<String, ZipFileEntry<'static>>,
    /// Names in lower case mapped to the names in the package: office programs match part names without
    /// regard to case.
    folded: BTreeMap<String, String>,
    /// Bytes that may still be unpacked, and the limit for the whole package.
    left: u64,
    limit: u64,
}

impl<'a> PackageParts<'a> {
    pub(crate) fn open(bytes: &'a [u8], limits: &Limits) -> Result<Self, IngestError> {
        let reader = Cursor::new(bytes);
        let mut zip = ZipIterable::try_new(reader.clone(), Config::default()).map_err(damaged)?;
        let mut entries = BTreeMap::new();
        let mut folded = BTreeMap::new();
        for (index, entry) in zip.files().map_err(damaged)?.enumerate() {
            if index >= limits.max_members {
                return Err(IngestError::TooMuchInside {
                    limit: limits.max_members as u64,
                });
            }
            let entry = entry.map_err(damaged)?;
            let name = entry.name().map(|name| name.replace('\\', "/"));
            let Some(name) = name.ok().filter(|name| is_safe_part_name(name)) else {
                continue;
            };
            if entry.is_file() && !entry.is_symlink() {
                let lower = name.to_ascii_lowercase();
                folded.entry(lower).or_insert_with(|| name.clone());
                // With duplicate names the first part wins. Such packages are a trick to show different
                // programs different content.
                entries.entry(name).or_insert(entry);
            }
        }
        Ok(Self {
            reader,
            entries,
            folded,
            left: limits.max_unpacked_bytes,
            limit: limits.max_unpacked_bytes,
        })
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.entries.contains_key(self.stored_name(name))
    }

    /// The part's name as the package spells it. An exact match takes precedence over one that ignores
    /// case.
    fn stored_name<'n>(&'n self, name: &'n str) -> &'n str {
        let other = || self.folded.get(&name.to_ascii_lowercase());
        match self.entries.contains_key(name) {
            true => name,
            false => other().map_or(name, String::as_str),
        }
    }

    /// Unpacks a part and removes it. `None` if there is no part of this name or it was unpacked before.
    pub(crate) fn bytes(&mut self, name: &str) -> Result<Option<Vec<u8>>, IngestError> {
        let name = self.stored_name(name).to_owned();
        let Some(entry) = self.entries.remove(&name) else {
            return Ok(None);
        };
        if entry.encrypted() {
            return Err(IngestError::Encrypted);
        }
        let by_ratio = entry.compressed_size().saturating_mul(MAX_RATIO);
        let most = by_ratio.max(FREE_BYTES).min(self.left);
        let claimed = entry.size();
        if claimed > most {
            return Err(IngestError::TooMuchInside { limit: self.limit });
        }
        // Reserve the claimed size plus one byte, which exposes a size that is too small. A vector that
        // grows on demand would take up to twice the memory, and whether the child process has that much
        // left depends on what it read before.
        let mut bytes = Vec::new();
        let room = usize::try_from(claimed.saturating_add(1)).unwrap_or(usize::MAX);
        bytes
            .try_reserve_exact(room)
            .map_err(|_| IngestError::out_of_memory())?;
        let part = entry.with_reader(&mut self.reader, ZipReadOptions::new());
        let part = part.map_err(damaged)?;
        let read = part.take(room as u64).read_to_end(&mut bytes);
        let size = bytes.len() as u64;
        if read.is_err() || size > claimed {
            return Err(IngestError::Damaged {
                what: "a part of it cannot be unpacked".into(),
            });
        }
        self.left -= size;
        Ok(Some(bytes))
    }

    /// Unpacks a part as text, in any encoding that XML allows.
    pub(crate) fn text(&mut self, name: &str) -> Result<Option<String>, IngestError> {
        let Some(bytes) = self.bytes(name)? else {
            return Ok(None);
        };
        if bytes.starts_with(b"\xEF\xBB\xBF") {
            return html::decode(&bytes).map(Some);
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(error) => html::decode(error.as_bytes()).map(Some),
        }
    }

    /// Unpacks a text part that must exist; it is an error if it does not.
    pub(crate) fn required_text(&mut self, name: &str) -> Result<String, IngestError> {
        self.text(name)?.ok_or(IngestError::Damaged {
            what: "a part of it is missing".into(),
        })
    }
}

/// Treats a damaged auxiliary part (properties, notes) as empty, so that only its own content is lost and
/// not the document.
pub(crate) fn optional_part<T: Default>(read: Result<T, IngestError>) -> Result<T, IngestError> {
    match read {
        Err(IngestError::Damaged { .. }) => Ok(T::default()),
        other => other,
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "it is the argument of `map_err`"
)]
fn damaged(error: zip::result::ZipError) -> IngestError {
    match error {
        zip::result::ZipError::UnsupportedArchive(_) => IngestError::Damaged {
            what: "a part of it has an unsupported compression method".into(),
        },
        _ => IngestError::Damaged {
            what: "it is not a complete zip file".into(),
        },
    }
}

/// Path traversal check: whether a part's name stays inside the package.
fn is_safe_part_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= MAX_NAME_BYTES
        && !name.starts_with('/')
        && !name.contains(['\0', ':'])
        && name.split('/').all(|part| part != "..")
}

/// Resolves a reference in the part `from` to a part's name, as a browser resolves a relative link.
pub(crate) fn resolve(from: &str, target: &str) -> String {
    let target = target.split(['#', '?']).next().unwrap_or_default();
    let mut path: Vec<&str> = Vec::new();
    if !target.starts_with('/') {
        path = from.split('/').collect();
        path.pop();
    }
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                path.pop();
            }
            _ => path.push(part),
        }
    }
    path.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use zip::write::{SimpleFileOptions, ZipWriter};

    fn zipped(parts: &[(&str, &[u8])]) -> Vec<u8> {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, bytes) in parts {
            zip.start_file(*name, SimpleFileOptions::default()).unwrap();
            zip.write_all(bytes).unwrap();
        }
        zip.finish().unwrap().into_inner()
    }

    fn names(bytes: &[u8]) -> Vec<String> {
        let parts = PackageParts::open(bytes, &Limits::default()).unwrap();
        parts.entries.into_keys().collect()
    }

    #[test]
    fn names_that_leave_the_package_are_ignored() {
        let long = "x".repeat(MAX_NAME_BYTES);
        let over = "x".repeat(MAX_NAME_BYTES + 1);
        let bytes = zipped(&[
            ("a/b.xml", b""),
            ("a\\c.xml", b""),
            ("../a", b""),
            ("a/../b", b""),
            ("/etc/a", b""),
            ("c:/a", b""),
            ("a\0b", b""),
            (&long, b""),
            (&over, b""),
        ]);
        assert_eq!(names(&bytes), ["a/b.xml", "a/c.xml", &long]);
    }

    #[test]
    fn links_and_folders_are_no_parts() {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        let options = SimpleFileOptions::default();
        zip.add_symlink("link", "/etc/passwd", options).unwrap();
        zip.add_directory("folder", options).unwrap();
        let bytes = zip.finish().unwrap().into_inner();
        assert!(names(&bytes).is_empty());
    }

    #[test]
    fn parts_end_at_their_number() {
        let limits = Limits {
            max_members: 2,
            ..Limits::default()
        };
        let open = |parts: &[(&str, &[u8])]| PackageParts::open(&zipped(parts), &limits).map(drop);
        assert_eq!(open(&[("a", b""), ("b", b"")]), Ok(()));
        let over = open(&[("a", b""), ("b", b""), ("c", b"")]);
        assert_eq!(over, Err(IngestError::TooMuchInside { limit: 2 }));
    }

    #[test]
    fn parts_together_end_at_their_size() {
        let limits = Limits {
            max_unpacked_bytes: 5,
            ..Limits::default()
        };
        let bytes = zipped(&[("a", b"xxx"), ("b", b"xx"), ("c", b"xxx")]);
        let mut parts = PackageParts::open(&bytes, &limits).unwrap();
        assert_eq!(parts.bytes("a"), Ok(Some(b"xxx".to_vec())));
        assert_eq!(
            parts.bytes("c"),
            Err(IngestError::TooMuchInside { limit: 5 })
        );
        assert_eq!(parts.text("b"), Ok(Some("xx".to_owned())));
        assert_eq!(parts.text("b"), Ok(None));
    }

    #[test]
    fn a_bomb_ends_at_its_ratio() {
        let large = |size: usize| {
            let bytes = zipped(&[("a", &vec![0; size])]);
            let mut parts = PackageParts::open(&bytes, &Limits::default()).unwrap();
            parts.bytes("a").map(|bytes| bytes.map(|bytes| bytes.len()))
        };
        let free = FREE_BYTES as usize;
        assert_eq!(large(free), Ok(Some(free)));
        assert_eq!(
            large(free + 1).map_err(|reason| reason.code()),
            Err("too-much-inside")
        );
    }

    #[test]
    fn truncated_and_corrupt_packages_are_damaged() {
        let bytes = zipped(&[(
            "a",
            b"some text that is long enough to be packed, packed, packed",
        )]);
        for cut in [4, bytes.len() / 2, bytes.len() - 1] {
            let open = PackageParts::open(&bytes[..cut], &Limits::default()).map(drop);
            assert_eq!(
                open.map_err(|reason| reason.code()),
                Err("damaged"),
                "{cut}"
            );
        }
        let mut broken = bytes;
        broken[40] ^= 0x55;
        let mut parts = PackageParts::open(&broken, &Limits::default()).unwrap();
        assert_eq!(
            parts.bytes("a").map_err(|reason| reason.code()),
            Err("damaged")
        );
    }

    #[test]
    fn targets_are_found_from_where_they_are_written() {
        for (from, target, expect) in [
            ("word/document.xml", "media/a.png", "word/media/a.png"),
            ("ppt/slides/s1.xml", "../notes/n1.xml", "ppt/notes/n1.xml"),
            ("_rels/.rels", "/word/document.xml", "word/document.xml"),
            ("a.opf", "./text/c1.html#x", "text/c1.html"),
            ("a.opf", "../../../b", "b"),
        ] {
            assert_eq!(resolve(from, target), expect);
        }
    }
}
