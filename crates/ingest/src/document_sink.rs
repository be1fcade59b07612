//! Documents on their way out of a file, handed on while the rest of it is still being read.

use std::cell::RefCell;

use crate::reader_field::ParsedDocument;

/// Takes the documents of a file one by one.
pub(crate) trait DocumentSink {
    /// False when it wants no more.
    fn put(&self, document: ParsedDocument) -> bool;

    /// Whether the file is read while it comes.
    fn is_streaming(&self) -> bool;
}

/// Documents into a function.
pub(crate) struct CallbackSink<'a> {
    take: RefCell<&'a mut dyn FnMut(ParsedDocument) -> bool>,
    of_stream: bool,
}

impl<'a> CallbackSink<'a> {
    /// `of_stream` says that the file is read while it comes, not as a whole.
    pub(crate) fn new(take: &'a mut dyn FnMut(ParsedDocument) -> bool, of_stream: bool) -> Self {
        Self {
            take: RefCell::new(take),
            of_stream,
        }
    }
}

impl DocumentSink for CallbackSink<'_> {
    fn is_streaming(&self) -> bool {
        self.of_stream
    }

    fn put(&self, document: ParsedDocument) -> bool {
        // Nobody who takes a document reads a file meanwhile.
        self.take
            .try_borrow_mut()
            .is_ok_and(|mut take| take(document))
    }
}

/// The most bytes of documents that are handed on together, unless one alone has more.
const BATCH_BYTES: usize = 256 * 1024;

/// What a document takes beside its texts.
const OWN_BYTES: usize = 512;

/// Single documents into pieces for whoever takes those; false when it wants no more.
pub(crate) struct DocumentBatcher<'a> {
    sink: &'a mut dyn FnMut(Vec<ParsedDocument>) -> bool,
    waiting: Vec<ParsedDocument>,
    bytes: usize,
    stopped: bool,
}

impl<'a> DocumentBatcher<'a> {
    pub(crate) fn new(sink: &'a mut dyn FnMut(Vec<ParsedDocument>) -> bool) -> Self {
        Self {
            sink,
            waiting: Vec::new(),
            bytes: 0,
            stopped: false,
        }
    }

    /// Takes a document; true when a piece is whole and should be handed on.
    pub(crate) fn push(&mut self, document: ParsedDocument) -> bool {
        self.bytes += document.bytes() + OWN_BYTES;
        self.waiting.push(document);
        self.bytes >= BATCH_BYTES
    }

    /// Hands on what waits. False when no more is wanted.
    pub(crate) fn flush(&mut self) -> bool {
        self.bytes = 0;
        let waiting = std::mem::take(&mut self.waiting);
        self.stopped = self.stopped || (!waiting.is_empty() && !(self.sink)(waiting));
        !self.stopped
    }

    /// Takes a document and hands on as often as it must.
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
            text: "x".repeat(bytes - OWN_BYTES - 1),
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
