//! Scored rows, document after document, into the best of them.
//!
//! The rows of a document stand together in a segment and no thread gets a part of a document, so
//! what is best in a document is known when the next one begins.

use super::live_documents::NO_OWNER;
use super::top_k::{ScoredItem, TopK};

/// How many rows of one document are picked at most, so that a long one leaves room for others.
const CANDIDATES_OF_ONE: usize = 8;

/// A row, by its part and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RowAddress {
    pub part: usize,
    pub row: usize,
}

/// Scored rows, document after document, into the best documents.
pub(super) struct DocumentCollector {
    best: TopK<()>,
    owner: u32,
    /// The best score of the document at hand.
    score: f32,
}

impl DocumentCollector {
    pub(super) fn new(wanted: usize) -> Self {
        Self {
            best: TopK::new(wanted),
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

    /// The document at hand is complete.
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

/// Estimated rows, document after document, into the best rows with not too many of one document.
pub(super) struct CandidateCollector {
    pub best: TopK<RowAddress>,
    owner: u32,
    /// Rows of the document at hand.
    rows: Vec<ScoredItem<RowAddress>>,
}

impl CandidateCollector {
    pub(super) fn new(most: usize) -> Self {
        Self {
            best: TopK::new(most),
            owner: NO_OWNER,
            rows: Vec::with_capacity(CANDIDATES_OF_ONE),
        }
    }

    pub(super) fn push(&mut self, owner: u32, one: ScoredItem<RowAddress>) {
        if owner != self.owner {
            self.close();
            self.owner = owner;
        }
        if self.rows.len() < CANDIDATES_OF_ONE {
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
