//! Tests for tables and packages in which the reader field is easily overlooked: the parser finds it, or
//! nobody may read the rows.

use crate::formats::detect;
use crate::limits::Limits;
use crate::options::IngestOptions;
use crate::parser::folder_context::FolderContext;
use crate::parser::{HEAD_BYTES, IdPass, ParsedFile, ParserInput};
use crate::reader_field::formats::zipped;
use crate::reader_field::{ReaderField, ReaderFieldName};

/// Parses a file with `allowed` as the reader field.
fn parsed(path: &str, bytes: &[u8], limits: &Limits) -> ParsedFile {
    let options = IngestOptions {
        readers: vec![ReaderFieldName {
            name: "allowed".to_owned(),
            under: None,
        }],
        ..IngestOptions::default()
    };
    let head = bytes.get(..HEAD_BYTES.min(bytes.len())).unwrap();
    let (stem, extension) = path.rsplit_once('.').unwrap();
    let parsed = (detect(head, extension).unwrap().parse)(&ParserInput {
        id: path,
        path,
        stem,
        bytes,
        sha256: "",
        limits,
        options: &options,
        folder_context: &FolderContext::NONE,
        ids: IdPass::Own,
        sink: None,
    });
    parsed.unwrap_or_else(|reason| panic!("{path}: {reason}"))
}

/// The readers of each document (`open` if the field is absent, `nobody` if it is malformed, or the names),
/// and then the skipped rows.
fn readers(path: &str, bytes: &[u8]) -> Vec<String> {
    let parsed = parsed(path, bytes, &Limits::default());
    let documents = parsed.documents.iter().map(|document| {
        let name = document.fields.iter().map(|(name, _)| name.to_lowercase());
        let leaks = name.filter(|name| name == "allowed").count();
        assert_eq!(leaks, 0, "{path}: {:?}", document.fields);
        match &document.readers {
            ReaderField::Absent => "open".to_owned(),
            ReaderField::Malformed(_) => "nobody".to_owned(),
            ReaderField::Present(value) => value.to_string(),
        }
    });
    let skipped = parsed.skipped.iter();
    let skipped =
        skipped.map(|skipped| format!("{}:{}", skipped.line.unwrap_or(0), skipped.reason.code()));
    documents.chain(skipped).collect()
}

fn check(text: &str, expect: &[&str]) {
    assert_eq!(readers("t.csv", text.as_bytes()), expect, "{text}");
}

/// Asserts that there are documents and that all of them are closed to everyone. A skipped row is closed as
/// well.
fn check_closed(path: &str, bytes: &[u8]) {
    let found = readers(path, bytes);
    let mut rows = found.iter().filter(|readers| !readers.contains(':'));
    let is_closed = rows.clone().count() > 0 && rows.all(|readers| readers == "nobody");
    assert!(
        is_closed,
        "{path}: {found:?} {}",
        String::from_utf8_lossy(bytes)
    );
}

const HEAD: &str = "id,text,allowed\n1,secretword,hr\n2,secretword,finance\n";

#[test]
fn a_header_below_a_preamble_is_found_in_csv_and_the_rows_above_are_reported() {
    for (preamble, reported) in [
        ("Exported by,Anna\n", &[1][..]),
        ("# exported, by Anna\n", &[1]),
        ("Exported by,Anna\nOn,2024-03-12\n", &[1, 2]),
        ("Exported by,Anna\nOn,2024-03-12\nRows,2\n", &[1, 2, 3]),
        ("Exported\n\nby,Anna\n", &[3]),
        ("Exported by Anna,\n", &[]),
    ] {
        let reported = reported.iter().map(|line| format!("{line}:beside-records"));
        let expect: Vec<String> = ["hr".to_owned(), "finance".to_owned()]
            .into_iter()
            .chain(reported)
            .collect();
        let expect: Vec<&str> = expect.iter().map(String::as_str).collect();
        check(&format!("{preamble}{HEAD}"), &expect);
    }
}

#[test]
fn a_damaged_row_above_the_header_is_reported() {
    check(
        &format!("\"open\n{HEAD}"),
        &["nobody", "nobody", "1:damaged"],
    );
}

