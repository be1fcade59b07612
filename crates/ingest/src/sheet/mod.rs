//! Spreadsheets (xlsx, ods, xls) into documents: a sheet that is a table into one document a row, any other
//! sheet into one document of readable lines. What a sheet is, its cells decide, not its file.

mod cfb;
mod header;
mod ods;
mod workbook;
mod xls;
mod xls_strings;
mod xlsx;
mod zip_package;

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::IngestError;
use crate::format::{FileFormat, ParsedFile, ParserInput};
use crate::reader_field::ReaderField;
use workbook::WorkbookBuilder;

pub(crate) use workbook::as_number;

pub(crate) const FORMAT: FileFormat = FileFormat {
    name: "spreadsheet",
    extensions: &["xls"],
    // What is a package is known by what is in it.
    has_signature: is_compound,
    parse: parse_bare,
};

fn is_package(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PK\x03\x04")
}

fn is_compound(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1")
}

fn parse_bare(input: &ParserInput<'_>) -> Result<ParsedFile, IngestError> {
    parse(input, &ReaderField::Absent)
}

/// Reads a spreadsheet of any kind, and refuses whatever is packed the same way and is none. `readers` is what
/// the file's properties say about who may read its rows.
pub(crate) fn parse(
    input: &ParserInput<'_>,
    readers: &ReaderField,
) -> Result<ParsedFile, IngestError> {
    let mut book = WorkbookBuilder::new(input.limits);
    if is_package(input.bytes) {
        let package = zip_package::measure(input.bytes, input.limits)?;
        match package.kind {
            zip_package::SheetPackageKind::Xlsx => guarded(|| xlsx::read(input.bytes, &mut book))?,
            zip_package::SheetPackageKind::Ods => ods::read(input.bytes, &mut book)?,
        }
    } else {
        xls::read(input.bytes, &mut book)?;
    }
    book.into_documents(input, readers)
}

/// Runs a reader that is not ours. Where a damaged file makes it panic, the file is damaged and no more.
fn guarded(read: impl FnOnce() -> Result<(), IngestError>) -> Result<(), IngestError> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| Err(damaged("spreadsheet")))
}

fn damaged(what: &str) -> IngestError {
    IngestError::Damaged {
        what: format!("the {what} cannot be read").into(),
    }
}

#[cfg(test)]
mod tests;
