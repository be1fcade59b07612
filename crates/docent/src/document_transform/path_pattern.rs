//! A pattern such as `{year}/{month}/*` and a path into the part of the path that a field is called after.
//!
//! Every position that the pieces before and after the wanted one can reach is found first, piece by
//! piece, so that the work is bounded by the lengths of both and no pattern can make it explode.

use docent_search::{DocumentValue, FieldKind};

use super::value_cast::cast;

/// The most pieces of a pattern.
pub(crate) const MAX_PIECES: usize = 32;

/// The most bytes of a part that has to be a number, a day or the like; none of these is longer.
const MAX_TYPED_BYTES: usize = 48;

/// A pattern that a whole path has to fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    before: Vec<PatternPiece>,
    after: Vec<PatternPiece>,
}

/// One piece of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
enum PatternPiece {
    /// These characters.
    Words(String),
    /// `*`: any characters but a slash, or none.
    Any,
    /// `{other}`: at least one character, none a slash.
    Some,
    /// `**`, or a slash at the end: anything, or nothing.
    Deep,
    /// `**/`: any folders, or none.
    Folders,
}

impl Pattern {
    /// Reads the pattern of the field `name`, or says what is wrong with it.
    pub(crate) fn parse(text: &str, name: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut taken = None;
        let mut rest = text.strip_prefix("./").unwrap_or(text);
        while !rest.is_empty() {
            if pieces.len() >= MAX_PIECES {
                return Err(format!("write at most {MAX_PIECES} pieces"));
            }
            let (piece, behind) = next(rest)?;
            rest = behind;
            match piece {
                PatternToken::Named(found) if found == name => {
                    if taken.replace(pieces.len()).is_some() {
                        return Err(format!("write `{{{name}}}` once"));
                    }
                }
                PatternToken::Named(_) => pieces.push(PatternPiece::Some),
                PatternToken::Piece(piece) => pieces.push(piece),
            }
        }
        // What ends in a slash is a folder, and means everything below it.
        if text.ends_with('/') {
            pieces.push(PatternPiece::Deep);
        }
        let missing = || format!("write `{{{name}}}` where the value stands, as in `{{{name}}}/*`");
        let after = pieces.split_off(taken.ok_or_else(missing)?);
        Ok(Self {
            before: pieces,
            after,
        })
    }

    /// The part of a path that stands in the field's place, as a value of this kind. A part that is of
    /// another kind does not fit the pattern: `{year}/` with numbers is no word about a folder `drafts/`.
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
            // The longest number is the whole number; of words the first are meant.
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

/// The first piece of a pattern, and what follows it.
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

/// One position of a path.
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
    /// Where this piece can end that begins at one of these positions.
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
        // Whether a piece that has begun reaches this far, seen before and after the character here.
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

    /// Where this piece can begin that ends at one of these positions.
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
            // Folders end behind a slash and nowhere else.
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
    fn what_is_of_another_kind_does_not_fit() {
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

    /// The same by trying everything.
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
        fn positions_are_those_that_trying_everything_finds(
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
