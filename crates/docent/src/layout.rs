//! Markdown block parser: splits a passage into headings, paragraphs, lists, quotes, tables and code blocks, for
//! widgets and document pages.
//!
//! Only a safe subset of Markdown is supported: raw HTML stays text, and only `http` and `https` URLs become links. So
//! a hostile document can change its own layout and nothing else. widgets/src/payload.ts declares the same JSON shapes.

mod inline;

use std::ops::Range;

use docent_search::{heading, is_fence};
use serde::Serialize;

pub(crate) use inline::{TextSpan, spans};

/// The most cells of a table row; further cells are dropped.
const MAX_CELLS: usize = 24;

/// A block of the layout tree, serialized for widgets with its `kind` as a tag. The first row of a table is its header.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum LayoutBlock {
    Heading { level: usize, spans: Vec<TextSpan> },
    Paragraph { spans: Vec<TextSpan> },
    Quote { spans: Vec<TextSpan> },
    List { ordered: bool, items: Vec<ListItem> },
    Table { rows: Vec<Vec<Vec<TextSpan>>> },
    Code { spans: Vec<TextSpan> },
}

/// A list item. Nested lists are not a tree: each item carries its depth.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ListItem {
    /// The number as the document writes it: a citation of item 3 must not show item 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<u32>,
    /// The nesting depth, from 0 for the outermost list.
    #[serde(skip_serializing_if = "is_outermost")]
    depth: usize,
    spans: Vec<TextSpan>,
}

impl ListItem {
    pub(crate) fn number(&self) -> Option<u32> {
        self.number
    }

    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    pub(crate) fn spans(&self) -> &[TextSpan] {
        &self.spans
    }
}

fn is_outermost(depth: &usize) -> bool {
    *depth == 0
}

/// The parser state that passes from one passage to the next: a fenced code block may span several passages.
#[derive(Debug, Default)]
pub(crate) struct MarkdownLayout {
    fenced: bool,
}

/// The block under construction, with the lines that belong to it so far.
enum OpenBlock {
    Nothing,
    /// The byte range of consecutive lines.
    Paragraph(Range<usize>),
    Quote(Vec<TextSpan>),
    Items(bool, Vec<OpenListItem>),
    Rows(Vec<Range<usize>>),
    Code(Vec<TextSpan>),
}

struct OpenListItem {
    number: Option<u32>,
    depth: usize,
    range: Range<usize>,
}

impl MarkdownLayout {
    /// The state for passages that begin at byte `start` of a text: an odd number of code fences before it means that
    /// the passage begins inside a code block.
    pub(crate) fn at(text: &str, start: usize) -> Self {
        let before = text.get(..start).unwrap_or_default();
        let fences = before.lines().filter(|line| is_fence(line)).count();
        Self {
            fenced: fences % 2 == 1,
        }
    }

    /// Parses the next passage and marks the search matches in it.
    pub(crate) fn blocks(&mut self, text: &str, marks: &[Range<usize>]) -> Vec<LayoutBlock> {
        let mut writer = BlockBuilder {
            text,
            marks,
            open: if self.fenced {
                OpenBlock::Code(Vec::new())
            } else {
                OpenBlock::Nothing
            },
            done: Vec::new(),
        };
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            let start = at;
            at += line.len();
            let end = start + line.trim_end().len();
            if is_fence(line) {
                writer.close();
                self.fenced = !self.fenced;
                if self.fenced {
                    writer.open = OpenBlock::Code(Vec::new());
                }
            } else if self.fenced {
                writer.code(start..end);
            } else {
                writer.line(line, start, end);
            }
        }
        writer.close();
        writer.done
    }
}

struct BlockBuilder<'t> {
    text: &'t str,
    marks: &'t [Range<usize>],
    open: OpenBlock,
    done: Vec<LayoutBlock>,
}

