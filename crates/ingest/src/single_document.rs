//! Builds the one document of a file that is a single document, from its text and extracted metadata.

use docent_search::{AllowedReaders, DocId, Document};

use crate::error::bounded_report::{BoundedReport, ReportItem as _};
use crate::error::{IngestError, IngestWarning, SkippedItem};
use crate::fields::metadata::{CompleteText, ExtractedMetadata};
use crate::file_name::{date_from_context, file_id, title_from_name};
use crate::parser::{ParsedFile, ParserInput};
use crate::reader_field::ParsedDocument;

/// A document of a file that may hold several, with warnings about it, and the error if a part of it is lost.
#[derive(Debug)]
pub(crate) struct BuiltDocument {
    pub document: ParsedDocument,
    pub lost: Option<IngestError>,
    pub warnings: Vec<IngestError>,
}

/// Builds a document for the whole file. Without a title of its own it is named after the file.
pub(crate) fn build_document(
    input: &ParserInput<'_>,
    text: String,
    metadata: ExtractedMetadata,
) -> Result<ParsedFile, IngestError> {
    build_document_with_id(input, None, Some(text), metadata)
}

/// The same with an explicit id; without one the id comes from the path. Without a text it is the list of fields.
pub(crate) fn build_document_with_id(
    input: &ParserInput<'_>,
    id: Option<DocId>,
    text: Option<String>,
    metadata: ExtractedMetadata,
) -> Result<ParsedFile, IngestError> {
    let CompleteText { text, lost } = metadata.complete_text(text, input)?;
    if text.trim().is_empty() && metadata.title.is_none() && metadata.fields.is_empty() {
        return Err(IngestError::Empty);
    }
    let mut warnings = BoundedReport::new(input.limits.max_reported);
    for reason in metadata.warnings {
        warnings.push(IngestWarning::new(input.path, None, reason));
    }
    let skipped = lost.map(|reason| SkippedItem::new(input.path, None, reason));
    let document = Document {
        id: id.map_or_else(|| file_id(input), Ok)?,
        title: metadata.title.unwrap_or_else(|| title_from_name(input)),
        text,
        url: metadata.url,
        date: metadata.date.or_else(|| date_from_context(input)),
        fields: metadata.fields,
        source: input.path.to_owned(),
        hash: input.sha256.to_owned(),
        readers: AllowedReaders::Everyone,
    };
    Ok(ParsedFile {
        documents: vec![ParsedDocument {
            document,
            readers: metadata.readers,
        }],
        skipped: skipped.into_iter().collect(),
        warnings: warnings.finish(input.path),
        numbered: false,
    })
}
