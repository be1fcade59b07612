//! Tests of the SQLite parser, also on hostile databases and queries.

use super::*;
use crate::limits::Limits;
use crate::options::{IngestOptions, SqliteOptions};
use crate::parser::folder_context::FolderContext;
use crate::parser::tests::{shown, with_input};

/// Builds a database with SQL statements and returns its bytes.
fn database(sql: &str) -> Vec<u8> {
    let mut connection = Connection::open_in_memory().unwrap();
    connection.execute_batch(sql).unwrap();
    let data = connection.serialize("main").unwrap();
    data.to_vec()
}

struct QueryCase<'a> {
    table: Option<&'a str>,
    query: Option<&'a str>,
    steps: u64,
    limits: Option<Limits>,
}

const ALL: QueryCase<'_> = QueryCase {
    table: None,
    query: None,
    steps: 10_000_000,
    limits: None,
};

/// Formats results as `id|title|text` for a document and `path:code` for a skipped item.
fn show(bytes: &[u8], case: &QueryCase<'_>) -> Vec<String> {
    let options = IngestOptions {
        sqlite: SqliteOptions {
            table: case.table.map(str::to_owned),
            query: case.query.map(str::to_owned),
        },
        ..IngestOptions::default()
    };
    let limits = case.limits.clone().unwrap_or_default();
    let parsed = with_input("b.db", bytes, &limits, |input| {
        let input = ParserInput {
            options: &options,
            folder_context: &FolderContext::NONE,
            sink: None,
            ids: crate::parser::IdPass::Own,
            ..*input
        };
        two_pass(&input, |input| parse_within(input, case.steps))
    });
    let parsed = match parsed {
        Ok(parsed) => parsed,
        Err(reason) => return vec![format!("{}: {reason}", reason.code())],
    };
    shown(&parsed)
}

const BOATS: &str = "
    CREATE TABLE boats (id INTEGER PRIMARY KEY, name TEXT, built DATE, fast BOOLEAN, seen DATETIME, picture BLOB);
    INSERT INTO boats VALUES (7, 'Orrin', '1961-06-01', 1, 1710239405, x'00ff');
    INSERT INTO boats VALUES (9, 'Tarn', NULL, 0, '2024-03-12 10:30:00', NULL);
    CREATE TABLE notes (body TEXT, rowid TEXT);
    INSERT INTO notes VALUES ('low water', 'r');
    CREATE TABLE fares (pier TEXT, class INT, price REAL, PRIMARY KEY (pier, class)) WITHOUT ROWID;
    INSERT INTO fares VALUES ('Ellin', 2, 4.5);
    CREATE VIEW cheap AS SELECT pier, price FROM fares WHERE price < 5;
    CREATE INDEX by_name ON boats (name);
    CREATE VIRTUAL TABLE words USING fts5(text);
    INSERT INTO words VALUES ('not ordinary');";

#[test]
fn every_ordinary_table_is_read() {
    assert_eq!(
        show(&database(BOATS), &ALL),
        [
            "b.db#boats/7|Orrin|id: 7/built: 1961-06-01/fast: true/seen: 2024-03-12/seen.time: 10:30:05/",
            "b.db#boats/9|Tarn|id: 9/fast: false/seen: 2024-03-12/seen.time: 10:30:00/",
            "b.db#fares/Ellin%2C2|B, fares Ellin,2|pier: Ellin/class: 2/price: 4.5/",
            "b.db#notes/1||low water",
        ]
    );
}

#[test]
fn settings_name_a_table_a_view_or_a_query() {
    let bytes = database(BOATS);
    let table = |table| {
        show(
            &bytes,
            &QueryCase {
                table: Some(table),
                ..ALL
            },
        )
    };
    assert_eq!(table("NOTES"), ["b.db#notes/1||low water"]);
    assert_eq!(
        table("cheap"),
        ["b.db#cheap/1|B, cheap, row 1|pier: Ellin/price: 4.5/"]
    );
    assert_eq!(
        table("words"),
        ["query: the query cannot be run: there is no table `words`"]
    );
    let query = |query| {
        show(
            &bytes,
            &QueryCase {
                query: Some(query),
                table: Some("x"),
                ..ALL
            },
        )
    };
    assert_eq!(
        query("SELECT id, upper(name) AS title, built FROM boats ORDER BY id DESC"),
        ["9|TARN|", "7|ORRIN|built: 1961-06-01/"]
    );
    assert_eq!(
        query("SELECT count(*) AS boats FROM boats"),
        ["b.db#query/1|B, row 1|boats: 2/"]
    );
    assert!(
        query("SELECT absent FROM boats")[0]
            .starts_with("query: the query cannot be run: no such column: absent")
    );
}

