//! Which character separates the cells of a table, by its first rows.

use super::row_reader::{CsvCells, CsvRowReader};
use crate::column_types::is_value;
use crate::error::IngestError;
use crate::reader_column::{MOST_PREAMBLE, names_readers};
use crate::reader_field::ReaderKeys;
use crate::text_stream::TextStream;

/// The delimiters that are looked for, the likelier first.
const DELIMITERS: &[u8] = b",;\t|";

/// Rows that are looked at.
const SNIFFED_ROWS: usize = 100;

/// The share of rows, in percent, that must be as wide as the header for its names to count.
const REGULAR_PERCENT: usize = 80;

/// The line `sep=;` with which spreadsheets are told the delimiter, and how many bytes it has.
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

/// The likeliest delimiter. One that gives the readers' column comes first, then the one that cuts the header
/// into the most names, then the one that cuts most rows into the same number of cells. Without the second, a
/// table of semicolons and decimal commas with a few ragged rows would be cut at its commas.
pub(super) fn sniff(sample: &str, is_cut: bool, readers: &ReaderKeys) -> Result<u8, IngestError> {
    let mut candidates = Vec::new();
    for &delimiter in DELIMITERS {
        candidates.push(Candidate::of(sample, is_cut, delimiter, readers)?);
    }
    let headers = candidates.iter().filter_map(|found| found.header);
    let first_line = headers.map(|header| header.line).min();
    let mut best = None;
    // Among equals the likelier, which is looked at last.
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

/// What the first rows look like when they are cut at one delimiter.
struct Candidate {
    delimiter: u8,
    widths: Vec<usize>,
    /// The first row of several cells.
    header: Option<HeaderNames>,
    /// Whether one of the first rows names the readers' field.
    names_readers: bool,
}

#[derive(Clone, Copy)]
struct HeaderNames {
    line: u64,
    /// How many cells name something; none where some do not, or two are the same.
    names: usize,
}

/// The readers' column, the names of the header, the percentage of regular rows, and their width.
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
        // The last row of a sample may be cut.
        if is_cut {
            found.widths.pop();
        }
        Ok(found)
    }

    /// How likely it is; nothing where it does not cut. Only names of the first line that any delimiter cuts
    /// count, because further down a text full of other marks is cut into many.
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

/// The width that most rows have, ties going to the first.
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
