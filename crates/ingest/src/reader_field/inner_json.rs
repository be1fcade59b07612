//! Tests for JSON inside of a cell: if it has the reader field, nobody may read the row, as with the same
//! nesting in a record of JSON.

use serde_json::json;

use super::formats::read;
use super::parquet_sample::parquet_row;
use super::xlsx_sample::workbook_of;
use super::*;

/// A record with this value beside its text, in every format of records.
fn samples(value: &str) -> Vec<(&'static str, Vec<u8>)> {
    let quoted = value.replace('"', "\"\"");
    let mut connection = rusqlite::Connection::open_in_memory().unwrap();
    connection
        .execute_batch("CREATE TABLE t (text TEXT, meta TEXT)")
        .unwrap();
    let insert = "INSERT INTO t VALUES ('words', ?1)";
    connection.execute(insert, [value]).unwrap();
    let sqlite = connection.serialize("main").unwrap().to_vec();
    let record = json!({"id": "1", "text": "words", "meta": value});
    let deeper = json!({"id": "1", "text": "words", "a": [{"meta": value}]});
    let front = json!({"meta": value});
    vec![
        ("a.csv", format!("text,meta\nwords,\"{quoted}\"\n").into()),
        ("a.db", sqlite),
        (
            "a.parquet",
            parquet_row("OPTIONAL BYTE_ARRAY meta (UTF8);", Some(value)),
        ),
        (
            "table.xlsx",
            workbook_of(&[&["pier", "text", "meta"], &["x", "words", value]]),
        ),
        ("lines.xlsx", notes_with(value)),
        ("a.jsonl", format!("{record}\n").into()),
        ("b.jsonl", format!("{deeper}\n").into()),
        ("list.json", format!("[{record}]").into()),
        ("one.json", record.to_string().into()),
        (
            "a.geojson",
            json!({"type": "Feature", "properties": record, "geometry": null})
                .to_string()
                .into(),
        ),
        ("a.md", format!("---\n{front}\n---\nwords\n").into()),
    ]
}

/// A sheet of notes without a header, with this value further down.
fn notes_with(value: &str) -> Vec<u8> {
    let words: &[&str] = &["words"];
    let mut rows: Vec<&[&str]> = vec![&["some", "words"]];
    rows.extend([words; 8]);
    let row = ["note", value];
    rows.push(&row);
    workbook_of(&rows)
}

fn check(value: &str, expect: &ReaderField) {
    for (path, bytes) in samples(value) {
        let documents = read(path, &bytes);
        let readers: Vec<_> = documents.iter().map(|one| &one.readers).collect();
        assert_eq!(readers, [expect], "{path}: {value}");
    }
}

#[test]
fn a_field_inside_of_a_cell_closes_the_row() {
    let closed = ReaderField::Malformed(ReaderFault::Misplaced);
    for value in [
        r#"{"allowed":["hr"]}"#,
        r#" {"a":{"Allowed":"everyone"}}"#,
        r#"[{"allowed":"hr"}]"#,
        r#"{"allowed.groups":["hr"]}"#,
        r#"{"a":"{\"allowed\":\"hr\"}"}"#,
        "{'a': 1, 'allowed': ['hr']}",
        r#"{"a":1,"allowed":"#,
    ] {
        check(value, &closed);
    }
}

#[test]
fn other_cells_close_nothing() {
    for value in [
        r#"{"a":"allowed"}"#,
        r#"["allowed"]"#,
        r#"{"allowed_by":"x"}"#,
        "{a} dogs are allowed.",
        "[x] allowed: dogs",
    ] {
        check(value, &ReaderField::Absent);
    }
}

#[test]
fn a_row_with_readers_of_its_own_is_closed_too() {
    let line = json!({"text": "words", "allowed": "hr", "meta": "{\"allowed\":1}"});
    for (path, bytes) in [
        ("a.jsonl", format!("{line}\n")),
        (
            "a.csv",
            "text,allowed,meta\nwords,hr,\"{\"\"allowed\"\":1}\"\n".to_owned(),
        ),
    ] {
        let documents = read(path, bytes.as_bytes());
        let readers: Vec<_> = documents.iter().map(|one| &one.readers).collect();
        let closed = ReaderField::Malformed(ReaderFault::Misplaced);
        assert_eq!(readers, [&closed], "{path}");
    }
}

#[test]
fn nested_columns_close_the_row() {
    let meta = "OPTIONAL group meta { OPTIONAL BYTE_ARRAY allowed (UTF8); }";
    let documents = read("a.parquet", &parquet_row(meta, Some("hr")));
    let readers: Vec<_> = documents.iter().map(|one| &one.readers).collect();
    assert_eq!(readers, [&ReaderField::Malformed(ReaderFault::Misplaced)]);
}
