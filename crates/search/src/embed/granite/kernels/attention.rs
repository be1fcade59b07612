//! Scaled dot-product attention: the scores of each query against all keys of its text, their softmax, and the mean of
//! the values weighted by it.
#![allow(unsafe_code, reason = "SIMD instructions and raw loads")]

use std::ops::Range;

use super::SimdKernel;
use super::lanes::{SimdLanes, WIDTH};
use super::linear::PANEL;

/// The dimensions of one attention head.
const HEAD: usize = 32;

/// The score of padding. Its power of two is next to zero, so padding gets no attention.
const MASKED_SCORE: f32 = -1e30;

/// The heads of all tokens of a batch in [`super::OutputLayout::Panels`]: two heads to a panel.
#[derive(Clone, Copy)]
pub(in super::super) struct AttentionHeads<'a> {
    pub(in super::super) panels: &'a [f32],
    pub(in super::super) rows: usize,
}

impl AttentionHeads<'_> {
    fn heads(&self) -> usize {
        self.panels.len() / (self.rows * HEAD).max(1)
    }

    /// The index at which a head of a row begins.
    fn offset(&self, head: usize, row: usize) -> usize {
        (head / 2 * self.rows + row) * PANEL + head % 2 * HEAD
    }
}

/// Attention of one text, all heads. `others` holds the keys of all heads, then the values of all heads. `out` gets one
/// row for each query, with its heads side by side. `scratch` only keeps its allocation between calls.
///
/// The softmax is computed with powers of two, which are cheaper: the packed weights multiply queries by log₂ e / √32.
pub(in super::super) struct AttentionKernel<'a> {
    pub(in super::super) queries: (AttentionHeads<'a>, Range<usize>),
    pub(in super::super) others: (AttentionHeads<'a>, Range<usize>),
    pub(in super::super) out: &'a mut [f32],
    pub(in super::super) scratch: &'a mut Vec<f32>,
}

impl SimdKernel for AttentionKernel<'_> {
    #[inline(always)]
    unsafe fn run<V: SimdLanes>(self) {
        let (queries, query_rows) = self.queries;
        let (others, key_rows) = self.others;
        let heads = queries.heads();
        let (rows, count) = (query_rows.len(), key_rows.len());
        assert!(query_rows.end <= queries.rows && key_rows.end <= others.rows && count > 0);
        assert!(others.heads() == 2 * heads && self.out.len() == rows * heads * HEAD);
        let padded = count.next_multiple_of(V::VECTORS * WIDTH);
        self.scratch.resize(padded * (2 * HEAD + GROUP), 0.0);
        let (keys, rest) = self.scratch.split_at_mut(padded * HEAD);
        let (values, scores) = rest.split_at_mut(padded * HEAD);
        for head in 0..heads {
            let gathered = GatheredHead {
                keys: &mut *keys,
                values: &mut *values,
            };
            gather(&others, head, heads + head, key_rows.clone(), gathered);
            for row in (0..rows).step_by(GROUP) {
                let offset = queries.offset(head, query_rows.start + row);
                let group = AttentionQueryGroup {
                    // SAFETY: the row is one that `queries` has.
                    query: unsafe { queries.panels.as_ptr().add(offset) },
                    keys: keys.as_ptr(),
                    values: values.as_ptr(),
                    scores: scores.as_mut_ptr(),
                    count,
                    padded,
                    // SAFETY: `out` has this row of all heads.
                    out: unsafe { self.out.as_mut_ptr().add((row * heads + head) * HEAD) },
                    out_stride: heads * HEAD,
                };
                // SAFETY: so many rows are left, and the scratch has room for their scores.
                unsafe { group.run::<V>(GROUP.min(rows - row)) }
            }
        }
    }
}

/// How many queries of a head are processed together: enough to amortize reading the keys and values from the L2
/// cache, few enough for their scores to stay in L1.
const GROUP: usize = 24;

/// Where the keys and values of one head are copied to.
struct GatheredHead<'s> {
    keys: &'s mut [f32],
    values: &'s mut [f32],
}

