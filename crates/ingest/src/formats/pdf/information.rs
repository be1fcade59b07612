//! Document information dictionary of a PDF file: title, author, subject, keywords and dates.

use hayro_interpret::hayro_syntax::Pdf;
use hayro_interpret::hayro_syntax::object::{DateTime, Dict, ObjectIdentifier};
use memchr::memmem;
use serde_json::{Map, Value as Raw};

use crate::clean::clean_line;
use crate::fields::document_properties::DocumentProperties;
use crate::reader_field::{ReaderFault, ReaderKeys};

/// The entries that become fields, with their keys.
const ENTRIES: [(&str, &str); 6] = [
    ("Title", "title"),
    ("Author", "author"),
    ("Subject", "subject"),
    ("Keywords", "keywords"),
    ("CreationDate", "date"),
    ("ModDate", "modified"),
];

/// The properties of a file as keys, and whether its information dictionary could be read. The second is
/// only found out where a reader field is configured; without one it does not matter.
pub(super) fn properties(pdf: &Pdf, readers: &ReaderKeys) -> (Map<String, Raw>, bool) {
    let metadata = pdf.metadata();
    let mut properties = DocumentProperties::new(readers);
    for (key, bytes) in [
        ("title", &metadata.title),
        ("author", &metadata.author),
        ("subject", &metadata.subject),
        ("keywords", &metadata.keywords),
    ] {
        // Two bytes of UTF-16 make at least one of the text; the first two may be its mark.
        let limit = 2 + 2 * properties.max_bytes(key);
        if let Some(bytes) = bytes.as_deref() {
            let words = decode_pdf_string(bytes, limit);
            let property = meaningful_property(&words);
            match (properties.is_reader_field(key), property) {
                // The whole text, without anything that looks like a prefix of a program.
                (true, Some(_)) => properties.add(key, words),
                (_, property) => properties.add(key, property.unwrap_or_default()),
            }
        }
    }
    for (key, moment) in [
        ("date", metadata.creation_date),
        ("modified", metadata.modification_date),
    ] {
        if let Some(moment) = moment {
            properties.add(key, day(moment));
        }
    }
    let is_read = !readers.is_configured() || add_reader_faults(pdf, &mut properties);
    (properties.into_keys(), is_read)
}

/// Adds what the library's [`Metadata`] does not show of a reader field: an entry that is not text, one that
/// is written twice, and one that becomes no field. Returns whether the dictionary could be read.
///
/// [`Metadata`]: hayro_interpret::hayro_syntax::metadata::Metadata
fn add_reader_faults(pdf: &Pdf, properties: &mut DocumentProperties<'_>) -> bool {
    let info = match information_dictionary(pdf) {
        Ok(Some(info)) => info,
        Ok(None) => return true,
        Err(UnreadableInformation) => return false,
    };
    for name in info.keys() {
        let name = name.as_str();
        let Some((_, key)) = ENTRIES.iter().find(|(entry, _)| *entry == name) else {
            properties.pass_over(name);
            continue;
        };
        if !properties.contains(key) {
            properties.add_fault(key, ReaderFault::NotText);
        } else if occurrences(info.data(), name) > 1 {
            properties.add_fault(key, ReaderFault::Repeated);
        }
    }
    true
}

/// The information dictionary is not where the file says, or the part that says so is lost.
struct UnreadableInformation;

/// Finds the information dictionary by the last trailer of the file; `None` if no trailer has one. The
/// library does not tell a missing dictionary from a damaged one.
fn information_dictionary(pdf: &Pdf) -> Result<Option<Dict<'_>>, UnreadableInformation> {
    let bytes = pdf.data().as_ref();
    // Every trailer has a root. Without a trailer, the library finds the pages but not the properties.
    if memmem::find(bytes, b"/Root").is_none() {
        return Err(UnreadableInformation);
    }
    let mut places = memmem::rfind_iter(bytes, b"/Info");
    let reference = places.find_map(|at| {
        let rest = bytes.get(at + b"/Info".len()..)?;
        ends_name(rest).then_some(rest)
    });
    let Some(reference) = reference else {
        return Ok(None);
    };
    let id = object_id(reference).ok_or(UnreadableInformation)?;
    let dictionary = pdf.xref().get::<Dict<'_>>(id);
    dictionary.map(Some).ok_or(UnreadableInformation)
}

/// The object that a reference such as `12 0 R` points to.
fn object_id(reference: &[u8]) -> Option<ObjectIdentifier> {
    let mut words = reference
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty());
    let mut number = || std::str::from_utf8(words.next()?).ok()?.parse().ok();
    let (object, generation) = (number()?, number()?);
    let is_reference = words.next().is_some_and(|word| word.starts_with(b"R"));
    let object = u32::try_from(object).ok()?;
    is_reference.then(|| ObjectIdentifier::new(object, generation))
}

/// How often a dictionary's bytes have a name. A name inside a text counts too, which can only close a
/// document.
fn occurrences(dictionary: &[u8], name: &str) -> usize {
    let name = format!("/{name}");
    memmem::find_iter(dictionary, name.as_bytes())
        .filter(|at| dictionary.get(at + name.len()..).is_some_and(ends_name))
        .count()
}

/// Whether a name ends here: before white space, a delimiter, or the end.
fn ends_name(rest: &[u8]) -> bool {
    let ends = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0 || b"()<>[]{}/%".contains(byte);
    rest.first().is_none_or(ends)
}

fn day(moment: DateTime) -> String {
    format!("{:04}-{:02}-{:02}", moment.year, moment.month, moment.day)
}

/// Decodes a text string: UTF-16 or UTF-8 where it has a byte order mark, UTF-8 where it is valid, and
/// otherwise one byte a letter.
fn decode_pdf_string(bytes: &[u8], limit: usize) -> String {
    let bytes = bytes.get(..limit).unwrap_or(bytes);
    let (encoding, bytes) = match encoding_rs::Encoding::for_bom(bytes) {
        Some((encoding, mark)) => (encoding, bytes.get(mark..).unwrap_or_default()),
        None if std::str::from_utf8(bytes).is_ok() => (encoding_rs::UTF_8, bytes),
        None => (encoding_rs::WINDOWS_1252, bytes),
    };
    encoding.decode_without_bom_handling(bytes).0.into_owned()
}

/// A property that its author wrote, without prefixes and placeholders that programs put there.
fn meaningful_property(words: &str) -> Option<String> {
    let words = clean_line(words);
    let words = words.strip_prefix("Microsoft Word - ").unwrap_or(&words);
    let words = words
        .strip_prefix("Microsoft PowerPoint - ")
        .unwrap_or(words);
    let placeholders = [
        "",
        "untitled",
        "(anonymous)",
        "anonymous",
        "unspecified",
        "(unspecified)",
        "none",
    ];
    let is_placeholder = placeholders
        .iter()
        .any(|placeholder| words.eq_ignore_ascii_case(placeholder));
    (!is_placeholder).then(|| words.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_are_texts_that_somebody_wrote() {
        for (bytes, expect) in [
            (b"Slate".as_slice(), Some("Slate")),
            (b"\xFE\xFF\0S\0\xFC", Some("Sü")),
            (b"\xEF\xBB\xBFS\xC3\xBC", Some("Sü")),
            (b"S\xFC", Some("Sü")),
            (b"Microsoft Word - plan.doc", Some("plan.doc")),
            (b"(anonymous)", None),
            (b"Untitled", None),
            (b"", None),
        ] {
            assert_eq!(
                meaningful_property(&decode_pdf_string(bytes, 100)).as_deref(),
                expect
            );
        }
    }
}
