//! Collectors that aggregate scored rows by document.
//!
//! The rows of a document are adjacent in a segment, and no thread gets a part of a document. So the best row of a
//! document is known when the next document begins, without a hash table.

use super::live_documents::NO_OWNER;
use super::top_k::{ScoredItem, TopK};

/// The most candidates of one document. A book with a thousand passages about the question would otherwise fill the
/// candidate pool by itself, although it is one hit in the end. The other rows of a found document are rescored anyway.
const MAX_CANDIDATES_PER_DOCUMENT: usize = 8;

/// The address of a row: the segment of the view, and the index there. Sorts in file order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RowAddress {
    pub part: usize,
    pub row: usize,
}

/// Collects the best documents. A document counts by its best row (max pooling over its passages).
pub(super) struct DocumentCollector {
    best: TopK<()>,
    owner: u32,
    /// The best score so far of the current document.
    score: f32,
}

impl DocumentCollector {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            best: TopK::new(limit),
            owner: NO_OWNER,
            score: f32::NEG_INFINITY,
        }
    }

    #[inline]
    pub(super) fn push(&mut self, owner: u32, score: f32) {
        if owner != self.owner {
            self.close();
            self.owner = owner;
        }
        self.score = self.score.max(score);
    }

    /// Finishes the current document and offers it to the best.
    fn close(&mut self) {
        if self.owner != NO_OWNER {
            self.best.push(ScoredItem::new(self.score, self.owner, ()));
            self.score = f32::NEG_INFINITY;
        }
    }

    pub(super) fn finish(mut self) -> TopK<()> {
        self.close();
        self.best
    }
}

/// Collects the candidate pool: the rows with the best estimates, at most [`MAX_CANDIDATES_PER_DOCUMENT`] of a
/// document.
pub(super) struct CandidateCollector {
    pub best: TopK<RowAddress>,
    owner: u32,
    /// The candidates of the current document.
    rows: Vec<ScoredItem<RowAddress>>,
}

impl CandidateCollector {
    pub(super) fn new(pool_size: usize) -> Self {
        Self {
            best: TopK::new(pool_size),
            owner: NO_OWNER,
            rows: Vec::with_capacity(MAX_CANDIDATES_PER_DOCUMENT),
        }
    }

    pub(super) fn push(&mut self, owner: u32, one: ScoredItem<RowAddress>) {
        if owner != self.owner {
            self.close();
            self.owner = owner;
        }
        if self.rows.len() < MAX_CANDIDATES_PER_DOCUMENT {
            self.rows.push(one);
            return;
        }
        let worst = self
            .rows
            .iter_mut()
            .min_by(|a, b| a.score().total_cmp(&b.score()));
        if let Some(worst) = worst
            && worst.score() < one.score()
        {
            *worst = one;
        }
    }

    fn close(&mut self) {
        for row in self.rows.drain(..) {
            self.best.push(row);
        }
    }

    pub(super) fn finish(mut self) -> TopK<RowAddress> {
        self.close();
        self.best
    }
}
