//! A bitset of document ordinals: the documents that a search may return.

/// A set of documents by their ordinals, stored as a bitset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrdinalSet {
    words: Vec<u64>,
}

impl OrdinalSet {
    /// An empty set with capacity for the ordinals below `documents`.
    pub fn new(documents: u32) -> Self {
        Self {
            words: vec![0; (documents as usize).div_ceil(64)],
        }
    }

    /// Adds a document. Ordinals beyond the capacity are ignored.
    pub fn insert(&mut self, ordinal: u32) {
        if let Some(word) = self.words.get_mut(ordinal as usize / 64) {
            *word |= 1 << (ordinal % 64);
        }
    }

    /// Whether the set contains a document; never one beyond its capacity.
    pub fn contains(&self, ordinal: u32) -> bool {
        self.bit(ordinal) == 1
    }

    /// The number of documents in the set.
    pub(super) fn count(&self) -> usize {
        let ones = self.words.iter().map(|word| word.count_ones() as usize);
        ones.sum()
    }

    /// The ordinals in the set in ascending order.
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> {
        let words = (0..).step_by(64).zip(&self.words);
        words
            .filter(|(_, word)| **word != 0)
            .flat_map(|(first, word)| {
                let bits = (0..64).filter(move |bit| word >> bit & 1 == 1);
                bits.map(move |bit| first + bit)
            })
    }

    /// The bit of a document: one if it is in the set, otherwise zero.
    pub(super) fn bit(&self, ordinal: u32) -> u64 {
        let word = self.words.get(ordinal as usize / 64);
        word.map_or(0, |word| (word >> (ordinal % 64)) & 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_what_was_inserted_and_nothing_beyond_its_room() {
        let mut allowed = OrdinalSet::new(65);
        for ordinal in [0, 63, 64, 128, u32::MAX] {
            allowed.insert(ordinal);
        }
        for ordinal in [0, 63, 64] {
            assert!(allowed.contains(ordinal), "{ordinal}");
        }
        for ordinal in [1, 62, 65, 128, u32::MAX] {
            assert!(!allowed.contains(ordinal), "{ordinal}");
        }
        assert!(allowed.iter().eq([0, 63, 64]));
        assert_eq!(allowed.count(), 3);
        assert!(!OrdinalSet::default().contains(0));
    }
}
