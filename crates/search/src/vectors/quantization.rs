//! Vectors into few bits, and what such bits say about how near two vectors are.
//!
//! A row is kept twice. Eight bits a number, with one scale for the row, are as good as the vector
//! itself for ranking. One bit a number, the side of the mean it is on, is enough to pick a few
//! thousand rows worth a closer look, and is read eight times as fast.

use super::kernels::DistanceKernels;
use super::segment_layout::GROUP;
use crate::error::SearchError;

/// The largest eight-bit number, used on both sides of zero.
const MAX_INT8: f32 = 127.0;

/// A question's numbers are rounded to this many bits before they are held against one-bit rows.
/// With four, what the rounding adds to the error is a small part of what the rows' own has.
pub(super) const QUERY_BIT_PLANES: usize = 4;

/// The largest such number, used on both sides of zero.
const MAX_INT4: f32 = 7.0;

/// Writes `vector` as eight-bit numbers into `codes` and returns what one step of them is worth.
pub(super) fn quantize_int8(vector: &[f32], codes: &mut [i8]) -> f32 {
    let per = reciprocal(max_abs(vector) / MAX_INT8);
    let (mut shared, mut square) = (0.0, 0.0);
    for (code, number) in codes.iter_mut().zip(vector) {
        let rounded = (number * per).round();
        *code = rounded as i8;
        shared += rounded * number;
        square += rounded * rounded;
    }
    // Not the step that was rounded by, but the one that brings the codes nearest to the vector.
    shared * reciprocal(square)
}

/// One through a number that is not below zero; zero where that would be beyond all numbers.
fn reciprocal(number: f32) -> f32 {
    if number >= f32::MIN_POSITIVE {
        1.0 / number
    } else {
        0.0
    }
}

fn max_abs(numbers: &[f32]) -> f32 {
    numbers.iter().fold(0.0, |most, x| most.max(x.abs()))
}

fn dot(left: &[f32], right: &[f32]) -> f32 {
    left.iter().zip(right).map(|(a, b)| a * b).sum()
}

/// The one-bit numbers of up to [`GROUP`] rows, and two numbers for each row that turn a sum over
/// its bits into an estimate of its score.
///
/// With `r` the row less the mean `c`, the bits are the signs of `r`. What the signs of `r` give
/// with another vector, times `|r|² / Σ|r|`, is on average what `r` itself gives with it.
pub(super) struct RabitqCodes {
    /// In blocks of eight rows: the first word of each of the eight, then the second, and so on.
    pub words: Vec<u64>,
    /// What one side of the mean more is worth.
    pub factors: [f32; GROUP],
    /// The row's product with the mean.
    pub offsets: [f32; GROUP],
    row: Vec<f32>,
}

/// Rows whose words stand beside each other: as many words as the widest register has.
pub(super) const BLOCK: usize = 8;

impl RabitqCodes {
    pub(super) fn new(stride: usize) -> Self {
        Self {
            words: vec![0; stride / 64 * GROUP],
            factors: [0.0; GROUP],
            offsets: [0.0; GROUP],
            row: vec![0.0; stride],
        }
    }

    pub(super) fn clear(&mut self) {
        self.words.fill(0);
        self.factors = [0.0; GROUP];
        self.offsets = [0.0; GROUP];
    }

    /// Takes row number `at` of the group in.
    pub(super) fn set(&mut self, at: usize, (codes, scale): (&[i8], f32), mean: &[f32]) {
        for (number, code) in self.row.iter_mut().zip(codes) {
            *number = f32::from(*code) * scale;
        }
        let offset = dot(&self.row, mean);
        for (number, mean) in self.row.iter_mut().zip(mean) {
            *number -= mean;
        }
        let spread: f32 = self.row.iter().map(|x| x.abs()).sum();
        let factor = dot(&self.row, &self.row) * reciprocal(spread);
        let block = self.row.len() / 64 * BLOCK;
        let words = self.words.chunks_exact_mut(block).nth(at / BLOCK);
        let words = words.unwrap_or_default().iter_mut().skip(at % BLOCK);
        for (word, numbers) in words.step_by(BLOCK).zip(self.row.chunks_exact(64)) {
            *word = signs(numbers);
        }
        if let (Some(own), Some(own_offset)) = (self.factors.get_mut(at), self.offsets.get_mut(at))
        {
            (*own, *own_offset) = (factor, offset);
        }
    }
}

