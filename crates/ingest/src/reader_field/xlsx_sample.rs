//! Writes workbooks in the format of Excel since 2007.

use serde_json::Value as Raw;

use super::formats::{OFFICE, escaped, relations, text, types, zipped};

/// A workbook with one document that has this value in the field, or no such field.
pub(super) fn xlsx(raw: Option<&Raw>) -> Vec<u8> {
    let value = text(raw).unwrap_or_default();
    match raw {
        Some(_) => workbook_of(&[&["pier", "text", "allowed"], &["x", "words", &value]]),
        None => workbook_of(&[&["pier", "text"], &["x", "words"]]),
    }
}

/// A workbook of one sheet with these texts in its cells.
pub(super) fn workbook_of(rows: &[&[&str]]) -> Vec<u8> {
    let cell = |text: &&str| {
        let text = escaped(text);
        format!("<c t=\"inlineStr\"><is><t>{text}</t></is></c>")
    };
    let row = |row: &&[&str]| format!("<row>{}</row>", row.iter().map(cell).collect::<String>());
    let rows: String = rows.iter().map(row).collect();
    zipped(&[
        types("xl/workbook.xml", "spreadsheetml"),
        (
            "_rels/.rels",
            relations("officeDocument", "xl/workbook.xml"),
        ),
        (
            "xl/workbook.xml",
            format!(
                "<workbook xmlns:r=\"{OFFICE}\"><sheets><sheet name=\"S\" sheetId=\"1\" r:id=\"rId1\"/></sheets></workbook>"
            ),
        ),
        (
            "xl/_rels/workbook.xml.rels",
            relations("worksheet", "worksheets/sheet1.xml"),
        ),
        (
            "xl/worksheets/sheet1.xml",
            format!("<worksheet><sheetData>{rows}</sheetData></worksheet>"),
        ),
    ])
}
