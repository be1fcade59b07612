//! Word (`.docx`) parser: one document per file, with headings by style, lists, tables, footnotes and
//! endnotes.

mod numbering;
mod styles;

use crate::error::IngestError;
use crate::fields::metadata::extract_metadata;
use crate::formats::html::KEYS;
use crate::formats::package::PackageFormat;
use crate::formats::package::ooxml::{OoxmlMainPart, properties, relationships};
use crate::formats::package::package_parts::{PackageParts, optional_part};
use crate::layout::TextLayout;
use crate::parser::{ParsedFile, ParserInput};
use crate::reader_field::ReaderKeys;
use crate::single_document::build_document;
use crate::xml::{XmlEvent, XmlReader, XmlTag};

use numbering::DocxNumbering;
use styles::{DocxStyles, ParagraphRole};

/// The most bytes of a paragraph that are kept as a title candidate. The candidate is kept beside the text until the
/// paragraph ends, and a paragraph may be a megabyte long. A title is truncated to far less later; the rest is room for
/// what cleaning removes.
const MAX_TITLE_BYTES: usize = 16 * 1024;

pub(crate) const FORMAT: PackageFormat = PackageFormat {
    name: "docx",
    extensions: &["docx", "docm", "dotx"],
    main_kind: Some("wordprocessingml"),
    media_types: &[],
    part: "word/",
    parse,
};

fn parse(
    input: &ParserInput<'_>,
    parts: &mut PackageParts<'_>,
    main: &OoxmlMainPart,
) -> Result<ParsedFile, IngestError> {
    let relations = relationships(parts, &main.path)?;
    let mut part = |kind: &str| -> Result<String, IngestError> {
        let relation = relations.iter().find(|relation| relation.kind == kind);
        let text = relation.map_or(Ok(None), |relation| {
            optional_part(parts.text(&relation.path))
        })?;
        Ok(text.unwrap_or_default())
    };
    let mut body = DocxBody {
        styles: optional_part(DocxStyles::read(&part("styles")?))?,
        numbering: optional_part(DocxNumbering::read(&part("numbering")?))?,
        max_bytes: input.limits.max_text_chars.saturating_mul(4),
        ..DocxBody::default()
    };
    let (footnotes, endnotes) = (part("footnotes")?, part("endnotes")?);
    body.read(&parts.required_text(&main.path)?, "")?;
    optional_part(body.read(&footnotes, ""))?;
    optional_part(body.read(&endnotes, "end-"))?;
    let readers = ReaderKeys::for_input(input);
    let metadata = properties(parts, main, &readers);
    let is_damaged = metadata.is_err();
    let mut facts = extract_metadata(optional_part(metadata)?, &KEYS, input);
    if is_damaged {
        facts.mark_readers_malformed(&readers);
    }
    facts.title = facts.title.or(body.title(input.limits.max_title_chars));
    build_document(input, body.layout.finish(), facts)
}

/// Parser state for the body and the notes of a document. `paragraphs` is a stack, because text boxes contain
/// paragraphs inside a paragraph; `label` is written before the next words, such as the mark of a footnote.
#[derive(Default)]
struct DocxBody {
    layout: TextLayout,
    styles: DocxStyles,
    numbering: DocxNumbering,
    max_bytes: usize,
    paragraphs: Vec<DocxParagraph>,
    in_properties: bool,
    in_text: bool,
    hidden_run: bool,
    label: Option<String>,
    prefix: &'static str,
    titles: DocxTitles,
}

/// The title candidates: the first paragraph in the Title style and the first level-one heading.
#[derive(Default)]
struct DocxTitles {
    title: String,
    heading: String,
}

impl DocxTitles {
    /// Closes the candidates at the end of a paragraph, so that only the first with text is kept.
    fn end_paragraph(&mut self) {
        for title in [&mut self.title, &mut self.heading] {
            if !title.trim().is_empty() && !title.ends_with('\n') {
                title.push('\n');
            }
        }
    }
}

#[derive(Default)]
struct DocxParagraph {
    style: String,
    outline: Option<u8>,
    list: Option<(String, usize)>,
    role: ParagraphRole,
    begun: bool,
}

impl DocxBody {
    /// Parses the body or one of the note parts, whose marks begin with `prefix`.
    fn read(&mut self, text: &str, prefix: &'static str) -> Result<(), IngestError> {
        self.prefix = prefix;
        // A truncated part leaves its elements open; the notes parsed after it must start clean.
        self.paragraphs.clear();
        (self.in_properties, self.in_text, self.hidden_run) = (false, false, false);
        self.label = None;
        let mut xml = XmlReader::new(text);
        while let Some(piece) = xml.next()? {
            match piece {
                XmlEvent::Open(tag) => self.open(&tag, &mut xml)?,
                XmlEvent::Close(name) => self.close(&name),
                XmlEvent::Text(words) if self.in_text => self.write(&words),
                XmlEvent::Text(_) => {}
            }
            if self.layout.len() > self.max_bytes {
                return Err(IngestError::TextTooLong {
                    limit: self.max_bytes / 4,
                });
            }
        }
        self.layout.set_list_depth(0);
        self.layout.end_block();
        Ok(())
    }

