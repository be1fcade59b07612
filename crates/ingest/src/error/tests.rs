//! Unit tests of the errors: every one has a code, a message and a hint.

use super::*;

/// One error of each kind. [`every_kind_is_listed`] finds a kind that is missing here.
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
        IngestError::UnsupportedStorage { method: text() },
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
        IngestError::RepeatedKey {
            name: "speaker".into(),
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
fn every_kind_is_listed() {
    // Count the codes in the source, so that a new kind cannot be forgotten in the list above.
    let source = include_str!("../error.rs");
    let codes = source.split("pub fn code").nth(1).unwrap();
    let codes = codes.split("pub fn lost_items").next().unwrap();
    let known = codes.matches("=> \"").count();
    let mut codes_of_all: Vec<_> = all().iter().map(IngestError::code).collect();
    codes_of_all.sort_unstable();
    codes_of_all.dedup();
    assert_eq!(codes_of_all.len(), known);
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
    let check = |reason: IngestError, text: &str| assert_eq!(reason.to_string(), text);
    check(
        IngestError::TooLarge {
            bytes: 11,
            limit: 10,
        },
        "it has 11 bytes, the limit is 10",
    );
    check(
        IngestError::FrontMatter {
            language: "YAML".into(),
            line: Some(3),
        },
        "the front matter is not valid YAML, at line 3",
    );
    check(
        IngestError::FrontMatter {
            language: "TOML".into(),
            line: None,
        },
        "the front matter is not valid TOML",
    );
    check(
        IngestError::Unsupported { kind: "pdf".into() },
        "the format `pdf` is not supported",
    );
}
