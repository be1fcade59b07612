//! The search pipeline: how a query becomes hits, the same for every engine.
//!
//! ```text
//! analyze → restrict → words ∥ meaning → cross-score → proximity → fuse → diversify → hits
//! ```
//!
//! The lexical half and the vector half each retrieve their best candidates. Each half then scores what only the
//! other one found, so that fusion compares like with like. An engine supplies the primitives ([`IndexView`]);
//! this module decides which of them are called, and how candidates compare. So a new ranking term has one home.

mod index_view;

use std::borrow::Borrow as _;
use std::cmp::Ordering;

pub(crate) use self::index_view::{Candidate, CrossScoring, IndexView, LexicalHits, WordQuery};
use crate::analysis::{LanguageId, QueryTerm};
use crate::error::SearchError;
use crate::fusion::{self, CosineScale, FusionCandidate, FusionSignals};
use crate::hit::{SearchHit, SearchResults};
use crate::language_vote::{self, LANGUAGE_VOTERS};
use crate::query::{AnalyzedQuery, Query, RankingMethod, SortOrder, query_language};
use crate::ranking;
use crate::snippet::{HighlightTerms, HitContext};

/// How many of the documents that will be shown are read together with those that proximity reads.
const MAX_SHOWN: usize = 32;

/// How many candidates are promising where scoring a candidate means reading it: at least this many, and this many for
/// each requested hit. All candidates, 64 of them and 32 of them gave the same nDCG@10 on SciFact (.727) and on CoSQA
/// (.468).
const MIN_PROMISING: usize = 32;
const PROMISING_PER_HIT: usize = 2;

/// The query, embedded, with what fusion has to know about its cosines.
struct Question<V> {
    vector: V,
    scale: CosineScale,
    language: LanguageId,
}

/// Candidates and their order: `order` names them by their place in `found`.
struct Ranking<D> {
    found: Vec<Candidate<D>>,
    order: Vec<FusionCandidate<usize>>,
    /// Whether the vector half had no part in it, because the model does not know the language of the query.
    is_foreign: bool,
}

impl<D> Default for Ranking<D> {
    fn default() -> Self {
        Self {
            found: Vec::new(),
            order: Vec::new(),
            is_foreign: false,
        }
    }
}

impl<D> Ranking<D> {
    /// Documents in a given order, without scores.
    fn listed(documents: Vec<D>) -> Self {
        let found = documents.into_iter();
        let found: Vec<_> = found
            .map(|document| Candidate::with_words(document, 0.0))
            .collect();
        Self {
            order: (0..found.len()).map(FusionCandidate::listed).collect(),
            found,
            is_foreign: false,
        }
    }

    /// The candidates from the rank `first` on, the best first.
    fn ranked(
        &self,
        first: usize,
    ) -> impl Iterator<Item = (&FusionCandidate<usize>, &Candidate<D>)> {
        let order = self.order.iter().skip(first);
        order.filter_map(|one| Some((one, self.found.get(one.item)?)))
    }
}

/// Answers a query from one view of an index.
pub(crate) fn search<V: IndexView>(view: &V, query: &Query) -> Result<SearchResults, SearchError> {
    let analyzed = analyze(view, query)?;
    let terms = ranking::distinct(&analyzed.terms);
    let candidates = view.restrict(query, &analyzed)?;
    let is_list = query.sort != SortOrder::Relevance || (terms.is_empty() && query.is_filtered());
    let is_ranked = !is_list && !terms.is_empty();
    let matches = if is_list || query.counts_total || !query.facets.is_empty() {
        Some(view.matches(&candidates, &ranking::forms(&terms))?)
    } else {
        None
    };
    let question = is_ranked.then(|| embed(view, query)).flatten();
    let mut ranking = match &matches {
        Some(matches) if is_list => {
            Ranking::listed(view.by_day(matches, query.sort, query.depth())?)
        }
        _ if is_ranked => {
            let ranker = Ranker {
                view,
                query,
                candidates: &candidates,
                question: question.as_ref(),
                words: WordQuery {
                    weights: view.weigh(&terms)?,
                    pairs: ranking::adjacent_pairs(&analyzed.terms),
                    terms: terms.clone(),
                },
            };
            ranker.rank()?
        }
        _ => Ranking::default(),
    };
    if query.diversity > 0.0 && is_ranked {
        diversify(view, query, &mut ranking)?;
    }
    let question = question.as_ref().filter(|_| !ranking.is_foreign);
    let hits = hits(view, query, question, &terms, &mut ranking)?;
    let counted = matches.as_ref().filter(|_| query.counts_total);
    Ok(SearchResults {
        hits,
        total: counted.map(|matches| view.count(matches)).transpose()?,
        facets: match &matches {
            Some(matches) => view.facets(matches, &query.facets)?,
            None => Vec::new(),
        },
    })
}

