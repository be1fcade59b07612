//! The interface between files and parsers: what a parser gets and what it returns.

pub(crate) mod document_sink;
pub(crate) mod folder_context;

use crate::error::{IngestError, IngestWarning, SkippedItem};
use crate::limits::Limits;
use crate::options::IngestOptions;
use crate::parser::document_sink::DocumentSink;
use crate::parser::folder_context::FolderContext;
use crate::reader_field::ParsedDocument;

/// The number of bytes at the start of a file from which its format is detected. Most signatures are in the first
/// bytes; pages may begin with comments and mail with long headers, and whether a text is binary shows in this much of
/// it.
pub(crate) const HEAD_BYTES: usize = 8 * 1024;

/// One file in the form in which its parser receives it.
pub(crate) struct ParserInput<'a> {
    /// The id of the file, from which documents derive theirs.
    pub id: &'a str,
    /// The printable path, which becomes the source of each document.
    pub path: &'a str,
    /// The file stem, the fallback for a missing title.
    pub stem: &'a str,
    /// The whole content; empty for a streaming parser.
    pub bytes: &'a [u8],
    /// The SHA-256 checksum of the content, in hexadecimal.
    pub sha256: &'a str,
    /// The limits that the parser must keep.
    pub limits: &'a Limits,
    /// The options that the owner set for single formats.
    pub options: &'a IngestOptions,
    /// What the folder around the file says about it.
    pub folder_context: &'a FolderContext,
    /// The consumer of streamed documents; `None` if the parser returns them all together.
    pub sink: Option<&'a dyn DocumentSink>,
    /// How the ids of records are handled in this pass.
    pub ids: IdPass,
}

/// The result of parsing one file.
#[derive(Debug, Default)]
pub(crate) struct ParsedFile {
    pub documents: Vec<ParsedDocument>,
    pub skipped: Vec<SkippedItem>,
    pub warnings: Vec<IngestWarning>,
    /// Whether its records are numbered, because their ids do not identify them.
    pub numbered: bool,
}

impl ParsedFile {
    /// Puts the warnings of a preceding scan of the same file before all others.
    pub(crate) fn prepend_warnings(&mut self, scan: Result<Self, IngestError>) {
        let warnings = scan.map(|scan| scan.warnings).unwrap_or_default();
        self.warnings.splice(0..0, warnings);
    }
}

/// What a pass over a file of records does about ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IdPass {
    /// First pass: checks ids and builds no documents.
    Scan,
    /// Second pass in which every record keeps its own id.
    Own,
    /// Second pass in which records are numbered; an id column is a field like any other.
    Numbered,
}

impl IdPass {
    pub(crate) fn number(self) -> u64 {
        match self {
            Self::Scan => 0,
            Self::Own => 1,
            Self::Numbered => 2,
        }
    }

    pub(crate) fn from_number(number: u64) -> Option<Self> {
        let all = [Self::Scan, Self::Own, Self::Numbered];
        all.into_iter().find(|pass| pass.number() == number)
    }

    /// The second pass that follows a scan. A failed scan says nothing about the rest of the file, and
    /// numbers fit whatever it holds.
    pub(crate) fn from_scan(scan: &Result<ParsedFile, IngestError>) -> Self {
        match scan {
            Ok(scan) if !scan.numbered => Self::Own,
            Ok(_) | Err(_) => Self::Numbered,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Runs a parser on a file that exists only in the test.
    pub(crate) fn with_input<T>(
        path: &str,
        bytes: &[u8],
        limits: &Limits,
        parse: impl FnOnce(&ParserInput<'_>) -> T,
    ) -> T {
        let (stem, _) = crate::source_path::stem_and_extension(path.as_ref());
        parse(&ParserInput {
            id: path,
            path,
            stem: &stem,
            bytes,
            sha256: "",
            limits,
            options: &IngestOptions::default(),
            folder_context: &FolderContext::NONE,
            sink: None,
            ids: IdPass::Own,
        })
    }

    /// Renders each document as `id|title|text` and each skipped record as `path:line:code`.
    pub(crate) fn shown(parsed: &ParsedFile) -> Vec<String> {
        let documents = parsed
            .documents
            .iter()
            .map(|d| format!("{}|{}|{}", d.id, d.title, d.text.replace('\n', "/")));
        let skipped = parsed
            .skipped
            .iter()
            .map(|s| format!("{}:{}:{}", s.path, s.line.unwrap_or(0), s.reason.code()));
        documents.chain(skipped).collect()
    }
}
