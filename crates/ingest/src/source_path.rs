//! Paths inside a source: the location of a file below the root as a printable path and a stable id.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use docent_search::{DocId, MAX_ID_BYTES};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC};

use crate::digest::sha256;

/// A location below the root in its three forms: for opening the file, for people and for ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SourcePath {
    /// The unmodified path with which the file is opened.
    pub relative: PathBuf,
    /// The path with invisible characters replaced, for reports.
    pub printable: String,
    /// The percent-encoded path, which serves as document id.
    pub id: String,
}

impl SourcePath {
    pub(crate) fn new(relative: &Path) -> Self {
        let parts = || relative.iter();
        Self {
            relative: relative.to_path_buf(),
            printable: join(parts().map(printable)),
            id: truncate_id(join(
                parts().map(|part| percent_encode(part.as_encoded_bytes())),
            )),
        }
    }
}

fn join(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join("/")
}

/// Makes a file name safe to print: invisible and control characters, which could hide parts of it or move
/// the cursor of a terminal, become U+FFFD.
pub(crate) fn printable(name: &OsStr) -> String {
    let name = name.to_string_lossy();
    let cleaned = crate::clean::clean(&name);
    if cleaned == *name && !name.contains(char::is_control) {
        return cleaned;
    }
    let replace_hidden = |c: char| {
        let mut one = [0; 4];
        let hidden = c.is_control() || crate::clean::clean(c.encode_utf8(&mut one)).is_empty();
        if hidden { '\u{FFFD}' } else { c }
    };
    name.chars().map(replace_hidden).collect()
}

/// Percent-encodes a name for use inside an id: every byte outside `A-Za-z0-9._-` becomes `%XX`.
pub(crate) fn percent_encode(name: &[u8]) -> String {
    const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'.').remove(b'_').remove(b'-');
    percent_encoding::percent_encode(name, ESCAPED).to_string()
}

/// The qualified id of a document whose own id collides with one of another file: the id of its file, `#id=`,
/// and its own id. `None` if that is not a valid id.
pub fn qualified_id(source: &str, id: &str) -> Option<DocId> {
    let parts = source
        .split('/')
        .map(|part| percent_encode(part.as_bytes()));
    let file = join(parts);
    DocId::parse(&truncate_id(format!("{file}#id={id}"))).ok()
}

/// Shortens an id that is too long: it is cut, and 32 hexadecimal digits of its SHA-256 keep it unique.
pub(crate) fn truncate_id(mut id: String) -> String {
    if id.len() <= MAX_ID_BYTES {
        return id;
    }
    let digest: String = sha256(id.as_bytes()).chars().take(32).collect();
    // Ids from records may contain multi-byte characters.
    id.truncate(id.floor_char_boundary(MAX_ID_BYTES - digest.len() - 1));
    // A cut inside `%XX` would leave half an escape; the checksum keeps the id unique without it.
    if let Some(at) = id.rfind('%')
        && at + 3 > id.len()
    {
        id.truncate(at);
    }
    format!("{id}-{digest}")
}

/// The file stem, and the extension in lower case.
pub(crate) fn stem_and_extension(relative: &Path) -> (String, String) {
    let text = |part: Option<&OsStr>| printable(&part.map(OsString::from).unwrap_or_default());
    (
        text(relative.file_stem()),
        text(relative.extension()).to_lowercase(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    fn raw(bytes: &[u8]) -> PathBuf {
        use std::os::unix::ffi::OsStrExt as _;
        PathBuf::from(OsStr::from_bytes(bytes))
    }

    fn check(path: &Path, shown: &str, id: &str) {
        let place = SourcePath::new(path);
        assert_eq!((place.printable.as_str(), place.id.as_str()), (shown, id));
    }

    #[test]
    fn plain_paths_are_their_own_ids() {
        check(
            Path::new("speeches/2024-03-12-rail_link.md"),
            "speeches/2024-03-12-rail_link.md",
            "speeches/2024-03-12-rail_link.md",
        );
        check(
            Path::new("a b/Ünder%.txt"),
            "a b/Ünder%.txt",
            "a%20b/%C3%9Cnder%25.txt",
        );
        check(Path::new("x#p2.md"), "x#p2.md", "x%23p2.md");
    }

    #[cfg(unix)]
    #[test]
    fn names_that_hide_something_are_shown_marked() {
        check(Path::new("a\nb.md"), "a\u{FFFD}b.md", "a%0Ab.md");
        check(
            Path::new("a\u{1b}[31m.md"),
            "a\u{FFFD}[31m.md",
            "a%1B%5B31m.md",
        );
        check(
            Path::new("a\u{202E}dm.exe"),
            "a\u{FFFD}dm.exe",
            "a%E2%80%AEdm.exe",
        );
        check(&raw(b"a\xFF.md"), "a\u{FFFD}.md", "a%FF.md");
    }

    #[test]
    fn shared_ids_follow_their_file() {
        let id = |source: &str, id: &str| qualified_id(source, id).map(|id| id.to_string());
        assert_eq!(id("a b/x.csv", "7").as_deref(), Some("a%20b/x.csv#id=7"));
        let long = id("x.csv", &"é".repeat(256)).unwrap();
        assert!(long.len() <= MAX_ID_BYTES, "{long}");
        // The limit falls inside a multi-byte character.
        assert!(id("xx.csv", &"é".repeat(256)).is_some());
        assert_ne!(Some(long), id("x.csv", &"é".repeat(255)));
    }

    #[test]
    fn ids_end_at_their_bound() {
        let exact = "a".repeat(MAX_ID_BYTES);
        check(Path::new(&exact), &exact, &exact);
        let over = "a".repeat(MAX_ID_BYTES + 1);
        let id = SourcePath::new(Path::new(&over)).id;
        assert_eq!(id.len(), MAX_ID_BYTES);
        assert_ne!(id, SourcePath::new(Path::new(&format!("{over}b"))).id);
        let encoded = SourcePath::new(Path::new(&"ü".repeat(128))).id;
        assert!(encoded.len() <= MAX_ID_BYTES);
        let (head, digest) = encoded.rsplit_once('-').unwrap();
        assert_eq!((head.len() % 3, digest.len()), (0, 32), "{encoded}");
    }
}
