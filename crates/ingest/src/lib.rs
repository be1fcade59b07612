//! Files into documents.
//!
//! A [`Source`] is a folder. [`Source::list`] finds its files, [`Source::read`] turns one of them into
//! [`Document`](docent_search::Document)s, [`Source::read_into`] the same piece by piece, and [`Dedup`] keeps every id with the first document that has it.
//! Whatever cannot be read is a [`Skipped`] with its [`Reason`]; nothing in a folder can end a run.
//!
//! Every file is hostile: it is opened beneath the folder without following links, read within [`Limits`],
//! and its text is cleaned of characters that nobody sees. Formats whose parsers are not our own are read by
//! [`Workers`]: child processes with a deadline, little memory, no files and no network.

mod archive;
mod bibtex;
mod choice;
mod clean;
mod code;
mod columns;
mod content;
mod csv;
mod dates;
mod dedup;
mod digest;
mod docx;
mod elsewhere;
mod entry;
mod epub;
mod error;
mod fields;
mod format;
mod front_matter;
mod html;
mod json;
mod jsonl;
mod layout;
mod limits;
mod line_ends;
mod lists;
mod mail;
mod markdown;
mod notebook;
mod numbers;
mod odt;
mod ooxml;
mod options;
mod out;
mod package;
mod parquet;
mod pdf;
mod pptx;
mod reader_column;
mod reader_field;
mod record_ids;
mod records;
mod report;
mod sandbox;
mod sheet;
mod source;
mod spelled_day;
mod sqlite;
mod stream;
mod text;
mod walk;
mod whole;
mod xml;

pub use choice::{FileFilter, IGNORE_FILES};
pub use clean::{CLEANING_VERSION, clean, clean_line};
pub use dates::parse_date;
pub use dedup::IdDeduplicator;
pub use entry::{FileEntry, FileFingerprint, qualified_id};
pub use error::{IngestError, IngestWarning, SkippedItem};
pub use limits::Limits;
pub use options::{IngestOptions, SqliteOptions};
pub use reader_field::{
    ParsedDocument, READER_RULES, ReaderFault, ReaderField, ReaderFieldName, comparable_name,
    is_or_is_nested_in,
};
#[doc(hidden)]
pub use sandbox::serve_parser_after;
pub use sandbox::{
    Confinement, LANDLOCK_VERSION, MAX_MEMORY_BYTES, ParserPool, SandboxConfig, SandboxLayerStatus,
    serve_parser,
};
pub use source::{FileReadOutcome, FolderSource};
pub use walk::FolderListing;
