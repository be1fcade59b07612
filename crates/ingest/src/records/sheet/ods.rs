//! OpenDocument spreadsheet reader. Repeated empty rows and cells are counted and not expanded, because the
//! format can say "repeat this row a million times" in a few bytes.

use std::io::{BufReader, Read};

use quick_xml::Reader;
use quick_xml::events::{BytesRef, BytesStart, Event};

use super::workbook::{SheetCell, WorkbookBuilder};
use super::{damaged, zip_package};
use crate::dates::{self, DateOrder};
use crate::error::IngestError;

/// The largest sheet that spreadsheet programs can show. A file can repeat a row or a cell by writing a number, so a
/// few bytes can stand for billions of cells. What no program can show was never a table for anybody.
const MOST_ROWS: u32 = 1_048_576;
const MOST_COLUMNS: u32 = 16_384;

/// The most bytes of one row, so that repeated cells cannot make a row much larger than rows of other
/// tables.
const MOST_ROW_BYTES: u64 = 4 * 1024 * 1024;

pub(super) fn read(bytes: &[u8], book: &mut WorkbookBuilder<'_>) -> Result<(), IngestError> {
    let mut package = zip_package::open(bytes)?;
    if is_encrypted(&mut package) {
        return Err(IngestError::Encrypted);
    }
    let content = package
        .by_name("content.xml")
        .map_err(|_| damaged("spreadsheet"))?;
    let mut reader = Reader::from_reader(BufReader::new(content));
    reader.config_mut().expand_empty_elements = true;
    reader.config_mut().check_end_names = false;
    let mut cursor = OdsCursor::default();
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        let event = match reader.read_event_into(&mut buffer) {
            Ok(Event::Eof) => return Ok(()),
            Ok(event) => event,
            Err(_) => {
                book.lose_cells(&cursor.sheet, damaged("sheet"));
                return Ok(());
            }
        };
        let continues = match event {
            Event::Start(start) => cursor.open(&start, book),
            Event::End(end) => cursor.close(end.name().as_ref(), book),
            Event::Text(text) => cursor.text(&text.xml10_content()),
            Event::CData(text) => cursor.text(&text.xml10_content()),
            Event::GeneralRef(reference) => cursor.text(&character(&reference)),
            _ => true,
        };
        if !continues {
            return Ok(());
        }
    }
}

fn is_encrypted(package: &mut zip_package::SheetPackage<'_>) -> bool {
    let mut manifest = Vec::new();
    if let Ok(part) = package.by_name("META-INF/manifest.xml") {
        let _ = part.take(4 * 1024 * 1024).read_to_end(&mut manifest);
    }
    let mark = b"encryption-data";
    manifest.windows(mark.len()).any(|window| window == mark)
}

fn character(reference: &BytesRef<'_>) -> String {
    if let Ok(Some(c)) = reference.resolve_char_ref() {
        return c.to_string();
    }
    let name: &str = reference;
    let known = quick_xml::escape::resolve_predefined_entity(name);
    known.unwrap_or_default().to_owned()
}

/// The reader's position in the table, with the current row and cell.
#[derive(Default)]
struct OdsCursor {
    sheet: String,
    in_sheet: bool,
    row: u32,
    column: u32,
    /// How often the current row is repeated.
    rows: u32,
    row_cells: Vec<(u32, SheetCell)>,
    row_bytes: u64,
    cell: Option<OpenOdsCell>,
    /// Nesting depth inside a comment or drawing, whose text does not belong to the cell.
    ignored_depth: u32,
}

/// A cell whose end tag has not been reached.
struct OpenOdsCell {
    columns: u32,
    value: Option<SheetCell>,
    text: String,
    paragraphs: u32,
}

