//! XML pull parser: tags and text of a document in sequence. It resolves nothing external and expands no
//! entities except the five predefined ones and character references, and the nesting is bounded, so entity
//! bombs and XXE have no effect.

use std::borrow::Cow;

use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

use crate::error::IngestError;

/// The deepest nesting of elements; no office program comes close to it. The reader keeps the names of all open
/// elements, and some parsers on top of it follow a nesting by recursion, which the stack of the process bounds.
pub(crate) const MAX_DEPTH: usize = 512;

/// The most attributes of one tag that are read. A parser looks up several attributes of every tag, and each lookup
/// goes through the list from its start, so a tag with a hundred thousand of them would cost that many steps each time.
const MAX_ATTRIBUTES: usize = 256;

/// The next event of an XML file. Names come without their namespace prefix, which the program that wrote
/// the file may choose freely.
#[derive(Debug)]
pub(crate) enum XmlEvent<'a> {
    Open(XmlTag<'a>),
    Close(String),
    Text(Cow<'a, str>),
}

/// A start tag with access to its attributes.
#[derive(Debug)]
pub(crate) struct XmlTag<'a> {
    pub name: String,
    start: BytesStart<'a>,
}

impl XmlTag<'_> {
    /// The value of the first attribute with this local name, whatever its prefix.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        self.find(|key| key.rsplit(':').next() == Some(name))
    }

    /// The value of the attribute with exactly this prefix and name.
    pub(crate) fn get_exact(&self, name: &str) -> Option<String> {
        self.find(|key| key == name)
    }

    fn find(&self, wanted: impl Fn(&str) -> bool) -> Option<String> {
        let mut attributes = self.start.attributes();
        // The check for duplicate attributes takes quadratic time.
        let attributes = attributes.with_checks(false).take(MAX_ATTRIBUTES);
        let found = attributes.flatten().find(|found| wanted(found.key.0))?;
        let value = found.normalized_value(XmlVersion::Implicit1_0);
        Some(value.unwrap_or_default().into_owned())
    }
}

pub(crate) struct XmlReader<'a> {
    reader: Reader<&'a [u8]>,
    open: Vec<String>,
}

impl<'a> XmlReader<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let mut reader = Reader::from_str(text);
        let config = reader.config_mut();
        config.expand_empty_elements = true;
        config.allow_dangling_amp = true;
        Self {
            reader,
            open: Vec::new(),
        }
    }

    /// The next event, or `None` at the end of the file.
    pub(crate) fn next(&mut self) -> Result<Option<XmlEvent<'a>>, IngestError> {
        loop {
            let event = self.reader.read_event().map_err(|_| malformed_xml())?;
            return Ok(Some(match event {
                Event::Start(start) => {
                    if self.open.len() >= MAX_DEPTH {
                        return Err(IngestError::TooMuchInside {
                            limit: MAX_DEPTH as u64,
                        });
                    }
                    let name = start.local_name().into_inner().to_owned();
                    self.open.push(name.clone());
                    XmlEvent::Open(XmlTag { name, start })
                }
                Event::End(_) => XmlEvent::Close(self.open.pop().unwrap_or_default()),
                Event::Text(text) => XmlEvent::Text(text.into_inner()),
                Event::CData(text) => XmlEvent::Text(text.into_inner()),
                Event::GeneralRef(name) => {
                    let numbered = name.resolve_char_ref().ok().flatten();
                    match numbered.or_else(|| predefined_entity(&name)) {
                        Some(c) => XmlEvent::Text(Cow::Owned(c.to_string())),
                        None => continue,
                    }
                }
                // A file that ends inside an element is truncated.
                Event::Eof if !self.open.is_empty() => return Err(malformed_xml()),
                Event::Eof => return Ok(None),
                Event::Empty(_)
                | Event::Comment(_)
                | Event::Decl(_)
                | Event::PI(_)
                | Event::DocType(_) => continue,
            }));
        }
    }

    /// Skips the rest of the element that was opened last.
    pub(crate) fn skip(&mut self) -> Result<(), IngestError> {
        let depth = self.open.len();
        while self.open.len() >= depth && self.next()?.is_some() {}
        Ok(())
    }

    /// The text in the rest of the element that was opened last, truncated to `limit` bytes.
    pub(crate) fn text_content(&mut self, limit: usize) -> Result<String, IngestError> {
        let depth = self.open.len();
        let mut words = String::new();
        while self.open.len() >= depth {
            match self.next()? {
                Some(XmlEvent::Text(text)) if words.len() < limit => {
                    words.extend(text.chars().take(limit - words.len()));
                }
                Some(_) => {}
                None => break,
            }
        }
        Ok(words)
    }
}