impl BlockBuilder<'_> {
    fn spans(&self, range: Range<usize>) -> Vec<TextSpan> {
        spans(self.text, range, self.marks)
    }

    /// Parses a line outside of code blocks.
    fn line(&mut self, line: &str, start: usize, end: usize) {
        let words = line.trim_end();
        if words.trim().is_empty() {
            return self.close();
        }
        if let Some((level, title)) = heading(line) {
            self.close();
            let from = start + line.find(title).unwrap_or(0);
            let spans = self.spans(from..from + title.len());
            return self.done.push(LayoutBlock::Heading { level, spans });
        }
        if let Some((mark, number)) = item(words) {
            return self.item(start, start + mark..end, number);
        }
        if words.starts_with('|') {
            if !matches!(self.open, OpenBlock::Rows(_)) {
                self.close();
                self.open = OpenBlock::Rows(Vec::new());
            }
            if let OpenBlock::Rows(rows) = &mut self.open {
                rows.push(start..end);
            }
            return;
        }
        if let Some(rest) = words.strip_prefix('>') {
            return self.quote(end - rest.trim_start().len()..end);
        }
        match &mut self.open {
            OpenBlock::Paragraph(range) => range.end = end,
            // An indented line continues the list item above it.
            OpenBlock::Items(_, items) if line.starts_with([' ', '\t']) => {
                if let Some(last) = items.last_mut() {
                    last.range.end = end;
                }
            }
            _ => {
                self.close();
                self.open = OpenBlock::Paragraph(start..end);
            }
        }
    }

    fn item(&mut self, start: usize, range: Range<usize>, number: Option<u32>) {
        let ordered = number.is_some();
        let indent = self.text.get(start..).unwrap_or_default();
        let indent = indent.len() - indent.trim_start_matches(' ').len();
        let entry = OpenListItem {
            number,
            depth: (indent / 2).min(3),
            range,
        };
        match &mut self.open {
            // A nested item stays in the same list, even if its marker is of the other kind.
            OpenBlock::Items(kind, items) if *kind == ordered || entry.depth > 0 => {
                items.push(entry);
            }
            _ => {
                self.close();
                self.open = OpenBlock::Items(ordered, vec![entry]);
            }
        }
    }

    fn quote(&mut self, range: Range<usize>) {
        let more = self.spans(range);
        if let OpenBlock::Quote(spans) = &mut self.open {
            spans.push(TextSpan::plain("\n"));
            spans.extend(more);
        } else {
            self.close();
            self.open = OpenBlock::Quote(more);
        }
    }

    fn code(&mut self, range: Range<usize>) {
        let line = inline::plain(self.text, range, self.marks);
        if let OpenBlock::Code(spans) = &mut self.open {
            spans.extend(line);
            spans.push(TextSpan::plain("\n"));
        }
    }

    /// Finishes the block under construction.
    fn close(&mut self) {
        match std::mem::replace(&mut self.open, OpenBlock::Nothing) {
            OpenBlock::Nothing => {}
            OpenBlock::Paragraph(range) => {
                let spans = self.spans(range);
                self.done.push(LayoutBlock::Paragraph { spans });
            }
            OpenBlock::Quote(spans) => self.done.push(LayoutBlock::Quote { spans }),
            OpenBlock::Code(spans) => self.done.push(LayoutBlock::Code { spans }),
            OpenBlock::Items(ordered, entries) => {
                let item = |entry: OpenListItem| ListItem {
                    number: entry.number,
                    depth: entry.depth,
                    spans: self.spans(entry.range),
                };
                let items = entries.into_iter().map(item).collect();
                self.done.push(LayoutBlock::List { ordered, items });
            }
            OpenBlock::Rows(lines) => self.table(&lines),
        }
    }

    /// Lines that begin with a pipe: a table if the second line is a delimiter row, otherwise a paragraph.
    fn table(&mut self, lines: &[Range<usize>]) {
        let (Some(first), Some(last)) = (lines.first(), lines.last()) else {
            return;
        };
        let rule = lines.get(1).and_then(|line| self.text.get(line.clone()));
        let is_rule = rule.is_some_and(|rule| {
            rule.contains("--") && rule.chars().all(|c| matches!(c, '|' | '-' | ':' | ' '))
        });
        if !is_rule {
            let spans = self.spans(first.start..last.end);
            return self.done.push(LayoutBlock::Paragraph { spans });
        }
        let all = lines.iter().enumerate().filter(|(at, _)| *at != 1);
        let row = |(_, line): (usize, &Range<usize>)| {
            let cells = cells(self.text, line).into_iter().take(MAX_CELLS);
            cells.map(|cell| self.spans(cell)).collect()
        };
        let rows = all.map(row).collect();
        self.done.push(LayoutBlock::Table { rows });
    }
}

/// The byte ranges of the cells of a table row, split at pipes that no backslash escapes.
fn cells(text: &str, line: &Range<usize>) -> Vec<Range<usize>> {
    let words = text.get(line.clone()).unwrap_or_default();
    let mut bars = Vec::new();
    let mut escaped = false;
    for (at, byte) in words.bytes().enumerate() {
        if byte == b'|' && !escaped {
            bars.push(at);
        }
        escaped = byte == b'\\' && !escaped;
    }
    if !words.ends_with('|') || bars.len() == 1 {
        bars.push(words.len());
    }
    let between = bars.iter().zip(bars.iter().skip(1));
    let trimmed = between.map(|(from, to)| {
        let cell = words.get(from + 1..*to).unwrap_or_default();
        let start = line.start + from + 1 + (cell.len() - cell.trim_start().len());
        start..start + cell.trim().len()
    });
    trimmed.collect()
}

