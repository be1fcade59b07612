//! Writers of files whose reader field is a property: mail, books, PDF and office files.

use std::fmt::Write as _;

use super::formats::{OFFICE, escaped, relations, types, zipped};

/// A message with these lines of headers.
pub(super) fn mail(headers: &str) -> Vec<u8> {
    format!("Message-ID: <1@isle.example>\n{headers}\nwords\n").into_bytes()
}

pub(super) fn book(metadata: &str) -> Vec<u8> {
    zipped(&[
        ("mimetype", "application/epub+zip".to_owned()),
        (
            "META-INF/container.xml",
            "<container><rootfile full-path=\"p.opf\"/></container>".to_owned(),
        ),
        (
            "p.opf",
            format!(
                "<package><metadata>{metadata}</metadata><manifest><item id=\"a\" href=\"a.xhtml\"/></manifest><spine><itemref idref=\"a\"/></spine></package>"
            ),
        ),
        (
            "a.xhtml",
            "<html><body><p>words</p></body></html>".to_owned(),
        ),
    ])
}

/// A PDF file of one page; `info` is the information dictionary, and `trailer` stands in its trailer.
pub(super) fn pdf(info: &str, trailer: &str) -> Vec<u8> {
    let content = "BT /F 12 Tf 1 0 0 1 50 700 Tm (words) Tj ET";
    let objects = [
        "<</Type/Catalog/Pages 2 0 R>>".to_owned(),
        "<</Type/Pages/Kids[3 0 R]/Count 1>>".to_owned(),
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>"
            .to_owned(),
        format!("<</Length {}>>stream\n{content}\nendstream", content.len()),
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>".to_owned(),
        info.to_owned(),
    ];
    let mut out = "%PDF-1.7\n".to_owned();
    let mut table = format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
    for (index, object) in objects.iter().enumerate() {
        writeln!(table, "{:010} 00000 n ", out.len()).unwrap();
        writeln!(out, "{} 0 obj\n{object}\nendobj", index + 1).unwrap();
    }
    let start = out.len();
    let size = objects.len() + 1;
    let end = format!("trailer<</Size {size}/Root 1 0 R{trailer}>>\nstartxref\n{start}\n%%EOF\n");
    [out, table, end].concat().into_bytes()
}

pub(super) fn pdf_with(info: &str) -> Vec<u8> {
    pdf(&format!("<<{info}>>"), "/Info 6 0 R")
}

/// A text string of PDF in UTF-16.
pub(super) fn pdf_text(text: &str) -> String {
    let digits: String = text
        .encode_utf16()
        .map(|unit| format!("{unit:04X}"))
        .collect();
    format!("<FEFF{digits}>")
}

pub(super) fn core(properties: &str) -> (&'static str, String) {
    (
        "docProps/core.xml",
        format!("<cp:coreProperties>{properties}</cp:coreProperties>"),
    )
}

pub(super) fn extended(properties: &str) -> (&'static str, String) {
    (
        "docProps/app.xml",
        format!("<Properties><Pages>1</Pages>{properties}</Properties>"),
    )
}

pub(super) fn custom(properties: &str) -> (&'static str, String) {
    (
        "docProps/custom.xml",
        format!("<Properties>{properties}</Properties>"),
    )
}

pub(super) fn custom_property(text: &str) -> String {
    format!(
        "<property name=\"Allowed\"><lpwstr>{}</lpwstr></property>",
        escaped(text)
    )
}

