//! OpenDocument parser for texts and presentations: one file becomes one document with its paragraphs,
//! headings, lists, tables and notes. Each slide becomes a page.

use std::collections::HashSet;

use serde_json::{Map, Value as Raw};

use crate::error::IngestError;
use crate::fields::document_properties::{DocumentProperties, MAX_LISTED_VALUES};
use crate::fields::metadata::extract_metadata;
use crate::formats::html::KEYS;
use crate::formats::package::PackageFormat;
use crate::formats::package::package_parts::{PackageParts, optional_part};
use crate::layout::TextLayout;
use crate::parser::{ParsedFile, ParserInput};
use crate::reader_field::{MAX_READER_TEXT_BYTES, ReaderFault, ReaderKeys};
use crate::single_document::build_document;
use crate::xml::{XmlEvent, XmlReader, XmlTag};

/// The most list and title styles that are kept of one document.
const MAX_STYLES: usize = 10_000;

/// The most notes kept of a document, and the most bytes kept of one note.
const MAX_NOTES: usize = 100_000;
const MAX_NOTE_BYTES: usize = 64 * 1024;

/// The most bytes of a title taken from the text.
const MAX_TITLE_BYTES: usize = 64 * 1024;

/// The most keywords kept of a document.
const MAX_KEYWORDS: usize = 256;

pub(crate) const FORMAT: PackageFormat = PackageFormat {
    name: "odt",
    extensions: &["odt", "ott"],
    main_kind: None,
    media_types: &[
        "vnd.oasis.opendocument.text",
        "vnd.oasis.opendocument.text-template",
    ],
    part: "",
    parse: |input, parts, _| parse(input, parts),
};

pub(crate) const PRESENTATION: PackageFormat = PackageFormat {
    name: "odp",
    extensions: &["odp"],
    main_kind: None,
    media_types: &["vnd.oasis.opendocument.presentation"],
    part: "",
    parse: |input, parts, _| parse(input, parts),
};

fn parse(input: &ParserInput<'_>, parts: &mut PackageParts<'_>) -> Result<ParsedFile, IngestError> {
    let manifest = parts.text("META-INF/manifest.xml")?.unwrap_or_default();
    if manifest.contains("encryption-data") {
        return Err(IngestError::Encrypted);
    }
    let limit = input.limits.max_text_chars;
    let mut body = OdtBody {
        max_bytes: limit.saturating_mul(4),
        ..OdtBody::default()
    };
    body.read(&parts.required_text("content.xml")?)?;
    let notes = std::mem::take(&mut body.notes);
    for (mark, note) in notes {
        body.layout.end_block();
        body.layout.write(&format!("[^{mark}]: {note}"));
    }
    let readers = ReaderKeys::for_input(input);
    let meta = parts.text("meta.xml").map(Option::unwrap_or_default);
    let found = meta.and_then(|meta| properties(&meta, &readers));
    let is_damaged = found.is_err();
    let mut keys = optional_part(found)?;
    let title = body.title.filter(|title| !title.trim().is_empty());
    // A title that is the reader field is not made up.
    if let Some(title) = title.filter(|_| !readers.covers_key("title")) {
        keys.entry("title").or_insert(Raw::String(title));
    }
    let mut metadata = extract_metadata(keys, &KEYS, input);
    if is_damaged {
        metadata.mark_readers_malformed(&readers);
    }
    build_document(input, body.layout.finish(), metadata)
}

#[derive(Default)]
struct OdtBody {
    layout: TextLayout,
    max_bytes: usize,
    in_body: bool,
    /// Names of the list styles with numbers, and of the styles derived from the one for titles.
    numbered: HashSet<String>,
    titles: HashSet<String>,
    style: String,
    /// One entry per open list: the number of its next item, or `None` where its items have bullets.
    lists: Vec<Option<u64>>,
    /// How many paragraphs are open. White space counts as text only inside them.
    paragraphs: usize,
    pages: usize,
    in_title_frame: bool,
    notes: Vec<(String, String)>,
    title: Option<String>,
    in_title: bool,
}

impl OdtBody {
    fn read(&mut self, text: &str) -> Result<(), IngestError> {
        let mut xml = XmlReader::new(text);
        while let Some(piece) = xml.next()? {
            match piece {
                XmlEvent::Open(tag) if !self.in_body => self.style(&tag),
                XmlEvent::Open(tag) => self.open(&tag, &mut xml)?,
                XmlEvent::Close(name) if self.in_body => self.close(&name),
                XmlEvent::Text(words) if self.paragraphs > 0 => self.write(&words),
                XmlEvent::Close(_) | XmlEvent::Text(_) => {}
            }
            if self.layout.len() > self.max_bytes {
                return Err(IngestError::TextTooLong {
                    limit: self.max_bytes / 4,
                });
            }
        }
        Ok(())
    }

