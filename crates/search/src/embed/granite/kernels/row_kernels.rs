//! Kernels that work row by row: layer normalization, and the quantization of activations to bytes.
#![allow(unsafe_code, reason = "SIMD instructions and raw loads")]

use super::SimdKernel;
use super::lanes::{SimdLanes, WIDTH};

/// Added to the variance, so that a row of equal numbers is not divided by zero.
const EPSILON: f32 = 1e-12;

/// The learned parameters of a layer norm: a factor and an offset for each column.
pub(in super::super) struct LayerNorm {
    pub(in super::super) weights: Vec<f32>,
    pub(in super::super) bias: Vec<f32>,
}

/// Layer normalization: brings every row to mean 0 and variance 1, then scales and shifts each column.
pub(in super::super) struct LayerNormKernel<'a> {
    pub(in super::super) norm: &'a LayerNorm,
    pub(in super::super) rows: &'a mut [f32],
}

impl SimdKernel for LayerNormKernel<'_> {
    #[inline(always)]
    unsafe fn run<V: SimdLanes>(self) {
        let (weights, bias) = (&self.norm.weights, &self.norm.bias);
        let width = weights.len();
        assert!(bias.len() == width && width > 0 && width.is_multiple_of(WIDTH));
        for row in self.rows.chunks_exact_mut(width) {
            // SAFETY: all three have `width` numbers, a multiple of the SIMD width.
            unsafe { normalize::<V>(row, weights.as_ptr(), bias.as_ptr()) }
        }
    }
}

#[inline(always)]
unsafe fn normalize<V: SimdLanes>(row: &mut [f32], weights: *const f32, bias: *const f32) {
    let (count, row) = (row.len(), row.as_mut_ptr());
    let offsets = || (0..count).step_by(WIDTH);
    // SAFETY: every offset starts a whole vector below `count`, for which all three pointers are valid.
    unsafe {
        let mut sum = V::splat(0.0);
        for at in offsets() {
            sum = sum.add(V::load(row.add(at)));
        }
        let mean = V::splat(sum.sum() / count as f32);
        let mut squares = V::splat(0.0);
        for at in offsets() {
            let deviation = V::load(row.add(at)).sub(mean);
            squares = deviation.mul_add(deviation, squares);
        }
        let variance = squares.sum() / count as f32;
        let scale = V::splat(1.0 / (variance + EPSILON).sqrt());
        for at in offsets() {
            let normal = V::load(row.add(at)).sub(mean).mul(scale);
            let scaled = normal.mul_add(V::load(weights.add(at)), V::load(bias.add(at)));
            scaled.store(row.add(at));
        }
    }
}

/// Activations quantized to unsigned bytes, row by row (asymmetric int8): a number is its row's `low` plus the byte
/// times its row's `step`.
#[derive(Default)]
pub(in super::super) struct QuantizedRows {
    pub(super) bytes: Vec<u8>,
    pub(super) lows: Vec<f32>,
    pub(super) steps: Vec<f32>,
}

/// Quantizes rows to bytes, each by its own smallest and largest number.
pub(in super::super) struct QuantizeKernel<'a> {
    pub(in super::super) rows: &'a [f32],
    pub(in super::super) width: usize,
    pub(in super::super) into: &'a mut QuantizedRows,
}

impl SimdKernel for QuantizeKernel<'_> {
    #[inline(always)]
    unsafe fn run<V: SimdLanes>(self) {
        let Self { rows, width, into } = self;
        assert!(width > 0 && width.is_multiple_of(WIDTH));
        into.lows.clear();
        into.steps.clear();
        into.bytes.resize(rows.len(), 0);
        let bytes = into.bytes.chunks_exact_mut(width);
        for (row, bytes) in rows.chunks_exact(width).zip(bytes) {
            // SAFETY: both have `width` numbers, a multiple of the SIMD width.
            let (low, step) = unsafe { quantize::<V>(row, bytes.as_mut_ptr()) };
            into.lows.push(low);
            into.steps.push(step);
        }
    }
}

#[inline(always)]
unsafe fn quantize<V: SimdLanes>(row: &[f32], bytes: *mut u8) -> (f32, f32) {
    let (count, row) = (row.len(), row.as_ptr());
    let offsets = || (0..count).step_by(WIDTH);
    // SAFETY: every offset starts a whole vector below `count`, for which both pointers are valid. The numbers written
    // as bytes are from 0 to 255, because none is below `low` or above `high`.
    unsafe {
        let (mut low, mut high) = (V::load(row), V::load(row));
        for at in offsets() {
            let numbers = V::load(row.add(at));
            low = low.min(numbers);
            high = high.max(numbers);
        }
        let (low, high) = (low.least(), high.greatest());
        let step = (high - low) / 255.0;
        let inverse = if step > 0.0 { 1.0 / step } else { 0.0 };
        let (least, scale) = (V::splat(low), V::splat(inverse));
        for at in offsets() {
            let numbers = V::load(row.add(at)).sub(least).mul(scale);
            numbers.store_bytes(bytes.add(at));
        }
        (low, step)
    }
}
