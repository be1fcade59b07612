//! The embedders: texts into vectors.

mod endpoint;
#[cfg(feature = "granite")]
mod granite;
#[cfg(any(feature = "granite", feature = "table"))]
mod packed;
mod remember;
#[cfg(feature = "table")]
mod table;

pub use endpoint::{ApiKey, Endpoint, EndpointSettings, MAX_SETTING_BYTES};
#[cfg(feature = "granite")]
pub use granite::Granite;
pub(crate) use remember::Remembered;
#[cfg(feature = "table")]
pub use table::Table;
