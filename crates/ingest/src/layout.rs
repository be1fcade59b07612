//! Text layout: renders the parts of a formatted document as plain Markdown lines that people and models read
//! alike. Headings become Markdown headings, list items get a bullet or number, the cells of a row share a
//! line, and pages are separated by U+000C (form feed).
//!
//! Every byte is written once and, inside table rows, moved at most [`MAX_ROWS`] times. The work therefore
//! grows with the text and not with its nesting.

use crate::clean::clean;

/// The deepest nesting of table rows that are joined into one line; rows further down become paragraphs. A row is moved
/// once for each row around it, so the limit is what keeps the work proportional to the text. Nested tables are used
/// for page layout, two or three deep.
const MAX_ROWS: usize = 4;

/// The most cells of a row that is joined into one line.
const MAX_CELLS: usize = 4_096;

/// The deepest indentation of lists and quotes that is rendered. Each level takes two characters at the start of every
/// line. Mail that was answered many times has dozens of quote levels, of which a reader distinguishes the first few.
const MAX_INDENT: usize = 6;

/// The deepest heading level of Markdown.
const MAX_LEVEL: u8 = 6;

/// The separator between the cells of a row.
const BETWEEN_CELLS: &str = " | ";

/// The separator between two pages.
const PAGE_BREAK: &str = "\n\u{C}\n";

/// The layout state. `line` is the offset at which the text of the open line begins. `mark` is written before
/// the next line, such as `- `. `deeper_rows` counts the open rows below the deepest one that can still be
/// joined.
#[derive(Debug, Default)]
pub(crate) struct TextLayout {
    out: String,
    line: Option<usize>,
    space: bool,
    gap: LineGap,
    heading: u8,
    mark: Option<String>,
    indent: usize,
    quotes: usize,
    code: Option<OpenCodeBlock>,
    rows: Vec<LayoutRow>,
    deeper_rows: usize,
}

/// The vertical space before the next line, in increasing order.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum LineGap {
    #[default]
    None,
    Line,
    Block,
}

/// A code block that is being written. `start` is the offset after its opening fence; `before` restores the
/// state if the block stays empty.
#[derive(Debug)]
struct OpenCodeBlock {
    start: usize,
    before: (usize, LineGap),
}

/// A table row that is being written: the gap before it, and the offsets of its cells.
#[derive(Debug)]
struct LayoutRow {
    start: usize,
    gap: LineGap,
    cells: Vec<(usize, usize)>,
    open: Option<usize>,
    /// Whether its cells stay paragraphs, because they can no longer be joined into one line.
    unjoined: bool,
}

impl TextLayout {
    /// Appends text to the open line, or begins one. White space collapses to one space, except in code.
    pub(crate) fn write(&mut self, text: &str) {
        if self.code.is_some() {
            return self.write_code(text);
        }
        for (index, word) in text.split(char::is_whitespace).enumerate() {
            self.space |= index > 0;
            if word.is_empty() {
                continue;
            }
            if self.line.is_none() {
                self.begin_line();
            } else if self.space {
                self.out.push(' ');
            }
            self.space = false;
            self.out.push_str(word);
        }
    }

    /// Ends the open line; the text that follows begins on the next one.
    pub(crate) fn end_line(&mut self) {
        self.end(LineGap::Line);
    }

    /// Ends the open line; the text that follows begins after an empty one.
    pub(crate) fn end_block(&mut self) {
        // List items stay together, even if each of them is a paragraph.
        self.end(if self.indent > 0 {
            LineGap::Line
        } else {
            LineGap::Block
        });
    }

    /// Writes an explicit line break. Headings stay on one line.
    pub(crate) fn line_break(&mut self) {
        if self.code.is_some() {
            self.out.push('\n');
        } else if self.heading > 0 {
            self.space = true;
        } else {
            self.end_line();
        }
    }

    /// Makes the next line a heading of this level, counted from 1.
    pub(crate) fn heading(&mut self, level: u8) {
        self.end(LineGap::Block);
        self.keep_rows_unjoined();
        self.heading = level.clamp(1, MAX_LEVEL);
    }