/// One bit for each of 64 numbers: whether it is above zero.
fn signs(numbers: &[f32]) -> u64 {
    let bit = |(at, number): (usize, &f32)| u64::from(*number > 0.0) << at;
    numbers.iter().enumerate().map(bit).fold(0, |a, b| a | b)
}

/// A question, turned as the rows of a model are, ready to be held against them.
pub struct QueryVector {
    dims: usize,
    /// Filled up with zeros to the length of a row.
    rotated: Vec<f32>,
    /// The same in sixteen bits: so fine that only the rows' own rounding counts.
    wide: Vec<i16>,
    step: f32,
}

impl QueryVector {
    pub(super) fn new(mut turned: Vec<f32>, stride: usize) -> Self {
        let dims = turned.len();
        turned.resize(stride, 0.0);
        // So many that no sum of products leaves an `i32`.
        let most = (i32::MAX as f32 / (MAX_INT8 * stride as f32)).min(f32::from(i16::MAX));
        let step = max_abs(&turned) / most.floor();
        let per = reciprocal(step);
        let wide = turned.iter().map(|x| (x * per).round() as i16).collect();
        Self {
            dims,
            rotated: turned,
            wide,
            step,
        }
    }

    /// Refuses a question to vectors of another length.
    pub(super) fn check(&self, dims: usize) -> Result<(), SearchError> {
        if self.dims == dims {
            return Ok(());
        }
        Err(SearchError::engine(format!(
            "a question has {} numbers, the vectors have {dims}",
            self.dims
        )))
    }

    /// About how many bytes it takes in memory.
    pub(crate) fn bytes(&self) -> usize {
        self.rotated.len() * (size_of::<f32>() + size_of::<i16>()) + size_of::<Self>()
    }

    /// The product with a row.
    pub(super) fn score(&self, kernels: &DistanceKernels, codes: &[i8], scale: f32) -> f32 {
        let mut sum = [0];
        kernels.dots(&self.wide, codes, &mut sum);
        let [sum] = sum;
        self.product(sum, scale)
    }

    /// The products with up to [`GROUP`] rows that lie one behind the other, as many as there are scales.
    pub(super) fn scores(
        &self,
        kernels: &DistanceKernels,
        (codes, scales): (&[i8], &[f32]),
        scores: &mut [f32; GROUP],
    ) {
        let mut sums = [0; GROUP];
        let some = sums.get_mut(..scales.len()).unwrap_or_default();
        kernels.dots(&self.wide, codes, some);
        for (score, (sum, scale)) in scores.iter_mut().zip(some.iter().zip(scales)) {
            *score = self.product(*sum, *scale);
        }
    }

    #[inline]
    fn product(&self, sum: i32, scale: f32) -> f32 {
        sum as f32 * (self.step * scale)
    }

    /// The question as one segment's one-bit rows are asked, with that segment's mean.
    pub(super) fn rabitq_query(&self, mean: &[f32]) -> RabitqQuery {
        let rest: Vec<f32> = self.rotated.iter().zip(mean).map(|(q, c)| q - c).collect();
        let step = max_abs(&rest) / MAX_INT4;
        let per = reciprocal(step);
        let mut planes = Vec::with_capacity(rest.len() / 64);
        let mut total = 0;
        for numbers in rest.chunks_exact(64) {
            let mut words = [0_u64; QUERY_BIT_PLANES];
            for (at, number) in numbers.iter().enumerate() {
                let level = (number * per).round() as i32;
                total += level;
                for (plane, word) in words.iter_mut().enumerate() {
                    *word |= u64::from((level >> plane) & 1 == 1) << at;
                }
            }
            planes.push(words);
        }
        let base = dot(&self.rotated, mean) - dot(mean, mean);
        RabitqQuery {
            planes,
            total,
            step,
            base,
        }
    }
}

