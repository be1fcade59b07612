//! Validates the responses of a child process. A child that parsed a hostile file may send anything, so
//! nothing in its response may reach beyond the file it was given.

use std::io;

use docent_search::{AllowedReaders, DocId, Document, DocumentValue};

use super::frames::{FrameReader, FrameWriter, invalid_data};
use super::{MAX_ANSWER_BYTES, error_codec};
use crate::error::IngestError;
use crate::error::bounded_report::ReportItem;
use crate::parser::{ParsedFile, ParserInput};
use crate::reader_field::{ParsedDocument, ReaderFault, ReaderField};

/// What a document costs the parent besides the bytes of its frame: structs and spare buffer capacity.
const OWN_WEIGHT: usize = 512;

/// The total weight allowed for one file. It is twice the payload limit, because lengths and tags come with
/// the texts.
const MAX_WEIGHT: usize = 2 * MAX_ANSWER_BYTES;

/// The weight of a document of this many bytes.
pub(super) fn document_weight(bytes: usize) -> usize {
    bytes.saturating_add(OWN_WEIGHT)
}

/// A partial response, and how much of it has arrived. The weight of a streamed file is not bounded, but
/// the number of its records is.
pub(super) struct ResponseValidator<'a> {
    input: &'a ParserInput<'a>,
    is_stream: bool,
    parsed: ParsedFile,
    documents: usize,
    weight: usize,
}

impl<'a> ResponseValidator<'a> {
    pub(super) fn for_input(input: &'a ParserInput<'a>, is_stream: bool) -> Self {
        Self {
            input,
            is_stream,
            parsed: ParsedFile::default(),
            documents: 0,
            weight: 0,
        }
    }

    pub(super) fn document(&mut self, frame: &mut FrameReader) -> io::Result<ParsedDocument> {
        self.weight = self.weight.saturating_add(document_weight(frame.len()));
        self.documents += 1;
        let is_too_large = if self.is_stream {
            self.documents > self.input.limits.max_records
        } else {
            self.weight > MAX_WEIGHT
        };
        if is_too_large {
            return Err(invalid_data("the response is too large"));
        }
        let document = decode_document(frame)?;
        let limits = self.input.limits;
        let longer = |text: &str, most: usize| text.chars().nth(most).is_some();
        let is_invalid = longer(&document.title, limits.max_title_chars)
            || longer(&document.text, limits.max_text_chars)
            || document.fields.len() > limits.max_fields
            || document.hash.len() != 64
            || !document.hash.bytes().all(|byte| byte.is_ascii_hexdigit())
            || !self.is_within_file(&document.source)
            || document.check().is_err();
        if is_invalid {
            return Err(invalid_data("the document does not belong to this file"));
        }
        Ok(document)
    }

    pub(super) fn skipped(&mut self, frame: &mut FrameReader) -> io::Result<()> {
        let problem = self.decode_report_item(frame)?;
        self.parsed.skipped.push(problem);
        self.check_report_length(self.parsed.skipped.len())
    }

    pub(super) fn warning(&mut self, frame: &mut FrameReader) -> io::Result<()> {
        let problem = self.decode_report_item(frame)?;
        self.parsed.warnings.push(problem);
        self.check_report_length(self.parsed.warnings.len())
    }

    pub(super) fn finish(self, numbered: bool) -> ParsedFile {
        ParsedFile {
            numbered,
            ..self.parsed
        }
    }

    fn decode_report_item<T: ReportItem>(&self, frame: &mut FrameReader) -> io::Result<T> {
        let (path, line) = (frame.text()?, frame.number()?.checked_sub(1));
        let reason = error_codec::decode(frame)?;
        frame.end()?;
        if !self.is_within_file(&path) {
            return Err(invalid_data("the report item belongs to another file"));
        }
        Ok(T::new(&path, line, reason))
    }

    /// Whether a path is the file itself or something inside it, such as a member of an archive or a table
    /// of a database.
    fn is_within_file(&self, path: &str) -> bool {
        let inside = path.strip_prefix(self.input.path);
        inside.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '#']))
            && !path.contains(char::is_control)
    }

    /// Reports are truncated to a maximum, with one more line that says so and one about the file's ids.
    fn check_report_length(&self, count: usize) -> io::Result<()> {
        if count > self.input.limits.max_reported.saturating_add(2) {
            return Err(invalid_data("too many report items"));
        }
        Ok(())
    }
}

