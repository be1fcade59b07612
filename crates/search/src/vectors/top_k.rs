//! Top-k selection from a stream of scored items.

/// The best `k` items of a stream. It buffers up to twice as many and then prunes them by quickselect, so the
/// amortized cost of an item is constant. `min_score` is the score that an item has to reach since the last pruning.
pub(super) struct TopK<T> {
    k: usize,
    found: Vec<ScoredItem<T>>,
    min_score: f32,
}

/// An item with a score, and an order that breaks ties: the lower one wins.
#[derive(Clone, Debug)]
pub(super) struct ScoredItem<T> {
    /// Score and order in one integer, lower is better. Most of the work is comparing items, and this takes one
    /// comparison.
    key: u64,
    pub item: T,
}

impl<T> ScoredItem<T> {
    pub(super) fn new(score: f32, order: u32, item: T) -> Self {
        let key = u64::from(!ascending(score.to_bits())) << 32 | u64::from(order);
        Self { key, item }
    }

    pub(super) fn score(&self) -> f32 {
        f32::from_bits(from_ascending(!((self.key >> 32) as u32)))
    }

    pub(super) fn order(&self) -> u32 {
        self.key as u32
    }
}

/// Maps the bits of a float to an integer with the same order as the floats.
fn ascending(bits: u32) -> u32 {
    let is_negative = bits >> 31 == 1;
    bits ^ if is_negative { u32::MAX } else { 1 << 31 }
}

/// The inverse of [`ascending`]: recovers the bits of the float.
fn from_ascending(ascending: u32) -> u32 {
    let is_negative = ascending >> 31 == 0;
    ascending ^ if is_negative { u32::MAX } else { 1 << 31 }
}

impl<T> TopK<T> {
    pub(super) fn new(k: usize) -> Self {
        Self {
            k,
            found: Vec::with_capacity(k * 2),
            min_score: f32::NEG_INFINITY,
        }
    }

    /// A lower bound: items with a score below it cannot be among the best.
    pub(super) fn threshold(&self) -> f32 {
        self.min_score
    }

    pub(super) fn push(&mut self, one: ScoredItem<T>) {
        if one.score() < self.min_score || self.k == 0 {
            return;
        }
        self.found.push(one);
        if self.found.len() >= self.k * 2 {
            self.prune();
        }
    }

    /// Drops all but the best `k` items.
    fn prune(&mut self) {
        if self.found.len() > self.k
            && let Some(last) = self.k.checked_sub(1)
        {
            let (_, worst, _) = self.found.select_nth_unstable_by_key(last, |one| one.key);
            self.min_score = worst.score();
            self.found.truncate(self.k);
        }
    }

    /// Merges the selections of several threads into one.
    pub(super) fn joined(streams: impl IntoIterator<Item = Self>) -> Option<Self> {
        streams.into_iter().reduce(|mut all, one| {
            one.found.into_iter().for_each(|one| all.push(one));
            all
        })
    }

    /// The best items in arbitrary order.
    pub(super) fn into_unsorted(mut self) -> Vec<ScoredItem<T>> {
        self.prune();
        self.found
    }

    /// The best items, sorted by descending score.
    pub(super) fn into_sorted(mut self) -> Vec<ScoredItem<T>> {
        self.prune();
        self.found.sort_unstable_by_key(|one| one.key);
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vectors::test_support::TestRng;

    #[test]
    fn keeps_what_sorting_everything_would() {
        let random = &mut TestRng::new(5);
        for k in [0, 1, 2, 7, 100] {
            // Few distinct scores, so that there are many ties.
            let all: Vec<_> = (0..500).map(|order| (random.below(40), order)).collect();
            let mut best = TopK::new(k);
            for (score, order) in &all {
                best.push(ScoredItem::new(*score as f32, *order, ()));
            }
            let mut expected = all;
            expected.sort_by_key(|(score, order)| (usize::MAX - score, *order));
            expected.truncate(k);
            let found = best.into_sorted();
            let found = found.iter().map(|x| (x.score() as usize, x.order()));
            let found: Vec<_> = found.collect();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn scores_keep_their_order_and_come_back() {
        let numbers = [
            f32::NEG_INFINITY,
            -2.5,
            -1e-40,
            -0.0,
            0.0,
            1e-40,
            0.7,
            f32::INFINITY,
        ];
        let scored = numbers.map(|score| ScoredItem::new(score, u32::MAX, ()));
        assert!(scored.is_sorted_by(|worse, better| better.key < worse.key));
        for (one, number) in scored.iter().zip(numbers) {
            assert_eq!(one.score().to_bits(), number.to_bits());
            assert_eq!(one.order(), u32::MAX);
        }
        assert!(ScoredItem::new(0.5, 1, ()).key < ScoredItem::new(0.5, 2, ()).key);
    }
}
