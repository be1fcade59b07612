//! Hybrid search: runs the lexical and the semantic half of a query, fuses their scores, and builds the hits
//! to show.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use serde_json::json;

use super::caches::CachedVersion;
use super::layout::DOCUMENT;
use super::lexical_search::{LexicalMatch, QueryWeights};
use super::parallel::join;
use super::qdrant_filter::{self, QdrantFilter, all_terms, any_term};
use super::vector_search::NearestByVersion;
use super::view::ClusterView;
use crate::analysis::{LanguageId, QueryTerm};
use crate::error::SearchError;
use crate::fusion::{self, CosineScale, FusionCandidate, FusionSignals};
use crate::hit::SearchResults;
use crate::query::{AnalyzedQuery, Query, RankingMethod, SortOrder, query_language};
use crate::ranking::{self, PHRASE_WEIGHT};
use crate::snippet::{HighlightTerms, HitContext};
use crate::spelling;
use crate::term_positions::term_frequency_weight;

/// How many documents, those with the best BM25 scores, are checked for a phrase that is required or
/// excluded.
const MAX_PHRASE_CHECKED: usize = 1_000;

/// How many get a bonus for adjacent query terms: more than one page shows.
const MAX_PAIRED: usize = 64;

/// How many of the best documents are read in the same request, because they will be shown.
const MAX_SHOWN: usize = 32;

/// The most documents of equal score that are sorted by id.
const MAX_TIED: usize = 4_096;

/// A candidate on its way to become a hit: its BM25 score in `words`, the bonus for adjacent terms in
/// `pairs`, its similarity and its nearest passage. It is foreign when the model does not know its language.
struct RankedVersion {
    version: String,
    id: String,
    words: f32,
    pairs: f32,
    semantic: Option<f32>,
    is_foreign: bool,
    nearest: Option<Range<usize>>,
}

/// The embedded query with the language it is taken to be in.
#[derive(Clone, Copy)]
struct QueryEmbedding<'q> {
    vector: &'q [f32],
    language: LanguageId,
}

/// The filters that both halves of the search share.
struct CandidateFilters {
    documents: QdrantFilter,
    passages: QdrantFilter,
    /// Whether an exclusion or a phrase of one word is checked on documents only, after the vector query.
    is_post_filtered: bool,
}

