//! No row is lost: in every format of records, documents and reported rows together are as many as the rows
//! of the table, whatever its ids are.

use std::collections::HashSet;

use docent_ingest::{FileReadOutcome, IngestOptions, Limits, SqliteOptions};
use proptest::prelude::*;
use serde_json::{Value as Raw, json};

use crate::tables::{
    SampleTable, bibtex, objects, ods, parquet, rows, separated, sqlite, table, tables, xlsx,
};
use crate::{TestFolder, find};

/// Asserts that every row is one document or one report line, that no two documents share an id, and that
/// an `id` column that is not used as id becomes a field.
fn check(table: &SampleTable, name: &str, read: &FileReadOutcome) {
    let about = format!("{name}, ids {}: {read:#?}", table.what);
    assert_eq!(
        read.documents.len() + read.skipped.len(),
        table.ids.len(),
        "{about}"
    );
    assert!(read.skipped.is_empty(), "{about}");
    let ids: HashSet<_> = read.documents.iter().map(|document| &document.id).collect();
    assert_eq!(ids.len(), table.ids.len(), "{about}");
    for (document, [id, place, _]) in read.documents.iter().zip(rows(table)) {
        let found = format!("{} {}", document.title, document.text);
        assert!(found.contains(&place), "{place} in {about}");
        let is_own = document.id.as_str() == id;
        let is_field = document
            .fields
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("id"));
        assert_eq!(is_own, table.own, "{id:?} of {about}");
        assert!(is_own != is_field || id.is_empty(), "{id:?} of {about}");
    }
}

#[test]
fn no_row_is_lost_for_its_id_in_any_format() {
    let limits = Limits::default();
    for table in tables() {
        let folder = TestFolder::new();
        let list = objects(&table);
        let lines: String = list.iter().map(|object| format!("{object}\n")).collect();
        folder
            .write("t.csv", separated(&table, ',', "\n"))
            .write("t.tsv", separated(&table, '\t', "\r\n"))
            .write("t.jsonl", lines)
            .write("t.json", Raw::from(list.clone()).to_string())
            .write(
                "inside.json",
                json!({"count": 3, "items": list}).to_string(),
            )
            .write("t.xlsx", xlsx(&[&table]))
            .write("t.ods", ods(&table))
            .write("t.parquet", parquet(&table))
            .write("t.bib", bibtex(&table));
        let names = [
            "t.csv",
            "t.tsv",
            "t.jsonl",
            "t.json",
            "inside.json",
            "t.xlsx",
            "t.ods",
            "t.parquet",
            "t.bib",
        ];
        for name in names {
            let read = folder.read(name, limits.clone());
            check(
                &table,
                name,
                &read.unwrap_or_else(|reason| panic!("{name}: {reason}")),
            );
        }
    }
}

#[test]
fn rows_of_a_query_keep_or_lose_their_ids_like_all_others() {
    for table in tables() {
        let folder = TestFolder::new();
        folder.write("t.db", sqlite(&table, "ID, place, port"));
        let options = IngestOptions {
            sqlite: SqliteOptions {
                table: None,
                query: Some("SELECT * FROM t".to_owned()),
            },
            ..IngestOptions::default()
        };
        let source = folder.source(Limits::default()).with_options(options);
        let entry = find(&source.list(), "t.db");
        check(&table, "t.db", &source.read(&entry).unwrap());
    }
}

/// With several tables or keys, ids contain the table's name; all rows must be found there too.
#[test]
fn rows_of_several_tables_are_all_there() {
    let numbers = table("numbers and texts", &["1", "2"], false);
    for table in tables() {
        let folder = TestFolder::new();
        folder
            .write("t.xlsx", xlsx(&[&table, &numbers, &table]))
            .write("t.db", sqlite(&table, "ID, place, port"));
        let count = |name: &str| {
            let read = folder.read(name, Limits::default()).unwrap();
            assert!(read.skipped.is_empty(), "{read:#?}");
            let ids: HashSet<_> = read.documents.iter().map(|document| &document.id).collect();
            assert_eq!(ids.len(), read.documents.len(), "{read:#?}");
            ids.len()
        };
        assert_eq!(count("t.xlsx"), 2 * table.ids.len() + 2, "{}", table.what);
        assert_eq!(count("t.db"), table.ids.len(), "{}", table.what);
    }
    // Keys that differ in the database but are the same as text.
    let mut connection = rusqlite::Connection::open_in_memory().unwrap();
    connection
        .execute_batch(
            "CREATE TABLE mixed (k PRIMARY KEY, note);
             INSERT INTO mixed VALUES (1, 'a'), ('1', 'b'), (NULL, 'c'), (NULL, 'd'), (3, 'e');
             CREATE TABLE pairs (a TEXT, b TEXT, note, PRIMARY KEY (a, b));
             INSERT INTO pairs VALUES ('x,y', 'z', 'f'), ('x', 'y,z', 'g');
             CREATE TABLE bytes (k BLOB PRIMARY KEY, note);
             INSERT INTO bytes VALUES (x'00', 'h'), (x'01', 'i'), (2, 'j');",
        )
        .unwrap();
    let folder = TestFolder::new();
    folder.write("t.db", connection.serialize("main").unwrap().to_vec());
    let read = folder.read("t.db", Limits::default()).unwrap();
    let ids: HashSet<_> = read.documents.iter().map(|document| &document.id).collect();
    assert_eq!((ids.len(), read.skipped.len()), (10, 0), "{read:#?}");
}

