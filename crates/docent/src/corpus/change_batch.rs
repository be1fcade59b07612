//! Write batching for a sync: documents collect here until a size, memory or time threshold makes a flush due.
//!
//! Every flush is synced to disk and followed by one pass over the index, so a few large batches cost much less
//! than many small ones. The first batch holds 1,000 documents and each one doubles the limit up to 50,000:
//! right after the start somebody waits for the first search result.

use std::time::{Duration, Instant};

use docent_search::{Document, DocumentChange};

use super::memory_budget::IndexMemoryBudget;

/// Document limits of the first batch and of every batch; the limit doubles from one to the other.
const FIRST_DOCUMENTS: usize = 1_000;
pub(super) const MAX_COMMIT_DOCUMENTS: usize = 50_000;

/// Estimated memory overhead of a document beside its texts.
const OWN_BYTES: usize = 256;

/// The flush delay: a batch that stays small is written after the larger of two seconds and eight times the
/// duration of the last write, so that on a slow disk small batches spend at most about a ninth of the time writing.
const MIN_FLUSH_DELAY: Duration = Duration::from_secs(2);
const FLUSH_DELAY_FACTOR: u32 = 8;

/// The pending changes of a sync with the thresholds at which they are flushed. `most_documents` grows from batch
/// to batch, and `flush_delay` follows the measured duration of the last write.
pub(super) struct ChangeBatch {
    changes: Vec<DocumentChange>,
    bytes: usize,
    most_documents: usize,
    most_bytes: usize,
    since: Instant,
    flush_delay: Duration,
}

impl ChangeBatch {
    pub(super) fn new(budget: IndexMemoryBudget) -> Self {
        Self {
            changes: Vec::new(),
            bytes: 0,
            most_documents: FIRST_DOCUMENTS,
            most_bytes: budget.batch_bytes(),
            since: Instant::now(),
            flush_delay: MIN_FLUSH_DELAY,
        }
    }

    pub(super) fn put(&mut self, document: Document) {
        self.bytes += document.bytes() + OWN_BYTES;
        self.changes.push(DocumentChange::Put(document));
    }

    /// Whether one of the three thresholds (documents, bytes, age) has been reached.
    pub(super) fn is_due(&self) -> bool {
        self.changes.len() >= self.most_documents
            || self.bytes >= self.most_bytes
            || (!self.changes.is_empty() && self.since.elapsed() > self.flush_delay)
    }

    /// Takes the pending changes out for a flush and doubles the document limit of the next batch.
    pub(super) fn take(&mut self) -> Vec<DocumentChange> {
        self.bytes = 0;
        self.most_documents = MAX_COMMIT_DOCUMENTS.min(2 * self.most_documents);
        std::mem::take(&mut self.changes)
    }

    /// Adapts the flush delay to the duration of the write that has just ended.
    pub(super) fn written(&mut self, took: Duration) {
        self.flush_delay = MIN_FLUSH_DELAY.max(took.saturating_mul(FLUSH_DELAY_FACTOR));
        self.since = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use docent_search::DocId;

    use super::*;

    fn document(bytes: usize) -> Document {
        Document {
            id: DocId::parse("a").unwrap(),
            title: String::new(),
            text: "a".repeat(bytes - OWN_BYTES - 1),
            url: None,
            date: None,
            fields: Vec::new(),
            source: String::new(),
            hash: String::new(),
            readers: docent_search::AllowedReaders::Everyone,
        }
    }

    /// A batch whose flush delay never expires.
    fn batch() -> ChangeBatch {
        let mut batch = ChangeBatch::new(IndexMemoryBudget::default());
        batch.flush_delay = Duration::MAX;
        batch
    }

    #[test]
    fn batches_end_at_their_bounds() {
        let small = OWN_BYTES + 1;
        let mut many = batch();
        for most in [FIRST_DOCUMENTS, 2 * FIRST_DOCUMENTS] {
            (1..most).for_each(|_| many.put(document(small)));
            assert!(!many.is_due());
            many.put(document(small));
            assert!(many.is_due());
            assert_eq!(many.take().len(), most);
        }
        let mut large = batch();
        let most = IndexMemoryBudget::default().batch_bytes();
        large.put(document(most - small));
        assert!(!large.is_due());
        large.put(document(small));
        assert!(large.is_due());
    }

    #[test]
    fn few_documents_do_not_wait_for_ever() {
        let mut few = batch();
        few.written(Duration::from_secs(3));
        assert_eq!(few.flush_delay, Duration::from_secs(24));
        few.flush_delay = Duration::ZERO;
        few.since = Instant::now() - Duration::from_millis(1);
        assert!(!few.is_due(), "there is nothing to write");
        few.put(document(1_000));
        assert!(few.is_due());
    }
}
