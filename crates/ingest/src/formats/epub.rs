//! EPUB parser: one document per book, its chapters in reading order, each parsed like a web page, with the
//! metadata of the package document.

use std::collections::{HashMap, HashSet};

use crate::error::IngestError;
use crate::fields::document_properties::{DocumentProperties, MAX_LISTED_VALUES};
use crate::fields::metadata::extract_metadata;
use crate::formats::html::{self, KEYS};
use crate::formats::package::PackageFormat;
use crate::formats::package::package_parts::{PackageParts, resolve};
use crate::parser::{ParsedFile, ParserInput};
use crate::reader_field::ReaderKeys;
use crate::single_document::build_document;
use crate::xml::{XmlEvent, XmlReader, XmlTag};

/// The most files of the manifest, and the most chapters of the spine, that are read. The longest books have some
/// thousand chapters. Both lists may name the same file again and again, so the size of the package does not bound the
/// work.
const MAX_ITEMS: usize = 10_000;

/// The most values of a repeated property that become fields.
const MAX_VALUES: usize = 64;

pub(crate) const FORMAT: PackageFormat = PackageFormat {
    name: "epub",
    extensions: &["epub"],
    main_kind: None,
    media_types: &["epub+zip"],
    part: "META-INF/container.xml",
    parse: |input, parts, _| parse(input, parts),
};

fn parse(input: &ParserInput<'_>, parts: &mut PackageParts<'_>) -> Result<ParsedFile, IngestError> {
    let encrypted = encrypted_parts(&parts.text("META-INF/encryption.xml")?.unwrap_or_default())?;
    let path = package_document_path(&parts.required_text("META-INF/container.xml")?)?;
    let readers = ReaderKeys::for_input(input);
    let package = EpubPackage::read(&parts.required_text(&path)?, &readers)?;
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
    let keys = package.metadata.into_keys();
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
/// chapters in reading order.
struct EpubPackage<'r> {
    items: HashMap<String, String>,
    spine: Vec<String>,
    metadata: DocumentProperties<'r>,
    /// The values of `dc:creator` and `dc:subject`, which the format repeats once for each person and topic.
    authors: Vec<String>,
    subjects: Vec<String>,
}

impl<'r> EpubPackage<'r> {
    fn read(text: &str, readers: &'r ReaderKeys) -> Result<Self, IngestError> {
        let mut book = Self {
            items: HashMap::new(),
            spine: Vec::new(),
            metadata: DocumentProperties::new(readers),
            authors: Vec::new(),
            subjects: Vec::new(),
        };
        let mut xml = XmlReader::new(text);
        let mut in_metadata = false;
        while let Some(piece) = xml.next()? {
            let tag = match piece {
                XmlEvent::Open(tag) => tag,
                XmlEvent::Close(name) => {
                    in_metadata &= name != "metadata";
                    continue;
                }
                XmlEvent::Text(_) => continue,
            };
            match tag.name.as_str() {
                "metadata" => in_metadata = true,
                "item" if book.items.len() < MAX_ITEMS => book.add_item(&tag),
                "itemref" if book.spine.len() < MAX_ITEMS => {
                    book.spine.push(tag.get("idref").unwrap_or_default());
                }
                _ => book.add_metadata(&tag, in_metadata, &mut xml)?,
            }
        }
        let authors = std::mem::take(&mut book.authors);
        book.metadata.add_list("author", authors, MAX_VALUES);
        let subjects = std::mem::take(&mut book.subjects);
        book.metadata.add_list("subject", subjects, MAX_VALUES);
        Ok(book)
    }

    /// Adds the property that was opened last. A property called like the reader field that becomes no field
    /// is noticed within the metadata.
    fn add_metadata(
        &mut self,
        tag: &XmlTag<'_>,
        in_metadata: bool,
        xml: &mut XmlReader<'_>,
    ) -> Result<(), IngestError> {
        let is_change = tag
            .get("event")
            .is_some_and(|event| event == "modification");
        let property = tag.get("property").unwrap_or_default();
        let key = match tag.name.as_str() {
            "title" => "title",
            "creator" => "author",
            "date" if is_change => "modified",
            "date" => "date",
            "language" => "language",
            "identifier" => "identifier",
            "publisher" => "publisher",
            "description" => "description",
            "subject" => "subject",
            "meta" if property == "dcterms:modified" => "modified",
            // A refinement is about another property, not about the book.
            name if in_metadata && tag.get("refines").is_none() => {
                self.metadata.pass_over(name);
                for name in [property, tag.get("name").unwrap_or_default()] {
                    let name = name.rsplit(':').next().unwrap_or_default();
                    self.metadata.pass_over(name);
                }
                return Ok(());
            }
            _ => return Ok(()),
        };
        let value = self.metadata.text_of(key, xml)?;
        let list = match key {
            "author" => &mut self.authors,
            "subject" => &mut self.subjects,
            _ => {
                self.metadata.add(key, value);
                return Ok(());
            }
        };
        if list.len() < MAX_LISTED_VALUES {
            list.push(value);
        }
        Ok(())
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
        let readers = ReaderKeys::default();
        let book = EpubPackage::read(
            "<package><metadata><dc:title>Tides</dc:title><dc:creator>A</dc:creator><dc:creator>B</dc:creator>\
             <dc:language>en</dc:language><dc:language>fr</dc:language><dc:date>1901-02-03</dc:date></metadata>\
             <manifest><item id='a' href='a%20b.xhtml' media-type='application/xhtml+xml'/>\
             <item id='n' href='n.xhtml' media-type='application/xhtml+xml' properties='nav'/>\
             <item id='p' href='p.png' media-type='image/png'/></manifest>\
             <spine><itemref idref='n'/><itemref idref='a'/><itemref idref='p'/></spine></package>",
            &readers,
        )
        .unwrap();
        assert_eq!(book.chapters(), ["a b.xhtml"]);
        assert_eq!(
            serde_json::Value::Object(book.metadata.into_keys()).to_string(),
            r#"{"title":"Tides","date":"1901-02-03","author":["A","B"],"language":"en"}"#
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
        let readers = ReaderKeys::default();
        let book = EpubPackage::read(&format!("<a>{items}{authors}</a>"), &readers).unwrap();
        assert_eq!(book.chapters().len(), MAX_ITEMS);
        assert_eq!(
            book.metadata.into_keys()["author"].as_array().map(Vec::len),
            Some(MAX_VALUES)
        );
    }
}
