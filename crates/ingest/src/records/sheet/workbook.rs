//! Collects cells into sheets of rows, and turns each sheet into documents. A sheet with a header row is a table, and
//! each row below the header becomes a document. Any other sheet becomes one document whose text has a line for each row.

use std::collections::HashMap;

use docent_search::{AllowedReaders, DocId, Document};
use serde_json::{Map, Number, Value as Raw};

use crate::clean::{clean_line, truncate_chars};
use crate::dates::{DateAndTime, from_epoch_millis};
use crate::digest::sha256;
use crate::error::IngestError;
use crate::file_name::{file_id, title_from_name};
use crate::limits::Limits;
use crate::parser::{ParsedFile, ParserInput};
use crate::reader_field::{self, ReaderField, ReaderKeys};
use crate::records::column_types::{UniqueNames, put_date_and_time};
use crate::records::reader_column::{MOST_ABOVE, row_above_header};
use crate::records::record_ids::{UniqueIds, two_pass};
use crate::records::{RecordCollector, RecordLocation};
use crate::source_path::{percent_encode, truncate_id};

/// The most sheets of one workbook that are read.
const MOST_SHEETS: usize = 1_000;

/// The most problems reported for one workbook.
const MOST_PROBLEMS: usize = 100;

/// Bytes charged for a cell besides its text, about what it takes in memory.
const CELL_BYTES: u64 = 64;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum SheetCell {
    Text(String),
    Number(f64),
    Bool(bool),
    Moment(DateAndTime),
}

/// Converts a spreadsheet serial date, a number of days. Less than one day is a time without a date.
pub(super) fn from_serial(serial: f64, is_1904: bool) -> SheetCell {
    const DAY: f64 = 86_400_000.0;
    /// Days from the start of the calendar to 1970-01-01.
    const TO_1970: f64 = 25_569.0;
    if (0.0..1.0).contains(&serial) {
        return text_of_duration(serial);
    }
    let serial = if is_1904 { serial + 1_462.0 } else { serial };
    // The 1900 calendar has a 29 February that never existed; dates before it are off by one.
    let serial = if serial < 60.0 { serial + 1.0 } else { serial };
    // Round to seconds, because fractions of a day are inexact.
    let seconds = ((serial - TO_1970) * DAY / 1_000.0).round();
    let plausible = seconds.abs() < 1e12;
    let moment = plausible
        .then(|| from_epoch_millis(seconds as i64 * 1_000))
        .flatten();
    moment.map_or(SheetCell::Number(serial), SheetCell::Moment)
}

/// Formats a part of a day, or any number of days, as hours, minutes and seconds.
pub(super) fn text_of_duration(days: f64) -> SheetCell {
    let seconds = (days * 86_400.0).round();
    if !(0.0..1e12).contains(&seconds) {
        return SheetCell::Number(days);
    }
    let seconds = seconds as u64;
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    SheetCell::Text(format!("{hours:02}:{minutes:02}:{:02}", seconds % 60))
}

impl SheetCell {
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Self::Text(text) => CELL_BYTES + text.len() as u64,
            Self::Number(_) | Self::Bool(_) | Self::Moment(_) => CELL_BYTES,
        }
    }

    pub(super) fn display(&self) -> String {
        match self {
            Self::Text(text) => clean_line(text),
            Self::Number(number) => number.to_string(),
            Self::Bool(flag) => flag.to_string(),
            Self::Moment(moment) => match &moment.time {
                Some(time) => format!("{} {time}", moment.day),
                None => moment.day.clone(),
            },
        }
    }

    /// The cell's value for the reader field: text stays text, and any other type becomes a value that is
    /// malformed there.
    fn reader_value(&self) -> Raw {
        match self {
            Self::Text(text) => Raw::String(text.clone()),
            Self::Number(_) | Self::Bool(_) | Self::Moment(_) => Raw::Bool(false),
        }
    }

    fn put(self, name: &str, keys: &mut Map<String, Raw>) {
        let value = match self {
            Self::Moment(moment) => return put_date_and_time(keys, name, moment),
            Self::Text(text) => Raw::String(text),
            Self::Bool(flag) => Raw::Bool(flag),
            Self::Number(number) => as_number(number),
        };
        keys.insert(name.to_owned(), value);
    }
}

