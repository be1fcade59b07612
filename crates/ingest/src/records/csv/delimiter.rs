//! Delimiter sniffing: finds the character that separates the cells of a table from a sample of its rows.

use super::row_reader::{CsvCells, CsvRowReader};
use crate::decoding::text_stream::TextStream;
use crate::error::IngestError;
use crate::reader_field::ReaderKeys;
use crate::records::column_types::is_value;
use crate::records::reader_column::{MOST_PREAMBLE, names_readers};

/// The candidate delimiters, most likely first. Ties go to the first: a table with a single column, or one in which
/// every row has a comma and a semicolon, is read as the program would that wrote most tables.
const DELIMITERS: &[u8] = b",;\t|";

/// Rows of the sample that are split with every candidate. The delimiter is the same in every row, so more of them
/// would not change the answer; some dozens are needed because a title or remarks may stand above the table.
const SNIFFED_ROWS: usize = 100;

/// The share of rows, in percent, that must be as wide as the header for its names to count. Real tables have ragged
/// rows, such as remarks and totals. Prose that is split at its commas has a width of its own in nearly every line.
const REGULAR_PERCENT: usize = 80;

/// Parses the `sep=;` line with which Excel declares the delimiter; returns it with the length of the line in
/// bytes.
pub(super) fn separator_line(text: &str) -> Option<(u8, usize)> {
    let rest = text.strip_prefix("sep=").or(text.strip_prefix("SEP="))?;
    let (delimiter, rest) = (*rest.as_bytes().first()?, rest.get(1..)?);
    let body = rest
        .strip_prefix("\r\n")
        .or(rest.strip_prefix(['\r', '\n']))?;
    delimiter
        .is_ascii()
        .then_some((delimiter, text.len() - body.len()))
}

/// Picks the most likely delimiter. A candidate that yields the access control column wins, then the one that
/// splits the header into the most names, then the one that splits the most rows into the same number of
/// cells. Without the second criterion a table of semicolons and decimal commas with a few ragged rows would
/// be split at its commas.
pub(super) fn sniff(sample: &str, is_cut: bool, readers: &ReaderKeys) -> Result<u8, IngestError> {
    let mut candidates = Vec::new();
    for &delimiter in DELIMITERS {
        candidates.push(Candidate::of(sample, is_cut, delimiter, readers)?);
    }
    let headers = candidates.iter().filter_map(|found| found.header);
    let first_line = headers.map(|header| header.line).min();
    let mut best = None;
    // Ties go to the more likely candidate, which is visited last.
    for candidate in candidates.iter().rev() {
        let Some(score) = candidate.score(first_line) else {
            continue;
        };
        if best.is_none_or(|(other, _)| score >= other) {
            best = Some((score, candidate.delimiter));
        }
    }
    Ok(best.map_or(b',', |(_, delimiter)| delimiter))
}

/// The sample split with one delimiter: the width of every row, the first row of several cells, and whether
/// any of the first rows contains the access control field.
struct Candidate {
    delimiter: u8,
    widths: Vec<usize>,
    header: Option<HeaderNames>,
    names_readers: bool,
}

#[derive(Clone, Copy)]
struct HeaderNames {
    line: u64,
    /// The number of cells if all of them are unique names, otherwise zero.
    names: usize,
}

/// Ordered by priority: has the access control column, names in the header, percentage of regular rows, their
/// width.
type Score = (bool, usize, usize, usize);

