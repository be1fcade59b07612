//! Vector quantization: int8 codes for scoring, RaBitQ one-bit codes for candidate selection.
//!
//! Every row is stored both ways. Scalar quantization to int8, with one scale a row, ranks as well as the vector
//! itself. One bit for each dimension, the side of the centroid it is on, is enough to select a few thousand candidates
//! for rescoring, and reads an eighth of the memory.

use super::kernels::DistanceKernels;
use super::segment_layout::GROUP;
use crate::error::SearchError;

/// The largest int8 code; the range is symmetric around zero.
const MAX_INT8: f32 = 127.0;

/// How many bits the query is quantized to for one-bit codes, each of them a bit plane. With four, the error this adds
/// is a small part of that of the one-bit codes.
pub(super) const QUERY_BIT_PLANES: usize = 4;

/// The largest int4 code of a query; the range is symmetric around zero.
const MAX_INT4: f32 = 7.0;

/// Quantizes `vector` to int8 `codes` and returns the scale of the row: a number is about its code times the scale.
pub(super) fn quantize_int8(vector: &[f32], codes: &mut [i8]) -> f32 {
    let per = reciprocal(max_abs(vector) / MAX_INT8);
    let (mut dot_product, mut square) = (0.0, 0.0);
    for (code, number) in codes.iter_mut().zip(vector) {
        let rounded = (number * per).round();
        *code = rounded as i8;
        dot_product += rounded * number;
        square += rounded * rounded;
    }
    // Not the step used for rounding, but the scale that minimizes the squared error of the codes.
    dot_product * reciprocal(square)
}

/// The reciprocal of a non-negative number; zero where it would overflow, as for a vector of zeros.
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

/// RaBitQ codes of a group of up to [`GROUP`] rows: one bit for each dimension, and two numbers for each row that turn
/// the dot product with its bits into an estimate of its score.
///
/// With `r` the row minus the centroid `c`, the bits are the signs of `r`. After the random rotation, the dot product
/// of these signs and a query, times `|r|² / Σ|r|`, is an unbiased estimate of the dot product of `r` and the query.
pub(super) struct RabitqCodes {
    /// The bits, interleaved in blocks of eight rows: the first word of each of the eight, then the second, and so on.
    pub words: Vec<u64>,
    /// `|r|² / Σ|r|` of each row, the factor of the estimate.
    pub factors: [f32; GROUP],
    /// The dot product of each row and the centroid.
    pub offsets: [f32; GROUP],
    row: Vec<f32>,
}

