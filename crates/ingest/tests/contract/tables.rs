//! Sample tables with unusual ids, written in every format of records.

use std::fmt::Write as _;
use std::io::{Cursor, Write as _};
use std::sync::Arc;

use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use serde_json::{Value as Raw, json};

/// A sample table: the values of its `id` column, and whether these become the documents' ids.
pub(crate) struct SampleTable {
    pub what: &'static str,
    pub ids: Vec<String>,
    pub own: bool,
}

pub(crate) fn table(what: &'static str, ids: &[&str], own: bool) -> SampleTable {
    let ids = ids.iter().map(|id| (*id).to_owned()).collect();
    SampleTable { what, ids, own }
}

pub(crate) fn tables() -> Vec<SampleTable> {
    let long = "x".repeat(600);
    let (one, two) = (format!("{long}1"), format!("{long}2"));
    let most = "y".repeat(512);
    let two_bytes = "é".repeat(256);
    vec![
        table("of its own", &["a", "b", "c"], true),
        table("all alike", &["Secret", "Secret", "Secret"], false),
        table("two alike, far apart", &["a", "b", "c", "d", "a"], false),
        table("one empty", &["a", "", "c"], false),
        table("the first empty", &["", "b", "c"], false),
        table("all empty", &["", "", ""], false),
        table("apart by case", &["a", "A", "b"], true),
        table("apart by accents", &["e", "é", "e\u{301}"], true),
        table(
            "apart by invisible characters",
            &["a", "a\u{200B}", "b"],
            false,
        ),
        table(
            "apart by what turns text around",
            &["a", "\u{202E}a", "b"],
            false,
        ),
        table("called like pages", &["x#p2", "x#p3", "x"], false),
        table("called like rows", &["t#L2", "t#L3", "t#L4"], true),
        table("too long", &[&one, &two, "a"], false),
        table("as long as may be", &[&most, &two_bytes, "a"], true),
        table("numbers", &["1", "01", "001"], true),
        table("words for nothing", &["NA", "NA", "-"], false),
    ]
}

/// The rows below the header: the id, and two cells that identify the row in a result.
pub(crate) fn rows(table: &SampleTable) -> impl Iterator<Item = [String; 3]> {
    let row =
        |(at, id): (usize, &String)| [id.clone(), format!("berth {at} of"), "Ellin".to_owned()];
    table.ids.iter().enumerate().map(row)
}

const NAMES: [&str; 3] = ["ID", "place", "port"];

pub(crate) fn separated(table: &SampleTable, delimiter: char, end: &str) -> String {
    let line = |cells: &[String]| {
        let quoted = cells.iter().map(|cell| format!("\"{cell}\""));
        quoted.collect::<Vec<_>>().join(&delimiter.to_string()) + end
    };
    let head = line(&NAMES.map(str::to_owned));
    head + &rows(table).map(|row| line(&row)).collect::<String>()
}

pub(crate) fn objects(table: &SampleTable) -> Vec<Raw> {
    let object = |[id, place, port]: [String; 3]| json!({"ID": id, "place": place, "port": port});
    rows(table).map(object).collect()
}

