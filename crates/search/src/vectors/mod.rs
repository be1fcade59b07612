//! Vectors on disk, and the search among them.
//!
//! A document has passages, a passage has a vector, and vectors that point the same way stand for
//! texts of like meaning. A [`Store`] keeps the vectors of one [`Model`] in a folder; a [`View`] of
//! it, together with the [`Live`] documents of one generation, is searched. Everything here can be
//! made again from the documents: in doubt it is refused, thrown away and made again.

mod allowed;
mod batch;
mod best;
mod code;
mod collect;
mod draft;
mod kernels;
mod layout;
mod live;
mod manifest;
mod map;
mod merge;
mod rotation;
mod search;
mod segment;
mod store;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod view;

pub use allowed::OrdinalSet;
pub use batch::{EmbeddedDocument, EmbeddedPassage};
pub use code::QueryVector;
pub use live::LiveDocuments;
pub use merge::MergeReport;
pub use search::{PassageHit, VectorHit, VectorSearchOptions};
pub use store::{VectorModel, VectorStore};
pub use view::VectorView;

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
