//! Reader for Excel 5 to 2003 workbooks (BIFF). It reads only what a person sees: values, dates and the
//! names of sheets.

use std::collections::HashMap;

use encoding_rs::{Encoding, UTF_16LE, WINDOWS_1252};

use super::cfb::{CompoundFile, f64_at, u16_at, u32_at};
use super::workbook::{SheetCell, WorkbookBuilder, from_serial, text_of_duration};
use super::{damaged, xls_strings};
use crate::error::IngestError;

pub(super) fn read(bytes: &[u8], book: &mut WorkbookBuilder<'_>) -> Result<(), IngestError> {
    let compound = CompoundFile::open(bytes)?;
    if compound.has("EncryptedPackage") {
        return Err(IngestError::Encrypted);
    }
    let stream = ["Workbook", "Book"].iter().find_map(|name| {
        let stream = compound.stream(name);
        stream.filter(|stream| !stream.is_empty())
    });
    let Some(stream) = stream else {
        let known = compound.has("Workbook") || compound.has("Book");
        return Err(if known {
            damaged("workbook")
        } else {
            IngestError::Unsupported {
                kind: "old office".to_owned(),
            }
        });
    };
    let workbook = XlsWorkbook::read(&stream)?;
    // Sheets do not overlap, so all of them together are no longer than the stream. This bounds a file that
    // refers to the same sheet a thousand times.
    let mut left = stream.len();
    for sheet in &workbook.sheets {
        if sheet.hidden {
            book.report_problem(&sheet.name, IngestError::Hidden);
            continue;
        }
        if !sheet.is_worksheet {
            continue;
        }
        if !book.begin(&sheet.name) {
            break;
        }
        let part = stream.get(sheet.start..).unwrap_or_default();
        let part = part.get(..left.min(part.len())).unwrap_or_default();
        match workbook.read_sheet(part, book) {
            Some(used) => left -= used.min(left),
            None => break,
        }
    }
    Ok(())
}

/// One BIFF record: its type and its data.
pub(super) struct BiffRecord<'a> {
    pub kind: u16,
    pub data: &'a [u8],
}

/// Iterates over the complete records of a stream.
pub(super) struct BiffRecordReader<'a> {
    rest: &'a [u8],
}

impl<'a> BiffRecordReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The type of the next record.
    pub(super) fn peek(&self) -> Option<u16> {
        u16_at(self.rest, 0)
    }
}

impl<'a> Iterator for BiffRecordReader<'a> {
    type Item = BiffRecord<'a>;

    fn next(&mut self) -> Option<BiffRecord<'a>> {
        let (kind, length) = (u16_at(self.rest, 0)?, usize::from(u16_at(self.rest, 2)?));
        let data = self.rest.get(4..4 + length)?;
        self.rest = self.rest.get(4 + length..)?;
        Some(BiffRecord { kind, data })
    }
}

const BEGIN: u16 = 0x0809;
const END: u16 = 0x000A;

#[derive(Debug)]
struct XlsSheetEntry {
    name: String,
    start: usize,
    hidden: bool,
    is_worksheet: bool,
}

/// What the number format of a cell makes of its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum XlsNumberKind {
    Number,
    Moment,
    Duration,
}

/// The workbook globals, which come before the sheets.
struct XlsWorkbook {
    sheets: Vec<XlsSheetEntry>,
    strings: Vec<String>,
    /// The kind of number for each cell style.
    styles: Vec<XlsNumberKind>,
    is_1904: bool,
    encoding: &'static Encoding,
    /// Whether texts are Unicode, as they are since Excel 97.
    is_unicode: bool,
}

