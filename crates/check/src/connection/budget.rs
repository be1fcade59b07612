//! The data budget of one check: at most 64 MiB read and 64 MiB kept in memory, over all responses together.
//!
//! A check is no load test, so it reads little. Memory is counted apart from what is read, because a small JSON text
//! can take sixty times its size once it is parsed.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::exchange::ExchangeError;

/// The most bytes that are read, including responses that were abandoned.
const MAX_READ: usize = 64 * 1024 * 1024;
/// The most bytes of memory that recorded responses take.
pub(crate) const MAX_KEPT: usize = 64 * 1024 * 1024;

/// The counters of what was spent so far. Every response is kept until the end of the check, so memory is released in
/// one case only: a reservation for a text that turns out not to be JSON.
#[derive(Debug, Default)]
pub(crate) struct CheckBudget {
    read: AtomicUsize,
    kept: AtomicUsize,
}

impl CheckBudget {
    pub(super) fn is_spent(&self) -> bool {
        self.read.load(Ordering::Relaxed) > MAX_READ || self.kept.load(Ordering::Relaxed) > MAX_KEPT
    }

    pub(super) fn count_read(&self, bytes: usize) {
        self.read.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts memory that is already allocated, which may exceed the limit once.
    pub(super) fn count_kept(&self, bytes: usize) {
        self.kept.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Reserves memory before something is parsed. Where none is left, the error concerns the check, not the server.
    pub(super) fn reserve(&self, bytes: usize) -> Result<(), ExchangeError> {
        let add = |kept: usize| kept.checked_add(bytes).filter(|sum| *sum <= MAX_KEPT);
        let taken = self
            .kept
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        taken.map(drop).map_err(|_| ExchangeError::BudgetSpent)
    }

    pub(super) fn release(&self, bytes: usize) {
        self.kept.fetch_sub(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_over_the_budget_are_rejected() {
        let budget = CheckBudget::default();
        assert_eq!(budget.reserve(MAX_KEPT - 1), Ok(()));
        assert_eq!(budget.reserve(2), Err(ExchangeError::BudgetSpent));
        assert_eq!(budget.reserve(1), Ok(()));
        assert!(!budget.is_spent());
        assert_eq!(budget.reserve(usize::MAX), Err(ExchangeError::BudgetSpent));
        budget.release(1);
        assert_eq!(budget.reserve(1), Ok(()));
        budget.count_kept(1);
        assert!(budget.is_spent());
    }

    #[test]
    fn reading_has_a_limit_of_its_own() {
        let budget = CheckBudget::default();
        budget.count_read(MAX_READ);
        assert!(!budget.is_spent());
        budget.count_read(1);
        assert!(budget.is_spent());
    }
}
