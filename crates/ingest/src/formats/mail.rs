//! E-mail parsers: an `.eml` message becomes one document, an mbox mailbox one document per message. The
//! subject becomes the title; sender, recipients and attachment names become fields; the text is the
//! plain-text part, or the text of the HTML part where there is no plain one.

mod mailbox;
mod message;

use crate::error::bounded_report::{BoundedReport, ReportItem as _};
use crate::error::{IngestError, SkippedItem};
use crate::file_name::file_id;
use crate::formats::file_format::FileFormat;
use crate::parser::{ParsedFile, ParserInput};

/// A single RFC 5322 message, usually in a file ending in `.eml`.
pub(crate) const EML: FileFormat = FileFormat {
    name: "eml",
    kind: "eml",
    extensions: &["eml"],
    has_signature: looks_like_message,
    parse,
    stream: None,
    is_trusted: false,
    kind_inside: None,
    packages: &[],
};

/// An mbox mailbox with any number of messages in one file.
pub(crate) const MBOX: FileFormat = FileFormat {
    name: "mbox",
    kind: "mbox",
    extensions: &["mbox"],
    has_signature: looks_like_mailbox,
    parse: mailbox::parse,
    stream: None,
    is_trusted: false,
    kind_inside: None,
    packages: &[],
};

fn parse(input: &ParserInput<'_>) -> Result<ParsedFile, IngestError> {
    let id = file_id(input)?;
    let built = message::document(input, id, input.bytes)?;
    let lost = built.lost.into_iter();
    let skipped = lost.map(|reason| SkippedItem::new(input.path, None, reason));
    let mut warnings = BoundedReport::new(input.limits.max_reported);
    for reason in built.warnings {
        warnings.push(crate::IngestWarning::new(input.path, None, reason));
    }
    Ok(ParsedFile {
        documents: vec![built.document],
        skipped: skipped.collect(),
        warnings: warnings.finish(input.path),
        numbered: false,
    })
}

/// Content sniffing for a message: a block of header lines with a sender, a date and at least one header
/// that only mail software writes. Without the last condition a memo that opens with `From:`, `Date:` and
/// `Subject:` would be taken for a mail instead of the plain text it is.
fn looks_like_message(head: &[u8]) -> bool {
    const MACHINE_HEADERS: &[&[u8]] =
        &[b"received", b"message-id", b"mime-version", b"return-path"];
    let (mut from, mut date, mut by_software) = (false, false, false);
    for line in whole_lines(head) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            break;
        }
        if line.starts_with(b" ") || line.starts_with(b"\t") {
            continue;
        }
        let Some(name) = header_name(line) else {
            return false;
        };
        from |= name.eq_ignore_ascii_case(b"from");
        date |= name.eq_ignore_ascii_case(b"date");
        by_software |= MACHINE_HEADERS
            .iter()
            .any(|known| name.eq_ignore_ascii_case(known));
    }
    from && date && by_software
}

/// Content sniffing for a mailbox: its first line is an mbox separator and the second one a header line.
fn looks_like_mailbox(head: &[u8]) -> bool {
    let mut lines = whole_lines(head);
    let Some(first) = lines.next() else {
        return false;
    };
    mailbox::is_separator(first) && lines.next().and_then(header_name).is_some()
}

/// The complete lines of a file's first bytes. The last line is left out unless it ends in a line break,
/// because the head may be cut in the middle of it.
fn whole_lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    head.split_inclusive(|&byte| byte == b'\n')
        .filter_map(|line| line.strip_suffix(b"\n"))
}

fn header_name(line: &[u8]) -> Option<&[u8]> {
    let end = line.iter().position(|&byte| byte == b':')?;
    let name = line.get(..end)?;
    let good = !name.is_empty() && name.iter().all(u8::is_ascii_graphic);
    good.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_known_by_their_headers() {
        for head in [
            "From: a@b.example\r\nDate: Tue, 12 Mar 2024 10:00:00 +0000\r\nMessage-ID: <1@b>\r\n\r\nx: y z",
            "Received: from a\n by b\nDATE: x\nfrom: y\n\nA line without a colon\n",
        ] {
            assert!(looks_like_message(head.as_bytes()), "{head}");
        }
        for head in [
            "From: Works\nDate: today\nSubject: a memo\n\ntext\n",
            "From: a\nDate: b\nnot a header\nMessage-ID: <1>\n\n",
            "From: a\nDate: b\n\nMessage-ID: <1>\n",
            "Received: x\n",
            "# heading\n",
            "",
        ] {
            assert!(!looks_like_message(head.as_bytes()), "{head}");
        }
    }

    #[test]
    fn mailboxes_are_known_by_their_first_line() {
        let line = "From kerrin@tarnport.example Tue Mar 12 10:30:00 2024\n";
        for (head, expect) in [
            (format!("{line}From: a\n"), true),
            (format!("{line}no header\n"), false),
            (line.to_owned(), false),
            ("From here to 2024 it was 10:30\nFrom: a\n".to_owned(), true),
            ("From here on: nothing\nFrom: a\n".to_owned(), false),
            (format!(">{line}From: a\n"), false),
        ] {
            assert_eq!(looks_like_mailbox(head.as_bytes()), expect, "{head}");
        }
    }
}
