//! Tests of the spreadsheet parser, also on hostile files, which must stay within their limits.

use std::io::{Cursor, Read as _, Write as _};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use proptest::prelude::*;

use super::*;
use crate::limits::Limits;
use crate::parser::tests::with_input;

fn zipped(parts: &[(&str, &str)]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    for (name, text) in parts {
        writer.start_file(*name, options).unwrap();
        writer.write_all(text.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

const NONE: &str = "<sst/>";

const RELS: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";

/// A workbook of one sheet with these rows and this shared string table.
fn xlsx(strings: &str, rows: &str) -> Vec<u8> {
    let workbook = format!(
        r#"<workbook xmlns:r="{RELS}"><sheets><sheet name="Tab" sheetId="1" r:id="rId1"/></sheets></workbook>"#
    );
    let rels = format!(
        r#"<Relationships><Relationship Id="rId1" Type="{RELS}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>"#
    );
    let sheet = format!("<worksheet><sheetData>{rows}</sheetData></worksheet>");
    let top = format!(
        r#"<Relationships><Relationship Id="rId1" Type="{RELS}/officeDocument" Target="xl/workbook.xml"/></Relationships>"#
    );
    zipped(&[
        ("_rels/.rels", &top),
        ("xl/workbook.xml", &workbook),
        ("xl/_rels/workbook.xml.rels", &rels),
        ("xl/sharedStrings.xml", strings),
        ("xl/worksheets/sheet1.xml", &sheet),
    ])
}

fn ods(rows: &str) -> Vec<u8> {
    let content = format!(
        r#"<office:document-content><table:table table:name="Tab">{rows}</table:table></office:document-content>"#
    );
    zipped(&[
        ("mimetype", "application/vnd.oasis.opendocument.spreadsheet"),
        ("content.xml", &content),
    ])
}

/// Formats results as `id|text` for a document and `path:code` for a skipped item.
fn show(bytes: &[u8], limits: &Limits) -> Vec<String> {
    let parsed = match with_input("b.xlsx", bytes, limits, parse_bare) {
        Ok(parsed) => parsed,
        Err(reason) => return vec![reason.code().to_owned()],
    };
    let documents = parsed
        .documents
        .iter()
        .map(|d| format!("{}|{}", d.id, d.text.replace('\n', "/")));
    let skipped = parsed
        .skipped
        .iter()
        .map(|s| format!("{}:{}:{}", s.path, s.line.unwrap_or(0), s.reason.code()));
    documents.chain(skipped).collect()
}

fn inline(reference: &str, text: &str) -> String {
    format!(r#"<c r="{reference}" t="inlineStr"><is><t>{text}</t></is></c>"#)
}

fn table(rows: usize) -> String {
    let mut out = format!(
        "<row r=\"1\">{}{}</row>",
        inline("A1", "a"),
        inline("B1", "b")
    );
    for row in 2..=rows + 1 {
        out.push_str(&format!(
            r#"<row r="{row}"><c r="A{row}"><v>{row}</v></c><c r="B{row}"><v>0.5</v></c></row>"#
        ));
    }
    out
}

#[test]
fn a_table_is_rows_and_anything_else_is_lines() {
    let limits = Limits::default();
    assert_eq!(
        show(&xlsx(NONE, &table(2)), &limits),
        ["b.xlsx#Tab/2|a: 2/b: 0.5/", "b.xlsx#Tab/3|a: 3/b: 0.5/"]
    );
    assert_eq!(
        show(&xlsx(NONE, &table(1)), &limits),
        ["b.xlsx|a | b/2 | 0.5/"]
    );
    let numbers = r#"<row><c><v>1</v></c><c><v>2</v></c></row>"#.repeat(3);
    assert_eq!(
        show(&xlsx(NONE, &numbers), &limits),
        ["b.xlsx|1 | 2/1 | 2/1 | 2/"]
    );
    let one_column: String = (1..5)
        .map(|row| format!("<row r=\"{row}\">{}</row>", inline(&format!("A{row}"), "x")))
        .collect();
    assert_eq!(show(&xlsx(NONE, &one_column), &limits), ["b.xlsx|x/x/x/x/"]);
    assert_eq!(show(&xlsx(NONE, ""), &limits), ["empty"]);
}

#[test]
fn a_sheet_with_two_far_corners_is_two_cells() {
    let rows = format!(
        "<row r=\"1\">{}</row><row r=\"1048576\">{}</row>",
        inline("A1", "first"),
        inline("XFD1048576", "last")
    );
    assert_eq!(
        show(&xlsx(NONE, &rows), &Limits::default()),
        ["b.xlsx|first/last/"]
    );
    let far = r#"<table:table-row table:number-rows-repeated="1048575"><table:table-cell table:number-columns-repeated="16384"/></table:table-row>"#;
    let text = "<table:table-row><table:table-cell><text:p>x</text:p></table:table-cell></table:table-row>";
    let rows = format!("{text}{far}{text}");
    assert_eq!(show(&ods(&rows), &Limits::default()), ["b.xlsx|x/"]);
}

#[test]
fn repeated_cells_are_bounded() {
    let limits = Limits {
        max_records: 5,
        ..Limits::default()
    };
    let rows = format!(
        r#"<table:table-row table:number-rows-repeated="4000000000"><table:table-cell table:number-columns-repeated="4000000000"><text:p>{}</text:p></table:table-cell></table:table-row>"#,
        "x".repeat(1_000)
    );
    let found = show(&ods(&rows), &limits);
    assert!(
        found.last().unwrap().ends_with("line-too-long"),
        "{}",
        found.len()
    );
}

#[test]
fn the_unpacked_size_of_a_workbook_is_limited() {
    let bytes = xlsx(NONE, &table(3));
    let unpacked: u64 = {
        let mut package = zip_package::open(&bytes).unwrap();
        (0..package.len())
            .map(|at| package.by_index(at).unwrap().size())
            .sum()
    };
    let limits = |max_unpacked_bytes| Limits {
        max_unpacked_bytes,
        ..Limits::default()
    };
    assert!(zip_package::measure(&bytes, &limits(unpacked)).is_ok());
    let code = |bytes: &[u8], limits: &Limits| {
        zip_package::measure(bytes, limits)
            .map(drop)
            .map_err(|r| r.code())
    };
    assert_eq!(code(&bytes, &limits(unpacked - 1)), Err("too-much-inside"));
    // A false directory entry: the size is a four-byte number 24 bytes after the entry's signature.
    let mut lying = bytes.clone();
    let mark = lying
        .windows(4)
        .rposition(|four| four == b"PK\x01\x02")
        .unwrap();
    lying[mark + 24..mark + 28].copy_from_slice(&1_u32.to_le_bytes());
    // The zip library enforces the claimed size, so the measured size is what a parser sees.
    let mut package = zip_package::open(&lying).unwrap();
    let mut part = Vec::new();
    let at = package.len() - 1;
    let read = package.by_index(at).unwrap().read_to_end(&mut part);
    assert!(read.is_err() && part.len() < 8, "{read:?} {}", part.len());
}

#[test]
fn announced_strings_are_bounded() {
    let announce = |count: &str| {
        let strings =
            format!(r#"<!-- <sst> --><sst uniqueCount="{count}"><si><t>s</t></si></sst>"#);
        show(&xlsx(&strings, &table(2)), &Limits::default())
    };
    assert_eq!(announce("4000000").len(), 2);
    for count in ["4000001", "99999999999999999", "1000000000000"] {
        assert_eq!(announce(count), ["damaged"], "{count}");
    }
    // This overflows the number type, so no memory is reserved.
    assert_eq!(announce("99999999999999999999999").len(), 2);
}

#[test]
fn texts_that_many_cells_share_are_bounded() {
    let strings = format!("<sst><si><t>{}</t></si></sst>", "x".repeat(10_000));
    let rows: String = (1..200)
        .map(|row| format!(r#"<row r="{row}"><c t="s"><v>0</v></c></row>"#))
        .collect();
    let limits = Limits {
        max_unpacked_bytes: 1_000_000,
        ..Limits::default()
    };
    let found = show(&xlsx(&strings, &rows), &limits);
    assert_eq!(found.last().unwrap(), "b.xlsx#Tab:0:too-much-inside");
}

#[test]
fn records_and_columns_are_bounded() {
    let limits = Limits {
        max_records: 2,
        max_columns: 2,
        ..Limits::default()
    };
    assert_eq!(show(&xlsx(NONE, &table(2)), &limits).len(), 2);
    let found = show(&xlsx(NONE, &table(40)), &limits);
    assert_eq!(found.len(), 3);
    assert_eq!(found[2], "b.xlsx#Tab:4:too-many-records");
    let wide = format!("{}<row r=\"9\">{}</row>", table(2), inline("C9", "x"));
    assert_eq!(
        show(&xlsx(NONE, &wide), &limits)[2],
        "b.xlsx#Tab:0:too-many-columns"
    );
}

#[test]
fn a_bad_cell_costs_only_itself() {
    let rows = format!(
        "{}<row r=\"9\"><c r=\"A9\" t=\"s\"><v>77</v></c>{}</row>",
        table(2),
        inline("B9", "x")
    );
    assert_eq!(
        show(&xlsx(NONE, &rows), &Limits::default()),
        [
            "b.xlsx#Tab/2|a: 2/b: 0.5/",
            "b.xlsx#Tab/3|a: 3/b: 0.5/",
            "b.xlsx#Tab/9|b: x/",
            "b.xlsx#Tab:0:damaged"
        ]
    );
    let cut = format!("{}<row r=\"9\"><c r=\"A9\"", table(2));
    assert_eq!(show(&xlsx(NONE, &cut), &Limits::default()).len(), 3);
}

#[test]
fn other_packages_are_refused() {
    let check = |parts: &[(&str, &str)], code: &str| {
        assert_eq!(show(&zipped(parts), &Limits::default()), [code]);
    };
    check(&[("word/document.xml", "x")], "unsupported");
    check(&[("xl/workbook.bin", "x")], "unsupported");
    check(&[("xl/workbook.xml", "x")], "damaged");
    check(
        &[("mimetype", "application/vnd.oasis.opendocument.spreadsheet")],
        "damaged",
    );
    assert_eq!(
        show(b"PK\x03\x04 and nothing", &Limits::default()),
        ["damaged"]
    );
    assert_eq!(
        show(b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1", &Limits::default()),
        ["damaged"]
    );
}

#[test]
fn days_are_those_that_spreadsheets_show() {
    let shown = |serial: f64, is_1904: bool| match workbook::from_serial(serial, is_1904) {
        workbook::SheetCell::Moment(moment) => [Some(moment.day), moment.time]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(" "),
        workbook::SheetCell::Text(text) => text,
        other => format!("{other:?}"),
    };
    for (serial, expect) in [
        (1.0, "1900-01-01"),
        (59.0, "1900-02-28"),
        (61.0, "1900-03-01"),
        (45_363.437_5, "2024-03-12 10:30:00"),
        (45_363.999_999_9, "2024-03-13"),
        (0.5, "12:00:00"),
        (2_958_465.0, "9999-12-31"),
    ] {
        assert_eq!(shown(serial, false), expect, "{serial}");
    }
    assert_eq!(shown(43_901.0, true), "2024-03-12");
    for invalid in [-1.0e300, f64::NAN, f64::INFINITY, 2_958_466.0] {
        assert!(shown(invalid, false).starts_with("Number"), "{invalid}");
    }
}

/// Random sequences of fragments of sheet XML, for property tests.
fn soup(pieces: &'static [&'static str]) -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        12 => prop::sample::select(pieces).prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

const XLSX_PIECES: &[&str] = &[
    "<row r=\"1\">",
    "<row>",
    "</row>",
    "<c r=\"A1\">",
    "<c>",
    "<c t=\"s\">",
    "<c t=\"b\" r=\"XFD9\">",
    "</c>",
    "<c r=\"A99999999999\">",
    "<c r=\"ZZZZZZZZ1\">",
    "<c t=\"inlineStr\"><is><t>",
    "</t></is></c>",
    "<v>",
    "</v>",
    "0",
    "1e308",
    "<c t=\"d\"><v>2024-03-12</v></c>",
    "<c t=\"e\">",
    "<c s=\"99\">",
    "<f>",
    "&amp;",
    "&#0;",
    "&x;",
    "<![CDATA[",
    "]]>",
    "-->",
    "<row r=\"1048576\">",
    "<row r=\"4294967295\">",
    "<c r=\"XFD1048576\"><v>1</v></c>",
    "<dimension ref=\"B2:A1\"/>",
    "name",
];

const ODS_PIECES: &[&str] = &[
    "<table:table-row>",
    "</table:table-row>",
    "<table:table-row table:number-rows-repeated=\"999999999\">",
    "<table:table-cell>",
    "<table:table-cell office:value-type=\"float\" office:value=\"1e999\">",
    "</table:table-cell>",
    "<table:table-cell table:number-columns-repeated=\"999999\">",
    "<text:p>",
    "</text:p>",
    "words",
    "<text:s/>",
    "&lt;",
    "<office:annotation>",
    "</office:annotation>",
    "<table:table table:name=\"p2\">",
    "</table:table>",
    "<table:covered-table-cell/>",
    "<table:table-cell office:value-type=\"date\" office:date-value=\"2024-03-12\">",
    "<table:table-cell office:value-type=\"boolean\">",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn any_sheet_stays_within_its_bounds(rows in soup(XLSX_PIECES), cells in soup(ODS_PIECES)) {
        let limits = Limits {
            max_records: 5,
            max_columns: 20,
            max_text_chars: 1_000,
            ..Limits::default()
        };
        for bytes in [xlsx("<sst><si><t>s</t></si></sst>", &rows), ods(&cells)] {
            if let Ok(parsed) = with_input("b.xlsx", &bytes, &limits, parse_bare) {
                let rows = parsed.documents.iter().filter(|d| !d.id.as_str().ends_with("/text"));
                prop_assert!(rows.count() <= 6);
                prop_assert!(parsed.documents.iter().all(|d| d.text.chars().count() <= 1_000));
            }
        }
    }
}
