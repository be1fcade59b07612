//! Lexical search: the documents with the best BM25 scores.
//!
//! Retrieval scores single terms with block-max pruning (Block-Max WAND), in which tantivy skips whole blocks of
//! posting lists that cannot reach the top. Only the candidates of both halves then get the bonus for adjacent
//! query terms, because phrases cannot be pruned.

use std::borrow::Cow;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use tantivy::query::{
    BooleanQuery, BoostQuery, EnableScoring, PhraseQuery, Query as Node, TermQuery, Weight,
};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocAddress, SegmentReader, Term};

use super::candidate_set::SegmentedDocSet;
use super::document_frequencies::SharedDocFrequencies;
use super::exhaustive_scoring;
use super::index_view::DocHandle;
use super::schema::IndexFields;
use super::snapshot::IndexSnapshot;
use super::visibility_cache::ReaderVisibility;
use crate::analysis::QueryTerm;
use crate::pipeline::{Candidate, LexicalHits, WordQuery};
use crate::ranking::{FIELD_WEIGHTS, PHRASE_WEIGHT, TermPair};

/// When fewer than one document in this many is allowed, scoring each allowed document is faster than pruning
/// over the rest.
const FEW_ALLOWED_RATIO: u64 = 8;

/// How many query terms retrieve documents; further ones only add to their scores. No question that people
/// ask has more.
const MAX_RETRIEVAL_TERMS: usize = 24;

/// The lexical half of one search.
pub(super) struct LexicalSearch<'s> {
    pub snapshot: &'s IndexSnapshot,
    pub fields: &'s IndexFields,
    pub words: &'s WordQuery<'s, SharedDocFrequencies<'s>>,
    pub allowed: Option<&'s SegmentedDocSet>,
    pub visibility: &'s ReaderVisibility,
}

