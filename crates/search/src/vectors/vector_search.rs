//! Nearest-neighbour search: the documents whose passages are closest to a query vector by cosine.
//!
//! Up to [`SearchEffort::exact_rows`] rows are all scored in int8. Beyond that the search has two stages: RaBitQ
//! one-bit codes select a candidate pool of a few thousand rows, and only these are rescored in int8. Rows that a
//! filter excludes never enter the pool, so a narrow filter costs no recall.
//!
//! Recall was measured against exact search over the unquantized vectors, with 100 real questions, on 72,000 vectors of
//! 384 dimensions that granite-embedding-30m made of real passages and on a million derived from these. It is 0.990 to
//! 0.997 at 10 and 0.993 or more at 100, with filters of a tenth and a hundredth as without. Nearly all of the loss is
//! int8 rounding; candidate selection adds 0.001 at most. `examples/vector_speed.rs` measures it again.

use std::borrow::Cow;
use std::ops::Range;
use std::thread;

use super::collectors::{CandidateCollector, DocumentCollector, RowAddress};
use super::ordinal_set::OrdinalSet;
use super::quantization::QueryVector;
use super::segment_layout::{ALIGN, GROUP};
use super::top_k::{ScoredItem, TopK};
use super::vector_batch::{EmbeddedPassage, checked_unit_vector};
use super::vector_segment::{RowReader as _, ScalarCodes};
use super::vector_view::{RowRange, SegmentView, VectorView};
use super::{MAX_DOCUMENTS, PASSAGES_SHOWN};
use crate::error::SearchError;

/// The trade-off between speed and recall of a search.
#[derive(Clone, Copy, Debug)]
pub(super) struct SearchEffort {
    /// Up to this many allowed rows, search is exhaustive.
    pub exact_rows: usize,
    /// How many rows to score justify one more thread: two threads from twice as many rows on, and so on.
    pub scored_a_thread: usize,
    /// The same for the selection of candidates, which is cheaper for each row.
    pub picked_a_thread: usize,
    /// The smallest size of the candidate pool, in rows.
    pub candidates: usize,
}

/// Measured: up to 20,000 rows, exhaustive search takes half a millisecond; starting a thread takes as long as so many
/// rows; and rescoring 2,000 candidates of a million rows finds what scoring all of them finds.
const DEFAULT_EFFORT: SearchEffort = SearchEffort {
    exact_rows: 20_000,
    scored_a_thread: 20_000,
    picked_a_thread: 150_000,
    candidates: 2_000,
};

/// The candidate pool holds at least this many rows for each document that is asked for. One-bit estimates order rows
/// only roughly, and several candidates may be passages of one document, so the pool has to be much larger than the
/// page.
const CANDIDATES_PER_DOCUMENT: usize = 20;

/// How many rows are rescored on top of the candidates, so that the score of a hit is that of its best passage even
/// where that passage was no candidate.
const MAX_RESCORED_ROWS: usize = 4_096;

/// The options of a search: how many documents, which of them, on how many threads.
#[derive(Clone, Copy, Debug)]
pub struct VectorSearchOptions<'a> {
    /// How many documents to return, at most [`MAX_DOCUMENTS`].
    pub documents: usize,
    /// Restricts the search to these documents, if given.
    pub allowed: Option<&'a OrdinalSet>,
    /// The most threads the search may use.
    pub threads: usize,
}

/// A document found by a search, with the score of its nearest passage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VectorHit {
    /// The ordinal of the document in [`LiveDocuments`](super::LiveDocuments).
    pub ordinal: u32,
    /// The cosine similarity of its best passage and the query, one at best.
    pub score: f32,
}

/// A passage of a hit, with its place in the text and its own score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PassageHit {
    /// The index of the passage in its document, from zero.
    pub number: u32,
    /// The offset in the document's text at which the passage begins, in bytes.
    pub start: u32,
    /// The offset at which the passage ends, exclusive.
    pub end: u32,
    /// The cosine similarity of the passage and the query.
    pub score: f32,
}

impl VectorView {
    /// Prepares a query vector: checks it, rotates it as the rows are, and quantizes it. The result is valid for every
    /// view of the same model. All rows were rotated when they were written, because one-bit codes need components of
    /// similar size; a rotation changes no dot product if it is applied to both sides.
    pub fn question(&self, vector: &[f32]) -> Result<QueryVector, SearchError> {
        let mut rotated = checked_unit_vector(vector, self.dims)?;
        self.rotation.rotate(&mut rotated);
        Ok(QueryVector::new(rotated, self.dims.next_multiple_of(ALIGN)))
    }

