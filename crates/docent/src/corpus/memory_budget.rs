//! The memory that indexing may take into the bounds of everything that grows with the corpus.

/// How much memory indexing may take over what the idle server has, and how it is shared out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexMemoryBudget {
    bytes: usize,
}

const MIB: usize = 1024 * 1024;

impl Default for IndexMemoryBudget {
    fn default() -> Self {
        Self::of_mib(Self::DEFAULT_MIB)
    }
}

impl IndexMemoryBudget {
    /// What is taken when nothing is set.
    pub const DEFAULT_MIB: usize = 512;

    /// The least with which documents of every size are still indexed.
    pub const LEAST_MIB: usize = 256;

    /// A budget of so many MiB, or the least there can be.
    pub fn of_mib(mib: usize) -> Self {
        Self {
            bytes: mib.max(Self::LEAST_MIB).saturating_mul(MIB),
        }
    }

    /// What the writer of the index may hold before it writes a segment. It takes as much again while it
    /// writes one and merges others.
    pub fn writer_bytes(self) -> usize {
        self.bytes / 5
    }

    /// Documents that wait to be written together. Each is there three times while it is indexed: as it is,
    /// as the index takes it in, and as its terms.
    pub(super) fn batch_bytes(self) -> usize {
        self.bytes / 32
    }

    /// Documents that were read ahead.
    pub(super) fn prefetch_bytes(self) -> usize {
        self.bytes / 32
    }

    /// What all files may take that are being read as a whole at the same time.
    pub(super) fn reading_bytes(self) -> u64 {
        (self.bytes / 4) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_fit_into_the_whole() {
        for mib in [1, 256, 512, 4_096] {
            let budget = IndexMemoryBudget::of_mib(mib);
            let reading = usize::try_from(budget.reading_bytes()).unwrap();
            let writing = 2 * budget.writer_bytes() + 3 * budget.batch_bytes();
            assert!(writing + budget.prefetch_bytes() + reading <= budget.bytes);
        }
        assert_eq!(
            IndexMemoryBudget::of_mib(1),
            IndexMemoryBudget::of_mib(IndexMemoryBudget::LEAST_MIB)
        );
    }
}
