//! The embedders: texts into vectors.

mod endpoint;
#[cfg(feature = "granite")]
mod granite;
#[cfg(any(feature = "granite", feature = "table"))]
mod packed;
mod remember;
#[cfg(feature = "table")]
mod table;

pub use endpoint::{EndpointEmbedder, EndpointSettings, MAX_SETTING_BYTES, ServiceKey};
#[cfg(feature = "granite")]
pub use granite::GraniteEmbedder;
pub(crate) use remember::QueryCache;
#[cfg(feature = "table")]
pub use table::StaticEmbedder;
