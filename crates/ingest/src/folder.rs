//! The folder of documents: what is in it, which of it is read, and the one way to open its files.

pub(crate) mod file_entry;
pub(crate) mod file_filter;
pub(crate) mod source;
pub(crate) mod walk;