/// Converts integral values to integers: an id of 17 must not become 17.0.
pub(crate) fn as_number(number: f64) -> Raw {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() <= EXACT {
        return (number as i64).into();
    }
    Number::from_f64(number).map_or(Raw::Null, Raw::Number)
}

/// One row with its number, counted from 1.
#[derive(Debug)]
pub(super) struct SheetRow {
    pub number: u64,
    pub cells: Vec<(u32, SheetCell)>,
}

#[derive(Debug)]
pub(super) struct Worksheet {
    name: String,
    pub rows: Vec<SheetRow>,
    /// Whether some of its cells could not be read or kept.
    pub has_lost_cells: bool,
}

/// Collects the cells of a workbook within the limits.
pub(super) struct WorkbookBuilder<'a> {
    limits: &'a Limits,
    sheets: Vec<Worksheet>,
    problems: Vec<(String, IngestError)>,
    left: u64,
}

impl<'a> WorkbookBuilder<'a> {
    pub(super) fn new(limits: &'a Limits) -> Self {
        Self {
            limits,
            sheets: Vec::new(),
            problems: Vec::new(),
            left: limits.max_unpacked_bytes,
        }
    }

    /// Begins the next sheet. Returns `false` if there are too many.
    pub(super) fn begin(&mut self, name: &str) -> bool {
        if self.sheets.len() >= MOST_SHEETS {
            self.report_problem(name, too_many_sheets());
            return false;
        }
        let mut name = clean_line(name);
        truncate_chars(&mut name, self.limits.max_name_chars);
        // Row ids contain the sheet's name, and two names may become equal by cleaning and truncation.
        let is_taken = |name: &str| self.sheets.iter().any(|sheet| sheet.name == name);
        if is_taken(&name) {
            let mut others = (2..).map(|number: usize| format!("{name} {number}"));
            name = others.find(|name| !is_taken(name)).unwrap_or_default();
        }
        self.sheets.push(Worksheet {
            name,
            rows: Vec::new(),
            has_lost_cells: false,
        });
        true
    }

    /// Adds a cell, counted from 0, to the current sheet. Returns `false` when no more cells fit.
    pub(super) fn put(&mut self, row: u32, column: u32, cell: SheetCell) -> bool {
        let Some(sheet) = self.sheets.last_mut() else {
            return false;
        };
        if matches!(&cell, SheetCell::Text(text) if text.trim().is_empty()) {
            return true;
        }
        let limit = self.limits.max_columns;
        if column as usize >= limit {
            let name = sheet.name.clone();
            self.lose_cells(&name, IngestError::TooManyColumns { limit });
            return true;
        }
        let bytes = cell.bytes();
        if bytes > self.left {
            self.left = 0;
            let (name, limit) = (sheet.name.clone(), self.limits.max_unpacked_bytes);
            self.lose_cells(&name, IngestError::TooMuchInside { limit });
            return false;
        }
        self.left -= bytes;
        let number = u64::from(row) + 1;
        match sheet.rows.last_mut() {
            Some(last) if last.number == number => last.cells.push((column, cell)),
            _ => sheet.rows.push(SheetRow {
                number,
                cells: vec![(column, cell)],
            }),
        }
        // Keep one row more than may become documents, and some title rows, so that an excess is noticed.
        sheet.rows.len() <= self.limits.max_records.saturating_add(MOST_ABOVE + 1)
    }

    /// Reports cells of the current sheet that could not be read or kept. One of them may have named its
    /// readers.
    pub(super) fn lose_cells(&mut self, sheet: &str, reason: IngestError) {
        self.mark_lost_cells();
        self.report_problem(sheet, reason);
    }

