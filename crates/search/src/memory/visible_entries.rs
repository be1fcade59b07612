//! The entries of the reference engine that a reader sees into an answer. The others are not there:
//! nothing is counted, weighed or completed with them.

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

/// A question as a model sees it.
pub(super) struct EmbeddedQuery<'q> {
    pub vector: &'q [f32],
    pub language: LanguageId,
}

/// What a reader sees of a shelf, in the order of the ids.
pub(super) struct VisibleEntries<'s> {
    entries: Vec<&'s MemoryEntry>,
    scale: Option<CosineScale>,
}

impl<'s> VisibleEntries<'s> {
    pub(super) fn new(shelf: &'s MemoryState, reader: &ReaderIdentity) -> Self {
        let entries = shelf.entries.values();
        Self {
            entries: entries
                .filter(|entry| reader.can_see(&entry.mapped.document))
                .collect(),
            scale: shelf.scale,
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
        question: Option<&EmbeddedQuery<'_>>,
    ) -> SearchResults {
        let mut asked = query.analyze(&self.languages());
        let Ok(()) = spelling::correct(&mut asked.terms, self);
        let terms = ranking::distinct(&asked.terms);
        let is_list =
            query.sort != SortOrder::Relevance || (terms.is_empty() && query.is_filtered());
        let allowed: Vec<&MemoryEntry> = self
            .entries
            .iter()
            .copied()
            .filter(|entry| entry.is_allowed(query, &asked))
            .collect();
        let matching: Vec<&MemoryEntry> = allowed
            .iter()
            .copied()
            .filter(|entry| terms.is_empty() || terms.iter().any(|term| entry.body.count(term) > 0))
            .collect();
        let ranked = if is_list {
            list_by_day(&matching, query.sort)
        } else if terms.is_empty() {
            Vec::new()
        } else {
            self.rank(query, &asked, question)
        };
        let wanted = HighlightTerms::new(&terms);
        let hits = ranked.into_iter().skip(query.offset).take(query.limit);
        SearchResults {
            hits: hits.map(|one| hit(&one, query, &wanted)).collect(),
            total: query.counts_total.then_some(matching.len() as u64),
            facets: query
                .facets
                .iter()
                .map(|name| facet(&matching, name))
                .collect(),
        }
    }

    /// The best entries: each half brings its best, as every engine does, and both are weighed.
    fn rank(
        &self,
        query: &Query,
        asked: &AnalyzedQuery,
        question: Option<&EmbeddedQuery<'_>>,
    ) -> Vec<FusionCandidate<RankedEntry<'s>>> {
        let terms = ranking::distinct(&asked.terms);
        let (words, pairs) = self.scores(&terms, &ranking::adjacent_pairs(&asked.terms));
        let mut all: Vec<RankedEntry<'_>> = self
            .entries
            .iter()
            .copied()
            .zip(words.into_iter().zip(pairs))
            .filter(|(entry, _)| entry.is_allowed(query, asked))
            .map(|(entry, (words, pairs))| {
                RankedEntry::new(entry, words, pairs, question.map(|asked| asked.vector))
            })
            .collect();
        let most = ranking::candidate_count(query.depth());
        all.sort_by(|left, right| right.words.total_cmp(&left.words));
        for (at, one) in all.iter_mut().enumerate() {
            one.is_candidate = at < most && one.words > 0.0;
        }
        let nearness = |one: &RankedEntry<'_>| one.semantic.unwrap_or(f32::MIN);
        all.sort_by(|left, right| nearness(right).total_cmp(&nearness(left)));
        for one in all.iter_mut().take(most) {
            one.is_candidate |= one.semantic.is_some();
        }
        all.retain(|one| one.is_candidate);
        let mut candidates: Vec<_> = all.into_iter().map(RankedEntry::into_candidate).collect();
        let signals = FusionSignals {
            words: fusion::count_words(&query.text),
            scale: self.scale.unwrap_or(CosineScale::GRANITE),
            weighing: query.method.fusion_method(),
            language: question.map_or(LanguageId::English, |asked| asked.language),
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

    /// What the words, and the words side by side, are worth in every entry.
    fn scores(&self, terms: &[&QueryTerm], pairs: &[TermPair<'_>]) -> (Vec<f32>, Vec<f32>) {
        let mut scores = vec![0.0; self.entries.len()];
        let mut together = scores.clone();
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
            self.add(&mut together, &body, PHRASE_WEIGHT, |entry| {
                (entry.body.count_pair(pair), &entry.body)
            });
        }
        (scores, together)
    }

    /// The languages of the documents, those of most documents first.
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

    /// Adds what one term or pair is worth in each entry.
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
        let rarity = weight * statistics.idf(with);
        for (score, entry) in scores.iter_mut().zip(self.entries.iter().copied()) {
            let (occurrences, field) = count(entry);
            *score += statistics.bm25(rarity, occurrences, field.length);
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
    fn is_allowed(&self, query: &Query, asked: &AnalyzedQuery) -> bool {
        let document = &self.mapped.document;
        query
            .filter
            .as_ref()
            .is_none_or(|filter| filter.matches(document))
            && asked
                .phrases
                .iter()
                .all(|phrase| self.body.contains_phrase(phrase))
            && !asked
                .excluded
                .iter()
                .any(|phrase| self.body.contains_phrase(phrase))
    }
}
