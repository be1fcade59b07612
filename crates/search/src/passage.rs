//! Chunking: splits a document into the passages that are embedded, retrieved and shown one by one.
//!
//! Passages follow the structure of the document: a passage begins at a heading, a page or a paragraph and takes
//! whole paragraphs until it is full. A longer paragraph is split after a sentence, else after a word.

use std::cell::OnceCell;
use std::ops::Range;

use crate::analysis::{LanguageEvidence, LanguageId};
use crate::document::Document;
use crate::embedder::ModelLanguages;

/// The longest passage, in characters. English text of this length has about as many tokens as the built-in model
/// reads at once.
pub const MAX_PASSAGE_CHARS: usize = 1_800;

/// The shortest passage that a heading or a new page ends, in characters; shorter ones take in what follows. A heading
/// with one sentence below it has too little context for an embedding, and as a passage of its own it would compete
/// with the text that explains it.
const MIN_PASSAGE_CHARS: usize = 200;

/// The most passages of one document. The longest text that is read from a file has fewer.
pub const MAX_PASSAGES: usize = 16_384;

/// The longest title path, in characters. The path is embedded in front of every passage, so a long one would make the
/// vectors of all passages of a document alike, and push the words of each out of the model's window.
const MAX_PATH_CHARS: usize = 300;

/// The deepest level of a Markdown heading.
const MAX_LEVEL: usize = 6;

/// The separator of the parts of a title path.
const ARROW: &str = " › ";

/// A passage (chunk) of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// The index among the passages of its document, from 0.
    pub index: usize,
    /// The byte range in the text of the document, without white space at its ends.
    pub range: Range<usize>,
    /// The headings above it, outermost first, such as `Fares › Children`; empty when there are none.
    pub path: String,
}

/// Splits a document into passages, in order. A text without a visible character has none.
pub fn passages(document: &Document) -> Vec<Passage> {
    let text = &document.text;
    let mut splitter = PassageSplitter::default();
    for block in blocks(text) {
        if splitter.done.len() >= MAX_PASSAGES {
            break;
        }
        splitter.take(text, &block);
    }
    splitter.flush();
    splitter.done.truncate(MAX_PASSAGES);
    splitter.done
}

/// The passages that an embedding model of these languages can embed, each with the text that is embedded, and
/// renumbered among themselves.
pub(crate) fn embeddable_passages(
    document: &Document,
    languages: ModelLanguages,
) -> Vec<(Passage, String)> {
    let mut passages = passages(document);
    if languages == ModelLanguages::English {
        // A passage that says too little is assumed to be in the language of its document.
        let whole = OnceCell::new();
        let whole = || *whole.get_or_init(|| document_language(document));
        passages.retain(|passage| {
            let words = document.text.get(passage.range.clone()).unwrap_or_default();
            match LanguageId::of_passage(words) {
                LanguageId::English => true,
                LanguageId::Foreign => false,
                LanguageId::Unclear => whole() != LanguageId::Foreign,
            }
        });
    }
    let numbered = passages.into_iter().enumerate().map(|(index, passage)| {
        let text = embedded_text(document, &passage);
        (Passage { index, ..passage }, text)
    });
    numbered.collect()
}

/// The language of a document by its title and its text together.
fn document_language(document: &Document) -> LanguageId {
    let [title, text] = [&document.title, &document.text].map(|part| LanguageEvidence::of(part));
    title.and(text).verdict()
}

/// The text that is embedded for a passage: the title path for context, then the words. A passage in the middle of a
/// document often does not repeat what it is about: below the heading `Children`, a table of prices does not say that
/// it is about ferries.
fn embedded_text(document: &Document, passage: &Passage) -> String {
    let words = document.text.get(passage.range.clone()).unwrap_or_default();
    let title = document.title.trim();
    // A title that is also the first line of the text, as in Markdown, is not repeated.
    let start = words.trim_start_matches(['#', ' ']);
    let path = match (
        title.is_empty() || start.starts_with(title),
        passage.path.is_empty(),
    ) {
        (true, _) => passage.path.clone(),
        (false, true) => title.to_owned(),
        (false, false) if passage.path.starts_with(title) => passage.path.clone(),
        (false, false) => format!("{title}{ARROW}{}", passage.path),
    };
    let path: String = path.chars().take(MAX_PATH_CHARS).collect();
    if path.is_empty() {
        words.to_owned()
    } else {
        format!("{path}\n{words}")
    }
}

/// A block of text: a paragraph, a fenced code block, or a heading on a line of its own.
pub(crate) struct MarkdownBlock {
    pub(crate) range: Range<usize>,
    /// The level of a heading and the range of its words.
    pub(crate) heading: Option<(usize, Range<usize>)>,
    /// Whether a new page begins with this block.
    page: bool,
}

