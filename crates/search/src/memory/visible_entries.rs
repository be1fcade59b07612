//! The entries that one reader may see, and searches over them. All other entries are absent: no statistic, count
//! or spelling correction involves them.

use std::collections::BTreeMap;
use std::convert::Infallible;

use super::ranked_entry::{RankedEntry, facet, hit, list_by_day};
use super::{Bm25Statistics, MemoryEntry, MemoryState};
use crate::analysis::{Language, LanguageId, QueryTerm};
use crate::catalog::{Catalog, CatalogBuilder};
use crate::fusion::{self, CosineScale, FusionCandidate, FusionSignals};
use crate::hit::SearchResults;
use crate::query::{AnalyzedQuery, Query, RankingMethod, SortOrder};
use crate::ranking::{self, PHRASE_WEIGHT, TITLE_WEIGHT, TermPair};
use crate::reader_identity::ReaderIdentity;
use crate::snippet::HighlightTerms;
use crate::spelling::{self, SpellingDictionary};
use crate::term_positions::TermPositions;

/// A question with its embedding and its identified language.
pub(super) struct EmbeddedQuery<'q> {
    pub vector: &'q [f32],
    pub language: LanguageId,
}

/// The entries that a reader may see, in the order of their ids.
pub(super) struct VisibleEntries<'s> {
    entries: Vec<&'s MemoryEntry>,
    scale: Option<CosineScale>,
}

impl<'s> VisibleEntries<'s> {
    pub(super) fn new(state: &'s MemoryState, reader: &ReaderIdentity) -> Self {
        let entries = state.entries.values();
        Self {
            entries: entries
                .filter(|entry| reader.can_see(&entry.mapped.document))
                .collect(),
            scale: state.scale,
        }
    }

    pub(super) fn catalog(&self) -> Catalog {
        let mut builder = CatalogBuilder::new();
        for entry in &self.entries {
            builder.document(&entry.mapped.document);
        }
        builder.build()
    }

    pub(super) fn search(
        &self,
        query: &Query,
        embedded_query: Option<&EmbeddedQuery<'_>>,
    ) -> SearchResults {
        let mut analyzed = query.analyze(&self.languages());
        let Ok(()) = spelling::correct(&mut analyzed.terms, self);
        let terms = ranking::distinct(&analyzed.terms);
        let lists_by_date =
            query.sort != SortOrder::Relevance || (terms.is_empty() && query.is_filtered());
        let allowed: Vec<&MemoryEntry> = self
            .entries
            .iter()
            .copied()
            .filter(|entry| entry.is_allowed(query, &analyzed))
            .collect();
        let matching: Vec<&MemoryEntry> = allowed
            .iter()
            .copied()
            .filter(|entry| terms.is_empty() || terms.iter().any(|term| entry.body.count(term) > 0))
            .collect();
        let ranked = if lists_by_date {
            list_by_day(&matching, query.sort)
        } else if terms.is_empty() {
            Vec::new()
        } else {
            self.rank(query, &analyzed, embedded_query)
        };
        let highlights = HighlightTerms::new(&terms);
        let hits = ranked.into_iter().skip(query.offset).take(query.limit);
        SearchResults {
            hits: hits.map(|one| hit(&one, query, &highlights)).collect(),
            total: query.counts_total.then_some(matching.len() as u64),
            facets: query
                .facets
                .iter()
                .map(|name| facet(&matching, name))
                .collect(),
        }
    }

