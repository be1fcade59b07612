//! Sixteen numbers in as many registers as the processor needs for them, and the functions built
//! on that.
//!
//! Sixteen everywhere, and sums folded in one order: processors that fuse multiplication and
//! addition then give the same vectors to the last bit, whatever the width of their registers.
#![allow(unsafe_code, reason = "vector instructions and raw loads")]
// One contract for every function here, said once at the trait instead of at each of twenty lines.
#![allow(clippy::missing_safety_doc)]

/// How many numbers a vector has.
pub(in super::super) const WIDTH: usize = 16;

/// A vector of f32, and beside it one of i32 that sums products of bytes.
///
/// # Safety
/// All functions need the instructions of the type they are called on, and every pointer must be
/// good for as many numbers (or bytes) as the function's own line says.
pub(in super::super) trait SimdLanes: Copy {
    /// How many rows a tile covers without running out of registers; at most six.
    const ROWS: usize;
    /// How many vectors of columns it covers: one or four.
    const VECTORS: usize;
    /// The sums of products of bytes; also four bytes a lane.
    type IntLanes: Copy;

    unsafe fn splat(number: f32) -> Self;
    /// Reads sixteen numbers.
    unsafe fn load(from: *const f32) -> Self;
    /// Writes sixteen numbers.
    unsafe fn store(self, to: *mut f32);
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn sub(self, other: Self) -> Self;
    unsafe fn mul(self, other: Self) -> Self;
    /// `self * factor + term`.
    unsafe fn mul_add(self, factor: Self, term: Self) -> Self;
    unsafe fn min(self, other: Self) -> Self;
    unsafe fn max(self, other: Self) -> Self;
    /// To the nearest whole number; good for numbers below four million.
    unsafe fn round(self) -> Self;
    /// Times two to the power of `power`, which holds whole numbers from −126 to 127.
    unsafe fn times_power_of_two(self, power: Self) -> Self;
    /// Writes sixteen bytes: each number, known to be from 0 to 255, rounded.
    unsafe fn store_bytes(self, to: *mut u8);

    /// The sum of all: of the halves, of their halves, and so on.
    unsafe fn sum(self) -> f32;
    unsafe fn least(self) -> f32;
    unsafe fn greatest(self) -> f32;

    unsafe fn zero() -> Self::IntLanes;
    /// The same four bytes in each lane.
    unsafe fn splat_bytes(from: *const u8) -> Self::IntLanes;
    /// Reads four bytes for each lane.
    unsafe fn load_bytes(from: *const u8) -> Self::IntLanes;
    /// Adds to each lane the products of its four unsigned with its four signed bytes. No two
    /// neighbouring products may leave 16 bits; the packed weights see to that.
    unsafe fn dot(
        sums: Self::IntLanes,
        unsigned: Self::IntLanes,
        signed: Self::IntLanes,
    ) -> Self::IntLanes;
    unsafe fn float(whole: Self::IntLanes) -> Self;

    /// Two to the power of each number, which is at most 127; right to 2e-7 of the value.
    #[inline(always)]
    unsafe fn exp2(self) -> Self {
        // SAFETY: the caller keeps the trait's contract.
        unsafe {
            let power = self.max(Self::splat(-126.0));
            let whole = power.round();
            let part = power.sub(whole);
            horner(part, &EXP2).times_power_of_two(whole)
        }
    }

    /// The Gaussian error linear unit: each number times the chance that a normally distributed
    /// one is smaller; right to 1e-4.
    #[inline(always)]
    unsafe fn gelu(self) -> Self {
        // SAFETY: the caller keeps the trait's contract.
        unsafe {
            let edge = Self::splat(GELU_EDGE);
            let near = self.min(edge).max(Self::splat(-GELU_EDGE));
            let half = Self::splat(0.5);
            let chance = horner(near.mul(near), &GELU).mul_add(near, half);
            self.mul(chance)
        }
    }
}

/// 2^x for x from −½ to ½: coefficients that spread the error evenly.
const EXP2: [f32; 6] = [
    1.000_000_1,
    0.693_147_24,
    0.240_221_07,
    0.055_502_973,
    0.009_676_036,
    0.001_340_998_5,
];

/// Beyond this many standard deviations the chance is taken for 0 or 1.
const GELU_EDGE: f32 = 4.5;

/// (Φ(x) − ½) / x as a polynomial in x², for x up to [`GELU_EDGE`]: coefficients that spread the
/// error evenly.
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

/// A polynomial by Horner's rule, the constant coefficient first.
///
/// # Safety
/// The processor must have the instructions of `V`.
#[inline(always)]
unsafe fn horner<V: SimdLanes, const N: usize>(x: V, coefficients: &[f32; N]) -> V {
    // SAFETY: the caller keeps the trait's contract.
    unsafe {
        let mut value = V::splat(0.0);
        for &coefficient in coefficients.iter().rev() {
            value = value.mul_add(x, V::splat(coefficient));
        }
        value
    }
}
