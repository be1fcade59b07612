//! Mbox parser: splits a mailbox file into its messages. A message begins after a `From <address> <time>`
//! line at the start of the file or below an empty line, as mail programs have written mailboxes for
//! decades.

use std::borrow::Cow;
use std::collections::HashSet;

use docent_search::DocId;

use super::message;
use crate::clean::clean;
use crate::error::bounded_report::{BoundedReport, ReportItem as _};
use crate::error::{IngestError, IngestWarning, SkippedItem};
use crate::parser::{ParsedFile, ParserInput};
use crate::records::record_ids::is_page_id;
use crate::single_document::BuiltDocument;
use crate::source_path::truncate_id;

/// The longest `Message-ID` that becomes a document's id. Real ones have fewer than a hundred bytes.
const MAX_MESSAGE_ID_BYTES: usize = 250;

pub(super) fn parse(input: &ParserInput<'_>) -> Result<ParsedFile, IngestError> {
    if !input.bytes.starts_with(b"From ") {
        return Err(IngestError::Damaged {
            what: "it is not a mailbox".into(),
        });
    }
    let mut documents = Vec::new();
    let mut skipped = BoundedReport::new(input.limits.max_reported);
    let mut warnings = BoundedReport::new(input.limits.max_reported);
    let mut taken = HashSet::new();
    for (count, (line, raw)) in messages(input.bytes).enumerate() {
        if count >= input.limits.max_records {
            let limit = input.limits.max_records;
            let reason = IngestError::TooManyRecords { limit };
            skipped.push(SkippedItem::new(input.path, Some(line), reason));
            break;
        }
        match parse_message(input, line, raw, &mut taken) {
            Ok(built) => {
                documents.push(built.document);
                if let Some(reason) = built.lost {
                    skipped.push(SkippedItem::new(input.path, Some(line), reason));
                }
                for reason in built.warnings {
                    warnings.push(IngestWarning::new(input.path, Some(line), reason));
                }
            }
            Err(reason) => skipped.push(SkippedItem::new(input.path, Some(line), reason)),
        }
    }
    Ok(ParsedFile {
        documents,
        skipped: skipped.finish(input.path),
        warnings: warnings.finish(input.path),
        numbered: false,
    })
}

fn parse_message(
    input: &ParserInput<'_>,
    line: u64,
    raw: &[u8],
    taken: &mut HashSet<String>,
) -> Result<BuiltDocument, IngestError> {
    // The empty line before the next separator belongs to that separator, not to the message.
    let raw = raw.strip_suffix(b"\n").unwrap_or(raw);
    let raw = unescape_from_lines(raw.strip_suffix(b"\r").unwrap_or(raw));
    let own =
        message::message_id(&raw).filter(|id| is_usable_message_id(id) && taken.insert(id.clone()));
    let id = own.unwrap_or_else(|| truncate_id(format!("{}#L{line}", input.id)));
    let id = DocId::parse(&id).map_err(|error| IngestError::BadId {
        why: error.to_string(),
    })?;
    message::document(input, id, &raw)
}

/// Whether a `Message-ID` can be the document's id as it is. It cannot collide with the id of a file,
/// because an `@` in a file name is percent-encoded in ids.
fn is_usable_message_id(id: &str) -> bool {
    id.len() <= MAX_MESSAGE_ID_BYTES
        && id.contains('@')
        && !id.contains(|c: char| c.is_whitespace() || c.is_control() || "<>\"".contains(c))
        && clean(id) == id
        && !is_page_id(id)
}

/// Iterates over the messages without their separators, each with the line number of its separator.
fn messages(bytes: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let mut at = 0;
    let mut number = 0;
    let mut blank = true;
    // The line number of the current message's separator and the offset behind it.
    let mut current: Option<(u64, usize)> = None;
    let mut lines = bytes.split_inclusive(|&byte| byte == b'\n');
    std::iter::from_fn(move || {
        for line in lines.by_ref() {
            let start = at;
            at += line.len();
            number += 1;
            let separates = blank && is_separator(line.trim_ascii_end());
            blank = line.trim_ascii_end().is_empty();
            if separates && let Some((line, from)) = current.replace((number, at)) {
                return Some((line, bytes.get(from..start).unwrap_or_default()));
            }
        }
        let (line, from) = current.take()?;
        Some((line, bytes.get(from..).unwrap_or_default()))
    })
}