    /// Finds the nearest documents; hits are sorted by ordinal. Among many rows the search is approximate.
    pub fn search(
        &self,
        question: &QueryVector,
        options: &VectorSearchOptions<'_>,
    ) -> Result<Vec<VectorHit>, SearchError> {
        self.search_with(question, options, DEFAULT_EFFORT)
    }

    /// Finds the nearest documents by exhaustive search, with every allowed row scored; hits are sorted by ordinal.
    pub fn search_exact(
        &self,
        question: &QueryVector,
        options: &VectorSearchOptions<'_>,
    ) -> Result<Vec<VectorHit>, SearchError> {
        let exact_rows = usize::MAX;
        self.search_with(
            question,
            options,
            SearchEffort {
                exact_rows,
                ..DEFAULT_EFFORT
            },
        )
    }

    /// The score of a document: that of its nearest passage. `None` if it has no vectors.
    pub fn score(&self, question: &QueryVector, ordinal: u32) -> Option<f32> {
        let rows = self.scored(question, ordinal);
        rows.map(|(_, score)| score).max_by(f32::total_cmp)
    }

    /// The nearest passages of a document, the best first, at most [`PASSAGES_SHOWN`]. All of them are scored again,
    /// although the search has scored some: it keeps the best score of a document and not which passage had it, and few
    /// documents are shown.
    pub fn passages(&self, question: &QueryVector, ordinal: u32) -> Vec<PassageHit> {
        let mut best: Vec<(RowAddress, f32)> = Vec::with_capacity(PASSAGES_SHOWN + 1);
        for (at, score) in self.scored(question, ordinal) {
            let place = best.partition_point(|(_, kept)| *kept >= score);
            if place < PASSAGES_SHOWN {
                best.insert(place, (at, score));
                best.truncate(PASSAGES_SHOWN);
            }
        }
        let nearest = best.into_iter();
        nearest
            .filter_map(|(at, score)| self.passage_hit(at, score))
            .collect()
    }

    /// Reconstructs the vectors of a document from their int8 codes, with the range of the text of each passage: scales
    /// them, undoes the rotation and normalizes them.
    pub fn vectors(&self, ordinal: u32) -> Vec<EmbeddedPassage> {
        let Some(RowRange { part, rows }) = self.rows_of(ordinal) else {
            return Vec::new();
        };
        let Some(part) = self.parts.get(part) else {
            return Vec::new();
        };
        let vectors = rows.filter_map(|row| {
            let row = part.segment.row(row)?;
            let codes = row.codes.iter().take(self.dims);
            let mut vector: Vec<f32> = codes.map(|code| f32::from(*code) * row.scale).collect();
            self.rotation.rotate_back(&mut vector);
            let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
            if length > 0.0 {
                vector.iter_mut().for_each(|number| *number /= length);
            }
            let [start, end] = row.place;
            Some(EmbeddedPassage { start, end, vector })
        });
        vectors.collect()
    }

    /// Scores all rows of a document.
    fn scored(
        &self,
        question: &QueryVector,
        ordinal: u32,
    ) -> impl Iterator<Item = (RowAddress, f32)> {
        let range = self.rows_of(ordinal).into_iter();
        let rows =
            range.flat_map(|RowRange { part, rows }| rows.map(move |row| RowAddress { part, row }));
        rows.filter_map(|at| {
            let (codes, scale) = self.parts.get(at.part)?.segment.all_codes().row(at.row)?;
            Some((at, question.score(&self.kernels, codes, scale)))
        })
    }

    fn passage_hit(&self, RowAddress { part, row }: RowAddress, score: f32) -> Option<PassageHit> {
        let segment = &self.parts.get(part)?.segment;
        let [start, end] = segment.row(row)?.place;
        let number = row - segment.rows_around(row).start;
        Some(PassageHit {
            number: u32::try_from(number).unwrap_or(u32::MAX),
            start,
            end,
            score,
        })
    }

