//! Files into documents.
//!
//! A [`Source`] is a folder. [`Source::list`] finds its files, [`Source::read`] turns one of them into
//! [`Document`](docent_search::Document)s, and [`Dedup`] keeps every id with the first document that has it.
//! Whatever cannot be read is a [`Skipped`] with its [`Reason`]; nothing in a folder can end a run.
//!
//! Every file is hostile: it is opened beneath the folder without following links, read within [`Limits`],
//! and its text is cleaned of characters that nobody sees.

mod clean;
mod dates;
mod dedup;
mod digest;
mod docx;
mod entry;
mod epub;
mod error;
mod fields;
mod format;
mod front_matter;
mod html;
mod jsonl;
mod layout;
mod limits;
mod markdown;
mod odt;
mod ooxml;
mod package;
mod pdf;
mod pptx;
mod report;
mod source;
mod spelled_day;
mod text;
mod walk;
mod xml;

pub use clean::{clean, clean_line};
pub use dedup::Dedup;
pub use entry::{Entry, Fingerprint};
pub use error::{Reason, Skipped, Warning};
pub use limits::Limits;
pub use source::{Reading, Source};
pub use walk::Listing;
