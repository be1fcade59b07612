//! Documents into what widgets and pages show of them: fields as lines,
//! headings as an outline. widgets/src/payload.ts reads the same shapes.

use docent_search::{Day, Document, MatchHighlighter, Passage, heading, is_fence};
use serde::Serialize;

use super::fetch::DocumentPosition;
use crate::knowledge_base::one_line;
use crate::layout::{self, TextSpan};

/// The most bytes of what the model reads of an answer that a widget shows; hosts ask for ten kilobytes.
pub(crate) const MAX_STRUCTURED_BYTES: usize = 10_000;

/// How many passages of a document are searched for its matches, which bounds what a book costs.
const MAX_SEARCHED: usize = 1_000;

/// The most entries of an outline, and the characters of each.
const MAX_OUTLINE: usize = 200;
const MAX_HEADING_CHARS: usize = 120;

/// Characters of the name of a field.
const MAX_NAME_CHARS: usize = 64;

/// The passage of a card: one line, as it is laid out, with what matches.
pub(crate) fn excerpt(text: &str, marker: &MatchHighlighter) -> Vec<TextSpan> {
    // A passage often begins with its heading, whose mark says nothing on a line with the words.
    let words = text.trim_start_matches('#');
    let skip = if words.starts_with(' ') {
        text.len() - words.trim_start().len()
    } else {
        0
    };
    layout::spans(text, skip..text.len(), &marker.highlights(text))
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
pub(crate) fn matching_passages(
    document: &Document,
    all: &[Passage],
    marker: &MatchHighlighter,
) -> (Vec<usize>, usize) {
    let mut hits = Vec::new();
    let (mut best, mut most) = (0, (0, 0));
    for passage in all.iter().take(MAX_SEARCHED) {
        let text = document.text.get(passage.range.clone());
        let worth = marker.match_counts(text.unwrap_or_default());
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
pub(super) fn passage_at(all: &[Passage], start: DocumentPosition) -> usize {
    let index = match start {
        DocumentPosition::Passage(index) => index,
        DocumentPosition::Byte(at) => all.partition_point(|passage| passage.range.end <= at),
    };
    index.min(all.len().saturating_sub(1))
}

/// One heading.
#[derive(Debug, Serialize, PartialEq, Eq)]
pub(crate) struct OutlineHeading {
    pub(crate) level: usize,
    pub(crate) title: String,
    /// The passage it stands in.
    pub(crate) passage: usize,
}

/// The headings of a text, with the passages in which they stand.
pub(crate) fn outline(text: &str, all: &[Passage]) -> Vec<OutlineHeading> {
    let mut headings = Vec::new();
    let (mut at, mut fenced) = (0, false);
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        fenced ^= is_fence(line);
        let Some((level, words)) = heading(line).filter(|_| !fenced) else {
            continue;
        };
        headings.push(OutlineHeading {
            level,
            title: one_line(words, MAX_HEADING_CHARS),
            passage: passage_at(all, DocumentPosition::Byte(start)),
        });
        if headings.len() == MAX_OUTLINE {
            break;
        }
    }
    headings
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
            readers: docent_search::AllowedReaders::Everyone,
        }
    }

    #[test]
    fn a_card_shows_words_and_no_marks_of_markdown() {
        let text = "## 😀 The *winter* ferry";
        let marker = MatchHighlighter::new(&document(text), "ferry");
        let told = |text: &str| {
            let spans = excerpt(text, &marker);
            let one = |span: &TextSpan| (span.text().to_owned(), span.em, span.mark);
            spans.iter().map(one).collect::<Vec<_>>()
        };
        let expected = [
            ("😀 The ".to_owned(), false, false),
            ("winter".to_owned(), true, false),
            (" ".to_owned(), false, false),
            ("ferry".to_owned(), false, true),
        ];
        assert_eq!(told(text), expected);
        assert_eq!(told("#7")[0].0, "#7");
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
        let marker = MatchHighlighter::new(&document, "winter ferry");
        let (hits, best) = matching_passages(&document, &all, &marker);
        assert_eq!(hits.len(), 2);
        assert_eq!(Some(&best), hits.last());
        assert_eq!(
            passage_at(&all, DocumentPosition::Passage(999)),
            all.len() - 1
        );
        assert_eq!(passage_at(&[], DocumentPosition::Byte(3)), 0);
    }
}