/// The terms of a query in the languages of the visible documents, with typos corrected.
pub(crate) fn analyze<V: IndexView>(view: &V, query: &Query) -> Result<AnalyzedQuery, SearchError> {
    let mut analyzed = query.analyze(&view.languages()?);
    view.correct_spelling(&mut analyzed.terms)?;
    Ok(analyzed)
}

/// The documents that contain a term of a query and are allowed by it.
pub(crate) fn matches<V: IndexView>(view: &V, query: &Query) -> Result<V::MatchSet, SearchError> {
    let analyzed = analyze(view, query)?;
    let forms = ranking::forms(&ranking::distinct(&analyzed.terms));
    view.matches(&view.restrict(query, &analyzed)?, &forms)
}

/// Embeds the query where there is a model that knows its language, and vectors to search.
fn embed<V: IndexView>(view: &V, query: &Query) -> Option<Question<V::QueryVector>> {
    if query.method == RankingMethod::Lexical {
        return None;
    }
    let language = query_language(query, view.model_languages()?);
    if language == LanguageId::Foreign {
        return None;
    }
    let (vector, scale) = view.embed(&query.text)?;
    Some(Question {
        vector,
        scale,
        language,
    })
}

/// One search on its way through retrieval and ranking.
struct Ranker<'s, V: IndexView> {
    view: &'s V,
    query: &'s Query,
    candidates: &'s V::CandidateSet,
    question: Option<&'s Question<V::QueryVector>>,
    words: WordQuery<'s, V::TermWeights>,
}

