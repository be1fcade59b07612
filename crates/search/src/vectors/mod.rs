//! Vectors on disk, and the search among them.
//!
//! A document has passages, a passage has a vector, and vectors that point the same way stand for
//! texts of like meaning. A [`Store`] keeps the vectors of one [`Model`] in a folder; a [`View`] of
//! it, together with the [`Live`] documents of one generation, is searched. Everything here can be
//! made again from the documents: in doubt it is refused, thrown away and made again.

mod collectors;
mod kernels;
mod live_documents;
mod manifest;
mod mapped_file;
mod merge;
mod ordinal_set;
mod quantization;
mod random_rotation;
mod segment_layout;
mod segment_writer;
#[cfg(test)]
mod test_support;
#[cfg(test)]
mod tests;
mod top_k;
mod vector_batch;
mod vector_search;
mod vector_segment;
mod vector_store;
mod vector_view;

pub use live_documents::LiveDocuments;
pub use merge::MergeReport;
pub use ordinal_set::OrdinalSet;
pub use quantization::QueryVector;
pub use vector_batch::{EmbeddedDocument, EmbeddedPassage};
pub use vector_search::{PassageHit, VectorHit, VectorSearchOptions};
pub use vector_store::{VectorModel, VectorStore};
pub use vector_view::VectorView;

/// The most numbers a vector has.
pub const MAX_DIMENSIONS: usize = 4_096;

/// The most bytes of a model's fingerprint.
pub const MAX_FINGERPRINT_BYTES: usize = 1_024;

/// The most passages of a document: one for each 768 bytes of the largest.
pub const MAX_PASSAGES: usize = 65_536;

/// The most vectors that are added at once: about a hundred megabytes of a usual model's.
pub const MAX_BATCH_ROWS: usize = 65_536;

/// The most documents that are added at once.
pub const MAX_BATCH_DOCUMENTS: usize = 65_536;

/// The most rows of a segment. No merge writes more than these at a time, a hundred megabytes or
/// so, and no search gains from larger ones.
pub const MAX_SEGMENT_ROWS: usize = 1 << 18;

/// The most rows of a store.
pub const MAX_ROWS: usize = 1 << 24;

/// The most segments of a store. [`Store::maintain`] keeps their number far below.
pub const MAX_SEGMENTS: usize = 1_024;

/// The most documents of an answer.
pub const MAX_DOCUMENTS: usize = 1_000;

/// How many passages of a found document are told.
pub const PASSAGES_SHOWN: usize = 3;