    /// Ranks by score fusion. As in every engine, each half (words and vectors) contributes its best candidates,
    /// which are fused, cut at the score floor and diversified.
    fn rank(
        &self,
        query: &Query,
        analyzed: &AnalyzedQuery,
        embedded_query: Option<&EmbeddedQuery<'_>>,
    ) -> Vec<FusionCandidate<RankedEntry<'s>>> {
        let terms = ranking::distinct(&analyzed.terms);
        let (words, pairs) = self.scores(&terms, &ranking::adjacent_pairs(&analyzed.terms));
        let mut all: Vec<RankedEntry<'_>> = self
            .entries
            .iter()
            .copied()
            .zip(words.into_iter().zip(pairs))
            .filter(|(entry, _)| entry.is_allowed(query, analyzed))
            .map(|(entry, (words, pairs))| {
                RankedEntry::new(
                    entry,
                    words,
                    pairs,
                    embedded_query.map(|embedded| embedded.vector),
                )
            })
            .collect();
        let limit = ranking::candidate_count(query.depth());
        all.sort_by(|left, right| right.words.total_cmp(&left.words));
        for (at, one) in all.iter_mut().enumerate() {
            one.is_candidate = at < limit && one.words > 0.0;
        }
        let similarity = |one: &RankedEntry<'_>| one.semantic.unwrap_or(f32::MIN);
        all.sort_by(|left, right| similarity(right).total_cmp(&similarity(left)));
        for one in all.iter_mut().take(limit) {
            one.is_candidate |= one.semantic.is_some();
        }
        all.retain(|one| one.is_candidate);
        let mut candidates: Vec<_> = all.into_iter().map(RankedEntry::into_candidate).collect();
        let signals = FusionSignals {
            words: fusion::count_words(&query.text),
            scale: self.scale.unwrap_or(CosineScale::GRANITE),
            method: query.method.fusion_method(),
            language: embedded_query.map_or(LanguageId::English, |embedded| embedded.language),
        };
        fusion::fuse(&signals, &mut candidates);
        candidates.retain(|one| query.method != RankingMethod::Hybrid || one.passes_floor());
        fusion::keep_best(&mut candidates, usize::MAX, |left, right| {
            left.id().cmp(right.id())
        });
        fusion::maximal_marginal_relevance(
            &mut candidates,
            query.diversity,
            query.depth(),
            |left, right| left.entry.mapped.jaccard_similarity(&right.entry.mapped),
        );
        candidates
    }

    /// BM25 scores of every entry: for the words, and for pairs of adjacent words.
    fn scores(&self, terms: &[&QueryTerm], pairs: &[TermPair<'_>]) -> (Vec<f32>, Vec<f32>) {
        let mut scores = vec![0.0; self.entries.len()];
        let mut pair_scores = scores.clone();
        let title = self.statistics(|entry| &entry.title);
        let body = self.statistics(|entry| &entry.body);
        for term in terms {
            self.add(&mut scores, &body, term.weight, |entry| {
                (entry.body.count(term), &entry.body)
            });
            self.add(&mut scores, &title, TITLE_WEIGHT * term.weight, |entry| {
                (entry.title.count(term), &entry.title)
            });
        }
        for pair in pairs {
            self.add(&mut pair_scores, &body, PHRASE_WEIGHT, |entry| {
                (entry.body.count_pair(pair), &entry.body)
            });
        }
        (scores, pair_scores)
    }

    /// The languages of the documents, most frequent first.
    fn languages(&self) -> Vec<Language> {
        let entries = self.entries.iter().copied();
        Language::by_document_count(entries.map(|entry| (entry.mapped.language, 1)))
    }

    fn statistics(&self, field: impl Fn(&MemoryEntry) -> &TermPositions) -> Bm25Statistics {
        let documents = self.entries.len() as u64;
        let length: usize = self
            .entries
            .iter()
            .copied()
            .map(|entry| field(entry).length)
            .sum();
        Bm25Statistics {
            documents,
            mean_length: length as f32 / documents as f32,
        }
    }

    /// Adds the BM25 contribution of one term or pair to every score.
    fn add(
        &self,
        scores: &mut [f32],
        statistics: &Bm25Statistics,
        weight: f32,
        count: impl Fn(&'s MemoryEntry) -> (usize, &'s TermPositions),
    ) {
        let with = self
            .entries
            .iter()
            .copied()
            .filter(|entry| count(entry).0 > 0)
            .count();
        let idf = weight * statistics.idf(with);
        for (score, entry) in scores.iter_mut().zip(self.entries.iter().copied()) {
            let (occurrences, field) = count(entry);
            *score += statistics.bm25(idf, occurrences, field.length);
        }
    }
}

impl SpellingDictionary for VisibleEntries<'_> {
    type Error = Infallible;

    fn contains_term(&self, term: &str) -> Result<bool, Infallible> {
        Ok(self
            .entries
            .iter()
            .copied()
            .any(|entry| !entry.body.positions_of(term).is_empty()))
    }

    fn terms_starting_with(&self, first: char) -> Result<BTreeMap<String, u64>, Infallible> {
        let mut found: BTreeMap<String, u64> = BTreeMap::new();
        for entry in self.entries.iter().copied() {
            let terms = entry.body.counts().map(|(term, _)| term);
            for term in terms.filter(|term| term.starts_with(first)) {
                *found.entry(term.to_owned()).or_default() += 1;
            }
        }
        Ok(found)
    }
}

impl MemoryEntry {
    fn is_allowed(&self, query: &Query, analyzed: &AnalyzedQuery) -> bool {
        let document = &self.mapped.document;
        query
            .filter
            .as_ref()
            .is_none_or(|filter| filter.matches(document))
            && analyzed
                .phrases
                .iter()
                .all(|phrase| self.body.contains_phrase(phrase))
            && !analyzed
                .excluded
                .iter()
                .any(|phrase| self.body.contains_phrase(phrase))
    }
}