impl<V: IndexView> Ranker<'_, V> {
    /// The best candidates, as many as the requested page needs.
    fn rank(&self) -> Result<Ranking<V::Document>, SearchError> {
        let mut found = self.retrieve()?;
        if !self.words.pairs.is_empty() {
            let mut close = self.proximity_candidates(&mut found);
            self.view.score_proximity(&self.words, &mut close)?;
        }
        let language = self.question_language(&found)?;
        let mut order = self.fuse(&found, language);
        order.retain(|one| self.query.method != RankingMethod::Hybrid || one.passes_floor());
        let keep = fusion::candidates_to_keep(self.query.depth(), self.query.diversity);
        self.keep_best(&mut order, keep, &found);
        Ok(Ranking {
            found,
            order,
            is_foreign: language == LanguageId::Foreign,
        })
    }

    /// The language of the query. Where a few words do not show it, the best lexical hits do. They are looked at
    /// after the proximity bonus, because a cluster has read most of them by then.
    fn question_language(
        &self,
        found: &[Candidate<V::Document>],
    ) -> Result<LanguageId, SearchError> {
        let language = self
            .question
            .map_or(LanguageId::English, |one| one.language);
        if language != LanguageId::Unclear {
            return Ok(language);
        }
        let best = self.best_by_bm25(found.iter().enumerate(), LANGUAGE_VOTERS);
        let documents: Vec<_> = best.iter().map(|(_, one)| &one.document).collect();
        let displays = self.view.read(&documents)?;
        let displays = displays.iter().flatten().map(V::Display::borrow);
        let wanted = HighlightTerms::new(&self.words.terms);
        Ok(language_vote::question_language(
            &self.query.text,
            displays,
            &wanted,
        ))
    }

    /// The union of what both halves find, each candidate with both scores.
    fn retrieve(&self) -> Result<Vec<Candidate<V::Document>>, SearchError> {
        let most = ranking::candidate_count(self.query.depth());
        let Some(question) = self.question else {
            let lexical = self
                .view
                .best_by_words(&self.words, self.candidates, most)?;
            return Ok(lexical.found);
        };
        // Both halves run in parallel, because neither needs the other.
        let (lexical, near) = V::both(
            || self.view.best_by_words(&self.words, self.candidates, most),
            || self.view.nearest(&question.vector, self.candidates, most),
        );
        let (
            LexicalHits {
                mut found,
                complete,
            },
            mut near,
        ) = (lexical?, near?);
        near.sort_unstable_by(|left, right| V::by_handle(&left.document, &right.document));
        let mut is_new = vec![true; near.len()];
        for one in &mut found {
            let at = near.binary_search_by(|near| V::by_handle(&near.document, &one.document));
            let known = at
                .ok()
                .and_then(|at| near.get_mut(at).zip(is_new.get_mut(at)));
            if let Some((near, is_new)) = known {
                *is_new = false;
                one.cosine = near.cosine;
                V::absorb(&mut one.document, &mut near.document);
            }
        }
        let new = near.into_iter().zip(is_new);
        let new = new.filter_map(|(near, is_new)| is_new.then_some(near));
        let mut halves = CrossScoring {
            vector: &question.vector,
            words: &self.words,
            candidates: self.candidates,
            lexical: found,
            near: new.collect(),
            complete,
            is_promising: self.shows_few() && self.view.reads_when_scoring(self.candidates),
        };
        if halves.is_promising {
            self.keep_promising(&mut halves);
        }
        self.view.cross_score(halves)
    }

    /// Whether the documents that are shown and compared are among the promising ones.
    fn shows_few(&self) -> bool {
        self.query.depth() <= MAX_SHOWN && self.query.diversity <= 0.0
    }

    /// Keeps the candidates that may be among the best: those that are when each half scores what it did not find
    /// like the last that it found. Also those with the best BM25 scores: some vote on the language of the query, and
    /// those in a language that the model does not know are ranked by words alone.
    fn keep_promising(&self, halves: &mut CrossScoring<'_, V>) {
        let (lexical, near) = (&halves.lexical, &halves.near);
        let last = |least: f32, score: f32| least.min(score);
        let last_bm25 = match lexical.iter().map(|one| one.bm25).reduce(last) {
            Some(least) if !halves.complete => least,
            _ => 0.0,
        };
        let both = lexical.iter().chain(near);
        let last_cosine = both.filter_map(|one| one.cosine).reduce(last);
        let known = lexical
            .iter()
            .map(|one| (one.bm25, one.cosine.or(last_cosine), false));
        let unknown = near.iter().map(|one| (last_bm25, one.cosine, false));
        let mut order = self.fuse_scores(known.chain(unknown), LanguageId::English);
        let shown = self.query.depth();
        let most = MIN_PROMISING.max(shown * PROMISING_PER_HIT);
        fusion::keep_best(&mut order, most, usize::cmp);
        let mut is_kept = vec![false; lexical.len() + near.len()];
        let mut keep = |at: usize| {
            if let Some(is_kept) = is_kept.get_mut(at) {
                *is_kept = true;
            }
        };
        order.iter().for_each(|one| keep(one.item));
        let best = self.best_by_bm25(lexical.iter().enumerate(), shown.max(LANGUAGE_VOTERS));
        best.iter().for_each(|(at, _)| keep(*at));
        let mut is_kept = is_kept.into_iter();
        let mut is_kept = |_: &Candidate<V::Document>| is_kept.next().unwrap_or(false);
        halves.lexical.retain(&mut is_kept);
        halves.near.retain(&mut is_kept);
    }

    /// The candidates with the best BM25 scores, of which the first vote on the language of the query.
    fn best_by_bm25<'c>(
        &self,
        found: impl Iterator<Item = (usize, &'c Candidate<V::Document>)>,
        most: usize,
    ) -> Vec<(usize, &'c Candidate<V::Document>)>
    where
        V::Document: 'c,
    {
        let mut best: Vec<_> = found.filter(|(_, one)| one.bm25 > 0.0).collect();
        best.sort_by(|(_, left), (_, right)| {
            let by_words = right.bm25.total_cmp(&left.bm25);
            by_words.then_with(|| self.view.by_id(&left.document, &right.document))
        });
        best.truncate(most);
        best
    }

    /// The candidates that get a proximity bonus: those with a query word, and where an engine cannot afford all
    /// of them, the best by a first fusion.
    fn proximity_candidates<'c>(
        &self,
        found: &'c mut [Candidate<V::Document>],
    ) -> Vec<&'c mut Candidate<V::Document>> {
        if V::MAX_PROXIMITY_CANDIDATES == usize::MAX {
            return found.iter_mut().filter(|one| one.bm25 > 0.0).collect();
        }
        let mut order = self.fuse(found, LanguageId::English);
        self.keep_best(&mut order, usize::MAX, found);
        let shown = self.query.depth().min(MAX_SHOWN);
        let mut is_close = vec![false; found.len()];
        let best = order.iter().enumerate();
        let best = best.filter(|(rank, one)| *rank < shown || one.lexical > Some(0.0));
        for (_, one) in best.take(V::MAX_PROXIMITY_CANDIDATES) {
            if let Some(is_close) = is_close.get_mut(one.item) {
                *is_close = true;
            }
        }
        let close = found.iter_mut().zip(is_close);
        close
            .filter_map(|(one, is_close)| is_close.then_some(one))
            .collect()
    }

    /// Fuses the scores of all candidates for a query in this language.
    fn fuse(
        &self,
        found: &[Candidate<V::Document>],
        language: LanguageId,
    ) -> Vec<FusionCandidate<usize>> {
        let is_foreign = |one: &Candidate<V::Document>| {
            one.cosine.is_none()
                && self
                    .question
                    .is_some_and(|question| self.view.is_embedded(&question.vector, &one.document))
        };
        let scores = found
            .iter()
            .map(|one| (one.bm25, one.cosine, is_foreign(one)));
        self.fuse_scores(scores, language)
    }

    /// Fuses scores, each a BM25 score, a cosine and whether the model does not know the language of the document.
    fn fuse_scores(
        &self,
        scores: impl Iterator<Item = (f32, Option<f32>, bool)>,
        language: LanguageId,
    ) -> Vec<FusionCandidate<usize>> {
        let candidates = scores.enumerate().map(|(at, (bm25, cosine, is_foreign))| {
            FusionCandidate::new(at, Some(bm25), cosine).foreign(is_foreign)
        });
        let mut candidates: Vec<_> = candidates.collect();
        let signals = FusionSignals {
            words: fusion::count_words(&self.query.text),
            scale: self
                .question
                .map_or(CosineScale::GRANITE, |question| question.scale),
            method: self.query.method.fusion_method(),
            language,
        };
        fusion::fuse(&signals, &mut candidates);
        candidates
    }

    fn keep_best(
        &self,
        order: &mut Vec<FusionCandidate<usize>>,
        keep: usize,
        found: &[Candidate<V::Document>],
    ) {
        fusion::keep_best(order, keep, |left, right| {
            match (found.get(*left), found.get(*right)) {
                (Some(left), Some(right)) => self.view.by_id(&left.document, &right.document),
                _ => Ordering::Equal,
            }
        });
    }
}

