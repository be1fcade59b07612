//! Zip files into documents: what is in the package decides who reads it.

mod parts;

use crate::error::Reason;
use crate::format::{Format, Input, Parsed};
use crate::{docx, epub, odt, ooxml, pptx};

pub(crate) use parts::{Parts, resolve};

pub(crate) const FORMAT: Format = Format {
    name: "package",
    extensions: &[
        "docx", "docm", "dotx", "epub", "odp", "odt", "ott", "pptm", "pptx", "ppsx",
    ],
    begins,
    parse,
};

fn begins(head: &[u8]) -> bool {
    head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06")
}

fn parse(input: &Input<'_>) -> Result<Parsed, Reason> {
    let mut parts = Parts::open(input.bytes, input.limits)?;
    if parts.has("[Content_Types].xml") {
        let main = ooxml::main_part(&mut parts)?;
        return match main.kind.as_str() {
            "wordprocessingml" => docx::parse(input, &mut parts, &main.path),
            "presentationml" => pptx::parse(input, &mut parts, &main.path),
            "spreadsheetml" => sheet(input, &mut parts),
            _ => archive(input, &mut parts),
        };
    }
    let kind = parts.text("mimetype")?.unwrap_or_default();
    match kind.trim().strip_prefix("application/").unwrap_or_default() {
        "epub+zip" => epub::parse(input, &mut parts),
        "vnd.oasis.opendocument.text"
        | "vnd.oasis.opendocument.text-template"
        | "vnd.oasis.opendocument.presentation" => odt::parse(input, &mut parts),
        "vnd.oasis.opendocument.spreadsheet" => sheet(input, &mut parts),
        _ if parts.has("META-INF/container.xml") => epub::parse(input, &mut parts),
        _ => archive(input, &mut parts),
    }
}

/// A part beside the document itself: when it is damaged, only what it says is lost.
pub(crate) fn beside<T: Default>(read: Result<T, Reason>) -> Result<T, Reason> {
    match read {
        Err(Reason::Damaged { .. }) => Ok(T::default()),
        other => other,
    }
}

/// Spreadsheets: XLSX and ODS.
fn sheet(_input: &Input<'_>, _parts: &mut Parts<'_>) -> Result<Parsed, Reason> {
    Err(Reason::Unsupported {
        kind: "spreadsheet".to_owned(),
    })
}

/// Archives of files, and packages of no known kind.
fn archive(_input: &Input<'_>, _parts: &mut Parts<'_>) -> Result<Parsed, Reason> {
    Err(Reason::Unsupported {
        kind: "zip".to_owned(),
    })
}