impl ClusterView<'_> {
    pub(super) fn search(&self, query: &Query) -> Result<SearchResults, SearchError> {
        let mut analyzed = query.analyze(&self.languages()?);
        self.prefetch_frequencies(&analyzed.terms)?;
        spelling::correct(&mut analyzed.terms, self)?;
        let terms = ranking::distinct(&analyzed.terms);
        let filters = self.candidate_filters(query, &analyzed)?;
        let is_list =
            query.sort != SortOrder::Relevance || (terms.is_empty() && query.is_filtered());
        let matching = match terms.as_slice() {
            [] => filters.documents.clone(),
            terms => filters
                .documents
                .clone()
                .and(any_term(&ranking::forms(terms))),
        };
        let is_ranked = !is_list && !terms.is_empty() && query.method != RankingMethod::Lexical;
        let model = self.model.as_ref().filter(|_| is_ranked);
        let language = model.map_or(LanguageId::English, |model| {
            query_language(query, model.embedder.languages())
        });
        let model = model.filter(|_| language != LanguageId::Foreign);
        let question = model.and_then(|model| model.embed_query(&query.text));
        let mut ranked = if is_list {
            self.list_by_day(&matching, query)?
        } else if terms.is_empty() {
            Vec::new()
        } else {
            self.rank(
                query,
                &analyzed,
                &filters,
                question
                    .as_deref()
                    .map(|vector| QueryEmbedding { vector, language }),
            )?
        };
        if query.diversity > 0.0 && !is_list {
            self.diversify(query, &mut ranked)?;
        }
        let hits = ranked.into_iter().skip(query.offset).take(query.limit);
        let hits: Vec<_> = hits.collect();
        let versions: Vec<String> = hits.iter().map(|one| one.item.version.clone()).collect();
        let known = self.documents_by_version(&versions)?;
        let highlights = HighlightTerms::new(&terms);
        let nearest = match &question {
            Some(question) if query.excerpts => self.nearest_passages(question, &versions)?,
            _ => NearestByVersion::new(),
        };
        let shown = hits.iter().filter_map(|one| {
            let known = known.get(&one.item.version)?;
            let near = || match nearest.get(&one.item.version) {
                Some(near) => near.passages.clone(),
                None => one.item.nearest.clone().into_iter().collect(),
            };
            Some(known.mapped.hit(&HitContext {
                score: one.parts.score,
                near: &near,
                excerpts: query.excerpts,
                wanted: &highlights,
                why: one.explanation(one.item.pairs),
            }))
        });
        Ok(SearchResults {
            hits: shown.collect(),
            total: if query.counts_total {
                Some(self.count(&matching.json(), true)?)
            } else {
                None
            },
            facets: self.facets(&matching, &query.facets)?,
        })
    }

    fn list_by_day(
        &self,
        matching: &QdrantFilter,
        query: &Query,
    ) -> Result<Vec<FusionCandidate<RankedVersion>>, SearchError> {
        let list = self.by_day(matching, query.sort, query.depth())?;
        let ranked = list.into_iter().map(|one| RankedVersion {
            version: one.version,
            id: one.id,
            words: 0.0,
            pairs: 0.0,
            semantic: None,
            is_foreign: false,
            nearest: None,
        });
        Ok(ranked.map(FusionCandidate::listed).collect())
    }

    /// The filters of a query on documents and on passages.
    fn candidate_filters(
        &self,
        query: &Query,
        analyzed: &AnalyzedQuery,
    ) -> Result<CandidateFilters, SearchError> {
        let mut documents = self.visible.clone();
        let mut passages = self.visible_passages();
        if let Some(filter) = &query.filter {
            let condition = qdrant_filter::filter(filter);
            documents = documents.and(condition.clone());
            passages = passages.and(condition);
        }
        let (single, phrases): (Vec<_>, Vec<_>) = analyzed
            .excluded
            .iter()
            .partition(|phrase| phrase.len() == 1);
        for term in single.iter().filter_map(|phrase| phrase.first()) {
            let forms: Vec<&str> = term.forms.iter().map(String::as_str).collect();
            documents = documents.not(any_term(&forms));
        }
        for phrase in &phrases {
            let with = self.phrase_matches(phrase, &documents)?;
            documents = documents.not(json!({"has_id": with}));
            passages = passages.not(json!({"key": DOCUMENT, "match": {"any": with}}));
        }
        for phrase in &analyzed.phrases {
            if let [term] = phrase.as_slice() {
                let forms: Vec<&str> = term.forms.iter().map(String::as_str).collect();
                documents = documents.and(any_term(&forms));
                continue;
            }
            let with = self.phrase_matches(phrase, &documents)?;
            documents = documents.and(json!({"has_id": with}));
            passages = passages.and(json!({"key": DOCUMENT, "match": {"any": with}}));
        }
        let is_post_filtered =
            !single.is_empty() || analyzed.phrases.iter().any(|phrase| phrase.len() == 1);
        Ok(CandidateFilters {
            documents,
            passages,
            is_post_filtered,
        })
    }

    /// The versions in which these terms are adjacent, among the [`MAX_PHRASE_CHECKED`] with all of them and
    /// the best BM25 scores.
    fn phrase_matches(
        &self,
        phrase: &[QueryTerm],
        conditions: &QdrantFilter,
    ) -> Result<Vec<String>, SearchError> {
        let terms: Vec<&QueryTerm> = phrase.iter().collect();
        let weights = self.query_weights(&terms)?;
        let with_all = conditions.clone().and(all_terms(phrase));
        let found = self.search_lexical(&weights, &with_all, MAX_PHRASE_CHECKED)?;
        let versions: Vec<String> = found.into_iter().map(|one| one.version).collect();
        let mut matching = Vec::new();
        // In chunks: a thousand documents need not be in memory together.
        for some in versions.chunks(MAX_PAIRED) {
            let known = self.documents_by_version(some)?;
            let has_phrase = |version: &&String| {
                known
                    .get(*version)
                    .is_some_and(|known| known.body().contains_phrase(phrase))
            };
            matching.extend(some.iter().filter(has_phrase).cloned());
        }
        Ok(matching)
    }

    /// The best candidates, best first, as many as the requested page needs.
    fn rank(
        &self,
        query: &Query,
        analyzed: &AnalyzedQuery,
        filters: &CandidateFilters,
        question: Option<QueryEmbedding<'_>>,
    ) -> Result<Vec<FusionCandidate<RankedVersion>>, SearchError> {
        let language = question.map_or(LanguageId::English, |question| question.language);
        let question = question.map(|question| question.vector);
        let weights = self.query_weights(&ranking::distinct(&analyzed.terms))?;
        let most = ranking::candidate_count(query.depth());
        // Both halves run in parallel, because neither needs the other.
        let (lexical, near) = join(
            || self.top_lexical(&weights, &filters.documents, most),
            || match question {
                Some(question) => self.top_semantic(question, filters, most),
                None => Ok(NearestByVersion::new()),
            },
        );
        let (lexical, near) = (lexical?, near?);
        let is_full = lexical.len() >= most;
        let mut ranked: Vec<RankedVersion> = lexical.into_iter().map(RankedVersion::from).collect();
        if let Some(question) = question {
            // Each half scores the documents that only the other one found, again in parallel.
            let open = ranked.iter().filter(|one| !near.contains_key(&one.version));
            let far: Vec<String> = open.map(|one| one.version.clone()).collect();
            let found: HashSet<&str> = ranked.iter().map(|one| one.version.as_str()).collect();
            let new = near.keys().map(String::as_str);
            let new: Vec<&str> = new.filter(|one| !found.contains(one)).collect();
            let (far, new) = join(
                || self.score_versions(question, &far),
                || self.score_semantic_only(&new, &filters.documents, is_full.then_some(&weights)),
            );
            let (far, new) = (far?, new?);
            ranked.extend(new.into_iter().map(RankedVersion::from));
            for one in &mut ranked {
                if let Some(near) = near.get(&one.version).or_else(|| far.get(&one.version)) {
                    one.semantic = Some(near.semantic);
                    one.nearest = near.passages.first().cloned();
                }
                // While vectors are incomplete, a missing one says nothing about the language.
                one.is_foreign = self.head.vectors_complete && one.semantic.is_none();
            }
        }
        let signals = FusionSignals {
            words: fusion::count_words(&query.text),
            scale: self
                .model
                .as_ref()
                .map_or(CosineScale::GRANITE, |model| model.embedder.scale()),
            method: query.method.fusion_method(),
            language,
        };
        let mut candidates: Vec<_> = ranked
            .into_iter()
            .map(RankedVersion::into_candidate)
            .collect();
        fusion::fuse(&signals, &mut candidates);
        let by_id = |left: &RankedVersion, right: &RankedVersion| left.id.cmp(&right.id);
        fusion::keep_best(&mut candidates, usize::MAX, by_id);
        if self.add_pair_scores(analyzed, &weights, &mut candidates, query.depth())? {
            candidates = candidates
                .into_iter()
                .map(|one| one.item.into_candidate())
                .collect();
            fusion::fuse(&signals, &mut candidates);
        }
        candidates.retain(|one| query.method != RankingMethod::Hybrid || one.passes_floor());
        let keep = fusion::candidates_to_keep(query.depth(), query.diversity);
        fusion::keep_best(&mut candidates, keep, by_id);
        Ok(candidates)
    }

    /// The documents with the best BM25 scores. When the last of them are tied, all ties are fetched, because
    /// ids break ties.
    fn top_lexical(
        &self,
        weights: &QueryWeights,
        conditions: &QdrantFilter,
        most: usize,
    ) -> Result<Vec<LexicalMatch>, SearchError> {
        let mut limit = most;
        loop {
            let mut found = self.search_lexical(weights, conditions, limit)?;
            let last = found.last().map(|one| one.score);
            let edge = found.get(most.saturating_sub(1)).map(|one| one.score);
            let may_be_more = found.len() >= limit && last == edge && limit < MAX_TIED;
            if !may_be_more {
                found.sort_by(|left, right| {
                    right
                        .score
                        .total_cmp(&left.score)
                        .then_with(|| left.id.cmp(&right.id))
                });
                found.truncate(most);
                return Ok(found);
            }
            limit = (limit * 4).min(MAX_TIED);
        }
    }

    /// The documents nearest to a query vector, four times as many where some are filtered out later.
    fn top_semantic(
        &self,
        query_vector: &[f32],
        filters: &CandidateFilters,
        most: usize,
    ) -> Result<NearestByVersion, SearchError> {
        let most = if filters.is_post_filtered {
            most.saturating_mul(4)
        } else {
            most
        };
        self.nearest(query_vector, &filters.passages, most)
    }

    /// The documents that only semantic search found, with BM25 scores where they may have some. The
    /// documents collection decides whether a version is still live and matches.
    fn score_semantic_only(
        &self,
        versions: &[&str],
        conditions: &QdrantFilter,
        weights: Option<&QueryWeights>,
    ) -> Result<Vec<LexicalMatch>, SearchError> {
        if versions.is_empty() {
            return Ok(Vec::new());
        }
        let these = conditions.clone().and(json!({"has_id": versions}));
        self.score_lexical(weights, &these, versions.len())
    }

    /// Adds the bonus for adjacent query terms to the best documents; false when there can be none.
    fn add_pair_scores(
        &self,
        analyzed: &AnalyzedQuery,
        weights: &QueryWeights,
        candidates: &mut [FusionCandidate<RankedVersion>],
        depth: usize,
    ) -> Result<bool, SearchError> {
        let pairs = ranking::adjacent_pairs(&analyzed.terms);
        // The documents that are most likely shown are read in the same request.
        let shown = candidates.iter().take(depth.min(MAX_SHOWN));
        let mut versions: Vec<String> = shown.map(|one| one.item.version.clone()).collect();
        let best = candidates
            .iter_mut()
            .filter(|one| one.item.words > 0.0)
            .take(MAX_PAIRED);
        let best: Vec<&mut FusionCandidate<RankedVersion>> = best.collect();
        if pairs.is_empty() || best.is_empty() {
            return Ok(false);
        }
        let paired = best.iter().map(|one| &one.item.version);
        let open = paired.filter(|one| !versions.contains(one)).cloned();
        let open: Vec<String> = open.collect();
        versions.extend(open);
        let known: HashMap<String, Arc<CachedVersion>> = self.documents_by_version(&versions)?;
        let [mean, _] = self.head.means;
        for one in best {
            let Some(known) = known.get(&one.item.version) else {
                continue;
            };
            let body = known.body();
            let bonuses = pairs.iter().map(|pair| {
                let idf = weights.pair_idf(pair.first, pair.second);
                PHRASE_WEIGHT
                    * idf
                    * term_frequency_weight(body.count_pair(pair), body.length, mean)
            });
            one.item.pairs = bonuses.sum();
        }
        Ok(true)
    }

    /// Diversifies the hits that are shown, by maximal marginal relevance (MMR).
    fn diversify(
        &self,
        query: &Query,
        ranked: &mut [FusionCandidate<RankedVersion>],
    ) -> Result<(), SearchError> {
        let versions: Vec<String> = ranked
            .iter()
            .take(fusion::MAX_MMR_CANDIDATES)
            .map(|one| one.item.version.clone())
            .collect();
        let known = self.documents_by_version(&versions)?;
        fusion::maximal_marginal_relevance(
            ranked,
            query.diversity,
            query.depth(),
            |left, right| match (known.get(&left.version), known.get(&right.version)) {
                (Some(left), Some(right)) => left.mapped.jaccard_similarity(&right.mapped),
                _ => 0.0,
            },
        );
        Ok(())
    }
}

impl From<LexicalMatch> for RankedVersion {
    fn from(found: LexicalMatch) -> Self {
        Self {
            version: found.version,
            id: found.id,
            words: found.score,
            pairs: 0.0,
            semantic: None,
            is_foreign: false,
            nearest: None,
        }
    }
}

impl RankedVersion {
    fn into_candidate(self) -> FusionCandidate<Self> {
        let (lexical, semantic) = (self.words + self.pairs, self.semantic);
        let is_foreign = self.is_foreign;
        FusionCandidate::new(self, Some(lexical), semantic).foreign(is_foreign)
    }
}