/// Splits a text into blocks, in order.
pub(crate) fn blocks(text: &str) -> impl Iterator<Item = MarkdownBlock> {
    let mut lines = lines(text).peekable();
    let mut fenced = false;
    std::iter::from_fn(move || {
        let mut page = false;
        while let Some((line, range)) = lines.next() {
            page |= line.contains('\u{c}');
            if line.trim().is_empty() {
                continue;
            }
            if !fenced && let Some(heading) = heading_at(line, range.start) {
                return Some(MarkdownBlock {
                    range,
                    heading: Some(heading),
                    page,
                });
            }
            fenced ^= is_fence(line);
            let mut end = range.end;
            // Code keeps its blank lines, and a `#` in it is no heading.
            while let Some((next, range)) = lines
                .next_if(|(next, _)| fenced || !(next.trim().is_empty() || heading(next).is_some()))
            {
                fenced ^= is_fence(next);
                end = range.end;
            }
            return Some(MarkdownBlock {
                range: range.start..end,
                heading: None,
                page,
            });
        }
        None
    })
}

fn lines(text: &str) -> impl Iterator<Item = (&str, Range<usize>)> {
    let mut at = 0;
    text.split_inclusive('\n').map(move |line| {
        let start = at;
        at += line.len();
        (line, start..at)
    })
}

/// Whether a line opens or closes a fenced code block.
pub fn is_fence(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("```") || line.starts_with("~~~")
}

/// Parses a Markdown heading to its level and its words.
pub fn heading(line: &str) -> Option<(usize, &str)> {
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    if !(1..=MAX_LEVEL).contains(&level) {
        return None;
    }
    let rest = line.get(level..)?;
    if !rest.starts_with([' ', '\t']) {
        return None;
    }
    let words = rest.trim().trim_end_matches('#').trim_end();
    (!words.is_empty()).then_some((level, words))
}

/// Like [`heading`], with the byte range of the words, for a line that begins at `start`.
fn heading_at(line: &str, start: usize) -> Option<(usize, Range<usize>)> {
    let (level, words) = heading(line)?;
    let rest = line.get(level..)?;
    let from = start + level + (rest.len() - rest.trim_start().len());
    Some((level, from..from + words.len()))
}

#[derive(Default)]
struct PassageSplitter {
    done: Vec<Passage>,
    /// The stack of open headings with their levels.
    path: Vec<(usize, String)>,
    /// The passage that is being filled: its range, its length in characters and its title path.
    open: Option<(Range<usize>, usize, String)>,
}

impl PassageSplitter {
    fn take(&mut self, text: &str, block: &MarkdownBlock) {
        let words = text.get(block.range.clone()).unwrap_or_default();
        let open = self.open.as_ref().map_or(0, |(_, chars, _)| *chars);
        let starts_section = block.page || block.heading.is_some();
        let size = words.chars().count();
        if (starts_section && open >= MIN_PASSAGE_CHARS) || open + size > MAX_PASSAGE_CHARS {
            self.flush();
        }
        if let Some((level, words)) = &block.heading {
            self.path.retain(|(above, _)| above < level);
            let words = text.get(words.clone()).unwrap_or_default();
            self.path.push((*level, words.to_owned()));
        }
        for range in pieces(text, block.range.clone(), size) {
            if self.done.len() >= MAX_PASSAGES {
                return;
            }
            self.add(text, range);
        }
    }

    fn add(&mut self, text: &str, range: Range<usize>) {
        let size = text
            .get(range.clone())
            .map_or(0, |piece| piece.chars().count());
        let start = match self.open.take() {
            Some((open, chars, path)) if chars + size <= MAX_PASSAGE_CHARS => {
                self.open = Some((open.start..range.end, chars + size, path));
                return;
            }
            Some(full) => {
                self.open = Some(full);
                self.flush();
                range.start
            }
            None => range.start,
        };
        let path: Vec<&str> = self.path.iter().map(|(_, words)| words.as_str()).collect();
        self.open = Some((start..range.end, size, path.join(ARROW)));
        self.trim(text);
    }

    /// Drops white space before the first word of the open passage.
    fn trim(&mut self, text: &str) {
        if let Some((range, _, _)) = &mut self.open {
            let words = text.get(range.clone()).unwrap_or_default();
            range.start += words.len() - words.trim_start().len();
        }
    }

    fn flush(&mut self) {
        if let Some((range, _, path)) = self.open.take() {
            let index = self.done.len();
            self.done.push(Passage { index, range, path });
        }
    }
}

/// Splits a block into pieces that fit a passage.
fn pieces(text: &str, block: Range<usize>, chars: usize) -> Vec<Range<usize>> {
    if chars <= MAX_PASSAGE_CHARS {
        return vec![trimmed(text, block)];
    }
    let mut pieces = Vec::new();
    let mut start = block.start;
    while start < block.end && pieces.len() < MAX_PASSAGES {
        let rest = text.get(start..block.end).unwrap_or_default();
        let cut = rest
            .char_indices()
            .nth(MAX_PASSAGE_CHARS)
            .map_or(rest.len(), |(end, _)| boundary(rest, end));
        let piece = trimmed(text, start..start + cut);
        if !piece.is_empty() {
            pieces.push(piece);
        }
        start += cut;
    }
    pieces
}

