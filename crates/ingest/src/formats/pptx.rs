//! PowerPoint parser: one presentation becomes one document with a page for each slide, made of its title
//! as a heading, its text, its tables and the speaker notes.

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

/// The most slides of a presentation that are read.
const MAX_SLIDES: usize = 10_000;

/// The most bytes kept of a slide's title.
const MAX_TITLE_BYTES: usize = 16 * 1024;

pub(crate) const FORMAT: PackageFormat = PackageFormat {
    name: "pptx",
    extensions: &["pptm", "pptx", "ppsx"],
    main_kind: Some("presentationml"),
    media_types: &[],
    part: "ppt/",
    parse,
};

fn parse(
    input: &ParserInput<'_>,
    parts: &mut PackageParts<'_>,
    main: &OoxmlMainPart,
) -> Result<ParsedFile, IngestError> {
    let all = relationships(parts, &main.path)?;
    let mut layout = TextLayout::default();
    let mut first_title = None;
    let slides = slide_order(&parts.required_text(&main.path)?)?;
    for (index, id) in slides.iter().enumerate() {
        if index > 0 {
            layout.page_break();
        }
        let Some(relation) = all.iter().find(|relation| relation.id == *id) else {
            continue;
        };
        let Some(text) = parts.text(&relation.path)? else {
            continue;
        };
        let notes = relationships(parts, &relation.path)?;
        let notes = notes.iter().find(|relation| relation.kind == "notesSlide");
        let notes = notes.map_or(Ok(None), |relation| parts.text(&relation.path))?;
        let slide = PptxSlide::read(&text)?;
        if first_title.is_none() && !slide.title.trim().is_empty() {
            first_title = Some(slide.title.clone());
        }
        slide.write(&mut layout);
        if let Some(notes) = notes {
            optional_part(write_notes(&notes, &mut layout))?;
        }
        let limit = input.limits.max_text_chars;
        if layout.len() > limit.saturating_mul(4) {
            return Err(IngestError::TextTooLong { limit });
        }
    }
    let readers = ReaderKeys::for_input(input);
    let found = properties(parts, main, &readers);
    let is_damaged = found.is_err();
    let mut keys = optional_part(found)?;
    // A title that is the reader field is neither replaced nor made up.
    if !readers.covers_key("title") {
        // PowerPoint's own placeholder title says nothing.
        if keys
            .get("title")
            .is_some_and(|title| title == "PowerPoint Presentation")
        {
            keys.remove("title");
        }
        if let Some(title) = first_title {
            keys.entry("title").or_insert(title.into());
        }
    }
    let mut metadata = extract_metadata(keys, &KEYS, input);
    if is_damaged {
        metadata.mark_readers_malformed(&readers);
    }
    build_document(input, layout.finish(), metadata)
}

/// Relationship ids of the slides in presentation order.
fn slide_order(presentation: &str) -> Result<Vec<String>, IngestError> {
    let mut xml = XmlReader::new(presentation);
    let mut ids = Vec::new();
    while let Some(piece) = xml.next()? {
        let XmlEvent::Open(tag) = piece else { continue };
        if tag.name == "sldId" && ids.len() < MAX_SLIDES {
            ids.push(
                tag.get_exact("r:id")
                    .or_else(|| tag.get("id"))
                    .unwrap_or_default(),
            );
        }
    }
    Ok(ids)
}

/// Parser state and content of one slide. `level` is the list depth of a paragraph whose text has not
/// begun; `None` after that, and in plain paragraphs.
#[derive(Default)]
struct PptxSlide {
    title: String,
    body: TextLayout,
    shape: PptxShapeRole,
    in_text: bool,
    level: Option<usize>,
}

/// The role of the shape that is being read.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum PptxShapeRole {
    #[default]
    Free,
    Title,
    /// A bulleted list, as most slides have one.
    Points,
    /// The slide number, date and footer, which every slide repeats and the text leaves out.
    Frame,
}

impl PptxSlide {
    fn read(text: &str) -> Result<Self, IngestError> {
        let mut slide = Self::default();
        let mut xml = XmlReader::new(text);
        while let Some(piece) = xml.next()? {
            match piece {
                XmlEvent::Open(tag) if tag.name == "Fallback" => xml.skip()?,
                XmlEvent::Open(tag) => slide.open(&tag),
                XmlEvent::Close(name) => slide.close(&name),
                XmlEvent::Text(words) if slide.in_text => slide.add(&words),
                XmlEvent::Text(_) => {}
            }
        }
        Ok(slide)
    }

