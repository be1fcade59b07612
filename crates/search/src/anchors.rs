//! Anchors for citations: the URL fragment that leads to a position in a text, by page or by heading.

use std::collections::HashMap;
use std::ops::Range;

use crate::passage::blocks;

/// The most anchors of one text; the thickest manual has fewer headings.
pub const MAX_ANCHORS: usize = 10_000;

/// The longest slug made of a heading, in characters.
const MAX_SLUG_CHARS: usize = 100;

/// The form feed that extraction puts between two pages.
const PAGE_BREAK: char = '\u{c}';

/// The anchors of a text, found in one pass: `page=3` where the text has pages, otherwise a slug of each heading as
/// most Markdown renderers build it, such as `fares-for-children`. The second heading with the same words gets the
/// suffix `-1`, and so on. `found` pairs the byte offset with the anchor, and `end` is the byte up to which they
/// are known.
#[derive(Debug, Default)]
pub struct TextAnchors {
    found: Vec<(usize, String)>,
    end: usize,
}

impl TextAnchors {
    /// Finds the anchors up to a byte of the text, at most [`MAX_ANCHORS`].
    #[must_use]
    pub fn until(text: &str, end: usize) -> Self {
        let mut all: Box<dyn Iterator<Item = (usize, String)>> = if text.contains(PAGE_BREAK) {
            let breaks = text.match_indices(PAGE_BREAK).enumerate();
            let later = breaks.map(|(n, (at, _))| (at + 1, page(n + 1)));
            Box::new(std::iter::once((0, page(0))).chain(later))
        } else {
            Box::new(headings(text))
        };
        let mut anchors = Self::default();
        for (start, anchor) in all.by_ref() {
            if start > end || anchors.found.len() == MAX_ANCHORS {
                anchors.end = start;
                return anchors;
            }
            anchors.found.push((start, anchor));
        }
        anchors.end = usize::MAX;
        anchors
    }

    /// The anchor of a byte position: the last one at or before it. `None` beyond the last known anchor, where the
    /// true one may be another.
    #[must_use]
    pub fn at(&self, at: usize) -> Option<&str> {
        let after = self.found.partition_point(|(start, _)| *start <= at);
        let last = after.checked_sub(1).filter(|_| at < self.end)?;
        self.found.get(last).map(|(_, anchor)| anchor.as_str())
    }

    /// The anchors of a range, in order: the one in effect at its beginning, and those inside.
    #[must_use]
    pub fn within(&self, part: &Range<usize>) -> Vec<&str> {
        let inside = |start: usize| start > part.start && start < part.end;
        let rest = self.found.iter().filter(|(start, _)| inside(*start));
        let first = self.at(part.start).into_iter();
        first
            .chain(rest.map(|(_, anchor)| anchor.as_str()))
            .collect()
    }
}

fn page(breaks: usize) -> String {
    format!("page={}", breaks + 1)
}

/// The byte offset and the anchor of each heading.
fn headings(text: &str) -> impl Iterator<Item = (usize, String)> {
    let mut known: HashMap<String, usize> = HashMap::new();
    let headings = blocks(text).filter_map(|block| Some((block.range.start, block.heading?.1)));
    headings.map(move |(start, words)| {
        let slug = slug(text.get(words).unwrap_or_default());
        let before = known.entry(slug.clone()).or_default();
        let same = *before;
        *before += 1;
        if same == 0 {
            (start, slug)
        } else {
            (start, format!("{slug}-{same}"))
        }
    })
}

/// The slug of a heading: lower case, hyphens for spaces, no punctuation.
fn slug(words: &str) -> String {
    let mut slug = String::new();
    for c in words.trim().chars().take(MAX_SLUG_CHARS) {
        match c {
            c if c.is_alphanumeric() || matches!(c, '_' | '-') => slug.extend(c.to_lowercase()),
            c if c.is_whitespace() => slug.push('-'),
            _ => {}
        }
    }
    if slug.is_empty() {
        "section".to_owned()
    } else {
        slug
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> TextAnchors {
        TextAnchors::until(text, text.len())
    }

    #[test]
    fn positions_map_to_the_heading_above_them() {
        let text = "Before.\n\n# Fares & Piers\n\nWords.\n\n```\n# no heading\n```\n\n## Für Kinder\n\nMore.\n\n## Für Kinder\n\nLast.";
        for (words, expect) in [
            ("Before", None),
            ("# Fares", Some("fares--piers")),
            ("no heading", Some("fares--piers")),
            ("More", Some("für-kinder")),
            ("Last", Some("für-kinder-1")),
        ] {
            let at = text.find(words).unwrap();
            assert_eq!(TextAnchors::until(text, at).at(at), expect, "{words}");
            assert_eq!(all(text).at(at), expect, "{words}");
        }
        let known = ["fares--piers", "für-kinder", "für-kinder-1"];
        assert_eq!(all(text).within(&(0..text.len())), known);
        let more = text.find("More").unwrap();
        assert_eq!(all(text).within(&(more..text.len())), known[1..]);
        assert_eq!(all("").within(&(0..0)), [""; 0]);
    }

    #[test]
    fn pages_come_before_headings() {
        let text = "# One\n\u{c}\n\u{c}\n# Three\n";
        let anchors = all(text);
        assert_eq!(anchors.at(0), Some("page=1"));
        assert_eq!(anchors.at(text.len()), Some("page=3"));
        let pages = ["page=1", "page=2", "page=3"];
        assert_eq!(anchors.within(&(0..text.len())), pages);
        let third = text.find("# Three").unwrap();
        assert_eq!(anchors.within(&(third..text.len())), ["page=3"]);
    }

    #[test]
    fn anchors_end_at_their_bounds() {
        for piece in ["# a\n", "a\u{c}"] {
            // There is one more page than there are breaks.
            let breaks = usize::from(piece.ends_with('\u{c}'));
            let many = |more: usize| piece.repeat(MAX_ANCHORS - breaks + more);
            let (full, over) = (many(0), many(1));
            let (full, over) = ((all(&full), full.len()), (all(&over), over.len()));
            assert_eq!(full.0.within(&(0..usize::MAX)).len(), MAX_ANCHORS);
            assert!(full.0.at(full.1).is_some());
            assert_eq!(over.0.within(&(0..usize::MAX)).len(), MAX_ANCHORS);
            assert_eq!(over.0.at(over.1), None);
        }
        assert_eq!(
            slug(&"É".repeat(MAX_SLUG_CHARS + 1)),
            "é".repeat(MAX_SLUG_CHARS)
        );
        assert_eq!(slug("…"), "section");
    }
}
