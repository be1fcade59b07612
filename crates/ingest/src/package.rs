//! Zip files into documents: what is in the package decides who reads it.

mod parts;

use crate::error::Reason;
use crate::format::{Format, Input, Parsed};
use crate::{archive, docx, epub, odt, ooxml, pptx, sheet};

pub(crate) use parts::{Parts, resolve};

pub(crate) const FORMAT: Format = Format {
    name: "package",
    extensions: &[
        "docx", "docm", "dotx", "epub", "odp", "ods", "odt", "ott", "pptm", "pptx", "ppsx", "xlsm",
        "xlsx", "zip",
    ],
    begins: archive::is_zip,
    parse,
};

fn parse(input: &Input<'_>) -> Result<Parsed, Reason> {
    // An archive may have more members than are read; a document may not.
    if archive::is_plain_zip(input.bytes) {
        return archive::zip(input);
    }
    let mut parts = Parts::open(input.bytes, input.limits)?;
    if parts.has("[Content_Types].xml") {
        let main = ooxml::main_part(&mut parts)?;
        return match main.kind.as_str() {
            "wordprocessingml" => docx::parse(input, &mut parts, &main.path),
            "presentationml" => pptx::parse(input, &mut parts, &main.path),
            "spreadsheetml" => sheet::parse(input),
            // Not every program says what it wrote.
            _ if parts.has("xl/workbook.xml") => sheet::parse(input),
            _ => archive::zip(input),
        };
    }
    let kind = parts.text("mimetype")?.unwrap_or_default();
    match kind.trim().strip_prefix("application/").unwrap_or_default() {
        "epub+zip" => epub::parse(input, &mut parts),
        "vnd.oasis.opendocument.text"
        | "vnd.oasis.opendocument.text-template"
        | "vnd.oasis.opendocument.presentation" => odt::parse(input, &mut parts),
        "vnd.oasis.opendocument.spreadsheet" => sheet::parse(input),
        _ if parts.has("META-INF/container.xml") => epub::parse(input, &mut parts),
        _ => archive::zip(input),
    }
}

/// A part beside the document itself: when it is damaged, only what it says is lost.
pub(crate) fn beside<T: Default>(read: Result<T, Reason>) -> Result<T, Reason> {
    match read {
        Err(Reason::Damaged { .. }) => Ok(T::default()),
        other => other,
    }
}