impl LexicalSearch<'_> {
    /// The `most` documents with the best BM25 scores, in no particular order; ids break ties.
    pub(super) fn top_hits(&self, most: usize) -> tantivy::Result<LexicalHits<DocHandle>> {
        let (rare, common) = self.split_by_frequency()?;
        let mut found = if exhaustive_scoring::is_small(self.snapshot) {
            self.score_exhaustively(&rare, most)?
        } else {
            let first = terms_query(self.fields, &rare).weight(self.scoring())?;
            self.score_with_pruning(first.as_ref(), most)?
        };
        if !common.is_empty() {
            let common = terms_query(self.fields, &common).weight(self.scoring())?;
            let mut found: Vec<_> = found.iter_mut().collect();
            self.add_scores(common.as_ref(), &mut found, |candidate, score| {
                candidate.bm25 += score;
            })?;
        }
        Ok(LexicalHits {
            // The list may be full, or some terms may not have retrieved documents.
            complete: found.len() < most && common.is_empty(),
            found,
        })
    }

    /// Splits the terms into the rarer ones that retrieve documents and the common ones that only add to
    /// scores. The most frequent of very many terms are in nearly every document, and walking all their
    /// posting lists would take longer than anyone waits.
    fn split_by_frequency(&self) -> tantivy::Result<(Cow<'_, [&QueryTerm]>, Vec<&QueryTerm>)> {
        let terms = self.words.terms.as_slice();
        if terms.len() <= MAX_RETRIEVAL_TERMS {
            return Ok((terms.into(), Vec::new()));
        }
        let mut counted = Vec::with_capacity(terms.len());
        for term in terms.iter().copied() {
            let mut documents = 0;
            for form in &term.forms {
                let form = Term::from_field_text(self.fields.body, form);
                documents += self.visibility.frequency(&self.snapshot.searcher, &form)?;
            }
            if documents > 0 {
                counted.push((documents, term));
            }
        }
        counted.sort_by_key(|(documents, _)| *documents);
        let rest = counted.split_off(counted.len().min(MAX_RETRIEVAL_TERMS));
        let terms = |counted: Vec<(u64, _)>| -> Vec<_> {
            let terms = counted.into_iter();
            terms.map(|(_, term)| term).collect()
        };
        Ok((terms(counted).into(), terms(rest)))
    }

    /// Computes the BM25 scores of documents that were found by other means.
    pub(super) fn score(&self, found: &mut [Candidate<DocHandle>]) -> tantivy::Result<()> {
        let words = terms_query(self.fields, &self.words.terms).weight(self.scoring())?;
        let mut found: Vec<_> = found.iter_mut().collect();
        self.add_scores(words.as_ref(), &mut found, |candidate, score| {
            candidate.bm25 += score;
        })
    }

    /// Adds the bonus for adjacent query words.
    pub(super) fn add_proximity(
        &self,
        found: &mut [&mut Candidate<DocHandle>],
    ) -> tantivy::Result<()> {
        for pair in &self.words.pairs {
            let phrase = pair_query(self.fields, pair).weight(self.scoring())?;
            self.add_scores(phrase.as_ref(), found, Candidate::add_proximity)?;
        }
        Ok(())
    }

    fn scoring(&self) -> EnableScoring<'_> {
        let searcher = &self.snapshot.searcher;
        EnableScoring::enabled_from_statistics_provider(&self.words.weights, searcher)
    }

    /// The `most` documents with the best BM25 scores, by exhaustive scoring, for a small index.
    fn score_exhaustively(
        &self,
        terms: &[&QueryTerm],
        most: usize,
    ) -> tantivy::Result<Vec<Candidate<DocHandle>>> {
        let frequencies = &self.words.weights;
        let scores = exhaustive_scoring::scores(self.snapshot, self.fields, frequencies, terms)?;
        let segments = self.snapshot.searcher.segment_readers();
        let mut best = Vec::new();
        for (ordinal, (segment, scores)) in (0..).zip(segments.iter().zip(&scores)) {
            let with_words = (0..).zip(scores).filter(|(_, score)| **score > 0.0);
            for (doc, score) in with_words {
                if self.is_eligible(ordinal, segment, doc) {
                    let document = DocHandle::new(DocAddress::new(ordinal, doc));
                    best.push(Candidate::with_words(document, *score));
                }
            }
        }
        if best.len() > most {
            sort(self.snapshot, &mut best);
            best.truncate(most);
        }
        Ok(best)
    }

    /// Whether a document is alive and allowed by the query's filters.
    fn is_eligible(&self, ordinal: u32, segment: &SegmentReader, doc: u32) -> bool {
        let is_allowed = self
            .allowed
            .is_none_or(|allowed| allowed.contains(ordinal, doc));
        is_allowed && is_alive(segment, doc)
    }

    /// The `most` documents with the best BM25 scores, by block-max pruning.
    fn score_with_pruning(
        &self,
        words: &dyn Weight,
        most: usize,
    ) -> tantivy::Result<Vec<Candidate<DocHandle>>> {
        let snapshot = self.snapshot;
        let documents = snapshot.searcher.num_docs();
        let few = self
            .allowed
            .filter(|allowed| allowed.count() < documents / FEW_ALLOWED_RATIO);
        let mut best: Vec<Candidate<DocHandle>> = Vec::new();
        for (ordinal, segment) in (0..).zip(snapshot.searcher.segment_readers()) {
            // A document that cannot enter the list over all segments need not be scored in this one.
            let floor = if best.len() < most {
                0.0
            } else {
                best.last().map_or(0.0, |last| last.bm25)
            };
            let mut top = SegmentTopDocs::new(snapshot, most, floor);
            if let Some(bits) = few.and_then(|few| few.segment(ordinal)) {
                let mut scorer = words.scorer(segment, 1.0)?;
                for doc in bits.iter() {
                    if scorer.doc() < doc {
                        scorer.seek(doc);
                    }
                    if scorer.doc() == doc {
                        let at = DocAddress::new(ordinal, doc);
                        top.offer(scorer.score(), at);
                    }
                }
            } else {
                words.for_each_pruning(top.threshold(), segment, &mut |doc, score| {
                    if self.is_eligible(ordinal, segment, doc) {
                        let at = DocAddress::new(ordinal, doc);
                        top.offer(score, at);
                    }
                    top.threshold()
                })?;
            }
            best.extend(top.into_candidates());
            if best.len() >= most {
                sort(snapshot, &mut best);
                best.truncate(most);
            }
        }
        Ok(best)
    }

    /// Calls `add` with the score of each candidate that the weight matches, in the order of their addresses,
    /// because posting lists can only be walked forwards.
    fn add_scores(
        &self,
        weight: &dyn Weight,
        candidates: &mut [&mut Candidate<DocHandle>],
        add: impl Fn(&mut Candidate<DocHandle>, f32),
    ) -> tantivy::Result<()> {
        candidates.sort_unstable_by_key(|candidate| candidate.document.at);
        let mut rest = candidates.iter_mut().peekable();
        for (ordinal, segment) in (0..).zip(self.snapshot.searcher.segment_readers()) {
            let is_here =
                |next: &&mut &mut Candidate<DocHandle>| next.document.at.segment_ord == ordinal;
            if !rest.peek().is_some_and(is_here) {
                continue;
            }
            let mut scorer = weight.scorer(segment, 1.0)?;
            while let Some(candidate) = rest.next_if(|next| is_here(next)) {
                let doc = candidate.document.at.doc_id;
                if scorer.doc() < doc {
                    scorer.seek(doc);
                }
                if scorer.doc() == doc {
                    add(candidate, scorer.score());
                }
            }
        }
        Ok(())
    }
}

