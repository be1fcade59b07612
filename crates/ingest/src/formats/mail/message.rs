//! MIME message parser: one e-mail message into one document.

use docent_search::{AllowedReaders, DocId, Document};
use mail_parser::{
    Addr, Address, HeaderName, HeaderValue, Message, MessageParser, MessagePart, MimeHeaders as _,
    PartType,
};
use serde_json::{Map, Value as Raw};

use crate::clean::{clean, clean_line};
use crate::digest::sha256;
use crate::error::IngestError;
use crate::fields::metadata::{CompleteText, KeyMapping, extract_metadata};
use crate::file_name::title_from_name;
use crate::parser::ParserInput;
use crate::reader_field::{self, ParsedDocument, ReaderFault, ReaderKeys, fault_mark};
use crate::single_document::BuiltDocument;

const KEYS: KeyMapping = KeyMapping {
    title: &["subject"],
    text: &[],
    url: &[],
};

/// Lines beginning with `--` that are allowed for each allowed part. They may be part boundaries, but they
/// also occur in signatures and tables, so the bound is generous.
const LINES_PER_PART: usize = 100;

/// The most bytes of a header that describes a part. Real ones have a few hundred.
const MAX_PART_HEADER_BYTES: usize = 64 * 1024;

pub(super) fn document(
    input: &ParserInput<'_>,
    id: DocId,
    raw: &[u8],
) -> Result<BuiltDocument, IngestError> {
    count_parts(raw, input.limits.max_mail_parts)?;
    let message = MessageParser::default()
        .parse(raw)
        .ok_or(IngestError::Empty)?;
    let text = text(&message);
    let limit = input.limits.max_text_chars;
    if text.chars().nth(limit).is_some() {
        return Err(IngestError::TextTooLong { limit });
    }
    let readers = ReaderKeys::for_input(input);
    let metadata = extract_metadata(header_fields(&message, &readers), &KEYS, input);
    let CompleteText { text, lost } = metadata.complete_text(Some(clean(&text)), input)?;
    if text.trim().is_empty() && metadata.title.is_none() && metadata.fields.is_empty() {
        return Err(IngestError::Empty);
    }
    let title = metadata.title.unwrap_or_else(|| {
        if text.trim().is_empty() {
            title_from_name(input)
        } else {
            String::new()
        }
    });
    let document = Document {
        id,
        title,
        text,
        url: None,
        date: metadata.date,
        fields: metadata.fields,
        source: input.path.to_owned(),
        hash: sha256(raw),
        readers: AllowedReaders::Everyone,
    };
    let readers = metadata.readers;
    Ok(BuiltDocument {
        document: ParsedDocument { document, readers },
        lost,
        warnings: metadata.warnings,
    })
}

/// The message's own `Message-ID` header, if it has one.
pub(super) fn message_id(raw: &[u8]) -> Option<String> {
    let message = MessageParser::default().parse_headers(raw)?;
    message.message_id().map(str::to_owned)
}

/// Rejects a message with too many MIME parts before the parser runs. Counting `Content-Type` lines bounds
/// nesting too, because each level needs one. The headers that describe a part are bounded in length as
/// well, because the parser's time grows with the square of that length.
fn count_parts(raw: &[u8], limit: usize) -> Result<(), IngestError> {
    let (mut types, mut lines) = (0_usize, 0_usize);
    // Bytes so far of the part header that the current line belongs to; `None` outside such a header.
    let mut header: Option<usize> = None;
    for line in raw.split(|&byte| byte == b'\n') {
        let begins = |name: &[u8]| {
            let start = line.get(..name.len()).unwrap_or_default();
            start.eq_ignore_ascii_case(name)
        };
        types += usize::from(begins(b"content-type"));
        lines += usize::from(line.starts_with(b"--"));
        let continues = line.starts_with(b" ") || line.starts_with(b"\t");
        let before = header.filter(|_| continues);
        let new = begins(b"content-").then_some(0);
        header = before.or(new).map(|bytes| bytes + line.len());
        if header.is_some_and(|bytes| bytes > MAX_PART_HEADER_BYTES) {
            return Err(too_many_parts(MAX_PART_HEADER_BYTES));
        }
    }
    if types > limit || lines > limit.saturating_mul(LINES_PER_PART) {
        return Err(too_many_parts(limit));
    }
    Ok(())
}

fn too_many_parts(limit: usize) -> IngestError {
    IngestError::TooMuchInside {
        limit: limit as u64,
    }
}

/// The text of the plain-text parts, or of the HTML parts where every plain part is blank.
fn text(message: &Message<'_>) -> String {
    let plain = joined(message.text_bodies());
    if plain.trim().is_empty() {
        joined(message.html_bodies())
    } else {
        plain
    }
}

fn joined<'a>(parts: impl Iterator<Item = &'a MessagePart<'a>>) -> String {
    let mut all = String::new();
    for part in parts {
        let text = match &part.body {
            PartType::Text(text) => text.to_string(),
            PartType::Html(html) => text_of_html(html),
            _ => continue,
        };
        if text.trim().is_empty() {
            continue;
        }
        if !all.is_empty() {
            all.push_str("\n\n");
        }
        all.push_str(&text);
    }
    all
}

