//! Segmentation of scripts without spaces: dictionary words plus character n-grams.
//!
//! A dictionary splits a run into words. It may split a query and a document differently although they say the
//! same, so a layer that needs no dictionary lies below: every bigram and, where one character can be a word, every
//! character. The index holds all n-grams, so whatever n-gram a query asks for can be found.

use std::ops::Range;

use icu_segmenter::options::WordBreakInvariantOptions;
use icu_segmenter::{WordSegmenter, WordSegmenterBorrowed};

use super::stop_words::StopWord;
use super::{AnalysisMode, MAX_TERM_CHARS, TermKind};

/// A range of neighbouring characters of the run: an n-gram or a dictionary word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CharGram {
    pub from: usize,
    pub to: usize,
    pub kind: TermKind,
}

/// The current run of unspaced script and the n-grams of it that have still to be yielded. `run` pairs each folded
/// character with the bytes of the text it stands for; `words` are the dictionary words.
#[derive(Default)]
pub(super) struct UnspacedSegmenter {
    segmenter: Option<WordSegmenterBorrowed<'static>>,
    run: Vec<(char, Range<usize>)>,
    words: Vec<Range<usize>>,
    grams: Vec<CharGram>,
    next: usize,
}

impl UnspacedSegmenter {
    /// Loads the run `source`, which begins at byte `start` of the text and folds to `folded`, and lists its
    /// n-grams.
    pub(super) fn load(&mut self, source: &str, start: usize, folded: &str, mode: AnalysisMode) {
        self.run.clear();
        if folded == source {
            let chars = source.char_indices().map(|(offset, c)| {
                let start = start + offset;
                (c, start..start + c.len_utf8())
            });
            self.run.extend(chars);
        } else {
            // Folding changed the characters, so each of them stands for the whole run.
            let span = start..start + source.len();
            self.run.extend(folded.chars().map(|c| (c, span.clone())));
        }
        self.segment(folded);
        self.grams.clear();
        self.next = 0;
        match mode {
            AnalysisMode::Index => self.list_index_grams(),
            AnalysisMode::Query => self.list_query_grams(),
        }
    }

    fn segment(&mut self, folded: &str) {
        let segmenter = self.segmenter.get_or_insert_with(|| {
            WordSegmenter::new_dictionary(WordBreakInvariantOptions::default())
        });
        self.words.clear();
        let (mut from, mut bytes) = (0, 0);
        for cut in segmenter.segment_str(folded) {
            let to = from + folded.get(bytes..cut).unwrap_or_default().chars().count();
            if to > from {
                self.words.push(from..to);
            }
            (from, bytes) = (to, cut);
        }
    }

    /// Lists everything a document can be found by: all characters and bigrams, and the longer dictionary words.
    fn list_index_grams(&mut self) {
        let mut words = self.words.iter().peekable();
        for (from, (c, _)) in self.run.iter().enumerate() {
            let mut add = |to: usize, kind| self.grams.push(CharGram { from, to, kind });
            if can_be_a_word(*c) {
                add(from + 1, TermKind::NGram);
            }
            if from + 1 < self.run.len() {
                add(from + 2, TermKind::NGram);
            }
            // Words of one or two characters are n-grams already. A Korean word is written together with its
            // particles, so the same word looks different in the next text.
            if let Some(word) = words.next_if(|word| word.start == from)
                && (3..=MAX_TERM_CHARS).contains(&word.len())
                && !is_korean(*c)
            {
                add(word.end, TermKind::Segment);
            }
        }
    }

    /// Lists what a query looks for: the dictionary words, and the bigrams inside and across them.
    fn list_query_grams(&mut self) {
        let is_alone = self.run.len() == 1;
        for (at, word) in self.words.iter().enumerate() {
            let before = at.checked_sub(1).and_then(|at| self.words.get(at));
            let after = self.words.get(at + 1);
            let first = self.first_char(word);
            let is_lone = !before
                .into_iter()
                .chain(after)
                .any(|it| self.is_content_char(it));
            let is_word = match word.len() {
                1 => is_alone || (self.is_content_char(word) && is_lone),
                2 => true,
                length => length <= MAX_TERM_CHARS && !is_korean(first),
            };
            if is_word {
                let (from, to) = (word.start, word.end);
                let kind = TermKind::Segment;
                self.grams.push(CharGram { from, to, kind });
            }
            // Of a word of two characters only the bigram that leads out of it is not listed yet.
            let first_bigram = if word.len() > 2 {
                word.start
            } else {
                word.end - 1
            };
            for from in (first_bigram..word.end).filter(|from| from + 1 < self.run.len()) {
                // Neighbouring characters that are no words with each other are a name the dictionary does not
                // know. A Korean word includes its particles.
                let is_name =
                    self.is_content_char(word) && after.is_some_and(|it| self.is_content_char(it));
                let is_korean = is_korean(first) && from + 1 < word.end;
                let kind = if is_name || is_korean {
                    TermKind::Segment
                } else {
                    TermKind::NGram
                };
                let to = from + 2;
                self.grams.push(CharGram { from, to, kind });
            }
        }
    }

    /// Whether a word is a single character that carries meaning and is no stop word.
    fn is_content_char(&self, word: &Range<usize>) -> bool {
        let c = self.first_char(word);
        let is_stop_word = || {
            let stop_word = StopWord::find(c.encode_utf8(&mut [0; 4]));
            stop_word.is_some_and(StopWord::is_unspaced)
        };
        word.len() == 1 && is_content_alone(c) && !is_stop_word()
    }

    fn first_char(&self, word: &Range<usize>) -> char {
        self.run.get(word.start).map_or(' ', |(c, _)| *c)
    }

    /// Whether a run is loaded that was not yet finished.
    pub(super) fn has_run(&self) -> bool {
        !self.run.is_empty()
    }

    /// The next n-gram or dictionary word of the run.
    pub(super) fn next(&mut self) -> Option<CharGram> {
        let gram = self.grams.get(self.next).copied()?;
        self.next += 1;
        Some(gram)
    }

    /// Drops the run and returns its length in characters, by which positions advance.
    pub(super) fn finish(&mut self) -> usize {
        self.grams.clear();
        let length = self.run.len();
        self.run.clear();
        length
    }

    pub(super) fn chars(&self, gram: CharGram) -> impl Iterator<Item = char> {
        let chars = self.run.get(gram.from..gram.to).unwrap_or_default();
        chars.iter().map(|(c, _)| *c)
    }

    /// The byte range of the text that an n-gram stands for.
    pub(super) fn span(&self, gram: CharGram) -> Range<usize> {
        let chars = self.run.get(gram.from..gram.to).unwrap_or_default();
        let start = chars.first().map_or(0, |(_, span)| span.start);
        start..chars.last().map_or(start, |(_, span)| span.end)
    }
}

/// Whether one character can be a word. Thai, Lao, Burmese and Khmer write letters, not syllables.
fn can_be_a_word(c: char) -> bool {
    !matches!(u32::from(c), 0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF)
}

fn is_korean(c: char) -> bool {
    matches!(u32::from(c), 0x1100..=0x11FF | 0x3130..=0x318F | 0xAC00..=0xD7FF)
}

/// Whether a single-character word carries meaning: a Han character or a Korean syllable does, a Japanese syllable
/// is a particle.
fn is_content_alone(c: char) -> bool {
    can_be_a_word(c) && !matches!(u32::from(c), 0x3040..=0x30FF)
}
