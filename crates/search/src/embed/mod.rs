//! The embedders: texts into vectors.

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
