//! EPUB parser: one document per book, its chapters in reading order, each parsed like a web page, with the
//! metadata of the package document.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value as Raw};

use crate::error::IngestError;
use crate::format::{ParsedFile, ParserInput};
use crate::html::{self, KEYS};
use crate::metadata::extract_metadata;
use crate::ooxml::ordered_properties;
use crate::package::{PackageParts, resolve};
use crate::reader_field::{self, ReaderKeys};
use crate::single_document::build_document;
use crate::xml::{XmlEvent, XmlReader, XmlTag};

/// The most files of the manifest, and the most chapters of the spine, that are read.
const MAX_ITEMS: usize = 10_000;

/// The most bytes of one metadata property, and the most values of a repeated one.
const MAX_PROPERTY_BYTES: usize = 64 * 1024;
const MAX_VALUES: usize = 64;

pub(crate) fn parse(
    input: &ParserInput<'_>,
    parts: &mut PackageParts<'_>,
) -> Result<ParsedFile, IngestError> {
    let encrypted = encrypted_parts(&parts.text("META-INF/encryption.xml")?.unwrap_or_default())?;
    let path = package_document_path(&parts.required_text("META-INF/container.xml")?)?;
    let package = EpubPackage::read(&parts.required_text(&path)?)?;
    let limit = input.limits.max_text_chars;
    let mut text = String::new();
    for chapter in package.chapters() {
        let chapter = resolve(&path, &chapter);
        // Embedded fonts are often obfuscated by the same mechanism; only an encrypted chapter matters.
        if encrypted.contains(&chapter) {
            return Err(IngestError::Encrypted);
        }
        let Some(bytes) = parts.bytes(&chapter)? else {
            continue;
        };
        let read = html::read(&bytes, ReaderKeys::default())?;
        if !text.is_empty() && !read.text.trim().is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(&read.text);
        if text.len() > limit.saturating_mul(4) {
            return Err(IngestError::TextTooLong { limit });
        }
    }
    let readers = ReaderKeys::for_input(input);
    let mut keys = ordered_properties(package.metadata);
    for key in package.empty.iter().filter(|key| readers.covers_key(key)) {
        reader_field::insert_keeping_duplicates(&mut keys, key, Raw::Null);
    }
    build_document(input, text, extract_metadata(keys, &KEYS, input))
}

/// The paths of the encrypted parts, from `META-INF/encryption.xml`.
fn encrypted_parts(text: &str) -> Result<HashSet<String>, IngestError> {
    let mut xml = XmlReader::new(text);
    let mut found = HashSet::new();
    while let Some(piece) = xml.next()? {
        if let XmlEvent::Open(tag) = piece
            && tag.name == "CipherReference"
            && found.len() < MAX_ITEMS
        {
            found.insert(resolve(
                "",
                &percent_decode(&tag.get("URI").unwrap_or_default()),
            ));
        }
    }
    Ok(found)
}

/// The path of the package document (OPF), as the container names it.
fn package_document_path(container: &str) -> Result<String, IngestError> {
    let mut xml = XmlReader::new(container);
    while let Some(piece) = xml.next()? {
        if let XmlEvent::Open(tag) = piece
            && tag.name == "rootfile"
            && let Some(path) = tag.get("full-path")
        {
            return Ok(resolve("", &path));
        }
    }
    Err(IngestError::Damaged {
        what: "the container does not name its package document".into(),
    })
}

/// The package document of a book. The manifest maps ids to files, and the spine lists the ids of the
/// chapters in reading order. Properties without a value are kept by name, because an empty access control
/// field is not an absent one.
#[derive(Default)]
struct EpubPackage {
    items: HashMap<String, String>,
    spine: Vec<String>,
    metadata: Map<String, Raw>,
    empty: HashSet<String>,
}

