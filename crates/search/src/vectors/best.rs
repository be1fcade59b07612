//! A stream of scored things into the best of them.

/// The best of all that came by, at most so many.
pub(super) struct Best<T> {
    most: usize,
    /// Up to twice as many as are wanted; the surplus goes whenever that is full.
    found: Vec<Scored<T>>,
    least: f32,
}

/// Something with a score, and a number that decides among equal scores.
#[derive(Clone, Debug)]
pub(super) struct Scored<T> {
    pub score: f32,
    pub order: u32,
    pub thing: T,
}

impl<T> Best<T> {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            found: Vec::with_capacity(most * 2),
            least: f32::NEG_INFINITY,
        }
    }

    /// A score below this is not among the best.
    pub(super) fn least(&self) -> f32 {
        self.least
    }

    pub(super) fn push(&mut self, one: Scored<T>) {
        if one.score < self.least || self.most == 0 {
            return;
        }
        self.found.push(one);
        if self.found.len() >= self.most * 2 {
            self.cut();
        }
    }

    /// Keeps no more than are wanted.
    fn cut(&mut self) {
        if self.found.len() > self.most
            && let Some(last) = self.most.checked_sub(1)
        {
            let (_, worst, _) = self.found.select_nth_unstable_by(last, better);
            self.least = worst.score;
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
    pub(super) fn into_unsorted(mut self) -> Vec<Scored<T>> {
        self.cut();
        self.found
    }

    /// The best first.
    pub(super) fn into_sorted(mut self) -> Vec<Scored<T>> {
        self.cut();
        self.found.sort_unstable_by(better);
        self.found
    }
}

fn better<T>(left: &Scored<T>, right: &Scored<T>) -> std::cmp::Ordering {
    let by_score = right.score.total_cmp(&left.score);
    by_score.then(left.order.cmp(&right.order))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vectors::testing::Random;

    #[test]
    fn keeps_what_sorting_everything_would() {
        let random = &mut Random::new(5);
        for most in [0, 1, 2, 7, 100] {
            // Few different scores, so that many are equal.
            let all: Vec<_> = (0..500).map(|order| (random.below(40), order)).collect();
            let mut best = Best::new(most);
            for (score, order) in &all {
                let (score, thing) = (*score as f32, ());
                best.push(Scored {
                    score,
                    order: *order,
                    thing,
                });
            }
            let mut expected = all;
            expected.sort_by_key(|(score, order)| (usize::MAX - score, *order));
            expected.truncate(most);
            let found = best.into_sorted();
            let found: Vec<_> = found.iter().map(|x| (x.score as usize, x.order)).collect();
            assert_eq!(found, expected);
        }
    }
}
