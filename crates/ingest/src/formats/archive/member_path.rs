//! Path validation for archive members: maps a member name to a path below the archive, or rejects it.
//!
//! This is the defence against path traversal: absolute names, drive letters, `..` and NUL are errors.

use std::ffi::OsStr;
use std::path::Path;

use docent_search::MAX_SOURCE_BYTES;

use crate::clean::truncate_chars;
use crate::error::IngestError;
use crate::limits::Limits;
use crate::parser::ParserInput;
use crate::source_path::{SourcePath, printable, stem_and_extension, truncate_id};

/// The most characters of a rejected member name that a report shows.
const MAX_SHOWN_CHARS: usize = 200;

/// The location of an archive or of one of its members: the document id, the printable path, and the stem and
/// extension that format detection needs. Nested archives append to it level by level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MemberPath {
    pub(super) id: String,
    pub(super) path: String,
    pub(super) stem: String,
    pub(super) extension: String,
}

impl MemberPath {
    pub(super) fn from_input(input: &ParserInput<'_>) -> Self {
        Self {
            id: input.id.to_owned(),
            path: input.path.to_owned(),
            stem: input.stem.to_owned(),
            extension: String::new(),
        }
    }

    /// Resolves a member name below this archive. Returns `None` for folders and hidden names, which are
    /// never indexed.
    pub(super) fn member(&self, name: &str, limits: &Limits) -> Result<Option<Self>, IngestError> {
        let Some(name) = safe_relative_name(name, limits)? else {
            return Ok(None);
        };
        let place = SourcePath::new(Path::new(&name));
        let path = format!("{}/{}", self.path, place.printable);
        if path.len() > MAX_SOURCE_BYTES {
            return Err(IngestError::PathTooLong {
                limit: MAX_SOURCE_BYTES,
            });
        }
        let (stem, extension) = stem_and_extension(&place.relative);
        Ok(Some(Self {
            id: truncate_id(format!("{}/{}", self.id, place.id)),
            path,
            stem,
            extension,
        }))
    }

    /// A rejected member name in a form that is safe to print and bounded in length.
    pub(super) fn display_name(&self, name: &str) -> String {
        let mut name = printable(OsStr::new(name));
        truncate_chars(&mut name, MAX_SHOWN_CHARS);
        format!("{}/{name}", self.path)
    }
}

/// Normalizes a member name to parts joined by `/` and rejects it if it could lead out of the archive. Both
/// kinds of slashes count as separators, because some programs write backslashes into zip directories.
fn safe_relative_name(name: &str, limits: &Limits) -> Result<Option<String>, IngestError> {
    const SLASHES: [char; 2] = ['/', '\\'];
    let has_drive_letter =
        matches!(name.as_bytes(), [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic());
    if name.contains('\0') || name.starts_with(SLASHES) || has_drive_letter {
        return Err(IngestError::BadName);
    }
    if name.len() > limits.max_path_bytes {
        return Err(IngestError::PathTooLong {
            limit: limits.max_path_bytes,
        });
    }
    let parts: Vec<_> = name
        .split(SLASHES)
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    if parts.contains(&"..") {
        return Err(IngestError::BadName);
    }
    if parts.len() > limits.max_depth.saturating_add(1) {
        return Err(IngestError::TooDeep {
            limit: limits.max_depth,
        });
    }
    // macOS stores a resource fork of every file in a folder of this name.
    let is_hidden =
        parts.iter().any(|part| part.starts_with('.')) || parts.first() == Some(&"__MACOSX");
    let is_folder = name.ends_with(SLASHES);
    Ok((!is_hidden && !is_folder && !parts.is_empty()).then(|| parts.join("/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at() -> MemberPath {
        MemberPath {
            id: "a%20b.zip".into(),
            path: "a b.zip".into(),
            stem: "a b".into(),
            extension: String::new(),
        }
    }

    #[test]
    fn members_lie_below_the_archive() {
        let found = at()
            .member("./minutes\\ü.MD", &Limits::default())
            .unwrap()
            .unwrap();
        assert_eq!(found.id, "a%20b.zip/minutes/%C3%BC.MD");
        assert_eq!(found.path, "a b.zip/minutes/ü.MD");
        assert_eq!((found.stem.as_str(), found.extension.as_str()), ("ü", "md"));
    }

    #[test]
    fn names_that_are_no_names_are_refused_or_ignored() {
        let limits = Limits {
            max_path_bytes: 12,
            max_depth: 2,
            ..Limits::default()
        };
        let check = |name: &str, expect: Result<bool, &str>| {
            let found = at().member(name, &limits);
            let found = found
                .as_ref()
                .map(Option::is_some)
                .map_err(IngestError::code);
            assert_eq!(found, expect, "{name:?}");
        };
        for name in [
            "/etc/passwd",
            "\\\\host\\a",
            "C:\\a",
            "../a",
            "a/../../b",
            "a\0b",
            "a\\..\\b",
        ] {
            check(name, Err("bad-name"));
        }
        for name in ["", "a/", "a\\", ".git/a", "a/.b", "__MACOSX/a", "./", "."] {
            check(name, Ok(false));
        }
        check("a/b/c", Ok(true));
        check("a/b/c/d", Err("too-deep"));
        check("a:b", Ok(true));
        check("123456789012", Ok(true));
        check("1234567890123", Err("path-too-long"));
        check("a..b/c..", Ok(true));
    }

    #[test]
    fn a_whole_path_ends_at_its_bound() {
        let mut at = at();
        at.path = "x".repeat(MAX_SOURCE_BYTES - 2);
        assert!(at.member("a", &Limits::default()).unwrap().is_some());
        let over = at.member("ab", &Limits::default()).unwrap_err();
        assert_eq!(over.code(), "path-too-long");
    }

    #[test]
    fn bad_names_are_shown_safely() {
        assert_eq!(
            at().display_name("../a\0\u{202E}b"),
            "a b.zip/../a\u{FFFD}\u{FFFD}b"
        );
        assert_eq!(
            at().display_name(&"x".repeat(300)).len(),
            8 + MAX_SHOWN_CHARS
        );
    }
}
