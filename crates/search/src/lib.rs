//! Documents into ranked hits.
//!
//! A [`Document`] goes in through [`Engine::apply`]; a [`Query`] comes back as [`Hit`]s through
//! [`Engine::search`]. What sits behind the [`Engine`] is one of several engines that all pass the
//! same contract suite: [`Memory`] is the small reference, [`Embedded`] keeps its index on disk, and
//! [`Cluster`] keeps it on a Qdrant cluster for any number of processes.

mod analysis;
mod anchor;
mod blocking;
mod calendar;
mod carrier;
mod catalog;
mod cluster;
mod document;
mod embed;
mod embedded;
mod embedder;
mod engine;
mod error;
mod excerpt;
mod facets;
pub mod faults;
mod filter;
mod folder;
mod fuse;
pub mod grammar;
mod hit;
mod marks;
mod memory;
mod passage;
mod postings;
mod query;
mod ranking;
mod reader;
mod snippet;
mod spelling;
mod stored;
pub mod vectors;

pub use anchor::{Anchors, MAX_ANCHORS};
pub use calendar::Day;
pub use carrier::Carrier;
pub use catalog::{
    Bound, Catalog, CatalogBuilder, Field, Kind, MAX_CATALOG_FIELDS, MAX_KEYWORD_CHARS,
    MAX_KEYWORDS, MAX_TRACKED,
};
pub use cluster::{
    CALL_BUCKETS, CallTraffic, Cluster, ClusterSettings, MAX_ADDRESSES, MAX_COLLECTION_CHARS,
    NodeTraffic, Traffic,
};
pub use document::{
    DocId, Document, MAX_DOCUMENT_BYTES, MAX_FIELDS, MAX_HASH_BYTES, MAX_ID_BYTES,
    MAX_SOURCE_BYTES, MAX_URL_BYTES, Value,
};
#[cfg(feature = "granite")]
pub use embed::Granite;
#[cfg(feature = "table")]
pub use embed::Table;
pub use embed::{ApiKey, Endpoint, EndpointSettings, MAX_SETTING_BYTES};
pub use embedded::Embedded;
pub use embedder::{Embedder, ModelLanguages};
pub use engine::{
    Change, Engine, Generation, Held, Holding, MAX_CHANGES, MAX_DATE_RANGES, PartState,
    SPAN_TARGET, Settled, Status, Vectored,
};
pub use error::Error;
pub use filter::{Filter, MAX_CONDITIONS, MAX_FILTER_DEPTH, Test};
pub use folder::is_index_locked;
pub use fuse::Scale;
pub use grammar::{Applied, Ignored, MAX_IGNORED, MAX_QUERY_DEPTH, Parsed};
pub use hit::{
    Excerpt, Facet, Found, Hit, MAX_EXCERPT_CHARS, MAX_EXCERPTS, MAX_FACET_VALUES,
    MAX_SNIPPET_CHARS, MAX_TITLE_CHARS, Why,
};
pub use marks::{MAX_HIGHLIGHTS, Marker};
pub use memory::Memory;
pub use passage::{MAX_PASSAGE_CHARS, MAX_PASSAGES, Passage, heading, is_fence, passages};
pub use query::{
    MAX_FACETS, MAX_LIMIT, MAX_OFFSET, MAX_QUERY_CHARS, MAX_QUERY_TERMS, Method, Query, Sort,
};
pub use reader::{MAX_PRINCIPAL_BYTES, MAX_PRINCIPALS, MAX_READERS, Principal, Reader, Readers};
