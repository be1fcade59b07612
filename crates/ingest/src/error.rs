//! Ingestion errors: every reason why something was not indexed, or not in full, with a stable code, a
//! message and a hint. A reason is one line in the report of a run and never aborts the run.

pub(crate) mod bounded_report;
mod hints;

use std::borrow::Cow;
use std::io::ErrorKind;

use serde::{Deserialize, Serialize};

use crate::limits::MAX_MEMORY_BYTES;
use crate::reader_field::ReaderFault;

/// Messages contain no path: the [`SkippedItem`] or [`IngestWarning`] around a reason names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[non_exhaustive]
pub enum IngestError {
    /// The root folder of a source cannot be opened.
    #[error("the folder cannot be opened: {cause}")]
    Root {
        /// The kind of I/O error that the system reported.
        #[serde(skip, default = "other")]
        cause: ErrorKind,
    },
    /// A symbolic link, which is never followed.
    #[error("this is a symbolic link")]
    Link,
    /// A pipe, socket or device.
    #[error("this is neither a file nor a folder")]
    Special,
    /// A folder that is nested too deeply.
    #[error("the folder lies more than {limit} folders deep")]
    TooDeep {
        /// The most folders inside each other.
        limit: usize,
    },
    /// A path that is longer than allowed.
    #[error("the path has more than {limit} bytes")]
    PathTooLong {
        /// The most bytes of a path.
        limit: usize,
    },
    /// A folder with more names than fit into the listing.
    #[error("there are more than {limit} files and folders; some in this folder are left out")]
    TooManyFiles {
        /// The most names of a listing.
        limit: usize,
    },
    /// The system refused to open or read the file.
    #[error("it cannot be read: {cause}")]
    Unreadable {
        /// The kind of I/O error that the system reported.
        #[serde(skip, default = "other")]
        cause: ErrorKind,
    },
    /// The file was deleted between listing and reading.
    #[error("it disappeared after the folder was listed")]
    Gone,
    /// A file that is larger than allowed.
    #[error("it has {bytes} bytes, the limit is {limit}")]
    TooLarge {
        /// At least this many bytes were seen.
        bytes: u64,
        /// The most bytes of a file.
        limit: u64,
    },
    /// An ignore file with too many bytes or patterns.
    #[error("the ignore file has more than 64 KiB or 1,000 patterns, and is not applied")]
    IgnoreFileTooLong,
    /// A file format without a parser.
    #[error("the format `{kind}` is not supported")]
    Unsupported {
        /// The format by content, or else the extension.
        kind: String,
    },
    /// A member of an archive whose content is of a supported format, but packed in an unsupported way.
    #[error("it is stored in the archive as `{method}`, which is not supported")]
    UnsupportedStorage {
        /// The compression method, or another way to store a file.
        method: String,
    },
    /// Binary content where text was expected.
    #[error("the content is binary")]
    Binary,
    /// A file or record without anything to index.
    #[error("there is nothing to index in it")]
    Empty,
    /// A text that is longer than allowed.
    #[error("the text has more than {limit} characters")]
    TextTooLong {
        /// The most characters of a text.
        limit: usize,
    },
    /// A scanned file: it has pages, but no text layer.
    #[error("it has no text layer, only images")]
    NoText,
    /// Front matter that is not valid YAML or TOML.
    #[error("the front matter is not valid {language}{}", at_line(*line))]
    FrontMatter {
        /// The language in which it was parsed, `YAML` or `TOML`.
        language: Cow<'static, str>,
        /// The line of the file where parsing stopped, if known.
        line: Option<u64>,
    },
    /// Front matter in the wrong place or in an unsupported language.
    #[error(
        "what looks like front matter does not begin on the first line, or its language is not supported"
    )]
    FrontMatterPlace,
    /// A front matter block that is too long or never closed.
    #[error("the front matter has no closing line within {limit} bytes")]
    FrontMatterTooLong {
        /// The most bytes of a front matter block.
        limit: usize,
    },
    /// A record or row that is longer than allowed.
    #[error("the line has more than {limit} bytes")]
    LineTooLong {
        /// The most bytes of a line.
        limit: usize,
    },
    /// A line or a file that is not valid JSON.
    #[error("{}", bad_json(*line, *column))]
    BadJson {
        /// The line of the file, counted from 1; `None` where a single line was parsed.
        line: Option<usize>,
        /// The column where parsing stopped, counted from 1.
        column: usize,
    },
    /// A record that is valid JSON but not an object.
    #[error("the record is not a JSON object")]
    NotAnObject,
    /// JSON or a table schema that is nested too deeply.
    #[error("it is nested more than {limit} levels deep")]
    TooNested {
        /// The most levels of nesting that are parsed.
        limit: usize,
    },
    /// A table with more columns than allowed.
    #[error("there are more than {limit} columns")]
    TooManyColumns {
        /// The most columns that a table may have.
        limit: usize,
    },
    /// Corrupt or truncated content of a known format.
    #[error("it is damaged: {what}")]
    Damaged {
        /// A description of the corrupt part.
        what: Cow<'static, str>,
    },
    /// An encrypted or password-protected file.
    #[error("it is encrypted or protected by a password")]
    Encrypted,
    /// A hidden sheet of a workbook.
    #[error("it is hidden")]
    Hidden,
    /// A zip bomb, or another file that contains more than allowed.
    #[error("it contains more than {limit} parts, levels or bytes")]
    TooMuchInside {
        /// The limit that was exceeded.
        limit: u64,
    },
    /// A configured query that the database rejected.
    #[error("the query cannot be run: {why}")]
    Query {
        /// The error message of the database.
        why: String,
    },
    /// Generated or minified code, or a lock file.
    #[error("it is {what}")]
    Generated {
        /// What it is and how it was recognized.
        what: Cow<'static, str>,
    },
    /// A file with more records than allowed.
    #[error("there are more than {limit} records; the rest is left out")]
    TooManyRecords {
        /// The most records of a file.
        limit: usize,
    },
    /// A record whose id is not valid.
    #[error("the id cannot be used: {why}")]
    BadId {
        /// Which rule for ids it violates.
        why: String,
    },
    /// A duplicate id: another document of the corpus claimed it first.
    #[error("the id `{id}` belongs to a document of `{first}`")]
    DuplicateId {
        /// The id that occurs twice.
        id: String,
        /// The source whose document keeps the id.
        first: String,
    },
    /// Ids that collide with ids of other files.
    #[error(
        "{count} of its ids belong to documents of `{first}` or other files; here they are prefixed with the file name"
    )]
    SharedIds {
        /// The number of colliding ids in this file.
        count: u64,
        /// One of the sources whose documents keep them.
        first: String,
    },
    /// An id column that does not identify every record.
    #[error(
        "its `id` does not identify every record, so rows are numbered and `id` becomes a field: {why}"
    )]
    NumberedRows {
        /// What is wrong with the first such record.
        why: String,
    },
    /// Duplicate ids in one file, found after its ids were scanned.
    #[error(
        "{count} of its ids, such as `{id}`, occur twice in it; the second one gets a numeric suffix"
    )]
    RepeatedIds {
        /// The number of ids that occur repeatedly.
        count: u64,
        /// An example of a repeated id.
        id: String,
    },
    /// Text of a JSON file that belongs to none of its records.
    #[error("text outside its records is not indexed: `{names}`")]
    BesideRecords {
        /// The names of the members that hold it.
        names: String,
    },
    /// A corpus with more documents than allowed.
    #[error("there are more than {limit} documents; the rest is left out")]
    TooManyDocuments {
        /// The most documents that a corpus may have.
        limit: usize,
    },
    /// A document with more fields than allowed.
    #[error("there are more than {limit} fields; the rest cannot be filtered by")]
    TooManyFields {
        /// The most fields that a document may have.
        limit: usize,
    },
    /// A value that cannot be a field: its name is empty, too long or taken, or it is nested too deeply.
    #[error(
        "a value is in the text only, because its name is empty, too long, too deeply nested or taken"
    )]
    BadField,
    /// A field or title that holds only the beginning of its value.
    #[error(
        "the field `{name}` holds {limit} characters or list values of its value; all of it is in the text"
    )]
    Cut {
        /// The name of the truncated field.
        name: String,
        /// The most characters or list values that a field holds.
        limit: usize,
    },
    /// A key that one object has several times.
    #[error(
        "the key `{name}` is written more than once; all of its values but one are in the text only"
    )]
    RepeatedKey {
        /// The name of the key.
        name: String,
    },
    /// A value that does not match the type configured for its field.
    #[error("the value of `{name}` is left out because it is no {kind}: `{value}`")]
    WrongType {
        /// The name of the configured field.
        name: String,
        /// The configured type of the field.
        kind: String,
        /// The beginning of the rejected value.
        value: String,
    },
    /// An access control field that names no valid reader, which closes the document to everyone.
    #[error("nobody may read it, because `{name}` {fault}")]
    UnusableReaders {
        /// The name of the access control field.
        name: String,
        /// The reason why the field is unusable.
        fault: ReaderFault,
    },
    /// A path traversal in an archive: a member name that leads out of it.
    #[error("its name inside the archive is absolute, leads out of it or holds a NUL")]
    BadName,
    /// The parser process crashed or broke its protocol.
    #[error("the parser crashed while reading it")]
    Crashed,
    /// A file whose parser exceeded its deadline.
    #[error("reading it takes more than {seconds} seconds")]
    TooSlow {
        /// The time limit for one file in seconds.
        seconds: u64,
    },
    /// A file whose parser exceeded its memory limit.
    #[error("reading it takes more than {limit} bytes of memory")]
    TooMuchMemory {
        /// The memory limit of a parser in bytes.
        limit: u64,
    },
    /// A format that requires the sandbox, on a system where a sandbox layer is missing.
    #[error("its format is read in a sandbox only, and the sandbox is incomplete: {gaps}")]
    NoSandbox {
        /// The sandbox layers that are missing.
        gaps: String,
    },
    /// Stands for the problems beyond the limit of a report.
    #[error("{count} more problems are not listed")]
    More {
        /// The number of problems that are not listed.
        count: u64,
        /// How many of them lost a row or a file.
        #[serde(default)]
        lost: u64,
    },
}

