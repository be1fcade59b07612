//! Whether a sheet is a table, which of its rows names the columns, and whether its readers may be named where
//! they cannot be used.

use super::workbook::{SheetCell, SheetColumnNames, SheetRow, Worksheet};
use crate::reader_column::{MOST_ABOVE, hides_readers, is_readers_field, late_header};
use crate::reader_field::ReaderKeys;

/// Characters of a column's name; what is longer is prose.
const MOST_HEADER_CHARS: usize = 200;

/// What a sheet was found to be.
pub(super) struct SheetLayout {
    /// The row that names the columns; none where the sheet is no table.
    pub header: Option<usize>,
    /// Whether nobody knows who may read any of the rows.
    pub hides_readers: bool,
}

impl SheetRow {
    fn names_readers(&self, readers: &ReaderKeys) -> bool {
        let mut cells = self.cells.iter();
        cells.any(|(_, cell)| is_readers_field(&cell.display(), readers))
    }

    /// Whether a row below the header names the readers' field outside of its column, as the header of another
    /// table does. Whose readers stand where in the rows below it, nobody knows.
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
        // As lines of text, or below another header, nobody would know who may read the rows.
        let mut first = self.rows.iter().take(titles.map_or(0, |at| at + 1));
        let named = first.position(|row| row.names_readers(readers));
        if let Some(at) = named.or_else(|| late_header(&top, readers)) {
            return SheetLayout {
                header: Some(at),
                hides_readers: false,
            };
        }
        let hides_readers = self.has_lost_cells
            || self.rows.iter().any(|row| row.names_readers(readers))
            || hides_readers(&top, titles.unwrap_or(0), false, readers);
        SheetLayout {
            header: self.table_header(),
            hides_readers,
        }
    }

    /// Where the header stands if the sheet is a table: at least two columns that it names, above at least
    /// two rows, most of which fill at least two of them.
    fn table_header(&self) -> Option<usize> {
        let wide = |row: &SheetRow| row.cells.len() > 1;
        let at = self.rows.iter().take(MOST_ABOVE + 1).position(wide)?;
        let (head, below) = (self.rows.get(at)?, self.rows.get(at + 1..)?);
        let names = head.cells.iter().filter(|(_, cell)| match cell {
            SheetCell::Text(text) => text.chars().nth(MOST_HEADER_CHARS).is_none(),
            _ => false,
        });
        let names = names.count();
        // Years and months may head columns too, but something must be named.
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
        // A header of words above rows of words that are all numbers elsewhere is still a header; a row
        // of words and numbers above rows alike is none.
        let alike = |row: &&SheetRow| numbers > 0 && same_kinds(head, row);
        let is_table = named
            && below.len() > 1
            && filled * 10 >= below.len() * 6
            && below.iter().filter(alike).count() * 2 < below.len();
        is_table.then_some(at)
    }
}

/// Whether two rows have texts and numbers in the same places.
fn same_kinds(a: &SheetRow, b: &SheetRow) -> bool {
    let kinds = |row: &SheetRow| -> Vec<(u32, bool)> {
        let kind =
            |(column, cell): &(u32, SheetCell)| (*column, matches!(cell, SheetCell::Text(_)));
        row.cells.iter().map(kind).collect()
    };
    kinds(a) == kinds(b)
}
