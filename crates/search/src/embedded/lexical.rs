//! Lexical search: the documents with the best BM25 scores.
//!
//! It has two passes. The first scores single terms with block-max pruning (Block-Max WAND), in which tantivy
//! skips whole blocks of posting lists that cannot reach the top. The second adds a bonus for adjacent query
//! terms to the best of them.

use std::borrow::Cow;
use std::cell::OnceCell;
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
use super::schema::IndexFields;
use super::snapshot::IndexSnapshot;
use super::visibility_cache::ReaderVisibility;
use crate::analysis::QueryTerm;
use crate::ranking::{self, PHRASE_WEIGHT, TITLE_WEIGHT, TermPair};

/// When fewer than one document in this many is allowed, scoring each allowed document is faster than pruning
/// over the rest.
const FEW_ALLOWED_RATIO: u64 = 8;

/// How many query terms retrieve documents; further ones only add to their scores. No question that people
/// ask has more.
const MAX_RETRIEVAL_TERMS: usize = 24;

/// A document that may become a hit. Its id, and the id's rank in the segment, are read only when ties have
/// to be broken: the rank within one segment, the id between two.
pub(super) struct LexicalHit {
    pub at: DocAddress,
    /// Its BM25 score, bonus included; 0 when it contains none of the terms.
    pub bm25: f32,
    /// The part of the score that is the bonus for adjacent terms.
    pub pairs: f32,
    rank: OnceCell<u64>,
    id: OnceCell<String>,
}

impl LexicalHit {
    pub(super) const fn new(at: DocAddress, bm25: f32) -> Self {
        Self {
            at,
            bm25,
            pairs: 0.0,
            rank: OnceCell::new(),
            id: OnceCell::new(),
        }
    }

    /// The order of two documents with the same score.
    pub(super) fn by_id(&self, other: &Self, snapshot: &IndexSnapshot) -> Ordering {
        if self.at.segment_ord == other.at.segment_ord {
            return self.rank(snapshot).cmp(&other.rank(snapshot));
        }
        let global = |one: &Self| snapshot.global_id_rank(one.at, one.rank(snapshot));
        match (global(self), global(other)) {
            (Some(left), Some(right)) => left.cmp(&right),
            _ => self.id(snapshot).cmp(other.id(snapshot)),
        }
    }

    fn rank(&self, snapshot: &IndexSnapshot) -> u64 {
        *self.rank.get_or_init(|| snapshot.id_rank(self.at))
    }

    fn id(&self, snapshot: &IndexSnapshot) -> &str {
        self.id.get_or_init(|| snapshot.id(self.at))
    }
}

/// The lexical half of one search, with the terms of the query also in deduplicated form.
pub(super) struct LexicalSearch<'s> {
    pub snapshot: &'s IndexSnapshot,
    pub fields: &'s IndexFields,
    pub terms: &'s [QueryTerm],
    pub distinct: &'s [&'s QueryTerm],
    pub allowed: Option<&'s SegmentedDocSet>,
    pub visibility: &'s ReaderVisibility,
}

