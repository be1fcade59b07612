//! A stream of scored things into the best of them.

/// The best of all that came by, at most so many.
pub(super) struct TopK<T> {
    most: usize,
    /// Up to twice as many as are wanted; the surplus goes whenever that is full.
    found: Vec<ScoredItem<T>>,
    least: f32,
}

/// Something with a score, and a number that decides among equal scores.
#[derive(Clone, Debug)]
pub(super) struct ScoredItem<T> {
    /// Both as one number, the lower the better: comparing them is most of what is done with them.
    key: u64,
    pub thing: T,
}

impl<T> ScoredItem<T> {
    pub(super) fn new(score: f32, order: u32, thing: T) -> Self {
        let key = u64::from(!ascending(score.to_bits())) << 32 | u64::from(order);
        Self { key, thing }
    }

    pub(super) fn score(&self) -> f32 {
        f32::from_bits(bits(!((self.key >> 32) as u32)))
    }

    pub(super) fn order(&self) -> u32 {
        self.key as u32
    }
}

/// The bits of a number into a whole number that is the greater the greater the number is.
fn ascending(bits: u32) -> u32 {
    let is_negative = bits >> 31 == 1;
    bits ^ if is_negative { u32::MAX } else { 1 << 31 }
}

/// The way back.
fn bits(ascending: u32) -> u32 {
    let is_negative = ascending >> 31 == 0;
    ascending ^ if is_negative { u32::MAX } else { 1 << 31 }
}

impl<T> TopK<T> {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            found: Vec::with_capacity(most * 2),
            least: f32::NEG_INFINITY,
        }
    }

    /// A score below this is not among the best.
    pub(super) fn threshold(&self) -> f32 {
        self.least
    }

    pub(super) fn push(&mut self, one: ScoredItem<T>) {
        if one.score() < self.least || self.most == 0 {
            return;
        }
        self.found.push(one);
        if self.found.len() >= self.most * 2 {
            self.prune();
        }
    }

    /// Keeps no more than are wanted.
    fn prune(&mut self) {
        if self.found.len() > self.most
            && let Some(last) = self.most.checked_sub(1)
        {
            let (_, worst, _) = self.found.select_nth_unstable_by_key(last, |one| one.key);
            self.least = worst.score();
            self.found.truncate(self.most);
        }
    }

    /// The best of several such streams.
    pub(super) fn joined(streams: impl IntoIterator<Item = Self>) -> Option<Self> {
        streams.into_iter().reduce(|mut all, one| {
            one.found.into_iter().for_each(|one| all.push(one));
            all
        })
    }

    /// The best, in no order.
    pub(super) fn into_unsorted(mut self) -> Vec<ScoredItem<T>> {
        self.prune();
        self.found
    }

    /// The best first.
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
        for most in [0, 1, 2, 7, 100] {
            // Few different scores, so that many are equal.
            let all: Vec<_> = (0..500).map(|order| (random.below(40), order)).collect();
            let mut best = TopK::new(most);
            for (score, order) in &all {
                best.push(ScoredItem::new(*score as f32, *order, ()));
            }
            let mut expected = all;
            expected.sort_by_key(|(score, order)| (usize::MAX - score, *order));
            expected.truncate(most);
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