    pub(super) fn search_with(
        &self,
        question: &QueryVector,
        options: &VectorSearchOptions<'_>,
        effort: SearchEffort,
    ) -> Result<Vec<VectorHit>, SearchError> {
        if options.documents > MAX_DOCUMENTS {
            return Err(SearchError::TooLarge {
                what: "the number of documents to find".to_owned(),
                size: options.documents,
                limit: MAX_DOCUMENTS,
            });
        }
        question.check(self.dims)?;
        // A broad filter is a post-filter: few rows of many pass the estimate, and a lookup for each of these is
        // cheaper than a mask of all rows. A selective filter, or one among few rows, becomes such a mask (pre-filter).
        let is_post_filter =
            |allowed: &&OrdinalSet| self.rows() > effort.exact_rows && !self.is_selective(allowed);
        let post_filter = options.allowed.filter(is_post_filter);
        let pre_filter = options.allowed.filter(|allowed| !is_post_filter(allowed));
        let masks: Vec<Cow<'_, [u64]>> = match pre_filter {
            None => {
                let live = self.parts.iter().map(|part| Cow::from(&part.live));
                live.collect()
            }
            Some(allowed) => self.masks(allowed).into_iter().map(Cow::from).collect(),
        };
        let words = masks.iter().flat_map(|mask| mask.iter());
        let search = VectorSearch {
            view: self,
            question,
            rows: words.map(|word| word.count_ones() as usize).sum(),
            masks,
            post_filter,
            limit: options.documents,
            threads: options.threads,
            effort,
        };
        if search.rows <= effort.exact_rows {
            search.search_exhaustive()
        } else {
            search.search_two_stage()
        }
    }
}

/// One search in progress. `masks` has, for each segment, one bit for each row that may be returned, and `rows` is the
/// number of these bits. `post_filter` restricts the documents further, where the masks do not.
struct VectorSearch<'v> {
    view: &'v VectorView,
    question: &'v QueryVector,
    masks: Vec<Cow<'v, [u64]>>,
    rows: usize,
    post_filter: Option<&'v OrdinalSet>,
    limit: usize,
    threads: usize,
    effort: SearchEffort,
}

