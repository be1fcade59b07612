//! Implementations of the [`Embedder`](crate::embedder::Embedder) trait.
//!
//! Two models are built into the program: `granite`, a transformer, and `static_embedder`, a table of word vectors.
//! `endpoint` is a client of an embeddings service. `query_cache` saves each of them repeated questions.

mod endpoint;
#[cfg(feature = "granite")]
mod granite;
#[cfg(any(feature = "granite", feature = "table"))]
mod packed_file;
mod query_cache;
#[cfg(feature = "table")]
mod static_embedder;

pub use endpoint::{EndpointEmbedder, EndpointSettings, MAX_SETTING_BYTES, ServiceKey};
#[cfg(feature = "granite")]
pub use granite::GraniteEmbedder;
pub(crate) use query_cache::QueryCache;
#[cfg(feature = "table")]
pub use static_embedder::StaticEmbedder;
