//! Header detection: which rows precede the records of a table, and what the columns are called and contain.

use serde_json::{Map, Value as Raw};

use super::delimiter::most_common;
use super::row_reader::{CsvCells, CsvRow};
use crate::error::IngestError;
use crate::parser::ParserInput;
use crate::reader_field::ReaderKeys;
use crate::records::column_types::{self, TableColumn};
use crate::records::reader_column::{
    MOST_ABOVE, hides_readers, is_readers_field, late_header, names_readers,
};

/// The columns of a table, and how many rows come before its first record.
pub(super) struct Head {
    columns: Vec<TableColumn>,
    /// The number of rows before the first record: titles, blank rows and the header.
    pub rows: usize,
    /// How many of them stand above a header that is recognized by the reader column alone, and may be records.
    pub preamble: usize,
    /// Whether the access control column may be named in a place where it cannot be parsed. Then the
    /// permissions of every row are unknown, and the rows are closed to everyone.
    pub hides_readers: bool,
}

impl Head {
    pub(super) fn find(sample: &[CsvRow], readers: &ReaderKeys) -> Result<Self, IngestError> {
        // A malformed row keeps its index, so that rows are counted the same here and when they are read.
        let table: Vec<Vec<&str>> = sample
            .iter()
            .map(|row| match &row.cells {
                Ok(cells) => cells.iter().collect(),
                Err(_) => Vec::new(),
            })
            .collect();
        let titles = titles(&table)?;
        let above = if titles == table.len().min(MOST_ABOVE) {
            0
        } else {
            titles
        };
        // A malformed row may be the header itself, or may have swallowed it.
        let is_damaged = |rows: usize| sample.iter().take(rows).any(|row| row.cells.is_err());
        if readers.is_configured() {
            // A row with the access control field is the header, however little else it contains.
            let mut top = table.iter().take(above + 1);
            let named = top.position(|row| names_readers(row, readers));
            if let Some(at) = named.or_else(|| late_header(&table, readers)) {
                let below = table.get(at..).unwrap_or_default();
                let (columns, _) = column_types::infer_columns(below, readers);
                return Ok(Self {
                    columns,
                    rows: at + 1,
                    preamble: if named.is_some() { 0 } else { at },
                    hides_readers: is_damaged(at + 1),
                });
            }
        }
        let below = table.get(above..).unwrap_or_default();
        let (columns, has_header) = column_types::infer_columns(below, readers);
        let hides_readers = readers.is_configured()
            && (is_damaged(titles + 1)
                || table.iter().any(|row| names_readers(row, readers))
                || hides_readers(&table, titles, true, readers));
        Ok(Self {
            columns,
            // Without a header the rows above are ordinary rows.
            rows: if has_header { above + 1 } else { 0 },
            preamble: 0,
            hides_readers,
        })
    }

    /// Whether a row contains the name of the access control field outside its column, as the header of a
    /// second table does. It is then unknown which column governs the rows below.
    pub(super) fn is_other_header(&self, cells: &CsvCells, readers: &ReaderKeys) -> bool {
        let is_readers = |at: usize| self.columns.get(at).is_some_and(TableColumn::names_readers);
        readers.is_configured()
            && (cells.iter().enumerate())
                .any(|(at, cell)| !is_readers(at) && is_readers_field(cell, readers))
    }

    /// Whether the cells of a row may be shifted against the header, so that the access control column may
    /// hold a wrong cell: the row has more cells than the header, or quotes that could not be parsed.
    pub(super) fn is_shifted(&self, row: &CsvRow) -> bool {
        let beyond = |cells: &CsvCells| {
            let mut beyond = cells.iter().skip(self.columns.len());
            beyond.any(|cell| !cell.trim().is_empty())
        };
        self.columns.iter().any(TableColumn::names_readers)
            && (row.has_bare_quotes || row.cells.as_ref().is_ok_and(beyond))
    }

    /// Maps the cells of one row to the keys of a record.
    pub(super) fn keys(
        &self,
        cells: &CsvCells,
        input: &ParserInput<'_>,
    ) -> Result<Map<String, Raw>, IngestError> {
        if cells.len() > input.limits.max_columns {
            let limit = input.limits.max_columns;
            return Err(IngestError::TooManyColumns { limit });
        }
        if cells.bytes() > input.limits.max_line_bytes {
            let limit = input.limits.max_line_bytes;
            return Err(IngestError::LineTooLong { limit });
        }
        let mut keys = Map::new();
        let mut columns = self.columns.iter();
        for (at, text) in cells.iter().enumerate() {
            match columns.next() {
                Some(column) => column.put(text, &mut keys),
                // Cells beyond the header are kept under a generated name.
                None if text.trim().is_empty() => {}
                None => {
                    keys.insert(format!("column {}", at + 1), Raw::String(text.to_owned()));
                }
            }
        }
        // A short row leaves its last cells empty. For the access control column that means that it is set
        // and empty, which closes the row.
        for column in columns.filter(|column| column.names_readers()) {
            column.put("", &mut keys);
        }
        Ok(keys)
    }
}

/// Counts the rows above the header that hold a title or nothing.
fn titles(table: &[Vec<&str>]) -> Result<usize, IngestError> {
    let widths: Vec<_> = table.iter().map(Vec::len).collect();
    let width = most_common(&widths).ok_or(IngestError::Empty)?;
    let filled = |cell: &&&str| !cell.trim_ascii().is_empty();
    let is_title = |cells: &&Vec<&str>| {
        // The header cell above row numbers is often empty, so a header of two cells may have only one name.
        let names_the_rest = cells.len() > 1 && cells.iter().skip(1).all(|cell| filled(&cell));
        width > 1 && cells.iter().filter(filled).count() < 2 && !names_the_rest
    };
    Ok(table.iter().take(MOST_ABOVE).take_while(is_title).count())
}
