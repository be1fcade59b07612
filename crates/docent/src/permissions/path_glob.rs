//! Glob patterns for permission rules, such as `hr/**` or `reports/*/drafts`.
//!
//! A pattern that matches a folder or an archive covers everything inside. Matching ignores case and Unicode
//! normalization form: on a file system that ignores them too, another spelling must not bypass a rule.

use std::fmt;

use docent_ingest::{PATH_SEPARATORS, fold_path};

/// The length limit of a pattern, in characters.
pub(crate) const MAX_CHARS: usize = 1_000;

/// A parsed glob: `*` matches any text within one path segment, `**` any number of segments.
///
/// Matching simulates the pattern as a nondeterministic automaton. Its time is bounded by pattern length times path
/// length, so a hostile pattern of stars cannot cause exponential backtracking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathGlob {
    parts: Vec<GlobSegment>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum GlobSegment {
    Any,
    /// The literal pieces between the stars of a segment.
    Like(Vec<String>),
}

impl fmt::Display for PathGlob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |part: &GlobSegment| match part {
            GlobSegment::Any => "**".to_owned(),
            GlobSegment::Like(texts) => texts.join("*"),
        };
        let parts: Vec<_> = self.parts.iter().map(part).collect();
        f.write_str(&parts.join("/"))
    }
}

impl PathGlob {
    /// Parses a pattern. The error is a hint that shows a valid one.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        let text = text
            .strip_prefix("./")
            .unwrap_or(text)
            .trim_end_matches('/');
        if text.is_empty() || text.chars().nth(MAX_CHARS).is_some() {
            return Err("example: `hr/**`");
        }
        if text.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err("name a place below the folder of the documents, such as `hr/**`");
        }
        let part = |text: &str| match text {
            "**" => GlobSegment::Any,
            text => GlobSegment::Like(fold_path(text).split('*').map(str::to_owned).collect()),
        };
        Ok(Self {
            parts: text.split(PATH_SEPARATORS).map(part).collect(),
        })
    }

    /// Whether the pattern matches a file, or a folder or archive above it.
    pub(crate) fn covers(&self, source: &str) -> bool {
        let source = fold_path(source);
        // The active states of the automaton: the pattern positions reached so far.
        let mut at = vec![false; self.parts.len() + 1];
        if let Some(first) = at.first_mut() {
            *first = true;
        }
        self.skip_any(&mut at);
        for part in source.split(PATH_SEPARATORS) {
            let mut next = vec![false; at.len()];
            for (place, own) in self.parts.iter().enumerate() {
                let is_here = at.get(place).is_some_and(|here| *here);
                let (stays, goes) = match own {
                    GlobSegment::Any => (is_here, is_here),
                    GlobSegment::Like(pieces) => {
                        (false, is_here && matches_wildcards(part, pieces))
                    }
                };
                for (to, is_reached) in [(place, stays), (place + 1, goes)] {
                    if let Some(to) = next.get_mut(to) {
                        *to |= is_reached;
                    }
                }
            }
            self.skip_any(&mut next);
            at = next;
            if at.last().is_some_and(|end| *end) {
                return true;
            }
        }
        false
    }

    /// Adds the empty transitions: `**` also matches no segment at all.
    fn skip_any(&self, at: &mut [bool]) {
        for (place, part) in self.parts.iter().enumerate() {
            let is_here = at.get(place).is_some_and(|here| *here);
            if let Some(next) = at
                .get_mut(place + 1)
                .filter(|_| is_here && *part == GlobSegment::Any)
            {
                *next = true;
            }
        }
    }
}

/// Whether a segment consists of the literal pieces in order, with any text between them.
fn matches_wildcards(text: &str, pieces: &[String]) -> bool {
    let Some((first, rest)) = pieces.split_first() else {
        return false;
    };
    let Some(text) = text.strip_prefix(first.as_str()) else {
        return false;
    };
    let Some((last, middle)) = rest.split_last() else {
        return text.is_empty();
    };
    let mut left = text;
    for piece in middle {
        match left.find(piece.as_str()) {
            Some(at) => left = left.get(at + piece.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    left.ends_with(last.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_cover_what_they_say_and_all_below() {
        for (pattern, covered, others) in [
            (
                "hr",
                &["hr", "hr/a.md", "HR/x/y", "hr#1"][..],
                &["hrx/a", "a/hr/b", ""][..],
            ),
            ("hr/**", &["hr/a.md", "hr/x/y.md"], &["hrx/a", "b"]),
            ("./hr/", &["hr/a"], &["a"]),
            (
                "**/secret",
                &["secret/a", "a/secret/b", "a/b/secret"],
                &["secrets", "a/b"],
            ),
            ("a/*/c", &["a/b/c", "a/b/c/d"], &["a/c", "a/b/b/c"]),
            (
                "*.zip",
                &["a.zip", "a.ZIP#in/x.md", "a.zip/x"],
                &["b/a.zip", "a.zipx"],
            ),
            ("a*b*c", &["abc", "a1b2c", "abbcc"], &["ab", "acb", "abcd"]),
            ("**", &["a", "a/b"], &[]),
            (
                "a/**/d/*.md",
                &["a/d/x.md", "a/b/c/d/x.md"],
                &["a/x.md", "a/d/x.txt"],
            ),
            ("mu\u{308}ll", &["müll/a", "MÜLL/b"], &["mull/a"]),
            ("*", &["a", "b/c"], &[]),
        ] {
            let glob = PathGlob::parse(pattern).unwrap();
            for path in covered {
                assert!(glob.covers(path), "{pattern} covers {path}");
            }
            for path in others {
                assert!(!glob.covers(path), "{pattern} does not cover {path}");
            }
        }
    }

    #[test]
    fn paths_outside_of_the_folder_are_rejected() {
        for bad in ["", "/", "/hr", "../hr", "a/../b", "a//b", ".", "a/./b"] {
            assert!(PathGlob::parse(bad).is_err(), "{bad}");
        }
        assert!(PathGlob::parse(&"x".repeat(MAX_CHARS)).is_ok());
        assert!(PathGlob::parse(&"x".repeat(MAX_CHARS + 1)).is_err());
    }

    #[test]
    fn a_pattern_of_stars_ends_soon() {
        let glob = PathGlob::parse(&"**/*a*b/".repeat(80)).unwrap();
        assert!(!glob.covers(&"ab/".repeat(60)));
        assert!(!glob.covers(&"x/".repeat(2_000)));
    }
}