    /// Ends a heading; one without text leaves no trace.
    pub(crate) fn end_heading(&mut self) {
        self.end_block();
        self.heading = 0;
    }

    pub(crate) fn begin_list(&mut self) {
        self.end_block();
        self.indent += 1;
    }

    pub(crate) fn end_list(&mut self) {
        self.indent = self.indent.saturating_sub(1);
        self.mark = None;
        self.end_block();
    }

    /// Sets the number of lists in which the following text is nested.
    pub(crate) fn set_list_depth(&mut self, depth: usize) {
        if depth == self.indent {
            return;
        }
        let inside = depth > 0 && self.indent > 0;
        self.end(if inside {
            LineGap::Line
        } else {
            LineGap::Block
        });
        self.indent = depth;
        self.mark = None;
    }

    /// Makes the next line an item of the innermost list, bulleted if it has no number.
    pub(crate) fn item(&mut self, number: Option<u64>) {
        self.end_line();
        self.mark = Some(match number {
            Some(number) => format!("{number}. "),
            None => "- ".to_owned(),
        });
    }

    pub(crate) fn begin_quote(&mut self) {
        self.end_block();
        self.quotes += 1;
    }

    pub(crate) fn end_quote(&mut self) {
        self.end_block();
        self.quotes = self.quotes.saturating_sub(1);
    }

    /// Begins a code block, in which white space is preserved.
    pub(crate) fn begin_code(&mut self) {
        if self.code.is_some() {
            return;
        }
        self.end(LineGap::Block);
        self.keep_rows_unjoined();
        let before = (self.out.len(), self.gap);
        self.begin_line();
        self.line = None;
        self.out.push_str("```\n");
        let start = self.out.len();
        self.code = Some(OpenCodeBlock { start, before });
    }

    pub(crate) fn end_code(&mut self) {
        let Some(code) = self.code.take() else { return };
        let end = self.out.trim_end_matches('\n').len();
        if end < code.start {
            let (length, gap) = code.before;
            self.out.truncate(length);
            self.gap = gap;
        } else {
            self.out.truncate(end);
            self.out.push_str("\n```");
        }
        self.end(LineGap::Block);
    }

    /// Appends a block of lines that are laid out already.
    pub(crate) fn block(&mut self, lines: &str) {
        let lines = lines.trim_matches('\n');
        if lines.is_empty() {
            return;
        }
        self.end(LineGap::Block);
        self.begin_line();
        self.out.push_str(lines);
        self.line = None;
        self.end(LineGap::Block);
    }

    pub(crate) fn begin_row(&mut self) {
        self.end_line();
        if self.rows.len() >= MAX_ROWS {
            self.deeper_rows += 1;
            return self.keep_rows_unjoined();
        }
        self.rows.push(LayoutRow {
            start: self.out.len(),
            gap: self.gap,
            cells: Vec::new(),
            open: None,
            unjoined: false,
        });
    }

    pub(crate) fn begin_cell(&mut self) {
        self.end_line();
        let at = self.out.len();
        if let Some(row) = self.row() {
            row.open = Some(at);
        }
    }

    pub(crate) fn end_cell(&mut self) {
        self.end_line();
        let at = self.out.len();
        let Some(row) = self.row() else { return };
        if let Some(start) = row.open.take() {
            row.unjoined |= row.cells.len() >= MAX_CELLS;
            if !row.unjoined {
                row.cells.push((start, at));
            }
        }
    }

    pub(crate) fn end_row(&mut self) {
        self.end_cell();
        if self.deeper_rows > 0 {
            self.deeper_rows -= 1;
            return;
        }
        let Some(row) = self.rows.pop() else { return };
        let cell = |&(start, end): &(usize, usize)| self.out.get(start..end).map(str::trim);
        let cells: Vec<_> = row.cells.iter().filter_map(cell).collect();
        let several_lines = cells.iter().any(|cell| cell.contains('\n'));
        if row.unjoined || several_lines {
            return;
        }
        let line = cells.join(BETWEEN_CELLS);
        let line = line.trim_end_matches([' ', '|']).to_owned();
        self.out.truncate(row.start);
        self.gap = row.gap;
        if !line.is_empty() {
            self.begin_line();
            self.out.push_str(&line);
        }
        self.end_line();
    }

