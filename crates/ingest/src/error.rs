//! Why something was not indexed, or not in full: one list of reasons, each with a stable code, a message
//! and a hint. A reason is a line in the report of a run and never ends the run.

use std::borrow::Cow;
use std::io::ErrorKind;

use serde::{Deserialize, Serialize};

use crate::reader_field::ReaderFault;

/// Why a folder, file, line or field was left out or changed.
///
/// Messages name no path: the [`Skipped`] or [`Warning`] around a reason does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[non_exhaustive]
pub enum IngestError {
    /// The root of a source cannot be opened as a folder.
    #[error("the folder cannot be opened: {cause}")]
    Root {
        /// What the system answered.
        #[serde(skip, default = "other")]
        cause: ErrorKind,
    },
    /// A symbolic link.
    #[error("this is a symbolic link")]
    Link,
    /// A pipe, socket or device.
    #[error("this is neither a file nor a folder")]
    Special,
    /// A folder below too many others.
    #[error("the folder lies more than {limit} folders deep")]
    TooDeep {
        /// The most folders inside each other.
        limit: usize,
    },
    /// A path with too many bytes.
    #[error("the path has more than {limit} bytes")]
    PathTooLong {
        /// The most bytes of a path.
        limit: usize,
    },
    /// A folder whose names no longer fit into the listing.
    #[error("there are more than {limit} files and folders; some in this folder are left out")]
    TooManyFiles {
        /// The most names of a listing.
        limit: usize,
    },
    /// The system refused to open or read.
    #[error("it cannot be read: {cause}")]
    Unreadable {
        /// What the system answered.
        #[serde(skip, default = "other")]
        cause: ErrorKind,
    },
    /// The file was there when the folder was listed and is not any more.
    #[error("it disappeared after the folder was listed")]
    Gone,
    /// A file with too many bytes.
    #[error("it has {bytes} bytes, the limit is {limit}")]
    TooLarge {
        /// The bytes seen so far, at least.
        bytes: u64,
        /// The most bytes of a file.
        limit: u64,
    },
    /// An ignore file that is longer than any ought to be.
    #[error("the ignore file has more than 64 KiB or 1,000 patterns, and none of them counts")]
    IgnoreFileTooLong,
    /// A format that cannot be read.
    #[error("the format `{kind}` is not supported")]
    Unsupported {
        /// The format's name by content, or the name's extension.
        kind: String,
    },
    /// Bytes that are no text.
    #[error("the content is binary")]
    Binary,
    /// Nothing to index.
    #[error("there is nothing to index in it")]
    Empty,
    /// A text with too many characters.
    #[error("the text has more than {limit} characters")]
    TextTooLong {
        /// The most characters of a text.
        limit: usize,
    },
    /// A file with pages, but without a word on them.
    #[error("there is no text in it that can be read, only pictures")]
    NoText,
    /// Front matter that cannot be read.
    #[error("the front matter is not valid {language}{}", at_line(*line))]
    FrontMatter {
        /// The language it should be in.
        language: Cow<'static, str>,
        /// The line of the file where reading stopped, when known.
        line: Option<u64>,
    },
    /// Something that looks like front matter and is not read as such.
    #[error(
        "what looks like front matter does not begin in the first line, or is in no language that is read"
    )]
    FrontMatterPlace,
    /// A front matter block with too many bytes, or without an end.
    #[error("the front matter has no closing line within {limit} bytes")]
    FrontMatterTooLong {
        /// The most bytes of a front matter block.
        limit: usize,
    },
    /// A line of a file of records with too many bytes.
    #[error("the line has more than {limit} bytes")]
    LineTooLong {
        /// The most bytes of a line.
        limit: usize,
    },
    /// A line or a file that is not JSON.
    #[error("{}", bad_json(*line, *column))]
    BadJson {
        /// The line of the file, counted from 1; none where a line alone was to be JSON.
        line: Option<usize>,
        /// Where reading stopped, counted from 1.
        column: usize,
    },
    /// A record that is JSON but not an object.
    #[error("the record is not a JSON object")]
    NotAnObject,
    /// Values inside values inside values.
    #[error("it is nested more than {limit} levels deep")]
    TooNested {
        /// The most levels.
        limit: usize,
    },
    /// A table with too many columns.
    #[error("there are more than {limit} columns")]
    TooManyColumns {
        /// The most columns.
        limit: usize,
    },
    /// A part that cannot be read as what it claims to be.
    #[error("it is damaged: {what}")]
    Damaged {
        /// What cannot be read.
        what: Cow<'static, str>,
    },
    /// A file that opens with a password only.
    #[error("it is encrypted or protected by a password")]
    Encrypted,
    /// A part that its owner does not show.
    #[error("it is hidden")]
    Hidden,
    /// A file that unfolds into more than may be read.
    #[error("it holds more than {limit} parts, levels or bytes inside")]
    TooMuchInside {
        /// The bound that was reached.
        limit: u64,
    },
    /// A query that the settings ask for and the database refuses.
    #[error("the query cannot be run: {why}")]
    Query {
        /// What the database answered.
        why: String,
    },
    /// A file that machines write for machines.
    #[error("it is {what}")]
    Generated {
        /// What gave it away.
        what: Cow<'static, str>,
    },
    /// More records than allowed.
    #[error("there are more than {limit} records; the rest is left out")]
    TooManyRecords {
        /// The most records of a file.
        limit: usize,
    },
    /// An id that cannot be one.
    #[error("the id cannot be used: {why}")]
    BadId {
        /// What is wrong with it.
        why: String,
    },
    /// An id that another document has.
    #[error("the id `{id}` belongs to a document of `{first}`")]
    DuplicateId {
        /// The id.
        id: String,
        /// The source of the document that keeps it.
        first: String,
    },
    /// Ids that another file has too.
    #[error(
        "{count} of its ids belong to documents of `{first}` or other files; here they follow the file's name"
    )]
    SharedIds {
        /// How many.
        count: u64,
        /// One of the sources whose documents keep them.
        first: String,
    },
    /// Ids that do not tell the records of their file apart.
    #[error(
        "its `id` does not tell the records apart, so they are numbered and it is a field: {why}"
    )]
    NumberedRows {
        /// What the first record that shows it has.
        why: String,
    },
    /// Ids that stand twice in a file all the same.
    #[error(
        "{count} of its ids, such as `{id}`, stand twice in it; the second has a number behind it"
    )]
    RepeatedIds {
        /// How many.
        count: u64,
        /// One of them.
        id: String,
    },
    /// Texts beside the records of a file, which belong to none of them.
    #[error("what stands beside its records is not indexed: `{names}`")]
    BesideRecords {
        /// What they are called.
        names: String,
    },
    /// More documents than a corpus may have.
    #[error("there are more than {limit} documents; the rest is left out")]
    TooManyDocuments {
        /// The most documents.
        limit: usize,
    },
    /// More fields than a document may have.
    #[error("there are more than {limit} fields; the rest is left out")]
    TooManyFields {
        /// The most fields.
        limit: usize,
    },
    /// A field's name that is empty or too long, or a field nested too deeply.
    #[error("a field is left out because its name is empty, too long or too deeply nested")]
    BadField,
    /// A value or title that was cut.
    #[error("the value of `{name}` is cut after {limit} characters or list values")]
    Cut {
        /// The field's name.
        name: String,
        /// The most characters or list values.
        limit: usize,
    },
    /// A value that is not of the type that settings ask for.
    #[error("the value of `{name}` is left out because it is no {kind}: `{value}`")]
    WrongType {
        /// The field's name.
        name: String,
        /// What it should be.
        kind: String,
        /// How the value begins.
        value: String,
    },
    /// A field that should name the readers of its document and names nobody.
    #[error("nobody may read it, because `{name}` {fault}")]
    UnusableReaders {
        /// The field's name.
        name: String,
        /// What is wrong with it.
        fault: ReaderFault,
    },
    /// A name inside an archive that is no name below it.
    #[error("its name inside the archive is absolute, leads out of it or holds a NUL")]
    BadName,
    /// The parser broke, or did what no parser does.
    #[error("reading it broke the parser")]
    Crashed,
    /// A file that takes too long.
    #[error("reading it takes more than {seconds} seconds")]
    TooSlow {
        /// The most seconds.
        seconds: u64,
    },
    /// A file that takes too much memory.
    #[error("reading it takes more than {limit} bytes of memory")]
    TooMuchMemory {
        /// The most bytes.
        limit: u64,
    },
    /// A file that only a child behind every wall may read, where not every wall stands.
    #[error("its format is read in a sandbox only, and the sandbox is incomplete: {gaps}")]
    NoSandbox {
        /// The walls that do not stand.
        gaps: String,
    },
    /// Problems beyond those reported one by one.
    #[error("{count} more problems are not listed")]
    More {
        /// How many.
        count: u64,
        /// How many of them are rows or files that were lost.
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
    /// More memory was asked for than a child may have.
    pub(crate) fn out_of_memory() -> Self {
        Self::TooMuchMemory {
            limit: crate::sandbox::MAX_MEMORY_BYTES,
        }
    }

    /// A name for this kind of reason that stays the same from release to release.
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

    /// How many rows or files are lost where something is skipped for this reason: one, or none where it was
    /// left out by its kind or by choice. A bound that cuts off the rest of a file counts once, since nobody
    /// knows how much there was.
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

    /// What the owner of the files can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Root { .. } => "name an existing folder that this user may read",
            Self::Link => "put the file itself into the folder; links are not followed",
            Self::Special => "only regular files are read",
            Self::TooDeep { .. } => "move the folder up, or raise `ingest.max_depth`",
            Self::PathTooLong { .. } => "use shorter names, or raise `ingest.max_path_bytes`",
            Self::TooManyFiles { .. } => "serve a smaller folder, or raise `ingest.max_files`",
            Self::Unreadable { .. } => "check the permissions of the file",
            Self::Gone => "index again",
            Self::TooLarge { .. } => {
                "split the file, or raise `ingest.max_file_bytes`, for records `ingest.max_stream_bytes`"
            }
            Self::IgnoreFileTooLong => {
                "shorten it, or name what is to be left out in `documents.exclude`"
            }
            Self::Unsupported { .. } => "the formats that are read stand in docs/formats.md",
            Self::Binary => "save it as UTF-8 text",
            Self::Empty => "write some text, or remove it",
            Self::TextTooLong { .. } => "split the file, or raise `ingest.max_text_chars`",
            Self::NoText => "run text recognition (OCR) over it, and save it with its text",
            Self::FrontMatter { .. } => {
                "quote values that hold a colon; until then the whole file is indexed as text"
            }
            Self::FrontMatterPlace => {
                "begin the file with `---` or `+++`; until then the whole file is indexed as text"
            }
            Self::FrontMatterTooLong { .. } => {
                "close the block, or raise `ingest.max_front_matter_bytes`; until then the whole file is indexed as text"
            }
            Self::LineTooLong { .. } => "shorten the record, or raise `ingest.max_line_bytes`",
            Self::BadJson { line: None, .. } => "write one JSON object per line",
            Self::BadJson { line: Some(_), .. } => "check the file with a JSON validator",
            Self::NotAnObject => "write every record as a JSON object",
            Self::TooNested { .. } => "flatten the data",
            Self::TooManyColumns { .. } => "turn columns into rows, or raise `ingest.max_columns`",
            Self::Damaged { .. } => "open and save it again with the program that wrote it",
            Self::Hidden => "show it if it is to be found",
            Self::Encrypted => "save it without a password",
            Self::TooMuchInside { .. } => "split it, or raise `ingest.max_unpacked_bytes`",
            Self::Query { .. } => "check `sqlite.table` and `sqlite.query`",
            Self::Generated { .. } => "index what it was made from",
            Self::TooManyRecords { .. } => "split the file, or raise `ingest.max_records`",
            Self::BadId { .. } => {
                "use 1 to 512 bytes without control or invisible characters, not ending in `#p` and a number"
            }
            Self::DuplicateId { .. } => "give every record its own `id`",
            Self::SharedIds { .. } => {
                "give records ids of their own, or call the column other than `id`"
            }
            Self::NumberedRows { .. } => {
                "give every record an `id` that no other has, or call the column otherwise"
            }
            Self::RepeatedIds { .. } => "index again; the file changed while it was read",
            Self::BesideRecords { .. } => "put it into the records, or into a file of its own",
            Self::TooManyDocuments { .. } => {
                "serve a smaller folder, or raise `ingest.max_documents`"
            }
            Self::TooManyFields { .. } => "use fewer fields, or raise `ingest.max_fields`",
            Self::BadField => "use short names and few levels",
            Self::Cut { .. } => "put long text into the document's text",
            Self::WrongType { .. } => "correct the value, or the type in `[fields]`",
            Self::UnusableReaders { fault, .. } => fault.hint(),
            Self::BadName => "pack the archive with names below one folder",
            Self::Crashed => "the file is most likely damaged; save it anew, or remove it",
            Self::TooSlow { .. } => "split the file, or save it in a simpler format",
            Self::TooMuchMemory { .. } => "split the file, or save it in a simpler format",
            Self::NoSandbox { .. } => {
                "run `docent doctor` to see why and mend it, or set `ingest.require_sandbox = false` for files you trust"
            }
            Self::More { .. } => "fix the problems listed and index again",
        }
    }
}

