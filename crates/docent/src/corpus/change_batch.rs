//! Documents into batches that are written together.
//!
//! A batch is written through to the disk, and everything in the index is looked at once after it, so that
//! few large ones cost much less than many small ones. The first ones are small: somebody waits for an
//! answer.

use std::time::{Duration, Instant};

use docent_search::{Document, DocumentChange};

use super::memory_budget::IndexMemoryBudget;

/// The most documents of the first batch, and of any.
const FIRST_DOCUMENTS: usize = 1_000;
pub(super) const MOST_DOCUMENTS: usize = 50_000;

/// What a document takes beside its texts.
const OWN_BYTES: usize = 256;

/// How long documents wait at least before they are written although they are few, and how often as long as
/// writing takes.
const PATIENCE: Duration = Duration::from_secs(2);
const TIMES: u32 = 8;

/// A batch on its way.
pub(super) struct ChangeBatch {
    changes: Vec<DocumentChange>,
    bytes: usize,
    most_documents: usize,
    most_bytes: usize,
    since: Instant,
    patience: Duration,
}

impl ChangeBatch {
    pub(super) fn new(budget: IndexMemoryBudget) -> Self {
        Self {
            changes: Vec::new(),
            bytes: 0,
            most_documents: FIRST_DOCUMENTS,
            most_bytes: budget.batch_bytes(),
            since: Instant::now(),
            patience: PATIENCE,
        }
    }

    pub(super) fn put(&mut self, document: Document) {
        self.bytes += document.bytes() + OWN_BYTES;
        self.changes.push(DocumentChange::Put(document));
    }

    /// Whether it should be written now.
    pub(super) fn is_due(&self) -> bool {
        self.changes.len() >= self.most_documents
            || self.bytes >= self.most_bytes
            || (!self.changes.is_empty() && self.since.elapsed() > self.patience)
    }

    /// All of it; what comes now belongs to the next one.
    pub(super) fn take(&mut self) -> Vec<DocumentChange> {
        self.bytes = 0;
        self.most_documents = MOST_DOCUMENTS.min(2 * self.most_documents);
        std::mem::take(&mut self.changes)
    }

    /// A batch has been written, which took so long.
    pub(super) fn written(&mut self, took: Duration) {
        self.patience = PATIENCE.max(took.saturating_mul(TIMES));
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

    /// A batch that waits for ever.
    fn batch() -> ChangeBatch {
        let mut batch = ChangeBatch::new(IndexMemoryBudget::default());
        batch.patience = Duration::MAX;
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
        assert_eq!(few.patience, Duration::from_secs(24));
        few.patience = Duration::ZERO;
        few.since = Instant::now() - Duration::from_millis(1);
        assert!(!few.is_due(), "there is nothing to write");
        few.put(document(1_000));
        assert!(few.is_due());
    }
}
