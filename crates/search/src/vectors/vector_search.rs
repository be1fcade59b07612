//! A question into the documents whose passages are nearest to it.
//!
//! Few rows are all scored in eight bits. Of many, one bit a number picks a few thousand first,
//! and only these are scored. What is not allowed is never scored or picked, so a narrow filter takes
//! no place from what it lets through.
//!
//! How much this loses was measured on 72,000 vectors of 384 numbers that granite-embedding-30m made
//! of real passages, and on a million made from these, with 100 real questions, against the vectors
//! as they came from the model: of the ten best 0.990 to 0.997 are found, of the hundred best 0.993
//! or more, with filters of a tenth and a hundredth as without. Nearly all of the loss is that of
//! eight bits; the picking adds 0.001 at most. `examples/vector_speed.rs` measures it again.

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

/// How much is done for an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct SearchEffort {
    /// Up to this many allowed rows all are scored.
    pub exact_rows: usize,
    /// From twice as many rows on a second thread helps to score them, and so on.
    pub scored_a_thread: usize,
    /// The same where rows are only picked from.
    pub picked_a_thread: usize,
    /// How many rows are picked, at least.
    pub candidates: usize,
}

/// Measured: with fewer rows, scoring all takes half a millisecond; a thread starts in the time that
/// so many rows take; and so many candidates of a million find what scoring all of them finds.
const DEFAULT_EFFORT: SearchEffort = SearchEffort {
    exact_rows: 20_000,
    scored_a_thread: 20_000,
    picked_a_thread: 150_000,
    candidates: 2_000,
};

/// How many are picked for each document that is wanted, if that is more.
const CANDIDATES_A_DOCUMENT: usize = 20;

/// How many more rows are scored to find the second and third passage of what was found.
const MAX_MORE_ROWS: usize = 4_096;

/// What is wanted from a search.
#[derive(Clone, Copy, Debug)]
pub struct VectorSearchOptions<'a> {
    /// How many documents, at most [`MAX_DOCUMENTS`].
    pub documents: usize,
    /// Only these, when given.
    pub allowed: Option<&'a OrdinalSet>,
    /// How many threads may work on it.
    pub threads: usize,
}

/// A document that was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VectorHit {
    /// The ordinal it has among the live documents.
    pub ordinal: u32,
    /// The score of its best passage: the cosine of the angle to the question, one at best.
    pub score: f32,
}

/// A passage that was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PassageHit {
    /// Which passage of its document, counted from zero.
    pub number: u32,
    /// The byte of the document's text at which it begins.
    pub start: u32,
    /// The byte behind its last.
    pub end: u32,
    /// The cosine of the angle to the question.
    pub score: f32,
}

impl VectorView {
    /// A vector as a question to these vectors and to later ones of the same model.
    pub fn question(&self, vector: &[f32]) -> Result<QueryVector, SearchError> {
        let mut turned = checked_unit_vector(vector, self.dims)?;
        self.rotation.rotate(&mut turned);
        Ok(QueryVector::new(turned, self.dims.next_multiple_of(ALIGN)))
    }

    /// The best documents for a question, by their ordinals. Of many rows nearly all of the best.
    pub fn search(
        &self,
        question: &QueryVector,
        wanted: &VectorSearchOptions<'_>,
    ) -> Result<Vec<VectorHit>, SearchError> {
        self.search_with(question, wanted, DEFAULT_EFFORT)
    }

    /// The best documents for a question, by their ordinals, with every allowed row scored.
    pub fn search_exact(
        &self,
        question: &QueryVector,
        wanted: &VectorSearchOptions<'_>,
    ) -> Result<Vec<VectorHit>, SearchError> {
        let exact_rows = usize::MAX;
        self.search_with(
            question,
            wanted,
            SearchEffort {
                exact_rows,
                ..DEFAULT_EFFORT
            },
        )
    }

    /// How near a document is. Nothing when it has no vectors.
    pub fn score(&self, question: &QueryVector, ordinal: u32) -> Option<f32> {
        let rows = self.scored(question, ordinal);
        rows.map(|(_, score)| score).max_by(f32::total_cmp)
    }

