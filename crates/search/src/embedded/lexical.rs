//! A query into the documents whose words fit it best.
//!
//! Two passes: the first scores words, where tantivy can pass over whole blocks of documents that
//! cannot win; the second adds to the best of them what pairs of words side by side are worth.

use std::cell::OnceCell;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use tantivy::query::{
    BooleanQuery, BoostQuery, EnableScoring, PhraseQuery, Query as Node, TermQuery, Weight,
};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocAddress, SegmentReader, Term};

use super::schema::Fields;
use super::snapshot::Snapshot;
use crate::query::Query;
use crate::ranking::{self, PHRASE_WEIGHT, Pair, TITLE_WEIGHT};

/// How many documents the second pass looks at for each hit wanted, and at least.
const CANDIDATES_PER_HIT: usize = 4;
const MIN_CANDIDATES: usize = 100;

/// A document that may become a hit.
pub(super) struct Candidate {
    pub at: DocAddress,
    pub raw: f32,
    /// The rank of its id in its segment: among equals of one segment this is all that is needed.
    rank: u64,
    /// Its id, read only when equals of two segments have to be put in order.
    id: OnceCell<String>,
}

impl Candidate {
    fn id(&self, snapshot: &Snapshot) -> &str {
        self.id.get_or_init(|| snapshot.id(self.at))
    }
}

/// The best documents for a query, best first, equals in the order of their ids.
pub(super) fn best(
    snapshot: &Snapshot,
    fields: &Fields,
    query: &Query,
) -> tantivy::Result<Vec<Candidate>> {
    let terms = ranking::distinct(query.terms());
    if terms.is_empty() {
        return Ok(Vec::new());
    }
    let scoring = EnableScoring::enabled_from_searcher(&snapshot.searcher);
    let words = words(fields, &terms).weight(scoring)?;
    let pairs = ranking::pairs(query.terms());
    if pairs.is_empty() {
        return first_pass(snapshot, words.as_ref(), query.limit());
    }
    let most = MIN_CANDIDATES.max(query.limit() * CANDIDATES_PER_HIT);
    let mut candidates = first_pass(snapshot, words.as_ref(), most)?;
    // Postings can only be walked forwards.
    candidates.sort_unstable_by_key(|candidate| candidate.at);
    for pair in pairs {
        let phrase = phrase(fields, &pair).weight(scoring)?;
        second_pass(snapshot, phrase.as_ref(), &mut candidates)?;
    }
    sort(snapshot, &mut candidates);
    candidates.truncate(query.limit());
    Ok(candidates)
}

fn words(fields: &Fields, terms: &[&str]) -> BooleanQuery {
    let term = |field: Field, text: &str| -> Box<dyn Node> {
        let term = Term::from_field_text(field, text);
        Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs))
    };
    let mut clauses = Vec::with_capacity(terms.len() * 2);
    for text in terms {
        clauses.push(term(fields.body, text));
        clauses.push(Box::new(BoostQuery::new(
            term(fields.title, text),
            TITLE_WEIGHT,
        )));
    }
    BooleanQuery::union(clauses)
}

fn phrase(fields: &Fields, pair: &Pair<'_>) -> BoostQuery {
    let terms = vec![
        (0, Term::from_field_text(fields.body, pair.first)),
        (pair.gap, Term::from_field_text(fields.body, pair.second)),
    ];
    BoostQuery::new(Box::new(PhraseQuery::new_with_offset(terms)), PHRASE_WEIGHT)
}

/// The `most` documents with the best words.
fn first_pass(
    snapshot: &Snapshot,
    words: &dyn Weight,
    most: usize,
) -> tantivy::Result<Vec<Candidate>> {
    let mut best: Vec<Candidate> = Vec::new();
    for (ordinal, segment) in (0..).zip(snapshot.searcher.segment_readers()) {
        // What cannot enter the list of all segments need not be looked at in this one.
        let floor = if best.len() < most {
            0.0
        } else {
            best.last().map_or(0.0, |last| last.raw)
        };
        let mut top = Top::new(most, floor);
        words.for_each_pruning(top.threshold(), segment, &mut |doc, raw| {
            if is_alive(segment, doc) {
                let at = DocAddress::new(ordinal, doc);
                top.offer(raw, snapshot.id_rank(at), at);
            }
            top.threshold()
        })?;
        best.extend(top.into_candidates());
        sort(snapshot, &mut best);
        best.truncate(most);
    }
    Ok(best)
}

fn is_alive(segment: &SegmentReader, doc: u32) -> bool {
    segment
        .alive_bitset()
        .is_none_or(|alive| alive.is_alive(doc))
}

/// Adds what a phrase is worth to each candidate that has it. They come in the order of their
/// addresses.
fn second_pass(
    snapshot: &Snapshot,
    phrase: &dyn Weight,
    candidates: &mut [Candidate],
) -> tantivy::Result<()> {
    let mut rest = candidates.iter_mut().peekable();
    for (ordinal, segment) in (0..).zip(snapshot.searcher.segment_readers()) {
        if rest
            .peek()
            .is_none_or(|candidate| candidate.at.segment_ord != ordinal)
        {
            continue;
        }
        let mut scorer = phrase.scorer(segment, 1.0)?;
        while let Some(candidate) = rest.next_if(|next| next.at.segment_ord == ordinal) {
            let doc = candidate.at.doc_id;
            if scorer.doc() < doc {
                scorer.seek(doc);
            }
            if scorer.doc() == doc {
                candidate.raw += scorer.score();
            }
        }
    }
    Ok(())
}

fn sort(snapshot: &Snapshot, candidates: &mut [Candidate]) {
    candidates.sort_by(|left, right| {
        let by_id = || {
            if left.at.segment_ord == right.at.segment_ord {
                left.rank.cmp(&right.rank)
            } else {
                left.id(snapshot).cmp(right.id(snapshot))
            }
        };
        right.raw.total_cmp(&left.raw).then_with(by_id)
    });
}

/// The best documents of one segment so far.
struct Top {
    most: usize,
    floor: f32,
    /// The worst on top, since it is the one to go.
    heap: BinaryHeap<Reverse<Ranked>>,
}

impl Top {
    fn new(most: usize, floor: f32) -> Self {
        Self {
            most,
            floor,
            heap: BinaryHeap::new(),
        }
    }

    /// The score above which a document is of interest. Equals of the worst are, because their id
    /// may come first.
    fn threshold(&self) -> f32 {
        let worst = match self.heap.peek() {
            Some(Reverse(worst)) if self.heap.len() >= self.most => worst.raw,
            _ => 0.0,
        };
        let least = worst.max(self.floor);
        if least > 0.0 {
            least.next_down()
        } else {
            f32::MIN
        }
    }

    fn offer(&mut self, raw: f32, rank: u64, at: DocAddress) {
        self.heap.push(Reverse(Ranked { raw, rank, at }));
        if self.heap.len() > self.most {
            self.heap.pop();
        }
    }

    fn into_candidates(self) -> impl Iterator<Item = Candidate> {
        self.heap
            .into_iter()
            .map(|Reverse(Ranked { raw, rank, at })| Candidate {
                at,
                raw,
                rank,
                id: OnceCell::new(),
            })
    }
}

/// A document of one segment; the greater the better.
struct Ranked {
    raw: f32,
    rank: u64,
    at: DocAddress,
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        self.raw
            .total_cmp(&other.raw)
            .then_with(|| other.rank.cmp(&self.rank))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ranked {}