pub(super) fn pptx(properties: (&'static str, String)) -> Vec<u8> {
    let slide =
        "<p:sld><p:sp><p:txBody><a:p><a:r><a:t>words</a:t></a:r></a:p></p:txBody></p:sp></p:sld>";
    zipped(&[
        types("ppt/presentation.xml", "presentationml.presentation"),
        ("_rels/.rels", relations("officeDocument", "ppt/presentation.xml")),
        (
            "ppt/presentation.xml",
            "<p:presentation><p:sldIdLst><p:sldId id=\"256\" r:id=\"rId1\"/></p:sldIdLst></p:presentation>".to_owned(),
        ),
        ("ppt/_rels/presentation.xml.rels", relations("slide", "slides/slide1.xml")),
        ("ppt/slides/slide1.xml", slide.to_owned()),
        properties,
    ])
}

pub(super) fn docx(properties: (&'static str, String)) -> Vec<u8> {
    zipped(&[
        types("word/document.xml", "wordprocessingml.document"),
        (
            "_rels/.rels",
            relations("officeDocument", "word/document.xml"),
        ),
        (
            "word/document.xml",
            "<document><body><p><r><t>words</t></r></p></body></document>".to_owned(),
        ),
        properties,
    ])
}

pub(super) fn xlsx(properties: (&'static str, String)) -> Vec<u8> {
    let cell = "<c r=\"A1\" t=\"inlineStr\"><is><t>words</t></is></c>";
    zipped(&[
        types("xl/workbook.xml", "spreadsheetml.sheet"),
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
            format!("<worksheet><sheetData><row r=\"1\">{cell}</row></sheetData></worksheet>"),
        ),
        properties,
    ])
}

pub(super) fn open_document(kind: &str, body: &str, meta: &str) -> Vec<u8> {
    zipped(&[
        (
            "mimetype",
            format!("application/vnd.oasis.opendocument.{kind}"),
        ),
        (
            "content.xml",
            format!(
                "<office:document-content><office:body>{body}</office:body></office:document-content>"
            ),
        ),
        (
            "meta.xml",
            format!(
                "<office:document-meta><office:meta>{meta}</office:meta></office:document-meta>"
            ),
        ),
    ])
}

pub(super) fn odt(meta: &str) -> Vec<u8> {
    open_document("text", "<text:p>words</text:p>", meta)
}

pub(super) fn ods(meta: &str) -> Vec<u8> {
    let sheet = "<office:spreadsheet><table:table table:name=\"S\"><table:table-row><table:table-cell><text:p>words</text:p></table:table-cell></table:table-row></table:table></office:spreadsheet>";
    open_document("spreadsheet", sheet, meta)
}

pub(super) fn user_defined(text: &str) -> String {
    format!(
        "<meta:user-defined meta:name=\"allowed\">{}</meta:user-defined>",
        escaped(text)
    )
}

pub(super) fn elements(name: &str, texts: &[String]) -> String {
    let element = |text: &String| format!("<{name}>{}</{name}>", escaped(text));
    texts.iter().map(element).collect()
}

pub(super) const NOTION: &str = "Plan 1f0c9e2b7d5a4c3e8b6f0a1d2c3b4e5f.md";

/// A reader field, a file, and how to write the file with a text in that field.
pub(super) type TextFormat = (&'static str, &'static str, fn(&str) -> Vec<u8>);

/// Formats with a property that is one text.
pub(super) const TEXTS: &[TextFormat] = &[
    ("subject", "a.eml", |text| {
        mail(&format!("Subject: {text}\n"))
    }),
    ("title", "a.epub", |text| {
        book(&format!("<dc:title>{}</dc:title>", escaped(text)))
    }),
    ("publisher", "b.epub", |text| {
        book(&format!("<dc:publisher>{}</dc:publisher>", escaped(text)))
    }),
    ("author", "a.pdf", |text| {
        pdf_with(&format!("/Title(T)/Author {}", pdf_text(text)))
    }),
    ("keywords", "b.pdf", |text| {
        pdf_with(&format!("/Keywords {}", pdf_text(text)))
    }),
    ("allowed", "a.pptx", |text| {
        pptx(custom(&custom_property(text)))
    }),
    ("title", "b.pptx", |text| {
        pptx(core(&format!("<dc:title>{}</dc:title>", escaped(text))))
    }),
    ("keywords", "c.pptx", |text| {
        pptx(core(&format!(
            "<cp:keywords>{}</cp:keywords>",
            escaped(text)
        )))
    }),
    ("author", "a.docx", |text| {
        docx(core(&format!("<dc:creator>{}</dc:creator>", escaped(text))))
    }),
    ("category", "a.xlsx", |text| {
        xlsx(core(&format!(
            "<cp:category>{}</cp:category>",
            escaped(text)
        )))
    }),
    ("allowed", "b.xlsx", |text| {
        xlsx(custom(&custom_property(text)))
    }),
    ("subject", "a.odt", |text| {
        odt(&format!("<dc:subject>{}</dc:subject>", escaped(text)))
    }),
    ("author", "b.odt", |text| {
        odt(&format!("<dc:creator>{}</dc:creator>", escaped(text)))
    }),
    ("keywords", "c.odt", |text| {
        odt(&format!("<meta:keyword>{}</meta:keyword>", escaped(text)))
    }),
    ("allowed", "a.ods", |text| ods(&user_defined(text))),
    ("allowed", NOTION, |text| {
        format!("# Plan\n\nAllowed: {text}\n\nwords\n").into_bytes()
    }),
    ("allowed", "notion.html", |text| {
        let row = format!("<tr><th>Allowed</th><td>{}</td></tr>", escaped(text));
        let table = format!("<table class=\"properties\"><tbody>{row}</tbody></table>");
        format!("<html><body><article>{table}<p>words</p></article></body></html>").into_bytes()
    }),
];

/// A reader field, a file, and how to write the file with one property for each text.
pub(super) type ListFormat = (&'static str, &'static str, fn(&[String]) -> Vec<u8>);

/// Formats that define a property to be repeated, once for each value.
pub(super) const LISTS: &[ListFormat] = &[
    ("author", "a.epub", |texts| {
        book(&elements("dc:creator", texts))
    }),
    ("subject", "b.epub", |texts| {
        book(&elements("dc:subject", texts))
    }),
];