impl Candidate {
    fn of(
        sample: &str,
        is_cut: bool,
        delimiter: u8,
        readers: &ReaderKeys,
    ) -> Result<Self, IngestError> {
        let mut bytes = sample.as_bytes();
        let mut rows = CsvRowReader::new(TextStream::json(&mut bytes), sample.len());
        rows.set_delimiter(delimiter);
        let mut found = Self {
            delimiter,
            widths: Vec::new(),
            header: None,
            names_readers: false,
        };
        let mut wide = 0;
        for _ in 0..SNIFFED_ROWS {
            let Some(row) = rows.next()? else { break };
            let Ok(cells) = row.cells else { continue };
            found.widths.push(cells.len());
            if wide <= MOST_PREAMBLE && readers.is_configured() {
                let cells: Vec<&str> = cells.iter().collect();
                found.names_readers |= names_readers(&cells, readers);
            }
            if cells.len() > 1 {
                wide += 1;
                let line = row.line;
                let names = names(&cells);
                found.header.get_or_insert(HeaderNames { line, names });
            }
        }
        // The last row of a truncated sample may be incomplete.
        if is_cut {
            found.widths.pop();
        }
        Ok(found)
    }

    /// The score of a candidate, or `None` if it does not split the rows. Only names in the first line that
    /// any candidate splits count, because further down prose with other punctuation splits into many parts.
    fn score(&self, first_line: Option<u64>) -> Option<Score> {
        let width = most_common(&self.widths).filter(|width| *width > 1)?;
        let same = self.widths.iter().filter(|other| **other == width).count();
        let percent = same * 100 / self.widths.len().max(1);
        let is_header = |header: &HeaderNames| {
            Some(header.line) == first_line && header.names == width && percent >= REGULAR_PERCENT
        };
        let names = self
            .header
            .filter(is_header)
            .map_or(0, |header| header.names);
        Some((self.names_readers, names, percent, width))
    }
}

fn names(cells: &CsvCells) -> usize {
    let mut names: Vec<String> = cells
        .iter()
        .map(|cell| cell.trim().to_lowercase())
        .collect();
    let are_names = names.iter().all(|name| !name.is_empty() && !is_value(name));
    names.sort_unstable();
    names.dedup();
    if are_names && names.len() == cells.len() {
        names.len()
    } else {
        0
    }
}

/// The most common row width; ties go to the width seen first.
pub(super) fn most_common(widths: &[usize]) -> Option<usize> {
    let mut counts: Vec<(usize, usize)> = Vec::new();
    for &width in widths {
        match counts.iter_mut().find(|(known, _)| *known == width) {
            Some((_, count)) => *count += 1,
            None => counts.push((width, 1)),
        }
    }
    let best = counts.iter().map(|(_, count)| *count).max()?;
    let first = counts.into_iter().find(|(_, count)| *count == best)?;
    Some(first.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: char) {
        let found = sniff(text, false, &ReaderKeys::default()).unwrap();
        assert_eq!(char::from(found), expect, "{text}");
    }

    #[test]
    fn decimal_commas_do_not_outweigh_a_header_of_semicolons() {
        let rows: String = (0..95)
            .map(|n| format!("{n};some words;{n},50;x\n"))
            .collect();
        let ragged: String = (0..5)
            .map(|n| format!("{n};some; words;{n},50;x\n"))
            .collect();
        check(&format!("id;text;price;kind\n{rows}{ragged}"), ';');
        check(&format!("id;text;price;kind\n{ragged}{rows}"), ';');
    }

    #[test]
    fn marks_inside_of_texts_do_not_outweigh_a_header() {
        check("id,text\n1,a;b;c;d\n2,e;f;g;h\n", ',');
        check("name,tags\nx,a|b|c\ny,d|e|f\n", ',');
        check("name,role;unit\nAnna,a;b\nAda,c;d\n", ',');
        check("port;depth\nEllin;4,5\nTarn;7,25\n", ';');
        check("1;2,5\n3;4,5\n", ',');
    }

    #[test]
    fn too_ragged_a_table_is_not_believed() {
        let rows = |regular: usize| {
            let regular = "1;2;3,4\n".repeat(regular);
            format!("a;b;c\n{regular}{}", "1;2,5\n".repeat(20))
        };
        check(&rows(79), ';');
        check(&rows(78), ',');
    }
}
