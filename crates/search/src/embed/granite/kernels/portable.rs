//! [`SimdLanes`] in plain Rust, for every CPU. The compiler vectorizes it with the instructions of the target's
//! baseline.
#![allow(unsafe_code, reason = "raw loads")]

use super::lanes::SimdLanes;

#[derive(Clone, Copy)]
pub(super) struct PortableLanes([f32; 16]);

impl PortableLanes {
    #[inline(always)]
    fn zip(self, other: Self, with: impl Fn(f32, f32) -> f32) -> Self {
        let mut out = self.0;
        for (a, b) in out.iter_mut().zip(other.0) {
            *a = with(*a, b);
        }
        Self(out)
    }

    #[inline(always)]
    fn fold(self, with: impl Fn(f32, f32) -> f32) -> f32 {
        let mut numbers = self.0;
        let mut half = numbers.len() / 2;
        while half > 0 {
            let (lower, upper) = numbers.split_at_mut(half);
            for (a, b) in lower.iter_mut().zip(upper) {
                *a = with(*a, *b);
            }
            half /= 2;
        }
        numbers[0]
    }
}

/// 1.5 · 2²³: adding and subtracting it rounds an f32 to the nearest integer.
const ROUNDER: f32 = 12_582_912.0;

// SAFETY, for every block below: the trait's contract requires pointers that are valid for the whole vector; loads and
// stores are unaligned ones.
impl SimdLanes for PortableLanes {
    const ROWS: usize = 2;
    const VECTORS: usize = 1;
    type IntLanes = [[u8; 4]; 16];

    #[inline(always)]
    unsafe fn splat(number: f32) -> Self {
        Self([number; 16])
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        Self(unsafe { from.cast::<[f32; 16]>().read_unaligned() })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        unsafe { to.cast::<[f32; 16]>().write_unaligned(self.0) }
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        self.zip(other, |a, b| a + b)
    }
    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        self.zip(other, |a, b| a - b)
    }
    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        self.zip(other, |a, b| a * b)
    }
    #[inline(always)]
    unsafe fn mul_add(self, factor: Self, term: Self) -> Self {
        // Without a fused multiply-add instruction, `f32::mul_add` would be a library call for each number.
        if cfg!(target_arch = "aarch64") || cfg!(target_feature = "fma") {
            let mut out = term.0;
            for ((term, a), b) in out.iter_mut().zip(self.0).zip(factor.0) {
                *term = a.mul_add(b, *term);
            }
            return Self(out);
        }
        self.zip(factor, |a, b| a * b).zip(term, |a, b| a + b)
    }
    #[inline(always)]
    unsafe fn min(self, other: Self) -> Self {
        self.zip(other, |a, b| if a < b { a } else { b })
    }
    #[inline(always)]
    unsafe fn max(self, other: Self) -> Self {
        self.zip(other, |a, b| if a > b { a } else { b })
    }
    #[inline(always)]
    unsafe fn round(self) -> Self {
        Self(self.0.map(|number| (number + ROUNDER) - ROUNDER))
    }
    #[inline(always)]
    unsafe fn times_power_of_two(self, power: Self) -> Self {
        self.zip(power, |number, power| {
            // SAFETY: the power is a small whole number, which is an i32.
            let biased = unsafe { power.to_int_unchecked::<i32>() } + 127;
            number * f32::from_bits((biased << 23).cast_unsigned())
        })
    }
    #[inline(always)]
    unsafe fn store_bytes(self, to: *mut u8) {
        // SAFETY: the rounded numbers are from 0 to 255, which an `i32` can hold.
        let bytes = self.0.map(|number| unsafe {
            ((number + ROUNDER) - ROUNDER).to_int_unchecked::<i32>() as u8
        });
        unsafe { to.cast::<[u8; 16]>().write_unaligned(bytes) }
    }

    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        self.fold(|a, b| a + b)
    }
    #[inline(always)]
    unsafe fn least(self) -> f32 {
        self.fold(f32::min)
    }
    #[inline(always)]
    unsafe fn greatest(self) -> f32 {
        self.fold(f32::max)
    }

    #[inline(always)]
    unsafe fn zero() -> Self::IntLanes {
        [[0; 4]; 16]
    }
    #[inline(always)]
    unsafe fn splat_bytes(from: *const u8) -> Self::IntLanes {
        [unsafe { from.cast::<[u8; 4]>().read_unaligned() }; 16]
    }
    #[inline(always)]
    unsafe fn load_bytes(from: *const u8) -> Self::IntLanes {
        unsafe { from.cast::<[[u8; 4]; 16]>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn dot(
        sums: Self::IntLanes,
        unsigned: Self::IntLanes,
        signed: Self::IntLanes,
    ) -> Self::IntLanes {
        let mut out = sums;
        for ((sum, unsigned), signed) in out.iter_mut().zip(unsigned).zip(signed) {
            let product = |a: u8, b: u8| i32::from(a) * i32::from(b.cast_signed());
            let [a, b, c, d] = unsigned;
            let [e, f, g, h] = signed;
            let four = (product(a, e) + product(b, f)) + (product(c, g) + product(d, h));
            *sum = i32::from_ne_bytes(*sum).wrapping_add(four).to_ne_bytes();
        }
        out
    }
    #[inline(always)]
    unsafe fn float(integers: Self::IntLanes) -> Self {
        Self(integers.map(|sum| i32::from_ne_bytes(sum) as f32))
    }
}
