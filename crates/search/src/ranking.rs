//! What makes one document better than another, in numbers that every engine shares.
//!
//! A document's raw score is BM25 over everything it says (its title, its text, its fields), plus
//! [`TITLE_WEIGHT`] times BM25 over its title alone, plus [`PHRASE_WEIGHT`] times BM25 over every
//! pair of neighbouring query words that it says side by side.

use crate::analysis::{QueryTerm, language_variants};

/// What a match in the title adds to the match that the same word is in the whole document: about
/// half as much again, and more for a word that few titles have. Measured on the SciFact
/// collection (nDCG@10, phrase weights of 0.1 to 0.2): 0 gives .692, 0.25 to 0.35 gives .698, 0.5
/// gives .692 to .695, 1 gives .662 to .666.
pub(crate) const TITLE_WEIGHT: f32 = 0.35;

/// What a pair of query words side by side adds to the two words. Small, since both words have
/// already been counted: of the weights from 0 to 0.4 this one ranked best on CoSQA, and within
/// .002 of the best on SciFact.
pub(crate) const PHRASE_WEIGHT: f32 = 0.15;

/// The most pairs that are looked for. A question has fewer; what has more is not a question.
const MAX_PAIRS: usize = 16;

/// The most words apart that two query words may stand and still be a pair: in "freedom of the
/// press" the words that say nothing are left out.
const MAX_GAP: usize = 3;

/// How many documents each half of a search brings at least, and for each hit wanted: more than
/// are shown, because what one half puts far down the other may lift.
const MIN_CANDIDATES: usize = 50;
const CANDIDATES_PER_HIT: usize = 2;

/// How many documents each half brings for this many hits.
pub(crate) fn candidate_count(hits: usize) -> usize {
    MIN_CANDIDATES.max(hits * CANDIDATES_PER_HIT)
}

/// The different terms of a query, in the order they first occur.
pub(crate) fn distinct(terms: &[QueryTerm]) -> Vec<&QueryTerm> {
    let mut different: Vec<&QueryTerm> = Vec::with_capacity(terms.len());
    for term in terms {
        // They are few: looking at all takes less than hashing.
        if different.iter().all(|known| known.text() != term.text()) {
            different.push(term);
        }
    }
    different
}

/// All that these terms stand in the index as.
pub(crate) fn forms<'q>(terms: &[&'q QueryTerm]) -> Vec<&'q str> {
    let forms = terms.iter().flat_map(|term| &term.forms);
    forms.map(String::as_str).collect()
}

/// Two terms of a query and how many words apart they stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TermPair<'q> {
    pub first: &'q str,
    pub second: &'q str,
    pub gap: usize,
}

/// The different pairs of neighbouring words of a query, each as the languages of the corpus have
/// it.
pub(crate) fn adjacent_pairs(terms: &[QueryTerm]) -> Vec<TermPair<'_>> {
    let words: Vec<&QueryTerm> = terms.iter().filter(|term| term.is_word()).collect();
    let mut pairs = Vec::new();
    for neighbours in words.windows(2) {
        let [first, second] = neighbours else {
            continue;
        };
        let gap = second.position.saturating_sub(first.position);
        if !(1..=MAX_GAP).contains(&gap) {
            continue;
        }
        for reading in language_variants(neighbours) {
            let [first, second] = reading.as_slice() else {
                continue;
            };
            let pair = TermPair { first, second, gap };
            if pairs.len() < MAX_PAIRS && !pairs.contains(&pair) {
                pairs.push(pair);
            }
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::{Language, query_terms};

    fn english(text: &str) -> Vec<QueryTerm> {
        query_terms(text, 64, &[Language::English])
    }

    #[test]
    fn neighbours_are_pairs_across_words_that_say_nothing() {
        let terms = english("freedom of the press, and the court that sat over it");
        let found: Vec<_> = adjacent_pairs(&terms)
            .iter()
            .map(|p| (p.first, p.second, p.gap))
            .collect();
        assert_eq!(
            found,
            [
                ("freedom", "press", 3),
                ("press", "court", 3),
                ("court", "sat", 2)
            ]
        );
    }

    #[test]
    fn no_term_twice_and_no_more_pairs_than_the_limit() {
        let terms = english("tax tax tax");
        assert_eq!(forms(&distinct(&terms)), ["tax"]);
        let words: String = (0..64).map(|n| format!("w{n} ")).collect();
        assert_eq!(adjacent_pairs(&english(&words)).len(), MAX_PAIRS);
    }

    #[test]
    fn a_pair_is_looked_for_as_each_language_has_it() {
        let languages = [Language::English, Language::German];
        let terms = query_terms("public organisation", 64, &languages);
        let found: Vec<_> = adjacent_pairs(&terms)
            .iter()
            .map(|p| (p.first, p.second))
            .collect();
        assert_eq!(found, [("public", "organis"), ("public", "organisation")]);
        let compound = english("open read_file");
        let found: Vec<_> = adjacent_pairs(&compound)
            .iter()
            .map(|p| (p.first, p.second))
            .collect();
        assert_eq!(found, [("open", "read"), ("read", "file")]);
    }
}