/// How many rows are interleaved: as many as the widest SIMD register has words.
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

    /// Computes the code of one row, from its int8 codes, at index `at` of the group.
    pub(super) fn set(&mut self, at: usize, codes: &[i8], scale: f32, mean: &[f32]) {
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

/// The sign bits of 64 numbers: set where the number is positive.
fn signs(numbers: &[f32]) -> u64 {
    let bit = |(at, number): (usize, &f32)| u64::from(*number > 0.0) << at;
    numbers.iter().enumerate().map(bit).fold(0, |a, b| a | b)
}

/// A query vector, prepared for scoring: rotated as the rows are, and quantized to 16 bits.
pub struct QueryVector {
    dims: usize,
    /// The rotated vector, padded with zeros to the length of a row.
    rotated: Vec<f32>,
    /// The same in int16: fine enough that only the quantization error of the rows matters.
    wide: Vec<i16>,
    step: f32,
}

impl QueryVector {
    pub(super) fn new(mut rotated: Vec<f32>, stride: usize) -> Self {
        let dims = rotated.len();
        rotated.resize(stride, 0.0);
        // The largest code for which no dot product overflows an `i32`.
        let largest = (i32::MAX as f32 / (MAX_INT8 * stride as f32)).min(f32::from(i16::MAX));
        let step = max_abs(&rotated) / largest.floor();
        let per = reciprocal(step);
        let wide = rotated.iter().map(|x| (x * per).round() as i16).collect();
        Self {
            dims,
            rotated,
            wide,
            step,
        }
    }

    /// Refuses a query vector whose dimensions are not those of the index.
    pub(super) fn check(&self, dims: usize) -> Result<(), SearchError> {
        if self.dims == dims {
            return Ok(());
        }
        Err(SearchError::engine(format!(
            "the query vector has {} dimensions, the index has {dims}",
            self.dims
        )))
    }

    /// About how many bytes the query takes in memory, for caches.
    pub(crate) fn bytes(&self) -> usize {
        self.rotated.len() * (size_of::<f32>() + size_of::<i16>()) + size_of::<Self>()
    }

    /// The score of a row: its dot product with the query.
    pub(super) fn score(&self, kernels: &DistanceKernels, codes: &[i8], scale: f32) -> f32 {
        let mut sum = [0];
        kernels.dots(&self.wide, codes, &mut sum);
        let [sum] = sum;
        self.product(sum, scale)
    }

    /// The scores of up to [`GROUP`] consecutive rows, as many as there are scales.
    pub(super) fn scores(
        &self,
        kernels: &DistanceKernels,
        codes: &[i8],
        scales: &[f32],
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

    /// Quantizes the query for the one-bit codes of a segment, relative to the centroid of that segment.
    pub(super) fn rabitq_query(&self, mean: &[f32]) -> RabitqQuery {
        let residual: Vec<f32> = self.rotated.iter().zip(mean).map(|(q, c)| q - c).collect();
        let step = max_abs(&residual) / MAX_INT4;
        let per = reciprocal(step);
        let mut planes = Vec::with_capacity(residual.len() / 64);
        let mut total = 0;
        for numbers in residual.chunks_exact(64) {
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

/// A query relative to a segment's centroid, quantized to int4 in bit planes: the lowest bits of 64 numbers, then the
/// next ones, and so on. The last plane is the sign of two's complement, so it counts negatively.
pub(super) struct RabitqQuery {
    pub planes: Vec<[u64; QUERY_BIT_PLANES]>,
    /// The sum of all int4 codes.
    pub total: i32,
    /// The quantization step: what an int4 code of one stands for.
    pub step: f32,
    /// The constant part of every estimate in the segment.
    pub base: f32,
}

/// One group of RaBitQ codes, borrowed from the memory-mapped file.
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
                let (row, query) = (unit(random, dims), unit(random, dims));
                let mut codes = vec![0; stride];
                let scale = quantize_int8(&row, &mut codes);
                let score = QueryVector::new(query.clone(), stride).score(
                    &DistanceKernels::portable(),
                    &codes,
                    scale,
                );
                let exact = dot(&row, &query);
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

    /// The RaBitQ estimate is unbiased over many rows, and its error is that of one bit for each dimension.
    #[test]
    fn one_bit_estimates_without_leaning() {
        let (random, dims) = (&mut TestRng::new(2), 384);
        let rotation = RandomRotation::new(dims);
        // All rows share a direction, as the vectors of real models do.
        let mut mean = unit(random, dims);
        rotation.rotate(&mut mean);
        let mut random_row = || {
            let mut vector = unit(random, dims);
            rotation.rotate(&mut vector);
            let moved = vector.iter().zip(&mean).map(|(x, by)| 0.8 * x + 0.6 * by);
            moved.collect::<Vec<f32>>()
        };
        let query = random_row();
        let rows: Vec<_> = (0..40 * GROUP).map(|_| random_row()).collect();
        let mean: Vec<f32> = mean.iter().map(|x| 0.6 * x).collect();
        let rabitq = QueryVector::new(query.clone(), dims).rabitq_query(&mean);
        let (mut bias, mut error) = (0.0, 0.0);
        for rows in rows.chunks(GROUP) {
            let mut bits = RabitqCodes::new(dims);
            for (at, row) in rows.iter().enumerate() {
                let mut codes = vec![0; dims];
                let scale = quantize_int8(row, &mut codes);
                bits.set(at, &codes, scale, &mean);
            }
            let mut estimates = [0.0; GROUP];
            let group = RabitqGroup {
                words: &bits.words,
                factors: &bits.factors,
                offsets: &bits.offsets,
            };
            DistanceKernels::portable().estimate_group(
                group,
                &rabitq,
                f32::NEG_INFINITY,
                &mut estimates,
            );
            for (estimate, row) in estimates.iter().zip(rows) {
                let off = estimate + rabitq.base - dot(row, &query);
                bias += off;
                error += off * off;
            }
        }
        let count = rows.len() as f32;
        assert!((bias / count).abs() < 0.005, "{}", bias / count);
        assert!((error / count).sqrt() < 0.04, "{}", (error / count).sqrt());
    }
}