fn malformed_xml() -> IngestError {
    IngestError::Damaged {
        what: "its XML cannot be read".into(),
    }
}

fn predefined_entity(name: &str) -> Option<char> {
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(text: &str) -> Result<String, IngestError> {
        let mut xml = XmlReader::new(text);
        let mut out = String::new();
        while let Some(piece) = xml.next()? {
            match piece {
                XmlEvent::Open(tag) => out.push_str(&format!("<{}>", tag.name)),
                XmlEvent::Close(name) => out.push_str(&format!("</{name}>")),
                XmlEvent::Text(text) => out.push_str(&text),
            }
        }
        Ok(out)
    }

    #[test]
    fn names_lose_their_prefix_and_entities_are_few() {
        assert_eq!(
            show("<?xml version='1.0'?><w:p><w:t>a &amp; &#66;&#x43;<![CDATA[<d>]]></w:t><w:br/></w:p>").unwrap(),
            "<p><t>a & BC<d></t><br></br></p>"
        );
        let bomb = "<!DOCTYPE a [<!ENTITY b 'bb'><!ENTITY c SYSTEM 'file:///etc/passwd'>]><a>&b;&c;&b;x</a>";
        assert_eq!(show(bomb).unwrap(), "<a>x</a>");
    }

    #[test]
    fn attributes_are_found_with_and_without_their_prefix() {
        let mut xml = XmlReader::new("<a w:id='1' r:id='&lt;2' b='&unknown;'/>");
        let Ok(Some(XmlEvent::Open(tag))) = xml.next() else {
            panic!("no tag")
        };
        assert_eq!(tag.get("id").as_deref(), Some("1"));
        assert_eq!(tag.get_exact("r:id").as_deref(), Some("<2"));
        assert_eq!(tag.get("b").as_deref(), Some(""));
        assert_eq!(tag.get("c"), None);
    }

    #[test]
    fn attributes_end_at_their_bound() {
        let found = |before: usize| {
            let many: String = (0..before).map(|n| format!("a{n}='x' ")).collect();
            let text = format!("<a {many} last='y'/>");
            let mut xml = XmlReader::new(&text);
            let Ok(Some(XmlEvent::Open(tag))) = xml.next() else {
                panic!("no tag")
            };
            tag.get("last")
        };
        assert_eq!(found(MAX_ATTRIBUTES - 1).as_deref(), Some("y"));
        assert_eq!(found(MAX_ATTRIBUTES), None);
    }

    #[test]
    fn depth_ends_at_its_bound() {
        let deep = |depth: usize| show(&format!("{}{}", "<a>".repeat(depth), "</a>".repeat(depth)));
        assert!(deep(MAX_DEPTH).is_ok());
        let limit = MAX_DEPTH;
        assert_eq!(
            deep(limit + 1),
            Err(IngestError::TooMuchInside {
                limit: limit as u64
            })
        );
    }

    #[test]
    fn skipping_and_taking_words_end_with_the_element() {
        let mut xml = XmlReader::new("<a><b>x<b/>y</b><c>one <i>two</i></c>z</a>");
        let mut seen = Vec::new();
        while let Some(piece) = xml.next().unwrap() {
            match piece {
                XmlEvent::Open(tag) if tag.name == "b" => xml.skip().unwrap(),
                XmlEvent::Open(tag) if tag.name == "c" => seen.push(xml.text_content(6).unwrap()),
                XmlEvent::Text(text) => seen.push(text.into_owned()),
                _ => {}
            }
        }
        assert_eq!(seen, ["one tw", "z"]);
    }

    #[test]
    fn broken_xml_is_damage() {
        for text in ["<a><b></a>", "<a", "<a></b>", "<a><b></b>", "<a>x"] {
            assert_eq!(
                show(text).map_err(|reason| reason.code()),
                Err("damaged"),
                "{text}"
            );
        }
    }
}
