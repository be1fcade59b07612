//! Vector index on disk: quantized passage vectors in memory-mapped segments, and nearest-neighbour search among them.
//!
//! A document has passages, and each passage has a vector. A [`VectorStore`] keeps the vectors of one [`VectorModel`]
//! in a folder. Searches run on a [`VectorView`]: a snapshot of the store together with the [`LiveDocuments`] of one
//! generation. Everything here can be computed again from the documents, so a file that fails a check is refused and
//! rebuilt, never repaired.

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

/// The most dimensions of a vector. The models in use have from 256 to 4,096. The limit bounds what one row takes in
/// memory and on disk, so that a wrong answer of an embedding service cannot ask for gigabytes.
pub const MAX_DIMENSIONS: usize = 4_096;

/// The most bytes of the fingerprint that identifies a model.
pub const MAX_FINGERPRINT_BYTES: usize = 1_024;

/// The most passages of a document: one for each 768 bytes of the largest document.
pub const MAX_PASSAGES: usize = 65_536;

/// The most vectors of one batch: about a hundred megabytes for a usual model. A batch is quantized in memory before it
/// becomes a segment, and it is all or nothing, so its size is also what a crash can lose.
pub const MAX_BATCH_ROWS: usize = 65_536;

/// The most documents of one batch, those without passages included.
pub const MAX_BATCH_DOCUMENTS: usize = 65_536;

/// The most rows of a segment. This bounds what one merge writes to about a hundred megabytes, and searches do not get
/// faster with larger segments.
pub const MAX_SEGMENT_ROWS: usize = 1 << 18;

/// The most rows of a store, over all its segments. Each view keeps the owner of every row in memory, four bytes and
/// some bits, and a search passes over all rows; an index with more than sixteen million should be on a cluster
/// instead.
pub const MAX_ROWS: usize = 1 << 24;

/// The most segments of a store. Merges ([`VectorStore::maintain`]) keep their number far below.
pub const MAX_SEGMENTS: usize = 1_024;

/// The most documents that one search returns.
pub const MAX_DOCUMENTS: usize = 1_000;

/// How many passages are returned for each hit.
pub const PASSAGES_SHOWN: usize = 3;