#[test]
fn a_header_that_cannot_be_used_closes_the_table() {
    let two_headers = format!("Basic,Basic,Access\n{HEAD}");
    check_closed("t.csv", two_headers.as_bytes());
    let wide = format!("a,b,c,d\nExported,by,Anna,x\n{HEAD}");
    check_closed("t.csv", wide.as_bytes());
    let late = format!("n,m\n{}{HEAD}", "1,2\n".repeat(30));
    check_closed("t.csv", late.as_bytes());
    // The word as a value, which cannot be told from a header.
    check_closed("t.csv", b"name,state\nAnna,allowed\nAda,secretword\n");
    check_closed("t.csv", b"key,value\nallowed,hr\ntext,secretword\n");
    // A title of one word above the real header.
    check_closed("t.csv", format!("allowed\n{HEAD}").as_bytes());
}

#[test]
fn a_row_far_down_closes_what_is_below() {
    let before = "1,words\n".repeat(1_500);
    let found = readers("t.csv", format!("n,text\n{before}{HEAD}").as_bytes());
    assert!(found.iter().take(1_500).all(|readers| readers == "open"));
    assert_eq!(found.get(1_500..).unwrap(), ["nobody"; 3]);
    // A second table with its reader column in another place.
    check(
        "id,text,allowed\n1,a,hr\nallowed,id,text\nhr,2,everyone\n",
        &["hr", "nobody", "nobody"],
    );
    // A repeated header names a group that has no members.
    check(
        "id,text,allowed\n1,a,hr\nid,text,allowed\n2,b,finance\n",
        &["hr", "allowed", "finance"],
    );
}

#[test]
fn a_damaged_header_closes_the_table() {
    check(
        "id,\"text,allowed\n1,secretword,hr\n2,secretword,hr\n",
        &["nobody", "nobody", "1:damaged"],
    );
    // A quote further down closes the quoted cell.
    check_closed("t.csv", b"id,\"text,allowed\n1,\"secretword\",hr\n2,x,hr\n");
    check_closed("t.csv", b"id,\"text,allowed\n1,secretword\",hr\n2,x,hr\n");
    check_closed("t.csv", format!("\"Title\n{HEAD}").as_bytes());
    let long = "x".repeat(9 * 1024 * 1024);
    let text = format!("id,text,{long},allowed\n1,secretword,x,hr\n2,secretword,x,hr\n");
    check_closed("t.csv", text.as_bytes());
    // Below an intact header a damaged row affects only itself.
    check(
        "id,text,allowed\n1,\"open,hr\n2,words,hr\n",
        &["hr", "2:damaged"],
    );
    check("id,text\n1,\"open\n2,words\n", &["open", "2:damaged"]);
}

#[test]
fn the_delimiter_that_gives_the_field_wins() {
    let rows: String = (0..95)
        .map(|n| format!("{n};secretword row;{n},50;hr\n"))
        .collect();
    let ragged: String = (95..100)
        .map(|n| format!("{n};secretword; row;{n},50;hr\n"))
        .collect();
    let text = format!("id;text;price;allowed\n{rows}{ragged}");
    let found = readers("t.csv", text.as_bytes());
    assert_eq!(found.get(..95).unwrap(), vec!["hr"; 95]);
    // With one cell too many, the reader column is another cell than was meant.
    assert_eq!(found.get(95..).unwrap(), ["nobody"; 5]);
    // Only a few rows are regular, and only at the commas.
    let text = "id;text;allowed\n1;a,b;hr\n2;a;b,c;hr\n3;a,b;c;d;hr\n";
    check(text, &["hr", "nobody", "nobody"]);
}

#[test]
fn unknown_delimiters_close_the_table() {
    for mark in [":", "^", "~", " ", "  ", "/", "\u{1F}", "::", "¦", "#"] {
        let text = "id,text,allowed\n1,secretword,hr\n2,secretword,hr\n".replace(',', mark);
        check_closed("t.csv", text.as_bytes());
        check_closed("t.csv", format!("Exported by Anna\n{text}").as_bytes());
    }
    // The same with commas inside the texts.
    check_closed("t.csv", b"id:text:allowed\n1:a,secretword:hr\n2:b,c:hr\n");
    for header in ["id,most allowed", "id,allowed_by", "id,disallowed"] {
        check(&format!("{header}\n1,words\n2,words\n"), &["open", "open"]);
    }
    // Sentences that contain the word, below another header.
    check(
        "remark\nOne is allowed to row here.\nNobody rows.\n",
        &["open", "open"],
    );
}