#[test]
fn rows_are_counted_whatever_the_file_is_written_in() {
    for end in ["\n", "\r\n", "\r"] {
        for delimiter in [',', ';', '\t', '|'] {
            let cut = |line: &str| line.replace(',', &delimiter.to_string());
            let lines = [
                "id,name,name,note",
                "s,Ellin,4,\"two\nlines\"",
                "",
                "s,Tarn",
                ",,,",
                ",,,only a note",
                "t,Orrin,7,z,one more,",
                " ",
                "u",
            ];
            let text: String = lines.iter().map(|line| cut(line) + end).collect();
            let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect();
            let marked = format!("\u{FEFF}{text}");
            let files: [Vec<u8>; 4] = [
                text.clone().into_bytes(),
                marked.clone().into_bytes(),
                utf16(&text),
                utf16(&marked),
            ];
            for bytes in files {
                let folder = TestFolder::new();
                folder.write("t.csv", bytes);
                let read = folder.read("t.csv", Limits::default()).unwrap();
                let about = format!("{end:?} {delimiter:?} {read:#?}");
                assert_eq!(read.documents.len(), 5, "{about}");
                assert!(read.skipped.is_empty(), "{about}");
                let code = read.warnings.first().map(|warning| warning.reason.code());
                assert_eq!(code, Some("numbered-rows"), "{about}");
            }
        }
    }
}

/// Duplicate column names, and a column that has the name a duplicate would get.
#[test]
fn columns_of_one_name_keep_all_their_cells() {
    let folder = TestFolder::new();
    folder.write("t.csv", "a,a,a 2,a\nw,x,y,z\n1,2,3,4\n");
    let read = folder.read("t.csv", Limits::default()).unwrap();
    for document in &read.documents {
        assert_eq!(document.fields.len(), 4, "{document:?}");
    }
}

/// A name too long for a field is truncated. A single one is no name: values separated by blanks are one
/// cell.
#[test]
fn rows_below_long_names_are_rows() {
    let folder = TestFolder::new();
    let question = "How often do you take the ferry? ".repeat(20);
    let values = "0.016877580434 ".repeat(20);
    folder
        .write(
            "two.csv",
            format!("{question},{question} And back?\nx,y\nz,w\n"),
        )
        .write("one.csv", format!("{values}\n").repeat(3));
    for (name, count, fields) in [("two.csv", 2, 2), ("one.csv", 3, 1)] {
        let read = folder.read(name, Limits::default()).unwrap();
        assert_eq!(
            (read.documents.len(), read.skipped.len()),
            (count, 0),
            "{read:#?}"
        );
        assert!(
            read.documents.iter().all(|one| one.fields.len() == fields),
            "{read:#?}"
        );
    }
}

/// A row with only an id, a date or a URL is still a row.
#[test]
fn rows_with_one_cell_are_rows() {
    let folder = TestFolder::new();
    folder
        .write("id.csv", "id,note\n1,\n2,x\n3,\n")
        .write("day.csv", "date,note\n2024-03-12,\n2024-03-13,x\n")
        .write(
            "url.jsonl",
            "{\"url\":\"https://a.example/1\"}\n{\"id\":7}\n",
        )
        .write("id.jsonl", "{\"id\":7}\n{\"id\":8}\n");
    for (name, count) in [
        ("id.csv", 3),
        ("day.csv", 2),
        ("url.jsonl", 2),
        ("id.jsonl", 2),
    ] {
        let read = folder.read(name, Limits::default()).unwrap();
        assert_eq!(
            (read.documents.len(), read.skipped.len()),
            (count, 0),
            "{read:#?}"
        );
    }
}

