//! A query into its answer: both halves, what they say together, and the hits to show.

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

/// The most documents that are compared with each other for variety.
const MAX_MMR_CANDIDATES: usize = 200;

/// How many threads work on one answer.
const THREADS: usize = 2;

/// Documents on their way to become hits. They stay where they were found, and what is put in order are
/// their numbers.
#[derive(Default)]
struct RankedHits {
    found: Vec<lexical::LexicalHit>,
    order: Vec<FusionCandidate<usize>>,
}

impl EmbeddedInner {
    /// Whether the answer needs no model, or one that has seen the question before.
    pub(super) fn is_cheap(&self, query: &Query) -> bool {
        let snapshot = self.snapshot();
        let (Some(meaning), Some(views)) = (&self.semantic, &snapshot.vectors) else {
            return true;
        };
        query.method == RankingMethod::Lexical
            || query::query_language(query, meaning.languages(views)) == LanguageId::Foreign
            || meaning.is_query_cached(&query.text, views)
    }

    pub(super) fn search(&self, query: &Query) -> Result<SearchResults, SearchError> {
        let snapshot = self.snapshot();
        let known = |source| self.index_error(source);
        let sight = snapshot.visibility(query.reader()).map_err(known)?;
        if query.depth() > DEEP_PAGING {
            snapshot.order_ids();
        }
        let asked = self.analyze_query(&snapshot, &sight, query)?;
        let terms = ranking::distinct(&asked.terms);
        let allowed =
            candidate_set::allowed_documents((&snapshot, &sight), &self.fields, query, &asked)
                .map_err(known)?;
        let is_list =
            query.sort != SortOrder::Relevance || (terms.is_empty() && query.is_filtered());
        let set = if is_list || query.counts_total || !query.facets.is_empty() {
            let set = candidate_set::matching(
                &snapshot,
                &self.fields,
                &ranking::forms(&terms),
                allowed.as_deref(),
            );
            Some(set.map_err(known)?)
        } else {
            None
        };
        let question = if is_list || terms.is_empty() {
            None
        } else {
            self.embed_query(&snapshot, query)
        };
        let mut ranked = match &set {
            Some(set) if is_list => RankedHits::listed(&snapshot, set, query),
            _ if terms.is_empty() => RankedHits::default(),
            _ => {
                let lexical = LexicalSearch {
                    snapshot: &snapshot,
                    fields: &self.fields,
                    terms: &asked.terms,
                    distinct: &terms,
                    allowed: allowed.as_deref(),
                    sight: &sight,
                };
                self.rank(&lexical, query, question.as_ref())?
            }
        };
        if query.diversity > 0.0 && !is_list {
            self.diversify(&snapshot, query, &mut ranked)?;
        }
        let wanted = HighlightTerms::new(&terms);
        let shown = ranked.shown(query.offset).take(query.limit);
        let hits = shown.map(|(one, found)| {
            let at = found.at;
            let near = || match &question {
                Some(question) => question.passages(snapshot.ordinal(at)),
                None => Vec::new(),
            };
            Ok(self.displayable(&snapshot, at)?.hit(&HitContext {
                score: one.parts.score,
                near: &near,
                excerpts: query.excerpts,
                wanted: &wanted,
                why: one.explanation(found.pairs),
            }))
        });
        let hits = hits.collect::<Result<_, SearchError>>()?;
        let facets = match &set {
            Some(set) => listing::facets(&snapshot, &self.fields, set, &query.facets),
            None => Ok(Vec::new()),
        };
        Ok(SearchResults {
            hits,
            total: set
                .as_ref()
                .filter(|_| query.counts_total)
                .map(SegmentedDocSet::count),
            facets: facets.map_err(known)?,
        })
    }

    /// The terms of a query in the languages that its reader sees, mistyped ones as they were meant.
    pub(super) fn analyze_query(
        &self,
        snapshot: &IndexSnapshot,
        sight: &ReaderVisibility,
        query: &Query,
    ) -> Result<query::AnalyzedQuery, SearchError> {
        let mut asked = query.analyze(&sight.languages);
        let words = TermDictionary {
            snapshot,
            fields: &self.fields,
            visible: sight.documents().map(Arc::as_ref),
        };
        let corrected = spelling::correct(&mut asked.terms, &words);
        corrected.map_err(|source| self.index_error(source))?;
        Ok(asked)
    }