#[test]
fn stray_quotes_do_not_merge_rows() {
    check(
        "id,text,allowed\n1,\"open secretword,hr\n2,secretword,hr\n3,\"x,everyone\n4,y,everyone\n",
        &["hr", "everyone", "2:damaged", "4:damaged"],
    );
    check(
        "id,text,allowed\n1,\"two\nlines\",hr\n2,\"a \"\"b\"\"\nc\",hr\n",
        &["hr", "hr"],
    );
}

#[test]
fn rows_with_quotes_that_are_not_read_are_closed() {
    // Every line continues in the next one until the last, and each is parsed again up to there.
    let torn = "y\",\"z\n".repeat(20_000);
    let rows = "1,\"x,everyone,y\"\n2,words,hr,note\n";
    let text = format!("id,text,allowed,note\n{torn}y\"x,hr\n{rows}");
    let found = readers("t.csv", text.as_bytes());
    let rows: Vec<_> = found
        .iter()
        .filter(|readers| !readers.contains(':'))
        .collect();
    assert_eq!(rows.get(rows.len() - 2..).unwrap(), ["nobody", "hr"]);
    assert!(
        rows.iter().all(|readers| *readers != "everyone"),
        "{rows:?}"
    );
}

const OFFICE: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";

/// The package relationships: the main document, and the custom properties if there are some.
fn package_relations(document: &str, custom: Option<(&str, &str)>) -> String {
    let relation = |id: &str, kind: &str, target: &str| {
        format!("<Relationship Id=\"{id}\" Type=\"{OFFICE}/{kind}\" Target=\"{target}\"/>")
    };
    let custom = custom.map(|(kind, target)| relation("c", kind, target));
    format!(
        "<Relationships>{}{}</Relationships>",
        relation("d", "officeDocument", document),
        custom.unwrap_or_default()
    )
}

fn types(part: &str, kind: &str) -> String {
    let kind = format!("application/vnd.openxmlformats-officedocument.{kind}.main+xml");
    format!("<Types><Override PartName=\"/{part}\" ContentType=\"{kind}\"/></Types>")
}

/// A workbook with one sheet, whose rows are given as CSV, and additional parts.
fn xlsx(rows: &str, custom: Option<(&str, &str)>, parts: &[(&str, &str)]) -> Vec<u8> {
    let cells = |line: &str| -> String {
        let cells = line
            .split(',')
            .enumerate()
            .filter(|(_, text)| !text.is_empty());
        let cell = |(at, text): (usize, &str)| {
            let letter = char::from(b'A' + u8::try_from(at).unwrap());
            (letter, text.to_owned())
        };
        let cells = cells.map(cell).map(|(letter, text)| match text.as_str() {
            "?" => format!("<c r=\"{letter}ROW\" t=\"s\"><v>77</v></c>"),
            text => format!("<c r=\"{letter}ROW\" t=\"inlineStr\"><is><t>{text}</t></is></c>"),
        });
        cells.collect()
    };
    let rows: String = (1..)
        .zip(rows.lines())
        .map(|(row, line)| {
            let cells = cells(line).replace("ROW", &row.to_string());
            format!("<row r=\"{row}\">{cells}</row>")
        })
        .collect();
    let sheet = format!("<worksheet><sheetData>{rows}</sheetData></worksheet>");
    let book = format!(
        "<workbook xmlns:r=\"{OFFICE}\"><sheets><sheet name=\"S\" sheetId=\"1\" r:id=\"rId1\"/></sheets></workbook>"
    );
    let relations = format!(
        "<Relationships><Relationship Id=\"rId1\" Type=\"{OFFICE}/worksheet\" Target=\"worksheets/sheet1.xml\"/></Relationships>"
    );
    let (types, top) = (
        types("xl/workbook.xml", "spreadsheetml"),
        package_relations("xl/workbook.xml", custom),
    );
    let mut all = vec![
        ("[Content_Types].xml", types.as_str()),
        ("_rels/.rels", top.as_str()),
        ("xl/workbook.xml", book.as_str()),
        ("xl/_rels/workbook.xml.rels", relations.as_str()),
        ("xl/worksheets/sheet1.xml", sheet.as_str()),
    ];
    all.extend(parts);
    zipped(&all)
}

