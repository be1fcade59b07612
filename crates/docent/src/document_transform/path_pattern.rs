//! Path patterns such as `{year}/{month}/*`, which extract the value of a field from the path of a file.
//!
//! The pieces before and after the placeholder are matched as a nondeterministic automaton over the positions of the
//! path. The time is bounded by pattern length times path length, without exponential backtracking.

use docent_search::{DocumentValue, FieldKind};

use super::value_cast::cast;

/// The length limit of a pattern, in pieces.
pub(crate) const MAX_PIECES: usize = 32;

/// The most bytes of a value that must parse as a number, date or boolean; no valid one is longer.
const MAX_TYPED_BYTES: usize = 48;

/// A parsed pattern, anchored at both ends of the path: the pieces before the placeholder and those after it.
///
/// Its `Debug` output is part of the document hash, so renaming a field or variant reindexes every document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    before: Vec<PatternPiece>,
    after: Vec<PatternPiece>,
}

/// One element of a pattern beside the placeholder.
#[derive(Clone, Debug, PartialEq, Eq)]
enum PatternPiece {
    /// Literal text that must match exactly.
    Words(String),
    /// `*`: any number of characters except slashes.
    Any,
    /// `{other}`: at least one character, without slashes.
    Some,
    /// `**`, or a trailing slash: any text, including slashes and none.
    Deep,
    /// `**/`: any number of folders.
    Folders,
}

impl Pattern {
    /// Parses the pattern of the field `name`. The error says how to correct it.
    pub(crate) fn parse(text: &str, name: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut placeholder = None;
        let mut rest = text.strip_prefix("./").unwrap_or(text);
        while !rest.is_empty() {
            if pieces.len() >= MAX_PIECES {
                return Err(format!("write at most {MAX_PIECES} pieces"));
            }
            let (token, remainder) = next(rest)?;
            rest = remainder;
            match token {
                PatternToken::Named(found) if found == name => {
                    if placeholder.replace(pieces.len()).is_some() {
                        return Err(format!("write `{{{name}}}` once"));
                    }
                }
                PatternToken::Named(_) => pieces.push(PatternPiece::Some),
                PatternToken::Piece(piece) => pieces.push(piece),
            }
        }
        // A trailing slash names a folder and matches everything below it.
        if text.ends_with('/') {
            pieces.push(PatternPiece::Deep);
        }
        let missing = || format!("write `{{{name}}}` where the value stands, as in `{{{name}}}/*`");
        let after = pieces.split_off(placeholder.ok_or_else(missing)?);
        Ok(Self {
            before: pieces,
            after,
        })
    }

    /// The part of a path at the placeholder, cast to this kind. A part that cannot be cast does not match: with
    /// numbers, `{year}/` says nothing about a folder `drafts/`.
    pub(crate) fn value(&self, path: &str, kind: FieldKind) -> Option<DocumentValue> {
        let starts = self.before.iter().fold(at(path, 0), |from, piece| {
            piece.ends(path.as_bytes(), &from)
        });
        let ends = self
            .after
            .iter()
            .rev()
            .fold(at(path, path.len()), |to, piece| {
                piece.starts(path.as_bytes(), &to)
            });
        let is_typed = matches!(kind, FieldKind::Number | FieldKind::Date | FieldKind::Bool);
        for start in marked(&starts) {
            let part = path.get(start..).unwrap_or_default();
            let most = part.find('/').unwrap_or(part.len());
            let most = if is_typed {
                most.min(MAX_TYPED_BYTES)
            } else {
                most
            };
            let mut lengths = (1..=most).filter(|length| ends.get(start + length) == Some(&true));
            let value =
                |length: usize| cast(kind, &DocumentValue::Text(part.get(..length)?.to_owned()));
            // Typed values match greedily, to take the whole number; text matches lazily.
            let found = if is_typed {
                lengths.rev().find_map(value)
            } else {
                lengths.find_map(value)
            };
            if found.is_some() {
                return found;
            }
        }
        None
    }
}