impl OdsCursor {
    fn open(&mut self, start: &BytesStart<'_>, book: &mut WorkbookBuilder<'_>) -> bool {
        if self.ignored_depth > 0 {
            self.ignored_depth += 1;
            return true;
        }
        match start.name().as_ref() {
            "table:table" => {
                self.sheet = attribute(start, "table:name").unwrap_or_default();
                self.in_sheet = true;
                (self.row, self.column) = (0, 0);
                return book.begin(&self.sheet);
            }
            "table:table-row" => {
                self.column = 0;
                self.rows = repeat_count(start, "table:number-rows-repeated").min(MOST_ROWS);
            }
            "table:table-cell" | "table:covered-table-cell" if self.in_sheet => {
                self.cell = Some(OpenOdsCell {
                    columns: repeat_count(start, "table:number-columns-repeated").min(MOST_COLUMNS),
                    value: typed(start),
                    text: String::new(),
                    paragraphs: 0,
                });
            }
            "office:annotation" | "draw:frame" | "draw:custom-shape" | "table:shapes" => {
                self.ignored_depth = 1;
            }
            "text:p" | "text:h" => {
                if let Some(cell) = &mut self.cell {
                    cell.paragraphs += 1;
                    if cell.paragraphs > 1 {
                        cell.text.push('\n');
                    }
                }
            }
            "text:s" => return self.text(" "),
            "text:tab" => return self.text("\t"),
            "text:line-break" => return self.text("\n"),
            _ => {}
        }
        true
    }

    fn text(&mut self, text: &str) -> bool {
        if let Some(cell) = &mut self.cell
            && self.ignored_depth == 0
            && cell.paragraphs > 0
        {
            cell.text.push_str(text);
        }
        true
    }

    fn close(&mut self, name: &str, book: &mut WorkbookBuilder<'_>) -> bool {
        if self.ignored_depth > 0 {
            self.ignored_depth -= 1;
            return true;
        }
        match name {
            "table:table" => self.in_sheet = false,
            "table:table-cell" | "table:covered-table-cell" => self.end_cell(),
            "table:table-row" => return self.end_row(book),
            _ => {}
        }
        true
    }

    fn end_cell(&mut self) {
        let Some(cell) = self.cell.take() else { return };
        let text = cell.text;
        let value = match cell.value {
            Some(value) => Some(value),
            None => (!text.trim().is_empty()).then_some(SheetCell::Text(text)),
        };
        let columns = cell.columns.min(MOST_COLUMNS.saturating_sub(self.column));
        if let Some(value) = value {
            for at in 0..columns {
                // A few bytes can ask for a long text sixteen thousand times.
                self.row_bytes += value.bytes();
                if self.row_bytes > MOST_ROW_BYTES {
                    break;
                }
                self.row_cells.push((self.column + at, value.clone()));
            }
        }
        self.column += columns;
    }

    fn end_row(&mut self, book: &mut WorkbookBuilder<'_>) -> bool {
        let rows = self.rows.min(MOST_ROWS.saturating_sub(self.row));
        let cells = std::mem::take(&mut self.row_cells);
        if self.row_bytes > MOST_ROW_BYTES {
            let limit = MOST_ROW_BYTES as usize;
            book.lose_cells(&self.sheet, IngestError::LineTooLong { limit });
        }
        self.row_bytes = 0;
        if !cells.is_empty() {
            for at in 0..rows {
                for (column, cell) in &cells {
                    if !book.put(self.row + at, *column, cell.clone()) {
                        return false;
                    }
                }
            }
        }
        self.row += rows;
        true
    }
}

/// The typed value in a cell's attributes; the cell's text is only its formatted form.
fn typed(start: &BytesStart<'_>) -> Option<SheetCell> {
    let kind = attribute(start, "office:value-type")?;
    match kind.as_str() {
        "float" | "percentage" | "currency" => {
            let number = attribute(start, "office:value")?.parse().ok()?;
            Some(SheetCell::Number(number))
        }
        "boolean" => Some(SheetCell::Bool(
            attribute(start, "office:boolean-value")? == "true",
        )),
        "date" => {
            let text = attribute(start, "office:date-value")?;
            let moment = dates::parse_in_order(&text, DateOrder::YearFirst);
            Some(moment.map_or(SheetCell::Text(text), SheetCell::Moment))
        }
        _ => None,
    }
}

fn repeat_count(start: &BytesStart<'_>, name: &str) -> u32 {
    let count = attribute(start, name).and_then(|text| text.parse().ok());
    count.unwrap_or(1).max(1)
}

fn attribute(start: &BytesStart<'_>, name: &str) -> Option<String> {
    let mut all = start.attributes();
    let found = all
        .with_checks(false)
        .flatten()
        .find(|attribute| attribute.key.as_ref() == name)?;
    let value = quick_xml::escape::unescape(&found.value).ok()?;
    Some(value.into_owned())
}