/// Encodes a document into a frame.
pub(super) fn encode_document(frame: FrameWriter, document: &ParsedDocument) -> FrameWriter {
    let frame = encode_readers(frame, &document.readers)
        .text(document.id.as_str())
        .text(&document.title)
        .text(&document.text)
        .optional_text(document.url.as_deref())
        .optional_text(document.date.as_deref())
        .text(&document.source)
        .text(&document.hash)
        .number(document.fields.len() as u64);
    document.fields.iter().fold(frame, |frame, (name, value)| {
        encode_value(frame.text(name), value)
    })
}

fn encode_readers(frame: FrameWriter, readers: &ReaderField) -> FrameWriter {
    match readers {
        ReaderField::Absent => frame.number(0),
        ReaderField::Malformed(fault) => frame.number(1).text(fault.code()),
        ReaderField::Present(value) => encode_value(frame.number(2), value),
    }
}

/// Decodes the reader field. Unknown tags are an error, because treating them as absent would let everyone
/// read.
fn decode_readers(frame: &mut FrameReader) -> io::Result<ReaderField> {
    Ok(match frame.number()? {
        0 => ReaderField::Absent,
        1 => {
            let fault = ReaderFault::from_code(&frame.text()?);
            ReaderField::Malformed(fault.ok_or_else(|| invalid_data("unknown reader fault"))?)
        }
        2 => ReaderField::Present(decode_value(frame)?),
        _ => return Err(invalid_data("unknown reader field tag")),
    })
}

fn encode_value(frame: FrameWriter, value: &DocumentValue) -> FrameWriter {
    match value {
        DocumentValue::Text(text) => frame.number(0).text(text),
        DocumentValue::Number(number) => frame.number(1).number(number.to_bits()),
        DocumentValue::Bool(flag) => frame.number(2).number(u64::from(*flag)),
        DocumentValue::Date(day) => frame.number(3).text(day),
        DocumentValue::List(items) => items
            .iter()
            .fold(frame.number(4).number(items.len() as u64), |frame, item| {
                frame.text(item)
            }),
    }
}

fn decode_document(frame: &mut FrameReader) -> io::Result<ParsedDocument> {
    let readers = decode_readers(frame)?;
    let id =
        DocId::parse(&frame.text()?).map_err(|_| invalid_data("the document id is not valid"))?;
    let mut document = Document {
        id,
        title: frame.text()?,
        text: frame.text()?,
        url: frame.optional_text()?,
        date: frame.optional_text()?,
        source: frame.text()?,
        hash: frame.text()?,
        fields: Vec::new(),
        readers: AllowedReaders::Everyone,
    };
    // The count needs no check: it only bounds the loop, and the frame ends long before a large count is
    // reached.
    for _ in 0..frame.number()? {
        document.fields.push((frame.text()?, decode_value(frame)?));
    }
    frame.end()?;
    Ok(ParsedDocument { document, readers })
}

fn decode_value(frame: &mut FrameReader) -> io::Result<DocumentValue> {
    Ok(match frame.number()? {
        0 => DocumentValue::Text(frame.text()?),
        1 => DocumentValue::Number(finite(f64::from_bits(frame.number()?))?),
        2 => DocumentValue::Bool(frame.number()? == 1),
        3 => DocumentValue::Date(frame.text()?),
        4 => {
            let mut items = Vec::new();
            for _ in 0..frame.number()? {
                items.push(frame.text()?);
            }
            DocumentValue::List(items)
        }
        _ => return Err(invalid_data("unknown value tag")),
    })
}

fn finite(number: f64) -> io::Result<f64> {
    if number.is_finite() {
        Ok(number)
    } else {
        Err(invalid_data("the number is not finite"))
    }
}

/// Encodes a skipped item or a warning into a frame.
pub(super) fn encode_report_item(
    frame: FrameWriter,
    path: &str,
    line: Option<u64>,
    reason: &IngestError,
) -> FrameWriter {
    let line = line.map_or(0, |line| line.saturating_add(1));
    error_codec::encode(frame.text(path).number(line), reason)
}

