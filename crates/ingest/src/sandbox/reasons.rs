//! A [`Reason`] into numbers and texts of a frame, and back. Every variant is named, so that a new one
//! cannot be forgotten here.

use std::io::{self, ErrorKind};

use super::wire::{Frame, Received, wrong};
use crate::clean::{clean_line, cut};
use crate::error::Reason;

/// The most characters of a text inside a reason: the longest id or field name with room.
const MAX_CHARS: usize = 1_024;

/// Languages of front matter, as reasons name them.
const LANGUAGES: [&str; 2] = ["YAML", "TOML"];

pub(super) fn put(frame: Frame, reason: &Reason) -> Frame {
    let frame = frame.text(reason.code());
    match reason {
        Reason::Link
        | Reason::Special
        | Reason::Gone
        | Reason::Binary
        | Reason::Empty
        | Reason::NotAnObject
        | Reason::BadField
        | Reason::BadName
        | Reason::Encrypted
        | Reason::Crashed => frame,
        // No parser opens anything, so that what the system said is never the point.
        Reason::Root { cause: _ } | Reason::Unreadable { cause: _ } => frame,
        Reason::TooDeep { limit }
        | Reason::PathTooLong { limit }
        | Reason::TooManyFiles { limit }
        | Reason::TextTooLong { limit }
        | Reason::FrontMatterTooLong { limit }
        | Reason::LineTooLong { limit }
        | Reason::TooManyRecords { limit }
        | Reason::TooManyDocuments { limit }
        | Reason::TooManyFields { limit }
        | Reason::BadJson { column: limit } => frame.number(*limit as u64),
        Reason::TooMuchInside { limit }
        | Reason::TooMuchMemory { limit }
        | Reason::TooSlow { seconds: limit }
        | Reason::More { count: limit } => frame.number(*limit),
        Reason::TooLarge { bytes, limit } => frame.number(*bytes).number(*limit),
        Reason::Unsupported { kind: text }
        | Reason::BadId { why: text }
        | Reason::Damaged { what: text } => frame.text(text),
        Reason::DuplicateId { id, first } => frame.text(id).text(first),
        Reason::Cut { name, limit } => frame.text(name).number(*limit as u64),
        Reason::FrontMatter { language, line } => frame
            .text(language)
            .number(line.map_or(0, |line| line.saturating_add(1))),
    }
}

pub(super) fn get(frame: &mut Received) -> io::Result<Reason> {
    let code = frame.text()?;
    Ok(match code.as_str() {
        "link" => Reason::Link,
        "special" => Reason::Special,
        "gone" => Reason::Gone,
        "binary" => Reason::Binary,
        "empty" => Reason::Empty,
        "not-an-object" => Reason::NotAnObject,
        "bad-field" => Reason::BadField,
        "bad-name" => Reason::BadName,
        "encrypted" => Reason::Encrypted,
        "crashed" => Reason::Crashed,
        "root" | "unreadable" => Reason::Unreadable {
            cause: ErrorKind::Other,
        },
        "too-large" => Reason::TooLarge {
            bytes: frame.number()?,
            limit: frame.number()?,
        },
        "unsupported" => Reason::Unsupported {
            kind: words(frame)?,
        },
        "damaged" => Reason::Damaged {
            what: words(frame)?,
        },
        "bad-id" => Reason::BadId { why: words(frame)? },
        "duplicate-id" => Reason::DuplicateId {
            id: words(frame)?,
            first: words(frame)?,
        },
        "cut" => Reason::Cut {
            name: words(frame)?,
            limit: frame.size()?,
        },
        "bad-front-matter" => {
            let language = frame.text()?;
            let known = LANGUAGES.into_iter().find(|known| *known == language);
            Reason::FrontMatter {
                language: known.ok_or_else(|| wrong("no such language"))?,
                line: frame.number()?.checked_sub(1),
            }
        }
        code => numbered(code, frame.number()?)?,
    })
}