fn check_sheet(rows: &str, expect: &[&str]) {
    let found = readers("t.xlsx", &xlsx(rows, None, &[]));
    assert_eq!(found, expect, "{rows}");
}

#[test]
fn a_header_below_a_preamble_is_found_in_sheets_and_the_rows_above_are_reported() {
    let (first, second, third) = ("1:beside-records", "2:beside-records", "3:beside-records");
    for (preamble, reported) in [
        ("Exported by,Anna\n", &[first][..]),
        (
            "Exported by,Anna\nOn,Tuesday\nIn,Tarn\n",
            &[first, second, third],
        ),
        ("Title\nExported by,Anna\n", &[second]),
    ] {
        let expect = [&["hr", "finance"], reported].concat();
        check_sheet(&format!("{preamble}{HEAD}"), &expect);
    }
}

#[test]
fn a_header_that_cannot_be_used_closes_the_sheet() {
    let closed = |rows: &str| check_closed("t.xlsx", &xlsx(rows, None, &[]));
    closed(&format!("Basic,Basic,Access\n{HEAD}"));
    closed(&format!("n,m\n{}{HEAD}", "x,y\n".repeat(30)));
    closed(&format!("n,m\nx,y\nx,y\nx,y\n{HEAD}"));
    // Rows of one cell: the sheet becomes one document.
    closed(&format!("Title\n{}{HEAD}", "words\n".repeat(30)));
    closed("id;text;allowed\n1;secretword;hr\n2;secretword;hr\n");
    closed("words\nallowed\nhr\n");
    // A second table with its reader column in another place.
    check_sheet(
        "id,text,allowed\n1,a,hr\n2,b,hr\nallowed,id,text\nhr,3,everyone\n",
        &["hr", "hr", "nobody", "nobody"],
    );
    // The header's cell refers to a missing shared string.
    closed("id,text,?\n1,secretword,hr\n2,secretword,hr\n");
    check_sheet("id,text\n1,words\n2,words\n", &["open", "open"]);
}

#[test]
fn a_header_beyond_the_most_columns_closes_the_sheet() {
    let limits = Limits {
        max_columns: 2,
        ..Limits::default()
    };
    let found = parsed("t.xlsx", &xlsx(HEAD, None, &[]), &limits);
    assert_eq!(found.documents.len(), 2);
    for document in &found.documents {
        assert!(matches!(document.readers, ReaderField::Malformed(_)));
    }
}

const TABLE: &str = "id,text\n1,secretword\n2,secretword\n";

fn custom(name: &str, value: &str) -> String {
    format!(
        "<Properties><property name=\"{name}\"><vt:lpwstr>{value}</vt:lpwstr></property></Properties>"
    )
}

#[test]
fn a_property_of_a_workbook_counts_for_rows_without_readers() {
    let hr = custom("Allowed", "hr");
    let usual = ("docProps/custom.xml", hr.as_str());
    let found = |rows: &str, parts: &[(&str, &str)]| readers("t.xlsx", &xlsx(rows, None, parts));
    assert_eq!(found(TABLE, &[usual]), ["hr", "hr"]);
    assert_eq!(found("words\nmore\n", &[usual]), ["hr"]);
    assert_eq!(found(HEAD, &[usual]), ["hr", "finance"]);
    assert_eq!(found("id,text,allowed\n1,x,\n", &[usual]), ["nobody"]);
    let other = custom("kind", "x");
    assert_eq!(
        found(TABLE, &[("docProps/custom.xml", &other)]),
        ["open", "open"]
    );
    for bad in [
        custom("allowed", ""),
        "<Properties><property name=\"allowed\"".to_owned(),
        format!("<a>{hr}{hr}</a>"),
        custom("allowed", &"x, ".repeat(40_000)),
    ] {
        let found = found(TABLE, &[("docProps/custom.xml", &bad)]);
        assert_eq!(found, ["nobody", "nobody"], "{bad:.60}");
    }
}

#[test]
fn a_row_is_indexed_again_when_the_property_changes() {
    let hash = |rows: &str, value: &str| {
        let own = custom("allowed", value);
        let bytes = xlsx(rows, None, &[("docProps/custom.xml", &own)]);
        let parsed = parsed("t.xlsx", &bytes, &Limits::default());
        parsed.documents.first().unwrap().hash.clone()
    };
    for rows in [TABLE, "words\nmore\n"] {
        assert_eq!(hash(rows, "hr"), hash(rows, "hr"));
        assert_ne!(hash(rows, "hr"), hash(rows, "everyone"));
    }
}

