//! Bounded problem report: keeps the first problems of a file and counts the rest, so that a file of a
//! million bad rows cannot fill the memory.

use crate::error::{IngestError, IngestWarning, SkippedItem};

/// A list that keeps the first `limit` problems. Of those beyond it only two counts remain: how many there
/// were, and how many of them lost a row or a file.
pub(crate) struct BoundedReport<T> {
    listed: Vec<T>,
    limit: usize,
    more: u64,
    lost: u64,
}

impl<T: ReportItem> BoundedReport<T> {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            listed: Vec::new(),
            limit,
            more: 0,
            lost: 0,
        }
    }

    pub(crate) fn push(&mut self, problem: T) {
        if self.listed.len() < self.limit {
            self.listed.push(problem);
        } else {
            self.more += 1;
            self.lost += problem.lost_items();
        }
    }

    /// Returns the list, with a final entry about `path` that sums up the problems beyond the limit.
    pub(crate) fn finish(mut self, path: &str) -> Vec<T> {
        if self.more > 0 {
            let (count, lost) = (self.more, self.lost);
            self.listed
                .push(T::new(path, None, IngestError::More { count, lost }));
        }
        self.listed
    }
}

/// What a report needs to know of [`SkippedItem`] and [`IngestWarning`], which differ only in whether data
/// was lost.
pub(crate) trait ReportItem {
    fn new(path: &str, line: Option<u64>, reason: IngestError) -> Self;

    /// How many rows or files this problem lost.
    fn lost_items(&self) -> u64;
}

impl ReportItem for SkippedItem {
    fn lost_items(&self) -> u64 {
        self.reason.lost_items()
    }

    fn new(path: &str, line: Option<u64>, reason: IngestError) -> Self {
        Self {
            path: path.to_owned(),
            line,
            reason,
        }
    }
}

impl ReportItem for IngestWarning {
    fn lost_items(&self) -> u64 {
        0
    }

    fn new(path: &str, line: Option<u64>, reason: IngestError) -> Self {
        Self {
            path: path.to_owned(),
            line,
            reason,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(problems: u64, limit: usize) -> Vec<SkippedItem> {
        let mut reported = BoundedReport::new(limit);
        for line in 0..problems {
            reported.push(SkippedItem::new("a", Some(line), IngestError::Empty));
        }
        reported.finish("a")
    }

    #[test]
    fn the_bound_holds_and_the_rest_is_counted() {
        assert_eq!(list(3, 3).len(), 3);
        let over = list(5, 3);
        assert_eq!(over.len(), 4);
        assert_eq!(over[3].reason, IngestError::More { count: 2, lost: 0 });
        let mut lost = BoundedReport::new(1);
        for reason in [IngestError::Gone, IngestError::Empty, IngestError::Gone] {
            lost.push(SkippedItem::new("a", None, reason));
        }
        let last = lost.finish("a").pop().unwrap();
        assert_eq!(last.reason, IngestError::More { count: 2, lost: 1 });
    }
}