enum PatternToken<'t> {
    Named(&'t str),
    Piece(PatternPiece),
}

/// Splits off the first token of a pattern.
fn next(text: &str) -> Result<(PatternToken<'_>, &str), String> {
    if let Some(rest) = text.strip_prefix('{') {
        let Some((name, rest)) = rest.split_once('}') else {
            return Err("close each `{` with a `}`".to_owned());
        };
        return Ok((PatternToken::Named(name), rest));
    }
    for (sign, piece) in [
        ("**/", PatternPiece::Folders),
        ("**", PatternPiece::Deep),
        ("*", PatternPiece::Any),
    ] {
        if let Some(rest) = text.strip_prefix(sign) {
            return Ok((PatternToken::Piece(piece), rest));
        }
    }
    let end = text.find(['{', '*']).unwrap_or(text.len());
    let (words, rest) = text.split_at_checked(end).unwrap_or((text, ""));
    if words.contains('}') {
        return Err("open each `}` with a `{`".to_owned());
    }
    Ok((
        PatternToken::Piece(PatternPiece::Words(words.to_owned())),
        rest,
    ))
}

/// The position set with one active position.
fn at(path: &str, position: usize) -> Vec<bool> {
    (0..=path.len()).map(|one| one == position).collect()
}

fn marked(positions: &[bool]) -> impl Iterator<Item = usize> {
    (0..)
        .zip(positions)
        .filter(|(_, is)| **is)
        .map(|(at, _)| at)
}

impl PatternPiece {
    /// The positions where this piece can end when it begins at one of these.
    fn ends(&self, path: &[u8], from: &[bool]) -> Vec<bool> {
        if let Self::Words(words) = self {
            let fits = |end: usize| {
                let start = end.checked_sub(words.len())?;
                let is = from.get(start) == Some(&true);
                Some(is && path.get(start..end) == Some(words.as_bytes()))
            };
            return (0..from.len())
                .map(|end| fits(end).unwrap_or(false))
                .collect();
        }
        // Whether a piece that began earlier extends to this position.
        let mut reaches = false;
        let mut ends = Vec::with_capacity(from.len());
        for (end, begins) in from.iter().enumerate() {
            let last = end.checked_sub(1).and_then(|last| path.get(last));
            let is_slash = last == Some(&b'/');
            reaches &= matches!(self, Self::Deep | Self::Folders) || !is_slash;
            ends.push(match self {
                Self::Some => reaches,
                Self::Folders => *begins || (reaches && is_slash),
                _ => *begins || reaches,
            });
            reaches |= begins;
        }
        ends
    }