/// The text of an HTML part, read the way a web page is. An unreadable part counts as empty.
fn text_of_html(html: &str) -> String {
    crate::formats::html::read(html.as_bytes(), ReaderKeys::default())
        .map_or_else(|_| String::new(), |page| page.text)
}

/// The fields of a message. Headers that are the reader field are added as they are, with their faults.
fn header_fields(message: &Message<'_>, readers: &ReaderKeys) -> Map<String, Raw> {
    let mut known = Map::new();
    let mut put = |name: &str, value: Raw| {
        if !value.is_null() && !readers.covers_key(name) {
            known.insert(name.to_owned(), value);
        }
    };
    put("subject", message.subject().map(Raw::from).into());
    put("date", day(message).map(Raw::from).into());
    let from = message.from().and_then(Address::first).map(format_address);
    put("from", from.map(Raw::from).into());
    put("to", people(message.to()));
    put("cc", people(message.cc()));
    put("attachments", list(message.attachments().filter_map(name)));
    add_reader_headers(message, readers, &mut known);
    known
}

/// Adds every header that is the reader field, also an empty one, because the field is there. A header that
/// becomes no field is closed as misplaced: whoever sent the message may have meant it.
fn add_reader_headers(message: &Message<'_>, readers: &ReaderKeys, known: &mut Map<String, Raw>) {
    for header in message.headers() {
        let name = header.name.as_str();
        if !readers.covers_key(name) {
            continue;
        }
        let value = match &header.name {
            HeaderName::Subject => header.value.as_text().unwrap_or_default().into(),
            HeaderName::Date => day(message).map(Raw::from).into(),
            HeaderName::From | HeaderName::To | HeaderName::Cc => reader_addresses(&header.value),
            _ => fault_mark(ReaderFault::Misplaced),
        };
        reader_field::insert_keeping_duplicates(known, name, value);
    }
    if readers.covers_key("attachments") && message.attachment_count() > 0 {
        let names = message.attachments();
        let names = names.map(|part| Raw::from(name(part).unwrap_or_default()));
        reader_field::insert_keeping_duplicates(known, "attachments", names.collect());
    }
}

/// The readers in a header with addresses: the addresses alone, since the names beside them are free text.
/// One that cannot be parsed closes the message, and so does a group without members.
fn reader_addresses(value: &HeaderValue<'_>) -> Raw {
    let groups: Vec<&[Addr<'_>]> = match value {
        HeaderValue::Address(Address::List(people)) => vec![people],
        HeaderValue::Address(Address::Group(groups)) => {
            groups.iter().map(|group| &group.addresses[..]).collect()
        }
        _ => Vec::new(),
    };
    if groups.iter().any(|people| people.is_empty()) {
        return fault_mark(ReaderFault::Empty);
    }
    let people = groups.into_iter().flatten();
    let addresses: Option<Vec<Raw>> = people
        .map(|person| person.address().filter(|text| is_address(text)))
        .map(|address| address.map(Raw::from))
        .collect();
    addresses.map_or_else(|| fault_mark(ReaderFault::NoName), Raw::Array)
}

/// Whether a text is one plain e-mail address. Marks that separate or quote addresses show that several were
/// run together; a colon would make it another kind of reader.
fn is_address(text: &str) -> bool {
    let is_plain = |c: char| !c.is_whitespace() && !c.is_control() && !",;:<>()[]\"\\@".contains(c);
    text.split_once('@').is_some_and(|(user, host)| {
        let is_part = |part: &str| !part.is_empty() && part.chars().all(is_plain);
        is_part(user) && is_part(host)
    })
}

/// The day the message was sent, in the sender's time zone.
fn day(message: &Message<'_>) -> Option<String> {
    let date = message.date()?;
    Some(format!(
        "{:04}-{:02}-{:02}",
        date.year, date.month, date.day
    ))
}

fn people(addresses: Option<&Address<'_>>) -> Raw {
    list(
        addresses
            .into_iter()
            .flat_map(Address::iter)
            .map(format_address),
    )
}

/// `Name <address>`, or the one of them that is there.
fn format_address(person: &Addr<'_>) -> String {
    match (person.name(), person.address()) {
        (Some(name), Some(address)) => format!("{name} <{address}>"),
        (Some(one), None) | (None, Some(one)) => one.to_owned(),
        (None, None) => String::new(),
    }
}

/// The file name of an attachment. An attached message is named by its subject.
fn name(part: &MessagePart<'_>) -> Option<String> {
    let inner = || match &part.body {
        PartType::Message(message) => message.subject().map(str::to_owned),
        _ => None,
    };
    part.attachment_name().map(str::to_owned).or_else(inner)
}

