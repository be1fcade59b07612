//! The table of properties above a page that Notion exported as HTML, searched for the one that names the readers.

use crate::reader_field::ReaderKeys;

use super::emitter::HtmlTag;

/// The most bytes kept of a name or a value.
const MAX_BYTES: usize = 64 * 1024;

/// Which cell of a row the text at hand belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cell {
    Name,
    Value,
}

/// The row of a property table that is being read, and what was found in the rows before.
#[derive(Debug, Default)]
pub(super) struct PropertyTable {
    /// How deep the table lies, while it is open.
    depth: Option<usize>,
    cell: Option<Cell>,
    name: String,
    value: String,
    /// Properties that name readers; two are as bad as many.
    found: Vec<(String, String)>,
}

impl PropertyTable {
    pub(super) fn open(&mut self, tag: &HtmlTag, depth: usize, readers: &ReaderKeys) {
        if self.depth.is_none() {
            let has_class = |class: &str| {
                let mut words = class.split_ascii_whitespace();
                words.any(|word| word.eq_ignore_ascii_case("properties"))
            };
            let is_it = tag.name == "table" && tag.get("class").is_some_and(has_class);
            self.depth = (is_it && readers.is_configured()).then_some(depth);
            return;
        }
        match tag.name.as_str() {
            "tr" => self.end_row(readers),
            "th" => self.cell = Some(Cell::Name),
            "td" => self.cell = Some(Cell::Value),
            // Several values stand in elements of their own, with nothing between them.
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

    /// An element at this depth has ended.
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
    to.push_str(text.get(..text.floor_char_boundary(room)).unwrap_or(text));
}