fn terms_query(fields: &IndexFields, terms: &[&QueryTerm]) -> BooleanQuery {
    let clause = |field: Field, form: &str, weight: f32| -> Box<dyn Node> {
        let term = Term::from_field_text(field, form);
        let term = Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs));
        Box::new(BoostQuery::new(term, weight))
    };
    let mut clauses = Vec::with_capacity(terms.len() * 2);
    for term in terms {
        for form in &term.forms {
            for (field, weight) in FIELD_WEIGHTS {
                clauses.push(clause(fields.scored(field), form, weight * term.weight));
            }
        }
    }
    BooleanQuery::union(clauses)
}

fn pair_query(fields: &IndexFields, pair: &TermPair<'_>) -> BoostQuery {
    let terms = vec![
        (0, Term::from_field_text(fields.body, pair.first)),
        (pair.gap, Term::from_field_text(fields.body, pair.second)),
    ];
    BoostQuery::new(Box::new(PhraseQuery::new_with_offset(terms)), PHRASE_WEIGHT)
}

fn is_alive(segment: &SegmentReader, doc: u32) -> bool {
    segment
        .alive_bitset()
        .is_none_or(|alive| alive.is_alive(doc))
}

/// Sorts by score, best first; ids break ties.
fn sort(snapshot: &IndexSnapshot, candidates: &mut [Candidate<DocHandle>]) {
    candidates.sort_by(|left, right| {
        right
            .bm25
            .total_cmp(&left.bm25)
            .then_with(|| left.document.by_id(&right.document, snapshot))
    });
}

/// The best documents of one segment so far, in a bounded heap.
struct SegmentTopDocs<'s> {
    snapshot: &'s IndexSnapshot,
    most: usize,
    floor: f32,
    /// A min-heap: the worst document is on top, since it is evicted first.
    heap: BinaryHeap<Reverse<SegmentHit<'s>>>,
}

impl<'s> SegmentTopDocs<'s> {
    fn new(snapshot: &'s IndexSnapshot, most: usize, floor: f32) -> Self {
        Self {
            snapshot,
            most,
            floor,
            heap: BinaryHeap::new(),
        }
    }

    /// The score above which a document is of interest. Ties with the worst are, because their id may come
    /// first.
    fn threshold(&self) -> f32 {
        let worst = match self.heap.peek() {
            Some(Reverse(worst)) if self.heap.len() >= self.most => worst.bm25,
            _ => 0.0,
        };
        let least = worst.max(self.floor);
        if least > 0.0 {
            least.next_down()
        } else {
            f32::MIN
        }
    }

    fn offer(&mut self, score: f32, at: DocAddress) {
        let snapshot = self.snapshot;
        self.heap.push(Reverse(SegmentHit {
            bm25: score,
            at,
            snapshot,
        }));
        if self.heap.len() > self.most {
            self.heap.pop();
        }
    }

    fn into_candidates(self) -> impl Iterator<Item = Candidate<DocHandle>> {
        let found = self.heap.into_iter();
        found.map(|Reverse(one)| Candidate::with_words(DocHandle::new(one.at), one.bm25))
    }
}

/// A scored document of one segment; the greater the better.
struct SegmentHit<'s> {
    bm25: f32,
    at: DocAddress,
    snapshot: &'s IndexSnapshot,
}

impl SegmentHit<'_> {
    /// The rank of its id, which breaks ties.
    fn rank(&self) -> u64 {
        self.snapshot.id_rank(self.at)
    }
}

impl Ord for SegmentHit<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.bm25
            .total_cmp(&other.bm25)
            .then_with(|| other.rank().cmp(&self.rank()))
    }
}