fn list(values: impl Iterator<Item = String>) -> Raw {
    let values = values.map(|value| clean_line(&value));
    let values: Vec<_> = values
        .filter(|value| !value.is_empty())
        .map(Raw::from)
        .collect();
    if values.is_empty() {
        Raw::Null
    } else {
        Raw::Array(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;
    use crate::options::IngestOptions;
    use crate::parser::folder_context::FolderContext;

    fn read(raw: &str, limits: &Limits) -> Result<BuiltDocument, IngestError> {
        let input = ParserInput {
            id: "m.eml",
            path: "m.eml",
            stem: "harbour_notice",
            bytes: raw.as_bytes(),
            sha256: "",
            limits,
            options: &IngestOptions::NONE,
            folder_context: &FolderContext::NONE,
            sink: None,
            ids: crate::parser::IdPass::Own,
        };
        document(&input, DocId::parse("m.eml").unwrap(), raw.as_bytes())
    }

    fn check(raw: &str, title: &str, text: &str) {
        let BuiltDocument {
            document, warnings, ..
        } = read(raw, &Limits::default()).unwrap();
        assert_eq!(
            (document.title.as_str(), document.text.trim()),
            (title, text),
            "{raw}"
        );
        assert_eq!(warnings, []);
    }

    const TWO: &str = "Subject: S\nContent-Type: multipart/alternative; boundary=b\n\n";

    #[test]
    fn the_plain_part_is_preferred_when_it_says_something() {
        let parts = |plain: &str| {
            format!(
                "{TWO}--b\nContent-Type: text/html\n\n<p>rich &amp; bold</p>\n--b\nContent-Type: text/plain\n\n{plain}\n--b--\n"
            )
        };
        check(&parts("plain"), "S", "plain");
        check(&parts(" "), "S", "rich & bold");
        check(
            "Subject: S\nContent-Type: text/html\n\n<p>only</p>",
            "S",
            "only",
        );
    }

    #[test]
    fn titles_are_subjects_or_nothing_or_the_name() {
        check("Subject: =?utf-8?q?F=C3=A4hre?=\n\nx", "Fähre", "x");
        check("From: a@b.example\n\nx", "", "x");
        check("From: a@b.example\n\n", "Harbour notice", "");
        assert_eq!(
            read("\n\n", &Limits::default()).map(drop),
            Err(IngestError::Empty)
        );
    }

    #[test]
    fn hidden_characters_are_gone() {
        check("Subject: a\u{202E}b\n\nc\u{200B}d\r\n", "ab", "cd");
    }

    #[test]
    fn parts_and_text_end_at_their_bounds() {
        let limits = Limits {
            max_mail_parts: 3,
            max_text_chars: 10,
            ..Limits::default()
        };
        let parts = |count: usize| {
            let part = "--b\ncontent-TYPE: image/png\n\nx\n";
            format!(
                "Subject: S\nContent-Type: multipart/mixed; boundary=b\n\n{}--b--\n",
                part.repeat(count)
            )
        };
        assert!(read(&parts(2), &limits).is_ok());
        let over = Err(IngestError::TooMuchInside { limit: 3 });
        assert_eq!(read(&parts(3), &limits).map(drop), over);
        let lines = |count: usize| {
            format!(
                "Subject: S\nContent-Type: multipart/mixed; boundary=b\n\n{}",
                "--b\n".repeat(count)
            )
        };
        assert!(read(&lines(300), &limits).is_ok());
        assert_eq!(read(&lines(301), &limits).map(drop), over);
        assert!(read("Subject: S\n\n1234567890", &limits).is_ok());
        let long = read("Subject: S\n\n12345678901", &limits).map(drop);
        assert_eq!(long, Err(IngestError::TextTooLong { limit: 10 }));
    }

    #[test]
    fn headers_of_parts_end_at_their_bound() {
        let header = |bytes: usize| {
            let value = "x".repeat(bytes - "Content-Type: text/plain;".len() - " y".len());
            format!("Subject: S\nContent-Type: text/plain;{value}\n y\n\ntext")
        };
        let limits = Limits::default();
        assert!(read(&header(MAX_PART_HEADER_BYTES), &limits).is_ok());
        let refused = read(&header(MAX_PART_HEADER_BYTES + 1), &limits).map(drop);
        assert_eq!(refused, Err(too_many_parts(MAX_PART_HEADER_BYTES)));
        // Long lines in other headers do not count.
        let long = format!("Subject: S\nTo: a\n {}\n\ntext", "x".repeat(100_000));
        assert!(read(&long, &limits).is_ok());
    }

    #[test]
    fn messages_in_messages_go_as_deep_as_parts_are_counted() {
        let limits = Limits {
            max_mail_parts: 20_000,
            ..Limits::default()
        };
        let deep = format!(
            "Subject: S\n{}deep",
            "Content-Type: message/rfc822\n\n".repeat(1_000)
        );
        assert_eq!(read(&deep, &limits).unwrap().document.title, "S");
        let refused = read(
            &deep,
            &Limits {
                max_mail_parts: 999,
                ..limits
            },
        )
        .map(drop);
        assert_eq!(refused, Err(IngestError::TooMuchInside { limit: 999 }));
    }
}