/// Parses the marker of a list item: its length with indentation, and the number of an ordered item.
fn item(line: &str) -> Option<(usize, Option<u32>)> {
    let rest = line.trim_start_matches(' ');
    let indent = line.len() - rest.len();
    if let Some(words) = ["- ", "* ", "+ "]
        .iter()
        .find_map(|mark| rest.strip_prefix(mark))
    {
        return (!words.trim().is_empty()).then_some((indent + 2, None));
    }
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let number = rest.get(..digits).filter(|_| (1..=4).contains(&digits))?;
    let after = rest.get(digits..)?;
    let is_item = after.starts_with(". ") || after.starts_with(") ");
    is_item.then_some((indent + digits + 2, number.parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(spans: &[TextSpan]) -> String {
        spans.iter().map(TextSpan::text).collect()
    }

    /// Formats each block as one line, for comparison.
    fn summary(blocks: &[LayoutBlock]) -> Vec<String> {
        let item = |item: &ListItem| {
            let number = item.number.map(|number| format!("{number}:"));
            let inset = ">".repeat(item.depth);
            inset + &number.unwrap_or_default() + &words(&item.spans)
        };
        let one = |block: &LayoutBlock| match block {
            LayoutBlock::Heading { level, spans } => format!("h{level} {}", words(spans)),
            LayoutBlock::Paragraph { spans } => format!("p {}", words(spans)),
            LayoutBlock::Quote { spans } => format!("quote {}", words(spans)),
            LayoutBlock::Code { spans } => format!("code {}", words(spans)),
            LayoutBlock::List { ordered, items } => {
                let kind = if *ordered { "ol" } else { "ul" };
                format!(
                    "{kind} {}",
                    items.iter().map(item).collect::<Vec<_>>().join(" / ")
                )
            }
            LayoutBlock::Table { rows } => {
                let row = |row: &Vec<Vec<TextSpan>>| {
                    row.iter()
                        .map(|cell| words(cell))
                        .collect::<Vec<_>>()
                        .join(",")
                };
                format!(
                    "table {}",
                    rows.iter().map(row).collect::<Vec<_>>().join(" / ")
                )
            }
        };
        blocks.iter().map(one).collect()
    }

    #[test]
    fn lines_become_what_they_look_like() {
        for (text, expected) in [
            ("One.\ntwo", vec!["p One.\ntwo"]),
            ("# A ferry #\ntext", vec!["h1 A ferry", "p text"]),
            ("- a\n- b\n\n3. c", vec!["ul a / b", "ol 3:c"]),
            (
                "- a\n  goes on\n  - inside\n- b",
                vec!["ul a\n  goes on / >inside / b"],
            ),
            ("1. a\n   - inside\n2. b", vec!["ol 1:a / >inside / 2:b"]),
            ("> said\n> so", vec!["quote said\nso"]),
            ("```\n# a < b\n```\nc", vec!["code # a < b\n", "p c"]),
            (
                "| a | b |\n|---|:-:|\n| 1 | 2\\|3 |",
                vec!["table a,b / 1,2|3"],
            ),
            ("| a | b\n| c | d", vec!["p | a | b\n| c | d"]),
            ("", vec![]),
        ] {
            let blocks = MarkdownLayout::default().blocks(text, &[]);
            assert_eq!(summary(&blocks), expected, "{text}");
        }
    }

    #[test]
    fn code_goes_on_in_the_next_passage() {
        let text = "```\na *b*\nc\n```\nd";
        let cut = text.find("c\n").unwrap();
        let mut layout = MarkdownLayout::default();
        assert_eq!(summary(&layout.blocks(&text[..cut], &[])), ["code a *b*\n"]);
        assert_eq!(
            summary(&layout.blocks(&text[cut..], &[])),
            ["code c\n", "p d"]
        );
        let mut later = MarkdownLayout::at(text, cut);
        assert_eq!(
            summary(&later.blocks(&text[cut..], &[])),
            ["code c\n", "p d"]
        );
    }

    #[test]
    fn a_row_ends_at_its_bound() {
        let row = |count: usize| format!("|{}", "a|".repeat(count));
        let columns = |count: usize| {
            let text = format!("{}\n|--|\n", row(count));
            match MarkdownLayout::default().blocks(&text, &[]).pop() {
                Some(LayoutBlock::Table { rows }) => rows[0].len(),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(
            (columns(MAX_CELLS), columns(MAX_CELLS + 1)),
            (MAX_CELLS, MAX_CELLS)
        );
    }
}
