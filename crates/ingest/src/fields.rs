//! Fields of documents: title, date, URL and typed values from front matter, document properties and keys.

pub(crate) mod document_properties;
pub(crate) mod field_overflow;
pub(crate) mod front_matter;
pub(crate) mod list_syntax;
pub(crate) mod metadata;
