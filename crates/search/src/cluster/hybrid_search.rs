//! A query into its answer: both halves, what they say together, and the hits to show.

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

/// In how many documents, those whose words fit best, it is looked whether words stand side by side that
/// have to, or must not.
const MAX_PHRASE_CHECKED: usize = 1_000;

/// In how many it is looked what words side by side are worth: more than one page shows.
const MAX_PAIRED: usize = 64;

/// How many of the best are read together with them, because they will be shown.
const MAX_SHOWN: usize = 32;

/// The most documents of equal worth that are put in the order of their ids.
const MAX_TIED: usize = 4_096;

/// The most documents that are compared with each other for variety.
const MAX_MMR_CANDIDATES: usize = 200;

/// One document on its way to become a hit.
struct RankedVersion {
    version: String,
    id: String,
    words: f32,
    pairs: f32,
    semantic: Option<f32>,
    /// Whether the model does not know its language.
    is_foreign: bool,
    /// Its nearest passage.
    nearest: Option<Range<usize>>,
}

/// A question as the model sees it.
#[derive(Clone, Copy)]
struct QueryEmbedding<'q> {
    vector: &'q [f32],
    language: LanguageId,
}

/// What narrows both halves.
struct CandidateFilters {
    documents: QdrantFilter,
    passages: QdrantFilter,
    /// Whether only the documents tell what is excluded.
    is_post_filtered: bool,
}

