//! Judged queries into scores, and the corpus itself into drafts of such queries.
//!
//! [`judged`] and [`qrels`] read what people judged, [`ask`] puts the queries to the engine,
//! [`score`] sums up with [`metrics`], [`compare`] holds two runs against each other, and
//! [`text`], [`wire`] and [`report`] show it to people, programs and browsers. [`draft`] makes
//! queries to begin with.

pub(crate) mod ask;
pub(crate) mod compare;
pub(crate) mod draft;
pub(crate) mod gate;
pub(crate) mod judged;
pub(crate) mod qrels;
pub(crate) mod report;
pub(crate) mod score;
pub(crate) mod text;
pub(crate) mod wire;

mod chance;
mod lines;
mod metrics;