impl PartialOrd for SegmentHit<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for SegmentHit<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for SegmentHit<'_> {}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::document::DocId;
    use crate::document::tests::plain;
    use crate::embedded::EmbeddedEngine;
    use crate::engine::{DocumentChange, Engine as _};
    use crate::pipeline::{self, IndexView as _};
    use crate::query::Query;
    use crate::ranking;
    use crate::reader_identity::ReaderIdentity;

    /// The best documents by block-max pruning and by exhaustive scoring, best first.
    fn by_both_methods(
        engine: &EmbeddedEngine,
        query: &Query,
        most: usize,
    ) -> [Vec<Candidate<DocHandle>>; 2] {
        let (inner, snapshot) = (&engine.0, engine.0.snapshot());
        let found = inner.with_view(&snapshot, query, |view| {
            let analyzed = pipeline::analyze(view, query)?;
            let distinct = ranking::distinct(&analyzed.terms);
            let allowed = view.restrict(query, &analyzed)?;
            let words = WordQuery {
                weights: view.weigh(&distinct)?,
                terms: distinct,
                pairs: Vec::new(),
            };
            let lexical = LexicalSearch {
                snapshot: &snapshot,
                fields: &inner.fields,
                words: &words,
                allowed: allowed.as_deref(),
                visibility: view.visibility,
            };
            let weight = terms_query(&inner.fields, &words.terms);
            let weight = weight.weight(lexical.scoring()).unwrap();
            let pruned = lexical.score_with_pruning(weight.as_ref(), most).unwrap();
            let exhaustive = lexical.score_exhaustively(&words.terms, most).unwrap();
            Ok([pruned, exhaustive])
        });
        found.unwrap().map(|mut found| {
            sort(&snapshot, &mut found);
            found
        })
    }

    /// Texts of words that collide, and that have other stems in English than in German.
    fn text() -> impl Strategy<Value = String> {
        let words = ["ferry", "ferries", "tram", "organisation", "die", "winter"];
        let word = prop::sample::select(words.to_vec());
        vec(word, 0..12).prop_map(|words| words.join(" "))
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..Default::default() })]

        #[test]
        fn small_and_large_indexes_are_ranked_alike(
            texts in vec(text(), 1..20),
            asked in text(),
            excluded in prop::option::of("-ferry"),
            removed in 0_usize..20,
        ) {
            let dir = tempfile::tempdir().unwrap();
            let engine = EmbeddedEngine::open(dir.path()).unwrap();
            let apply = |changes| engine.apply(changes).now_or_never().unwrap().unwrap();
            let put = |(n, text): (usize, &String)| {
                let mut document = plain(text);
                document.id = DocId::parse(&format!("d{n:02}")).unwrap();
                DocumentChange::Put(document)
            };
            // Two segments, one of them with a deleted document.
            let mut changes: Vec<_> = texts.iter().enumerate().map(put).collect();
            // Never removed, so that words always have stems in two languages.
            let bilingual = [
                "The organisation said that there would be no ferry in the winter of that year.",
                "Die Organisation hat gesagt, dass im Winter dieses Jahres keine Fähre fahren wird.",
            ];
            let bilingual = bilingual.map(str::to_owned);
            changes.extend(bilingual.iter().enumerate().map(|(n, text)| put((n + 90, text))));
            for some in changes.chunks(changes.len().div_ceil(2)) {
                apply(some.to_vec());
            }
            apply(vec![DocumentChange::Remove(DocId::parse(&format!("d{removed:02}")).unwrap())]);
            let excluded = excluded.unwrap_or_default();
            let catalog = crate::catalog::Catalog::default();
            let today = crate::calendar::Day::EPOCH;
            let parsed = crate::grammar::parse(&format!("{asked} {excluded}"), &catalog, today);
            let query = Query::parsed(&parsed, 10, ReaderIdentity::everyone());
            let languages = &engine.0.snapshot().visibility(query.reader()).unwrap().languages;
            prop_assert!(languages.len() >= 2, "{languages:?}");
            for most in [3, 50] {
                let [pruned, exhaustive] = by_both_methods(&engine, &query, most);
                prop_assert_eq!(pruned.len(), exhaustive.len());
                for (one, other) in pruned.iter().zip(&exhaustive) {
                    prop_assert!((one.bm25 - other.bm25).abs() <= 1e-5 * one.bm25, "{} {}", one.bm25, other.bm25);
                }
                let addresses = |found: &[Candidate<DocHandle>]| -> std::collections::BTreeSet<_> {
                    found.iter().map(|one| one.document.at).collect()
                };
                prop_assert!(most < 50 || addresses(&pruned) == addresses(&exhaustive));
            }
        }
    }
}
