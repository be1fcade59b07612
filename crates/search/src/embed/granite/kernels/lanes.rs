//! The SIMD abstraction that kernels are written over: sixteen numbers in as many registers as the CPU needs for them.
//!
//! There are sixteen everywhere, and sums are reduced in a fixed order. So all CPUs with fused multiply-add compute the
//! same embeddings to the last bit, whatever the width of their registers.
#![allow(unsafe_code, reason = "SIMD instructions and raw loads")]
// All functions share one safety contract, which is stated at the trait.
#![allow(clippy::missing_safety_doc)]

/// The number of lanes of a vector.
pub(in super::super) const WIDTH: usize = 16;

/// Sixteen f32 lanes, with `IntLanes` as sixteen i32 accumulators for products of bytes. `load` and `store` access
/// sixteen numbers, `store_bytes` sixteen bytes, `splat_bytes` four bytes and `load_bytes` four for each lane.
///
/// # Safety
/// The CPU must support the instructions of the implementing type, and every pointer must be valid for as many
/// numbers or bytes as the function accesses.
pub(in super::super) trait SimdLanes: Copy {
    /// How many rows a tile covers without spilling registers; at most six.
    const ROWS: usize;
    /// How many vectors of columns a tile covers: one or four.
    const VECTORS: usize;
    /// Integer lanes: i32 accumulators, or four bytes a lane as factors of a dot product.
    type IntLanes: Copy;

    unsafe fn splat(number: f32) -> Self;
    unsafe fn load(from: *const f32) -> Self;
    unsafe fn store(self, to: *mut f32);
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn sub(self, other: Self) -> Self;
    unsafe fn mul(self, other: Self) -> Self;
    /// Computes `self * factor + term`, with a single rounding where the CPU has fused multiply-add.
    unsafe fn mul_add(self, factor: Self, term: Self) -> Self;
    unsafe fn min(self, other: Self) -> Self;
    unsafe fn max(self, other: Self) -> Self;
    /// Rounds to the nearest integer. Valid for numbers below four million.
    unsafe fn round(self) -> Self;
    /// Multiplies by two to the power of `power`, which holds integers from −126 to 127.
    unsafe fn times_power_of_two(self, power: Self) -> Self;
    /// Rounds each number to a byte and stores it. Numbers must be from 0 to 255.
    unsafe fn store_bytes(self, to: *mut u8);

    /// The sum of all lanes, reduced in a fixed order: the halves, then their halves, and so on.
    unsafe fn sum(self) -> f32;
    unsafe fn least(self) -> f32;
    unsafe fn greatest(self) -> f32;

    unsafe fn zero() -> Self::IntLanes;
    /// Broadcasts four bytes to each lane.
    unsafe fn splat_bytes(from: *const u8) -> Self::IntLanes;
    /// Loads four bytes for each lane.
    unsafe fn load_bytes(from: *const u8) -> Self::IntLanes;
    /// Adds to each lane the dot product of its four unsigned and its four signed bytes. Two neighbouring products must
    /// not leave 16 bits when added, because AVX2 saturates; the packed weights guarantee it.
    unsafe fn dot(
        sums: Self::IntLanes,
        unsigned: Self::IntLanes,
        signed: Self::IntLanes,
    ) -> Self::IntLanes;
    unsafe fn float(integers: Self::IntLanes) -> Self;

    /// Two to the power of each number, which must be at most 127. The relative error is 2e-7. Exponents below
    /// −126 are clamped.
    #[inline(always)]
    unsafe fn exp2(self) -> Self {
        // SAFETY: the caller upholds the trait's contract.
        unsafe {
            let power = self.max(Self::splat(-126.0));
            let integer = power.round();
            let part = power.sub(integer);
            horner(part, &EXP2).times_power_of_two(integer)
        }
    }

    /// The GELU activation: each number times the probability Φ that a normally distributed one is smaller. The error
    /// is at most 1e-4.
    #[inline(always)]
    unsafe fn gelu(self) -> Self {
        // SAFETY: the caller upholds the trait's contract.
        unsafe {
            let edge = Self::splat(GELU_EDGE);
            let clamped = self.min(edge).max(Self::splat(-GELU_EDGE));
            let half = Self::splat(0.5);
            let probability = horner(clamped.mul(clamped), &GELU).mul_add(clamped, half);
            self.mul(probability)
        }
    }
}

/// A minimax polynomial of 2^x for x from −½ to ½, the constant coefficient first.
const EXP2: [f32; 6] = [
    1.000_000_1,
    0.693_147_24,
    0.240_221_07,
    0.055_502_973,
    0.009_676_036,
    0.001_340_998_5,
];

/// Beyond this many standard deviations Φ is taken for 0 or 1.
const GELU_EDGE: f32 = 4.5;

/// A minimax polynomial in x² of (Φ(x) − ½) / x for x up to [`GELU_EDGE`], the constant coefficient first.
const GELU: [f32; 11] = [
    0.398_930_16,
    -0.066_451_274,
    0.009_930_353,
    -0.001_163_485_5,
    0.000_107_691_09,
    -7.823_281_5e-6,
    4.339_948_4e-7,
    -1.755_796_4e-8,
    4.832_038e-10,
    -8.021_829e-12,
    6.027_824_6e-14,
];

/// Evaluates a polynomial by Horner's rule, the constant coefficient first.
///
/// # Safety
/// The CPU must support the instructions of `V`.
#[inline(always)]
unsafe fn horner<V: SimdLanes, const N: usize>(x: V, coefficients: &[f32; N]) -> V {
    // SAFETY: the caller upholds the trait's contract.
    unsafe {
        let mut value = V::splat(0.0);
        for &coefficient in coefficients.iter().rev() {
            value = value.mul_add(x, V::splat(coefficient));
        }
        value
    }
}