    /// The passages of a document that are nearest to the question, the best first, at most
    /// [`PASSAGES_SHOWN`].
    pub fn passages(&self, question: &QueryVector, ordinal: u32) -> Vec<PassageHit> {
        let mut best: Vec<(RowAddress, f32)> = Vec::with_capacity(PASSAGES_SHOWN + 1);
        for (at, score) in self.scored(question, ordinal) {
            let place = best.partition_point(|(_, kept)| *kept >= score);
            if place < PASSAGES_SHOWN {
                best.insert(place, (at, score));
                best.truncate(PASSAGES_SHOWN);
            }
        }
        let near = best.into_iter();
        near.filter_map(|(at, score)| self.passage_hit(at, score))
            .collect()
    }

    /// The vectors of a document with the bytes of its text that each stands for, in their order, as exact
    /// as they are kept.
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

    /// The rows of a document with their scores.
    fn scored(
        &self,
        question: &QueryVector,
        ordinal: u32,
    ) -> impl Iterator<Item = (RowAddress, f32)> {
        let home = self.rows_of(ordinal).into_iter();
        let rows =
            home.flat_map(|RowRange { part, rows }| rows.map(move |row| RowAddress { part, row }));
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
        wanted: &VectorSearchOptions<'_>,
        effort: SearchEffort,
    ) -> Result<Vec<VectorHit>, SearchError> {
        if wanted.documents > MAX_DOCUMENTS {
            return Err(SearchError::TooLarge {
                what: "the number of documents to find".to_owned(),
                size: wanted.documents,
                limit: MAX_DOCUMENTS,
            });
        }
        question.check(self.dims)?;
        // Of many rows few are picked, and asking for these is less than asking for all.
        let is_late =
            |allowed: &&OrdinalSet| self.rows() > effort.exact_rows && !self.is_selective(allowed);
        let late = wanted.allowed.filter(is_late);
        let early = wanted.allowed.filter(|allowed| !is_late(allowed));
        let masks: Vec<Cow<'_, [u64]>> = match early {
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
            post_filter: late,
            wanted: wanted.documents,
            threads: wanted.threads,
            effort,
        };
        if search.rows <= effort.exact_rows {
            search.search_exhaustive()
        } else {
            search.search_two_stage()
        }
    }
}

struct VectorSearch<'v> {
    view: &'v VectorView,
    question: &'v QueryVector,
    /// For each part, one bit for each row that may be returned.
    masks: Vec<Cow<'v, [u64]>>,
    /// How many these are.
    rows: usize,
    /// Only these documents may be returned, which the masks do not know.
    post_filter: Option<&'v OrdinalSet>,
    wanted: usize,
    threads: usize,
    effort: SearchEffort,
}

