//! A bitset over the documents of one segment.

/// Which of the documents from 0 to `size` are in the set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DocBitSet {
    words: Vec<u64>,
    size: u32,
}

impl DocBitSet {
    pub(super) fn none(size: u32) -> Self {
        Self {
            words: vec![0; (size as usize).div_ceil(64)],
            size,
        }
    }

    pub(super) fn all(size: u32) -> Self {
        let mut bits = Self {
            words: vec![u64::MAX; (size as usize).div_ceil(64)],
            size,
        };
        bits.clear_beyond();
        bits
    }

    pub(super) fn insert(&mut self, doc: u32) {
        if doc < self.size
            && let Some(word) = self.words.get_mut(doc as usize / 64)
        {
            *word |= 1 << (doc % 64);
        }
    }

    pub(super) fn contains(&self, doc: u32) -> bool {
        let word = self.words.get(doc as usize / 64);
        word.is_some_and(|word| word >> (doc % 64) & 1 == 1)
    }

    pub(super) fn count(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// Keeps only the documents that are in the other set too.
    pub(super) fn intersect(&mut self, other: &Self) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word &= other;
        }
    }

    /// Removes the documents that are in the other set.
    pub(super) fn subtract(&mut self, other: &Self) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word &= !other;
        }
    }

    /// The size of the bitset in memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(self.words.as_slice())
    }

    /// Adds the documents that are in the other set.
    pub(super) fn union(&mut self, other: &Self) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word |= other;
        }
    }

    /// Complements the set within its size.
    pub(super) fn invert(&mut self) {
        for word in &mut self.words {
            *word = !*word;
        }
        self.clear_beyond();
    }

    /// The documents of the set, in ascending order.
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> {
        (0_u32..).zip(&self.words).flat_map(|(at, word)| {
            let mut left = *word;
            std::iter::from_fn(move || {
                if left == 0 {
                    return None;
                }
                let bit = left.trailing_zeros();
                left &= left - 1;
                Some(at * 64 + bit)
            })
        })
    }

    fn clear_beyond(&mut self) {
        let used = self.size % 64;
        if used > 0
            && let Some(last) = self.words.last_mut()
        {
            *last &= (1 << used) - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_behave_like_sets() {
        for size in [0, 1, 63, 64, 65, 200] {
            let all = DocBitSet::all(size);
            assert_eq!(all.count(), size);
            assert_eq!(
                all.iter().collect::<Vec<_>>(),
                (0..size).collect::<Vec<_>>()
            );
            let mut thirds = DocBitSet::none(size);
            (0..size).step_by(3).for_each(|doc| thirds.insert(doc));
            thirds.insert(size);
            assert!(!thirds.contains(size));
            let mut rest = thirds.clone();
            rest.invert();
            assert_eq!(rest.count() + thirds.count(), size);
            assert!((0..size).all(|doc| rest.contains(doc) != thirds.contains(doc)));
            let mut both = rest.clone();
            both.union(&thirds);
            assert_eq!(both, all);
            both.intersect(&thirds);
            assert_eq!(both, thirds);
            let mut without = all.clone();
            without.subtract(&thirds);
            assert_eq!(without, rest);
        }
    }
}
