//! The primitives of the search pipeline, on a cluster.

use std::borrow::{Borrow, Cow};
use std::cmp::Ordering;
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
use crate::analysis::{Language, QueryTerm};
use crate::embedder::ModelLanguages;
use crate::error::SearchError;
use crate::fusion::CosineScale;
use crate::hit::FacetCounts;
use crate::pipeline::{Candidate, CrossScoring, IndexView, LexicalHits, WordQuery};
use crate::query::{AnalyzedQuery, Query, SortOrder};
use crate::ranking::PHRASE_WEIGHT;
use crate::snippet::DisplayDocument;
use crate::spelling;
use crate::term_positions::term_frequency_weight;

/// How many documents, those with the best BM25 scores, are checked for a phrase that is required or
/// excluded.
const MAX_PHRASE_CHECKED: usize = 1_000;

/// How many documents are read at a time to check them for a phrase: a thousand need not be in memory together.
const PHRASE_CHUNK: usize = 64;

/// The most documents of equal score that are sorted by id.
const MAX_TIED: usize = 4_096;

/// A version of a document while it is ranked, with the passages known to be nearest to the query. Its id is
/// empty until the documents collection has confirmed the version.
pub(super) struct VersionHandle {
    pub version: String,
    pub id: String,
    pub nearest: Vec<Range<usize>>,
    /// The document, once it is read. Only what the reader may see is kept here.
    pub known: Option<Arc<CachedVersion>>,
}

impl VersionHandle {
    fn new(version: String, id: String) -> Self {
        Self {
            version,
            id,
            nearest: Vec::new(),
            known: None,
        }
    }
}

/// The filters that both halves of the search share.
pub(super) struct CandidateFilters {
    documents: QdrantFilter,
    passages: QdrantFilter,
    /// Whether an exclusion or a phrase of one word is checked on documents only, after the vector query.
    is_post_filtered: bool,
}

impl Borrow<DisplayDocument> for Arc<CachedVersion> {
    fn borrow(&self) -> &DisplayDocument {
        self.display()
    }
}

