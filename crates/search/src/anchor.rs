//! A place in a text into what an address can end in to lead there: the page, or the heading above it.

use std::collections::HashMap;
use std::ops::Range;

use crate::passage::blocks;

/// The most headings of one text that are told apart; the thickest manual has fewer.
pub const MAX_ANCHORS: usize = 10_000;

/// The most characters of a heading that an anchor is made of.
const MAX_SLUG_CHARS: usize = 100;

/// What stands between two pages.
const PAGE_BREAK: char = '\u{c}';

/// The anchor of a byte of a text: `page=3` where the text has pages, else the last heading at or before it
/// in the form that most programs give it, such as `fares-for-children`. Of headings with the same words
/// the second ends in `-1`, and so on.
pub fn anchor(text: &str, at: usize) -> Option<String> {
    if text.contains(PAGE_BREAK) {
        let before = text.get(..text.floor_char_boundary(at)).unwrap_or_default();
        return Some(page(before.matches(PAGE_BREAK).count()));
    }
    headings(text)
        .take_while(|(start, _)| *start <= at)
        .last()
        .map(|(_, slug)| slug)
}

/// The anchors of a part of a text, in their order: the one in force where it begins, and those that follow.
pub fn anchors(text: &str, part: &Range<usize>) -> Vec<String> {
    let first = anchor(text, part.start).into_iter();
    let inside = |start: usize| start > part.start && start < part.end;
    if text.contains(PAGE_BREAK) {
        let breaks = text.match_indices(PAGE_BREAK).enumerate();
        let pages = breaks
            .filter(|(_, (at, _))| inside(at + 1))
            .map(|(n, _)| page(n + 1));
        return first.chain(pages).take(MAX_ANCHORS).collect();
    }
    let rest = headings(text).filter(|(start, _)| inside(*start));
    first
        .chain(rest.map(|(_, slug)| slug))
        .take(MAX_ANCHORS)
        .collect()
}

fn page(breaks: usize) -> String {
    format!("page={}", breaks + 1)
}

/// Where each heading begins, and its anchor.
fn headings(text: &str) -> impl Iterator<Item = (usize, String)> {
    let mut known: HashMap<String, usize> = HashMap::new();
    let headings = blocks(text).filter_map(|block| Some((block.range.start, block.heading?.1)));
    headings.take(MAX_ANCHORS).map(move |(start, words)| {
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

/// Words in lower case, with hyphens between them and nothing else.
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

    #[test]
    fn places_lead_to_the_heading_above_them() {
        let text = "Before.\n\n# Fares & Piers\n\nWords.\n\n```\n# no heading\n```\n\n## Für Kinder\n\nMore.\n\n## Für Kinder\n\nLast.";
        for (words, expect) in [
            ("Before", None),
            ("# Fares", Some("fares--piers")),
            ("no heading", Some("fares--piers")),
            ("More", Some("für-kinder")),
            ("Last", Some("für-kinder-1")),
        ] {
            let at = text.find(words).unwrap();
            assert_eq!(anchor(text, at).as_deref(), expect, "{words}");
        }
        let all = ["fares--piers", "für-kinder", "für-kinder-1"];
        assert_eq!(anchors(text, &(0..text.len())), all);
        let more = text.find("More").unwrap();
        assert_eq!(anchors(text, &(more..text.len())), all[1..]);
        assert_eq!(anchors("", &(0..0)), [""; 0]);
    }

    #[test]
    fn pages_come_before_headings() {
        let text = "# One\n\u{c}\n\u{c}\n# Three\n";
        assert_eq!(anchor(text, 0).as_deref(), Some("page=1"));
        assert_eq!(anchor(text, text.len()).as_deref(), Some("page=3"));
        assert_eq!(
            anchors(text, &(0..text.len())),
            ["page=1", "page=2", "page=3"]
        );
        let third = text.find("# Three").unwrap();
        assert_eq!(anchors(text, &(third..text.len())), ["page=3"]);
    }

    #[test]
    fn anchors_end_at_their_bounds() {
        let many = |count: usize| anchors(&"# a\n".repeat(count), &(0..usize::MAX)).len();
        assert_eq!(
            (many(MAX_ANCHORS), many(MAX_ANCHORS + 1)),
            (MAX_ANCHORS, MAX_ANCHORS)
        );
        let pages = |count: usize| anchors(&"a\u{c}".repeat(count), &(0..usize::MAX)).len();
        assert_eq!(
            (pages(MAX_ANCHORS - 1), pages(MAX_ANCHORS)),
            (MAX_ANCHORS, MAX_ANCHORS)
        );
        assert_eq!(
            slug(&"É".repeat(MAX_SLUG_CHARS + 1)),
            "é".repeat(MAX_SLUG_CHARS)
        );
        assert_eq!(slug("…"), "section");
    }
}
