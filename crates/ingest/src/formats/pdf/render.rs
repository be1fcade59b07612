//! Renders segments in reading order as text: joins the lines of paragraphs, mends hyphenated words, and
//! marks lines in large type as headings.

use std::collections::BTreeMap;

use super::segment::TextSegment;

/// How much larger than body text a heading is, and the most characters it has. Emphasis and different fonts vary by
/// some percent, so a smaller factor would make headings of them. A long text in large type is a quotation or a poster,
/// and no heading.
const HEADING_SCALE: f64 = 1.15;
const MAX_HEADING_CHARS: usize = 200;

/// How many heading sizes are distinguished. Documents use two or three; more sizes are usually rounding and
/// decoration, and levels that mean nothing would split the text into passages where no section ends.
const MAX_LEVELS: usize = 3;

/// The gap, in letter sizes, from which two segments of a line are cells of a row. Spaces in justified text can be
/// almost as wide as a letter; the columns of a table stand further apart. Cells get a separator, without which numbers
/// of neighbouring columns would read as one.
const CELL_GAP: f64 = 1.5;

/// The most segment positions of one line that are compared for alignment.
const MAX_STARTS: usize = 32;

/// The share of its column that a line fills at least if the next line may continue its sentence. A shorter line was
/// broken by the writer and not by the margin, as in addresses, poems and lists, whose lines must not be joined.
const LONG_LINE_SHARE: f64 = 0.6;

/// The form feed line between two pages.
const PAGE_BREAK: &str = "\n\u{C}\n";

pub(super) struct PdfText {
    pub text: String,
    pub first_heading: String,
}

/// A line assembled from segments. `starts` holds where its segments after the first begin; `is_row` says
/// that they stand as far apart as table cells do.
#[derive(Debug)]
struct PdfLine {
    text: String,
    start: f64,
    end: f64,
    base: f64,
    size: f64,
    quarter_turns: u8,
    first_word: f64,
    starts: Vec<f64>,
    is_row: bool,
}

impl PdfLine {
    /// Whether a segment of it begins exactly below a segment of the other line.
    fn is_aligned(&self, other: &PdfLine) -> bool {
        let near = |one: &f64| other.starts.iter().any(|start| (start - one).abs() < 1.0);
        self.starts.iter().any(near)
    }
}

pub(super) fn render(pages: &[Vec<TextSegment>]) -> PdfText {
    let sizes = FontSizes::of(pages);
    let mut rendered = PdfText {
        text: String::new(),
        first_heading: String::new(),
    };
    for (index, page) in pages.iter().enumerate() {
        if index > 0 {
            rendered.text.push_str(PAGE_BREAK);
        }
        write_page(&lines(page), &sizes, &mut rendered);
    }
    rendered
}

/// Letter sizes of the document: body text, and the larger ones that mark headings.
struct FontSizes {
    text: f64,
    headings: Vec<f64>,
}

impl FontSizes {
    fn of(pages: &[Vec<TextSegment>]) -> Self {
        let mut counts: BTreeMap<i64, usize> = BTreeMap::new();
        for segment in pages.iter().flatten() {
            *counts.entry(rounded(segment.size)).or_default() += segment.text.len();
        }
        let most = counts.iter().max_by_key(|(_, count)| **count);
        let text = most.map_or(0.0, |(size, _)| *size as f64 / 2.0);
        let larger = counts.keys().rev().map(|size| *size as f64 / 2.0);
        let headings = larger.take_while(|size| *size >= text * HEADING_SCALE);
        Self {
            text,
            headings: headings.take(MAX_LEVELS).collect(),
        }
    }

    /// The heading level of a line, counted from 1; `None` for body text.
    fn level(&self, line: &PdfLine) -> Option<usize> {
        let size = rounded(line.size) as f64 / 2.0;
        let has_letters = line.text.chars().filter(|c| c.is_alphabetic()).count() > 1;
        if size < self.text * HEADING_SCALE || !has_letters || line.is_row {
            return None;
        }
        let position = self.headings.iter().position(|known| size >= *known);
        Some(position.unwrap_or(MAX_LEVELS - 1) + 1)
    }
}

/// Rounds to half points, because programs scale the same letters slightly differently.
fn rounded(size: f64) -> i64 {
    (size * 2.0).round().clamp(0.0, 1e6) as i64
}