impl ClusterView<'_> {
    pub(super) fn search(&self, query: &Query) -> Result<SearchResults, SearchError> {
        let mut asked = query.analyze(&self.languages()?);
        self.prefetch_frequencies(&asked.terms)?;
        spelling::correct(&mut asked.terms, self)?;
        let terms = ranking::distinct(&asked.terms);
        let narrowed = self.candidate_filters(query, &asked)?;
        let is_list =
            query.sort != SortOrder::Relevance || (terms.is_empty() && query.is_filtered());
        let matching = match terms.as_slice() {
            [] => narrowed.documents.clone(),
            terms => narrowed
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
                &asked,
                &narrowed,
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
        let wanted = HighlightTerms::new(&terms);
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
                wanted: &wanted,
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

    /// What a query allows, as conditions on documents and on passages.
    fn candidate_filters(
        &self,
        query: &Query,
        asked: &AnalyzedQuery,
    ) -> Result<CandidateFilters, SearchError> {
        let mut documents = self.visible.clone();
        let mut passages = self.visible_passages();
        if let Some(filter) = &query.filter {
            let condition = qdrant_filter::filter(filter);
            documents = documents.and(condition.clone());
            passages = passages.and(condition);
        }
        let (single, phrases): (Vec<_>, Vec<_>) =
            asked.excluded.iter().partition(|phrase| phrase.len() == 1);
        for term in single.iter().filter_map(|phrase| phrase.first()) {
            let forms: Vec<&str> = term.forms.iter().map(String::as_str).collect();
            documents = documents.not(any_term(&forms));
        }
        for phrase in &phrases {
            let with = self.phrase_matches(phrase, &documents)?;
            documents = documents.not(json!({"has_id": with}));
            passages = passages.not(json!({"key": DOCUMENT, "match": {"any": with}}));
        }
        for phrase in &asked.phrases {
            if let [term] = phrase.as_slice() {
                let forms: Vec<&str> = term.forms.iter().map(String::as_str).collect();
                documents = documents.and(any_term(&forms));
                continue;
            }
            let with = self.phrase_matches(phrase, &documents)?;
            documents = documents.and(json!({"has_id": with}));
            passages = passages.and(json!({"key": DOCUMENT, "match": {"any": with}}));
        }
        let is_checked_late =
            !single.is_empty() || asked.phrases.iter().any(|phrase| phrase.len() == 1);
        Ok(CandidateFilters {
            documents,
            passages,
            is_post_filtered: is_checked_late,
        })
    }

    /// The versions in which these terms stand side by side, among those that have all of them and whose
    /// words fit best.
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
        let mut standing = Vec::new();
        // Some at a time: a thousand documents need not be in memory together.
        for some in versions.chunks(MAX_PAIRED) {
            let known = self.documents_by_version(some)?;
            let holds = |version: &&String| {
                known
                    .get(*version)
                    .is_some_and(|known| known.body().contains_phrase(phrase))
            };
            standing.extend(some.iter().filter(holds).cloned());
        }
        Ok(standing)
    }

    /// The best documents, best first, as many as have to be known for the hits asked for.
    fn rank(
        &self,
        query: &Query,
        asked: &AnalyzedQuery,
        narrowed: &CandidateFilters,
        question: Option<QueryEmbedding<'_>>,
    ) -> Result<Vec<FusionCandidate<RankedVersion>>, SearchError> {
        let language = question.map_or(LanguageId::English, |asked| asked.language);
        let question = question.map(|asked| asked.vector);
        let weights = self.query_weights(&ranking::distinct(&asked.terms))?;
        let most = ranking::candidate_count(query.depth());
        // Both halves at once: neither needs the other.
        let (worded, near) = join(
            || self.top_lexical(&weights, &narrowed.documents, most),
            || match question {
                Some(question) => self.top_semantic(question, narrowed, most),
                None => Ok(NearestByVersion::new()),
            },
        );
        let (worded, near) = (worded?, near?);
        let is_full = worded.len() >= most;
        let mut ranked: Vec<RankedVersion> = worded.into_iter().map(RankedVersion::from).collect();
        if let Some(question) = question {
            // Each document found by one half is weighed by the other, both at once.
            let open = ranked.iter().filter(|one| !near.contains_key(&one.version));
            let far: Vec<String> = open.map(|one| one.version.clone()).collect();
            let found: HashSet<&str> = ranked.iter().map(|one| one.version.as_str()).collect();
            let new = near.keys().map(String::as_str);
            let new: Vec<&str> = new.filter(|one| !found.contains(one)).collect();
            let (far, new) = join(
                || self.score_versions(question, &far),
                || self.score_semantic_only(&new, &narrowed.documents, is_full.then_some(&weights)),
            );
            let (far, new) = (far?, new?);
            ranked.extend(new.into_iter().map(RankedVersion::from));
            for one in &mut ranked {
                if let Some(near) = near.get(&one.version).or_else(|| far.get(&one.version)) {
                    one.semantic = Some(near.semantic);
                    one.nearest = near.passages.first().cloned();
                }
                // While vectors are still made nobody knows why one is missing.
                one.is_foreign = self.head.whole && one.semantic.is_none();
            }
        }
        let signals = FusionSignals {
            words: fusion::count_words(&query.text),
            scale: self
                .model
                .as_ref()
                .map_or(CosineScale::GRANITE, |model| model.embedder.scale()),
            weighing: query.method.fusion_method(),
            language,
        };
        let mut candidates: Vec<_> = ranked
            .into_iter()
            .map(RankedVersion::into_candidate)
            .collect();
        fusion::fuse(&signals, &mut candidates);
        let by_id = |left: &RankedVersion, right: &RankedVersion| left.id.cmp(&right.id);
        fusion::keep_best(&mut candidates, usize::MAX, by_id);
        if self.add_pair_scores(asked, &weights, &mut candidates, query.depth())? {
            candidates = candidates
                .into_iter()
                .map(|one| one.item.into_candidate())
                .collect();
            fusion::fuse(&signals, &mut candidates);
        }
        candidates.retain(|one| query.method != RankingMethod::Hybrid || one.passes_floor());
        let keep = if query.diversity > 0.0 {
            MAX_MMR_CANDIDATES.max(query.depth())
        } else {
            query.depth()
        };
        fusion::keep_best(&mut candidates, keep, by_id);
        Ok(candidates)
    }

    /// The documents whose words fit best. Where the last of them are equals, all equals are looked at,
    /// since among these the order of the ids decides.
    fn top_lexical(
        &self,
        weights: &QueryWeights,
        conditions: &QdrantFilter,
        most: usize,
    ) -> Result<Vec<LexicalMatch>, SearchError> {
        let mut asked = most;
        loop {
            let mut found = self.search_lexical(weights, conditions, asked)?;
            let last = found.last().map(|one| one.score);
            let edge = found.get(most.saturating_sub(1)).map(|one| one.score);
            let may_be_more = found.len() >= asked && last == edge && asked < MAX_TIED;
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
            asked = (asked * 4).min(MAX_TIED);
        }
    }

    /// The documents nearest to a question.
    fn top_semantic(
        &self,
        question: &[f32],
        narrowed: &CandidateFilters,
        most: usize,
    ) -> Result<NearestByVersion, SearchError> {
        let most = if narrowed.is_post_filtered {
            most.saturating_mul(4)
        } else {
            most
        };
        self.nearest(question, &narrowed.passages, most)
    }

    /// The documents that were found by their meaning alone, with what their words are worth where they may
    /// have some. The documents themselves say whether they still count.
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

    /// Adds what words side by side are worth in the best documents; false when that can be nothing.
    fn add_pair_scores(
        &self,
        asked: &AnalyzedQuery,
        weights: &QueryWeights,
        candidates: &mut [FusionCandidate<RankedVersion>],
        depth: usize,
    ) -> Result<bool, SearchError> {
        let pairs = ranking::adjacent_pairs(&asked.terms);
        // What is shown most likely, so that it need not be read apart.
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
            let worth = pairs.iter().map(|pair| {
                let rare = weights.pair_idf(pair.first, pair.second);
                PHRASE_WEIGHT
                    * rare
                    * term_frequency_weight(body.count_pair(pair), body.length, mean)
            });
            one.item.pairs = worth.sum();
        }
        Ok(true)
    }

    /// Puts variety into the hits that are shown.
    fn diversify(
        &self,
        query: &Query,
        ranked: &mut [FusionCandidate<RankedVersion>],
    ) -> Result<(), SearchError> {
        let versions: Vec<String> = ranked
            .iter()
            .take(MAX_MMR_CANDIDATES)
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
    fn from(worded: LexicalMatch) -> Self {
        Self {
            version: worded.version,
            id: worded.id,
            words: worded.score,
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
