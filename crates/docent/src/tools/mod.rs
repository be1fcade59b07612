//! The tools of the knowledge server. To add one: a file here, and a line in
//! [`app`](crate::app::app).

pub mod about;
pub mod fetch;
pub mod find;
pub mod list_fields;
pub mod parts;
pub mod record;
pub mod search;
pub mod show_document;
pub mod show_results;

pub(crate) mod facts;
mod histogram;
mod members;
mod prose;
pub(crate) mod shown;