impl XlsWorkbook {
    fn read(stream: &[u8]) -> Result<Self, IngestError> {
        let mut workbook = Self {
            sheets: Vec::new(),
            strings: Vec::new(),
            styles: Vec::new(),
            is_1904: false,
            encoding: WINDOWS_1252,
            is_unicode: true,
        };
        let mut formats = HashMap::new();
        let mut style_formats = Vec::new();
        let mut records = BiffRecordReader::new(stream);
        while let Some(record) = records.next() {
            match record.kind {
                BEGIN => workbook.is_unicode = u16_at(record.data, 0) != Some(0x0500),
                0x002F if u16_at(record.data, 0) != Some(0) || record.data.len() > 4 => {
                    return Err(IngestError::Encrypted);
                }
                0x0042 => workbook.encoding = code_page(u16_at(record.data, 0).unwrap_or(0)),
                0x0022 => workbook.is_1904 = u16_at(record.data, 0) == Some(1),
                0x041E => formats.extend(workbook.format(record.data)),
                0x00E0 => style_formats.push(u16_at(record.data, 2).unwrap_or(0)),
                0x0085 => workbook.sheets.extend(workbook.sheet_entry(record.data)),
                0x00FC => workbook.strings = xls_strings::shared_strings(record.data, &mut records),
                END => break,
                _ => {}
            }
        }
        workbook.styles = style_formats
            .into_iter()
            .map(|number| {
                let own = formats.get(&number).copied();
                own.unwrap_or_else(|| built_in_number_kind(number))
            })
            .collect();
        Ok(workbook)
    }

    fn format(&self, data: &[u8]) -> Option<(u16, XlsNumberKind)> {
        let text = if self.is_unicode {
            xls_strings::long_string(data.get(2..)?)?
        } else {
            xls_strings::legacy_string(data.get(2..)?, 1, self.encoding)?
        };
        Some((u16_at(data, 0)?, number_kind(&text)))
    }

    fn sheet_entry(&self, data: &[u8]) -> Option<XlsSheetEntry> {
        let name = if self.is_unicode {
            xls_strings::short_string(data.get(6..)?)?
        } else {
            xls_strings::legacy_string(data.get(6..)?, 1, self.encoding)?
        };
        Some(XlsSheetEntry {
            name,
            start: usize::try_from(u32_at(data, 0)?).ok()?,
            hidden: data.get(4)? & 3 != 0,
            is_worksheet: *data.get(5)? == 0,
        })
    }

    /// Reads the cells of one sheet and returns how many bytes it has; `None` when no more cells fit.
    fn read_sheet(&self, part: &[u8], book: &mut WorkbookBuilder<'_>) -> Option<usize> {
        let mut records = BiffRecordReader::new(part);
        let mut depth = 0_u32;
        // The position of a formula whose text result follows in the next record.
        let mut text_formula = None;
        for record in records.by_ref() {
            match record.kind {
                BEGIN => depth += 1,
                END => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        break;
                    }
                }
                // Charts embedded in a sheet have cells of their own.
                _ if depth != 1 => {}
                0x0006 => {
                    text_formula =
                        cell_position(record.data).filter(|_| is_text_result(record.data));
                }
                0x0207 => {
                    let text = self.text(record.data);
                    if let (Some((row, column)), Some(text)) = (text_formula.take(), text)
                        && !book.put(row, column, SheetCell::Text(text))
                    {
                        return None;
                    }
                }
                _ => {}
            }
            if depth == 1 && !self.put_cells(&record, book) {
                return None;
            }
        }
        Some(part.len() - records.rest.len())
    }

    /// Adds the cells of a record. Returns `false` when no more fit.
    fn put_cells(&self, record: &BiffRecord<'_>, book: &mut WorkbookBuilder<'_>) -> bool {
        let data = record.data;
        let Some((row, column)) = cell_position(data) else {
            return true;
        };
        let cell = match record.kind {
            0x0203 => f64_at(data, 6).map(|number| self.number(number, style(data, 4))),
            0x027E => u32_at(data, 6).map(|packed| self.number(decode_rk(packed), style(data, 4))),
            0x00FD => u32_at(data, 6).and_then(|at| {
                let text = self.strings.get(usize::try_from(at).ok()?)?;
                Some(SheetCell::Text(text.clone()))
            }),
            0x0204 | 0x00D6 => data
                .get(6..)
                .and_then(|data| self.text(data))
                .map(SheetCell::Text),
            0x0205 => match (data.get(6), data.get(7)) {
                (Some(value), Some(0)) => Some(SheetCell::Bool(*value != 0)),
                _ => None,
            },
            0x0006 => self.formula_result(data),
            0x00BD => {
                // Pairs of style and number, between the first and the last column.
                let pairs = data
                    .get(4..data.len().saturating_sub(2))
                    .unwrap_or_default();
                let pairs = pairs.chunks_exact(6);
                return (column..).zip(pairs).all(|(column, pair)| {
                    let number = u32_at(pair, 2).map(decode_rk);
                    let cell = number.map(|number| self.number(number, style(pair, 0)));
                    cell.is_none_or(|cell| book.put(row, column, cell))
                });
            }
            _ => None,
        };
        if cell.is_none() && matches!(record.kind, 0x00FD | 0x0204 | 0x00D6) {
            book.mark_lost_cells();
        }
        cell.is_none_or(|cell| book.put(row, column, cell))
    }

    fn text(&self, data: &[u8]) -> Option<String> {
        if self.is_unicode {
            xls_strings::long_string(data)
        } else {
            xls_strings::legacy_string(data, 2, self.encoding)
        }
    }

    /// The result of a formula when the file was saved.
    fn formula_result(&self, data: &[u8]) -> Option<SheetCell> {
        if u16_at(data, 12)? != 0xFFFF {
            return Some(self.number(f64_at(data, 6)?, style(data, 4)));
        }
        (*data.get(6)? == 1).then(|| Some(SheetCell::Bool(*data.get(8)? != 0)))?
    }

    fn number(&self, number: f64, style: usize) -> SheetCell {
        match self.styles.get(style) {
            Some(XlsNumberKind::Moment) => from_serial(number, self.is_1904),
            Some(XlsNumberKind::Duration) => text_of_duration(number),
            _ => SheetCell::Number(number),
        }
    }
}