#[cfg(test)]
mod tests {
    use super::super::frames::{DOCUMENT, SKIPPED};
    use super::*;
    use crate::SkippedItem;
    use crate::digest::sha256;
    use crate::limits::Limits;
    use crate::options::IngestOptions;
    use crate::parser::folder_context::FolderContext;

    fn document() -> ParsedDocument {
        let document = Document {
            id: DocId::parse("a/b").unwrap(),
            title: "T".into(),
            text: "text".into(),
            url: Some("https://a.example/".into()),
            date: None,
            fields: vec![
                ("t".into(), DocumentValue::Text("x".into())),
                ("n".into(), DocumentValue::Number(-0.5)),
                ("b".into(), DocumentValue::Bool(true)),
                ("d".into(), DocumentValue::Date("2024-03-12".into())),
                (
                    "l".into(),
                    DocumentValue::List(vec![String::new(), "y".into()]),
                ),
            ],
            source: "a.zip/b.md".into(),
            hash: sha256(b""),
            readers: AllowedReaders::Everyone,
        };
        ParsedDocument {
            document,
            readers: ReaderField::Malformed(ReaderFault::Empty),
        }
    }

    /// Validates one frame as the response for `a.zip`.
    fn answer(
        frame: FrameWriter,
        take: impl Fn(&mut ResponseValidator<'_>, &mut FrameReader) -> io::Result<()>,
    ) -> io::Result<ParsedFile> {
        let limits = Limits {
            max_title_chars: 3,
            max_text_chars: 4,
            max_fields: 5,
            ..Limits::default()
        };
        let input = ParserInput {
            id: "a.zip",
            path: "a.zip",
            stem: "a",
            bytes: b"",
            sha256: "",
            limits: &limits,
            options: &IngestOptions::NONE,
            folder_context: &FolderContext::NONE,
            sink: None,
            ids: crate::parser::IdPass::Own,
        };
        let mut bytes = Vec::new();
        frame.send(&mut bytes)?;
        let mut frame = FrameReader::from(&mut bytes.as_slice())?;
        let mut answer = ResponseValidator::for_input(&input, false);
        take(&mut answer, &mut frame)?;
        Ok(answer.finish(false))
    }

    #[test]
    fn documents_come_back_as_they_were() {
        let come = |answer: &mut ResponseValidator<'_>, frame: &mut FrameReader| {
            assert_eq!(answer.document(frame)?, document());
            Ok(())
        };
        answer(
            encode_document(FrameWriter::new(DOCUMENT), &document()),
            come,
        )
        .unwrap();
    }

    #[test]
    fn documents_beyond_the_file_or_its_bounds_are_refused() {
        let changes: [fn(&mut Document); 9] = [
            |d| d.title = "1234".into(),
            |d| d.text = "12345".into(),
            |d| d.fields.push(("x".into(), DocumentValue::Bool(false))),
            |d| d.fields[1].1 = DocumentValue::Number(f64::NAN),
            |d| d.source = "b.md".into(),
            |d| d.source = "a.zipper".into(),
            |d| d.source = "a.zip/\u{1b}[2J".into(),
            |d| d.hash = "0".repeat(63),
            |d| d.url = Some("x".repeat(9_000)),
        ];
        for (number, change) in changes.iter().enumerate() {
            let mut document = document();
            change(&mut document.document);
            let found = answer(
                encode_document(FrameWriter::new(DOCUMENT), &document),
                |answer, frame| answer.document(frame).map(drop),
            );
            assert!(found.is_err(), "change {number}");
        }
    }

    #[test]
    fn problems_of_other_files_are_refused() {
        let try_path = |path: &str| {
            let frame = encode_report_item(
                FrameWriter::new(SKIPPED),
                path,
                Some(0),
                &IngestError::Empty,
            );
            answer(frame, |answer, frame| answer.skipped(frame))
        };
        let found = try_path("a.zip/c").unwrap();
        assert_eq!(
            found.skipped,
            [SkippedItem::new("a.zip/c", Some(0), IngestError::Empty)]
        );
        assert!(try_path("b.md").is_err());
    }
}