/// A question less a segment's mean, four bits a number, cut into planes: the lowest bits of 64
/// numbers, the next ones, and so on; the last plane counts below zero.
pub(super) struct RabitqQuery {
    pub planes: Vec<[u64; QUERY_BIT_PLANES]>,
    /// The sum of all numbers.
    pub total: i32,
    /// What one step is worth.
    pub step: f32,
    /// What has to be added to each estimate of the segment.
    pub base: f32,
}

/// One group of one-bit rows, as it lies in the file.
#[derive(Clone, Copy)]
pub(super) struct RabitqGroup<'s> {
    pub words: &'s [u64],
    pub factors: &'s [f32; GROUP],
    pub offsets: &'s [f32; GROUP],
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vectors::random_rotation::RandomRotation;
    use crate::vectors::test_support::{TestRng, unit};

    #[test]
    fn eight_bits_score_as_the_vector_itself() {
        let random = &mut TestRng::new(1);
        for dims in [1, 64, 256, 384, 4096] {
            let stride = usize::next_multiple_of(dims, 64);
            for _ in 0..20 {
                let (row, asked) = (unit(random, dims), unit(random, dims));
                let mut codes = vec![0; stride];
                let scale = quantize_int8(&row, &mut codes);
                let score = QueryVector::new(asked.clone(), stride).score(
                    &DistanceKernels::portable(),
                    &codes,
                    scale,
                );
                let exact = dot(&row, &asked);
                assert!((score - exact).abs() < 0.01, "{dims}: {score} {exact}");
            }
        }
    }

    #[test]
    fn the_largest_question_and_row_do_not_overflow() {
        let stride = 4096;
        let question = QueryVector::new(vec![-1.0; stride], stride);
        let score = question.score(
            &DistanceKernels::portable(),
            &vec![127; stride],
            1.0 / 127.0,
        );
        assert!((score + 4096.0).abs() < 2.0, "{score}");
    }

    #[test]
    fn a_vector_of_zeros_is_all_zero() {
        let mut codes = [1; 64];
        assert_eq!(quantize_int8(&[0.0; 64], &mut codes), 0.0);
        assert_eq!(codes, [0; 64]);
        let question = QueryVector::new(vec![0.0; 64], 64);
        assert_eq!(
            question.score(&DistanceKernels::portable(), &codes, 1.0),
            0.0
        );
    }

    /// On average over many rows the estimate is neither above nor below, and its error is that
    /// of one bit a number.
    #[test]
    fn one_bit_estimates_without_leaning() {
        let (random, dims) = (&mut TestRng::new(2), 384);
        let rotation = RandomRotation::new(dims);
        // All rows share a direction, as those of real models do.
        let mut mean = unit(random, dims);
        rotation.rotate(&mut mean);
        let mut turned = || {
            let mut vector = unit(random, dims);
            rotation.rotate(&mut vector);
            let moved = vector.iter().zip(&mean).map(|(x, by)| 0.8 * x + 0.6 * by);
            moved.collect::<Vec<f32>>()
        };
        let asked = turned();
        let rows: Vec<_> = (0..40 * GROUP).map(|_| turned()).collect();
        let mean: Vec<f32> = mean.iter().map(|x| 0.6 * x).collect();
        let about = QueryVector::new(asked.clone(), dims).rabitq_query(&mean);
        let (mut lean, mut error) = (0.0, 0.0);
        for rows in rows.chunks(GROUP) {
            let mut bits = RabitqCodes::new(dims);
            for (at, row) in rows.iter().enumerate() {
                let mut codes = vec![0; dims];
                let scale = quantize_int8(row, &mut codes);
                bits.set(at, (&codes, scale), &mean);
            }
            let mut estimates = [0.0; GROUP];
            let group = RabitqGroup {
                words: &bits.words,
                factors: &bits.factors,
                offsets: &bits.offsets,
            };
            DistanceKernels::portable().estimate_group(
                group,
                &about,
                f32::NEG_INFINITY,
                &mut estimates,
            );
            for (estimate, row) in estimates.iter().zip(rows) {
                let off = estimate + about.base - dot(row, &asked);
                lean += off;
                error += off * off;
            }
        }
        let count = rows.len() as f32;
        assert!((lean / count).abs() < 0.005, "{}", lean / count);
        assert!((error / count).sqrt() < 0.04, "{}", (error / count).sqrt());
    }
}