/// Whether a line separates messages: `From `, a time of day and a year. Sentences that begin with "From"
/// rarely contain both.
pub(super) fn is_separator(line: &[u8]) -> bool {
    let Some(rest) = line.strip_prefix(b"From ") else {
        return false;
    };
    let all_digits = |word: &[u8]| word.iter().all(u8::is_ascii_digit);
    let mut words = rest.split(u8::is_ascii_whitespace);
    let year = |word: &[u8]| word.len() == 4 && all_digits(word);
    let clock = |word: &[u8]| match word {
        [a, b, b':', c, d, ..] => all_digits(&[*a, *b, *c, *d]),
        _ => false,
    };
    words.clone().any(clock) && words.any(year)
}

/// Mbox unescaping: writers put a `>` before a text line that begins with `From ` (or with `>From `), and
/// one such `>` is removed here.
fn unescape_from_lines(raw: &[u8]) -> Cow<'_, [u8]> {
    let is_quoted = |line: &[u8]| {
        let quotes = line.iter().take_while(|&&byte| byte == b'>').count();
        quotes > 0
            && line
                .get(quotes..)
                .is_some_and(|rest| rest.starts_with(b"From "))
    };
    let lines = || raw.split_inclusive(|&byte| byte == b'\n');
    if !lines().any(is_quoted) {
        return Cow::Borrowed(raw);
    }
    let plain = |line| {
        if is_quoted(line) {
            line.get(1..).unwrap_or_default()
        } else {
            line
        }
    };
    Cow::Owned(lines().flat_map(plain).copied().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;
    use crate::options::IngestOptions;
    use crate::parser::folder_context::FolderContext;

    const LINE: &str = "From a@b.example Tue Mar 12 10:30:00 2024";

    fn read(text: &str, limits: &Limits) -> Vec<String> {
        let input = ParserInput {
            id: "m.mbox",
            path: "m.mbox",
            stem: "m",
            bytes: text.as_bytes(),
            sha256: "",
            limits,
            options: &IngestOptions::NONE,
            folder_context: &FolderContext::NONE,
            sink: None,
            ids: crate::parser::IdPass::Own,
        };
        let parsed = match parse(&input) {
            Ok(parsed) => parsed,
            Err(reason) => return vec![reason.code().to_owned()],
        };
        let documents = parsed
            .documents
            .iter()
            .map(|d| format!("{}|{}|{}", d.id, d.title, d.text.trim_end()));
        let skipped = parsed
            .skipped
            .iter()
            .map(|s| format!("{}:{}", s.line.unwrap_or(0), s.reason.code()));
        documents.chain(skipped).collect()
    }

    fn check(text: &str, expect: &[&str]) {
        assert_eq!(read(text, &Limits::default()), expect, "{text}");
    }

    #[test]
    fn messages_begin_below_an_empty_line() {
        check(
            &format!(
                "{LINE}\nSubject: A\nMessage-ID: <1@x>\n\none\n{LINE}\n>From two\n>>From three\n\n\
                 {LINE}\r\nSubject: B\r\n\r\nfour\r\n"
            ),
            &[
                &format!("1@x|A|one\n{LINE}\nFrom two\n>From three"),
                "m.mbox#L10|B|four",
            ],
        );
        check("text", &["damaged"]);
        check(&format!("{LINE}\n"), &["1:empty"]);
        check(
            &format!("{LINE}\n\n{LINE}\nSubject: B\n\nx"),
            &["m.mbox#L3|B|x", "1:empty"],
        );
    }

    #[test]
    fn message_ids_must_be_sane_and_new() {
        let message = |id: &str| format!("{LINE}\nSubject: S\nMessage-ID: {id}\n\nx\n\n");
        let long = format!("<{}@x>", "a".repeat(MAX_MESSAGE_ID_BYTES - 1));
        let text: String = ["<1@x>", "<1@x>", "<none>", "<2@x#p2>", &long]
            .iter()
            .map(|id| message(id))
            .collect();
        check(
            &text,
            &[
                "1@x|S|x",
                "m.mbox#L7|S|x",
                "m.mbox#L13|S|x",
                "m.mbox#L19|S|x",
                "m.mbox#L25|S|x",
            ],
        );
        let exact = "a".repeat(MAX_MESSAGE_ID_BYTES - 2);
        check(
            &message(&format!("<{exact}@x>")),
            &[&format!("{exact}@x|S|x")],
        );
    }

    #[test]
    fn a_mailbox_ends_at_its_bound() {
        let limits = Limits {
            max_records: 2,
            ..Limits::default()
        };
        let message = format!("{LINE}\nSubject: S\n\nx\n\n");
        assert_eq!(read(&message.repeat(2), &limits).len(), 2);
        let over = read(&message.repeat(3), &limits);
        assert_eq!(
            over,
            ["m.mbox#L1|S|x", "m.mbox#L6|S|x", "11:too-many-records"]
        );
    }
}
