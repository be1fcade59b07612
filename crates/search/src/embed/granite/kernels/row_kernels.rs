//! Work on rows of numbers: bringing them to one scale, and turning them into bytes.
#![allow(unsafe_code, reason = "vector instructions and raw loads")]

use super::SimdKernel;
use super::lanes::{SimdLanes, WIDTH};

/// Keeps a row of equal numbers from being divided by zero.
const EPSILON: f32 = 1e-12;

/// What a layer's norm multiplies with and adds.
pub(in super::super) struct LayerNorm {
    pub(in super::super) weights: Vec<f32>,
    pub(in super::super) bias: Vec<f32>,
}

/// Brings every row to mean 0 and variance 1, then scales and shifts each column.
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
            // SAFETY: all three have `width` numbers, a multiple of the vector's.
            unsafe { normalise::<V>(row, weights.as_ptr(), bias.as_ptr()) }
        }
    }
}

#[inline(always)]
unsafe fn normalise<V: SimdLanes>(row: &mut [f32], weights: *const f32, bias: *const f32) {
    let (count, row) = (row.len(), row.as_mut_ptr());
    let places = || (0..count).step_by(WIDTH);
    // SAFETY: every place is a whole vector below `count`, which all three pointers are good for.
    unsafe {
        let mut sum = V::splat(0.0);
        for at in places() {
            sum = sum.add(V::load(row.add(at)));
        }
        let mean = V::splat(sum.sum() / count as f32);
        let mut squares = V::splat(0.0);
        for at in places() {
            let off = V::load(row.add(at)).sub(mean);
            squares = off.mul_add(off, squares);
        }
        let variance = squares.sum() / count as f32;
        let scale = V::splat(1.0 / (variance + EPSILON).sqrt());
        for at in places() {
            let off = V::load(row.add(at)).sub(mean).mul(scale);
            let whole = off.mul_add(V::load(weights.add(at)), V::load(bias.add(at)));
            whole.store(row.add(at));
        }
    }
}

/// Rows as bytes: a number is its row's `low` plus the byte times its row's `step`.
#[derive(Default)]
pub(in super::super) struct QuantizedRows {
    pub(super) bytes: Vec<u8>,
    pub(super) lows: Vec<f32>,
    pub(super) steps: Vec<f32>,
}

/// Turns rows into bytes, each row by its own least and greatest number.
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
            // SAFETY: both have `width` numbers, a multiple of the vector's.
            let (low, step) = unsafe { quantise::<V>(row, bytes.as_mut_ptr()) };
            into.lows.push(low);
            into.steps.push(step);
        }
    }
}

#[inline(always)]
unsafe fn quantise<V: SimdLanes>(row: &[f32], bytes: *mut u8) -> (f32, f32) {
    let (count, row) = (row.len(), row.as_ptr());
    let places = || (0..count).step_by(WIDTH);
    // SAFETY: every place is a whole vector below `count`, which both pointers are good for; the
    // numbers written as bytes are from 0 to 255, because no number is below `low` or above `high`.
    unsafe {
        let (mut low, mut high) = (V::load(row), V::load(row));
        for at in places() {
            let numbers = V::load(row.add(at));
            low = low.min(numbers);
            high = high.max(numbers);
        }
        let (low, high) = (low.least(), high.greatest());
        let step = (high - low) / 255.0;
        let inverse = if step > 0.0 { 1.0 / step } else { 0.0 };
        let (least, scale) = (V::splat(low), V::splat(inverse));
        for at in places() {
            let numbers = V::load(row.add(at)).sub(least).mul(scale);
            numbers.store_bytes(bytes.add(at));
        }
        (low, step)
    }
}
