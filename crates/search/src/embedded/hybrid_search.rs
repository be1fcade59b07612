//! Hybrid search: runs the lexical and the semantic half of a query, fuses their scores, and builds the hits
//! to show.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::EmbeddedInner;
use super::candidate_set::{self, SegmentedDocSet};
use super::id_order::DEEP_PAGING;
use super::lexical::{self, LexicalSearch};
use super::listing;
use super::semantic_index::SemanticQuery;
use super::snapshot::IndexSnapshot;
use super::term_dictionary::TermDictionary;
use super::visibility_cache::ReaderVisibility;
use crate::analysis::LanguageId;
use crate::error::SearchError;
use crate::fusion::{self, CosineScale, FusionCandidate, FusionSignals};
use crate::hit::SearchResults;
use crate::query::{self, Query, RankingMethod, SortOrder};
use crate::ranking;
use crate::snippet::{HighlightTerms, HitContext};
use crate::spelling;
use crate::vectors;

/// How many threads scan vectors for one answer.
const THREADS: usize = 2;

/// Candidates on their way to become hits. They stay in `found`; `order` sorts their indexes.
#[derive(Default)]
struct RankedHits {
    found: Vec<lexical::LexicalHit>,
    order: Vec<FusionCandidate<usize>>,
}

impl EmbeddedInner {
    /// Whether the answer needs no embedding model, or a query embedding that is cached.
    pub(super) fn is_cheap(&self, query: &Query) -> bool {
        let snapshot = self.snapshot();
        let (Some(semantic), Some(views)) = (&self.semantic, &snapshot.vectors) else {
            return true;
        };
        query.method == RankingMethod::Lexical
            || query::query_language(query, semantic.languages(views)) == LanguageId::Foreign
            || semantic.is_query_cached(&query.text, views)
    }

    pub(super) fn search(&self, query: &Query) -> Result<SearchResults, SearchError> {
        let snapshot = self.snapshot();
        let map_error = |source| self.index_error(source);
        let visibility = snapshot.visibility(query.reader()).map_err(map_error)?;
        if query.depth() > DEEP_PAGING {
            snapshot.order_ids();
        }
        let analyzed = self.analyze_query(&snapshot, &visibility, query)?;
        let terms = ranking::distinct(&analyzed.terms);
        let allowed = candidate_set::allowed_documents(
            &snapshot,
            &visibility,
            &self.fields,
            query,
            &analyzed,
        )
        .map_err(map_error)?;
        let is_list =
            query.sort != SortOrder::Relevance || (terms.is_empty() && query.is_filtered());
        let matching = if is_list || query.counts_total || !query.facets.is_empty() {
            let matching = candidate_set::matching(
                &snapshot,
                &self.fields,
                &ranking::forms(&terms),
                allowed.as_deref(),
            );
            Some(matching.map_err(map_error)?)
        } else {
            None
        };
        let semantic_query = if is_list || terms.is_empty() {
            None
        } else {
            self.embed_query(&snapshot, query)
        };
        let mut ranked = match &matching {
            Some(matching) if is_list => RankedHits::listed(&snapshot, matching, query),
            _ if terms.is_empty() => RankedHits::default(),
            _ => {
                let lexical = LexicalSearch {
                    snapshot: &snapshot,
                    fields: &self.fields,
                    terms: &analyzed.terms,
                    distinct: &terms,
                    allowed: allowed.as_deref(),
                    visibility: &visibility,
                };
                self.rank(&lexical, query, semantic_query.as_ref())?
            }
        };
        if query.diversity > 0.0 && !is_list {
            self.diversify(&snapshot, query, &mut ranked)?;
        }
        let highlights = HighlightTerms::new(&terms);
        let shown = ranked.shown(query.offset).take(query.limit);
        let hits = shown.map(|(one, found)| {
            let at = found.at;
            let near = || match &semantic_query {
                Some(semantic_query) => semantic_query.passages(snapshot.ordinal(at)),
                None => Vec::new(),
            };
            Ok(self.displayable(&snapshot, at)?.hit(&HitContext {
                score: one.parts.score,
                near: &near,
                excerpts: query.excerpts,
                wanted: &highlights,
                why: one.explanation(found.pairs),
            }))
        });
        let hits = hits.collect::<Result<_, SearchError>>()?;
        let facets = match &matching {
            Some(matching) => listing::facets(&snapshot, &self.fields, matching, &query.facets),
            None => Ok(Vec::new()),
        };
        let counted = matching.as_ref().filter(|_| query.counts_total);
        Ok(SearchResults {
            hits,
            total: counted.map(SegmentedDocSet::count),
            facets: facets.map_err(map_error)?,
        })
    }