/// Diversifies the hits that are shown, by maximal marginal relevance (MMR).
fn diversify<V: IndexView>(
    view: &V,
    query: &Query,
    ranking: &mut Ranking<V::Document>,
) -> Result<(), SearchError> {
    let pool = ranking.ranked(0).take(fusion::MAX_MMR_CANDIDATES);
    let (places, documents): (Vec<usize>, Vec<_>) = pool
        .map(|(one, candidate)| (one.item, &candidate.document))
        .unzip();
    let mut displays: Vec<Option<V::Display>> = Vec::new();
    displays.resize_with(ranking.found.len(), || None);
    for (place, display) in places.into_iter().zip(view.read(&documents)?) {
        if let Some(slot) = displays.get_mut(place) {
            *slot = display;
        }
    }
    let display = |place: &usize| displays.get(*place)?.as_ref().map(V::Display::borrow);
    let (order, depth) = (&mut ranking.order, query.depth());
    fusion::maximal_marginal_relevance(order, query.diversity, depth, |left, right| {
        match (display(left), display(right)) {
            (Some(left), Some(right)) => left.jaccard_similarity(right),
            _ => 0.0,
        }
    });
    Ok(())
}

/// The hits of the requested page.
fn hits<V: IndexView>(
    view: &V,
    query: &Query,
    question: Option<&Question<V::QueryVector>>,
    terms: &[&QueryTerm],
    ranking: &mut Ranking<V::Document>,
) -> Result<Vec<SearchHit>, SearchError> {
    let Ranking { found, order, .. } = ranking;
    let page = order.iter().skip(query.offset).take(query.limit);
    let page: Vec<_> = page.collect();
    if let Some(question) = question.filter(|_| query.excerpts) {
        let mut is_shown = vec![false; found.len()];
        for one in &page {
            if let Some(is_shown) = is_shown.get_mut(one.item) {
                *is_shown = true;
            }
        }
        let shown = found.iter_mut().zip(is_shown);
        let shown = shown.filter_map(|(one, is_shown)| is_shown.then_some(&mut one.document));
        view.prefetch_passages(&question.vector, &mut shown.collect::<Vec<_>>())?;
    }
    let shown = page
        .iter()
        .filter_map(|one| Some((*one, found.get(one.item)?)));
    let shown: Vec<_> = shown.collect();
    let documents: Vec<_> = shown.iter().map(|(_, one)| &one.document).collect();
    let wanted = HighlightTerms::new(terms);
    let displays = view.read(&documents)?;
    let hits = shown
        .iter()
        .zip(displays)
        .filter_map(|((fused, candidate), display)| {
            let near = || match question {
                Some(question) => view.passages(&question.vector, &candidate.document),
                None => Vec::new(),
            };
            Some(display?.borrow().hit(&HitContext {
                score: fused.parts.score,
                near: &near,
                excerpts: query.excerpts,
                wanted: &wanted,
                why: fused.explanation(candidate.proximity),
            }))
        });
    Ok(hits.collect())
}
