//! Recognizes the metadata of an MDX page: an object that the page exports, in JavaScript.

use crate::reader_field::ReaderKeys;

/// A statement such as `export const … = {` up to the brace that closes it.
#[derive(Debug, Default)]
pub(super) struct ExportBlock {
    /// How many braces are open, of any kind.
    depth: usize,
    /// The quotation mark of a string that began and did not end. Braces in strings do not count.
    quote: Option<char>,
    is_open: bool,
}

impl ExportBlock {
    /// The block that a line opens. Only a statement at the start of its line is one.
    pub(super) fn open(line: &str) -> Option<Self> {
        let statement = line.strip_prefix("export")?;
        statement.starts_with(char::is_whitespace).then(|| {
            let mut block = Self::default();
            block.count_braces(line);
            block.is_open = block.depth > 0 || line.trim_end().ends_with('=');
            block
        })
    }

    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Processes the next line of the block.
    pub(super) fn process_line(&mut self, line: &str) {
        self.count_braces(line);
        self.is_open = self.depth > 0 || line.trim().is_empty();
    }

    fn count_braces(&mut self, line: &str) {
        let mut chars = line.chars();
        while let Some(c) = chars.next() {
            match (self.quote, c) {
                (Some(_), '\\') => drop(chars.next()),
                (Some(quote), c) if quote == c => self.quote = None,
                (Some(_), _) => {}
                (None, '\'' | '"' | '`') => self.quote = Some(c),
                (None, '{' | '[' | '(') => self.depth = self.depth.saturating_add(1),
                (None, '}' | ']' | ')') => self.depth = self.depth.saturating_sub(1),
                (None, _) => {}
            }
        }
        // Only a template string extends over several lines. An apostrophe may also stand in a comment.
        self.quote = self.quote.filter(|quote| *quote == '`');
    }

    /// Whether a line of an exported statement assigns the access control field a value.
    pub(super) fn names_field(line: &str, readers: &ReaderKeys) -> bool {
        let words = line.trim_start().trim_start_matches("export").trim_start();
        let kinds = ["const ", "let ", "var "];
        let declared = kinds.iter().find_map(|kind| words.strip_prefix(kind));
        readers.are_assigned_in_line(declared.unwrap_or(words))
    }
}
