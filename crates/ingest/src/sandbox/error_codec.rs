//! Encodes an [`IngestError`] as text in a frame, and decodes it.

use std::io;

use super::frames::{FrameReader, FrameWriter, invalid_data};
use crate::clean::{clean_line, truncate_chars};
use crate::error::IngestError;

/// The longest text inside an error that is accepted: the longest id or field name, with room to spare.
const MAX_CHARS: usize = 1_024;

pub(super) fn encode(frame: FrameWriter, reason: &IngestError) -> FrameWriter {
    // Errors are plain data and always serialize; if one does not, the child is broken.
    let text = serde_json::to_string(reason).unwrap_or_else(|_| r#""Crashed""#.to_owned());
    frame.text(&text)
}

pub(super) fn decode(frame: &mut FrameReader) -> io::Result<IngestError> {
    let reason =
        serde_json::from_str(&frame.text()?).map_err(|_| invalid_data("unknown error variant"))?;
    Ok(sanitize(reason))
}

/// Sanitizes texts from a child, which end up in reports: control characters are removed and the length is
/// capped.
fn sanitize(mut reason: IngestError) -> IngestError {
    let clean = |text: &str| {
        let mut words = clean_line(text);
        truncate_chars(&mut words, MAX_CHARS);
        words
    };
    match &mut reason {
        IngestError::Unsupported { kind: text }
        | IngestError::UnsupportedStorage { method: text }
        | IngestError::BesideRecords { names: text }
        | IngestError::BadId { why: text }
        | IngestError::Query { why: text }
        | IngestError::NumberedRows { why: text }
        | IngestError::RepeatedIds { id: text, .. }
        | IngestError::NoSandbox { gaps: text }
        | IngestError::SharedIds { first: text, .. }
        | IngestError::UnusableReaders { name: text, .. }
        | IngestError::RepeatedKey { name: text }
        | IngestError::Cut { name: text, .. } => *text = clean(text),
        IngestError::WrongType { name, kind, value } => {
            (*name, *kind, *value) = (clean(name), clean(kind), clean(value));
        }
        IngestError::DuplicateId { id, first } => (*id, *first) = (clean(id), clean(first)),
        IngestError::FrontMatter { language: text, .. }
        | IngestError::Generated { what: text }
        | IngestError::Damaged { what: text } => {
            *text = clean(text).into();
        }
        _ => {}
    }
    reason
}

#[cfg(test)]
mod tests {
    use super::super::frames::FAILED;
    use super::*;
    use crate::error::tests::all;

    fn there_and_back(reason: &IngestError) -> io::Result<IngestError> {
        let mut bytes = Vec::new();
        encode(FrameWriter::new(FAILED), reason).send(&mut bytes)?;
        let mut frame = FrameReader::from(&mut bytes.as_slice())?;
        let found = decode(&mut frame)?;
        frame.end()?;
        Ok(found)
    }

    #[test]
    fn every_reason_comes_back() {
        for reason in all() {
            let found = there_and_back(&reason).unwrap();
            assert_eq!(found.code(), reason.code());
            // Operating system errors are not transmitted, since no parser opens anything.
            if !matches!(
                reason,
                IngestError::Root { .. } | IngestError::Unreadable { .. }
            ) {
                assert_eq!(found, reason);
            }
        }
    }

    #[test]
    fn words_of_a_child_are_cleaned_and_cut() {
        let kind = format!("a\u{202E}\n{}", "x".repeat(2_000));
        let found = there_and_back(&IngestError::Unsupported { kind }).unwrap();
        let expect = format!("a {}", "x".repeat(MAX_CHARS - 2));
        assert_eq!(found, IngestError::Unsupported { kind: expect });
    }

    #[test]
    fn malformed_errors_are_rejected() {
        for text in [
            "",
            "\"NoSuch\"",
            r#"{"TooDeep":{}}"#,
            r#"{"TooDeep":{"limit":-1}}"#,
        ] {
            let mut bytes = Vec::new();
            FrameWriter::new(FAILED)
                .text(text)
                .send(&mut bytes)
                .unwrap();
            let mut frame = FrameReader::from(&mut bytes.as_slice()).unwrap();
            assert!(decode(&mut frame).is_err());
        }
    }
}
