//! Documents into what widgets and pages show of them: texts with their matches marked, fields as lines,
//! headings as an outline. widgets/src/payload.ts reads the same shapes.

use std::ops::Range;

use docent_search::{Day, Document, Marker, Passage};
use serde::Serialize;

use super::fetch::Start;
use crate::knowledge::one_line;

/// The most bytes of what the model reads of an answer that a widget shows; hosts ask for ten kilobytes.
pub(crate) const MAX_STRUCTURED_BYTES: usize = 10_000;

/// How many passages of a document are searched for its matches, which bounds what a book costs.
const MAX_SEARCHED: usize = 1_000;

/// The most entries of an outline, and the characters of each.
const MAX_OUTLINE: usize = 200;
const MAX_HEADING_CHARS: usize = 120;

/// Characters of the name of a field.
const MAX_NAME_CHARS: usize = 64;

/// A text with the stretches of it that match.
#[derive(Debug, Serialize)]
pub(crate) struct Marked {
    text: String,
    /// In UTF-16 units, as JavaScript counts.
    marks: Vec<[usize; 2]>,
}

impl Marked {
    pub(crate) fn new(text: String, marker: &Marker) -> Self {
        let ranges = marker.marks(&text);
        let marks = utf16(&text, &ranges);
        Self { text, marks }
    }
}

/// Stretches of bytes as stretches of UTF-16 units, in one pass.
fn utf16(text: &str, ranges: &[Range<usize>]) -> Vec<[usize; 2]> {
    let (mut bytes, mut units) = (0, 0);
    let mut reach = |to: usize| {
        units += text
            .get(bytes..to)
            .map_or(0, |between| between.encode_utf16().count());
        bytes = to;
        units
    };
    let pairs = ranges
        .iter()
        .map(|range| [reach(range.start), reach(range.end)]);
    pairs.collect()
}

/// A field as a line.
#[derive(Debug, Serialize)]
pub(crate) struct FieldValue {
    pub(crate) name: String,
    pub(crate) value: String,
}

/// The fields of a document, `most` of them with so many characters each.
pub(crate) fn fields(document: &Document, most: usize, chars: usize) -> Vec<FieldValue> {
    let lines = document.fields.iter().map(|(name, value)| FieldValue {
        name: one_line(name, MAX_NAME_CHARS),
        value: one_line(&value.to_string(), chars),
    });
    let full = |line: &FieldValue| !line.name.is_empty() && !line.value.is_empty();
    lines.filter(full).take(most).collect()
}

/// The day of a document, or an empty text.
pub(crate) fn day(document: &Document) -> String {
    let day = document.date.as_deref().and_then(Day::parse);
    day.map(|day| day.to_string()).unwrap_or_default()
}

/// What a document is called, on one line.
pub(crate) fn title(document: &Document) -> String {
    let title = one_line(&document.name(), 300);
    if title.is_empty() {
        return document.id.as_str().to_owned();
    }
    title
}

/// The passages that hold a match, and the one that holds most of the words.
pub(crate) fn hits(document: &Document, all: &[Passage], marker: &Marker) -> (Vec<usize>, usize) {
    let mut hits = Vec::new();
    let (mut best, mut most) = (0, (0, 0));
    for passage in all.iter().take(MAX_SEARCHED) {
        let text = document.text.get(passage.range.clone());
        let worth = marker.worth(text.unwrap_or_default());
        if worth.1 > 0 {
            hits.push(passage.index);
        }
        if worth > most {
            (best, most) = (passage.index, worth);
        }
    }
    (hits, best)
}

/// The passage at a place, the last one for a place behind the end.
pub(super) fn passage_at(all: &[Passage], start: Start) -> usize {
    let index = match start {
        Start::Passage(index) => index,
        Start::Byte(at) => all.partition_point(|passage| passage.range.end <= at),
    };
    index.min(all.len().saturating_sub(1))
}

/// One heading.
#[derive(Debug, Serialize, PartialEq, Eq)]
pub(crate) struct Heading {
    pub(crate) level: usize,
    pub(crate) title: String,
    /// The passage it stands in.
    pub(crate) passage: usize,
}

/// The headings of a text, with the passages in which they stand.
pub(crate) fn outline(text: &str, all: &[Passage]) -> Vec<Heading> {
    let mut headings = Vec::new();
    let (mut at, mut fenced) = (0, false);
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        fenced ^= is_fence(line);
        let Some((level, words)) = heading(line).filter(|_| !fenced) else {
            continue;
        };
        headings.push(Heading {
            level,
            title: one_line(words, MAX_HEADING_CHARS),
            passage: passage_at(all, Start::Byte(start)),
        });
        if headings.len() == MAX_OUTLINE {
            break;
        }
    }
    headings
}

/// Whether a line begins or ends code.
pub(crate) fn is_fence(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("```") || line.starts_with("~~~")
}

/// The level and the words of a Markdown heading.
pub(crate) fn heading(line: &str) -> Option<(usize, &str)> {
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    let rest = line.get(level..)?;
    let words = rest.trim().trim_end_matches('#').trim_end();
    let is = (1..=6).contains(&level) && rest.starts_with([' ', '\t']) && !words.is_empty();
    is.then_some((level, words))
}

#[cfg(test)]
mod tests {
    use docent_search::{DocId, passages};

    use super::*;

    fn document(text: &str) -> Document {
        Document {
            id: DocId::parse("a").unwrap(),
            title: String::new(),
            text: text.to_owned(),
            url: None,
            date: None,
            fields: Vec::new(),
            source: String::new(),
            hash: String::new(),
        }
    }

    #[test]
    fn marks_count_as_javascript_does() {
        let text = "𝔘 ferry 😀 ferry";
        let marker = Marker::new(&document(text), "ferry");
        let marked = Marked::new(text.to_owned(), &marker);
        assert_eq!(marked.marks, [[3, 8], [12, 17]]);
    }

    #[test]
    fn the_outline_leads_to_passages() {
        let filler = "Words that fill the line and mean little. ".repeat(12);
        let text = format!("# One\n\n{filler}\n\n```\n# no heading\n```\n\n## Two ##\n\n{filler}");
        let document = document(&text);
        let all = passages(&document);
        let found = outline(&text, &all);
        let titles: Vec<_> = found
            .iter()
            .map(|one| (one.level, one.title.as_str()))
            .collect();
        assert_eq!(titles, [(1, "One"), (2, "Two")]);
        assert_eq!(found[0].passage, 0);
        assert!(found[1].passage > 0);
        let many = |count: usize| outline(&"# a\n".repeat(count), &[]).len();
        assert_eq!(
            (many(MAX_OUTLINE), many(MAX_OUTLINE + 1)),
            (MAX_OUTLINE, MAX_OUTLINE)
        );
    }

    #[test]
    fn the_best_passage_holds_most_of_the_words() {
        let filler = "Nothing of note was said in the house on that day. ".repeat(30);
        let text = format!("{filler}A ferry.\n\n# B\n\n{filler}A ferry in winter.");
        let document = document(&text);
        let all = passages(&document);
        let marker = Marker::new(&document, "winter ferry");
        let (hits, best) = hits(&document, &all, &marker);
        assert_eq!(hits.len(), 2);
        assert_eq!(Some(&best), hits.last());
        assert_eq!(passage_at(&all, Start::Passage(999)), all.len() - 1);
        assert_eq!(passage_at(&[], Start::Byte(3)), 0);
    }
}