    /// Keeps the cells of all open rows as paragraphs, because their bytes must not move any more.
    pub(crate) fn keep_rows_unjoined(&mut self) {
        for row in &mut self.rows {
            row.unjoined = true;
            row.cells = Vec::new();
        }
    }

    pub(crate) fn page_break(&mut self) {
        self.end_code();
        self.end(LineGap::None);
        self.keep_rows_unjoined();
        self.gap = LineGap::None;
        self.out.push_str(PAGE_BREAK);
    }

    pub(crate) fn len(&self) -> usize {
        self.out.len()
    }

    /// Returns the raw text, to be sliced and cleaned by the caller.
    pub(crate) fn into_raw(mut self) -> String {
        self.end_code();
        self.end(LineGap::None);
        self.out
    }

    /// Returns the whole text, sanitized page by page.
    pub(crate) fn finish(self) -> String {
        clean_pages(&self.into_raw())
    }

    fn row(&mut self) -> Option<&mut LayoutRow> {
        if self.deeper_rows > 0 {
            return None;
        }
        self.rows.last_mut()
    }

    fn end(&mut self, gap: LineGap) {
        if self.code.is_some() {
            return;
        }
        if let Some(start) = self.line.take() {
            if self.heading == 0 {
                self.escape(start);
            }
            self.heading = 0;
        }
        self.space = false;
        self.gap = self.gap.max(gap);
    }

    fn begin_line(&mut self) {
        let newlines = match self.gap {
            LineGap::None => "",
            LineGap::Line => "\n",
            LineGap::Block => "\n\n",
        };
        if !self.out.is_empty() && !self.out.ends_with(PAGE_BREAK) {
            self.out.push_str(newlines);
        }
        self.gap = LineGap::None;
        if self.heading > 0 {
            (0..self.heading).for_each(|_| self.out.push('#'));
            self.out.push(' ');
        } else if self.rows.is_empty() {
            // A row gets one prefix for all of its cells.
            self.push_prefix();
        }
        if let Some(mark) = self.mark.take() {
            self.out.push_str(&mark);
        }
        self.line = Some(self.out.len());
    }

    fn push_prefix(&mut self) {
        (0..self.quotes.min(MAX_INDENT)).for_each(|_| self.out.push_str("> "));
        let marked = usize::from(self.mark.is_some());
        let indent = self.indent.saturating_sub(marked).min(MAX_INDENT);
        (0..indent).for_each(|_| self.out.push_str("  "));
    }

    /// Escapes a line that only looks like a heading or a fence.
    fn escape(&mut self, start: usize) {
        let line = self.out.get(start..).unwrap_or_default();
        let after = line.trim_start_matches('#');
        let like_heading = after.len() < line.len() && after.starts_with(' ');
        if like_heading || line.starts_with("```") || line.starts_with("~~~") {
            self.out.insert(start, '\\');
        }
    }

    fn write_code(&mut self, text: &str) {
        for (index, line) in text.split(['\n', '\u{B}', '\u{C}', '\u{85}']).enumerate() {
            // The first line break after the opening fence is not part of the code.
            let at_start = self
                .code
                .as_ref()
                .is_none_or(|code| code.start == self.out.len());
            if index > 0 && !at_start {
                self.out.push('\n');
            }
            let starts = self.out.ends_with('\n');
            let fence = line.trim_start();
            if starts && (fence.starts_with("```") || fence.starts_with("~~~")) {
                self.out.push('\\');
            }
            self.out.push_str(line);
        }
    }
}

/// Cleans each page separately, so that the form feeds between them survive.
pub(crate) fn clean_pages(text: &str) -> String {
    let pages: Vec<_> = text.split('\u{C}').map(clean).collect();
    pages.join("\u{C}")
}

#[cfg(test)]
mod tests;
