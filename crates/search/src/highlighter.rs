//! Match highlighting: finds the words of a question in a text, for widgets that show it.

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;

use crate::analysis::{AnalysisMode, Language, TermKind, TermStream, detect, query_terms};
use crate::document::Document;
use crate::query::{MAX_QUERY_CHARS, MAX_QUERY_TERMS};

/// The most highlights of one text.
pub const MAX_HIGHLIGHTS: usize = 400;

/// The terms of a question, stemmed for the language of one document.
#[derive(Clone, Debug)]
pub struct MatchHighlighter {
    language: Language,
    forms: HashSet<String>,
}

impl MatchHighlighter {
    /// Analyzes the words of a question (without its filters) in the language of a document.
    #[must_use]
    pub fn new(document: &Document, words: &str) -> Self {
        let language = detect(&document.title, &document.text);
        let words: String = words.chars().take(MAX_QUERY_CHARS).collect();
        let terms = query_terms(&words, MAX_QUERY_TERMS, &[language]);
        // Characters and bigrams of unspaced scripts would highlight half of a page, so they count only when there
        // is nothing else.
        let has_words = terms.iter().any(|term| term.kind != TermKind::NGram);
        let terms = terms
            .into_iter()
            .filter(|term| !has_words || term.kind != TermKind::NGram);
        Self {
            language,
            forms: terms.flat_map(|term| term.forms).collect(),
        }
    }

    /// The byte ranges of a text that match, in order and without overlaps, at most [`MAX_HIGHLIGHTS`] of them.
    #[must_use]
    pub fn highlights(&self, text: &str) -> Vec<Range<usize>> {
        let mut highlights: Vec<Range<usize>> = Vec::new();
        self.each(text, |span, _| match highlights.last_mut() {
            Some(last) if span.start < last.end => last.end = last.end.max(span.end),
            _ => highlights.push(span),
        });
        highlights
    }

    /// How many distinct query terms a text contains, and how many matches in total.
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
    fn inflected_forms_are_highlighted_and_stop_words_are_not() {
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
    fn highlights_of_any_script_end_at_character_boundaries() {
        for (text, words) in [
            ("渡し船は冬に週三便だけ運航します。", "渡し船 冬"),
            ("Überfahrten im Winter: die Fähre fährt.", "fähre überfahrt"),
            ("read_file and readFile", "read_file"),
        ] {
            assert!(!marked(text, words).is_empty(), "{text}");
        }
    }

    #[test]
    fn highlights_have_a_bound() {
        let many = |count: usize| marked(&"ferry ".repeat(count), "ferry").len();
        assert_eq!(
            (many(MAX_HIGHLIGHTS), many(MAX_HIGHLIGHTS + 1)),
            (MAX_HIGHLIGHTS, MAX_HIGHLIGHTS)
        );
    }
}