fn zipped(parts: &[(&str, &str)]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    for (name, text) in parts {
        writer.start_file(*name, options).unwrap();
        writer.write_all(text.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

pub(crate) fn xlsx(tables: &[&SampleTable]) -> Vec<u8> {
    const RELS: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    let (mut sheets, mut rels) = (String::new(), String::new());
    let mut parts = Vec::new();
    for (at, table) in tables.iter().enumerate() {
        // Sheet names that become equal when they are cleaned.
        let name = format!("Tab{}", "\u{200B}".repeat(at));
        write!(
            sheets,
            r#"<sheet name="{name}" sheetId="{at}" r:id="r{at}"/>"#
        )
        .unwrap();
        write!(
            rels,
            r#"<Relationship Id="r{at}" Type="{RELS}/worksheet" Target="worksheets/s{at}.xml"/>"#
        )
        .unwrap();
        let head = NAMES.map(str::to_owned);
        let mut cells = String::new();
        for (row, values) in (1..).zip(std::iter::once(head).chain(rows(table))) {
            write!(cells, r#"<row r="{row}">"#).unwrap();
            for (letter, value) in ["A", "B", "C"].iter().zip(values) {
                if !value.is_empty() {
                    write!(cells, r#"<c r="{letter}{row}" t="inlineStr"><is><t xml:space="preserve">{value}</t></is></c>"#).unwrap();
                }
            }
            cells.push_str("</row>");
        }
        parts.push((
            format!("xl/worksheets/s{at}.xml"),
            format!("<worksheet><sheetData>{cells}</sheetData></worksheet>"),
        ));
    }
    parts.extend([
        ("[Content_Types].xml".to_owned(), "<Types/>".to_owned()),
        ("_rels/.rels".to_owned(), format!(r#"<Relationships><Relationship Id="r" Type="{RELS}/officeDocument" Target="xl/workbook.xml"/></Relationships>"#)),
        ("xl/workbook.xml".to_owned(), format!(r#"<workbook xmlns:r="{RELS}"><sheets>{sheets}</sheets></workbook>"#)),
        ("xl/_rels/workbook.xml.rels".to_owned(), format!("<Relationships>{rels}</Relationships>")),
    ]);
    let parts: Vec<_> = parts
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    zipped(&parts)
}

pub(crate) fn ods(table: &SampleTable) -> Vec<u8> {
    let head = NAMES.map(str::to_owned);
    let mut cells = String::new();
    for values in std::iter::once(head).chain(rows(table)) {
        cells.push_str("<table:table-row>");
        for value in values {
            write!(cells, r#"<table:table-cell office:value-type="string"><text:p>{value}</text:p></table:table-cell>"#).unwrap();
        }
        cells.push_str("</table:table-row>");
    }
    let content = format!(
        r#"<office:document-content><table:table table:name="Tab">{cells}</table:table></office:document-content>"#
    );
    zipped(&[
        ("mimetype", "application/vnd.oasis.opendocument.spreadsheet"),
        ("content.xml", &content),
    ])
}

pub(crate) fn sqlite(table: &SampleTable, columns: &str) -> Vec<u8> {
    let mut connection = rusqlite::Connection::open_in_memory().unwrap();
    connection
        .execute_batch(&format!("CREATE TABLE t ({columns})"))
        .unwrap();
    for [id, place, port] in rows(table) {
        let id = Some(id).filter(|id| !id.is_empty());
        let insert = "INSERT INTO t VALUES (?1, ?2, ?3)";
        connection.execute(insert, (id, place, port)).unwrap();
    }
    connection.serialize("main").unwrap().to_vec()
}

pub(crate) fn parquet(table: &SampleTable) -> Vec<u8> {
    let schema = "message t { OPTIONAL BYTE_ARRAY ID (UTF8); REQUIRED BYTE_ARRAY place (UTF8); \
        REQUIRED BYTE_ARRAY port (UTF8); }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut out = Vec::new();
    let mut file = SerializedFileWriter::new(&mut out, schema, Arc::default()).unwrap();
    let mut group = file.next_row_group().unwrap();
    let mut at = 0;
    while let Some(mut column) = group.next_column().unwrap() {
        let values: Vec<String> = rows(table).map(|row| row[at].clone()).collect();
        let levels: Vec<i16> = values
            .iter()
            .map(|value| i16::from(!value.is_empty()))
            .collect();
        let there = values.iter().filter(|value| !value.is_empty());
        let there: Vec<_> = there.map(|value| ByteArray::from(value.as_str())).collect();
        let ColumnWriter::ByteArrayColumnWriter(writer) = column.untyped() else {
            panic!("a column of texts")
        };
        let levels = (at == 0).then_some(levels.as_slice());
        writer.write_batch(&there, levels, None).unwrap();
        column.close().unwrap();
        at += 1;
    }
    group.close().unwrap();
    file.close().unwrap();
    out
}

pub(crate) fn bibtex(table: &SampleTable) -> String {
    let entry = |[id, place, port]: [String; 3]| {
        format!("@misc{{{id},\n  title = {{{place}}},\n  publisher = {{{port}}}\n}}\n")
    };
    rows(table).map(entry).collect()
}