impl VectorSearch<'_> {
    /// Exhaustive search: scores every allowed row in int8.
    fn search_exhaustive(&self) -> Result<Vec<VectorHit>, SearchError> {
        let found = self.run_parallel(self.effort.scored_a_thread, |share| {
            let mut documents = DocumentCollector::new(self.limit);
            for range in share {
                let Some(part) = self.view.parts.get(range.part) else {
                    continue;
                };
                let codes = part.segment.all_codes();
                self.each_group(range, |_, at, rows| {
                    each_run(rows, |run| {
                        let rows = at * GROUP + run.start..at * GROUP + run.end;
                        self.score_rows(&mut documents, part, &codes, rows);
                    });
                });
            }
            documents.finish()
        })?;
        Ok(into_hits(TopK::joined(found)))
    }

    /// Two-stage search: selects a candidate pool by one-bit codes, then rescores the candidates in int8.
    fn search_two_stage(&self) -> Result<Vec<VectorHit>, SearchError> {
        let pool_size = (self.limit * CANDIDATES_PER_DOCUMENT).max(self.effort.candidates);
        let selected = self.run_parallel(self.effort.picked_a_thread, |share| {
            self.select_candidates(share, pool_size)
        })?;
        let selected = TopK::joined(selected).map(TopK::into_unsorted);
        let mut rows: Vec<RowAddress> = selected.iter().flatten().map(|one| one.item).collect();
        // In file order: the rows of a document come together, and each memory page is read once.
        rows.sort_unstable();
        let mut documents = DocumentCollector::new(self.limit);
        for RowAddress { part, row } in rows {
            let Some(part) = self.view.parts.get(part) else {
                continue;
            };
            if let Some((codes, scale)) = part.segment.all_codes().row(row) {
                let score = self.question.score(&self.view.kernels, codes, scale);
                documents.push(part.owner(row), score);
            }
        }
        let found = self.rescore_documents(documents.finish());
        Ok(into_hits(Some(found)))
    }

    /// Selects the rows of a share with the best RaBitQ estimates as candidates.
    fn select_candidates(&self, share: &[RowRange], pool_size: usize) -> TopK<RowAddress> {
        let mut candidates = CandidateCollector::new(pool_size);
        let mut estimates = [0.0; GROUP];
        for range in share {
            let Some(part) = self.view.parts.get(range.part) else {
                continue;
            };
            let query = self.question.rabitq_query(part.segment.mean());
            self.each_group(range, |number, at, rows| {
                let Some(group) = part.segment.group(at) else {
                    return;
                };
                let least = candidates.best.threshold() - query.base;
                let kernels = &self.view.kernels;
                let passed = kernels.estimate_group(group, &query, least, &mut estimates);
                each_bit(passed & rows, |bit| {
                    let row = at * GROUP + bit;
                    let owner = part.owner(row);
                    if self
                        .post_filter
                        .is_none_or(|allowed| allowed.contains(owner))
                    {
                        let score = estimates.get(bit).map_or(0.0, |x| x + query.base);
                        let order = u32::try_from(part.before + row).unwrap_or(u32::MAX);
                        let one = ScoredItem::new(score, order, RowAddress { part: number, row });
                        candidates.push(owner, one);
                    }
                });
            });
        }
        candidates.finish()
    }

    /// Rescores found documents with all their passages, as long as [`MAX_RESCORED_ROWS`] allows: a passage that was no
    /// candidate may be nearer than those that were.
    fn rescore_documents(&self, found: TopK<()>) -> TopK<()> {
        let mut budget = MAX_RESCORED_ROWS;
        let mut best = TopK::new(self.limit);
        for one in found.into_sorted() {
            let (ordinal, mut score) = (one.order(), one.score());
            let rows = self
                .view
                .rows_of(ordinal)
                .map_or(0, |range| range.rows.len());
            if let Some(rest) = budget.checked_sub(rows) {
                budget = rest;
                let whole = self.view.score(self.question, ordinal);
                score = whole.unwrap_or(score);
            }
            best.push(ScoredItem::new(score, ordinal, ()));
        }
        best
    }

    /// Scores up to [`GROUP`] consecutive rows.
    #[inline]
    fn score_rows(
        &self,
        documents: &mut DocumentCollector,
        part: &SegmentView,
        codes: &ScalarCodes<'_>,
        rows: Range<usize>,
    ) {
        let owners = part.owners.get(rows.clone());
        if let Some(((codes, scales), owners)) = codes.rows(rows).zip(owners) {
            let mut scores = [0.0; GROUP];
            let kernels = &self.view.kernels;
            self.question.scores(kernels, codes, scales, &mut scores);
            for (owner, score) in owners.iter().zip(&scores) {
                documents.push(*owner, *score);
            }
        }
    }

    /// Calls `act` for each group of a range that has allowed rows, with the bits of these rows.
    fn each_group(&self, range: &RowRange, mut act: impl FnMut(usize, usize, u64)) {
        let Some(mask) = self.masks.get(range.part) else {
            return;
        };
        let rows = &range.rows;
        let first = rows.start / GROUP;
        for (at, word) in mask
            .iter()
            .enumerate()
            .take(rows.end.div_ceil(GROUP))
            .skip(first)
        {
            let mut word = *word;
            if at == first {
                word &= u64::MAX << (rows.start % GROUP);
            }
            if (at + 1) * GROUP > rows.end {
                word &= u64::MAX >> (GROUP - rows.end % GROUP);
            }
            if word != 0 {
                act(range.part, at, word);
            }
        }
    }

    /// Partitions the rows and runs `work` on each share, on as many threads as the caller allows and the number of
    /// rows justifies. The calling thread takes the first share.
    fn run_parallel<R: Send>(
        &self,
        rows_a_thread: usize,
        work: impl Fn(&[RowRange]) -> R + Sync,
    ) -> Result<Vec<R>, SearchError> {
        let justified = self.rows / rows_a_thread.max(1);
        let shares = self.view.partition(self.threads.min(justified).max(1));
        let Some((own, others)) = shares.split_first() else {
            return Ok(Vec::new());
        };
        thread::scope(|scope| {
            let work = &work;
            let others: Vec<_> = others
                .iter()
                .map(|share| scope.spawn(move || work(share)))
                .collect();
            let mut results = vec![work(own)];
            for other in others {
                let failed = |_| SearchError::engine("a search thread panicked");
                results.push(other.join().map_err(failed)?);
            }
            Ok(results)
        })
    }
}

fn into_hits(found: Option<TopK<()>>) -> Vec<VectorHit> {
    let found = found.map(TopK::into_unsorted).into_iter().flatten();
    let to_hit = |one: ScoredItem<()>| VectorHit {
        ordinal: one.order(),
        score: one.score(),
    };
    let mut found: Vec<VectorHit> = found.map(to_hit).collect();
    found.sort_unstable_by_key(|found| found.ordinal);
    found
}

/// Calls `act` with each run of set bits.
fn each_run(mut word: u64, mut act: impl FnMut(Range<usize>)) {
    while word != 0 {
        let start = word.trailing_zeros();
        let end = start + (word >> start).trailing_ones();
        act(start as usize..end as usize);
        // Adding the lowest bit of the run carries through the run and clears it.
        word &= word.wrapping_add(1 << start);
    }
}

fn each_bit(mut word: u64, mut act: impl FnMut(usize)) {
    while word != 0 {
        act(word.trailing_zeros() as usize);
        word &= word - 1;
    }
}
