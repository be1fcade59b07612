//! Tokenizer for sentences and words, and document frequencies from a sample of the corpus.

use std::collections::{HashMap, HashSet};

/// The most characters of a document that are tokenized.
pub(crate) const MAX_TEXT_CHARS: usize = 20_000;

/// The most distinct words that are counted; more would not change which words are rare.
const MAX_COUNTED: usize = 1_000_000;

/// The length limit of a sentence, for text without punctuation.
const MAX_SENTENCE_WORDS: usize = 40;

/// The lengths of words that a person would type.
const WORD_CHARS: std::ops::RangeInclusive<usize> = 3..=24;

/// How many characters of a script without spaces make one word.
const UNSPACED_CHARS: usize = 3;

/// English stop words, sorted. Small corpora need the list, because their document frequencies do not reveal them.
#[rustfmt::skip]
const STOP_WORDS: [&str; 77] = [
    "about", "after", "all", "also", "and", "any", "are", "because", "been", "before", "being",
    "between", "but", "can", "could", "did", "does", "down", "each", "for", "from", "had", "has",
    "have", "her", "here", "his", "how", "into", "its", "just", "may", "more", "most", "must",
    "not", "now", "off", "one", "only", "other", "our", "out", "over", "own", "she", "should",
    "some", "such", "than", "that", "the", "their", "them", "then", "there", "these", "they",
    "this", "those", "through", "too", "under", "upon", "very", "was", "were", "what", "when",
    "where", "which", "who", "why", "will", "with", "would", "you",
];

/// Splits the first [`MAX_TEXT_CHARS`] characters of a text into sentences of lower-case words.
pub(crate) fn sentences(text: &str) -> Vec<Vec<String>> {
    let mut splitter = SentenceSplitter::default();
    let mut chars = text.chars().take(MAX_TEXT_CHARS).peekable();
    while let Some(c) = chars.next() {
        let next = chars.peek().copied();
        if c.is_alphanumeric() {
            splitter.letter(c);
        } else if splitter.joins(c, next) {
            splitter.word.push(c);
        } else {
            splitter.end_word();
            if ends_sentence(c, next) {
                splitter.end_sentence();
            }
        }
    }
    splitter.end_sentence();
    splitter.sentences
}

/// Tokenizes a text into lower-case words.
pub(crate) fn words(text: &str) -> Vec<String> {
    sentences(text).concat()
}

#[derive(Default)]
struct SentenceSplitter {
    word: String,
    sentence: Vec<String>,
    sentences: Vec<Vec<String>>,
}

impl SentenceSplitter {
    fn letter(&mut self, c: char) {
        let full = self.word.chars().count() >= UNSPACED_CHARS;
        let was_unspaced = self.word.chars().next_back().is_some_and(is_unspaced);
        if (is_unspaced(c) && full) || was_unspaced != is_unspaced(c) {
            self.end_word();
        }
        self.word.extend(c.to_lowercase());
    }

    /// Whether a punctuation mark is part of a word, as the hyphen in `short-stay` and the comma in `38,000`.
    fn joins(&self, c: char, next: Option<char>) -> bool {
        let (before, next) = (self.word.chars().next_back(), next.unwrap_or(' '));
        let both = |test: fn(char) -> bool| before.is_some_and(test) && test(next);
        match c {
            '-' | '\'' | '’' => both(char::is_alphabetic),
            ',' | '.' => both(|c| c.is_ascii_digit()),
            _ => false,
        }
    }

    fn end_word(&mut self) {
        let word = std::mem::take(&mut self.word);
        let bare = ["'s", "’s"].iter().find_map(|end| word.strip_suffix(end));
        let word = bare.map(str::to_owned).unwrap_or(word);
        if !word.is_empty() {
            self.sentence.push(word);
        }
        if self.sentence.len() >= MAX_SENTENCE_WORDS {
            self.end_sentence();
        }
    }

    fn end_sentence(&mut self) {
        if !self.word.is_empty() {
            self.end_word();
        }
        if !self.sentence.is_empty() {
            self.sentences.push(std::mem::take(&mut self.sentence));
        }
    }
}

fn ends_sentence(c: char, next: Option<char>) -> bool {
    let at_gap = next.is_none_or(char::is_whitespace);
    let blank_line = c == '\n' && next == Some('\n');
    let heading = c == '\n' && next == Some('#');
    (matches!(c, '.' | '!' | '?' | ':' | ';') && at_gap)
        || matches!(c, '。' | '！' | '？')
        || blank_line
        || heading
}

