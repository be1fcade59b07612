//! Document ingestion: turns the files of a folder into documents that can be indexed.
//!
//! A [`FolderSource`] is a folder. [`FolderSource::list`] walks it, [`FolderSource::read`] parses one file
//! into [`Document`](docent_search::Document)s, and [`FolderSource::read_into`] streams them in batches.
//! Whatever cannot be read becomes a [`SkippedItem`] with an [`IngestError`]; no content of a folder can abort
//! a run.
//!
//! Every file is untrusted input. It is opened beneath the folder without following links, read within
//! [`Limits`], and its text is stripped of invisible characters. Formats whose parsers are third-party code
//! are read by a [`ParserPool`]: sandboxed child processes with a deadline, a memory limit, no file access
//! and no network.

mod archive;
mod bibtex;
mod bounded_report;
mod clean;
mod code;
mod column_types;
mod csv;
mod dates;
mod digest;
mod document_properties;
mod document_sink;
mod docx;
mod epub;
mod error;
mod exports;
mod field_overflow;
mod file_entry;
mod file_filter;
mod folded_path;
mod folder_context;
mod folder_source;
mod folder_walk;
mod format;
mod front_matter;
mod hashing_reader;
mod html;
mod json;
mod jsonl;
mod layout;
mod limits;
mod line_counter;
mod list_syntax;
mod mail;
mod markdown;
mod metadata;
mod notebook;
mod notion_table;
mod number_format;
mod odt;
mod ooxml;
mod options;
mod package;
mod package_parts;
mod parquet;
mod parser;
mod pdf;
mod pptx;
mod reader_column;
mod reader_field;
mod record_ids;
mod records;
mod sandbox;
mod sheet;
mod single_document;
mod sqlite;
mod text;
mod text_stream;
mod written_date;
mod xml;

pub use clean::{CLEANING_VERSION, clean, clean_line};
pub use dates::parse_date;
pub use error::{IngestError, IngestWarning, SkippedItem};
pub use file_entry::{FileEntry, FileFingerprint, qualified_id};
pub use file_filter::{FileFilter, IGNORE_FILES};
pub use folded_path::{PATH_SEPARATORS, fold_path, is_under};
pub use folder_source::{FileReadOutcome, FolderSource};
pub use folder_walk::FolderListing;
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
