//! Document ingestion: turns the files of a folder into documents that can be indexed.
//!
//! A [`FolderSource`] is a folder. [`FolderSource::list`] walks it, [`FolderSource::read`] parses one file
//! into [`Document`](docent_search::Document)s, and [`FolderSource::open_file`] opens it for whoever wants to know more.
//! Whatever cannot be read becomes a [`SkippedItem`] with an [`IngestError`]; no content of a folder can abort
//! a run.
//!
//! Every file is untrusted input. It is opened beneath the folder without following links, read within
//! [`Limits`], and its text is stripped of invisible characters. Formats whose parsers are third-party code
//! are read by a [`ParserPool`]: sandboxed child processes with a deadline, a memory limit, no file access
//! and no network.

mod clean;
mod dates;
mod decoding;
mod digest;
mod error;
mod exports;
mod fields;
mod file_name;
mod folded_path;
mod folder;
mod formats;
mod layout;
mod limits;
mod options;
mod parser;
mod reader_field;
mod records;
mod sandbox;
mod single_document;
mod source_path;
mod xml;

pub use clean::{CLEANING_VERSION, clean, clean_line};
pub use dates::parse_date;
pub use error::{IngestError, IngestWarning, SkippedItem};
pub use folded_path::{PATH_SEPARATORS, fold_path, is_under};
pub use folder::file_entry::{FileEntry, FileFingerprint};
pub use folder::file_filter::{FileFilter, IGNORE_FILES};
pub use folder::source::{FileReadOutcome, FolderSource, OpenedFile};
pub use folder::walk::FolderListing;
pub use limits::{Limits, MAX_MEMORY_BYTES};
pub use options::{HiddenField, IngestOptions, SqliteOptions};
pub use reader_field::{
    ParsedDocument, READER_RULES, ReaderFault, ReaderField, ReaderFieldName, comparable_name,
    is_or_is_nested_in,
};
#[doc(hidden)]
pub use sandbox::serve_parser_after;
pub use sandbox::{
    Confinement, LANDLOCK_VERSION, ParserPool, SandboxConfig, SandboxLayerStatus, serve_parser,
};
pub use source_path::qualified_id;
