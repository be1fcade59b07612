//! The text of a file that is one document, and what is known about it, into that document.

use docent_search::{AllowedReaders, DocId, Document};

use crate::bounded_report::{BoundedReport, ReportItem as _};
use crate::error::{IngestError, IngestWarning};
use crate::format::{ParsedFile, ParserInput};
use crate::metadata::ExtractedMetadata;
use crate::reader_field::ParsedDocument;
use crate::text::{date_from_context, file_id, title_from_name};

/// The document of a whole file, with a title from its name where it has none of its own.
pub(crate) fn build_document(
    input: &ParserInput<'_>,
    text: String,
    facts: ExtractedMetadata,
) -> Result<ParsedFile, IngestError> {
    build_document_with_id(input, None, text, facts)
}

/// The same for a file that may have an id of its own.
pub(crate) fn build_document_with_id(
    input: &ParserInput<'_>,
    id: Option<DocId>,
    text: String,
    facts: ExtractedMetadata,
) -> Result<ParsedFile, IngestError> {
    let limit = input.limits.max_text_chars;
    if text.chars().nth(limit).is_some() {
        return Err(IngestError::TextTooLong { limit });
    }
    if text.trim().is_empty() && facts.title.is_none() && facts.fields.is_empty() {
        return Err(IngestError::Empty);
    }
    let mut warnings = BoundedReport::new(input.limits.max_reported);
    for reason in facts.warnings {
        warnings.push(IngestWarning::new(input.path, None, reason));
    }
    let document = Document {
        id: id.map_or_else(|| file_id(input), Ok)?,
        title: facts.title.unwrap_or_else(|| title_from_name(input)),
        text,
        url: facts.url,
        date: facts.date.or_else(|| date_from_context(input)),
        fields: facts.fields,
        source: input.path.to_owned(),
        hash: input.sha256.to_owned(),
        readers: AllowedReaders::Everyone,
    };
    Ok(ParsedFile {
        documents: vec![ParsedDocument {
            document,
            readers: facts.readers,
        }],
        skipped: Vec::new(),
        warnings: warnings.finish(input.path),
        numbered: false,
    })
}
