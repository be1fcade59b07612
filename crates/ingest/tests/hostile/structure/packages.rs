//! An intact Word document and an intact workbook as lists of parts, the input of the mutations.

use crate::files::craft::{Member, zip};

const TYPES: &str = "application/vnd.openxmlformats-officedocument";
const RELATIONS: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
const PACKAGE: &str = "http://schemas.openxmlformats.org/package/2006";
const WORDS: &str = "xmlns:w=\"http://schemas.openxmlformats.org/wordprocessingml/2006/main\"";
const SHEETS: &str = "xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\" \
    xmlns:r=\"http://schemas.openxmlformats.org/officeDocument/2006/relationships\"";

/// Words of the document's body, each in its own paragraph or cell.
pub(super) const BODY_WORDS: &[&str] = &[
    "Harbourmaster",
    "Moorings",
    "Dredging",
    "Pilotage",
    "Buoyage",
    "Lightkeeper",
];

pub(super) const FOOTNOTE_WORDS: &[&str] = &["Footnoteword", "Endnoteword"];

/// Words of the first sheet in row order.
pub(super) const FIRST_SHEET_WORDS: &[&str] = &["Kittiwake", "Fulmar", "Razorbill", "Guillemot"];

/// Words of the second sheet in row order.
pub(super) const SECOND_SHEET_WORDS: &[&str] = &["Slipway", "Breakwater"];

#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
}

/// The parts of a package before it is zipped.
#[derive(Debug, Clone)]
pub(super) struct Package {
    pub(super) extension: &'static str,
    pub(super) parts: Vec<Part>,
}

impl Package {
    fn new(extension: &'static str, parts: &[(&str, String)]) -> Self {
        let part = |(name, text): &(&str, String)| Part {
            name: (*name).to_owned(),
            bytes: text.clone().into_bytes(),
        };
        Self {
            extension,
            parts: parts.iter().map(part).collect(),
        }
    }

    pub(super) fn members(&self) -> Vec<Member> {
        let member = |part: &Part| Member::deflated(&part.name, &part.bytes);
        self.parts.iter().map(member).collect()
    }

    pub(super) fn packed(&self) -> Vec<u8> {
        zip(&self.members())
    }
}

/// The `[Content_Types].xml` part: names of parts and their types.
fn types(parts: &[(&str, &str)]) -> String {
    let part = |(name, kind): &(&str, &str)| {
        format!("<Override PartName=\"/{name}\" ContentType=\"{TYPES}.{kind}+xml\"/>")
    };
    let parts: String = parts.iter().map(part).collect();
    format!("<Types xmlns=\"{PACKAGE}/content-types\">{parts}</Types>")
}

/// Relationships `r1`, `r2` and so on, given as types and targets.
fn relations(targets: &[(&str, &str)]) -> String {
    let relation = |((kind, target), number): (&(&str, &str), usize)| {
        format!("<Relationship Id=\"r{number}\" Type=\"{RELATIONS}/{kind}\" Target=\"{target}\"/>")
    };
    let relations: String = targets.iter().zip(1..).map(relation).collect();
    format!("<Relationships xmlns=\"{PACKAGE}/relationships\">{relations}</Relationships>")
}

fn paragraph(properties: &str, content: &str) -> String {
    format!("<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{content}</w:t></w:r></w:p>")
}

pub(super) fn docx() -> Package {
    let list = |level: usize| {
        format!("<w:numPr><w:ilvl w:val=\"{level}\"/><w:numId w:val=\"1\"/></w:numPr>")
    };
    let cell = |word: &str| {
        format!(
            "<w:tc><w:tcPr><w:gridSpan w:val=\"1\"/></w:tcPr>{}</w:tc>",
            paragraph("", word)
        )
    };
    let body = [
        paragraph("<w:pStyle w:val=\"H\"/>", "Harbourmaster"),
        paragraph("<w:pStyle w:val=\"Plain\"/>", "Moorings &amp; more"),
        paragraph(&list(0), "Dredging"),
        paragraph(&list(1), "Pilotage"),
        format!(
            "<w:tbl><w:tr>{}{}</w:tr></w:tbl>",
            cell("Buoyage"),
            cell("Lightkeeper")
        ),
        "<w:p><w:r><w:t>see</w:t></w:r><w:r><w:footnoteReference w:id=\"1\"/></w:r></w:p>"
            .to_owned(),
    ]
    .concat();
    let styles = "<w:style w:styleId=\"H\"><w:name w:val=\"heading 1\"/></w:style>\
        <w:style w:styleId=\"Base\"><w:name w:val=\"base\"/></w:style>\
        <w:style w:styleId=\"Plain\"><w:name w:val=\"plain\"/><w:basedOn w:val=\"Base\"/></w:style>";
    let level = |level: usize| {
        format!(
            "<w:lvl w:ilvl=\"{level}\"><w:start w:val=\"1\"/><w:numFmt w:val=\"decimal\"/></w:lvl>"
        )
    };
    let numbering = format!(
        "<w:abstractNum w:abstractNumId=\"7\">{}{}</w:abstractNum>\
         <w:num w:numId=\"1\"><w:abstractNumId w:val=\"7\"/></w:num>",
        level(0),
        level(1)
    );
    let note =
        |kind: &str, word: &str| format!("<w:{kind} w:id=\"1\">{}</w:{kind}>", paragraph("", word));
    let part = |root: &str, content: &str| {
        format!("<?xml version=\"1.0\"?><w:{root} {WORDS}>{content}</w:{root}>")
    };
    let kind = |name: &str| format!("wordprocessingml.{name}");
    let main = kind("document.main");
    Package::new(
        "docx",
        &[
            (
                "[Content_Types].xml",
                types(&[("word/document.xml", &main)]),
            ),
            (
                "_rels/.rels",
                relations(&[("officeDocument", "word/document.xml")]),
            ),
            (
                "word/document.xml",
                part("document", &format!("<w:body>{body}</w:body>")),
            ),
            (
                "word/_rels/document.xml.rels",
                relations(&[
                    ("styles", "styles.xml"),
                    ("numbering", "numbering.xml"),
                    ("footnotes", "footnotes.xml"),
                    ("endnotes", "endnotes.xml"),
                ]),
            ),
            ("word/styles.xml", part("styles", styles)),
            ("word/numbering.xml", part("numbering", &numbering)),
            (
                "word/footnotes.xml",
                part("footnotes", &note("footnote", "Footnoteword")),
            ),
            (
                "word/endnotes.xml",
                part("endnotes", &note("endnote", "Endnoteword")),
            ),
            (
                "docProps/core.xml",
                "<coreProperties><creator>Kerrin Vale</creator></coreProperties>".to_owned(),
            ),
        ],
    )
}

