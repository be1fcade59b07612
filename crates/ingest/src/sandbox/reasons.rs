//! A [`Reason`] into a text of a frame, and back.

use std::io;

use super::wire::{Frame, Received, invalid_data};
use crate::clean::{clean_line, truncate_chars};
use crate::error::Reason;

/// The most characters of a text inside a reason: the longest id or field name with room.
const MAX_CHARS: usize = 1_024;

pub(super) fn encode(frame: Frame, reason: &Reason) -> Frame {
    // A reason is plain data, which always becomes JSON; were it not so, the child has broken.
    let text = serde_json::to_string(reason).unwrap_or_else(|_| r#""Crashed""#.to_owned());
    frame.text(&text)
}

pub(super) fn decode(frame: &mut Received) -> io::Result<Reason> {
    let reason =
        serde_json::from_str(&frame.text()?).map_err(|_| invalid_data("no such reason"))?;
    Ok(sanitize(reason))
}

/// Words of a child go into reports, so that they are cleaned and cut here once more.
fn sanitize(mut reason: Reason) -> Reason {
    let clean = |text: &str| {
        let mut words = clean_line(text);
        truncate_chars(&mut words, MAX_CHARS);
        words
    };
    match &mut reason {
        Reason::Unsupported { kind: text }
        | Reason::BadId { why: text }
        | Reason::Query { why: text }
        | Reason::NumberedRows { why: text }
        | Reason::RepeatedIds { id: text, .. }
        | Reason::NoSandbox { gaps: text }
        | Reason::SharedIds { first: text, .. }
        | Reason::UnusableReaders { name: text, .. }
        | Reason::Cut { name: text, .. } => *text = clean(text),
        Reason::WrongType { name, kind, value } => {
            (*name, *kind, *value) = (clean(name), clean(kind), clean(value));
        }
        Reason::DuplicateId { id, first } => (*id, *first) = (clean(id), clean(first)),
        Reason::FrontMatter { language: text, .. }
        | Reason::Generated { what: text }
        | Reason::Damaged { what: text } => {
            *text = clean(text).into();
        }
        _ => {}
    }
    reason
}

#[cfg(test)]
mod tests {
    use super::super::wire::FAILED;
    use super::*;
    use crate::error::tests::all;

    fn there_and_back(reason: &Reason) -> io::Result<Reason> {
        let mut bytes = Vec::new();
        encode(Frame::new(FAILED), reason).send(&mut bytes)?;
        let mut frame = Received::from(&mut bytes.as_slice())?;
        let found = decode(&mut frame)?;
        frame.end()?;
        Ok(found)
    }

    #[test]
    fn every_reason_comes_back() {
        for reason in all() {
            let found = there_and_back(&reason).unwrap();
            assert_eq!(found.code(), reason.code());
            // What the system said stays behind: no parser opens anything.
            if !matches!(reason, Reason::Root { .. } | Reason::Unreadable { .. }) {
                assert_eq!(found, reason);
            }
        }
    }

    #[test]
    fn words_of_a_child_are_cleaned_and_cut() {
        let kind = format!("a\u{202E}\n{}", "x".repeat(2_000));
        let found = there_and_back(&Reason::Unsupported { kind }).unwrap();
        let expect = format!("a {}", "x".repeat(MAX_CHARS - 2));
        assert_eq!(found, Reason::Unsupported { kind: expect });
    }

    #[test]
    fn what_is_no_reason_is_refused() {
        for text in [
            "",
            "\"NoSuch\"",
            r#"{"TooDeep":{}}"#,
            r#"{"TooDeep":{"limit":-1}}"#,
        ] {
            let mut bytes = Vec::new();
            Frame::new(FAILED).text(text).send(&mut bytes).unwrap();
            let mut frame = Received::from(&mut bytes.as_slice()).unwrap();
            assert!(decode(&mut frame).is_err());
        }
    }
}
