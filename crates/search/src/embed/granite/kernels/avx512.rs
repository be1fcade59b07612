//! [`SimdLanes`] in one AVX-512 register, with the VNNI instruction that adds the products of four bytes a lane.
#![allow(unsafe_code, reason = "SIMD instructions and raw loads")]

use std::arch::x86_64::*;

use super::SimdKernel;
use super::lanes::SimdLanes;

/// Whether this CPU supports every feature that [`run`] needs.
pub(super) fn available() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vnni")
}

/// Runs a kernel with AVX-512 enabled, so that everything inlined into it may use it.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub(super) fn run(kernel: impl SimdKernel) {
    // SAFETY: these features are enabled for this function, and callers detect them first.
    unsafe { kernel.run::<Avx512Lanes>() }
}

#[derive(Clone, Copy)]
pub(super) struct Avx512Lanes(__m512);

// SAFETY, for every block below: the trait's contract requires the CPU features and pointers that are valid for the
// whole vector; loads and stores are unaligned ones.
impl SimdLanes for Avx512Lanes {
    const ROWS: usize = 6;
    const VECTORS: usize = 4;
    type IntLanes = __m512i;

    #[inline(always)]
    unsafe fn splat(number: f32) -> Self {
        Self(unsafe { _mm512_set1_ps(number) })
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        Self(unsafe { _mm512_loadu_ps(from) })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        unsafe { _mm512_storeu_ps(to, self.0) }
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        Self(unsafe { _mm512_add_ps(self.0, other.0) })
    }
    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        Self(unsafe { _mm512_sub_ps(self.0, other.0) })
    }
    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        Self(unsafe { _mm512_mul_ps(self.0, other.0) })
    }
    #[inline(always)]
    unsafe fn mul_add(self, factor: Self, term: Self) -> Self {
        Self(unsafe { _mm512_fmadd_ps(self.0, factor.0, term.0) })
    }
    #[inline(always)]
    unsafe fn min(self, other: Self) -> Self {
        Self(unsafe { _mm512_min_ps(self.0, other.0) })
    }
    #[inline(always)]
    unsafe fn max(self, other: Self) -> Self {
        Self(unsafe { _mm512_max_ps(self.0, other.0) })
    }
    #[inline(always)]
    unsafe fn round(self) -> Self {
        Self(unsafe { _mm512_roundscale_ps::<_MM_FROUND_NO_EXC>(self.0) })
    }
    #[inline(always)]
    unsafe fn times_power_of_two(self, power: Self) -> Self {
        Self(unsafe { _mm512_scalef_ps(self.0, power.0) })
    }
    #[inline(always)]
    unsafe fn store_bytes(self, to: *mut u8) {
        unsafe {
            let bytes = _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(self.0));
            _mm_storeu_si128(to.cast(), bytes);
        }
    }

    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        // `_mm512_reduce_add_ps` leaves the order of additions to the compiler; this order is that of the other lanes.
        unsafe {
            let upper = _mm512_castpd_ps(_mm512_shuffle_f64x2::<0b1110>(
                _mm512_castps_pd(self.0),
                _mm512_castps_pd(self.0),
            ));
            let eight = _mm512_castps512_ps256(_mm512_add_ps(self.0, upper));
            let four = _mm_add_ps(
                _mm256_castps256_ps128(eight),
                _mm256_extractf128_ps::<1>(eight),
            );
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)))
        }
    }
    #[inline(always)]
    unsafe fn least(self) -> f32 {
        unsafe { _mm512_reduce_min_ps(self.0) }
    }
    #[inline(always)]
    unsafe fn greatest(self) -> f32 {
        unsafe { _mm512_reduce_max_ps(self.0) }
    }

    #[inline(always)]
    unsafe fn zero() -> Self::IntLanes {
        unsafe { _mm512_setzero_si512() }
    }
    #[inline(always)]
    unsafe fn splat_bytes(from: *const u8) -> Self::IntLanes {
        unsafe { _mm512_set1_epi32(from.cast::<i32>().read_unaligned()) }
    }
    #[inline(always)]
    unsafe fn load_bytes(from: *const u8) -> Self::IntLanes {
        unsafe { _mm512_loadu_si512(from.cast()) }
    }
    #[inline(always)]
    unsafe fn dot(
        sums: Self::IntLanes,
        unsigned: Self::IntLanes,
        signed: Self::IntLanes,
    ) -> Self::IntLanes {
        unsafe { _mm512_dpbusd_epi32(sums, unsigned, signed) }
    }
    #[inline(always)]
    unsafe fn float(integers: Self::IntLanes) -> Self {
        Self(unsafe { _mm512_cvtepi32_ps(integers) })
    }
}
