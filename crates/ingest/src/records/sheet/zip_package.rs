//! Identifies the kind of spreadsheet in a zip package and measures its unpacked size. Everything is
//! unpacked once and counted before a parser sees it, so a directory with false sizes does not get a zip
//! bomb through.

use std::io::{BufRead, BufReader, Cursor, Read as _};

use quick_xml::Reader;
use quick_xml::events::Event;
use zip::ZipArchive;
use zip::result::ZipError;

use super::damaged;
use crate::error::IngestError;
use crate::limits::Limits;

pub(super) type SheetPackage<'a> = ZipArchive<Cursor<&'a [u8]>>;

/// The most parts of one package. No program opens workbooks with more than a few thousand sheets. The directory of a
/// package is read as a whole before the first part, so its length has to be bounded before.
const MOST_PARTS: usize = 20_000;

/// The most strings that a shared string table may announce, because the library reserves memory for them
/// in advance.
const MOST_STRINGS: u64 = 4_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SheetPackageKind {
    Xlsx,
    Ods,
}

#[derive(Debug)]
pub(super) struct MeasuredPackage {
    pub kind: SheetPackageKind,
}

pub(super) fn open(bytes: &[u8]) -> Result<SheetPackage<'_>, IngestError> {
    ZipArchive::new(Cursor::new(bytes)).map_err(|_| damaged("zip package"))
}

/// Unpacks all parts to count their bytes, without keeping them.
pub(super) fn measure(bytes: &[u8], limits: &Limits) -> Result<MeasuredPackage, IngestError> {
    let limit = limits.max_unpacked_bytes;
    let mut package = open(bytes)?;
    if package.len() > MOST_PARTS {
        return Err(damaged("zip package"));
    }
    let kind = kind(&mut package)?;
    let mut announced = 0_u64;
    for at in 0..package.len() {
        let part = package
            .by_index_raw(at)
            .map_err(|error| zip_error(&error))?;
        announced = announced.saturating_add(part.size());
        if part.encrypted() {
            return Err(IngestError::Encrypted);
        }
    }
    if announced > limit {
        return Err(IngestError::TooMuchInside { limit });
    }
    let mut left = limit;
    for at in 0..package.len() {
        // A part that cannot be unpacked here cannot be unpacked by the parser either.
        let Ok(part) = package.by_index(at) else {
            continue;
        };
        let is_strings = part
            .name()
            .is_ok_and(|name| name.to_ascii_lowercase().ends_with("sharedstrings.xml"));
        let mut counted = BufReader::new(part.take(left + 1));
        if is_strings {
            check_strings(&mut counted)?;
        }
        // Bytes buffered during the check have been counted already.
        let read = std::io::copy(&mut counted, &mut std::io::sink());
        let unpacked = (left + 1) - counted.get_ref().limit();
        if unpacked > left {
            return Err(IngestError::TooMuchInside { limit });
        }
        left -= unpacked;
        drop(read);
    }
    Ok(MeasuredPackage { kind })
}

fn zip_error(error: &ZipError) -> IngestError {
    match error {
        ZipError::InvalidPassword => IngestError::Encrypted,
        _ => damaged("zip package"),
    }
}

fn kind(package: &mut SheetPackage<'_>) -> Result<SheetPackageKind, IngestError> {
    let names: Vec<String> = package
        .file_names()
        .filter_map(Result::ok)
        .map(|name| name.replace('\\', "/").to_ascii_lowercase())
        .collect();
    let has = |end: &str| names.iter().any(|name| name.ends_with(end));
    if has("xl/workbook.xml") || (has("[content_types].xml") && has("worksheets/sheet1.xml")) {
        return Ok(SheetPackageKind::Xlsx);
    }
    let unsupported = |kind: &str| IngestError::Unsupported {
        kind: kind.to_owned(),
    };
    if has("xl/workbook.bin") {
        return Err(unsupported("xlsb"));
    }
    let mut mime = Vec::new();
    if let Ok(part) = package.by_name("mimetype") {
        // A spreadsheet or a spreadsheet template.
        let _ = part.take(128).read_to_end(&mut mime);
    }
    if mime.starts_with(b"application/vnd.oasis.opendocument.spreadsheet") {
        return Ok(SheetPackageKind::Ods);
    }
    Err(unsupported("zip or office"))
}

/// Checks how many strings a shared string table announces, with the same XML parser that the library uses.
fn check_strings(part: &mut impl BufRead) -> Result<(), IngestError> {
    let mut reader = Reader::from_reader(part);
    reader.config_mut().expand_empty_elements = true;
    reader.config_mut().check_end_names = false;
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        match reader.read_event_into(&mut buffer) {
            Ok(Event::Start(start)) if start.local_name().as_ref() == "sst" => {
                let announced = start
                    .attributes()
                    .with_checks(false)
                    .flatten()
                    .filter(|attribute| attribute.key.as_ref() == "uniqueCount")
                    .any(|attribute| too_many(&attribute.value));
                return if announced {
                    Err(damaged("table of shared strings"))
                } else {
                    Ok(())
                };
            }
            Ok(Event::Eof) | Err(_) => return Ok(()),
            Ok(_) => {}
        }
    }
}

fn too_many(announced: &str) -> bool {
    let digits = announced.bytes().any(|byte| byte.is_ascii_digit());
    digits
        && announced
            .trim()
            .parse::<u64>()
            .is_ok_and(|count| count > MOST_STRINGS)
}
