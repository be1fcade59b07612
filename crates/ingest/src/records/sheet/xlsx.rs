//! Office Open XML workbook reader. It reads cell by cell and never allocates the rectangle that a sheet
//! spans, which may have seventeen thousand million cells of which two are not empty.

use std::collections::HashSet;
use std::io::Cursor;

use calamine::{DataRef, Reader as _, SheetType, SheetVisible, Xlsx, XlsxError};

use super::damaged;
use super::workbook::{SheetCell, WorkbookBuilder, from_serial, text_of_duration};
use crate::dates::{self, DateOrder};
use crate::error::IngestError;

/// Unreadable cells of one sheet after which the rest of the sheet is given up. Single bad cells are written by faulty
/// exporters, and their rows are still worth reading; after so many, the sheet is damaged, and every further one would
/// only lengthen the report.
const MOST_BAD_CELLS: usize = 1_000;

pub(super) fn read(bytes: &[u8], book: &mut WorkbookBuilder<'_>) -> Result<(), IngestError> {
    let mut workbook = Xlsx::new(Cursor::new(bytes)).map_err(|error| match error {
        XlsxError::Password => IngestError::Encrypted,
        _ => damaged("workbook"),
    })?;
    let is_1904 = workbook.has_1904_epoch();
    let sheets = workbook.sheets_metadata().to_vec();
    if sheets.is_empty() {
        return Err(damaged("list of sheets"));
    }
    let mut names = HashSet::new();
    for sheet in sheets {
        // The library looks sheets up by name, so the first of two would be read twice, even if the second
        // is hidden.
        if !names.insert(sheet.name.clone()) {
            book.report_problem(&sheet.name, same_name());
            continue;
        }
        if sheet.typ != SheetType::WorkSheet {
            continue;
        }
        if sheet.visible != SheetVisible::Visible {
            book.report_problem(&sheet.name, IngestError::Hidden);
            continue;
        }
        if !book.begin(&sheet.name) {
            break;
        }
        read_sheet(&mut workbook, &sheet.name, is_1904, book);
    }
    Ok(())
}

fn same_name() -> IngestError {
    IngestError::Damaged {
        what: "another sheet has the same name".into(),
    }
}

fn read_sheet(
    workbook: &mut Xlsx<Cursor<&[u8]>>,
    name: &str,
    is_1904: bool,
    book: &mut WorkbookBuilder<'_>,
) {
    let Ok(mut cells) = workbook.worksheet_cells_reader(name) else {
        return book.report_problem(name, damaged("sheet"));
    };
    let mut bad = 0;
    loop {
        match cells.next_cell() {
            Ok(None) => break,
            Ok(Some(cell)) => {
                let (row, column) = cell.get_position();
                let Some(value) = convert(cell.get_value(), is_1904) else {
                    continue;
                };
                if !book.put(row, column, value) {
                    break;
                }
            }
            Err(error) => {
                // After a bad cell the next one may be readable; after broken XML nothing is.
                bad += 1;
                let stops = matches!(
                    error,
                    XlsxError::Xml(_) | XlsxError::XmlEof(_) | XlsxError::Io(_) | XlsxError::Zip(_)
                );
                if stops || bad >= MOST_BAD_CELLS {
                    break;
                }
            }
        }
    }
    if bad > 0 {
        book.lose_cells(name, damaged("content of some cells"));
    }
}

fn convert(value: &DataRef<'_>, is_1904: bool) -> Option<SheetCell> {
    match value {
        DataRef::Empty | DataRef::Error(_) => None,
        DataRef::Int(number) => Some(SheetCell::Number(*number as f64)),
        DataRef::Float(number) => Some(SheetCell::Number(*number)),
        DataRef::String(text) => Some(SheetCell::Text(text.clone())),
        DataRef::SharedString(text) => Some(SheetCell::Text((*text).to_owned())),
        DataRef::Bool(flag) => Some(SheetCell::Bool(*flag)),
        DataRef::DateTime(moment) if moment.is_duration() => {
            Some(text_of_duration(moment.as_f64()))
        }
        DataRef::DateTime(moment) => Some(from_serial(moment.as_f64(), is_1904)),
        DataRef::DateTimeIso(text) => {
            Some(match dates::parse_in_order(text, DateOrder::YearFirst) {
                Some(moment) => SheetCell::Moment(moment),
                None => SheetCell::Text(text.clone()),
            })
        }
        DataRef::DurationIso(text) => Some(SheetCell::Text(text.clone())),
    }
}
