//! Finds the reader column of a table: the header row that contains the reader field's name, and signs of
//! such a header that cannot be used.
//!
//! An overlooked header would leave every row below it open to everyone. So the name is looked for in all
//! rows, and a table that has it outside the header fails closed instead of being guessed at.

use crate::clean::{clean_line, truncate_chars};
use crate::error::IngestError;
use crate::reader_field::ReaderKeys;
use crate::records::column_types::is_value;

/// Rows that may stand above a header, such as a title, a note or blank lines.
pub(crate) const MOST_ABOVE: usize = 20;

/// Preamble rows with several cells, such as who exported the table and when. More of them are likely a
/// table of their own, whose rows must not be lost.
pub(crate) const MOST_PREAMBLE: usize = 3;

/// Cells longer than this are prose and are not searched, which keeps the search of every row cheap.
const MOST_FIELD_BYTES: usize = 1024;

/// Cells up to this size are split at each distinct mark in turn, longer ones at all marks at once.
const MOST_NAME_BYTES: usize = 16 * 1024;

/// How much of a row is shown where it is reported.
const MOST_SHOWN_CHARS: usize = 80;

/// Finds a header below a preamble: near the top, without values, and wider than every row above it. A row
/// that is no wider than another may be a record in which the word merely occurs.
pub(crate) fn late_header(rows: &[Vec<&str>], readers: &ReaderKeys) -> Option<usize> {
    let top = rows.get(..=MOST_ABOVE).unwrap_or(rows);
    let at = top.iter().position(|row| names_readers(row, readers))?;
    let (above, header) = (top.get(..at)?, top.get(at)?);
    let width = filled(header);
    let preamble = above.iter().filter(|row| filled(row) > 1).count();
    let is_header = at + 1 < rows.len()
        && preamble <= MOST_PREAMBLE
        && above.iter().all(|row| filled(row) < width)
        && !header.iter().any(|cell| is_value(cell));
    is_header.then_some(at)
}

/// The loss to report for a row above such a header: the row may be a record, but has no readers. Titles, which are rows
/// of one cell, and blank rows are no loss.
pub(crate) fn row_above_header(row: &[&str]) -> Option<IngestError> {
    (filled(row) > 1).then(|| {
        let mut names = clean_line(&row.join(" | "));
        truncate_chars(&mut names, MOST_SHOWN_CHARS);
        IngestError::BesideRecords { names }
    })
}

/// Whether any cell of a row is the reader field's name.
pub(crate) fn names_readers(row: &[&str], readers: &ReaderKeys) -> bool {
    row.iter().any(|cell| is_readers_field(cell, readers))
}

/// Whether a cell is the reader field's name, a prefix of its nested name, or a name nested in it.
pub(crate) fn is_readers_field(cell: &str, readers: &ReaderKeys) -> bool {
    let cell = cell.trim();
    (1..=MOST_FIELD_BYTES).contains(&cell.len()) && readers.covers_key(cell)
}

/// Whether the reader field's name is part of a longer cell where a header should be, as happens when the
/// delimiter was guessed wrong. `titles` rows stand above the header; `at_blanks` allows blanks as the
/// delimiter of a row that seems to have a single cell.
pub(crate) fn hides_readers(
    rows: &[Vec<&str>],
    titles: usize,
    at_blanks: bool,
    readers: &ReaderKeys,
) -> bool {
    let last = titles.max(MOST_PREAMBLE);
    let mut top = rows.iter().enumerate().take(last + 1);
    readers.is_configured()
        && top.any(|(at, row)| {
            // Split at the wrong delimiter, a header is one long cell; any other cell below the header is a
            // value.
            let is_alone = filled(row) == 1;
            let may_be_header = at <= titles;
            let at_blanks = at_blanks && is_alone && (may_be_header || heads_words(rows, at));
            (may_be_header || is_alone)
                && row
                    .iter()
                    .any(|cell| is_named_inside(cell, at_blanks, readers))
        })
}

/// Whether a row of one cell looks like a header of columns separated by blanks: at least half of the rows
/// below have the same number of words.
fn heads_words(rows: &[Vec<&str>], at: usize) -> bool {
    let words = |row: &Vec<&str>| -> usize {
        let counts = row.iter().map(|cell| cell.split_whitespace().count());
        counts.sum()
    };
    let count = rows.get(at).map_or(0, words);
    let below = rows.get(at + 1..).unwrap_or_default();
    let same = below.iter().filter(|row| words(row) == count).count();
    count > 1 && same > 0 && same * 2 >= below.len()
}

