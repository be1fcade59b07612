//! Streaming output of a parser: documents are handed on in batches while the rest of the file is still being
//! read.
//!
//! The consumer controls the flow (backpressure): it can stop the parser at any document.

use std::cell::RefCell;

use crate::reader_field::ParsedDocument;

/// Receives the documents of a file one at a time while it is parsed.
pub(crate) trait DocumentSink {
    /// Hands over one document; false if the consumer wants no more.
    fn put(&self, document: ParsedDocument) -> bool;

    /// Whether the file is parsed as a stream and not as a whole.
    fn is_streaming(&self) -> bool;
}

/// Adapts a closure to the [`DocumentSink`] trait.
pub(crate) struct CallbackSink<'a> {
    callback: RefCell<&'a mut dyn FnMut(ParsedDocument) -> bool>,
    is_streaming: bool,
}

impl<'a> CallbackSink<'a> {
    /// `is_streaming` says that the file is parsed as a stream and not as a whole.
    pub(crate) fn new(
        callback: &'a mut dyn FnMut(ParsedDocument) -> bool,
        is_streaming: bool,
    ) -> Self {
        Self {
            callback: RefCell::new(callback),
            is_streaming,
        }
    }
}

impl DocumentSink for CallbackSink<'_> {
    fn is_streaming(&self) -> bool {
        self.is_streaming
    }

    fn put(&self, document: ParsedDocument) -> bool {
        // The closure never parses a file itself, so the cell cannot be borrowed twice.
        self.callback
            .try_borrow_mut()
            .is_ok_and(|mut callback| callback(document))
    }
}

/// The target size of a batch. A single larger document forms a batch of its own. Passing on small documents one by one
/// would wake the consumer for each, and large batches would hold memory that the limits of a file do not count.
const BATCH_BYTES: usize = 256 * 1024;

/// The estimated overhead of a document beside its texts, in bytes.
const DOCUMENT_OVERHEAD_BYTES: usize = 512;

/// Collects documents into batches of about 256 KiB and passes each batch to the consumer.
pub(crate) struct DocumentBatcher<'a> {
    sink: &'a mut dyn FnMut(Vec<ParsedDocument>) -> bool,
    pending: Vec<ParsedDocument>,
    bytes: usize,
    stopped: bool,
}

impl<'a> DocumentBatcher<'a> {
    pub(crate) fn new(sink: &'a mut dyn FnMut(Vec<ParsedDocument>) -> bool) -> Self {
        Self {
            sink,
            pending: Vec::new(),
            bytes: 0,
            stopped: false,
        }
    }

    /// Adds a document; true if the batch is full and should be flushed.
    pub(crate) fn push(&mut self, document: ParsedDocument) -> bool {
        self.bytes += document.bytes() + DOCUMENT_OVERHEAD_BYTES;
        self.pending.push(document);
        self.bytes >= BATCH_BYTES
    }

    /// Passes the pending batch to the consumer; false if it wants no more.
    pub(crate) fn flush(&mut self) -> bool {
        self.bytes = 0;
        let pending = std::mem::take(&mut self.pending);
        self.stopped = self.stopped || (!pending.is_empty() && !(self.sink)(pending));
        !self.stopped
    }

    /// Adds a document and flushes the batch when it is full.
    pub(crate) fn put(&mut self, document: ParsedDocument) -> bool {
        !self.push(document) || self.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use docent_search::DocId;

    #[test]
    fn pieces_end_at_their_bound_and_at_a_no() {
        let document = |bytes: usize| docent_search::Document {
            id: DocId::parse("a").unwrap(),
            title: String::new(),
            text: "x".repeat(bytes - DOCUMENT_OVERHEAD_BYTES - 1),
            url: None,
            date: None,
            fields: Vec::new(),
            source: String::new(),
            hash: String::new(),
            readers: docent_search::AllowedReaders::Everyone,
        };
        let mut sizes = Vec::new();
        let mut sink = |piece: Vec<ParsedDocument>| {
            sizes.push(piece.len());
            sizes.len() < 2
        };
        let mut pieces = DocumentBatcher::new(&mut sink);
        assert!(pieces.put(document(BATCH_BYTES - 1_000).into()));
        assert!(pieces.put(document(1_000).into()), "one whole piece");
        assert!(pieces.put(document(600).into()));
        assert!(
            !pieces.put(document(BATCH_BYTES).into()),
            "the second is refused"
        );
        assert!(!pieces.flush());
        assert_eq!(sizes, [2, 2]);
    }
}