    /// The positions where this piece can begin when it ends at one of these.
    fn starts(&self, path: &[u8], to: &[bool]) -> Vec<bool> {
        if let Self::Words(words) = self {
            let fits = |start: usize| {
                let end = start + words.len();
                to.get(end) == Some(&true) && path.get(start..end) == Some(words.as_bytes())
            };
            return (0..to.len()).map(fits).collect();
        }
        let mut reaches = false;
        let mut starts = Vec::with_capacity(to.len());
        for (start, ends) in to.iter().enumerate().rev() {
            let is_slash = path.get(start) == Some(&b'/');
            reaches &= matches!(self, Self::Deep | Self::Folders) || !is_slash;
            starts.push(match self {
                Self::Some => reaches,
                _ => *ends || reaches,
            });
            // A folder always ends right after a slash.
            let behind_slash = start.checked_sub(1).and_then(|last| path.get(last)) == Some(&b'/');
            reaches |= *ends && (!matches!(self, Self::Folders) || behind_slash);
        }
        starts.reverse();
        starts
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(pattern: &str, kind: FieldKind, path: &str, expect: Option<&str>) {
        let found = Pattern::parse(pattern, "x").unwrap().value(path, kind);
        let found = found.map(|value| value.to_string());
        assert_eq!(found.as_deref(), expect, "{pattern} {path}");
    }

    #[test]
    fn parts_of_paths_become_values() {
        for (pattern, path, expect) in [
            ("{x}/", "2024/a.md", Some("2024")),
            ("{x}/", "2024/03/a.md", Some("2024")),
            ("{x}/", "a.md", None),
            ("{x}/*", "2024/a.md", Some("2024")),
            ("{x}/*", "2024/03/a.md", None),
            ("{x}/**", "2024/03/a.md", Some("2024")),
            ("minutes/{x}.md", "minutes/ilke.md", Some("ilke")),
            ("minutes/{x}.md", "letters/ilke.md", None),
            ("{year}/{x}/*", "2024/03/a.md", Some("03")),
            ("**/{x}-*.md", "ilke-on-rail.md", Some("ilke")),
            ("**/{x}-*.md", "a/b/ilke-on-rail.md", Some("ilke")),
            ("**{x}.md", "a/é.md", Some("é")),
            ("*é{x}", "éab", Some("ab")),
            ("{x}", "a/b", None),
            ("{x}", "日本", Some("日本")),
            ("./{x}/", "a/b", Some("a")),
        ] {
            check(pattern, FieldKind::Text, path, expect);
        }
    }

    #[test]
    fn a_pattern_does_not_match_a_value_of_another_type() {
        for (pattern, kind, path, expect) in [
            ("{x}/", FieldKind::Number, "2024/a.md", Some("2024")),
            ("{x}/", FieldKind::Number, "drafts/a.md", None),
            ("**/{x}*", FieldKind::Number, "a/2024-03.md", Some("2024")),
            (
                "{x}-*",
                FieldKind::Date,
                "2024-03-12-rail.md",
                Some("2024-03-12"),
            ),
            ("{x}*", FieldKind::Date, "2024-03-12.md", Some("2024-03-12")),
            ("{x}*", FieldKind::Date, "2024-13-12.md", None),
        ] {
            check(pattern, kind, path, expect);
        }
    }

    #[test]
    fn patterns_name_their_field_once() {
        for bad in ["", "a/*", "{y}/*", "{x}/{x}", "{x", "x}{x}", "a}/{x}"] {
            assert!(Pattern::parse(bad, "x").is_err(), "{bad}");
        }
        let long = |pieces: usize| format!("{}{{x}}", "a*".repeat(pieces / 2));
        assert!(Pattern::parse(&long(MAX_PIECES - 2), "x").is_ok());
        assert!(Pattern::parse(&long(MAX_PIECES + 2), "x").is_err());
    }

    /// A reference matcher by exhaustive backtracking.
    fn fits(pieces: &[PatternPiece], path: &str) -> bool {
        let Some((first, rest)) = pieces.split_first() else {
            return path.is_empty();
        };
        let mut cuts = (0..=path.len()).filter(|at| path.is_char_boundary(*at));
        cuts.any(|at| {
            let (head, tail) = path.split_at(at);
            let is = match first {
                PatternPiece::Words(words) => head == words,
                PatternPiece::Any => !head.contains('/'),
                PatternPiece::Some => !head.is_empty() && !head.contains('/'),
                PatternPiece::Deep => true,
                PatternPiece::Folders => head.is_empty() || head.ends_with('/'),
            };
            is && fits(rest, tail)
        })
    }

    proptest! {
        #[test]
        fn positions_equal_those_of_exhaustive_matching(
            pattern in "([ab/]|\\*|\\*\\*|\\*\\*/|\\{y\\}){0,4}\\{x\\}([ab/]|\\*|\\*\\*|\\*\\*/|\\{y\\}){0,4}",
            path in "[ab/]{1,8}",
        ) {
            let pattern = Pattern::parse(&pattern, "x").unwrap();
            let mut whole = pattern.before.clone();
            whole.push(PatternPiece::Some);
            whole.extend(pattern.after.clone());
            prop_assert_eq!(pattern.value(&path, FieldKind::Text).is_some(), fits(&whole, &path));
        }
    }
}