    /// What the model makes of the question, where there is a model and vectors to ask.
    fn embed_query<'s>(
        &self,
        snapshot: &'s IndexSnapshot,
        query: &Query,
    ) -> Option<SemanticQuery<'s>> {
        let (meaning, views) = (self.semantic.as_ref()?, snapshot.vectors.as_ref()?);
        let language = query::query_language(query, meaning.languages(views));
        if query.method == RankingMethod::Lexical || language == LanguageId::Foreign {
            return None;
        }
        match meaning.embed_query(&query.text, views) {
            Ok(asked) => {
                Some(SemanticQuery { language, ..asked }).filter(|asked| asked.view.rows() > 0)
            }
            // Words alone are a worse answer than both, and a better one than none.
            Err(error) => {
                tracing::warn!(%error, "a question could not be turned into a vector");
                None
            }
        }
    }

    /// The best documents, best first, as many as have to be known for the hits asked for.
    fn rank(
        &self,
        lexical: &LexicalSearch<'_>,
        query: &Query,
        question: Option<&SemanticQuery<'_>>,
    ) -> Result<RankedHits, SearchError> {
        let most = ranking::candidate_count(query.depth());
        let best = lexical.top_hits(most);
        let mut found = best.map_err(|source| self.index_error(source))?;
        let meanings = match question {
            Some(question) => self.add_semantic_hits(lexical, question, most, &mut found)?,
            None => vec![None; found.len()],
        };
        let numbered = found.iter().zip(meanings).enumerate();
        let mut order: Vec<_> = numbered
            .map(|(at, (one, semantic))| {
                let is_foreign = semantic.is_none()
                    && question.is_some_and(|question| {
                        question.view.is_embedded(lexical.snapshot.ordinal(one.at))
                    });
                FusionCandidate::new(at, Some(one.bm25), semantic).foreign(is_foreign)
            })
            .collect();
        let signals = FusionSignals {
            words: fusion::count_words(&query.text),
            scale: question.map_or(CosineScale::GRANITE, |question| question.scale),
            weighing: query.method.fusion_method(),
            language: question.map_or(LanguageId::English, |question| question.language),
        };
        fusion::fuse(&signals, &mut order);
        order.retain(|one| query.method != RankingMethod::Hybrid || one.passes_floor());
        // Variety is sought among more than are shown.
        let keep = if query.diversity > 0.0 {
            MAX_MMR_CANDIDATES.max(query.depth())
        } else {
            query.depth()
        };
        fusion::keep_best(&mut order, keep, |left, right| {
            match (found.get(*left), found.get(*right)) {
                (Some(left), Some(right)) => left.by_id(right, lexical.snapshot),
                _ => Ordering::Equal,
            }
        });
        Ok(RankedHits { found, order })
    }

    /// Puts variety into the hits that are shown.
    fn diversify(
        &self,
        snapshot: &IndexSnapshot,
        query: &Query,
        ranked: &mut RankedHits,
    ) -> Result<(), SearchError> {
        let pool = ranked.shown(0).take(MAX_MMR_CANDIDATES);
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

    /// Adds the documents that only the model finds, and tells how near it is to each of them all.
    fn add_semantic_hits(
        &self,
        lexical: &LexicalSearch<'_>,
        question: &SemanticQuery<'_>,
        most: usize,
        found: &mut Vec<lexical::LexicalHit>,
    ) -> Result<Vec<Option<f32>>, SearchError> {
        let snapshot = lexical.snapshot;
        let near = |allowed: Option<&vectors::OrdinalSet>| {
            let wanted = vectors::VectorSearchOptions {
                documents: most.min(vectors::MAX_DOCUMENTS),
                allowed,
                threads: THREADS,
            };
            question.view.search(&question.question, &wanted)
        };
        let near = lexical
            .sight
            .with_ordinals(snapshot, lexical.allowed, near)?;
        let mut is_new = vec![true; near.len()];
        let may_lack = lexical.may_be_incomplete(found.len(), most);
        let mut meanings = Vec::with_capacity(found.len() + near.len());
        for one in found.iter() {
            let ordinal = snapshot.ordinal(one.at);
            let place = near.binary_search_by_key(&ordinal, |near| near.ordinal);
            let known = place
                .ok()
                .and_then(|at| near.get(at).zip(is_new.get_mut(at)));
            meanings.push(match known {
                Some((near, is_new)) => {
                    *is_new = false;
                    Some(near.score)
                }
                None => question.view.score(&question.question, ordinal),
            });
        }
        let before = found.len();
        for (near, _) in near.iter().zip(is_new).filter(|(_, is_new)| *is_new) {
            if let Some(at) = snapshot.address(near.ordinal) {
                found.push(lexical::LexicalHit::new(at, 0.0));
                meanings.push(Some(near.score));
            }
        }
        // They are in the order of their addresses, and stay so.
        if let Some(only) = found.get_mut(before..).filter(|_| may_lack) {
            let scored = lexical.score(only);
            scored.map_err(|source| self.index_error(source))?;
        }
        Ok(meanings)
    }
}

impl SemanticQuery<'_> {
    /// The passages of a document nearest to it, the nearest first.
    fn passages(&self, ordinal: u32) -> Vec<Range<usize>> {
        let near = self.view.passages(&self.question, ordinal).into_iter();
        near.map(|one| one.start as usize..one.end as usize)
            .collect()
    }
}

impl RankedHits {
    /// Documents in the order of their days, each fitting as well as anything can.
    fn listed(snapshot: &IndexSnapshot, set: &SegmentedDocSet, query: &Query) -> Self {
        let found = listing::by_day(snapshot, set, query.sort, query.depth());
        Self {
            order: (0..found.len()).map(FusionCandidate::listed).collect(),
            found,
        }
    }

    /// From the place `first` on, the best first.
    fn shown(
        &self,
        first: usize,
    ) -> impl Iterator<Item = (&FusionCandidate<usize>, &lexical::LexicalHit)> {
        let order = self.order.iter().skip(first);
        order.filter_map(|one| Some((one, self.found.get(one.item)?)))
    }
}