/// Joins consecutive segments of the same line.
fn lines(page: &[TextSegment]) -> Vec<PdfLine> {
    let mut lines: Vec<PdfLine> = Vec::new();
    for segment in page {
        match lines.last_mut() {
            Some(line)
                if line.quarter_turns == segment.quarter_turns
                    && (line.base - segment.base).abs() < line.size.max(segment.size) * 0.3
                    && segment.start >= line.end - line.size =>
            {
                let is_near = segment.start - line.end < line.size * CELL_GAP;
                line.text.push_str(if is_near { " " } else { "  " });
                line.text.push_str(&segment.text);
                line.end = segment.end;
                line.size = line.size.max(segment.size);
                line.is_row |= !is_near;
                if line.starts.len() < MAX_STARTS {
                    line.starts.push(segment.start);
                }
            }
            _ => lines.push(PdfLine {
                text: segment.text.clone(),
                start: segment.start,
                end: segment.end,
                base: segment.base,
                size: segment.size,
                quarter_turns: segment.quarter_turns,
                first_word: segment.first_word,
                starts: Vec::new(),
                is_row: false,
            }),
        }
    }
    lines
}

fn write_page(lines: &[PdfLine], sizes: &FontSizes, rendered: &mut PdfText) {
    let pitch = line_pitch(lines);
    let rights = right_edges(lines);
    let mut before: Option<(&PdfLine, Option<usize>, f64)> = None;
    for (line, right) in lines.iter().zip(rights) {
        let level = sizes
            .level(line)
            .filter(|_| line.text.chars().count() <= MAX_HEADING_CHARS);
        let join = match before {
            None => LineJoin::None,
            Some((_, last_level, _)) if last_level != level => LineJoin::Paragraph,
            Some((last, _, last_right)) => LineJoin::between(last, line, last_right, pitch),
        };
        write_line(line, level, join, rendered);
        before = Some((line, level, right));
    }
}

fn write_line(line: &PdfLine, level: Option<usize>, join: LineJoin, rendered: &mut PdfText) {
    let out = &mut rendered.text;
    match join {
        LineJoin::None => {}
        LineJoin::Word => {
            out.pop();
        }
        LineJoin::Space => out.push(' '),
        LineJoin::Line if level.is_some() => out.push(' '),
        LineJoin::Line => out.push('\n'),
        LineJoin::Paragraph => out.push_str("\n\n"),
    }
    let begins = matches!(join, LineJoin::None | LineJoin::Paragraph);
    match level {
        Some(level) if begins => {
            (0..level).for_each(|_| out.push('#'));
            out.push(' ');
        }
        None if begins || matches!(join, LineJoin::Line) => {
            let after = line.text.trim_start_matches('#');
            if after.len() < line.text.len() && after.starts_with(' ') {
                out.push('\\');
            }
        }
        _ => {}
    }
    out.push_str(&line.text);
    let is_first = level == Some(1) && rendered.first_heading.len() < MAX_HEADING_CHARS;
    if is_first && (rendered.first_heading.is_empty() || !begins) {
        rendered.first_heading.push_str(&line.text);
        rendered.first_heading.push(' ');
    }
}

/// How a line is connected to the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineJoin {
    None,
    /// Joins the halves of a hyphenated word and drops the hyphen.
    Word,
    Space,
    Line,
    Paragraph,
}

impl LineJoin {
    fn between(last: &PdfLine, line: &PdfLine, right: f64, pitch: f64) -> Self {
        let step = line.base - last.base;
        let changes = last.quarter_turns != line.quarter_turns
            || (last.size - line.size).abs() > last.size * 0.2;
        if changes || step > pitch * 1.4 {
            return Self::Paragraph;
        }
        let goes_up = step < -last.size;
        if last.is_row || line.is_row || line.is_aligned(last) {
            return Self::Line;
        }
        // A line is full if the first word of the next one would not have fitted on it.
        let word = line.first_word - line.start;
        let is_full = last.end + word + last.size * 0.2 > right;
        let is_indented = !goes_up && line.start > last.start + last.size * 0.8;
        if is_indented && begins_like_a_sentence(&line.text) {
            return Self::Paragraph;
        }
        let (ends, starts) = (last.text.chars().next_back(), line.text.chars().next());
        let continues = starts.is_some_and(char::is_lowercase);
        let mut letters = last.text.chars().rev();
        let hyphenated =
            letters.next() == Some('-') && letters.next().is_some_and(char::is_alphabetic);
        if hyphenated && continues {
            return Self::Word;
        }
        // A sentence may continue after a line that is long enough without being full.
        let is_long = last.end - last.start > (right - last.start) * LONG_LINE_SHARE;
        let is_open = ends.is_some_and(|c| c.is_alphanumeric() || c == ',');
        let is_joined = is_full || (continues && is_open && is_long);
        if !is_joined {
            return Self::Line;
        }
        if ends.is_some_and(is_dense) && starts.is_some_and(is_dense) {
            // Chinese and Japanese use no spaces, so a line break does not stand for one.
            Self::Line
        } else {
            Self::Space
        }
    }
}

fn begins_like_a_sentence(text: &str) -> bool {
    text.chars().next().is_some_and(|c| !c.is_lowercase())
}

fn is_dense(c: char) -> bool {
    matches!(c, '\u{3000}'..='\u{30FF}' | '\u{3400}'..='\u{9FFF}' | '\u{FF00}'..='\u{FFEF}')
}

