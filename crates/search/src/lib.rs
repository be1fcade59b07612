//! Documents into ranked hits.
//!
//! A [`Document`] goes in through [`Engine::apply`]; a [`Query`] comes back as [`Hit`]s through
//! [`Engine::search`]. What sits behind the [`Engine`] is one of several engines that all pass the
//! same contract suite: [`Memory`] is the small reference, [`Embedded`] keeps its index on disk.

mod analysis;
mod document;
mod embedded;
mod engine;
mod error;
mod hit;
mod memory;
mod query;
mod ranking;
mod snippet;

pub use document::{
    DocId, Document, MAX_DOCUMENT_BYTES, MAX_FIELDS, MAX_HASH_BYTES, MAX_ID_BYTES,
    MAX_SOURCE_BYTES, MAX_URL_BYTES, Value,
};
pub use embedded::Embedded;
pub use engine::{Change, Engine, Generation, Held, MAX_CHANGES, PartState, Status};
pub use error::Error;
pub use hit::{Hit, MAX_SNIPPET_CHARS, MAX_TITLE_CHARS};
pub use memory::Memory;
pub use query::{MAX_LIMIT, MAX_QUERY_CHARS, MAX_QUERY_TERMS, Query, Reader};