impl LexicalSearch<'_> {
    /// The `most` documents with the best BM25 scores, in no particular order; ids break ties.
    pub(super) fn top_hits(&self, most: usize) -> tantivy::Result<Vec<LexicalHit>> {
        if self.distinct.is_empty() {
            return Ok(Vec::new());
        }
        let frequencies = SharedDocFrequencies::of(self.snapshot, self.fields, self.distinct)?;
        let (rare, common) = self.split_by_frequency()?;
        let mut candidates = if exhaustive_scoring::is_small(self.snapshot) {
            self.score_exhaustively(&frequencies, &rare, most)?
        } else {
            let first = terms_query(self.fields, &rare).weight(self.scoring(&frequencies))?;
            self.score_with_pruning(first.as_ref(), most)?
        };
        if !common.is_empty() {
            candidates.sort_unstable_by_key(|candidate| candidate.at);
            let common = terms_query(self.fields, &common).weight(self.scoring(&frequencies))?;
            self.add_scores(common.as_ref(), &mut candidates, |candidate, score| {
                candidate.bm25 += score;
            })?;
        }
        self.add_pair_scores(&frequencies, &mut candidates)?;
        Ok(candidates)
    }

    /// Whether a document that is not among the `found` of at most `most` may contain a term all the same:
    /// because the list is full, or because not every term retrieved documents.
    pub(super) fn may_be_incomplete(&self, found: usize, most: usize) -> bool {
        found >= most || self.distinct.len() > MAX_RETRIEVAL_TERMS
    }

    /// Splits the terms into the rarer ones that retrieve documents and the common ones that only add to
    /// scores. The most frequent of very many terms are in nearly every document, and walking all their
    /// posting lists would take longer than anyone waits.
    fn split_by_frequency(&self) -> tantivy::Result<(Cow<'_, [&QueryTerm]>, Vec<&QueryTerm>)> {
        if self.distinct.len() <= MAX_RETRIEVAL_TERMS {
            return Ok((self.distinct.into(), Vec::new()));
        }
        let mut counted = Vec::with_capacity(self.distinct.len());
        for term in self.distinct.iter().copied() {
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
    pub(super) fn score(&self, candidates: &mut [LexicalHit]) -> tantivy::Result<()> {
        if self.distinct.is_empty() || candidates.is_empty() {
            return Ok(());
        }
        candidates.sort_unstable_by_key(|candidate| candidate.at);
        let frequencies = SharedDocFrequencies::of(self.snapshot, self.fields, self.distinct)?;
        let words = terms_query(self.fields, self.distinct).weight(self.scoring(&frequencies))?;
        self.add_scores(words.as_ref(), candidates, |candidate, score| {
            candidate.bm25 += score;
        })?;
        self.add_pair_scores(&frequencies, candidates)
    }

    fn scoring<'f>(&'f self, frequencies: &'f SharedDocFrequencies<'_>) -> EnableScoring<'f> {
        let searcher = &self.snapshot.searcher;
        EnableScoring::enabled_from_statistics_provider(frequencies, searcher)
    }

    fn add_pair_scores(
        &self,
        frequencies: &SharedDocFrequencies<'_>,
        candidates: &mut [LexicalHit],
    ) -> tantivy::Result<()> {
        let pairs = ranking::adjacent_pairs(self.terms);
        if !pairs.is_empty() {
            // Posting lists can only be walked forwards.
            candidates.sort_unstable_by_key(|candidate| candidate.at);
        }
        for pair in pairs {
            let phrase = pair_query(self.fields, &pair).weight(self.scoring(frequencies))?;
            self.add_scores(phrase.as_ref(), candidates, |candidate, score| {
                candidate.bm25 += score;
                candidate.pairs += score;
            })?;
        }
        Ok(())
    }

    /// The `most` documents with the best BM25 scores, by exhaustive scoring, for a small index.
    fn score_exhaustively(
        &self,
        frequencies: &SharedDocFrequencies<'_>,
        terms: &[&QueryTerm],
        most: usize,
    ) -> tantivy::Result<Vec<LexicalHit>> {
        let scores = exhaustive_scoring::scores(self.snapshot, self.fields, frequencies, terms)?;
        let segments = self.snapshot.searcher.segment_readers();
        let mut best = Vec::new();
        for (ordinal, (segment, scores)) in (0..).zip(segments.iter().zip(&scores)) {
            let with_words = (0..).zip(scores).filter(|(_, score)| **score > 0.0);
            for (doc, score) in with_words {
                if self.is_eligible(ordinal, segment, doc) {
                    best.push(LexicalHit::new(DocAddress::new(ordinal, doc), *score));
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
    ) -> tantivy::Result<Vec<LexicalHit>> {
        let snapshot = self.snapshot;
        let documents = snapshot.searcher.num_docs();
        let few = self
            .allowed
            .filter(|allowed| allowed.count() < documents / FEW_ALLOWED_RATIO);
        let mut best: Vec<LexicalHit> = Vec::new();
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

    /// Calls `add` with the score of each candidate that the weight matches. Candidates must be sorted by
    /// address.
    fn add_scores(
        &self,
        weight: &dyn Weight,
        candidates: &mut [LexicalHit],
        add: impl Fn(&mut LexicalHit, f32),
    ) -> tantivy::Result<()> {
        let mut rest = candidates.iter_mut().peekable();
        for (ordinal, segment) in (0..).zip(self.snapshot.searcher.segment_readers()) {
            if rest
                .peek()
                .is_none_or(|candidate| candidate.at.segment_ord != ordinal)
            {
                continue;
            }
            let mut scorer = weight.scorer(segment, 1.0)?;
            while let Some(candidate) = rest.next_if(|next| next.at.segment_ord == ordinal) {
                let doc = candidate.at.doc_id;
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
            clauses.push(clause(fields.body, form, term.weight));
            clauses.push(clause(fields.title, form, TITLE_WEIGHT * term.weight));
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
fn sort(snapshot: &IndexSnapshot, candidates: &mut [LexicalHit]) {
    candidates.sort_by(|left, right| {
        right
            .bm25
            .total_cmp(&left.bm25)
            .then_with(|| left.by_id(right, snapshot))
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

    fn into_candidates(self) -> impl Iterator<Item = LexicalHit> {
        let found = self.heap.into_iter();
        found.map(|Reverse(one)| LexicalHit::new(one.at, one.bm25))
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
    use crate::embedded::candidate_set;
    use crate::engine::{DocumentChange, Engine as _};
    use crate::query::Query;
    use crate::reader_identity::ReaderIdentity;

    /// The best documents by block-max pruning and by exhaustive scoring, best first.
    fn by_both_methods(
        engine: &EmbeddedEngine,
        query: &Query,
        most: usize,
    ) -> [Vec<LexicalHit>; 2] {
        let inner = &engine.0;
        let snapshot = inner.snapshot();
        let visibility = snapshot.visibility(query.reader()).unwrap();
        let analyzed = inner.analyze_query(&snapshot, &visibility, query).unwrap();
        let distinct = ranking::distinct(&analyzed.terms);
        let allowed = candidate_set::allowed_documents(
            &snapshot,
            &visibility,
            &inner.fields,
            query,
            &analyzed,
        )
        .unwrap();
        let lexical = LexicalSearch {
            snapshot: &snapshot,
            fields: &inner.fields,
            terms: &analyzed.terms,
            distinct: &distinct,
            allowed: allowed.as_deref(),
            visibility: &visibility,
        };
        let frequencies = SharedDocFrequencies::of(&snapshot, &inner.fields, &distinct).unwrap();
        let words = terms_query(&inner.fields, &distinct);
        let weight = words.weight(lexical.scoring(&frequencies)).unwrap();
        let pruned = lexical.score_with_pruning(weight.as_ref(), most).unwrap();
        let exhaustive = lexical
            .score_exhaustively(&frequencies, &distinct, most)
            .unwrap();
        [pruned, exhaustive].map(|mut found| {
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
                let addresses = |found: &[LexicalHit]| -> std::collections::BTreeSet<_> {
                    found.iter().map(|one| one.at).collect()
                };
                prop_assert!(most < 50 || addresses(&pruned) == addresses(&exhaustive));
            }
        }
    }
}