fn other() -> ErrorKind {
    ErrorKind::Other
}

fn bad_json(line: Option<usize>, column: usize) -> String {
    match line {
        Some(line) => format!("it is not valid JSON, at line {line}, column {column}"),
        None => format!("the line is not valid JSON, at column {column}"),
    }
}

fn at_line(line: Option<u64>) -> String {
    line.map(|line| format!(", at line {line}"))
        .unwrap_or_default()
}

impl IngestError {
    /// The error for a parser that hit its memory limit.
    pub(crate) fn out_of_memory() -> Self {
        Self::TooMuchMemory {
            limit: MAX_MEMORY_BYTES,
        }
    }

    /// The error for a file or folder that cannot be opened or read.
    pub(crate) fn from_io(error: &std::io::Error) -> Self {
        match error.kind() {
            // A path component that is no longer a folder was replaced after the listing.
            std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => Self::Gone,
            cause => Self::Unreadable { cause },
        }
    }

    /// A stable code for this kind of error, for scripts and reports. It does not change between releases.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Root { .. } => "root",
            Self::Link => "link",
            Self::Special => "special",
            Self::TooDeep { .. } => "too-deep",
            Self::PathTooLong { .. } => "path-too-long",
            Self::TooManyFiles { .. } => "too-many-files",
            Self::Unreadable { .. } => "unreadable",
            Self::Gone => "gone",
            Self::TooLarge { .. } => "too-large",
            Self::IgnoreFileTooLong => "ignore-file-too-long",
            Self::Unsupported { .. } => "unsupported",
            Self::UnsupportedStorage { .. } => "unsupported-storage",
            Self::Binary => "binary",
            Self::Empty => "empty",
            Self::TextTooLong { .. } => "text-too-long",
            Self::NoText => "no-text",
            Self::FrontMatter { .. } => "bad-front-matter",
            Self::FrontMatterPlace => "front-matter-place",
            Self::FrontMatterTooLong { .. } => "front-matter-too-long",
            Self::LineTooLong { .. } => "line-too-long",
            Self::BadJson { .. } => "bad-json",
            Self::NotAnObject => "not-an-object",
            Self::TooNested { .. } => "too-nested",
            Self::TooManyColumns { .. } => "too-many-columns",
            Self::Damaged { .. } => "damaged",
            Self::Encrypted => "encrypted",
            Self::Hidden => "hidden",
            Self::TooMuchInside { .. } => "too-much-inside",
            Self::Query { .. } => "query",
            Self::Generated { .. } => "generated",
            Self::TooManyRecords { .. } => "too-many-records",
            Self::BadId { .. } => "bad-id",
            Self::DuplicateId { .. } => "duplicate-id",
            Self::SharedIds { .. } => "shared-ids",
            Self::NumberedRows { .. } => "numbered-rows",
            Self::RepeatedIds { .. } => "repeated-ids",
            Self::BesideRecords { .. } => "beside-records",
            Self::TooManyDocuments { .. } => "too-many-documents",
            Self::TooManyFields { .. } => "too-many-fields",
            Self::BadField => "bad-field",
            Self::Cut { .. } => "cut",
            Self::RepeatedKey { .. } => "repeated-key",
            Self::WrongType { .. } => "wrong-type",
            Self::UnusableReaders { .. } => "unusable-readers",
            Self::BadName => "bad-name",
            Self::Crashed => "crashed",
            Self::TooSlow { .. } => "too-slow",
            Self::TooMuchMemory { .. } => "too-much-memory",
            Self::NoSandbox { .. } => "no-sandbox",
            Self::More { .. } => "more",
        }
    }

    /// The number of rows or files that this skip lost: one, or zero where something was left out by its kind
    /// or by choice. A limit that cuts off the rest of a file counts once, since the size of the rest is
    /// unknown.
    pub fn lost_items(&self) -> u64 {
        match self {
            Self::More { lost, .. } => *lost,
            Self::Link
            | Self::Special
            | Self::Unsupported { .. }
            | Self::Binary
            | Self::Empty
            | Self::NoText
            | Self::Hidden
            | Self::Generated { .. }
            | Self::IgnoreFileTooLong => 0,
            _ => 1,
        }
    }
}

/// A file, line or record that was not indexed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedItem {
    /// The path inside the source, parts separated by `/`, safe to print.
    pub path: String,
    /// The line of the file, counted from 1, when only that line was skipped.
    pub line: Option<u64>,
    /// Why it was skipped.
    pub reason: IngestError,
}

/// Something that was indexed, but not exactly as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IngestWarning {
    /// The path inside the source, parts separated by `/`, safe to print.
    pub path: String,
    /// The line of the file, counted from 1, when only that line is meant.
    pub line: Option<u64>,
    /// What was changed or left out.
    pub reason: IngestError,
}

#[cfg(test)]
pub(crate) mod tests;
