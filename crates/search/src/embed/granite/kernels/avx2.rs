//! [`SimdLanes`] in two AVX2 registers of 256 bits, for CPUs without VNNI dot products. Products of bytes are added in
//! pairs of 16 bits, which saturate; the packed weights are quantized so that no pair leaves 16 bits. Pairs are added
//! in 32 bits.
#![allow(unsafe_code, reason = "SIMD instructions and raw loads")]

use std::arch::x86_64::*;

use super::SimdKernel;
use super::lanes::SimdLanes;

/// Whether this CPU supports every feature that [`run`] needs.
pub(super) fn available() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

/// Runs a kernel with AVX2 and FMA enabled, so that everything inlined into it may use them.
#[target_feature(enable = "avx2,fma")]
pub(super) fn run(kernel: impl SimdKernel) {
    // SAFETY: these features are enabled for this function, and callers detect them first.
    unsafe { kernel.run::<Avx2Lanes>() }
}

#[derive(Clone, Copy)]
pub(super) struct Avx2Lanes(__m256, __m256);

impl Avx2Lanes {
    #[inline(always)]
    fn zip(self, other: Self, with: impl Fn(__m256, __m256) -> __m256) -> Self {
        Self(with(self.0, other.0), with(self.1, other.1))
    }

    /// Reduces eight numbers to one: the halves, then their halves, and so on.
    #[inline(always)]
    unsafe fn fold(eight: __m256, with: impl Fn(__m128, __m128) -> __m128) -> f32 {
        // SAFETY: the caller guarantees the CPU features.
        unsafe {
            let upper = _mm256_extractf128_ps::<1>(eight);
            let four = with(_mm256_castps256_ps128(eight), upper);
            let two = with(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(with(two, _mm_shuffle_ps::<1>(two, two)))
        }
    }

    /// Rounds eight numbers, each from 0 to 255 when rounded, and packs them as integers of 16 bits.
    #[inline(always)]
    unsafe fn to_i16(eight: __m256) -> __m128i {
        // SAFETY: the caller guarantees the CPU features.
        unsafe {
            let integers = _mm256_cvtps_epi32(eight);
            let upper = _mm256_extracti128_si256::<1>(integers);
            _mm_packs_epi32(_mm256_castsi256_si128(integers), upper)
        }
    }

    #[inline(always)]
    unsafe fn power_of_two(eight: __m256) -> __m256 {
        // SAFETY: the caller guarantees the CPU features.
        unsafe {
            let biased = _mm256_add_epi32(_mm256_cvtps_epi32(eight), _mm256_set1_epi32(127));
            _mm256_castsi256_ps(_mm256_slli_epi32::<23>(biased))
        }
    }

    #[inline(always)]
    unsafe fn dot_eight(sums: __m256i, unsigned: __m256i, signed: __m256i) -> __m256i {
        // SAFETY: the caller guarantees the CPU features.
        unsafe {
            let pairs = _mm256_maddubs_epi16(unsigned, signed);
            let fours = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
            _mm256_add_epi32(sums, fours)
        }
    }
}

// SAFETY, for every block below: the trait's contract requires the CPU features and pointers that are valid for the
// whole vector; loads and stores are unaligned ones.
impl SimdLanes for Avx2Lanes {
    const ROWS: usize = 4;
    const VECTORS: usize = 1;
    type IntLanes = (__m256i, __m256i);

    #[inline(always)]
    unsafe fn splat(number: f32) -> Self {
        let eight = unsafe { _mm256_set1_ps(number) };
        Self(eight, eight)
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        unsafe { Self(_mm256_loadu_ps(from), _mm256_loadu_ps(from.add(8))) }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        unsafe {
            _mm256_storeu_ps(to, self.0);
            _mm256_storeu_ps(to.add(8), self.1);
        }
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        self.zip(other, |a, b| unsafe { _mm256_add_ps(a, b) })
    }
    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        self.zip(other, |a, b| unsafe { _mm256_sub_ps(a, b) })
    }
    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        self.zip(other, |a, b| unsafe { _mm256_mul_ps(a, b) })
    }
    #[inline(always)]
    unsafe fn mul_add(self, factor: Self, term: Self) -> Self {
        unsafe {
            Self(
                _mm256_fmadd_ps(self.0, factor.0, term.0),
                _mm256_fmadd_ps(self.1, factor.1, term.1),
            )
        }
    }
    #[inline(always)]
    unsafe fn min(self, other: Self) -> Self {
        self.zip(other, |a, b| unsafe { _mm256_min_ps(a, b) })
    }
    #[inline(always)]
    unsafe fn max(self, other: Self) -> Self {
        self.zip(other, |a, b| unsafe { _mm256_max_ps(a, b) })
    }
    #[inline(always)]
    unsafe fn round(self) -> Self {
        unsafe {
            Self(
                _mm256_round_ps::<{ _MM_FROUND_NO_EXC }>(self.0),
                _mm256_round_ps::<{ _MM_FROUND_NO_EXC }>(self.1),
            )
        }
    }
    #[inline(always)]
    unsafe fn times_power_of_two(self, power: Self) -> Self {
        let times = |a, b| unsafe { _mm256_mul_ps(a, Self::power_of_two(b)) };
        self.zip(power, times)
    }
    #[inline(always)]
    unsafe fn store_bytes(self, to: *mut u8) {
        unsafe {
            let bytes = _mm_packus_epi16(Self::to_i16(self.0), Self::to_i16(self.1));
            _mm_storeu_si128(to.cast(), bytes);
        }
    }

    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        unsafe { Self::fold(_mm256_add_ps(self.0, self.1), |a, b| _mm_add_ps(a, b)) }
    }
    #[inline(always)]
    unsafe fn least(self) -> f32 {
        unsafe { Self::fold(_mm256_min_ps(self.0, self.1), |a, b| _mm_min_ps(a, b)) }
    }
    #[inline(always)]
    unsafe fn greatest(self) -> f32 {
        unsafe { Self::fold(_mm256_max_ps(self.0, self.1), |a, b| _mm_max_ps(a, b)) }
    }

    #[inline(always)]
    unsafe fn zero() -> Self::IntLanes {
        unsafe { (_mm256_setzero_si256(), _mm256_setzero_si256()) }
    }
    #[inline(always)]
    unsafe fn splat_bytes(from: *const u8) -> Self::IntLanes {
        let eight = unsafe { _mm256_set1_epi32(from.cast::<i32>().read_unaligned()) };
        (eight, eight)
    }
    #[inline(always)]
    unsafe fn load_bytes(from: *const u8) -> Self::IntLanes {
        unsafe {
            (
                _mm256_loadu_si256(from.cast()),
                _mm256_loadu_si256(from.add(32).cast()),
            )
        }
    }
    #[inline(always)]
    unsafe fn dot(
        sums: Self::IntLanes,
        unsigned: Self::IntLanes,
        signed: Self::IntLanes,
    ) -> Self::IntLanes {
        unsafe {
            (
                Self::dot_eight(sums.0, unsigned.0, signed.0),
                Self::dot_eight(sums.1, unsigned.1, signed.1),
            )
        }
    }
    #[inline(always)]
    unsafe fn float(integers: Self::IntLanes) -> Self {
        unsafe {
            Self(
                _mm256_cvtepi32_ps(integers.0),
                _mm256_cvtepi32_ps(integers.1),
            )
        }
    }
}