fn cell_position(data: &[u8]) -> Option<(u32, u32)> {
    Some((u16_at(data, 0)?.into(), u16_at(data, 2)?.into()))
}

fn style(data: &[u8], at: usize) -> usize {
    u16_at(data, at).map_or(usize::MAX, usize::from)
}

fn is_text_result(data: &[u8]) -> bool {
    u16_at(data, 12) == Some(0xFFFF) && data.get(6) == Some(&0)
}

/// Decodes an RK number: four bytes with the upper half of a float, or an integer, either optionally
/// divided by 100.
fn decode_rk(packed: u32) -> f64 {
    let number = if packed & 2 != 0 {
        f64::from(packed.cast_signed() >> 2)
    } else {
        f64::from_bits(u64::from(packed & !3) << 32)
    };
    if packed & 1 != 0 {
        number / 100.0
    } else {
        number
    }
}

/// Number formats that are predefined in every workbook.
fn built_in_number_kind(number: u16) -> XlsNumberKind {
    match number {
        14..=22 | 27..=36 | 45 | 47 | 50..=58 => XlsNumberKind::Moment,
        46 => XlsNumberKind::Duration,
        _ => XlsNumberKind::Number,
    }
}

/// Classifies a number format such as `dd.mm.yyyy` or `[h]:mm`. Date and time letters count only outside
/// quotes, and in brackets they mean a duration.
fn number_kind(format: &str) -> XlsNumberKind {
    let mut chars = format.split(';').next().unwrap_or_default().chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => while chars.next().is_some_and(|c| c != '"') {},
            '\\' | '_' | '*' => drop(chars.next()),
            '[' => {
                let inside: String = chars.by_ref().take_while(|c| *c != ']').collect();
                let inside = inside.to_lowercase();
                let letters = ["h", "hh", "m", "mm", "s", "ss"];
                if letters.contains(&inside.as_str()) {
                    return XlsNumberKind::Duration;
                }
            }
            'd' | 'D' | 'm' | 'M' | 'y' | 'Y' | 'h' | 'H' | 's' | 'S' => {
                return XlsNumberKind::Moment;
            }
            // `General` and all digit placeholders.
            'G' | 'g' | '0' | '#' | '?' | '@' => return XlsNumberKind::Number,
            _ => {}
        }
    }
    XlsNumberKind::Number
}

/// Maps Windows code page numbers to encodings.
fn code_page(number: u16) -> &'static Encoding {
    let label = match number {
        932 => "shift_jis",
        936 => "gbk",
        949 => "euc-kr",
        950 => "big5",
        866 => "ibm866",
        874 => "windows-874",
        10_000 => "macintosh",
        1_200 => return UTF_16LE,
        1_250..=1_258 => {
            let name = format!("windows-{number}");
            return Encoding::for_label(name.as_bytes()).unwrap_or(WINDOWS_1252);
        }
        _ => return WINDOWS_1252,
    };
    Encoding::for_label(label.as_bytes()).unwrap_or(WINDOWS_1252)
}
