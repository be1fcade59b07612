//! SIMD distance kernels: dot products with int8 rows and estimates from RaBitQ codes, with the widest instructions
//! that the CPU supports.
//!
//! Every implementation gives the same results to the last bit, so rankings do not depend on the CPU.

#![allow(
    unsafe_code,
    reason = "calls functions for CPU features after detecting them"
)]

use super::quantization::{BLOCK, QUERY_BIT_PLANES, RabitqGroup, RabitqQuery};
use super::segment_layout::GROUP;

/// A set of distance functions for one SIMD instruction set, chosen at run time.
#[derive(Clone, Copy)]
pub(super) struct DistanceKernels {
    #[cfg_attr(not(test), expect(dead_code, reason = "tests name the failing one"))]
    pub name: &'static str,
    dots: fn(&[i16], &[i8], &mut [i32]),
    estimate_group: fn(RabitqGroup, &RabitqQuery, f32, &mut [f32; GROUP]) -> u64,
}

impl DistanceKernels {
    /// The fastest kernels that this CPU supports.
    pub(super) fn detect() -> Self {
        let mut all = Self::all();
        all.pop().unwrap_or_else(Self::portable)
    }

    /// The kernels in plain Rust, which run on every CPU.
    pub(super) fn portable() -> Self {
        Self {
            name: "portable",
            dots: dots_portable,
            estimate_group: estimate_portable,
        }
    }

    /// All kernels that this CPU supports, the fastest last.
    pub(super) fn all() -> Vec<Self> {
        #[cfg_attr(
            not(target_arch = "x86_64"),
            expect(
                unused_mut,
                reason = "other architectures only have the portable kernels"
            )
        )]
        let mut all = vec![Self::portable()];
        #[cfg(target_arch = "x86_64")]
        all.extend(x86::all());
        all
    }

    /// Computes the dot products of the query with consecutive rows of its length, one for each element of `sums`.
    pub(super) fn dots(&self, query: &[i16], rows: &[i8], sums: &mut [i32]) {
        (self.dots)(query, rows, sums);
    }

    /// Estimates the score of each row of a group from its RaBitQ codes, without the constant part of the query, and
    /// returns a bitmap of the rows whose estimate is above `least`.
    pub(super) fn estimate_group(
        &self,
        group: RabitqGroup<'_>,
        query: &RabitqQuery,
        least: f32,
        estimates: &mut [f32; GROUP],
    ) -> u64 {
        (self.estimate_group)(group, query, least, estimates)
    }
}

fn dots_portable(query: &[i16], rows: &[i8], sums: &mut [i32]) {
    for (sum, row) in sums.iter_mut().zip(rows.chunks_exact(query.len().max(1))) {
        let product = |(a, b): (&i16, &i8)| i32::from(*a) * i32::from(*b);
        *sum = query.iter().zip(row).map(product).sum();
    }
}

fn estimate_portable(
    group: RabitqGroup<'_>,
    query: &RabitqQuery,
    least: f32,
    estimates: &mut [f32; GROUP],
) -> u64 {
    let mut sums = [0; GROUP];
    bit_sums_portable(group, query, &mut sums);
    estimates_above(group, query, least, &sums, estimates)
}

/// For each row, the sum of the query's int4 codes where the bit of the row is set, by popcounts of bit planes.
#[inline]
fn bit_sums_portable(group: RabitqGroup<'_>, query: &RabitqQuery, sums: &mut [i32; GROUP]) {
    let blocks = group.words.chunks_exact(query.planes.len() * BLOCK);
    for (block, sums) in blocks.zip(sums.as_chunks_mut::<BLOCK>().0) {
        for (words, planes) in block.as_chunks::<BLOCK>().0.iter().zip(&query.planes) {
            for (sum, word) in sums.iter_mut().zip(words) {
                *sum += weigh(planes.map(|plane| (plane & word).count_ones() as i32));
            }
        }
    }
}

/// Combines the popcounts of the four bit planes by the value of each; the highest is the sign.
#[inline(always)]
fn weigh([ones, twos, fours, eights]: [i32; QUERY_BIT_PLANES]) -> i32 {
    ones + 2 * twos + 4 * fours - 8 * eights
}