/// Copies the keys of one head, transposed and padded with zeros, and its values.
#[inline(always)]
fn gather(
    heads: &AttentionHeads<'_>,
    key: usize,
    value: usize,
    rows: Range<usize>,
    to: GatheredHead<'_>,
) {
    let GatheredHead { keys, values } = to;
    let padded = keys.len() / HEAD;
    for line in keys.chunks_exact_mut(padded) {
        if let Some(padding) = line.get_mut(rows.len()..) {
            padding.fill(0.0);
        }
    }
    for (at, row) in rows.enumerate() {
        let (key, value) = (heads.offset(key, row), heads.offset(value, row));
        if let Some(key) = heads.panels.get(key..key + HEAD) {
            for (line, number) in keys.chunks_exact_mut(padded).zip(key) {
                if let Some(place) = line.get_mut(at) {
                    *place = *number;
                }
            }
        }
        let to = values.get_mut(at * HEAD..(at + 1) * HEAD);
        if let (Some(value), Some(to)) = (heads.panels.get(value..value + HEAD), to) {
            to.copy_from_slice(value);
        }
    }
}

/// A group of queries of one head, with the keys and values of that head.
struct AttentionQueryGroup {
    query: *const f32,
    keys: *const f32,
    values: *const f32,
    scores: *mut f32,
    /// The number of keys, without padding.
    count: usize,
    /// The number of keys with the padding to whole tiles.
    padded: usize,
    out: *mut f32,
    out_stride: usize,
}