impl IndexView for ClusterView<'_> {
    type Document = VersionHandle;
    type CandidateSet = CandidateFilters;
    type MatchSet = QdrantFilter;
    type TermWeights = QueryWeights;
    type QueryVector = Arc<Vec<f32>>;
    type Display = Arc<CachedVersion>;

    /// More than one page shows.
    const MAX_PROXIMITY_CANDIDATES: usize = 64;

    fn languages(&self) -> Result<Cow<'_, [Language]>, SearchError> {
        Ok(Cow::Owned(self.visible_languages()?))
    }

    fn correct_spelling(&self, terms: &mut Vec<QueryTerm>) -> Result<(), SearchError> {
        self.prefetch_frequencies(terms)?;
        spelling::correct(terms, self)
    }

    fn restrict(
        &self,
        query: &Query,
        analyzed: &AnalyzedQuery,
    ) -> Result<CandidateFilters, SearchError> {
        self.candidate_filters(query, analyzed)
    }

    fn matches(
        &self,
        candidates: &CandidateFilters,
        forms: &[&str],
    ) -> Result<QdrantFilter, SearchError> {
        let documents = candidates.documents.clone();
        Ok(match forms {
            [] => documents,
            forms => documents.and(any_term(forms)),
        })
    }

    fn model_languages(&self) -> Option<ModelLanguages> {
        self.model.as_ref().map(|model| model.embedder.languages())
    }

    fn embed(&self, text: &str) -> Option<(Arc<Vec<f32>>, CosineScale)> {
        let model = self.model.as_ref()?;
        Some((model.embed_query(text)?, model.embedder.scale()))
    }

    fn weigh(&self, terms: &[&QueryTerm]) -> Result<QueryWeights, SearchError> {
        self.query_weights(terms)
    }

    fn best_by_words(
        &self,
        words: &WordQuery<'_, QueryWeights>,
        candidates: &CandidateFilters,
        most: usize,
    ) -> Result<LexicalHits<VersionHandle>, SearchError> {
        let found = self.top_lexical(&words.weights, &candidates.documents, most)?;
        Ok(LexicalHits {
            complete: found.len() < most,
            found: found.into_iter().map(Candidate::from).collect(),
        })
    }

    fn nearest(
        &self,
        vector: &Arc<Vec<f32>>,
        candidates: &CandidateFilters,
        most: usize,
    ) -> Result<Vec<Candidate<VersionHandle>>, SearchError> {
        let near = self.top_semantic(vector, candidates, most)?.into_iter();
        let near = near.map(|(version, near)| {
            let document = VersionHandle {
                nearest: near.passages,
                ..VersionHandle::new(version, String::new())
            };
            Candidate::with_cosine(document, near.semantic)
        });
        Ok(near.collect())
    }

    /// The documents collection decides whether a version is still live and matches.
    fn score_words(
        &self,
        words: &WordQuery<'_, QueryWeights>,
        candidates: &CandidateFilters,
        mut found: Vec<Candidate<VersionHandle>>,
        complete: bool,
    ) -> Result<Vec<Candidate<VersionHandle>>, SearchError> {
        if found.is_empty() {
            return Ok(found);
        }
        let versions: Vec<&str> = found
            .iter()
            .map(|one| one.document.version.as_str())
            .collect();
        let these = candidates.documents.clone();
        let these = these.and(json!({"has_id": versions}));
        let weights = (!complete).then_some(&words.weights);
        let mut scored = self.score_lexical(weights, &these, versions.len())?;
        scored.sort_unstable_by(|left, right| left.version.cmp(&right.version));
        found.retain_mut(|one| {
            let at = scored.binary_search_by(|scored| scored.version.cmp(&one.document.version));
            let Some(scored) = at.ok().and_then(|at| scored.get_mut(at)) else {
                return false;
            };
            one.bm25 = scored.score;
            one.document.id = std::mem::take(&mut scored.id);
            true
        });
        Ok(found)
    }

    fn score_meaning(
        &self,
        vector: &Arc<Vec<f32>>,
        found: &mut [&mut Candidate<VersionHandle>],
    ) -> Result<(), SearchError> {
        let versions = found.iter().map(|one| one.document.version.clone());
        let mut near = self.score_versions(vector, &versions.collect::<Vec<_>>())?;
        for one in found {
            if let Some(near) = near.remove(&one.document.version) {
                one.cosine = Some(near.semantic);
                one.document.nearest = near.passages;
            }
        }
        Ok(())
    }

    /// While vectors are incomplete, not every document can be read with its passages. And documents alone know of
    /// exclusions and phrases.
    fn reads_when_scoring(&self, candidates: &CandidateFilters) -> bool {
        self.head.vectors_complete && !candidates.is_post_filtered
    }

    fn cross_score(
        &self,
        found: CrossScoring<'_, Self>,
    ) -> Result<Vec<Candidate<VersionHandle>>, SearchError> {
        if found.is_promising {
            self.score_and_read(found)
        } else {
            found.half_by_half(self)
        }
    }

    fn score_proximity(
        &self,
        words: &WordQuery<'_, QueryWeights>,
        found: &mut [&mut Candidate<VersionHandle>],
    ) -> Result<(), SearchError> {
        let documents: Vec<&VersionHandle> = found.iter().map(|one| &one.document).collect();
        let known = self.known_or_read(&documents)?;
        let [mean, _] = self.head.means;
        for (one, known) in found.iter_mut().zip(known) {
            let Some(known) = known else {
                continue;
            };
            let body = known.body();
            let bonuses = words.pairs.iter().map(|pair| {
                let idf = words.weights.pair_idf(pair.first, pair.second);
                let occurrences = body.count_pair(pair);
                PHRASE_WEIGHT * idf * term_frequency_weight(occurrences, body.length, mean)
            });
            one.add_proximity(bonuses.sum());
        }
        Ok(())
    }

    /// While vectors are incomplete, a missing one says nothing about the language.
    fn is_embedded(&self, _vector: &Arc<Vec<f32>>, _document: &VersionHandle) -> bool {
        self.head.vectors_complete
    }

    fn by_day(
        &self,
        matches: &QdrantFilter,
        sort: SortOrder,
        most: usize,
    ) -> Result<Vec<VersionHandle>, SearchError> {
        let listed = self.list_by_day(matches, sort, most)?.into_iter();
        Ok(listed
            .map(|one| VersionHandle::new(one.version, one.id))
            .collect())
    }

    fn count(&self, matches: &QdrantFilter) -> Result<u64, SearchError> {
        self.count_documents(&matches.json(), true)
    }

    fn facets(
        &self,
        matches: &QdrantFilter,
        fields: &[String],
    ) -> Result<Vec<FacetCounts>, SearchError> {
        self.facet_counts(matches, fields)
    }

    fn read(
        &self,
        documents: &[&VersionHandle],
    ) -> Result<Vec<Option<Arc<CachedVersion>>>, SearchError> {
        self.known_or_read(documents)
    }

    fn prefetch_passages(
        &self,
        vector: &Arc<Vec<f32>>,
        shown: &mut [&mut VersionHandle],
    ) -> Result<(), SearchError> {
        let versions: Vec<String> = shown.iter().map(|one| one.version.clone()).collect();
        let mut nearest = self.nearest_passages(vector, &versions)?;
        for one in shown {
            if let Some(near) = nearest.remove(&one.version) {
                one.nearest = near.passages;
            }
        }
        Ok(())
    }

    fn passages(&self, _vector: &Arc<Vec<f32>>, document: &VersionHandle) -> Vec<Range<usize>> {
        document.nearest.clone()
    }

    fn by_handle(left: &VersionHandle, right: &VersionHandle) -> Ordering {
        left.version.cmp(&right.version)
    }

    fn by_id(&self, left: &VersionHandle, right: &VersionHandle) -> Ordering {
        left.id.cmp(&right.id)
    }

    fn absorb(known: &mut VersionHandle, near: &mut VersionHandle) {
        known.nearest = std::mem::take(&mut near.nearest);
    }

    fn both<A: Send, B: Send>(
        first: impl FnOnce() -> Result<A, SearchError> + Send,
        second: impl FnOnce() -> Result<B, SearchError> + Send,
    ) -> (Result<A, SearchError>, Result<B, SearchError>) {
        join(first, second)
    }
}

impl ClusterView<'_> {
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
        for some in versions.chunks(PHRASE_CHUNK) {
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

    /// The documents with the best BM25 scores. When the last of them are tied, all ties are fetched, because
    /// ids break ties.
    fn top_lexical(
        &self,
        weights: &QueryWeights,
        conditions: &QdrantFilter,
        most: usize,
    ) -> Result<Vec<LexicalMatch>, SearchError> {
        // A few more, so that a short row of ties needs no second request.
        let mut limit = most + most / 4;
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
        self.nearest_versions(query_vector, &filters.passages, most)
    }
}

impl From<LexicalMatch> for Candidate<VersionHandle> {
    fn from(found: LexicalMatch) -> Self {
        Self::with_words(VersionHandle::new(found.version, found.id), found.score)
    }
}
