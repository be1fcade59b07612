//! Term positions of a single document, and the BM25 formula, for engines that score documents one by one.

use std::collections::HashMap;

use crate::analysis::{
    AnalysisMode, Language, QueryTerm, StemCache, TermStream, language_variants,
};
use crate::document::Document;
use crate::ranking::TermPair;

/// The usual constants of BM25: term frequency saturation and length normalization.
pub(crate) const K1: f32 = 1.2;
pub(crate) const B: f32 = 0.75;

/// The inverse document frequency (IDF) of a term that so many of all documents contain.
pub(crate) fn idf(documents: u64, with: u64) -> f32 {
    let (documents, with) = (documents as f32, with.min(documents) as f32);
    (1.0 + (documents - with + 0.5) / (with + 0.5)).ln()
}

/// The saturated, length-normalized term frequency of BM25, by which the IDF is multiplied.
pub(crate) fn term_frequency_weight(occurrences: usize, length: usize, mean_length: f32) -> f32 {
    let count = occurrences as f32;
    let norm = K1 * (1.0 - B + B * length as f32 / mean_length);
    if occurrences == 0 {
        0.0
    } else {
        (1.0 + K1) * count / (count + norm)
    }
}

/// An inverted list of one field: the positions of each term, and the number of terms. `next` is the position at
/// which the next part of the document begins.
#[derive(Default)]
pub(crate) struct TermPositions {
    positions: HashMap<String, Vec<usize>>,
    pub length: usize,
    next: usize,
}

impl TermPositions {
    /// The positions in the title of a document, and in everything it can be found by.
    pub(crate) fn of(document: &Document, language: Language) -> (Self, Self) {
        let mut cache = StemCache::for_a_text();
        let (mut title, mut body) = (Self::default(), Self::default());
        title.add(&document.title, language, &mut cache);
        document.for_each_searchable(|text| body.add(text, language, &mut cache));
        (title, body)
    }

    fn add(&mut self, text: &str, language: Language, cache: &mut StemCache) {
        let mut terms = TermStream::new(text, AnalysisMode::Index, language).with_stem_cache(cache);
        let mut last = self.next;
        while let Some(term) = terms.advance() {
            last = self.next + term.position;
            self.positions
                .entry(term.text.to_owned())
                .or_default()
                .push(last);
            self.length += 1;
        }
        // A gap, so that no phrase spans two parts of a document.
        self.next = last + 2;
    }

    /// Every term with its number of occurrences.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (&str, usize)> {
        let terms = self.positions.iter();
        terms.map(|(term, positions)| (term.as_str(), positions.len()))
    }

    /// The positions of a term, ascending; empty when it does not occur.
    pub(crate) fn positions_of(&self, term: &str) -> &[usize] {
        self.positions.get(term).map_or(&[], Vec::as_slice)
    }

    /// How often any form of a term occurs.
    pub(crate) fn count(&self, term: &QueryTerm) -> usize {
        term.forms
            .iter()
            .map(|form| self.positions_of(form).len())
            .sum()
    }

    /// How often the two terms of a pair occur at its distance.
    pub(crate) fn count_pair(&self, pair: &TermPair<'_>) -> usize {
        let seconds = self.positions_of(pair.second);
        let firsts = self.positions_of(pair.first).iter();
        firsts
            .filter(|at| seconds.binary_search(&(*at + pair.gap)).is_ok())
            .count()
    }

    /// Whether the phrase occurs in the forms of one of the languages.
    pub(crate) fn contains_phrase(&self, phrase: &[QueryTerm]) -> bool {
        let Some(first) = phrase.first() else {
            return false;
        };
        let terms: Vec<&QueryTerm> = phrase.iter().collect();
        language_variants(&terms).iter().any(|variant| {
            let gaps = phrase.iter().map(|term| term.position - first.position);
            let expected: Vec<_> = variant.iter().zip(gaps).collect();
            let starts = variant
                .first()
                .map_or(&[][..], |form| self.positions_of(form));
            starts.iter().any(|start| {
                let mut all = expected.iter();
                all.all(|(form, gap)| self.positions_of(form).contains(&(start + gap)))
            })
        })
    }
}
