//! Retrieval evaluation for `docent eval`: runs judged queries against the index and scores the rankings.
//!
//! [`judged_queries`] and [`qrels`] parse the judgements, [`query_runner`] runs the queries, [`scoring`] aggregates
//! [`metrics`], and [`run_comparison`] compares two runs. [`run_text`], [`run_json`] and [`report`] print the result
//! for a terminal, a program and a browser, and [`quality_gate`] fails a build. [`query_draft`] drafts judged
//! queries from the corpus, to begin with.

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