#[test]
fn a_property_of_an_opendocument_sheet_counts() {
    let ods = |meta: &str| {
        let cell =
            |text: &str| format!("<table:table-cell><text:p>{text}</text:p></table:table-cell>");
        let row = |cells: &[&str]| {
            let cells: String = cells.iter().map(|text| cell(text)).collect();
            format!("<table:table-row>{cells}</table:table-row>")
        };
        let rows = [["id", "text"], ["1", "secretword"], ["2", "secretword"]];
        let rows: String = rows.iter().map(|cells| row(cells)).collect();
        let content = format!(
            "<office:document-content><table:table table:name=\"S\">{rows}</table:table></office:document-content>"
        );
        zipped(&[
            ("mimetype", "application/vnd.oasis.opendocument.spreadsheet"),
            ("content.xml", &content),
            ("meta.xml", meta),
        ])
    };
    let property = |value: &str| {
        format!(
            "<office:meta><meta:user-defined meta:name=\"allowed\">{value}</meta:user-defined></office:meta>"
        )
    };
    assert_eq!(readers("t.ods", &ods(&property("hr"))), ["hr", "hr"]);
    assert_eq!(readers("t.ods", &ods("<office:meta/>")), ["open", "open"]);
    check_closed("t.ods", &ods(&property("")));
    check_closed("t.ods", &ods("<office:meta><meta:user"));
}

/// Per document format: file name, main part, content type, and content of the main part.
const DOCUMENTS: &[(&str, &str, &str, &str)] = &[
    (
        "t.docx",
        "word/document.xml",
        "wordprocessingml",
        "<document><body><p><r><t>secretword</t></r></p></body></document>",
    ),
    (
        "t.pptx",
        "ppt/presentation.xml",
        "presentationml",
        "<presentation><sldIdLst><sldId r:id=\"rId1\"/></sldIdLst></presentation>",
    ),
];

#[test]
fn custom_properties_are_found_by_their_relation() {
    let hr = custom("allowed", "hr");
    let kinds = ["custom-properties", "customProperties"];
    let places = [
        ("docProps/custom1.xml", "docProps/custom1.xml"),
        ("/own/props.xml", "own/props.xml"),
        ("docProps/custom.xml", "docProps/Custom.xml"),
        ("DOCPROPS/A.XML", "docProps/a.xml"),
    ];
    let slides = format!(
        "<Relationships><Relationship Id=\"rId1\" Type=\"{OFFICE}/slide\" Target=\"s1.xml\"/></Relationships>"
    );
    let slide = "<sld><sp><txBody><p><r><t>secretword</t></r></p></txBody></sp></sld>";
    for (kind, (target, part)) in kinds
        .iter()
        .flat_map(|kind| places.map(|place| (kind, place)))
    {
        let top = Some((*kind, target));
        let found = readers("t.xlsx", &xlsx(TABLE, top, &[(part, &hr)]));
        assert_eq!(found, ["hr", "hr"], "{kind} {target} {part}");
        for (path, main, office, content) in DOCUMENTS {
            let bytes = zipped::<&str>(&[
                ("[Content_Types].xml", &types(main, office)),
                ("_rels/.rels", &package_relations(main, top)),
                (main, content),
                ("ppt/_rels/presentation.xml.rels", &slides),
                ("ppt/s1.xml", slide),
                (part, &hr),
            ]);
            assert_eq!(
                readers(path, &bytes),
                ["hr"],
                "{path} {kind} {target} {part}"
            );
        }
    }
    // Without a relationship and in another case.
    let found = readers(
        "t.xlsx",
        &xlsx(TABLE, None, &[("DocProps/Custom.XML", &hr)]),
    );
    assert_eq!(found, ["hr", "hr"]);
    // A relationship to a missing part, and one property in each of two parts.
    let top = Some(("custom-properties", "docProps/gone.xml"));
    check_closed("t.xlsx", &xlsx(TABLE, top, &[]));
    let everyone = custom("allowed", "everyone");
    let parts = [
        ("docProps/gone.xml", hr.as_str()),
        ("docProps/custom.xml", &everyone),
    ];
    check_closed("t.xlsx", &xlsx(TABLE, top, &parts));
}