    /// The terms of a query in the languages of the documents its reader sees, with typos corrected.
    pub(super) fn analyze_query(
        &self,
        snapshot: &IndexSnapshot,
        visibility: &ReaderVisibility,
        query: &Query,
    ) -> Result<query::AnalyzedQuery, SearchError> {
        let mut analyzed = query.analyze(&visibility.languages);
        let words = TermDictionary {
            snapshot,
            fields: &self.fields,
            visible: visibility.documents().map(Arc::as_ref),
        };
        let corrected = spelling::correct(&mut analyzed.terms, &words);
        corrected.map_err(|source| self.index_error(source))?;
        Ok(analyzed)
    }

    /// Embeds the query, where there is a model and vectors to search.
    fn embed_query<'s>(
        &self,
        snapshot: &'s IndexSnapshot,
        query: &Query,
    ) -> Option<SemanticQuery<'s>> {
        let (semantic, views) = (self.semantic.as_ref()?, snapshot.vectors.as_ref()?);
        let language = query::query_language(query, semantic.languages(views));
        if query.method == RankingMethod::Lexical || language == LanguageId::Foreign {
            return None;
        }
        match semantic.embed_query(&query.text, views) {
            Ok(embedded) => Some(SemanticQuery {
                language,
                ..embedded
            })
            .filter(|embedded| embedded.view.rows() > 0),
            // Words alone give a worse answer than both, and a better one than none.
            Err(error) => {
                tracing::warn!(%error, "could not embed the query, searching by words alone");
                None
            }
        }
    }

    /// The best candidates, best first, as many as the requested page needs.
    fn rank(
        &self,
        lexical: &LexicalSearch<'_>,
        query: &Query,
        semantic_query: Option<&SemanticQuery<'_>>,
    ) -> Result<RankedHits, SearchError> {
        let most = ranking::candidate_count(query.depth());
        let best = lexical.top_hits(most);
        let mut found = best.map_err(|source| self.index_error(source))?;
        let similarities = match semantic_query {
            Some(semantic_query) => {
                self.add_semantic_hits(lexical, semantic_query, most, &mut found)?
            }
            None => vec![None; found.len()],
        };
        let numbered = found.iter().zip(similarities).enumerate();
        let mut order: Vec<_> = numbered
            .map(|(at, (one, semantic))| {
                let is_foreign = semantic.is_none()
                    && semantic_query.is_some_and(|semantic_query| {
                        semantic_query
                            .view
                            .is_embedded(lexical.snapshot.ordinal(one.at))
                    });
                FusionCandidate::new(at, Some(one.bm25), semantic).foreign(is_foreign)
            })
            .collect();
        let signals = FusionSignals {
            words: fusion::count_words(&query.text),
            scale: semantic_query
                .map_or(CosineScale::GRANITE, |semantic_query| semantic_query.scale),
            method: query.method.fusion_method(),
            language: semantic_query.map_or(LanguageId::English, |semantic_query| {
                semantic_query.language
            }),
        };
        fusion::fuse(&signals, &mut order);
        order.retain(|one| query.method != RankingMethod::Hybrid || one.passes_floor());
        let keep = fusion::candidates_to_keep(query.depth(), query.diversity);
        fusion::keep_best(&mut order, keep, |left, right| {
            match (found.get(*left), found.get(*right)) {
                (Some(left), Some(right)) => left.by_id(right, lexical.snapshot),
                _ => Ordering::Equal,
            }
        });
        Ok(RankedHits { found, order })
    }

    /// Diversifies the hits that are shown, by maximal marginal relevance (MMR).
    fn diversify(
        &self,
        snapshot: &IndexSnapshot,
        query: &Query,
        ranked: &mut RankedHits,
    ) -> Result<(), SearchError> {
        let pool = ranked.shown(0).take(fusion::MAX_MMR_CANDIDATES);
        let mapped = pool.map(|(one, found)| Ok((one.item, self.displayable(snapshot, found.at)?)));
        let mapped: HashMap<_, _> = mapped.collect::<Result<_, SearchError>>()?;
        let (order, depth) = (&mut ranked.order, query.depth());
        fusion::maximal_marginal_relevance(order, query.diversity, depth, |left, right| {
            match (mapped.get(left), mapped.get(right)) {
                (Some(left), Some(right)) => left.jaccard_similarity(right),
                _ => 0.0,
            }
        });
        Ok(())
    }

    /// Adds the documents that only semantic search finds, and returns the similarity of each candidate to
    /// the query.
    fn add_semantic_hits(
        &self,
        lexical: &LexicalSearch<'_>,
        semantic_query: &SemanticQuery<'_>,
        most: usize,
        found: &mut Vec<lexical::LexicalHit>,
    ) -> Result<Vec<Option<f32>>, SearchError> {
        let snapshot = lexical.snapshot;
        let near = |allowed: Option<&vectors::OrdinalSet>| {
            let options = vectors::VectorSearchOptions {
                documents: most.min(vectors::MAX_DOCUMENTS),
                allowed,
                threads: THREADS,
            };
            semantic_query
                .view
                .search(&semantic_query.question, &options)
        };
        let near = lexical
            .visibility
            .with_ordinals(snapshot, lexical.allowed, near)?;
        let mut is_new = vec![true; near.len()];
        let may_lack = lexical.may_be_incomplete(found.len(), most);
        let mut similarities = Vec::with_capacity(found.len() + near.len());
        for one in found.iter() {
            let ordinal = snapshot.ordinal(one.at);
            let place = near.binary_search_by_key(&ordinal, |near| near.ordinal);
            let known = place
                .ok()
                .and_then(|at| near.get(at).zip(is_new.get_mut(at)));
            similarities.push(match known {
                Some((near, is_new)) => {
                    *is_new = false;
                    Some(near.score)
                }
                None => semantic_query.view.score(&semantic_query.question, ordinal),
            });
        }
        let before = found.len();
        for (near, _) in near.iter().zip(is_new).filter(|(_, is_new)| *is_new) {
            if let Some(at) = snapshot.address(near.ordinal) {
                found.push(lexical::LexicalHit::new(at, 0.0));
                similarities.push(Some(near.score));
            }
        }
        // They are sorted by address, and stay so.
        if let Some(new_hits) = found.get_mut(before..).filter(|_| may_lack) {
            let scored = lexical.score(new_hits);
            scored.map_err(|source| self.index_error(source))?;
        }
        Ok(similarities)
    }
}

impl SemanticQuery<'_> {
    /// The passages of a document that are nearest to the query, the nearest first.
    fn passages(&self, ordinal: u32) -> Vec<Range<usize>> {
        let near = self.view.passages(&self.question, ordinal).into_iter();
        near.map(|one| one.start as usize..one.end as usize)
            .collect()
    }
}

impl RankedHits {
    /// Documents sorted by day, without scores.
    fn listed(snapshot: &IndexSnapshot, set: &SegmentedDocSet, query: &Query) -> Self {
        let found = listing::by_day(snapshot, set, query.sort, query.depth());
        Self {
            order: (0..found.len()).map(FusionCandidate::listed).collect(),
            found,
        }
    }

    /// The candidates from the rank `first` on, the best first.
    fn shown(
        &self,
        first: usize,
    ) -> impl Iterator<Item = (&FusionCandidate<usize>, &lexical::LexicalHit)> {
        let order = self.order.iter().skip(first);
        order.filter_map(|one| Some((one, self.found.get(one.item)?)))
    }
}
