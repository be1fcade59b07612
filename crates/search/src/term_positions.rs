//! A text into where each of its terms stands, for engines that look at single documents.

use std::collections::HashMap;

use crate::analysis::{
    AnalysisMode, Language, QueryTerm, StemCache, TermStream, language_variants,
};
use crate::document::Document;
use crate::ranking::TermPair;

/// The usual constants of BM25.
pub(crate) const K1: f32 = 1.2;
pub(crate) const B: f32 = 0.75;

/// What a term is worth that so many of all documents have.
pub(crate) fn idf(documents: u64, with: u64) -> f32 {
    let (documents, with) = (documents as f32, with.min(documents) as f32);
    (1.0 + (documents - with + 0.5) / (with + 0.5)).ln()
}

/// How much of that so many occurrences in a text of this length bring.
pub(crate) fn term_frequency_weight(occurrences: usize, length: usize, mean_length: f32) -> f32 {
    let often = occurrences as f32;
    let norm = K1 * (1.0 - B + B * length as f32 / mean_length);
    if occurrences == 0 {
        0.0
    } else {
        (1.0 + K1) * often / (often + norm)
    }
}

/// Where each term of a field stands.
#[derive(Default)]
pub(crate) struct TermPositions {
    positions: HashMap<String, Vec<usize>>,
    pub length: usize,
    next: usize,
}

impl TermPositions {
    /// The terms of a document's title, and of everything it can be found by.
    pub(crate) fn of(document: &Document, language: Language) -> (Self, Self) {
        let mut memo = StemCache::for_a_text();
        let (mut title, mut body) = (Self::default(), Self::default());
        title.add(&document.title, language, &mut memo);
        document.for_each_searchable(|text| body.add(text, language, &mut memo));
        (title, body)
    }

    fn add(&mut self, text: &str, language: Language, memo: &mut StemCache) {
        let mut terms = TermStream::new(text, AnalysisMode::Index, language).with_stem_cache(memo);
        let mut last = self.next;
        while let Some(term) = terms.advance() {
            last = self.next + term.position;
            self.positions
                .entry(term.text.to_owned())
                .or_default()
                .push(last);
            self.length += 1;
        }
        // A gap, so that no pair reaches from one part of a document into the next.
        self.next = last + 2;
    }

    /// Every term with how often it occurs.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (&str, usize)> {
        let terms = self.positions.iter();
        terms.map(|(term, places)| (term.as_str(), places.len()))
    }

    /// Where a term stands.
    pub(crate) fn positions_of(&self, term: &str) -> &[usize] {
        self.positions.get(term).map_or(&[], Vec::as_slice)
    }

    /// How often a term occurs in any of its forms.
    pub(crate) fn count(&self, term: &QueryTerm) -> usize {
        term.forms
            .iter()
            .map(|form| self.positions_of(form).len())
            .sum()
    }

    /// How often a pair occurs.
    pub(crate) fn count_pair(&self, pair: &TermPair<'_>) -> usize {
        let seconds = self.positions_of(pair.second);
        let firsts = self.positions_of(pair.first).iter();
        firsts
            .filter(|at| seconds.binary_search(&(*at + pair.gap)).is_ok())
            .count()
    }

    /// Whether these terms stand side by side somewhere, as one of the languages has them.
    pub(crate) fn contains_phrase(&self, phrase: &[QueryTerm]) -> bool {
        let Some(first) = phrase.first() else {
            return false;
        };
        let terms: Vec<&QueryTerm> = phrase.iter().collect();
        language_variants(&terms).iter().any(|reading| {
            let gaps = phrase.iter().map(|term| term.position - first.position);
            let places: Vec<_> = reading.iter().zip(gaps).collect();
            let starts = reading
                .first()
                .map_or(&[][..], |form| self.positions_of(form));
            starts.iter().any(|start| {
                let mut all = places.iter();
                all.all(|(form, gap)| self.positions_of(form).contains(&(start + gap)))
            })
        })
    }
}
