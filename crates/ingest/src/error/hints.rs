//! Hints of errors: what the owner of the files can do about each.

use super::IngestError;

impl IngestError {
    /// The remedy: what the owner of the files can do about it.
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
            Self::Unsupported { .. } => "docs/formats.md lists the supported formats",
            Self::UnsupportedStorage { .. } => {
                "pack the archive again with deflate, without sparse files"
            }
            Self::Binary => "save it as UTF-8 text",
            Self::Empty => "write some text, or remove it",
            Self::TextTooLong { .. } => "split the file, or raise `ingest.max_text_chars`",
            Self::NoText => "run text recognition (OCR) on it, and save it with a text layer",
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
            Self::Hidden => "unhide it to have it indexed",
            Self::Encrypted => "save it without a password",
            Self::TooMuchInside { .. } => "split it, or raise `ingest.max_unpacked_bytes`",
            Self::Query { .. } => "check `sqlite.table` and `sqlite.query`",
            Self::Generated { .. } => "index the source that it was generated from",
            Self::TooManyRecords { .. } => "split the file, or raise `ingest.max_records`",
            Self::BadId { .. } => {
                "use 1 to 512 bytes without control or invisible characters, not ending in `#p` and a number"
            }
            Self::DuplicateId { .. } => "give every record its own `id`",
            Self::SharedIds { .. } => {
                "give records ids that are unique across files, or rename the `id` column"
            }
            Self::NumberedRows { .. } => "give every record a unique `id`, or rename the column",
            Self::RepeatedIds { .. } => "index again; the file changed while it was read",
            Self::BesideRecords { .. } => "put it into the records, or into a file of its own",
            Self::TooManyDocuments { .. } => {
                "serve a smaller folder, or raise `ingest.max_documents`"
            }
            Self::TooManyFields { .. } => "use fewer fields, or raise `ingest.max_fields`",
            Self::BadField => "use short names and few levels",
            Self::Cut { .. } => "put long text into the document's text",
            Self::RepeatedKey { .. } => "write the key once, with a list as its value",
            Self::WrongType { .. } => "correct the value, or the type in `[fields]`",
            Self::UnusableReaders { fault, .. } => fault.hint(),
            Self::BadName => "pack the archive with names below one folder",
            Self::Crashed => "the file is most likely corrupt; save it again, or remove it",
            Self::TooSlow { .. } => "split the file, or save it in a simpler format",
            Self::TooMuchMemory { .. } => "split the file, or save it in a simpler format",
            Self::NoSandbox { .. } => {
                "run `docent doctor` to find the missing sandbox layer, or set `ingest.require_sandbox = false` for files you trust"
            }
            Self::More { .. } => "fix the problems listed and index again",
        }
    }
}