impl AttentionQueryGroup {
    /// Computes the attention of at most [`GROUP`] queries.
    #[inline(always)]
    unsafe fn run<V: SimdLanes>(&self, rows: usize) {
        let tiles = || {
            let starts = (0..rows).step_by(V::ROWS);
            starts.map(|row| (row, V::ROWS.min(rows - row)))
        };
        let mut scales = [0.0; GROUP];
        // SAFETY: the caller guarantees that the pointers are valid; the keys are padded to whole tiles.
        unsafe {
            for key in (0..self.padded).step_by(V::VECTORS * WIDTH) {
                for (row, count) in tiles() {
                    match count {
                        1 => self.score_some::<V, 1>(row, key),
                        2 => self.score_some::<V, 2>(row, key),
                        3 => self.score_some::<V, 3>(row, key),
                        4 => self.score_some::<V, 4>(row, key),
                        5 => self.score_some::<V, 5>(row, key),
                        _ => self.score_some::<V, 6>(row, key),
                    }
                }
            }
            for (row, scale) in scales.iter_mut().enumerate().take(rows) {
                *scale = 1.0 / self.softmax::<V>(row);
            }
            for (row, count) in tiles() {
                match count {
                    1 => self.weighted_sum_all::<V, 1>(row, &scales),
                    2 => self.weighted_sum_all::<V, 2>(row, &scales),
                    3 => self.weighted_sum_all::<V, 3>(row, &scales),
                    4 => self.weighted_sum_all::<V, 4>(row, &scales),
                    5 => self.weighted_sum_all::<V, 5>(row, &scales),
                    _ => self.weighted_sum_all::<V, 6>(row, &scales),
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn score_some<V: SimdLanes, const R: usize>(&self, row: usize, key: usize) {
        // SAFETY: as for `score`.
        unsafe {
            if V::VECTORS == 4 {
                self.score::<V, R, 4>(row, key);
            } else {
                self.score::<V, R, 1>(row, key);
            }
        }
    }

    #[inline(always)]
    unsafe fn weighted_sum_all<V: SimdLanes, const R: usize>(
        &self,
        row: usize,
        scales: &[f32; GROUP],
    ) {
        // SAFETY: as for `weighted_sum`; a head is two vectors wide.
        unsafe {
            if V::VECTORS == 4 {
                self.weighted_sum::<V, R, 2>(row, 0, scales);
            } else {
                self.weighted_sum::<V, R, 1>(row, 0, scales);
                self.weighted_sum::<V, R, 1>(row, WIDTH, scales);
            }
        }
    }

    /// Computes the scores of `R` queries against `C` vectors of keys.
    #[inline(always)]
    unsafe fn score<V: SimdLanes, const R: usize, const C: usize>(&self, row: usize, key: usize) {
        let padded = self.padded;
        // SAFETY: `C` vectors from `key` on are within the padded keys.
        unsafe {
            let mut sums = [[V::splat(0.0); C]; R];
            let mut line = self.keys.add(key);
            let mut query = self.query.add(row * PANEL);
            for _ in 0..HEAD {
                let mut keys = [V::splat(0.0); C];
                for (c, keys) in keys.iter_mut().enumerate() {
                    *keys = V::load(line.add(c * WIDTH));
                }
                for (r, sums) in sums.iter_mut().enumerate() {
                    let query = V::splat(*query.add(r * PANEL));
                    for (sum, keys) in sums.iter_mut().zip(keys) {
                        *sum = query.mul_add(keys, *sum);
                    }
                }
                query = query.add(1);
                line = line.add(padded);
            }
            for (r, sums) in sums.into_iter().enumerate() {
                for (c, sum) in sums.into_iter().enumerate() {
                    sum.store(self.scores.add((row + r) * padded + key + c * WIDTH));
                }
            }
        }
    }

    /// The softmax of one query, without the division: replaces its scores by powers of two and returns their sum. The
    /// maximum is subtracted first, so that no power overflows.
    #[inline(always)]
    unsafe fn softmax<V: SimdLanes>(&self, row: usize) -> f32 {
        let (count, padded) = (self.count, self.padded);
        // SAFETY: the scores have room for `padded` numbers a row.
        unsafe {
            let scores = self.scores.add(row * padded);
            for at in count..padded {
                *scores.add(at) = MASKED_SCORE;
            }
            let end = count.next_multiple_of(WIDTH);
            let mut best = V::load(scores);
            for at in (0..end).step_by(WIDTH) {
                best = best.max(V::load(scores.add(at)));
            }
            let best = V::splat(best.greatest());
            let mut sum = V::splat(0.0);
            for at in (0..end).step_by(WIDTH) {
                let power = V::load(scores.add(at)).sub(best).exp2();
                sum = sum.add(power);
                power.store(scores.add(at));
            }
            sum.sum()
        }
    }

    /// Computes the weighted mean of the values for `R` queries, in `C` vectors of columns.
    #[inline(always)]
    unsafe fn weighted_sum<V: SimdLanes, const R: usize, const C: usize>(
        &self,
        first: usize,
        column: usize,
        scales: &[f32; GROUP],
    ) {
        let (count, padded) = (self.count, self.padded);
        // SAFETY: there are `count` values of 32 numbers, and as many scores a row.
        unsafe {
            let mut sums = [[V::splat(0.0); C]; R];
            let mut from = self.values.add(column);
            let mut rows = [self.scores; R];
            for (r, row) in rows.iter_mut().enumerate() {
                *row = self.scores.add((first + r) * padded);
            }
            for _ in 0..count {
                let mut values = [V::splat(0.0); C];
                for (c, values) in values.iter_mut().enumerate() {
                    *values = V::load(from.add(c * WIDTH));
                }
                for (sums, row) in sums.iter_mut().zip(&mut rows) {
                    let weight = V::splat(**row);
                    for (sum, values) in sums.iter_mut().zip(values) {
                        *sum = weight.mul_add(values, *sum);
                    }
                    *row = row.add(1);
                }
                from = from.add(HEAD);
            }
            let scales = scales.iter().skip(first);
            for (r, (sums, scale)) in sums.into_iter().zip(scales).enumerate() {
                let out = self.out.add((first + r) * self.out_stride + column);
                for (c, sum) in sums.into_iter().enumerate() {
                    let to = out.add(c * WIDTH);
                    sum.mul(V::splat(*scale)).store(to);
                }
            }
        }
    }
}