/// Whether a character belongs to a script without spaces between words, such as Thai or Chinese.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{0E00}'..='\u{0EFF}' | '\u{1000}'..='\u{109F}' | '\u{1780}'..='\u{17FF}'
        | '\u{3040}'..='\u{30FF}' | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}'
        | '\u{20000}'..='\u{3FFFF}')
}

/// Document frequencies of words in a sample.
#[derive(Debug, Default)]
pub(crate) struct SampleFrequencies {
    documents: usize,
    of: HashMap<String, usize>,
}

impl SampleFrequencies {
    /// Adds a document to the sample.
    pub(crate) fn add(&mut self, title: &str, text: &str) {
        self.documents += 1;
        let different: HashSet<String> = words(title).into_iter().chain(words(text)).collect();
        for word in different {
            if let Some(count) = self.of.get_mut(&word) {
                *count += 1;
            } else if self.of.len() < MAX_COUNTED {
                self.of.insert(word, 1);
            }
        }
    }

    /// Inverse document frequency (IDF), smoothed so that an unknown word has a finite value.
    pub(crate) fn idf(&self, word: &str) -> f64 {
        ((self.documents + 1) as f64 / (self.count(word) + 1) as f64).ln()
    }

    /// Whether at most one document of the sample contains a word.
    pub(crate) fn is_unique(&self, word: &str) -> bool {
        self.count(word) <= 1
    }

    /// Whether a word is worth searching for: of typical length, no stop word, and in at most a fifth of the documents.
    pub(crate) fn is_informative(&self, word: &str) -> bool {
        let length = word.chars().count();
        let unspaced = word.chars().all(is_unspaced) && length > 1;
        let letters = word.chars().all(|c| c.is_alphabetic() || "-'’".contains(c));
        let typed = letters && (unspaced || WORD_CHARS.contains(&length));
        let count = self.count(word);
        // Function words of any language occur in nearly every document.
        let common = count > 1 && count * 5 > self.documents;
        typed && !common && STOP_WORDS.binary_search(&word).is_err()
    }

    /// Language detection: English when three of four function words occur in at least half of the documents.
    pub(crate) fn are_english(&self) -> bool {
        let in_most = |word: &str| self.count(word) * 2 >= self.documents.max(1);
        ["the", "of", "and", "to"]
            .iter()
            .filter(|word| in_most(word))
            .count()
            >= 3
    }

    fn count(&self, word: &str) -> usize {
        self.of.get(word).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<String> {
        sentences(text)
            .iter()
            .map(|sentence| sentence.join(" "))
            .collect()
    }

    #[test]
    fn sentences_and_words_are_cut_where_a_reader_would() {
        let text =
            "The Attorney's rate, 61.5 crowns, was short-stay.  It is 38,000!\nStill one\n\n# Next";
        assert_eq!(
            split(text),
            [
                "the attorney rate 61.5 crowns was short-stay",
                "it is 38,000",
                "still one",
                "next"
            ]
        );
        assert_eq!(split("渡船时刻表。冬天"), ["渡船时 刻表", "冬天"]);
        assert_eq!(split(" -- ' . "), Vec::<String>::new());
        assert_eq!(split("rock-"), ["rock"]);
    }

    #[test]
    fn endless_sentences_and_texts_are_cut() {
        let words = |count: usize| "word ".repeat(count);
        assert_eq!(sentences(&words(MAX_SENTENCE_WORDS)).len(), 1);
        assert_eq!(sentences(&words(MAX_SENTENCE_WORDS + 1)).len(), 2);
        assert_eq!(
            super::words(&"a ".repeat(MAX_TEXT_CHARS)).len(),
            MAX_TEXT_CHARS / 2
        );
    }

    #[test]
    fn rare_words_tell_and_common_ones_do_not() {
        let mut frequencies = SampleFrequencies::default();
        for text in [
            "der Deich hält",
            "der Fluss",
            "der Hafen",
            "der Markt",
            "der Turm ist 1234 alt",
        ] {
            frequencies.add("", text);
        }
        assert!(frequencies.is_informative("deich"));
        for word in ["der", "the", "an", "1234", "x1y", &"a".repeat(25)] {
            assert!(!frequencies.is_informative(word), "{word}");
        }
        assert!(frequencies.is_informative(&"a".repeat(24)));
        assert!(frequencies.idf("deich") > frequencies.idf("der"));
        assert!(!frequencies.are_english());
        frequencies.add("", "the end of the road, and to the sea");
        assert!(!frequencies.are_english());
        let mut english = SampleFrequencies::default();
        english.add("", "the end of the road, and to the sea");
        assert!(english.are_english());
    }

    #[test]
    fn stop_words_are_sorted_for_binary_search() {
        assert!(STOP_WORDS.is_sorted());
    }
}
