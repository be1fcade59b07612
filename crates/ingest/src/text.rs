//! Plain text files into one document each, and the bytes of any text format into characters.

use docent_search::{DocId, Document};
use encoding_rs::{UTF_16BE, UTF_16LE, WINDOWS_1252};

use crate::clean::{clean, clean_line, cut};
use crate::dates;
use crate::error::Reason;
use crate::format::{Format, Input, Parsed, begins_with_anything};

pub(crate) const FORMAT: Format = Format {
    name: "text",
    extensions: &[
        "txt", "text", "log", "rst", "adoc", "asciidoc", "org", "tex", "",
    ],
    begins: begins_with_anything,
    parse,
};

fn parse(input: &Input<'_>) -> Result<Parsed, Reason> {
    let text = decode(input.bytes, input.limits.max_text_chars)?;
    if text.trim().is_empty() {
        return Err(Reason::Empty);
    }
    let document = Document {
        id: file_id(input)?,
        title: title_from_name(input),
        text,
        url: None,
        date: None,
        fields: Vec::new(),
        source: input.path.to_owned(),
        hash: input.sha256.to_owned(),
    };
    Ok(Parsed {
        documents: vec![document],
        ..Parsed::default()
    })
}

/// The id of the file itself.
pub(crate) fn file_id(input: &Input<'_>) -> Result<DocId, Reason> {
    DocId::parse(input.id).map_err(|error| Reason::BadId {
        why: error.to_string(),
    })
}

/// A title made of the file's name: `2024-03-12-rail_link` becomes `2024-03-12 Rail link`.
pub(crate) fn title_from_name(input: &Input<'_>) -> String {
    let stem = clean_line(input.stem);
    let (date, rest) = match dates::leading_day(&stem) {
        Some((day, rest)) => (Some(day), rest),
        None => (None, stem.as_str()),
    };
    let words: Vec<_> = rest
        .split(['-', '_', ' '])
        .filter(|word| !word.is_empty())
        .collect();
    let words = words.join(" ");
    let mut letters = words.chars();
    let words: String = letters
        .next()
        .map(char::to_uppercase)
        .into_iter()
        .flatten()
        .chain(letters)
        .collect();
    let parts: Vec<_> = date
        .into_iter()
        .chain(Some(words.as_str()))
        .filter(|part| !part.is_empty())
        .collect();
    let mut title = if parts.is_empty() {
        input.path.to_owned()
    } else {
        parts.join(" ")
    };
    cut(&mut title, input.limits.max_title_chars);
    title
}

/// Clean characters out of the bytes of a text file: UTF-8, UTF-16 with a byte order mark, or Windows-1252.
pub(crate) fn decode(bytes: &[u8], max_chars: usize) -> Result<String, Reason> {
    let text = characters(bytes)?;
    // Cleaning only ever makes a text shorter, so counting first bounds the work too.
    if text.chars().nth(max_chars).is_some() {
        return Err(Reason::TextTooLong { limit: max_chars });
    }
    Ok(clean(&text))
}

pub(crate) fn characters(bytes: &[u8]) -> Result<String, Reason> {
    if is_binary(bytes) {
        return Err(Reason::Binary);
    }
    let utf16 = if is_utf16_le(bytes) {
        UTF_16LE
    } else {
        UTF_16BE
    };
    if is_utf16(bytes) {
        let (text, _) = utf16.decode_with_bom_removal(bytes);
        return if text.contains('\0') {
            Err(Reason::Binary)
        } else {
            Ok(text.into_owned())
        };
    }
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Ok(text.to_owned());
    }
    if has_many_controls(bytes) {
        return Err(Reason::Binary);
    }
    if is_damaged_utf8(bytes) {
        return Ok(String::from_utf8_lossy(bytes).into_owned());
    }
    Ok(WINDOWS_1252
        .decode_without_bom_handling(bytes)
        .0
        .into_owned())
}

/// A NUL is in no text, except in UTF-16, which must say so by its byte order mark.
pub(crate) fn is_binary(bytes: &[u8]) -> bool {
    bytes.contains(&0) && !is_utf16(bytes)
}

