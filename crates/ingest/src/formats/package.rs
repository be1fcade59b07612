//! Zip packages: dispatches office documents, EPUB books and plain archives to their parsers by the parts
//! they contain.

pub(crate) mod ooxml;
mod package_kind;
pub(crate) mod package_parts;

use serde_json::{Map, Value as Raw};

use crate::error::IngestError;
use crate::formats::file_format::FileFormat;
use crate::formats::package::ooxml::OoxmlMainPart;
use crate::formats::package::package_parts::PackageParts;
use crate::formats::{archive, docx, epub, odt, pptx};
use crate::parser::{ParsedFile, ParserInput};
use crate::reader_field::{ReaderFault, ReaderField, ReaderKeys};
use crate::records::sheet;

/// Every format inside a zip package. A package that none of them fits is a plain archive.
pub(crate) const PACKAGES: &[PackageFormat] = &[
    docx::FORMAT,
    pptx::FORMAT,
    XLSX,
    epub::FORMAT,
    odt::FORMAT,
    odt::PRESENTATION,
    ODS,
];

pub(crate) const FORMAT: FileFormat = FileFormat {
    name: "package",
    kind: "zip",
    extensions: &["zip"],
    has_signature: archive::is_zip,
    parse,
    stream: None,
    is_trusted: false,
    kind_inside: Some(package_kind::kind),
    packages: PACKAGES,
};

/// A format inside a zip package: how its parts tell it from the others, and how they are parsed.
#[derive(Debug)]
pub(crate) struct PackageFormat {
    /// The name of the format in reports.
    pub name: &'static str,
    /// Extensions in lower case, without the dot. They decide only where the content cannot be read.
    pub extensions: &'static [&'static str],
    /// For Office Open XML, the [kind](OoxmlMainPart::kind) of the main part.
    pub main_kind: Option<&'static str>,
    /// The values of the part `mimetype` behind `application/`, for formats that have this part.
    pub media_types: &'static [&'static str],
    /// A part, or the folder of parts, that only this format has; empty if `mimetype` always names it.
    pub part: &'static str,
    /// Parses an opened package. The main part is empty for formats other than Office Open XML.
    pub parse: PackageParser,
}

/// A parser of one format inside a zip package.
pub(crate) type PackageParser =
    fn(&ParserInput<'_>, &mut PackageParts<'_>, &OoxmlMainPart) -> Result<ParsedFile, IngestError>;

/// Spreadsheets are parsed by a reader of their own, which unpacks the file itself; only the properties come from here.
const XLSX: PackageFormat = PackageFormat {
    name: "xlsx",
    extensions: &["xlsm", "xlsx"],
    main_kind: Some("spreadsheetml"),
    media_types: &[],
    part: "xl/",
    parse: |input, parts, main| {
        let readers = readers_of_file(input, |readers| ooxml::properties(parts, main, readers));
        sheet::parse(input, &readers)
    },
};

const ODS: PackageFormat = PackageFormat {
    name: "ods",
    extensions: &["ods"],
    main_kind: None,
    media_types: &["vnd.oasis.opendocument.spreadsheet"],
    part: "",
    parse: |input, parts, _| {
        let readers = readers_of_file(input, |readers| {
            let meta = parts.text("meta.xml")?.unwrap_or_default();
            odt::properties(&meta, readers)
        });
        sheet::parse(input, &readers)
    },
};

fn parse(input: &ParserInput<'_>) -> Result<ParsedFile, IngestError> {
    // For a plain archive, members over the limit are left out; a document is rejected as a whole.
    if archive::is_plain_zip(input.bytes) {
        return archive::zip(input);
    }
    let mut parts = PackageParts::open(input.bytes, input.limits)?;
    let mut main = OoxmlMainPart::default();
    let format = if parts.has("[Content_Types].xml") {
        main = ooxml::main_part(&mut parts)?;
        let mut formats = PACKAGES.iter();
        let found = formats.find(|format| format.main_kind == Some(main.kind.as_str()));
        // Some programs write a wrong content type for spreadsheets, or none.
        found.or_else(|| parts.has("xl/workbook.xml").then_some(&XLSX))
    } else {
        let media_type = parts.text("mimetype")?.unwrap_or_default();
        let media_type = media_type.trim().strip_prefix("application/");
        let is_named =
            |format: &&PackageFormat| media_type.is_some_and(|it| format.media_types.contains(&it));
        let is_shown = |format: &&PackageFormat| {
            format.main_kind.is_none() && !format.part.is_empty() && parts.has(format.part)
        };
        let found = PACKAGES.iter().find(is_named);
        found.or_else(|| PACKAGES.iter().find(is_shown))
    };
    match format {
        Some(format) => (format.parse)(input, &mut parts, &main),
        None => archive::zip(input),
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