    fn style(&mut self, tag: &XmlTag<'_>) {
        match tag.name.as_str() {
            "body" => self.in_body = true,
            "style" | "list-style" => {
                self.style = tag.get_exact("style:name").unwrap_or_default();
                let parent = tag.get("parent-style-name").unwrap_or_default();
                if parent == "Title" && self.titles.len() < MAX_STYLES {
                    self.titles.insert(self.style.clone());
                }
            }
            "list-level-style-number" => {
                let first = tag.get("level").is_none_or(|level| level == "1");
                let format = tag.get("num-format").unwrap_or_default();
                if first && !format.is_empty() && self.numbered.len() < MAX_STYLES {
                    self.numbered.insert(self.style.clone());
                }
            }
            _ => {}
        }
    }

    fn open(&mut self, tag: &XmlTag<'_>, xml: &mut XmlReader<'_>) -> Result<(), IngestError> {
        match tag.name.as_str() {
            // Comments, tracked deletions, picture descriptions and generated lists (contents, index): none
            // of it is the document's own running text.
            "annotation" | "tracked-changes" | "desc" | "forms" | "table-of-content"
            | "alphabetical-index" | "hidden-text" | "hidden-paragraph" | "ruby-text"
            | "note-citation" | "shapes" => return xml.skip(),
            "note" => return self.note(xml),
            "p" | "h" => self.open_paragraph(tag),
            "s" | "tab" => self.write(" "),
            "line-break" => self.layout.line_break(),
            "list" => {
                let style = tag.get("style-name").unwrap_or_default();
                // An inner list without a style of its own is numbered like the list around it.
                let outer = style.is_empty() && self.lists.last().copied().flatten().is_some();
                let numbered = outer || self.numbered.contains(&style);
                self.lists.push(numbered.then_some(1));
                self.layout.begin_list();
            }
            "list-item" => {
                let number = self.lists.last_mut().and_then(Option::as_mut);
                let this = number.as_ref().map(|number| **number);
                if let Some(number) = number {
                    *number = number.saturating_add(1);
                }
                self.layout.item(this);
            }
            "table" => self.layout.end_block(),
            "table-row" => self.layout.begin_row(),
            "table-cell" | "covered-table-cell" => self.layout.begin_cell(),
            "page" => {
                self.pages += 1;
                if self.pages > 1 {
                    self.layout.page_break();
                }
            }
            "notes" => {
                self.layout.end_block();
                self.layout.write("Notes: ");
            }
            "frame" => {
                self.in_title_frame = tag
                    .get_exact("presentation:class")
                    .is_some_and(|class| class == "title");
            }
            _ => {}
        }
        Ok(())
    }

    fn open_paragraph(&mut self, tag: &XmlTag<'_>) {
        let style = tag.get("style-name").unwrap_or_default();
        let is_title = style == "Title" || self.titles.contains(&style) || self.in_title_frame;
        let level = tag
            .get("outline-level")
            .and_then(|level| level.parse().ok());
        if tag.name == "h" || is_title {
            self.layout.heading(level.unwrap_or(1));
        } else {
            self.layout.end_line();
        }
        let is_first = self
            .title
            .as_ref()
            .is_none_or(|title| title.trim().is_empty());
        self.in_title = is_first && (is_title || (tag.name == "h" && level == Some(1)));
        self.paragraphs += 1;
    }

    fn close(&mut self, name: &str) {
        match name {
            "p" | "h" => {
                self.paragraphs = self.paragraphs.saturating_sub(1);
                self.in_title = false;
                self.layout.end_heading();
            }
            "list" => {
                self.lists.pop();
                self.layout.end_list();
            }
            "table" => self.layout.end_block(),
            "table-row" => self.layout.end_row(),
            "table-cell" | "covered-table-cell" => self.layout.end_cell(),
            "frame" => self.in_title_frame = false,
            _ => {}
        }
    }

    fn note(&mut self, xml: &mut XmlReader<'_>) -> Result<(), IngestError> {
        let words = xml.text_content(MAX_NOTE_BYTES)?;
        // The text of a note begins with its own number.
        let words = words.trim();
        let mark = (self.notes.len() + 1).to_string();
        let words = words.strip_prefix(mark.as_str()).unwrap_or(words);
        if self.notes.len() < MAX_NOTES {
            self.write(&format!("[^{mark}]"));
            self.notes.push((mark, words.trim().to_owned()));
        }
        Ok(())
    }

    fn write(&mut self, words: &str) {
        if self.in_title {
            let title = self.title.get_or_insert_default();
            let room = MAX_TITLE_BYTES.saturating_sub(title.len());
            title.extend(words.chars().take(room));
        }
        self.layout.write(words);
    }
}

