//! A run of a script without spaces into what it is found by.
//!
//! A dictionary cuts it into words. It may cut a question and a text differently where they say the
//! same, so underneath lies a net that depends on no dictionary: every pair of neighbouring
//! characters and, where one character can be a word, every character. All that the net asks for
//! stands in the index, whatever the dictionary says.

use std::ops::Range;

use icu_segmenter::options::WordBreakInvariantOptions;
use icu_segmenter::{WordSegmenter, WordSegmenterBorrowed};

use super::stop_words::StopWord;
use super::{AnalysisMode, MAX_TERM_CHARS, TermKind};

/// Some neighbouring characters of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CharGram {
    pub from: usize,
    pub to: usize,
    pub kind: TermKind,
}

/// The run that is taken apart, and what of it is still to be given out.
#[derive(Default)]
pub(super) struct UnspacedSegmenter {
    segmenter: Option<WordSegmenterBorrowed<'static>>,
    /// The characters of the run and the bytes of the text they stand for.
    run: Vec<(char, Range<usize>)>,
    /// The words of the run.
    words: Vec<Range<usize>>,
    grams: Vec<CharGram>,
    next: usize,
}

impl UnspacedSegmenter {
    /// Takes apart the run `source` that stands in the text at `start` and folds to `folded`.
    pub(super) fn load(&mut self, source: &str, start: usize, folded: &str, purpose: AnalysisMode) {
        self.run.clear();
        if folded == source {
            let places = source.char_indices().map(|(offset, c)| {
                let start = start + offset;
                (c, start..start + c.len_utf8())
            });
            self.run.extend(places);
        } else {
            // Folding moved the characters, so each of them stands for the whole run.
            let span = start..start + source.len();
            self.run.extend(folded.chars().map(|c| (c, span.clone())));
        }
        self.segment(folded);
        self.grams.clear();
        self.next = 0;
        match purpose {
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

    /// Everything the run may be found by, in its order.
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
            // A word of one or two characters is in the net already. A Korean one is written with
            // its particles, so that the next text has it with others.
            if let Some(word) = words.next_if(|word| word.start == from)
                && (3..=MAX_TERM_CHARS).contains(&word.len())
                && !is_korean(*c)
            {
                add(word.end, TermKind::Segment);
            }
        }
    }

    /// What is worth asking for: the words of the run, and the net under them and between them.
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
            // Of a word of two characters only the pair that leads out of it is not yet listed.
            let inside = if word.len() > 2 {
                word.start
            } else {
                word.end - 1
            };
            for from in (inside..word.end).filter(|from| from + 1 < self.run.len()) {
                // Characters that are no word with their neighbours are a name the dictionary does
                // not know. A Korean word has its particles with it.
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

    /// Whether a word is one character that says something.
    fn is_content_char(&self, word: &Range<usize>) -> bool {
        let c = self.first_char(word);
        let is_silent = || {
            let silent = StopWord::find(c.encode_utf8(&mut [0; 4]));
            silent.is_some_and(StopWord::is_unspaced)
        };
        word.len() == 1 && is_content_alone(c) && !is_silent()
    }

    fn first_char(&self, word: &Range<usize>) -> char {
        self.run.get(word.start).map_or(' ', |(c, _)| *c)
    }

    /// Whether there is a run that was not let go of.
    pub(super) fn has_run(&self) -> bool {
        !self.run.is_empty()
    }

    /// The next gram of the run.
    pub(super) fn next(&mut self) -> Option<CharGram> {
        let gram = self.grams.get(self.next).copied()?;
        self.next += 1;
        Some(gram)
    }

    /// Lets go of the run, and says how many characters it had.
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

    /// The bytes of the text that a gram stands for.
    pub(super) fn span(&self, gram: CharGram) -> Range<usize> {
        let chars = self.run.get(gram.from..gram.to).unwrap_or_default();
        let start = chars.first().map_or(0, |(_, span)| span.start);
        start..chars.last().map_or(start, |(_, span)| span.end)
    }
}

/// Whether a character can be a word. Thai, Lao, Burmese and Khmer write letters, not syllables.
fn can_be_a_word(c: char) -> bool {
    !matches!(u32::from(c), 0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF)
}

fn is_korean(c: char) -> bool {
    matches!(u32::from(c), 0x1100..=0x11FF | 0x3130..=0x318F | 0xAC00..=0xD7FF)
}

/// Whether a character that is a word among others says something: a Han character or a Korean
/// syllable does, a Japanese one is a particle.
fn is_content_alone(c: char) -> bool {
    can_be_a_word(c) && !matches!(u32::from(c), 0x3040..=0x30FF)
}