impl EpubPackage {
    fn read(text: &str) -> Result<Self, IngestError> {
        let mut book = Self::default();
        let mut xml = XmlReader::new(text);
        while let Some(piece) = xml.next()? {
            let XmlEvent::Open(tag) = piece else { continue };
            match tag.name.as_str() {
                "item" if book.items.len() < MAX_ITEMS => book.add_item(&tag),
                "itemref" if book.spine.len() < MAX_ITEMS => {
                    book.spine.push(tag.get("idref").unwrap_or_default());
                }
                "title" => book.add_metadata("title", &xml.text_content(MAX_PROPERTY_BYTES)?),
                "creator" => book.add_metadata("author", &xml.text_content(MAX_PROPERTY_BYTES)?),
                "date" => {
                    let event = tag.get("event").unwrap_or_default();
                    let key = if event == "modification" {
                        "modified"
                    } else {
                        "date"
                    };
                    book.add_metadata(key, &xml.text_content(MAX_PROPERTY_BYTES)?);
                }
                "language" => book.add_metadata("language", &xml.text_content(MAX_PROPERTY_BYTES)?),
                "identifier" => {
                    book.add_metadata("identifier", &xml.text_content(MAX_PROPERTY_BYTES)?)
                }
                "publisher" => {
                    book.add_metadata("publisher", &xml.text_content(MAX_PROPERTY_BYTES)?)
                }
                "description" => {
                    book.add_metadata("description", &xml.text_content(MAX_PROPERTY_BYTES)?)
                }
                "subject" => book.add_metadata("subject", &xml.text_content(MAX_PROPERTY_BYTES)?),
                "meta" if tag.get("property").as_deref() == Some("dcterms:modified") => {
                    book.add_metadata("modified", &xml.text_content(MAX_PROPERTY_BYTES)?);
                }
                _ => {}
            }
        }
        Ok(book)
    }

    fn add_item(&mut self, tag: &XmlTag<'_>) {
        let kind = tag.get("media-type").unwrap_or_default();
        let properties = tag.get("properties").unwrap_or_default();
        let is_page = kind.contains("html") || kind.is_empty();
        let is_contents = properties.split_whitespace().any(|word| word == "nav");
        if is_page && !is_contents {
            let href = percent_decode(&tag.get("href").unwrap_or_default());
            self.items.insert(tag.get("id").unwrap_or_default(), href);
        }
    }

    /// Adds a metadata value. Repeated authors and subjects become a list; of other properties the first
    /// value wins.
    fn add_metadata(&mut self, key: &str, value: &str) {
        let value = value.trim();
        if value.is_empty() {
            self.empty.insert(key.to_owned());
            return;
        }
        let new = Raw::String(value.to_owned());
        let Some(known) = self.metadata.get_mut(key) else {
            self.metadata.insert(key.to_owned(), new);
            return;
        };
        match known {
            Raw::Array(values) if values.len() < MAX_VALUES => values.push(new),
            Raw::String(_) if matches!(key, "author" | "subject") => {
                *known = Raw::Array(vec![known.take(), new]);
            }
            _ => {}
        }
    }

    fn chapters(&self) -> Vec<String> {
        let chapters = self.spine.iter().filter_map(|id| self.items.get(id));
        chapters.cloned().collect()
    }
}

/// Decodes percent-encoded characters such as `%20` in a path.
fn percent_decode(address: &str) -> String {
    let mut bytes = Vec::with_capacity(address.len());
    let mut rest = address.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let byte = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match byte.filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_book_says_what_it_is() {
        let book = EpubPackage::read(
            "<package><metadata><dc:title>Tides</dc:title><dc:creator>A</dc:creator><dc:creator>B</dc:creator>\
             <dc:language>en</dc:language><dc:language>fr</dc:language><dc:date>1901</dc:date></metadata>\
             <manifest><item id='a' href='a%20b.xhtml' media-type='application/xhtml+xml'/>\
             <item id='n' href='n.xhtml' media-type='application/xhtml+xml' properties='nav'/>\
             <item id='p' href='p.png' media-type='image/png'/></manifest>\
             <spine><itemref idref='n'/><itemref idref='a'/><itemref idref='p'/></spine></package>",
        )
        .unwrap();
        assert_eq!(book.chapters(), ["a b.xhtml"]);
        assert_eq!(
            Raw::Object(book.metadata).to_string(),
            r#"{"title":"Tides","author":["A","B"],"language":"en","date":"1901"}"#
        );
    }

    #[test]
    fn addresses_are_decoded() {
        for (address, expect) in [
            ("a%20b", "a b"),
            ("%C3%BC", "ü"),
            ("%", "%"),
            ("%zz%4", "%zz%4"),
            ("", ""),
        ] {
            assert_eq!(percent_decode(address), expect);
        }
    }

    #[test]
    fn chapters_and_values_end_at_their_bounds() {
        let item = |n| format!("<item id='{n}' href='{n}'/><itemref idref='{n}'/>");
        let items: String = (0..MAX_ITEMS + 1).map(item).collect();
        let authors = "<creator>x</creator>".repeat(MAX_VALUES + 1);
        let book = EpubPackage::read(&format!("<a>{items}{authors}</a>")).unwrap();
        assert_eq!(book.chapters().len(), MAX_ITEMS);
        assert_eq!(
            book.metadata["author"].as_array().map(Vec::len),
            Some(MAX_VALUES)
        );
    }
}