fn filled(row: &[&str]) -> usize {
    row.iter().filter(|cell| !cell.trim().is_empty()).count()
}

/// Whether the name occurs between marks inside a cell. A blank is part of a name unless the row has no
/// other cell, and a line end is one unless the cell seems to hold the cells of several lines.
fn is_named_inside(cell: &str, at_blanks: bool, readers: &ReaderKeys) -> bool {
    let at_line_ends = at_blanks || cell.contains([',', ';', '\t', '|']);
    let is_mark = |c: char| match c {
        '_' | '-' | '.' => false,
        '\r' | '\n' => at_line_ends,
        '¦' | '§' | '¬' | '¶' | '·' | '•' => true,
        c if c.is_ascii_punctuation() || c.is_ascii_control() => true,
        c => at_blanks && c.is_whitespace(),
    };
    let is_name = |part: &str| readers.covers_key(part);
    if cell.split(is_mark).any(is_name) {
        return true;
    }
    // The name itself may contain marks, but not the delimiter.
    let mut marks: Vec<char> = match cell.len() <= MOST_NAME_BYTES {
        true => cell.chars().filter(|c| is_mark(*c)).collect(),
        false => Vec::new(),
    };
    marks.sort_unstable();
    marks.dedup();
    marks.iter().any(|mark| cell.split(*mark).any(is_name))
}

#[cfg(test)]
mod formats;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;
    use crate::options::IngestOptions;
    use crate::parser::ParserInput;
    use crate::parser::tests::with_input;
    use crate::reader_field::ReaderFieldName;

    fn keys(name: &str) -> ReaderKeys {
        let options = IngestOptions {
            readers: vec![ReaderFieldName {
                name: name.to_owned(),
                under: None,
            }],
            ..IngestOptions::default()
        };
        with_input("t.csv", b"", &Limits::default(), |input| {
            ReaderKeys::for_input(&ParserInput {
                options: &options,
                ..*input
            })
        })
    }

    #[test]
    fn a_header_below_a_preamble_is_wider_than_it() {
        let check = |rows: &[&str], expect: Option<usize>| {
            let rows: Vec<Vec<&str>> = rows.iter().map(|row| row.split(',').collect()).collect();
            assert_eq!(late_header(&rows, &keys("allowed")), expect, "{rows:?}");
        };
        let head = "id,text,Allowed";
        check(&["Exported by,Anna", head, "1,x,hr"], Some(1));
        check(&["a,b", "c,d", "e,f", head, "1,x,hr"], Some(3));
        // A table of its own, whose rows would be lost.
        check(&["a,b", "c,d", "e,f", "g,h", head, "1,x,hr"], None);
        check(&["Basic,Basic,Access", head, "1,x,hr"], None);
        check(&["name,state", "Anna,allowed", "Ada,denied"], None);
        check(&["a,b", "1,x,allowed", "2,y,hr"], None);
        check(&["a,b", head], None);
        let mut rows = vec!["title"; MOST_ABOVE];
        rows.extend([head, "1,x,hr"]);
        check(&rows, Some(MOST_ABOVE));
        rows.insert(0, "title");
        check(&rows, None);
    }

    #[test]
    fn a_name_is_found_between_marks() {
        let check = |name: &str, cell: &str, at_blanks: bool, expect: bool| {
            let found = is_named_inside(cell, at_blanks, &keys(name));
            assert_eq!(found, expect, "{name}: {cell}");
        };
        for cell in [
            "id:text:allowed",
            "id^Allowed^text",
            "id;text;price;allowed",
            "text,allowed\n1,words",
            "id¦allo\u{200B}wed",
            "allowed (groups)",
        ] {
            check("allowed", cell, false, true);
        }
        check("access:groups", "id^text^access:groups", false, true);
        check("may read", "id:may read:text", true, true);
        check("allowed", "id text allowed", true, true);
        check("allowed", "most allowed", false, false);
        check("allowed", "most\nallowed", false, false);
        for cell in ["allowed_by", "not-allowed", "disallowed", "id:text"] {
            check("allowed", cell, true, false);
        }
    }
}
