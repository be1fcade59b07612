//! Header detection for worksheets: whether a sheet is a table, which row names its columns, and whether
//! the reader field may be in a place where it cannot be used.

use super::workbook::{SheetCell, SheetColumnNames, SheetRow, Worksheet};
use crate::reader_field::ReaderKeys;
use crate::records::reader_column::{MOST_ABOVE, hides_readers, is_readers_field, late_header};

/// The longest name of a column; longer text is prose. A row with such a cell is a title or a remark above the table,
/// and taking it for the header would name the columns after a sentence.
const MOST_HEADER_CHARS: usize = 200;

/// The layout that was detected for a sheet.
pub(super) struct SheetLayout {
    /// The row that names the columns; `None` if the sheet is not a table.
    pub header: Option<usize>,
    /// How many rows stand above a header that is recognized by the reader column alone, and may be records.
    pub preamble: usize,
    /// Whether the readers of every row are in doubt, so that nobody may read them.
    pub hides_readers: bool,
}

impl SheetRow {
    fn names_readers(&self, readers: &ReaderKeys) -> bool {
        let mut cells = self.cells.iter();
        cells.any(|(_, cell)| is_readers_field(&cell.display(), readers))
    }

    /// Whether a row below the header has the reader field's name outside of the reader column, as the
    /// header of a second table does. From there on it is unknown which column names the readers.
    pub(super) fn is_other_header(&self, names: &SheetColumnNames, readers: &ReaderKeys) -> bool {
        let is_readers = |column: &u32| matches!(names.get(column), Some(None));
        readers.is_configured()
            && (self.cells.iter()).any(|(column, cell)| {
                !is_readers(column) && is_readers_field(&cell.display(), readers)
            })
    }
}

impl Worksheet {
    pub(super) fn layout(&self, readers: &ReaderKeys) -> SheetLayout {
        if !readers.is_configured() {
            return SheetLayout {
                header: self.table_header(),
                preamble: 0,
                hides_readers: false,
            };
        }
        let wide = |row: &SheetRow| row.cells.len() > 1;
        let titles = self.rows.iter().take(MOST_ABOVE + 1).position(wide);
        let top: Vec<Vec<String>> = (self.rows.iter().take(MOST_ABOVE + 2))
            .map(|row| row.cells.iter().map(|(_, cell)| cell.display()).collect())
            .collect();
        let top: Vec<Vec<&str>> = (top.iter())
            .map(|row| row.iter().map(String::as_str).collect())
            .collect();
        // As plain lines, or below another header, the rows would lose their readers.
        let mut first = self.rows.iter().take(titles.map_or(0, |at| at + 1));
        let named = first.position(|row| row.names_readers(readers));
        if let Some(at) = named.or_else(|| late_header(&top, readers)) {
            return SheetLayout {
                header: Some(at),
                preamble: if named.is_some() { 0 } else { at },
                hides_readers: false,
            };
        }
        let hides_readers = self.has_lost_cells
            || self.rows.iter().any(|row| row.names_readers(readers))
            || hides_readers(&top, titles.unwrap_or(0), false, readers);
        SheetLayout {
            header: self.table_header(),
            preamble: 0,
            hides_readers,
        }
    }

    /// The position of the header if the sheet is a table: at least two named columns above at least two
    /// rows, most of which fill at least two of the columns.
    fn table_header(&self) -> Option<usize> {
        let wide = |row: &SheetRow| row.cells.len() > 1;
        let at = self.rows.iter().take(MOST_ABOVE + 1).position(wide)?;
        let (head, below) = (self.rows.get(at)?, self.rows.get(at + 1..)?);
        let names = head.cells.iter().filter(|(_, cell)| match cell {
            SheetCell::Text(text) => text.chars().nth(MOST_HEADER_CHARS).is_none(),
            _ => false,
        });
        let names = names.count();
        // Years and months may be column headings too, but at least some headings must be text.
        let numbers = head.cells.len() - names;
        let values_only_after_names = matches!(head.cells.first(), Some((_, SheetCell::Text(_))));
        let named = names * 2 >= head.cells.len() && (numbers == 0 || values_only_after_names);
        let (first, last) = (head.cells.first()?.0, head.cells.last()?.0);
        let fills = |row: &&SheetRow| {
            let inside = row
                .cells
                .iter()
                .filter(|(column, _)| (first..=last).contains(column));
            inside.count() > 1
        };
        let filled = below.iter().filter(fills).count();
        // With numbers in the header, the rows below must not look like it: a row of text and numbers above
        // rows of the same types is data.
        let alike = |row: &&SheetRow| numbers > 0 && same_kinds(head, row);
        let is_table = named
            && below.len() > 1
            && filled * 10 >= below.len() * 6
            && below.iter().filter(alike).count() * 2 < below.len();
        is_table.then_some(at)
    }
}

/// Whether two rows have text and other values in the same columns.
fn same_kinds(a: &SheetRow, b: &SheetRow) -> bool {
    let kinds = |row: &SheetRow| -> Vec<(u32, bool)> {
        let kind =
            |(column, cell): &(u32, SheetCell)| (*column, matches!(cell, SheetCell::Text(_)));
        row.cells.iter().map(kind).collect()
    };
    kinds(a) == kinds(b)
}