/// The best position to split in the second half of the first `limit` bytes: after a sentence, else after a word,
/// else at the limit.
fn boundary(text: &str, limit: usize) -> usize {
    let head = text.get(..limit).unwrap_or(text);
    let mut word = None;
    let mut next = ' ';
    for (at, c) in head.char_indices().rev() {
        let end = at + c.len_utf8();
        if at < limit / 2 {
            break;
        }
        let ends = matches!(c, '.' | '!' | '?') && next.is_whitespace();
        if ends || matches!(c, '。' | '！' | '？' | '\n') {
            return end;
        }
        if word.is_none() && c.is_whitespace() {
            word = Some(end);
        }
        next = c;
    }
    word.unwrap_or(head.len())
}

fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let words = text.get(range.clone()).unwrap_or_default();
    let start = range.start + (words.len() - words.trim_start().len());
    start..start + words.trim().len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::document::tests::plain;

    fn document(title: &str, text: &str) -> Document {
        Document {
            title: title.to_owned(),
            ..plain(text)
        }
    }

    fn split_texts(text: &str) -> Vec<(String, String)> {
        let document = document("", text);
        passages(&document)
            .into_iter()
            .map(|passage| (document.text[passage.range].to_owned(), passage.path))
            .collect()
    }

    #[test]
    fn a_short_text_is_one_passage() {
        assert!(split_texts(" \n\n ").is_empty());
        assert_eq!(
            split_texts(" One.\n\nTwo.\n"),
            [("One.\n\nTwo.".into(), String::new())]
        );
    }

    #[test]
    fn headings_begin_passages_and_make_the_path() {
        let filler = "Words that fill the line and mean little. ".repeat(6);
        let filler = filler.trim();
        let text = format!(
            "# Fares\n\n{filler}\n\n## Children ##\n\n{filler}\n\n```\n# no heading\n\n{filler}\n```\n\n# Piers\n\n{filler}"
        );
        let found = split_texts(&text);
        let paths: Vec<_> = found.iter().map(|(_, path)| path.as_str()).collect();
        assert_eq!(paths, ["Fares", "Fares › Children", "Piers"]);
        assert!(found[1].0.starts_with("## Children") && found[1].0.ends_with("```"));
        assert!(found[2].0.starts_with("# Piers"));
    }

    #[test]
    fn small_sections_share_a_passage() {
        let found = split_texts("# A\n\none\n\n# B\n\ntwo");
        assert_eq!(found, [("# A\n\none\n\n# B\n\ntwo".into(), "A".into())]);
    }

    #[test]
    fn long_paragraphs_are_cut_after_a_sentence() {
        let sentence = "The ferry crosses the sound each morning. ";
        let text = sentence.repeat(MAX_PASSAGE_CHARS * 2 / sentence.len() - 2);
        let found = split_texts(&text);
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|(words, _)| words.ends_with("morning.")));
        let word = "x".repeat(MAX_PASSAGE_CHARS + 1);
        assert_eq!(split_texts(&word).len(), 2);
        assert_eq!(split_texts(&"x".repeat(MAX_PASSAGE_CHARS)).len(), 1);
    }

    #[test]
    fn passages_have_a_bound() {
        let paragraph = format!("{}\n\n", "x".repeat(MAX_PASSAGE_CHARS));
        assert_eq!(
            split_texts(&paragraph.repeat(MAX_PASSAGES)).len(),
            MAX_PASSAGES
        );
        assert_eq!(
            split_texts(&paragraph.repeat(MAX_PASSAGES + 1)).len(),
            MAX_PASSAGES
        );
    }

    #[test]
    fn the_title_path_is_embedded_once() {
        let cases = [
            (
                "Ferries",
                "# Ferries\n\nWords.",
                "Ferries\n# Ferries\n\nWords.",
            ),
            ("Ferries", "Words.", "Ferries\nWords."),
            ("", "Words.", "Words."),
            ("Ferries", "Ferries run daily.", "Ferries run daily."),
            (
                "Report",
                "# Fares\n\nWords.",
                "Report › Fares\n# Fares\n\nWords.",
            ),
        ];
        for (title, text, expected) in cases {
            let document = document(title, text);
            let first = passages(&document).remove(0);
            assert_eq!(embedded_text(&document, &first), expected);
        }
    }

    proptest! {
        #[test]
        fn passages_are_in_order_within_bounds_and_lose_no_word(
            text in "([a-zé日#.\\n \\u{c}`]{0,40}|(word ){0,600}|x{0,2500}|\\n# h\\n){0,12}"
        ) {
            let document = document("", &text);
            let found = passages(&document);
            let mut at = 0;
            for (n, passage) in found.iter().enumerate() {
                prop_assert_eq!(passage.index, n);
                prop_assert!(passage.range.start >= at && passage.range.end > passage.range.start);
                prop_assert!(text[at..passage.range.start].trim().is_empty());
                let words = &text[passage.range.clone()];
                prop_assert_eq!(words.trim(), words);
                at = passage.range.end;
            }
            prop_assert!(text[at..].trim().is_empty());
        }
    }
}
