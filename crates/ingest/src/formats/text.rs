//! Plain text parser: one file becomes one document.

use docent_search::{AllowedReaders, Document};

use crate::decoding::decode_clean;
use crate::error::IngestError;
use crate::fields::front_matter;
use crate::file_name::{date_from_context, file_id, title_from_name};
use crate::formats::file_format::{FileFormat, no_signature};
use crate::parser::{ParsedFile, ParserInput};
use crate::reader_field::{ParsedDocument, ReaderKeys};

pub(crate) const FORMAT: FileFormat = FileFormat {
    name: "text",
    kind: "text",
    extensions: &[
        "txt", "text", "log", "rst", "adoc", "asciidoc", "org", "tex", "",
    ],
    has_signature: no_signature,
    parse,
    stream: None,
    is_trusted: true,
    kind_inside: None,
    packages: &[],
};

fn parse(input: &ParserInput<'_>) -> Result<ParsedFile, IngestError> {
    let text = decode_clean(input.bytes, input.limits.max_text_chars)?;
    if text.trim().is_empty() {
        return Err(IngestError::Empty);
    }
    let readers = front_matter::unread(&text, &ReaderKeys::for_input(input));
    let document = Document {
        id: file_id(input)?,
        title: title_from_name(input),
        text,
        url: None,
        date: date_from_context(input),
        fields: Vec::new(),
        source: input.path.to_owned(),
        hash: input.sha256.to_owned(),
        readers: AllowedReaders::Everyone,
    };
    Ok(ParsedFile {
        documents: vec![ParsedDocument { document, readers }],
        ..ParsedFile::default()
    })
}