    fn open(&mut self, tag: &XmlTag<'_>, xml: &mut XmlReader<'_>) -> Result<(), IngestError> {
        match tag.name.as_str() {
            // Tracked deletions and moves, fallback content that repeats other text, and records of former
            // formatting.
            "del" | "moveFrom" | "Fallback" | "instrText" | "rt" | "pPrChange" | "rPrChange"
            | "sectPrChange" | "tblPrChange" | "tcPrChange" | "trPrChange" | "numberingChange" => {
                return xml.skip();
            }
            "footnote" | "endnote" => return self.open_note(tag, xml),
            "p" => {
                self.layout.end_block();
                self.paragraphs.push(DocxParagraph::default());
            }
            "pPr" => self.in_properties = true,
            "t" => self.in_text = !self.in_properties,
            "r" => self.hidden_run = false,
            "vanish" => self.hidden_run = is_on(tag),
            "rStyle" => self.hidden_run |= self.styles.hides(&val_attribute(tag)),
            "tbl" => {
                self.layout.set_list_depth(0);
                self.layout.end_block();
            }
            "tr" => self.layout.begin_row(),
            "tc" => self.layout.begin_cell(),
            name if self.in_properties => self.property(name, tag),
            "tab" | "ptab" => self.write(" "),
            "noBreakHyphen" => self.write("-"),
            "br" | "cr" => self.layout.line_break(),
            "footnoteReference" => self.write_note_reference(tag, ""),
            "endnoteReference" => self.write_note_reference(tag, "end-"),
            _ => {}
        }
        Ok(())
    }

    fn open_note(&mut self, tag: &XmlTag<'_>, xml: &mut XmlReader<'_>) -> Result<(), IngestError> {
        // Word stores the separator lines as notes of their own type.
        if tag.get("type").is_some_and(|kind| kind != "normal") {
            return xml.skip();
        }
        let id = tag.get("id").unwrap_or_default();
        self.label = Some(format!("[^{}{id}]: ", self.prefix));
        Ok(())
    }

    fn close(&mut self, name: &str) {
        match name {
            "p" => {
                self.layout.end_heading();
                self.paragraphs.pop();
                self.titles.end_paragraph();
            }
            "pPr" => {
                self.in_properties = false;
                self.begin_paragraph();
            }
            "t" => self.in_text = false,
            "tbl" => self.layout.end_block(),
            "tr" => self.layout.end_row(),
            "tc" => self.layout.end_cell(),
            "footnote" | "endnote" => self.label = None,
            _ => {}
        }
    }

    /// Applies one property to the innermost open paragraph.
    fn property(&mut self, name: &str, tag: &XmlTag<'_>) {
        let Some(paragraph) = self.paragraphs.last_mut() else {
            return;
        };
        let list = paragraph.list.get_or_insert_default();
        match name {
            "pStyle" => paragraph.style = val_attribute(tag),
            "outlineLvl" => paragraph.outline = val_attribute(tag).parse().ok(),
            "ilvl" => list.1 = numbering::parse_level(&val_attribute(tag)),
            "numId" => list.0 = val_attribute(tag),
            _ => {}
        }
    }

    /// Starts the next line in the role that the properties of the innermost paragraph give it.
    fn begin_paragraph(&mut self) {
        let Some(paragraph) = self.paragraphs.last_mut() else {
            return;
        };
        paragraph.begun = true;
        paragraph.role = self.styles.role(&paragraph.style, paragraph.outline);
        let own = paragraph.list.take().filter(|(list, _)| !list.is_empty());
        let list = own.or_else(|| self.styles.list(&paragraph.style));
        match paragraph.role {
            ParagraphRole::Heading(level) => {
                self.layout.set_list_depth(0);
                self.layout.heading(level);
            }
            ParagraphRole::Title => {
                self.layout.set_list_depth(0);
                self.layout.heading(1);
            }
            ParagraphRole::Contents => {}
            // List id 0 removes a paragraph from the list of its style.
            ParagraphRole::Body => match list.filter(|(list, _)| list != "0") {
                Some((list, level)) => {
                    self.layout.set_list_depth(level + 1);
                    self.layout.item(self.numbering.next(&list, level));
                }
                None => self.layout.set_list_depth(0),
            },
        }
    }

    fn write_note_reference(&mut self, tag: &XmlTag<'_>, prefix: &str) {
        let id = tag.get("id").unwrap_or_default();
        self.write(&format!("[^{prefix}{id}]"));
    }

    fn write(&mut self, words: &str) {
        // A paragraph without properties begins with its first text run.
        if self
            .paragraphs
            .last()
            .is_some_and(|paragraph| !paragraph.begun)
        {
            self.begin_paragraph();
        }
        let role = self.paragraphs.last().map(|paragraph| paragraph.role);
        if self.hidden_run || role == Some(ParagraphRole::Contents) {
            return;
        }
        let kept = match role {
            Some(ParagraphRole::Title) => Some(&mut self.titles.title),
            Some(ParagraphRole::Heading(1)) => Some(&mut self.titles.heading),
            _ => None,
        };
        if let Some(kept) = kept.filter(|kept| !kept.ends_with('\n')) {
            let room = MAX_TITLE_BYTES.saturating_sub(kept.len());
            kept.extend(words.chars().take(room));
        }
        if let Some(label) = self.label.take() {
            self.layout.write(&label);
        }
        self.layout.write(words);
    }

    fn title(&self, max_chars: usize) -> Option<String> {
        let titles = [&self.titles.title, &self.titles.heading];
        let mut titles = titles
            .into_iter()
            .map(|title| crate::clean::clean_line(title));
        let mut title = titles.find(|title| !title.is_empty())?;
        crate::clean::truncate_chars(&mut title, max_chars);
        Some(title)
    }
}

/// The `val` attribute, which holds the value of most WordprocessingML elements.
fn val_attribute(tag: &XmlTag<'_>) -> String {
    tag.get("val").unwrap_or_default()
}

fn is_on(tag: &XmlTag<'_>) -> bool {
    !matches!(tag.get("val").as_deref(), Some("0" | "false" | "off"))
}

#[cfg(test)]
mod tests;