    /// Like [`Self::lose_cells`], but without a line in the report.
    pub(super) fn mark_lost_cells(&mut self) {
        if let Some(sheet) = self.sheets.last_mut() {
            sheet.has_lost_cells = true;
        }
    }

    /// Reports a problem with a sheet, once.
    pub(super) fn report_problem(&mut self, sheet: &str, reason: IngestError) {
        let problem = (clean_line(sheet), reason);
        if self.problems.len() < MOST_PROBLEMS && !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    /// Builds the documents. The file's own readers apply to every row that names none.
    pub(super) fn into_documents(
        mut self,
        input: &ParserInput<'_>,
        readers: &ReaderField,
    ) -> Result<ParsedFile, IngestError> {
        for sheet in &mut self.sheets {
            sheet.sort();
        }
        self.sheets.retain(|sheet| !sheet.rows.is_empty());
        two_pass(input, |input| self.documents(input, readers))
    }

    fn documents(
        &self,
        input: &ParserInput<'_>,
        readers: &ReaderField,
    ) -> Result<ParsedFile, IngestError> {
        let mut records = RecordCollector::new(input);
        records.set_file_readers(readers.clone());
        let sole = self.sheets.len() == 1;
        for sheet in &self.sheets {
            let layout = sheet.layout(records.reader_keys());
            records.doubt_readers(layout.hides_readers);
            for row in sheet.rows.iter().take(layout.preamble) {
                let cells: Vec<_> = row.cells.iter().map(|(_, cell)| cell.display()).collect();
                let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
                if let Some(reason) = row_above_header(&cells) {
                    let location = RecordLocation::Table {
                        table: &sheet.name,
                        row: row.number,
                        key: None,
                        sole,
                    };
                    records.skip(location, reason);
                }
            }
            match layout.header {
                Some(at) => add_table(&mut records, sheet, at, sole),
                None => {
                    if sheet.has_inner_readers(records.reader_keys()) {
                        records.doubt_readers(true);
                    }
                    add_lines(&mut records, input, sheet, sole)?;
                }
            }
        }
        for (sheet, reason) in &self.problems {
            records.skip_part(sheet, reason.clone());
        }
        records.finish()
    }
}

fn too_many_sheets() -> IngestError {
    IngestError::Damaged {
        what: "it has too many sheets".into(),
    }
}

impl Worksheet {
    /// Whether some cell contains JSON with the reader field. In a table, the rows are searched one by one.
    fn has_inner_readers(&self, readers: &ReaderKeys) -> bool {
        let mut cells = self.rows.iter().flat_map(|row| &row.cells);
        cells.any(|(_, cell)| matches!(cell, SheetCell::Text(text) if readers.stand_in_text(text)))
    }

