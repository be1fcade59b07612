//! The MCP tools of the knowledge server. A new tool needs a file here and a line in [`app`](crate::app::app).

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