#[test]
fn sparse_rows_above_no_header_are_rows() {
    let folder = TestFolder::new();
    folder.write("t.csv", "1,\n,2\n3,4\n5,6\n");
    let read = folder.read("t.csv", Limits::default()).unwrap();
    assert_eq!(read.documents.len(), 4, "{read:#?}");
}

/// A duplicate far behind the first rows is found, also in a streamed file.
#[test]
fn one_repeated_id_among_many_numbers_the_whole_file() {
    let folder = TestFolder::new();
    let line = |n: usize| format!("{{\"id\":{},\"text\":\"berth {n}\"}}\n", n % 30_000);
    let unique: String = (0..30_000).map(line).collect();
    folder
        .write("unique.jsonl", &unique)
        .write("repeated.jsonl", unique + &line(30_000));
    let ids = |name: &str| {
        let read = folder.read(name, Limits::default()).unwrap();
        let ids: Vec<_> = read.documents.iter().map(|d| d.id.to_string()).collect();
        (ids, read.warnings)
    };
    let (own, warnings) = ids("unique.jsonl");
    assert_eq!(
        (own.len(), own[29_999].as_str(), warnings.len()),
        (30_000, "29999", 0)
    );
    let (numbered, warnings) = ids("repeated.jsonl");
    assert_eq!(
        (numbered.len(), numbered[0].as_str()),
        (30_001, "repeated.jsonl#L1")
    );
    assert_eq!((warnings.len(), warnings[0].line), (1, Some(30_001)));
    let message = warnings[0].reason.to_string();
    assert!(message.ends_with("`0` repeats"), "{message}");
}

/// A cell of a table, quoted where necessary and sometimes where not.
fn cell() -> impl Strategy<Value = String> {
    let odd = prop::sample::select(vec![
        "a",
        "A",
        "é",
        "e\u{301}",
        "7",
        "007",
        "7.0",
        "NA",
        "-",
        " ",
        "\"",
        ",",
        "\n",
        "\r\n",
        "\r",
        "x#p2",
        "\u{200B}",
        "\u{A0}",
        "true",
        "2024-03-12",
        "",
    ]);
    prop::collection::vec(odd, 0..4).prop_map(|parts| parts.concat())
}

fn written(cells: &[String]) -> String {
    let quoted = |cell: &String| format!("\"{}\"", cell.replace('"', "\"\""));
    cells.iter().map(quoted).collect::<Vec<_>>().join(",")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn documents_and_reported_rows_are_all_rows_of_a_table(
        rows in prop::collection::vec(prop::collection::vec(cell(), 1..6), 1..40),
        end in prop::sample::select(vec!["\n", "\r\n", "\r"]),
    ) {
        let text: String = std::iter::once("id,place,note,port".to_owned())
            .chain(rows.iter().map(|row| written(row)))
            .map(|line| line + end)
            .collect();
        let is_blank = |row: &&Vec<String>| row.iter().all(|cell| cell.trim_ascii().is_empty());
        let count = rows.iter().filter(|row| !is_blank(row)).count();
        let folder = TestFolder::new();
        folder.write("t.csv", &text);
        let Ok(read) = folder.read("t.csv", Limits::default()) else {
            // A header without rows is no table.
            prop_assert_eq!(count, 0);
            return Ok(());
        };
        let is_header_alone = count == 0 && read.documents.len() == 1;
        prop_assert!(is_header_alone || read.documents.len() + read.skipped.len() == count, "{text:?}: {read:#?}");
        let ids: HashSet<_> = read.documents.iter().map(|document| &document.id).collect();
        prop_assert_eq!(ids.len(), read.documents.len());
    }

    #[test]
    fn documents_and_reported_rows_are_all_lines_of_json(
        ids in prop::collection::vec(prop::option::of(prop_oneof![
            cell().prop_map(Raw::from),
            (0_i64..20).prop_map(Raw::from),
            Just(Raw::Null),
            Just(json!([1])),
            Just(json!({"a": 1})),
        ]), 1..40),
        end in prop::sample::select(vec!["\n", "\r\n", "\r"]),
    ) {
        let line = |(at, id): (usize, &Option<Raw>)| {
            let mut object = json!({"text": format!("berth {at}")});
            if let Some(id) = id {
                object["id"] = id.clone();
            }
            format!("{object}{end}")
        };
        let text: String = ids.iter().enumerate().map(line).collect();
        let folder = TestFolder::new();
        folder.write("t.jsonl", &text);
        let read = folder.read("t.jsonl", Limits::default()).unwrap();
        prop_assert_eq!(read.documents.len(), ids.len());
        let known: HashSet<_> = read.documents.iter().map(|document| &document.id).collect();
        prop_assert_eq!(known.len(), ids.len());
    }
}