impl VectorSearch<'_> {
    /// Scores every row that is allowed.
    fn search_exhaustive(&self) -> Result<Vec<VectorHit>, SearchError> {
        let found = self.run_parallel(self.effort.scored_a_thread, |share| {
            let mut documents = DocumentCollector::new(self.wanted);
            for stretch in share {
                let Some(part) = self.view.parts.get(stretch.part) else {
                    continue;
                };
                let codes = part.segment.all_codes();
                self.each_group(stretch, |_, at, rows| {
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

    /// Scores the rows that one bit a number picks.
    fn search_two_stage(&self) -> Result<Vec<VectorHit>, SearchError> {
        let most = (self.wanted * CANDIDATES_A_DOCUMENT).max(self.effort.candidates);
        let picked = self.run_parallel(self.effort.picked_a_thread, |share| {
            self.pick_candidates(share, most)
        })?;
        let picked = TopK::joined(picked).map(TopK::into_unsorted);
        let mut rows: Vec<RowAddress> = picked.iter().flatten().map(|one| one.thing).collect();
        // In the order of the file: rows of a document come together, and pages once.
        rows.sort_unstable();
        let mut documents = DocumentCollector::new(self.wanted);
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

    /// Picks the rows of a share that look best.
    fn pick_candidates(&self, share: &[RowRange], most: usize) -> TopK<RowAddress> {
        let mut picks = CandidateCollector::new(most);
        let mut estimates = [0.0; GROUP];
        for stretch in share {
            let Some(part) = self.view.parts.get(stretch.part) else {
                continue;
            };
            let about = self.question.rabitq_query(part.segment.mean());
            self.each_group(stretch, |number, at, rows| {
                let Some(group) = part.segment.group(at) else {
                    return;
                };
                let least = picks.best.threshold() - about.base;
                let kernels = &self.view.kernels;
                let passed = kernels.estimate_group(group, &about, least, &mut estimates);
                each_bit(passed & rows, |bit| {
                    let row = at * GROUP + bit;
                    let owner = part.owner(row);
                    if self
                        .post_filter
                        .is_none_or(|allowed| allowed.contains(owner))
                    {
                        let score = estimates.get(bit).map_or(0.0, |x| x + about.base);
                        let order = u32::try_from(part.before + row).unwrap_or(u32::MAX);
                        let one = ScoredItem::new(score, order, RowAddress { part: number, row });
                        picks.push(owner, one);
                    }
                });
            });
        }
        picks.finish()
    }

    /// Looks at the passages of the found documents that were not picked too, while there are not
    /// too many: one of them may be nearer.
    fn rescore_documents(&self, found: TopK<()>) -> TopK<()> {
        let mut room = MAX_MORE_ROWS;
        let mut best = TopK::new(self.wanted);
        for one in found.into_sorted() {
            let (ordinal, mut score) = (one.order(), one.score());
            let rows = self.view.rows_of(ordinal).map_or(0, |home| home.rows.len());
            if let Some(rest) = room.checked_sub(rows) {
                room = rest;
                let whole = self.view.score(self.question, ordinal);
                score = whole.unwrap_or(score);
            }
            best.push(ScoredItem::new(score, ordinal, ()));
        }
        best
    }

    /// Scores up to [`GROUP`] rows that lie one behind the other.
    #[inline]
    fn score_rows(
        &self,
        documents: &mut DocumentCollector,
        part: &SegmentView,
        codes: &ScalarCodes<'_>,
        rows: Range<usize>,
    ) {
        let owners = part.owners.get(rows.clone());
        if let Some((rows, owners)) = codes.rows(rows).zip(owners) {
            let mut scores = [0.0; GROUP];
            let kernels = &self.view.kernels;
            self.question.scores(kernels, rows, &mut scores);
            for (owner, score) in owners.iter().zip(&scores) {
                documents.push(*owner, *score);
            }
        }
    }

    /// Calls `act` with each group of a stretch that has allowed rows, and with which these are.
    fn each_group(&self, stretch: &RowRange, mut act: impl FnMut(usize, usize, u64)) {
        let Some(mask) = self.masks.get(stretch.part) else {
            return;
        };
        let rows = &stretch.rows;
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
                act(stretch.part, at, word);
            }
        }
    }

    /// Has the rows worked on by as many threads as are allowed and worth it.
    fn run_parallel<R: Send>(
        &self,
        rows_a_thread: usize,
        work: impl Fn(&[RowRange]) -> R + Sync,
    ) -> Result<Vec<R>, SearchError> {
        let worth = self.rows / rows_a_thread.max(1);
        let shares = self.view.partition(self.threads.min(worth).max(1));
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
                let failed = |_| SearchError::engine("a thread of the search failed");
                results.push(other.join().map_err(failed)?);
            }
            Ok(results)
        })
    }
}

fn into_hits(found: Option<TopK<()>>) -> Vec<VectorHit> {
    let found = found.map(TopK::into_unsorted).into_iter().flatten();
    let report = |one: ScoredItem<()>| VectorHit {
        ordinal: one.order(),
        score: one.score(),
    };
    let mut found: Vec<VectorHit> = found.map(report).collect();
    found.sort_unstable_by_key(|found| found.ordinal);
    found
}

/// Calls `act` with each stretch of bits that are set.
fn each_run(mut word: u64, mut act: impl FnMut(Range<usize>)) {
    while word != 0 {
        let start = word.trailing_zeros();
        let end = start + (word >> start).trailing_ones();
        act(start as usize..end as usize);
        // Adding its lowest bit carries through the whole stretch.
        word &= word.wrapping_add(1 << start);
    }
}

fn each_bit(mut word: u64, mut act: impl FnMut(usize)) {
    while word != 0 {
        act(word.trailing_zeros() as usize);
        word &= word - 1;
    }
}
