//! Property table of a Notion page that was exported as HTML; it is searched only for the access control
//! field.

use docent_unicode::truncate_bytes;

use crate::reader_field::{MAX_READER_TEXT_BYTES, ReaderKeys};

use super::emitter::HtmlTag;

/// The most bytes of a property name or value that are kept: more than a reader field may have, so that a
/// truncated one is malformed. Truncation at a character may leave three bytes less.
const MAX_BYTES: usize = MAX_READER_TEXT_BYTES + 4;

/// The cell to which the current text belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cell {
    Name,
    Value,
}

/// The row of the property table that is being read, and the access control fields in the rows before.
/// `depth` is the depth of the open table. At most two fields are kept, because two already make the field
/// ambiguous.
#[derive(Debug, Default)]
pub(super) struct PropertyTable {
    depth: Option<usize>,
    cell: Option<Cell>,
    name: String,
    value: String,
    found: Vec<(String, String)>,
}

impl PropertyTable {
    pub(super) fn open(&mut self, tag: &HtmlTag, depth: usize, readers: &ReaderKeys) {
        if self.depth.is_none() {
            let has_class = |class: &str| {
                let mut words = class.split_ascii_whitespace();
                words.any(|word| word.eq_ignore_ascii_case("properties"))
            };
            let is_property_table = tag.name == "table" && tag.get("class").is_some_and(has_class);
            self.depth = (is_property_table && readers.is_configured()).then_some(depth);
            return;
        }
        match tag.name.as_str() {
            "tr" => self.end_row(readers),
            "th" => self.cell = Some(Cell::Name),
            "td" => self.cell = Some(Cell::Value),
            // Multiple values stand in adjacent elements without a separator.
            _ if self.cell == Some(Cell::Value) => add(&mut self.value, ","),
            _ => {}
        }
    }

    pub(super) fn text(&mut self, text: &str) {
        match self.cell {
            Some(Cell::Name) => add(&mut self.name, text),
            Some(Cell::Value) => add(&mut self.value, text),
            None => {}
        }
    }

    /// Handles the end of the element at this depth.
    pub(super) fn close(&mut self, depth: usize, readers: &ReaderKeys) {
        if self.depth.is_some_and(|open| open >= depth) {
            self.end_row(readers);
            self.depth = None;
        }
    }

    pub(super) fn take(&mut self) -> Vec<(String, String)> {
        std::mem::take(&mut self.found)
    }

    fn end_row(&mut self, readers: &ReaderKeys) {
        let (name, value) = (
            std::mem::take(&mut self.name),
            std::mem::take(&mut self.value),
        );
        self.cell = None;
        if readers.covers_key(&name) && self.found.len() < 2 {
            self.found.push((name, value));
        }
    }
}

fn add(to: &mut String, text: &str) {
    let room = MAX_BYTES.saturating_sub(to.len());
    to.push_str(truncate_bytes(text, room));
}
