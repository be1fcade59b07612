//! The view model of a document for widgets and pages: title, date, fields, outline and matching passages.
//! `widgets/src/payload.ts` declares the same shapes.

use docent_search::{Day, Document, MatchHighlighter, Passage, heading, is_fence};
use serde::Serialize;

use super::fetch::DocumentPosition;
use crate::display_text::one_line;
use crate::layout::{self, TextSpan};

/// The size limit of the structured content that a model reads beside a widget; hosts ask for ten kilobytes.
pub(crate) const MAX_STRUCTURED_BYTES: usize = 10_000;

/// How many passages of a document are searched for matches, which bounds the cost of a book.
const MAX_SEARCHED: usize = 1_000;

/// The most headings of an outline, and the characters of each.
const MAX_OUTLINE: usize = 200;
const MAX_HEADING_CHARS: usize = 120;

/// The length limit of a field name, in characters.
const MAX_NAME_CHARS: usize = 64;

/// The excerpt on a result card: one line of styled spans with the matches marked.
pub(crate) fn excerpt(text: &str, marker: &MatchHighlighter) -> Vec<TextSpan> {
    // A passage often begins with its heading; the leading `#` means nothing on a single line.
    let words = text.trim_start_matches('#');
    let skip = if words.starts_with(' ') {
        text.len() - words.trim_start().len()
    } else {
        0
    };
    layout::spans(text, skip..text.len(), &marker.highlights(text))
}

/// A field as one line of name and value.
#[derive(Debug, Serialize)]
pub(crate) struct FieldValue {
    pub(crate) name: String,
    pub(crate) value: String,
}

/// The non-empty fields of a document: at most `most`, with values of at most `chars` characters.
pub(crate) fn fields(document: &Document, most: usize, chars: usize) -> Vec<FieldValue> {
    let lines = document.fields.iter().map(|(name, value)| FieldValue {
        name: one_line(name, MAX_NAME_CHARS),
        value: one_line(&value.to_string(), chars),
    });
    let full = |line: &FieldValue| !line.name.is_empty() && !line.value.is_empty();
    lines.filter(full).take(most).collect()
}

/// The date of a document as an ISO day, or an empty string.
pub(crate) fn day(document: &Document) -> String {
    let day = document.date.as_deref().and_then(Day::parse);
    day.map(|day| day.to_string()).unwrap_or_default()
}

/// The title of a document on one line, or its id when it has no title.
pub(crate) fn title(document: &Document) -> String {
    let title = one_line(&document.name(), 300);
    if title.is_empty() {
        return document.id.as_str().to_owned();
    }
    title
}

/// The passages with a match, and the best one, which contains the most of the query words.
pub(crate) fn matching_passages(
    document: &Document,
    all: &[Passage],
    marker: &MatchHighlighter,
) -> (Vec<usize>, usize) {
    let mut hits = Vec::new();
    let (mut best, mut most) = (0, (0, 0));
    for passage in all.iter().take(MAX_SEARCHED) {
        let text = document.text.get(passage.range.clone());
        let counts = marker.match_counts(text.unwrap_or_default());
        if counts.1 > 0 {
            hits.push(passage.index);
        }
        if counts > most {
            (best, most) = (passage.index, counts);
        }
    }
    (hits, best)
}

/// The passage at a position, clamped to the last one.
pub(super) fn passage_at(all: &[Passage], start: DocumentPosition) -> usize {
    let index = match start {
        DocumentPosition::Passage(index) => index,
        DocumentPosition::Byte(at) => all.partition_point(|passage| passage.range.end <= at),
    };
    index.min(all.len().saturating_sub(1))
}

/// A heading in the outline of a document.
#[derive(Debug, Serialize, PartialEq, Eq)]
pub(crate) struct OutlineHeading {
    pub(crate) level: usize,
    pub(crate) title: String,
    /// The index of the passage that contains it.
    pub(crate) passage: usize,
}

/// The outline of a text: its headings outside code blocks, each with its passage.
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
    fn a_card_shows_text_without_markdown_syntax() {
        let text = "## 😀 The *winter* ferry";
        let marker = MatchHighlighter::new(&document(text), "ferry");
        let rendered = |text: &str| {
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
        assert_eq!(rendered(text), expected);
        assert_eq!(rendered("#7")[0].0, "#7");
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
