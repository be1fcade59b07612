//! SplitMix64, a deterministic pseudorandom number generator (PRNG).
//!
//! The same seed always gives the same sequence, so drafts and permutation tests are reproducible.

/// A pseudorandom sequence that depends on its seed alone.
pub(crate) struct SplitMix64(u64);

impl SplitMix64 {
    /// Starts the sequence of a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 pseudorandom bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, 0 for a bound of 0. The modulo bias towards small numbers is below one part in a billion
    /// for the bounds used here.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let bound = bound.max(1) as u64;
        usize::try_from(self.next() % bound).unwrap_or(0)
    }

    /// Shuffles a slice in place (Fisher-Yates).
    pub(crate) fn shuffle<T>(&mut self, things: &mut [T]) {
        for last in (1..things.len()).rev() {
            things.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of seed 0, as published by the authors of SplitMix64.
    #[test]
    fn the_sequence_equals_the_published_one() {
        let mut rng = SplitMix64::new(0);
        assert_eq!(rng.next(), 0xE220_A839_7B1D_CDAF);
        assert_eq!(rng.next(), 0x6E78_9E6A_A1B9_65F4);
    }

    #[test]
    fn shuffling_keeps_everything_and_repeats_itself() {
        let shuffled = |seed| {
            let mut things: Vec<usize> = (0..100).collect();
            SplitMix64::new(seed).shuffle(&mut things);
            things
        };
        let mut sorted = shuffled(1);
        assert_eq!(shuffled(1), sorted);
        assert_ne!(shuffled(2), sorted);
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..100));
        assert_eq!(SplitMix64::new(1).below(0), 0);
    }
}
