//! Zip packages: dispatches office documents, EPUB books and plain archives to their parsers by the parts
//! they contain.

pub(crate) mod ooxml;
pub(crate) mod package_parts;

use serde_json::{Map, Value as Raw};

use crate::error::IngestError;
use crate::formats::package::package_parts::PackageParts;
use crate::formats::{archive, docx, epub, odt, pptx};
use crate::parser::{FileFormat, ParsedFile, ParserInput};
use crate::reader_field::{ReaderFault, ReaderField, ReaderKeys};
use crate::records::sheet;

pub(crate) const FORMAT: FileFormat = FileFormat {
    name: "package",
    extensions: &[
        "docx", "docm", "dotx", "epub", "odp", "ods", "odt", "ott", "pptm", "pptx", "ppsx", "xlsm",
        "xlsx", "zip",
    ],
    has_signature: archive::is_zip,
    parse,
};

fn parse(input: &ParserInput<'_>) -> Result<ParsedFile, IngestError> {
    // For a plain archive, members over the limit are left out; a document is rejected as a whole.
    if archive::is_plain_zip(input.bytes) {
        return archive::zip(input);
    }
    let mut parts = PackageParts::open(input.bytes, input.limits)?;
    if parts.has("[Content_Types].xml") {
        let main = ooxml::main_part(&mut parts)?;
        return match main.kind.as_str() {
            "wordprocessingml" => docx::parse(input, &mut parts, &main),
            "presentationml" => pptx::parse(input, &mut parts, &main),
            // Some programs write a wrong content type, or none.
            kind if kind == "spreadsheetml" || parts.has("xl/workbook.xml") => {
                let readers = readers_of_file(input, |readers| {
                    ooxml::properties(&mut parts, &main, readers)
                });
                sheet::parse(input, &readers)
            }
            _ => archive::zip(input),
        };
    }
    let kind = parts.text("mimetype")?.unwrap_or_default();
    match kind.trim().strip_prefix("application/").unwrap_or_default() {
        "epub+zip" => epub::parse(input, &mut parts),
        "vnd.oasis.opendocument.text"
        | "vnd.oasis.opendocument.text-template"
        | "vnd.oasis.opendocument.presentation" => odt::parse(input, &mut parts),
        "vnd.oasis.opendocument.spreadsheet" => {
            let readers = readers_of_file(input, |readers| {
                let meta = parts.text("meta.xml")?.unwrap_or_default();
                odt::properties(&meta, readers)
            });
            sheet::parse(input, &readers)
        }
        _ if parts.has("META-INF/container.xml") => epub::parse(input, &mut parts),
        _ => archive::zip(input),
    }
}

/// The reader field of a whole file, from its document properties. It fails closed: with unreadable
/// properties nobody may read the file.
fn readers_of_file(
    input: &ParserInput<'_>,
    properties: impl FnOnce(&ReaderKeys) -> Result<Map<String, Raw>, IngestError>,
) -> ReaderField {
    let readers = ReaderKeys::for_input(input);
    if !readers.is_configured() {
        return ReaderField::Absent;
    }
    match properties(&readers) {
        Ok(mut keys) => readers.take(&mut keys),
        Err(_) => ReaderField::Malformed(ReaderFault::FrontMatter),
    }
}