/// Reasons that say nothing but one number.
fn numbered(code: &str, number: u64) -> io::Result<Reason> {
    let limit = usize::try_from(number).map_err(|_| wrong("the limit is too large"))?;
    Ok(match code {
        "too-deep" => Reason::TooDeep { limit },
        "path-too-long" => Reason::PathTooLong { limit },
        "too-many-files" => Reason::TooManyFiles { limit },
        "text-too-long" => Reason::TextTooLong { limit },
        "front-matter-too-long" => Reason::FrontMatterTooLong { limit },
        "line-too-long" => Reason::LineTooLong { limit },
        "too-many-records" => Reason::TooManyRecords { limit },
        "too-many-documents" => Reason::TooManyDocuments { limit },
        "too-many-fields" => Reason::TooManyFields { limit },
        "bad-json" => Reason::BadJson { column: limit },
        "too-much-inside" => Reason::TooMuchInside { limit: number },
        "too-much-memory" => Reason::TooMuchMemory { limit: number },
        "too-slow" => Reason::TooSlow { seconds: number },
        "more" => Reason::More { count: number },
        _ => return Err(wrong("no such reason")),
    })
}

/// Words of a child go into reports, so that they are cleaned and cut here once more.
fn words(frame: &mut Received) -> io::Result<String> {
    let mut words = clean_line(&frame.text()?);
    cut(&mut words, MAX_CHARS);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::super::wire::FAILED;
    use super::*;

    fn there_and_back(reason: &Reason) -> io::Result<Reason> {
        let mut bytes = Vec::new();
        put(Frame::new(FAILED), reason).send(&mut bytes)?;
        let mut frame = Received::from(&mut bytes.as_slice())?;
        let found = get(&mut frame)?;
        frame.end()?;
        Ok(found)
    }

    #[test]
    fn every_reason_comes_back() {
        let reasons = [
            Reason::Link,
            Reason::Special,
            Reason::Gone,
            Reason::Binary,
            Reason::Empty,
            Reason::NotAnObject,
            Reason::BadField,
            Reason::BadName,
            Reason::Damaged { what: "zip".into() },
            Reason::Encrypted,
            Reason::Crashed,
            Reason::Unreadable {
                cause: ErrorKind::Other,
            },
            Reason::TooDeep { limit: 1 },
            Reason::PathTooLong { limit: 2 },
            Reason::TooManyFiles { limit: 3 },
            Reason::TextTooLong { limit: 4 },
            Reason::FrontMatterTooLong { limit: 5 },
            Reason::LineTooLong { limit: 6 },
            Reason::TooManyRecords { limit: 7 },
            Reason::TooManyDocuments { limit: 8 },
            Reason::TooManyFields { limit: 9 },
            Reason::BadJson { column: 10 },
            Reason::TooMuchInside { limit: 11 },
            Reason::TooMuchMemory { limit: 12 },
            Reason::TooSlow { seconds: 13 },
            Reason::More { count: 14 },
            Reason::TooLarge { bytes: 2, limit: 1 },
            Reason::Unsupported { kind: "x".into() },
            Reason::BadId {
                why: "it is".into(),
            },
            Reason::DuplicateId {
                id: "a".into(),
                first: "b".into(),
            },
            Reason::Cut {
                name: "n".into(),
                limit: 3,
            },
            Reason::FrontMatter {
                language: "YAML",
                line: Some(3),
            },
            Reason::FrontMatter {
                language: "TOML",
                line: None,
            },
        ];
        for reason in reasons {
            assert_eq!(there_and_back(&reason).unwrap(), reason);
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
        for frame in [
            Frame::new(FAILED).text("no-such").number(0),
            Frame::new(FAILED)
                .text("bad-front-matter")
                .text("XML")
                .number(0),
            Frame::new(FAILED).text("too-deep"),
        ] {
            let mut bytes = Vec::new();
            frame.send(&mut bytes).unwrap();
            let mut frame = Received::from(&mut bytes.as_slice()).unwrap();
            assert!(get(&mut frame).is_err());
        }
    }
}