/// Something that was not indexed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedItem {
    /// The path inside the source, parts separated by `/`, safe to print.
    pub path: String,
    /// The line of the file, counted from 1, when only that line was skipped.
    pub line: Option<u64>,
    /// Why.
    pub reason: IngestError,
}

/// Something that was indexed, but not quite as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IngestWarning {
    /// The path inside the source, parts separated by `/`, safe to print.
    pub path: String,
    /// The line of the file, counted from 1, when only that line is meant.
    pub line: Option<u64>,
    /// What.
    pub reason: IngestError,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// One of each kind. A kind that is missing here is found by [`every_kind_is_told`].
    pub(crate) fn all() -> Vec<IngestError> {
        about_files().into_iter().chain(about_ids()).collect()
    }

    fn about_ids() -> Vec<IngestError> {
        let text = || "x".to_owned();
        vec![
            IngestError::BadId { why: text() },
            IngestError::DuplicateId {
                id: text(),
                first: text(),
            },
            IngestError::SharedIds {
                count: 2,
                first: text(),
            },
            IngestError::NumberedRows { why: text() },
            IngestError::RepeatedIds {
                count: 2,
                id: text(),
            },
            IngestError::BesideRecords { names: text() },
        ]
    }

    fn about_files() -> Vec<IngestError> {
        let (cause, text) = (ErrorKind::NotFound, || "x".to_owned());
        let (limit, bytes) = (4, 10);
        vec![
            IngestError::Root { cause },
            IngestError::Link,
            IngestError::Special,
            IngestError::TooDeep { limit },
            IngestError::PathTooLong { limit },
            IngestError::TooManyFiles { limit },
            IngestError::Unreadable { cause },
            IngestError::Gone,
            IngestError::TooLarge { bytes, limit: 9 },
            IngestError::IgnoreFileTooLong,
            IngestError::Unsupported { kind: "pdf".into() },
            IngestError::Binary,
            IngestError::Empty,
            IngestError::TextTooLong { limit },
            IngestError::FrontMatter {
                language: "YAML".into(),
                line: Some(3),
            },
            IngestError::FrontMatter {
                language: "TOML".into(),
                line: None,
            },
            IngestError::FrontMatterPlace,
            IngestError::FrontMatterTooLong { limit },
            IngestError::LineTooLong { limit },
            IngestError::BadJson {
                line: None,
                column: 2,
            },
            IngestError::BadJson {
                line: Some(1),
                column: 2,
            },
            IngestError::NotAnObject,
            IngestError::TooNested { limit },
            IngestError::TooManyColumns { limit },
            IngestError::Damaged { what: "x".into() },
            IngestError::NoText,
            IngestError::Encrypted,
            IngestError::Hidden,
            IngestError::TooMuchInside { limit: bytes },
            IngestError::Query { why: text() },
            IngestError::Generated {
                what: "a lock file".into(),
            },
            IngestError::TooManyRecords { limit },
            IngestError::TooManyDocuments { limit },
            IngestError::TooManyFields { limit },
            IngestError::BadField,
            IngestError::Cut {
                name: "speaker".into(),
                limit,
            },
            IngestError::WrongType {
                name: "year".into(),
                kind: "number".into(),
                value: text(),
            },
            IngestError::UnusableReaders {
                name: "allowed".into(),
                fault: ReaderFault::Empty,
            },
            IngestError::BadName,
            IngestError::Crashed,
            IngestError::TooSlow { seconds: 20 },
            IngestError::TooMuchMemory { limit: bytes },
            IngestError::NoSandbox { gaps: text() },
            IngestError::More { count: 2, lost: 1 },
        ]
    }

    #[test]
    fn every_kind_is_told() {
        // The codes in the source, so that a new kind cannot be forgotten above.
        let source = include_str!("error.rs");
        let codes = source.split("pub fn code").nth(1).unwrap();
        let codes = codes.split("pub fn hint").next().unwrap();
        let known = codes.matches("=> \"").count();
        let mut told: Vec<_> = all().iter().map(IngestError::code).collect();
        told.sort_unstable();
        told.dedup();
        assert_eq!(told.len(), known);
    }

    #[test]
    fn messages_keep_to_the_house_style() {
        for reason in all() {
            for text in [reason.to_string(), reason.hint().to_owned()] {
                assert!(
                    text.starts_with(|c: char| c.is_lowercase() || c.is_ascii_digit()),
                    "{text}"
                );
                assert!(!text.ends_with('.'), "{text}");
            }
        }
        let told = |reason: IngestError, text: &str| assert_eq!(reason.to_string(), text);
        told(
            IngestError::TooLarge {
                bytes: 11,
                limit: 10,
            },
            "it has 11 bytes, the limit is 10",
        );
        told(
            IngestError::FrontMatter {
                language: "YAML".into(),
                line: Some(3),
            },
            "the front matter is not valid YAML, at line 3",
        );
        told(
            IngestError::FrontMatter {
                language: "TOML".into(),
                line: None,
            },
            "the front matter is not valid TOML",
        );
        told(
            IngestError::Unsupported { kind: "pdf".into() },
            "the format `pdf` is not supported",
        );
    }
}