/// The document properties of `meta.xml`, as keys for [`extract_metadata`].
pub(crate) fn properties(
    text: &str,
    readers: &ReaderKeys,
) -> Result<Map<String, Raw>, IngestError> {
    let mut xml = XmlReader::new(text);
    let mut properties = DocumentProperties::new(readers);
    let (mut keywords, mut editors) = (Vec::new(), Vec::new());
    while let Some(piece) = xml.next()? {
        let XmlEvent::Open(tag) = piece else { continue };
        let key = match tag.name.as_str() {
            "title" => "title",
            "creation-date" => "date",
            "date" => "modified",
            "initial-creator" | "creator" => "author",
            "subject" => "subject",
            "description" => "description",
            "language" => "language",
            "keyword" => "keywords",
            "user-defined" => {
                add_custom_reader_property(&tag, &mut xml, &mut properties)?;
                continue;
            }
            name => {
                properties.pass_over(name);
                continue;
            }
        };
        let words = properties.text_of(key, &mut xml)?;
        match tag.name.as_str() {
            "keyword" => add_keywords(&mut keywords, &words),
            "creator" => editors.push(words),
            _ => properties.add(key, words),
        }
        // Two are enough to notice that the property is repeated.
        editors.truncate(2);
    }
    properties.add_list("keywords", keywords, MAX_KEYWORDS);
    // The creator of the first version is the author and takes precedence over whoever saved the file last.
    if !properties.contains("author") {
        for words in editors {
            properties.add("author", words);
        }
    }
    Ok(properties.into_keys())
}

/// Adds the user-defined property that was opened last if it is the reader field. No other ones are read.
fn add_custom_reader_property(
    tag: &XmlTag<'_>,
    xml: &mut XmlReader<'_>,
    properties: &mut DocumentProperties<'_>,
) -> Result<(), IngestError> {
    let name = tag.get("name").unwrap_or_default();
    if properties.is_reader_field(&name) {
        let kind = tag.get("value-type").unwrap_or_default();
        match matches!(kind.as_str(), "" | "string") {
            true => properties.add(&name, properties.text_of(&name, xml)?),
            false => properties.add_fault(&name, ReaderFault::NotText),
        }
    }
    Ok(())
}

/// Adds the keywords of one element. The format has one element per keyword; some programs write several,
/// separated by commas, into one.
fn add_keywords(keywords: &mut Vec<String>, words: &str) {
    let room = MAX_LISTED_VALUES.saturating_sub(keywords.len());
    let parts = words.split([',', ';']).map(str::trim);
    let parts: Vec<_> = parts.filter(|part| !part.is_empty()).take(room).collect();
    // An empty element stays, and so does a text that may have been cut: as the reader field, both are
    // malformed.
    if parts.is_empty() || words.len() > MAX_READER_TEXT_BYTES {
        keywords.extend((room > 0).then(|| words.to_owned()));
    } else {
        keywords.extend(parts.into_iter().map(str::to_owned));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(inside: &str, expect: &str) {
        let mut body = OdtBody {
            max_bytes: 1_000,
            ..OdtBody::default()
        };
        let styles = "<style style:name='P1' parent-style-name='Title'/><list-style style:name='L1'><list-level-style-number level='1' num-format='1'/></list-style>";
        body.read(&format!("<doc>{styles}<body>{inside}</body></doc>"))
            .unwrap();
        assert_eq!(body.layout.finish(), expect, "{inside}");
    }

    #[test]
    fn paragraphs_lists_and_tables() {
        check(
            "<h outline-level='2'>Far<span>es</span></h>\n<p>One<s c='3'/>two<line-break/>three</p><p>four</p>",
            "## Fares\n\nOne two\nthree\n\nfour",
        );
        check(
            "<list style-name='L1'><list-item><p>a</p><list><list-item><p>b</p></list-item></list></list-item><list-item><p>c</p></list-item></list><list style-name='L9'><list-item><p>d</p></list-item></list>",
            "1. a\n  1. b\n2. c\n\n- d",
        );
        check(
            "<table><table-row><table-cell><p>a</p></table-cell><table-cell><p>b</p></table-cell></table-row></table>",
            "a | b",
        );
        check(
            "<p style-name='P1'>T</p><p>a<annotation><p>x</p></annotation></p>",
            "# T\n\na",
        );
    }

    #[test]
    fn slides_are_pages() {
        check(
            "<page><frame presentation:class='title'><p>One</p></frame><frame><p>a</p></frame><notes><p>n</p></notes></page><page><p>b</p></page>",
            "# One\n\na\n\nNotes:\nn\n\u{C}\nb",
        );
    }

    #[test]
    fn text_ends_at_its_bound() {
        let long = |count: usize| {
            let mut body = OdtBody {
                max_bytes: 40,
                ..OdtBody::default()
            };
            body.read(&format!("<a><body><p>{}</p></body></a>", "x".repeat(count)))
        };
        assert_eq!(long(40), Ok(()));
        assert_eq!(long(41), Err(IngestError::TextTooLong { limit: 10 }));
    }

    #[test]
    fn notes_and_keywords_end_at_their_bounds() {
        let mut body = OdtBody {
            max_bytes: usize::MAX,
            ..OdtBody::default()
        };
        let note = "<note><note-body><p>n</p></note-body></note>".repeat(MAX_NOTES + 1);
        body.read(&format!("<a><body><p>{note}</p></body></a>"))
            .unwrap();
        assert_eq!(body.notes.len(), MAX_NOTES);
        let keywords = "<keyword>k</keyword>".repeat(MAX_KEYWORDS + 1);
        let keys = properties(&format!("<a>{keywords}</a>"), &ReaderKeys::default()).unwrap();
        assert_eq!(
            keys["keywords"].as_array().map(Vec::len),
            Some(MAX_KEYWORDS)
        );
    }
}