/// The usual distance between the baselines of consecutive lines.
fn line_pitch(lines: &[PdfLine]) -> f64 {
    let mut steps: Vec<f64> = lines
        .windows(2)
        .filter_map(|pair| match pair {
            [one, next] if next.base - one.base > one.size * 0.5 => Some(next.base - one.base),
            _ => None,
        })
        .collect();
    steps.sort_by(f64::total_cmp);
    steps.get(steps.len() / 3).copied().unwrap_or(f64::MAX)
}

/// The right edge of each line's column: the farthest that a neighbouring line with the same left edge
/// reaches.
fn right_edges(lines: &[PdfLine]) -> Vec<f64> {
    const NEIGHBOURS: usize = 12;
    let mut edges = Vec::with_capacity(lines.len());
    for (index, line) in lines.iter().enumerate() {
        let from = index.saturating_sub(NEIGHBOURS);
        let around = lines
            .get(from..(index + NEIGHBOURS).min(lines.len()))
            .unwrap_or_default();
        let beside = around.iter().filter(|other| {
            other.quarter_turns == line.quarter_turns
                && (other.start - line.start).abs() < line.size * 3.0
                && (other.size - line.size).abs() < line.size * 0.2
        });
        edges.push(beside.map(|other| other.end).fold(line.end, f64::max));
    }
    edges
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of size 10, each given as text, left edge, right edge and baseline.
    fn page(lines: &[(&str, f64, f64, f64)]) -> Vec<TextSegment> {
        let segment = |(text, start, end, base): &(&str, f64, f64, f64)| TextSegment {
            text: (*text).to_owned(),
            start: *start,
            end: *end,
            base: *base,
            size: 10.0,
            quarter_turns: 0,
            first_word: start + 20.0,
        };
        lines.iter().map(segment).collect()
    }

    fn check(lines: &[(&str, f64, f64, f64)], expect: &str) {
        assert_eq!(render(&[page(lines)]).text, expect);
    }

    #[test]
    fn full_lines_are_joined_and_words_mended() {
        check(
            &[
                ("The ferry leaves the har-", 0.0, 200.0, 0.0),
                ("bour at six and comes", 0.0, 195.0, 12.0),
                ("back at ten.", 0.0, 90.0, 24.0),
                ("No boat in June", 0.0, 120.0, 36.0),
                ("Nor in May", 0.0, 140.0, 48.0),
                ("or on feasts.", 0.0, 80.0, 60.0),
                ("A new paragraph", 0.0, 150.0, 84.0),
            ],
            "The ferry leaves the harbour at six and comes back at ten.\nNo boat in June\nNor in May or on feasts.\n\nA new paragraph",
        );
    }

    #[test]
    fn rows_keep_their_lines() {
        check(
            &[
                ("Port", 0.0, 30.0, 0.0),
                ("Boats", 100.0, 130.0, 0.0),
                ("Orrin", 0.0, 30.0, 12.0),
                ("4", 100.0, 105.0, 12.0),
            ],
            "Port  Boats\nOrrin  4",
        );
    }

    #[test]
    fn narrow_columns_are_told_by_their_edges() {
        let cells = |second: f64| {
            let row = |base: f64, start: f64| {
                [("Port A", 0.0, 60.0, base), ("4 boats", start, 120.0, base)]
            };
            render(&[page(&[row(0.0, 70.0), row(12.0, second)].concat())]).text
        };
        assert_eq!(cells(70.0), "Port A 4 boats\nPort A 4 boats");
        assert_eq!(cells(73.0), "Port A 4 boats Port A 4 boats");
    }

    #[test]
    fn large_lines_are_headings() {
        let mut lines = page(&[
            ("The slate", 0.0, 100.0, 0.0),
            ("of Quarrytown", 0.0, 150.0, 20.0),
            ("It was cut by hand for many years", 0.0, 200.0, 50.0),
            ("and then it was not.", 0.0, 120.0, 62.0),
        ]);
        lines[0].size = 20.0;
        lines[1].size = 20.0;
        let rendered = render(&[lines]);
        assert_eq!(
            rendered.text,
            "# The slate of Quarrytown\n\nIt was cut by hand for many years and then it was not."
        );
        assert_eq!(rendered.first_heading, "The slate of Quarrytown ");
    }

    #[test]
    fn pages_are_counted_even_when_empty() {
        let one = page(&[("a", 0.0, 10.0, 0.0)]);
        assert_eq!(
            render(&[one.clone(), Vec::new(), one]).text,
            "a\n\u{C}\n\n\u{C}\na"
        );
        assert_eq!(render(&[]).text, "");
    }

    #[test]
    fn a_line_of_marks_is_no_heading() {
        check(&[("# not one", 0.0, 50.0, 0.0)], "\\# not one");
    }
}
