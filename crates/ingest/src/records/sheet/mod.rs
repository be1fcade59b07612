//! Spreadsheet parser (xlsx, ods, xls): a sheet that is a table becomes one document per row, any other
//! sheet one document of readable lines. The cells decide which it is, not the file format.

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
use crate::formats::file_format::FileFormat;
use crate::parser::{ParsedFile, ParserInput};
use crate::reader_field::ReaderField;
use workbook::WorkbookBuilder;

pub(crate) use workbook::as_number;

pub(crate) const FORMAT: FileFormat = FileFormat {
    name: "spreadsheet",
    kind: "xls",
    extensions: &["xls"],
    // Spreadsheets in zip packages are recognized by their parts instead.
    has_signature: is_compound,
    parse: parse_bare,
    stream: None,
    is_trusted: false,
    kind_inside: Some(cfb::kind),
    packages: &[],
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

/// Parses a spreadsheet of any kind and rejects other files in the same containers. `readers` is the reader
/// field from the file's properties, which applies to rows without one of their own.
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

/// Runs a third-party reader and turns a panic on a damaged file into an error for that file.
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