/// Turns sums over bits into estimates, and returns a bitmap of those above `least`.
#[inline(always)]
fn estimates_above(
    group: RabitqGroup<'_>,
    query: &RabitqQuery,
    least: f32,
    sums: &[i32; GROUP],
    estimates: &mut [f32; GROUP],
) -> u64 {
    let rows = sums.iter().zip(group.factors).zip(group.offsets);
    for (estimate, ((sum, factor), offset)) in estimates.iter_mut().zip(rows) {
        // The dot product with signs: the sum where bits are set minus the sum where they are not.
        let balance = 2 * sum - query.total;
        *estimate = balance as f32 * query.step * factor + offset;
    }
    let bit = |(at, estimate): (usize, &f32)| u64::from(*estimate > least) << at;
    estimates.iter().enumerate().map(bit).fold(0, |a, b| a | b)
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::super::segment_layout::GROUP_TAIL;
    use super::{BLOCK, DistanceKernels, GROUP, RabitqGroup, RabitqQuery, estimates_above};

    /// How many rows are multiplied together, so that the query is loaded once for all of them.
    const TOGETHER: usize = 4;

    /// Computes the sums of all rows: four rows at a time by `dots`, the remaining ones by `dot`.
    #[inline(always)]
    fn each_row(
        query: &[i16],
        rows: &[i8],
        sums: &mut [i32],
        dots: impl Fn([&[i8]; TOGETHER]) -> [i32; TOGETHER],
        dot: impl Fn(&[i8]) -> i32,
    ) {
        let stride = query.len().max(1);
        let (fours, last) = sums.as_chunks_mut::<TOGETHER>();
        let four = rows.chunks_exact(TOGETHER * stride);
        let rest = four.remainder();
        for (sums, rows) in fours.iter_mut().zip(four) {
            let (first, second) = rows.split_at(2 * stride);
            let ((one, two), (three, four)) = (first.split_at(stride), second.split_at(stride));
            *sums = dots([one, two, three, four]);
        }
        for (sum, row) in last.iter_mut().zip(rest.chunks_exact(stride)) {
            *sum = dot(row);
        }
    }

    pub(super) fn all() -> Vec<DistanceKernels> {
        let mut all = Vec::new();
        if is_x86_feature_detected!("avx2") {
            all.push(DistanceKernels {
                name: "avx2",
                // SAFETY: AVX2 was just detected.
                dots: |query, rows, sums| unsafe { dots_avx2(query, rows, sums) },
                // SAFETY: as above.
                estimate_group: |group, query, least, out| unsafe {
                    estimate_avx2(group, query, least, out)
                },
            });
        }
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vnni")
            && is_x86_feature_detected!("avx512vpopcntdq")
        {
            all.push(DistanceKernels {
                name: "avx512",
                // SAFETY: each of the features was just detected.
                dots: |query, rows, sums| unsafe { dots_avx512(query, rows, sums) },
                // SAFETY: as above.
                estimate_group: |group, query, least, out| unsafe {
                    estimate_avx512(group, query, least, out)
                },
            });
        }
        all
    }

    #[target_feature(enable = "avx2")]
    fn dots_avx2(query: &[i16], rows: &[i8], sums: &mut [i32]) {
        each_row(
            query,
            rows,
            sums,
            |[one, two, three, four]| {
                // Horizontal additions: pairs of lanes of each row, then fours, in both halves of the register.
                let halves = _mm256_hadd_epi32(
                    _mm256_hadd_epi32(products_avx2(query, one), products_avx2(query, two)),
                    _mm256_hadd_epi32(products_avx2(query, three), products_avx2(query, four)),
                );
                lanes(fold(halves))
            },
            |row| {
                let sum = fold(products_avx2(query, row));
                let sum = _mm_add_epi32(sum, _mm_shuffle_epi32::<0b01_00_11_10>(sum));
                let sum = _mm_add_epi32(sum, _mm_shuffle_epi32::<0b10_11_00_01>(sum));
                _mm_cvtsi128_si32(sum)
            },
        );
    }

    /// The products of a query and a row, accumulated in eight lanes.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn products_avx2(query: &[i16], row: &[i8]) -> __m256i {
        let mut sums = [_mm256_setzero_si256(); 2];
        let (query_chunks, rows) = (query.as_chunks::<32>().0, row.as_chunks::<32>().0);
        let ahead = TOGETHER * size_of_val(row);
        for (query, row) in query_chunks.iter().zip(rows) {
            prefetch(row.as_ptr(), ahead);
            let halves = query.as_chunks::<16>().0.iter();
            let codes = row.as_chunks::<16>().0;
            for ((sum, query), codes) in sums.iter_mut().zip(halves).zip(codes) {
                // SAFETY: each array has as many bytes as the register that is loaded from it.
                let (query, codes) = unsafe {
                    (
                        _mm256_loadu_si256(query.as_ptr().cast()),
                        _mm_loadu_si128(codes.as_ptr().cast()),
                    )
                };
                let products = _mm256_madd_epi16(query, _mm256_cvtepi8_epi16(codes));
                *sum = _mm256_add_epi32(*sum, products);
            }
        }
        let [even, odd] = sums;
        _mm256_add_epi32(even, odd)
    }

    /// Adds the upper half of a register to its lower half.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn fold(sums: __m256i) -> __m128i {
        _mm_add_epi32(
            _mm256_castsi256_si128(sums),
            _mm256_extracti128_si256::<1>(sums),
        )
    }

    #[inline]
    fn lanes(sums: __m128i) -> [i32; TOGETHER] {
        let mut lanes = [0; TOGETHER];
        // SAFETY: four numbers are as many bytes as the register has.
        unsafe { _mm_storeu_si128(lanes.as_mut_ptr().cast(), sums) };
        lanes
    }

    /// Uses two registers of four words for a block of eight rows. AVX2 has no vector popcount: the bits of each nibble
    /// are looked up by a byte shuffle, and the counts are added as bytes for as long as these cannot overflow.
    #[target_feature(enable = "avx2")]
    fn estimate_avx2(
        group: RabitqGroup<'_>,
        query: &RabitqQuery,
        least: f32,
        estimates: &mut [f32; GROUP],
    ) -> u64 {
        let mut sums = [0; GROUP];
        let ahead = bytes_ahead(group);
        let blocks = group.words.chunks_exact(query.planes.len() * BLOCK);
        for (block, sums) in blocks.zip(sums.as_chunks_mut::<BLOCK>().0) {
            let words = block.as_chunks::<BLOCK>().0;
            // Each word adds at most eight to a byte of a count, so 31 words cannot overflow it.
            for (words, planes) in words.chunks(31).zip(query.planes.chunks(31)) {
                let mut counts = [[_mm256_setzero_si256(); 2]; 4];
                for (words, planes) in words.iter().zip(planes) {
                    prefetch(words.as_ptr(), ahead);
                    for (counts, plane) in counts.iter_mut().zip(planes) {
                        let plane = _mm256_set1_epi64x(plane.cast_signed());
                        for (count, half) in counts.iter_mut().zip(words.as_chunks::<4>().0) {
                            // SAFETY: four words are as many bytes as the register has.
                            let half = unsafe { _mm256_loadu_si256(half.as_ptr().cast()) };
                            let ones = byte_ones(_mm256_and_si256(half, plane));
                            *count = _mm256_add_epi8(*count, ones);
                        }
                    }
                }
                for (half, sums) in sums.as_chunks_mut::<4>().0.iter_mut().enumerate() {
                    let [ones, twos, fours, eights] = counts
                        .map(|halves| words_of(if half == 0 { halves[0] } else { halves[1] }));
                    for (at, sum) in sums.iter_mut().enumerate() {
                        let of = |counts: [i64; 4]| counts.get(at).map_or(0, |x| *x as i32);
                        *sum += super::weigh([of(ones), of(twos), of(fours), of(eights)]);
                    }
                }
            }
        }
        estimates_above(group, query, least, &sums, estimates)
    }

    /// The prefetch distance: two groups ahead. The hardware prefetcher stops at page boundaries, and a group is about
    /// a page; without software prefetching, a search among a million rows takes half as long again.
    fn bytes_ahead(group: RabitqGroup<'_>) -> usize {
        2 * (size_of_val(group.words) + GROUP_TAIL)
    }

    /// Prefetches the cache line that lies `ahead` bytes after `from`.
    fn prefetch<T>(from: *const T, ahead: usize) {
        // SAFETY: a prefetch is only a hint. It reads nothing and cannot fault, even past the end of the mapping.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(from.wrapping_byte_add(ahead).cast()) };
    }

    /// The popcount of each byte, by a lookup for each of its nibbles.
    #[target_feature(enable = "avx2")]
    fn byte_ones(word: __m256i) -> __m256i {
        let ones = _mm256_setr_epi8(
            0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2,
            3, 3, 4,
        );
        let low = _mm256_set1_epi8(15);
        let lower = _mm256_and_si256(word, low);
        let upper = _mm256_and_si256(_mm256_srli_epi16::<4>(word), low);
        _mm256_add_epi8(
            _mm256_shuffle_epi8(ones, lower),
            _mm256_shuffle_epi8(ones, upper),
        )
    }

    /// The sums of the bytes in each of the four words.
    #[target_feature(enable = "avx2")]
    fn words_of(bytes: __m256i) -> [i64; 4] {
        let sums = _mm256_sad_epu8(bytes, _mm256_setzero_si256());
        let mut words = [0_i64; 4];
        // SAFETY: four words are as many bytes as the register has.
        unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), sums) };
        words
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    fn dots_avx512(query: &[i16], rows: &[i8], sums: &mut [i32]) {
        each_row(
            query,
            rows,
            sums,
            |rows| four_avx512(query, rows),
            |row| {
                let row = row.as_chunks::<32>().0;
                let mut sum = _mm512_setzero_si512();
                for (query, codes) in query.as_chunks::<32>().0.iter().zip(row) {
                    sum = add_avx512(sum, load_avx512(query), codes);
                }
                _mm512_reduce_add_epi32(sum)
            },
        );
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    fn four_avx512(query: &[i16], rows: [&[i8]; TOGETHER]) -> [i32; TOGETHER] {
        let [one, two, three, four] = rows;
        // Prefetches the next four rows. The hardware prefetcher would only start after the first cache misses.
        let ahead = TOGETHER * size_of_val(one);
        let (one, two) = (one.as_chunks::<32>().0, two.as_chunks::<32>().0);
        let (three, four) = (three.as_chunks::<32>().0, four.as_chunks::<32>().0);
        let rows = one.iter().zip(two).zip(three.iter().zip(four));
        let [mut a, mut b, mut c, mut d] = [_mm512_setzero_si512(); TOGETHER];
        for (query, ((one, two), (three, four))) in query.as_chunks::<32>().0.iter().zip(rows) {
            let query = load_avx512(query);
            for codes in [one, two, three, four] {
                prefetch(codes.as_ptr(), ahead);
            }
            a = add_avx512(a, query, one);
            b = add_avx512(b, query, two);
            c = add_avx512(c, query, three);
            d = add_avx512(d, query, four);
        }
        // Transposes the four registers while adding, so that the lanes of one row end up in one column.
        let ab = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
        let cd = _mm512_add_epi32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
        let all = _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
        let halves = _mm256_add_epi32(
            _mm512_castsi512_si256(all),
            _mm512_extracti64x4_epi64::<1>(all),
        );
        lanes(fold(halves))
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn load_avx512(query: &[i16; 32]) -> __m512i {
        // SAFETY: the array has as many bytes as the register.
        unsafe { _mm512_loadu_si512(query.as_ptr().cast()) }
    }

    /// Multiplies and accumulates 32 numbers (VNNI, `vpdpwssd`).
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    fn add_avx512(sums: __m512i, query: __m512i, codes: &[i8; 32]) -> __m512i {
        // SAFETY: the array has as many bytes as the register.
        let codes = unsafe { _mm256_loadu_si256(codes.as_ptr().cast()) };
        _mm512_dpwssd_epi32(sums, query, _mm512_cvtepi8_epi16(codes))
    }

    /// Uses one register for a word of each of the eight rows of a block, with a popcount instruction for words.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512vpopcntdq")]
    fn estimate_avx512(
        group: RabitqGroup<'_>,
        query: &RabitqQuery,
        least: f32,
        estimates: &mut [f32; GROUP],
    ) -> u64 {
        let blocks = group.words.chunks_exact(query.planes.len() * BLOCK);
        let factors = group.factors.as_chunks::<BLOCK>().0;
        let offsets = group.offsets.as_chunks::<BLOCK>().0;
        let out = estimates.as_chunks_mut::<BLOCK>().0;
        let total = _mm512_set1_epi64(i64::from(query.total));
        let (step, least) = (_mm256_set1_ps(query.step), _mm256_set1_ps(least));
        let ahead = bytes_ahead(group);
        let mut passed = 0;
        let rows = factors.iter().zip(offsets).zip(out);
        for (at, (block, ((factors, offsets), out))) in blocks.zip(rows).enumerate() {
            let mut counts = [_mm512_setzero_si512(); 4];
            for (words, planes) in block.as_chunks::<BLOCK>().0.iter().zip(&query.planes) {
                prefetch(words.as_ptr(), ahead);
                // SAFETY: eight words are as many bytes as the register has.
                let words = unsafe { _mm512_loadu_si512(words.as_ptr().cast()) };
                for (count, plane) in counts.iter_mut().zip(planes) {
                    let met = _mm512_and_si512(words, _mm512_set1_epi64(plane.cast_signed()));
                    *count = _mm512_add_epi64(*count, _mm512_popcnt_epi64(met));
                }
            }
            let [ones, twos, fours, eights] = counts;
            // Computes twice the sum, as the estimate needs it: each plane is shifted by one more bit.
            let sum = _mm512_add_epi64(
                _mm512_add_epi64(_mm512_slli_epi64::<1>(ones), _mm512_slli_epi64::<2>(twos)),
                _mm512_sub_epi64(
                    _mm512_slli_epi64::<3>(fours),
                    _mm512_slli_epi64::<4>(eights),
                ),
            );
            let balance = _mm512_cvtepi64_ps(_mm512_sub_epi64(sum, total));
            prefetch(factors.as_ptr(), ahead);
            prefetch(offsets.as_ptr(), ahead);
            // SAFETY: eight numbers are as many bytes as the register has.
            let (factors, offsets) = unsafe {
                (
                    _mm256_loadu_ps(factors.as_ptr()),
                    _mm256_loadu_ps(offsets.as_ptr()),
                )
            };
            let estimate = _mm256_add_ps(
                _mm256_mul_ps(_mm256_mul_ps(balance, step), factors),
                offsets,
            );
            // SAFETY: as above.
            unsafe { _mm256_storeu_ps(out.as_mut_ptr(), estimate) };
            let above = _mm256_cmp_ps_mask::<_CMP_GT_OQ>(estimate, least);
            passed |= u64::from(above) << (at * BLOCK);
        }
        passed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vectors::test_support::TestRng;

    #[test]
    fn every_processor_multiplies_alike() {
        let random = &mut TestRng::new(3);
        for stride in [64, 128, 384, 4096] {
            let query: Vec<_> = (0..stride)
                .map(|_| (random.next() % 8000) as i16 - 4000)
                .collect();
            let rows: Vec<_> = (0..11 * stride).map(|_| random.next() as i8).collect();
            // Multiples of four rows, and some with a remainder.
            for count in [0, 1, 3, 4, 5, 8, 11] {
                let dots = |kernels: &DistanceKernels| {
                    let mut sums = vec![0; count];
                    kernels.dots(&query, &rows[..count * stride], &mut sums);
                    sums
                };
                let sums = dots(&DistanceKernels::portable());
                assert!(sums.windows(2).all(|two| two[0] != two[1]));
                for kernels in DistanceKernels::all() {
                    let name = kernels.name;
                    assert_eq!(dots(&kernels), sums, "{name} {stride} {count}");
                }
            }
        }
    }

    #[test]
    fn every_processor_estimates_alike() {
        let random = &mut TestRng::new(4);
        for count in [1, 2, 6, 33, 64] {
            let words: Vec<_> = (0..count * GROUP).map(|_| random.next()).collect();
            let factors: [f32; GROUP] = std::array::from_fn(|_| random.float());
            let offsets: [f32; GROUP] = std::array::from_fn(|_| random.float());
            let group = RabitqGroup {
                words: &words,
                factors: &factors,
                offsets: &offsets,
            };
            let query = RabitqQuery {
                planes: (0..count)
                    .map(|_| std::array::from_fn(|_| random.next()))
                    .collect(),
                total: random.next() as i32 % 1000,
                step: 0.01,
                base: 0.0,
            };
            let mut expected = [0.0; GROUP];
            let passed =
                DistanceKernels::portable().estimate_group(group, &query, 0.1, &mut expected);
            assert!(passed != 0 && passed != u64::MAX);
            for kernels in DistanceKernels::all() {
                let mut estimates = [0.0; GROUP];
                let name = kernels.name;
                assert_eq!(
                    kernels.estimate_group(group, &query, 0.1, &mut estimates),
                    passed,
                    "{name} {count}"
                );
                assert_eq!(estimates, expected, "{name} {count}");
            }
        }
    }

    #[test]
    fn the_sum_is_that_of_the_numbers_whose_bit_is_set() {
        // The query codes 1, -8 and 7 in the first three dimensions; rows with one bit each, and one with all three.
        let planes = vec![[0b101, 0b100, 0b100, 0b010]];
        let mut words = vec![0; GROUP];
        (words[0], words[1], words[2], words[3]) = (1, 2, 4, 7);
        let group = RabitqGroup {
            words: &words,
            factors: &[1.0; GROUP],
            offsets: &[0.5; GROUP],
        };
        let query = RabitqQuery {
            planes,
            total: 0,
            step: 0.5,
            base: 0.0,
        };
        for kernels in DistanceKernels::all() {
            let mut estimates = [0.0; GROUP];
            let passed = kernels.estimate_group(group, &query, 1.0, &mut estimates);
            assert_eq!(
                estimates[..5],
                [1.5, -7.5, 7.5, 0.5, 0.5],
                "{}",
                kernels.name
            );
            assert_eq!(passed, 0b101);
        }
    }
}
