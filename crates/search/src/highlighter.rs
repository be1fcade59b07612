//! A text into the stretches of it that answer to the words of a question, for whoever shows it.

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;

use crate::analysis::{AnalysisMode, Language, TermKind, TermStream, detect, query_terms};
use crate::document::Document;
use crate::query::{MAX_QUERY_CHARS, MAX_QUERY_TERMS};

/// The most stretches that are told of one text.
pub const MAX_HIGHLIGHTS: usize = 400;

/// The words of a question, as they stand in one document.
#[derive(Clone, Debug)]
pub struct MatchHighlighter {
    language: Language,
    forms: HashSet<String>,
}

impl MatchHighlighter {
    /// Reads the words of a question, without its filters, in the language of a document.
    #[must_use]
    pub fn new(document: &Document, words: &str) -> Self {
        let language = detect(&document.title, &document.text);
        let words: String = words.chars().take(MAX_QUERY_CHARS).collect();
        let terms = query_terms(&words, MAX_QUERY_TERMS, &[language]);
        // Single characters of unspaced script would mark half of a page, so they count alone.
        let has_words = terms.iter().any(|term| term.kind != TermKind::NGram);
        let telling = terms
            .into_iter()
            .filter(|term| !has_words || term.kind != TermKind::NGram);
        Self {
            language,
            forms: telling.flat_map(|term| term.forms).collect(),
        }
    }

    /// The bytes of a text that answer to the words, in their order and apart from each other, at most
    /// [`MAX_MARKS`] of them.
    #[must_use]
    pub fn highlights(&self, text: &str) -> Vec<Range<usize>> {
        let mut marks: Vec<Range<usize>> = Vec::new();
        self.each(text, |span, _| match marks.last_mut() {
            Some(last) if span.start < last.end => last.end = last.end.max(span.end),
            _ => marks.push(span),
        });
        marks
    }

    /// How many different words of the question a text holds, and how often it holds one.
    #[must_use]
    pub fn match_counts(&self, text: &str) -> (usize, usize) {
        let mut different = BTreeSet::new();
        let mut all = 0;
        self.each(text, |_, term| {
            all += 1;
            if !different.contains(term) {
                different.insert(term.to_owned());
            }
        });
        (different.len(), all)
    }

    fn each(&self, text: &str, mut take: impl FnMut(Range<usize>, &str)) {
        if self.forms.is_empty() {
            return;
        }
        let mut terms = TermStream::new(text, AnalysisMode::Index, self.language);
        let mut left = MAX_HIGHLIGHTS;
        while let Some(term) = terms.advance() {
            if left == 0 {
                return;
            }
            if self.forms.contains(term.text) {
                left -= 1;
                take(term.span.clone(), term.text);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::tests::plain;

    fn marked(text: &str, words: &str) -> Vec<String> {
        let marks = MatchHighlighter::new(&plain(text), words).highlights(text);
        let mut at = 0;
        for mark in &marks {
            assert!(mark.start >= at && mark.end > mark.start);
            at = mark.end;
        }
        marks
            .into_iter()
            .map(|mark| text[mark].to_owned())
            .collect()
    }

    #[test]
    fn other_forms_of_a_word_are_marked_and_silent_words_are_not() {
        let text = "The ferries crossed the sound. A ferry is the road in winter.";
        assert_eq!(
            marked(text, "the winter ferry"),
            ["ferries", "ferry", "winter"]
        );
        assert_eq!(marked(text, ""), [""; 0]);
        assert_eq!(marked(text, "submarine"), [""; 0]);
        let marker = MatchHighlighter::new(&plain(text), "winter ferry");
        assert_eq!(marker.match_counts(text), (2, 3));
    }

    #[test]
    fn stretches_of_any_script_begin_and_end_between_characters() {
        for (text, words) in [
            ("渡し船は冬に週三便だけ運航します。", "渡し船 冬"),
            ("Überfahrten im Winter: die Fähre fährt.", "fähre überfahrt"),
            ("read_file and readFile", "read_file"),
        ] {
            assert!(!marked(text, words).is_empty(), "{text}");
        }
    }

    #[test]
    fn there_is_a_last_mark() {
        let many = |count: usize| marked(&"ferry ".repeat(count), "ferry").len();
        assert_eq!(
            (many(MAX_HIGHLIGHTS), many(MAX_HIGHLIGHTS + 1)),
            (MAX_HIGHLIGHTS, MAX_HIGHLIGHTS)
        );
    }
}