    /// Sorts rows and cells and removes duplicates. Most writers keep the order already.
    fn sort(&mut self) {
        self.rows.sort_by_key(|row| row.number);
        let mut rows: Vec<SheetRow> = Vec::with_capacity(self.rows.len());
        for row in std::mem::take(&mut self.rows) {
            match rows.last_mut() {
                Some(last) if last.number == row.number => last.cells.extend(row.cells),
                _ => rows.push(row),
            }
        }
        for row in &mut rows {
            row.cells.sort_by_key(|(column, _)| *column);
            row.cells.dedup_by_key(|(column, _)| *column);
        }
        self.rows = rows;
    }
}

/// Column names by column number; `None` for the reader column.
pub(super) type SheetColumnNames = HashMap<u32, Option<String>>;

fn add_table(records: &mut RecordCollector<'_>, sheet: &Worksheet, header: usize, sole: bool) {
    let mut rows = sheet.rows.iter().skip(header);
    let Some(head) = rows.next() else { return };
    let mut names = SheetColumnNames::new();
    let mut readers = Vec::new();
    let mut taken = UniqueNames::default();
    for (column, cell) in &head.cells {
        let name = cell.display();
        if records.reader_keys().covers_key(&name) {
            readers.push((*column, name));
            names.insert(*column, None);
            continue;
        }
        names.insert(*column, Some(taken.make_unique(&name)));
    }
    let has_keys = !sole && have_keys(rows.clone(), &names);
    for row in rows {
        if row.is_other_header(&names, records.reader_keys()) {
            records.doubt_readers(true);
        }
        let mut keys = keys_of(row, &names);
        for (column, name) in &readers {
            let cell = row.cells.iter().find(|(at, _)| at == column);
            let value = cell.map_or(Raw::Null, |(_, cell)| cell.reader_value());
            reader_field::insert_keeping_duplicates(&mut keys, name, value);
        }
        let key = if has_keys { id_of(&keys) } else { None };
        let location = RecordLocation::Table {
            table: &sheet.name,
            row: row.number,
            key: key.as_deref(),
            sole,
        };
        if !records.begin(location) {
            break;
        }
        records.add(location, keys, None);
    }
}

fn keys_of(row: &SheetRow, names: &SheetColumnNames) -> Map<String, Raw> {
    let mut keys = Map::new();
    for (column, cell) in &row.cells {
        match names.get(column) {
            Some(Some(name)) => cell.clone().put(name, &mut keys),
            Some(None) => {}
            None => cell
                .clone()
                .put(&format!("column {}", column_letters(*column)), &mut keys),
        }
    }
    keys
}

/// Whether every row of a sheet has an `id`, and no two have the same.
fn have_keys<'r>(mut rows: impl Iterator<Item = &'r SheetRow>, names: &SheetColumnNames) -> bool {
    let mut unique = UniqueIds::for_table();
    rows.all(|row| id_of(&keys_of(row, names)).is_some_and(|id| unique.add(&id).is_ok()))
}

/// The value of the row's `id` column. Other sheets may use the same values, so it is only unique within
/// the sheet.
fn id_of(keys: &Map<String, Raw>) -> Option<String> {
    let (_, id) = keys
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("id"))?;
    match id {
        Raw::String(text) => Some(text.clone()),
        Raw::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The name of a column as spreadsheets show it, such as `AB`.
fn column_letters(column: u32) -> String {
    let mut letters = Vec::new();
    let mut left = column;
    loop {
        letters.push(char::from(b'A' + u8::try_from(left % 26).unwrap_or(0)));
        if left < 26 {
            break;
        }
        left = left / 26 - 1;
    }
    letters.iter().rev().collect()
}

/// Adds a sheet that is not a table as lines, with the cells of a row side by side.
fn add_lines(
    records: &mut RecordCollector<'_>,
    input: &ParserInput<'_>,
    sheet: &Worksheet,
    sole: bool,
) -> Result<(), IngestError> {
    let limit = input.limits.max_text_chars;
    let mut text = String::new();
    for row in &sheet.rows {
        let cells: Vec<_> = row.cells.iter().map(|(_, cell)| cell.display()).collect();
        text.push_str(&cells.join(" | "));
        text.push('\n');
        // A character has at most four bytes, so this never stops too early.
        if text.len() / 4 > limit {
            break;
        }
    }
    if text.chars().nth(limit).is_some() {
        records.skip_part(&sheet.name, IngestError::TextTooLong { limit });
        return Ok(());
    }
    let (id, mut title) = if sole {
        (file_id(input)?, title_from_name(input))
    } else {
        let id = format!(
            "{}#{}/text",
            input.id,
            percent_encode(sheet.name.as_bytes())
        );
        let id = DocId::parse(&truncate_id(id)).map_err(|error| IngestError::BadId {
            why: error.to_string(),
        })?;
        (
            id,
            clean_line(&format!("{}, {}", title_from_name(input), sheet.name)),
        )
    };
    truncate_chars(&mut title, input.limits.max_title_chars);
    let document = Document {
        id,
        title,
        hash: sha256(text.as_bytes()),
        readers: AllowedReaders::Everyone,
        text,
        url: None,
        date: None,
        fields: Vec::new(),
        source: input.path.to_owned(),
    };
    records.add_document(document.into());
    Ok(())
}
