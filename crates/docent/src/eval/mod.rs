//! Judged queries into scores, and the corpus itself into drafts of such queries.
//!
//! [`judged`] and [`qrels`] read what people judged, [`ask`] puts the queries to the engine,
//! [`score`] sums up with [`metrics`], [`compare`] holds two runs against each other, and
//! [`text`], [`wire`] and [`report`] show it to people, programs and browsers. [`draft`] makes
//! queries to begin with.

pub(crate) mod judged_queries;
pub(crate) mod qrels;
pub(crate) mod quality_gate;
pub(crate) mod query_draft;
pub(crate) mod query_runner;
pub(crate) mod report;
pub(crate) mod run_comparison;
pub(crate) mod run_json;
pub(crate) mod run_text;
pub(crate) mod scoring;

mod judgement_lines;
mod metrics;
mod splitmix;
