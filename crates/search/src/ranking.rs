//! What makes one document better than another, in numbers that every engine shares.
//!
//! A document's raw score is BM25 over everything it says (its title, its text, its fields), plus
//! [`TITLE_WEIGHT`] times BM25 over its title alone, plus [`PHRASE_WEIGHT`] times BM25 over every
//! pair of neighbouring query words that it says side by side.

use std::collections::HashSet;

use crate::analysis::QueryTerm;

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

/// The raw score that becomes one half. A good match of a short question scores about this.
const HALF: f32 = 10.0;

/// Brings a raw score, which has no upper end, between 0 and 1 without changing any order.
pub(crate) fn unit(raw: f32) -> f32 {
    if raw.is_finite() {
        (raw / (raw + HALF)).clamp(0.0, 1.0)
    } else {
        1.0
    }
}

/// The different terms of a query, in the order they first occur.
pub(crate) fn distinct(terms: &[QueryTerm]) -> Vec<&str> {
    let mut seen = HashSet::new();
    let texts = terms.iter().map(|term| term.text.as_str());
    texts.filter(|text| seen.insert(*text)).collect()
}

/// Two terms of a query and how many words apart they stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Pair<'q> {
    pub first: &'q str,
    pub second: &'q str,
    pub gap: usize,
}

/// The different pairs of neighbouring terms of a query.
pub(crate) fn pairs(terms: &[QueryTerm]) -> Vec<Pair<'_>> {
    let mut seen = HashSet::new();
    let neighbours = terms.iter().zip(terms.iter().skip(1));
    neighbours
        .map(|(first, second)| Pair {
            first: &first.text,
            second: &second.text,
            gap: second.position.saturating_sub(first.position),
        })
        .filter(|pair| (1..=MAX_GAP).contains(&pair.gap) && seen.insert(*pair))
        .take(MAX_PAIRS)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::query_terms;

    #[test]
    fn scores_stay_in_order_and_between_nought_and_one() {
        let raw = [0.0, 0.001, 1.0, 9.9, 10.0, 1e9, f32::INFINITY];
        let units = raw.map(unit);
        assert!(units.is_sorted());
        assert!(units.iter().all(|score| (0.0..=1.0).contains(score)));
        assert_eq!(unit(HALF), 0.5);
    }

    #[test]
    fn neighbours_are_pairs_across_words_that_say_nothing() {
        let terms = query_terms("freedom of the press, and the court that sat over it", 64);
        let found: Vec<_> = pairs(&terms)
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
        let terms = query_terms("tax tax tax", 64);
        assert_eq!(distinct(&terms), ["tax"]);
        let words: String = (0..64).map(|n| format!("w{n} ")).collect();
        assert_eq!(pairs(&query_terms(&words, 64)).len(), MAX_PAIRS);
    }
}