#[test]
fn a_query_can_only_look() {
    let bytes = database(BOATS);
    for sql in [
        "DELETE FROM boats",
        "DROP TABLE boats",
        "ATTACH 'x.db' AS other",
        "PRAGMA writable_schema = 1",
        "SELECT load_extension('x')",
        "SELECT 1; SELECT 2",
        "VACUUM INTO 'x.db'",
        "CREATE TEMP TABLE t (a)",
        "SELECT * FROM pragma_database_list",
        "",
    ] {
        let found = show(
            &bytes,
            &QueryCase {
                query: Some(sql),
                ..ALL
            },
        );
        assert!(
            found.len() == 1 && found[0].starts_with("query"),
            "{sql}: {found:?}"
        );
    }
}

#[test]
fn steps_are_counted() {
    let bytes = database(BOATS);
    let endless =
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT sum(x) FROM c";
    let stopped = "query: the query cannot be run: it takes too many steps";
    assert_eq!(
        show(
            &bytes,
            &QueryCase {
                query: Some(endless),
                steps: 100_000,
                ..ALL
            }
        ),
        [stopped]
    );
    let hidden = database(&format!("CREATE VIEW v AS {endless}"));
    let found = show(
        &hidden,
        &QueryCase {
            table: Some("v"),
            steps: 100_000,
            ..ALL
        },
    );
    assert_eq!(found, ["b.db#v:0:query"]);
    let long = database(
        "CREATE TABLE n (a); WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 5000) INSERT INTO n SELECT x FROM c",
    );
    let found = show(
        &long,
        &QueryCase {
            steps: 5_000,
            ..ALL
        },
    );
    assert_eq!(found.last().unwrap(), "b.db#n:0:query");
    assert!(found.len() > 100);
}

#[test]
fn schemas_are_not_trusted() {
    // A view that calls a function that is only allowed in a trusted schema.
    let bytes =
        database("CREATE VIEW v AS SELECT sqlite_version() AS title, load_extension('x') AS text;");
    let found = show(
        &bytes,
        &QueryCase {
            table: Some("v"),
            ..ALL
        },
    );
    assert_eq!(found, ["b.db#v:0:damaged"]);
}

#[test]
fn a_database_with_a_log_is_read_without_it() {
    let mut bytes = database(BOATS);
    bytes[18..20].copy_from_slice(&[2, 2]);
    assert_eq!(show(&bytes, &ALL).len(), 4);
}

#[test]
fn damage_costs_only_what_it_hits() {
    let mut sql =
        "CREATE TABLE a (x); CREATE TABLE b (x); INSERT INTO b VALUES ('whole');".to_owned();
    for row in 0..200 {
        sql.push_str(&format!(
            "INSERT INTO a VALUES ('{row}{}');",
            "y".repeat(100)
        ));
    }
    let mut bytes = database(&sql);
    let end = bytes.len();
    for byte in &mut bytes[end - 3 * 4096..] {
        *byte = 0xFF;
    }
    let found = show(&bytes, &ALL);
    assert!(
        found.contains(&"b.db#b/1|B, b 1|x: whole/".to_owned()),
        "{found:?}"
    );
    assert!(found.contains(&"b.db#a:0:damaged".to_owned()), "{found:?}");
    assert_eq!(
        show(b"SQLite format 3\0 and nothing else", &ALL),
        ["damaged: it is damaged: the list of tables cannot be read"]
    );
    let cut = &bytes[..5_000];
    assert!(show(cut, &ALL)[0].contains("damaged"));
    assert_eq!(
        show(&database("CREATE TABLE a (x)"), &ALL),
        ["empty: there is nothing to index in it"]
    );
}

#[test]
fn every_bound_holds() {
    let bytes = database(
        "CREATE TABLE a (x, y); INSERT INTO a VALUES ('abcd', 1), ('abcde', 1), ('z', 2);",
    );
    let with = |limits: Limits| {
        show(
            &bytes,
            &QueryCase {
                limits: Some(limits),
                ..ALL
            },
        )
    };
    let line = Limits {
        max_line_bytes: 12,
        ..Limits::default()
    };
    assert_eq!(with(line)[2], "b.db#a:2:line-too-long");
    let records = Limits {
        max_records: 2,
        ..Limits::default()
    };
    assert_eq!(with(records)[2], "b.db#a:3:too-many-records");
    let columns = |max_columns| Limits {
        max_columns,
        ..Limits::default()
    };
    assert_eq!(with(columns(2)).len(), 3);
    assert_eq!(with(columns(1)), ["b.db#a:0:too-many-columns"]);
    let wide = |names: usize| {
        let names: Vec<_> = (0..names).map(|n| format!("c{n}")).collect();
        database(&format!(
            "CREATE TABLE a ({}); INSERT INTO a (c0) VALUES (1)",
            names.join(",")
        ))
    };
    assert_eq!(show(&wide(1_999), &ALL).len(), 1);
}
