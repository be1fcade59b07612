//! The memory budget of indexing, divided into fixed shares for the index writer, batches, prefetch and parsers.
//!
//! Everything that would otherwise grow with the corpus has a share, so that the peak does not depend on its size.

/// The memory that indexing may take on top of an idle server, and the shares of its consumers.
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
    /// The budget when the settings name none.
    pub const DEFAULT_MIB: usize = 512;

    /// The smallest budget with which documents of every permitted size are still indexed.
    pub const LEAST_MIB: usize = 256;

    /// A budget of this many MiB, raised to [`LEAST_MIB`](Self::LEAST_MIB) when it is smaller.
    pub fn of_mib(mib: usize) -> Self {
        Self {
            bytes: mib.max(Self::LEAST_MIB).saturating_mul(MIB),
        }
    }

    /// The budget in MiB, as in the setting `index.memory_mib`.
    pub fn mib(self) -> usize {
        self.bytes / MIB
    }

    /// The heap of the index writer, which writes a segment when the heap is full. Writing and merging segments
    /// takes the same amount once more, so this share counts twice.
    pub fn writer_bytes(self) -> usize {
        self.bytes / 5
    }

    /// The size of a write batch. This share counts three times: while a document is indexed it exists as parsed,
    /// in the form the index stores, and as terms.
    pub(super) fn batch_bytes(self) -> usize {
        self.bytes / 32
    }

    /// The size of all documents that were prefetched and not yet taken.
    pub(super) fn prefetch_bytes(self) -> usize {
        self.bytes / 32
    }

    /// The estimated memory of all files that are being parsed at the same time.
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
