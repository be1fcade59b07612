//! A seed into numbers that look random and are the same every time: SplitMix64.

/// A row of numbers that its seed decides.
pub(crate) struct SplitMix64(u64);

impl SplitMix64 {
    /// The row of this seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, 0 when there is none. The remainder favours small numbers by less
    /// than one part in a billion for the bounds used here.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let bound = bound.max(1) as u64;
        usize::try_from(self.next() % bound).unwrap_or(0)
    }

    /// Puts things into another order.
    pub(crate) fn shuffle<T>(&mut self, things: &mut [T]) {
        for last in (1..things.len()).rev() {
            things.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of seed 0 as the authors of SplitMix64 publish them.
    #[test]
    fn the_row_of_a_seed_is_known() {
        let mut chance = SplitMix64::new(0);
        assert_eq!(chance.next(), 0xE220_A839_7B1D_CDAF);
        assert_eq!(chance.next(), 0x6E78_9E6A_A1B9_65F4);
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