    fn open(&mut self, tag: &XmlTag<'_>) {
        match tag.name.as_str() {
            "sp" | "graphicFrame" => self.shape = PptxShapeRole::Free,
            "ph" => {
                self.shape = match tag.get("type").as_deref() {
                    Some("title" | "ctrTitle") => PptxShapeRole::Title,
                    Some("sldNum" | "dt" | "ftr" | "hdr" | "sldImg") => PptxShapeRole::Frame,
                    Some("body" | "obj") | None => PptxShapeRole::Points,
                    Some(_) => PptxShapeRole::Free,
                };
            }
            "p" => {
                self.body.end_line();
                self.level = (self.shape == PptxShapeRole::Points).then_some(0);
            }
            "pPr" => {
                let level = tag.get("lvl").and_then(|level| level.parse().ok());
                self.level = self.level.map(|own| level.unwrap_or(own));
            }
            "buNone" => self.level = None,
            "t" => self.in_text = true,
            "br" => self.add_break(),
            "tab" => self.add(" "),
            "tbl" => self.body.end_block(),
            "tr" => self.body.begin_row(),
            "tc" => self.body.begin_cell(),
            _ => {}
        }
    }

    fn close(&mut self, name: &str) {
        match name {
            "t" => self.in_text = false,
            "p" if self.shape == PptxShapeRole::Title => self.add(" "),
            "p" => self.body.end_line(),
            "sp" | "tbl" | "graphicFrame" => {
                self.body.set_list_depth(0);
                self.body.end_block();
                self.shape = PptxShapeRole::Free;
            }
            "tr" => self.body.end_row(),
            "tc" => self.body.end_cell(),
            _ => {}
        }
    }

    fn add(&mut self, words: &str) {
        match self.shape {
            PptxShapeRole::Title => {
                let room = MAX_TITLE_BYTES.saturating_sub(self.title.len());
                self.title.extend(words.chars().take(room));
            }
            PptxShapeRole::Frame => {}
            PptxShapeRole::Free | PptxShapeRole::Points => {
                if let Some(level) = self.level.take() {
                    self.body.set_list_depth(level.min(9) + 1);
                    self.body.item(None);
                }
                self.body.write(words);
            }
        }
    }

    fn add_break(&mut self) {
        match self.shape {
            PptxShapeRole::Title => self.add(" "),
            PptxShapeRole::Frame => {}
            PptxShapeRole::Free | PptxShapeRole::Points => self.body.line_break(),
        }
    }

    fn write(self, layout: &mut TextLayout) {
        if !self.title.trim().is_empty() {
            layout.heading(1);
            layout.write(&self.title);
            layout.end_heading();
        }
        layout.block(&self.body.into_raw());
    }
}

fn write_notes(text: &str, layout: &mut TextLayout) -> Result<(), IngestError> {
    let notes = PptxSlide::read(text)?.body.into_raw();
    // Indented lines are list items on a slide but prose in its notes.
    let lines = notes
        .lines()
        .map(|line| line.trim_start().trim_start_matches("- "));
    let lines: Vec<_> = lines.filter(|line| !line.is_empty()).collect();
    if !lines.is_empty() {
        layout.block(&format!("Notes: {}", lines.join("\n")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(shapes: &str, expect: &str) {
        let slide = PptxSlide::read(&format!("<sld>{shapes}</sld>")).unwrap();
        let mut layout = TextLayout::default();
        slide.write(&mut layout);
        assert_eq!(layout.finish(), expect, "{shapes}");
    }

    #[test]
    fn titles_come_first_and_points_are_items() {
        check(
            "<sp><ph idx='1'/><p><r><t>Rope</t></r></p><p><pPr lvl='1'/><r><t>of hemp</t></r></p><p/></sp>\
             <sp><ph type='title'/><p><r><t>What to</t></r><br/><r><t>bring</t></r></p></sp>\
             <sp><ph type='sldNum'/><p><t>7</t></p></sp>\
             <sp><p><pPr/><t>Free words</t></p><p><t>second</t></p></sp>",
            "# What to bring\n\n- Rope\n  - of hemp\n\nFree words\nsecond",
        );
        check(
            "<sp><ph type='body'/><p><pPr><buNone/></pPr><t>a</t></p></sp>",
            "a",
        );
    }

    #[test]
    fn tables_become_rows() {
        check(
            "<graphicFrame><tbl><tr><tc><p><t>a</t></p></tc><tc><p><t>b</t></p></tc></tr></tbl></graphicFrame>",
            "a | b",
        );
    }

    #[test]
    fn slides_end_at_their_bound() {
        let count = |count: usize| {
            slide_order(&format!(
                "<a>{}</a>",
                "<sldId id='1' r:id='x'/>".repeat(count)
            ))
        };
        assert_eq!(count(MAX_SLIDES).unwrap().len(), MAX_SLIDES);
        assert_eq!(count(MAX_SLIDES + 1).unwrap().len(), MAX_SLIDES);
    }
}