pub(super) fn xlsx() -> Package {
    let fleet = "<row r=\"1\" spans=\"1:4\"><c r=\"A1\" t=\"s\"><v>0</v></c><c r=\"B1\" t=\"s\"><v>1</v></c></row>\
        <row r=\"2\"><c r=\"A2\" t=\"s\"><v>2</v></c><c r=\"B2\" s=\"1\"><v>45363</v></c></row>\
        <row r=\"3\"><c r=\"A3\" t=\"inlineStr\"><is><t>Fulmar</t></is></c><c r=\"B3\"><f>SUM(C1:C2)</f><v>17</v></c></row>\
        <row r=\"4\"><c r=\"A4\" t=\"s\"><v>3</v></c><c r=\"B4\" t=\"b\"><v>1</v></c></row>\
        <row r=\"5\"><c r=\"A5\" t=\"str\"><v>Guillemot</v></c><c r=\"B5\"><v>2.5</v></c></row>";
    let notes = "<row r=\"1\"><c r=\"A1\" t=\"inlineStr\"><is><t>Slipway</t></is></c></row>\
        <row r=\"3\"><c r=\"A3\" t=\"inlineStr\"><is><t>Breakwater</t></is></c></row>";
    let sheet = |dimension: &str, rows: &str| {
        format!(
            "<worksheet {SHEETS}><dimension ref=\"{dimension}\"/><sheetData>{rows}</sheetData>\
             <mergeCells count=\"1\"><mergeCell ref=\"A1:B1\"/></mergeCells></worksheet>"
        )
    };
    let strings: String = ["Boat", "Sailed", "Kittiwake", "Razorbill"]
        .map(|text| format!("<si><t>{text}</t></si>"))
        .concat();
    let kind = |name: &str| format!("spreadsheetml.{name}");
    let (main, worksheet) = (kind("sheet.main"), kind("worksheet"));
    Package::new(
        "xlsx",
        &[
            (
                "[Content_Types].xml",
                types(&[
                    ("xl/workbook.xml", &main),
                    ("xl/worksheets/sheet1.xml", &worksheet),
                    ("xl/worksheets/sheet2.xml", &worksheet),
                ]),
            ),
            (
                "_rels/.rels",
                relations(&[("officeDocument", "xl/workbook.xml")]),
            ),
            (
                "xl/workbook.xml",
                format!(
                    "<workbook {SHEETS}><workbookPr date1904=\"0\"/><sheets>\
                     <sheet name=\"Fleet\" sheetId=\"1\" r:id=\"r1\"/>\
                     <sheet name=\"Notes\" sheetId=\"2\" r:id=\"r2\"/></sheets></workbook>"
                ),
            ),
            (
                "xl/_rels/workbook.xml.rels",
                relations(&[
                    ("worksheet", "worksheets/sheet1.xml"),
                    ("worksheet", "worksheets/sheet2.xml"),
                    ("sharedStrings", "sharedStrings.xml"),
                    ("styles", "styles.xml"),
                ]),
            ),
            ("xl/worksheets/sheet1.xml", sheet("A1:B5", fleet)),
            ("xl/worksheets/sheet2.xml", sheet("A1:A3", notes)),
            (
                "xl/sharedStrings.xml",
                format!("<sst {SHEETS} count=\"4\" uniqueCount=\"4\">{strings}</sst>"),
            ),
            (
                "xl/styles.xml",
                format!(
                    "<styleSheet {SHEETS}><cellXfs count=\"2\"><xf numFmtId=\"0\"/>\
                     <xf numFmtId=\"14\"/></cellXfs></styleSheet>"
                ),
            ),
        ],
    )
}
