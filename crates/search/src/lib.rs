//! The search library of Docent: hybrid retrieval (BM25 and embeddings) over documents with access control.
//!
//! A [`Document`] goes in through [`Engine::apply`]; a [`Query`] comes back as [`SearchHit`]s through
//! [`Engine::search`]. Several engines implement the [`Engine`] trait and pass the same contract suite:
//! [`MemoryEngine`] is the small reference implementation, [`EmbeddedEngine`] keeps its index on disk, and
//! [`ClusterEngine`] keeps it on a Qdrant cluster that any number of processes share.

mod analysis;
mod anchors;
mod blocking;
mod calendar;
mod catalog;
mod cluster;
mod document;
mod edit_distance;
mod embed;
mod embedded;
mod embedder;
mod engine;
mod error;
mod excerpt;
mod facet_terms;
pub mod failpoints;
mod filter;
mod folder_lock;
mod fusion;
pub mod grammar;
mod highlighter;
mod hit;
mod language_vote;
mod memory;
mod passage;
mod pipeline;
mod precomputed_embedder;
mod query;
mod ranking;
mod reader_identity;
mod snippet;
mod spelling;
mod stored_document;
mod term_positions;
pub mod vectors;

pub use anchors::{MAX_ANCHORS, TextAnchors};
pub use calendar::Day;
pub use catalog::{
    Catalog, CatalogBuilder, CatalogField, FieldKind, MAX_CATALOG_FIELDS, MAX_KEYWORD_CHARS,
    MAX_KEYWORDS, MAX_TRACKED, RangeBound,
};
pub use cluster::{
    CALL_BUCKETS, CallTraffic, ClusterEngine, ClusterSettings, ClusterTraffic, MAX_ADDRESSES,
    MAX_COLLECTION_CHARS, NodeTraffic,
};
pub use document::{
    DocId, Document, DocumentValue, MAX_DOCUMENT_BYTES, MAX_FIELDS, MAX_HASH_BYTES, MAX_ID_BYTES,
    MAX_SOURCE_BYTES, MAX_URL_BYTES,
};
#[cfg(feature = "granite")]
pub use embed::GraniteEmbedder;
#[cfg(feature = "table")]
pub use embed::StaticEmbedder;
pub use embed::{EndpointEmbedder, EndpointSettings, MAX_SETTING_BYTES, ServiceKey};
pub use embedded::EmbeddedEngine;
pub use embedder::{Embedder, ModelLanguages};
pub use engine::{
    DocumentChange, EmbeddingProgress, Engine, EngineStatus, Generation, InventoryEntry,
    InventoryEntryRef, MAX_CHANGES, MAX_DATE_RANGES, PartState, PassageVector, SPAN_TARGET,
};
pub use error::SearchError;
pub use filter::{FieldTest, Filter, MAX_CONDITIONS, MAX_FILTER_DEPTH};
pub use folder_lock::is_index_locked;
pub use fusion::CosineScale;
pub use grammar::{AppliedCondition, IgnoredCondition, MAX_IGNORED, MAX_QUERY_DEPTH, ParsedQuery};
pub use highlighter::{MAX_HIGHLIGHTS, MatchHighlighter};
pub use hit::{
    FacetCounts, HitExcerpt, MAX_EXCERPT_CHARS, MAX_EXCERPTS, MAX_FACET_VALUES, MAX_SNIPPET_CHARS,
    MAX_TITLE_CHARS, ScoreExplanation, SearchHit, SearchResults,
};
pub use memory::MemoryEngine;
pub use passage::{MAX_PASSAGE_CHARS, MAX_PASSAGES, Passage, heading, is_fence, passages};
pub use precomputed_embedder::PrecomputedEmbedder;
pub use query::{
    MAX_FACETS, MAX_LIMIT, MAX_OFFSET, MAX_QUERY_CHARS, MAX_QUERY_TERMS, Query, RankingMethod,
    SortOrder,
};
pub use reader_identity::{
    AllowedReaders, MAX_PRINCIPAL_BYTES, MAX_PRINCIPALS, MAX_READERS, Principal, ReaderIdentity,
};
