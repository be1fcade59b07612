//! Paragraph styles of Word documents: resolves a style to its role, such as heading, title or table of
//! contents.

use std::collections::HashMap;

use crate::error::IngestError;
use crate::xml::{XmlEvent, XmlReader};

use super::numbering::parse_level;
use super::{is_on, val_attribute};

/// The most styles of a document; paragraphs in others count as body text.
const MAX_STYLES: usize = 10_000;

/// The longest inheritance chain of a style that is followed. Styles that people define inherit from a few others. The
/// limit also ends a chain that leads back to itself, which no program writes but a file can contain.
const MAX_ANCESTORS: usize = 16;

/// The role of a paragraph in the structure of the document.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParagraphRole {
    #[default]
    Body,
    Title,
    Heading(u8),
    /// An entry of the table of contents, which only repeats a heading and is dropped.
    Contents,
}

#[derive(Debug, Default)]
pub(super) struct DocxStyles {
    by_id: HashMap<String, DocxStyle>,
}

#[derive(Debug, Default)]
struct DocxStyle {
    name: String,
    parent: String,
    outline: Option<u8>,
    list: Option<(String, usize)>,
    hides: bool,
}

impl DocxStyles {
    pub(super) fn read(text: &str) -> Result<Self, IngestError> {
        let mut xml = XmlReader::new(text);
        let mut styles = Self::default();
        let mut id = String::new();
        let mut style = DocxStyle::default();
        while let Some(piece) = xml.next()? {
            match piece {
                XmlEvent::Open(tag) => match tag.name.as_str() {
                    "style" => {
                        id = tag.get("styleId").unwrap_or_default();
                        style = DocxStyle::default();
                    }
                    "name" => style.name = val_attribute(&tag).to_lowercase(),
                    "basedOn" => style.parent = val_attribute(&tag),
                    "outlineLvl" => style.outline = val_attribute(&tag).parse().ok(),
                    "numId" => style.list.get_or_insert_default().0 = val_attribute(&tag),
                    "ilvl" => {
                        style.list.get_or_insert_default().1 = parse_level(&val_attribute(&tag));
                    }
                    "vanish" => style.hides = is_on(&tag),
                    _ => {}
                },
                XmlEvent::Close(name) if name == "style" && styles.by_id.len() < MAX_STYLES => {
                    styles
                        .by_id
                        .insert(std::mem::take(&mut id), std::mem::take(&mut style));
                }
                XmlEvent::Close(_) | XmlEvent::Text(_) => {}
            }
        }
        Ok(styles)
    }

    /// Resolves the role of a paragraph from its style; an outline level of its own overrides the style.
    pub(super) fn role(&self, id: &str, own: Option<u8>) -> ParagraphRole {
        if let Some(level) = own {
            return role_of_outline_level(level);
        }
        if !self.by_id.contains_key(id) {
            return role_of_style_name(&id.to_lowercase()).unwrap_or_default();
        }
        let found = self
            .inheritance_chain(id)
            .enumerate()
            .find_map(|(distance, style)| {
                // Subtitles often inherit from the Title style without being the title.
                let named = role_of_style_name(&style.name)
                    .filter(|role| distance == 0 || *role != ParagraphRole::Title);
                named.or_else(|| style.outline.map(role_of_outline_level))
            });
        found.unwrap_or_default()
    }

    /// The list and level that a style assigns to its paragraphs.
    pub(super) fn list(&self, id: &str) -> Option<(String, usize)> {
        self.inheritance_chain(id)
            .find_map(|style| style.list.clone())
    }

    pub(super) fn hides(&self, id: &str) -> bool {
        self.inheritance_chain(id).any(|style| style.hides)
    }

    /// The style followed by its ancestors, nearest first.
    fn inheritance_chain(&self, id: &str) -> impl Iterator<Item = &DocxStyle> {
        let first = self.by_id.get(id);
        let next = |style: &&DocxStyle| self.by_id.get(&style.parent);
        std::iter::successors(first, next).take(MAX_ANCESTORS)
    }
}

/// Maps an outline level to a role. Levels count from 0, and 9 means body text.
fn role_of_outline_level(level: u8) -> ParagraphRole {
    if level < 9 {
        ParagraphRole::Heading(level + 1)
    } else {
        ParagraphRole::Body
    }
}

/// Recognizes the built-in styles by name. Word stores these names in English whatever the language of its
/// interface.
fn role_of_style_name(name: &str) -> Option<ParagraphRole> {
    if name == "title" {
        return Some(ParagraphRole::Title);
    }
    if let Some(rest) = name.strip_prefix("toc")
        && (rest.trim() == "heading" || rest.trim().parse::<u8>().is_ok())
    {
        return Some(ParagraphRole::Contents);
    }
    let level: u8 = name.strip_prefix("heading")?.trim().parse().ok()?;
    (1..=9)
        .contains(&level)
        .then_some(ParagraphRole::Heading(level))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_come_from_names_levels_and_ancestors() {
        let styles = DocxStyles::read(
            "<styles><style w:styleId='U1'><name w:val='Heading 2'/></style>\
             <style w:styleId='Mine'><name w:val='Mine'/><basedOn w:val='U1'/></style>\
             <style w:styleId='L'><name w:val='x'/><pPr><outlineLvl w:val='2'/></pPr></style>\
             <style w:styleId='V1'><name w:val='toc 1'/></style>\
             <style w:styleId='T'><name w:val='Title'/></style>\
             <style w:styleId='Author'><name w:val='Author'/><basedOn w:val='T'/></style>\
             <style w:styleId='loop'><name w:val='y'/><basedOn w:val='loop'/></style></styles>",
        )
        .unwrap();
        for (id, own, role) in [
            ("U1", None, ParagraphRole::Heading(2)),
            ("Mine", None, ParagraphRole::Heading(2)),
            ("Mine", Some(0), ParagraphRole::Heading(1)),
            ("U1", Some(9), ParagraphRole::Body),
            ("L", None, ParagraphRole::Heading(3)),
            ("V1", None, ParagraphRole::Contents),
            ("T", None, ParagraphRole::Title),
            ("Author", None, ParagraphRole::Body),
            ("loop", None, ParagraphRole::Body),
            ("Heading3", None, ParagraphRole::Heading(3)),
            ("", None, ParagraphRole::Body),
        ] {
            assert_eq!(styles.role(id, own), role, "{id} {own:?}");
        }
    }

    #[test]
    fn styles_end_at_their_bound() {
        let read = |count: usize| {
            let style = |n| format!("<style styleId='s{n}'><name val='Title'/></style>");
            let all: String = (0..count).map(style).collect();
            let styles = DocxStyles::read(&format!("<a>{all}</a>")).unwrap();
            styles.role(&format!("s{}", count - 1), None)
        };
        assert_eq!(read(MAX_STYLES), ParagraphRole::Title);
        assert_eq!(read(MAX_STYLES + 1), ParagraphRole::Body);
    }
}
