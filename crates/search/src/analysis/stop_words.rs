//! Stop-word lookup for the languages we stem. One hash table holds the lists of all languages, so one lookup
//! answers for every language at once; language detection counts on that.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::fold::fold;
use super::language::Language;
use super::stop_word_lists::{UNSPACED_STOP_WORDS, stop_words};

/// Upper bound of the number of distinct stop words, which sizes the bit set of language detection; a test checks
/// it.
pub(super) const MAX_STOP_WORDS: usize = 4096;

/// The longest stop word, in bytes of its folded form. Longer words are not looked up.
const MAX_STOP_WORD_BYTES: usize = 64;

/// The bit of the field `languages` that stands for all scripts without spaces.
const UNSPACED: u64 = 1 << 63;

/// A word that is a stop word in at least one language. `languages` has one bit for each of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StopWord {
    /// Its number among all stop words, below [`MAX_STOP_WORDS`].
    pub number: usize,
    languages: u64,
}

impl StopWord {
    /// Looks up a folded, unstemmed word.
    pub(super) fn find(word: &str) -> Option<Self> {
        if word.len() > MAX_STOP_WORD_BYTES {
            return None;
        }
        TABLE.get(word).copied()
    }

    pub(super) fn is_in(self, language: Language) -> bool {
        self.languages & bit(language) != 0
    }

    /// Whether it is a stop word of a script without spaces.
    pub(super) fn is_unspaced(self) -> bool {
        self.languages & UNSPACED != 0
    }

    /// The languages in which it is a stop word.
    pub(super) fn languages(self) -> impl Iterator<Item = Language> {
        let mut rest = self.languages & !UNSPACED;
        std::iter::from_fn(move || {
            let index = rest.trailing_zeros() as usize;
            rest &= rest.wrapping_sub(1);
            Language::ALL.get(index).copied()
        })
    }
}

/// Whether a folded, unstemmed word is a stop word of English.
pub(crate) fn is_stop_word(word: &str) -> bool {
    StopWord::find(word).is_some_and(|stop_word| stop_word.is_in(Language::English))
}

fn bit(language: Language) -> u64 {
    1 << (language as u32)
}

/// The stop words of all languages by folded word, built when the first word is looked up.
static TABLE: LazyLock<HashMap<String, StopWord>> = LazyLock::new(|| {
    let mut table: HashMap<String, StopWord> = HashMap::new();
    let spaced = Language::ALL.map(|language| (stop_words(language), bit(language)));
    for (words, bits) in spaced.into_iter().chain([(UNSPACED_STOP_WORDS, UNSPACED)]) {
        for word in words.split_whitespace() {
            let mut folded = String::new();
            fold(word, MAX_STOP_WORD_BYTES, &mut folded);
            let number = table.len();
            let new = StopWord {
                number,
                languages: 0,
            };
            table.entry(folded).or_insert(new).languages |= bits;
        }
    }
    table
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_lookup_answers_for_all_languages() {
        let languages = |word| -> Vec<Language> {
            let stop_word = StopWord::find(word).unwrap_or_default();
            stop_word.languages().collect()
        };
        assert_eq!(languages("the"), [Language::English]);
        assert_eq!(languages("die"), [Language::Dutch, Language::German]);
        assert_eq!(languages("fur"), [Language::German]);
        assert_eq!(languages("ferry"), []);
        assert!(StopWord::find("什么").is_some_and(StopWord::is_unspaced));
    }

    #[test]
    fn every_word_has_a_number_and_none_is_too_long() {
        assert!(TABLE.len() < MAX_STOP_WORDS);
        let mut numbers: Vec<usize> = TABLE.values().map(|stop_word| stop_word.number).collect();
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..TABLE.len()));
        assert!(TABLE.keys().all(|word| word.len() <= MAX_STOP_WORD_BYTES));
        assert!(!is_stop_word(&"a".repeat(MAX_STOP_WORD_BYTES + 1)));
    }

    #[test]
    fn english_stop_words_are_not_mixed_with_others() {
        assert!(["a", "the", "what", "yours"].into_iter().all(is_stop_word));
        assert!(!["ferry", "die", "und"].into_iter().any(is_stop_word));
    }
}