pub(crate) fn is_utf16(bytes: &[u8]) -> bool {
    is_utf16_le(bytes) || bytes.starts_with(b"\xFE\xFF")
}

/// Four bytes that start like UTF-16 and go on with two NULs are UTF-32.
fn is_utf16_le(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\xFF\xFE") && !bytes.starts_with(b"\xFF\xFE\0\0")
}

/// One control character in a hundred bytes. Text has next to none; compressed data has about ten.
fn has_many_controls(bytes: &[u8]) -> bool {
    let strange = |byte: &&u8| byte.is_ascii_control() && !b"\t\n\r\x0B\x0C\x1B".contains(byte);
    bytes.iter().filter(strange).count() * 100 > bytes.len()
}

/// More whole UTF-8 characters beyond ASCII than broken ones: a cut or patched file. In Windows-1252 text
/// nearly every byte beyond ASCII is broken UTF-8.
fn is_damaged_utf8(bytes: &[u8]) -> bool {
    let (mut whole, mut broken) = (0_usize, 0_usize);
    for chunk in bytes.utf8_chunks() {
        whole += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        broken += usize::from(!chunk.invalid().is_empty());
    }
    whole > broken
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;

    fn check(bytes: &[u8], expect: Result<&str, &str>) {
        let found = decode(bytes, 1_000);
        assert_eq!(found.as_deref().map_err(Reason::code), expect, "{bytes:?}");
    }

    #[test]
    fn every_encoding_is_read() {
        check("Tarn Örr".as_bytes(), Ok("Tarn Örr"));
        check(b"\xEF\xBB\xBFTarn\r\nOrr", Ok("Tarn\nOrr"));
        check(b"\xFF\xFET\0\xD6\0", Ok("TÖ"));
        check(b"\xFE\xFF\0T\0\xD6", Ok("TÖ"));
        check(b"\xFF\xFE\x00\xD8T\0", Ok("\u{FFFD}T"));
        check(b"caf\xE9 \x93quoted\x94 \x80 5", Ok("café “quoted” € 5"));
        check(b"", Ok(""));
    }

    #[test]
    fn damaged_utf8_loses_only_the_damage() {
        let mut bytes = "übermäßig schön".as_bytes().to_vec();
        bytes.extend_from_slice(b"\xC3");
        check(&bytes, Ok("übermäßig schön\u{FFFD}"));
    }

    #[test]
    fn what_is_no_text_is_binary() {
        check(b"a\0b", Err("binary"));
        check(b"\xFF\xFE\0\0a\0\0\0", Err("binary"));
        check(b"\xFF\xFEa\0\0\0", Err("binary"));
        check(b"T\0e\0x\0t\0", Err("binary"));
        check(&[0x01, 0x02, 0xFF, 0xFE, 0x80, 0x05], Err("binary"));
    }

    #[test]
    fn text_ends_at_its_bound() {
        check("ü".repeat(1_000).as_bytes(), Ok(&"ü".repeat(1_000)));
        check("ü".repeat(1_001).as_bytes(), Err("text-too-long"));
    }

    #[test]
    fn names_become_titles() {
        let limits = Limits {
            max_title_chars: 22,
            ..Limits::default()
        };
        let title = |stem: &str| {
            let input = Input {
                id: "x",
                path: "dir/x",
                stem,
                bytes: b"",
                sha256: "",
                limits: &limits,
            };
            title_from_name(&input)
        };
        assert_eq!(title("rail_link-plan"), "Rail link plan");
        assert_eq!(title("2024-03-12-rail_link"), "2024-03-12 Rail link");
        assert_eq!(title("2024-03-12"), "2024-03-12");
        assert_eq!(title("état"), "État");
        assert_eq!(title("---"), "dir/x");
        assert_eq!(title(&"a".repeat(22)), format!("A{}", "a".repeat(21)));
        assert_eq!(title(&"a".repeat(23)).len(), 22);
    }
}
