//! Office documents with hostile XML: entities, depth, and sizes.

use super::craft::{HUGE_MIB, Member, Packed, zip};
use super::{Expect, Hostile};

const WORDS: &str = "xmlns:w=\"http://schemas.openxmlformats.org/wordprocessingml/2006/main\"";
const SHEETS: &str = "xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\" \
    xmlns:r=\"http://schemas.openxmlformats.org/officeDocument/2006/relationships\"";
const TYPES: &str = "application/vnd.openxmlformats-officedocument";
const RELATIONS: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";

pub(super) fn all() -> Vec<Hostile> {
    let either = |name: &str, bytes: Vec<u8>| Hostile::new(name, bytes, Expect::Either);
    let huge = Member::packed("word/document.xml", &Packed::run(b' ', HUGE_MIB));
    let entity = "<!DOCTYPE d [<!ENTITY e SYSTEM \"file:///etc/passwd\">]>";
    let deep = format!("{}x{}", "<w:p>".repeat(100_000), "</w:p>".repeat(100_000));
    let attributes: String = (0..800_000).map(|n| format!(" a{n}=\"\"")).collect();
    let namespaces: String = (0..100_000)
        .map(|n| format!(" xmlns:n{n}=\"u:{n}\""))
        .collect();
    let corners = "<row r=\"1\"><c r=\"A1\"><v>1</v></c></row><row r=\"1048576\"><c r=\"XFD1048576\"><v>2</v></c></row>";
    let shared = "<c t=\"s\"><v>0</v></c>".repeat(10_000);
    let text = "word ".repeat(4_000_000);
    vec![
        Hostile::new(
            "docx-2gb.docx",
            package(huge),
            Expect::Code("too-much-inside"),
        ),
        either(
            "docx-entity.docx",
            docx(entity, "<w:p><w:r><w:t>&e;</w:t></w:r></w:p>"),
        ),
        either(
            "docx-laughs.docx",
            docx(&laughs(), "<w:p><w:r><w:t>&l9;</w:t></w:r></w:p>"),
        ),
        either("docx-deep.docx", docx("", &deep)),
        either(
            "docx-attributes.docx",
            docx("", &format!("<w:p{attributes}/>")),
        ),
        either(
            "docx-namespaces.docx",
            docx("", &format!("<w:p{namespaces}/>")),
        ),
        either("docx-unclosed.docx", docx("", &"<w:p>".repeat(1_000_000))),
        either(
            "docx-empty.docx",
            zip(&[Member::stored("[Content_Types].xml", "")]),
        ),
        either("xlsx-sparse.xlsx", xlsx(corners, "<si><t>a</t></si>")),
        either(
            "xlsx-strings.xlsx",
            xlsx(
                &format!("<row r=\"1\">{shared}</row>"),
                &format!("<si><t>{text}</t></si>"),
            ),
        ),
        either(
            "xlsx-dimension.xlsx",
            xlsx(
                "</sheetData><dimension ref=\"A1:XFD1048576\"/><sheetData>",
                "",
            ),
        ),
        either("epub-loop.epub", epub()),
    ]
}

fn laughs() -> String {
    let mut out = String::from("<!DOCTYPE d [<!ENTITY l0 \"lol\">");
    for level in 1..10 {
        let before = format!("&l{};", level - 1).repeat(10);
        out.push_str(&format!("<!ENTITY l{level} \"{before}\">"));
    }
    out + "]>"
}

fn docx(head: &str, body: &str) -> Vec<u8> {
    let xml = format!(
        "<?xml version=\"1.0\"?>{head}<w:document {WORDS}><w:body>{body}</w:body></w:document>"
    );
    package(Member::stored("word/document.xml", xml))
}

fn package(document: Member) -> Vec<u8> {
    let types = format!(
        "<Types xmlns=\"http://schemas.openxmlformats.org/package/2006/content-types\">\
         <Override PartName=\"/word/document.xml\" ContentType=\"{TYPES}.wordprocessingml.document.main+xml\"/></Types>"
    );
    zip(&[
        Member::stored("[Content_Types].xml", types),
        Member::stored(
            "_rels/.rels",
            relations("officeDocument", "word/document.xml"),
        ),
        document,
    ])
}

fn relations(kind: &str, target: &str) -> String {
    format!(
        "<Relationships xmlns=\"http://schemas.openxmlformats.org/package/2006/relationships\">\
         <Relationship Id=\"r1\" Type=\"{RELATIONS}/{kind}\" Target=\"{target}\"/>\
         <Relationship Id=\"r2\" Type=\"{RELATIONS}/sharedStrings\" Target=\"sharedStrings.xml\"/></Relationships>"
    )
}

fn xlsx(rows: &str, strings: &str) -> Vec<u8> {
    let part = |name: &str, kind: &str| {
        format!(
            "<Override PartName=\"/xl/{name}\" ContentType=\"{TYPES}.spreadsheetml.{kind}+xml\"/>"
        )
    };
    let types = format!(
        "<Types xmlns=\"http://schemas.openxmlformats.org/package/2006/content-types\">{}{}{}</Types>",
        part("workbook.xml", "sheet.main"),
        part("worksheets/sheet1.xml", "worksheet"),
        part("sharedStrings.xml", "sharedStrings"),
    );
    let book = format!(
        "<workbook {SHEETS}><sheets><sheet name=\"S\" sheetId=\"1\" r:id=\"r1\"/></sheets></workbook>"
    );
    zip(&[
        Member::stored("[Content_Types].xml", types),
        Member::stored(
            "_rels/.rels",
            relations("officeDocument", "xl/workbook.xml"),
        ),
        Member::stored("xl/workbook.xml", book),
        Member::stored(
            "xl/_rels/workbook.xml.rels",
            relations("worksheet", "worksheets/sheet1.xml"),
        ),
        Member::stored(
            "xl/worksheets/sheet1.xml",
            format!("<worksheet {SHEETS}><sheetData>{rows}</sheetData></worksheet>"),
        ),
        Member::stored(
            "xl/sharedStrings.xml",
            format!("<sst {SHEETS}>{strings}</sst>"),
        ),
    ])
}

/// A book whose spine refers to the package document itself a hundred thousand times.
fn epub() -> Vec<u8> {
    let container = "<container><rootfiles><rootfile full-path=\"a.opf\" \
        media-type=\"application/oebps-package+xml\"/></rootfiles></container>";
    let spine = "<itemref idref=\"a\"/>".repeat(100_000);
    let book = format!(
        "<package><manifest><item id=\"a\" href=\"a.opf\" media-type=\"application/xhtml+xml\"/></manifest>\
         <spine>{spine}</spine></package>"
    );
    zip(&[
        Member::stored("mimetype", "application/epub+zip"),
        Member::stored("META-INF/container.xml", container),
        Member::stored("a.opf", book),
    ])
}
