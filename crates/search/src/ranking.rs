//! Lexical ranking parameters that all engines share.
//!
//! The lexical score of a document is BM25 over its whole content (title, text and fields), plus [`TITLE_WEIGHT`]
//! times BM25 over its title alone, plus [`PHRASE_WEIGHT`] times BM25 over every pair of adjacent query words that
//! it contains adjacently.

use crate::analysis::{QueryTerm, language_variants};

/// The weight of a match in the title, in addition to the match in the whole document that the same word is: about
/// half as much again, and more for a word that few titles have. Measured on SciFact (nDCG@10, phrase weights of
/// 0.1 to 0.2): 0 gives .692, 0.25 to 0.35 gives .698, 0.5 gives .692 to .695, 1 gives .662 to .666.
const TITLE_WEIGHT: f32 = 0.35;

/// A part of a document that BM25 scores on its own, with its own mean length and document frequencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScoredField {
    /// Title, text and fields together.
    Content,
    Title,
}

/// The lexical score: the sum of these fields' BM25 scores, each with its weight.
pub(crate) const FIELD_WEIGHTS: [(ScoredField, f32); 2] = [
    (ScoredField::Content, 1.0),
    (ScoredField::Title, TITLE_WEIGHT),
];

/// The weight of two adjacent query words, in addition to the words themselves. Small, because both words already
/// count: of the weights from 0 to 0.4 this one ranked best on CoSQA, and within .002 of the best on SciFact.
pub(crate) const PHRASE_WEIGHT: f32 = 0.15;

/// The most word pairs of one query. A question has fewer; a text with more is none.
const MAX_PAIRS: usize = 16;

/// The largest distance of two query words that form a pair: in "freedom of the press" the stop words between them
/// are dropped.
const MAX_GAP: usize = 3;

/// The candidates each half (lexical and vector) contributes to fusion: at least this many, and this many for each
/// requested hit. More than are shown, because one half may lift what the other ranks low.
const MIN_CANDIDATES: usize = 50;
const CANDIDATES_PER_HIT: usize = 2;

/// The number of candidates each half contributes for this many hits.
pub(crate) fn candidate_count(hits: usize) -> usize {
    MIN_CANDIDATES.max(hits * CANDIDATES_PER_HIT)
}

/// The distinct terms of a query, in the order of their first occurrence.
pub(crate) fn distinct(terms: &[QueryTerm]) -> Vec<&QueryTerm> {
    let mut found: Vec<&QueryTerm> = Vec::with_capacity(terms.len());
    for term in terms {
        // There are few terms, so a linear scan is cheaper than hashing.
        if found.iter().all(|known| known.text() != term.text()) {
            found.push(term);
        }
    }
    found
}

/// All indexed forms of these terms.
pub(crate) fn forms<'q>(terms: &[&'q QueryTerm]) -> Vec<&'q str> {
    let forms = terms.iter().flat_map(|term| &term.forms);
    forms.map(String::as_str).collect()
}

/// Two query terms and their distance in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TermPair<'q> {
    pub first: &'q str,
    pub second: &'q str,
    pub gap: usize,
}

/// The distinct pairs of adjacent query words, in the forms of each language of the corpus.
pub(crate) fn adjacent_pairs(terms: &[QueryTerm]) -> Vec<TermPair<'_>> {
    let words: Vec<&QueryTerm> = terms.iter().filter(|term| term.is_word()).collect();
    let mut pairs = Vec::new();
    for adjacent in words.windows(2) {
        let [first, second] = adjacent else {
            continue;
        };
        let gap = second.position.saturating_sub(first.position);
        if !(1..=MAX_GAP).contains(&gap) {
            continue;
        }
        for variant in language_variants(adjacent) {
            let [first, second] = variant.as_slice() else {
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
    fn words_are_paired_across_stop_words() {
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
    fn pairs_have_the_forms_of_each_language() {
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
