//! The MCP tools of the knowledge server.
//!
//! To add a tool, write a file here, add it in [`app::builder`](crate::app::builder), and add its name to
//! `RESERVED_TOOL_NAMES` of `settings/tools.rs`. `CONTRIBUTING.md` has the other files to edit.
//!
//! An answer that is too large is truncated in one of these places:
//!
//! - `fetch` and the record tool give a long text in parts, cut by [`document_parts::split`].
//! - The `metadata` of `fetch` is limited by `MAX_METADATA_CHARS` and `MAX_VALUE_CHARS` in `fetch`.
//! - The field values of a record and of the results of `find` are limited by `CharBudget` in `result_members`.
//! - Titles and snippets of hits are cut by the search crate, in `crates/search/src/snippet.rs`.
//! - `show_results` and `show_document` try smaller budgets until their output fits `MAX_STRUCTURED_BYTES` of
//!   `document_view`; `show_results` leaves out the last hits if nothing else helps.
//!
//! The kit truncates nothing. Some hosts want the largest size of an answer declared: that is
//! `fetch::max_answer_chars`, and `MAX_ANSWER_CHARS` for `find`.

pub mod document_parts;
pub mod fetch;
pub mod find;
pub mod list_fields;
pub mod record;
pub mod search;
pub mod search_notes;
pub mod show_document;
pub mod show_results;

mod date_buckets;
pub(crate) mod document_view;
mod plain_text;
mod result_members;
pub(crate) mod text_facts;
