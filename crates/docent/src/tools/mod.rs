//! The tools of the knowledge server. To add one: a file here, and a line in
//! [`app`](crate::app::app).

pub mod fetch;
pub mod parts;
pub mod search;
