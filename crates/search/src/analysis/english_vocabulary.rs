//! The English vocabulary: which words an English text may be made of.
//!
//! The words are those of the embedding model `table`, the 45,615 most frequent ones of its training texts: prose,
//! medicine, code. A Bloom filter holds them in 64 KiB of the program, so that looking one up needs no model.

use super::word_filter::{FILTER_BYTES, bits_of};

/// The filter that the build script made.
static WORDS: &[u8; FILTER_BYTES] =
    include_bytes!(concat!(env!("OUT_DIR"), "/english_words.bloom"));

/// Whether an ASCII word is one of English, in any case. One in some hundreds of the others counts as English too.
pub(super) fn is_english(word: &str) -> bool {
    bits_of(word).all(|(byte, mask)| WORDS.get(byte).is_some_and(|bits| bits & mask != 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_of_the_vocabulary_is_known() {
        let rows = include_str!("../../models/table-256/rows.txt");
        let words = rows.lines().filter(|row| !row.starts_with("##"));
        assert!(words.clone().count() > 45_000);
        let missing: Vec<_> = words.filter(|word| !is_english(word)).collect();
        assert_eq!(missing, [""; 0]);
        assert!(is_english("Ferry") && is_english("FERRY"));
    }

    #[test]
    fn few_other_words_are_taken_for_english() {
        let others = (0..100_000_u32).map(|n| format!("{n:x}q"));
        let wrong = others.filter(|word| is_english(word)).count();
        assert!(wrong < 1_000, "{wrong}");
    }
}
