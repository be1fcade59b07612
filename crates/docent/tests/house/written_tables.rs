//! No table for spreadsheets is written. A cell that begins with `=`, `+`, `-` or `@` is a formula in a spreadsheet.
//! Nothing writes a file that a spreadsheet opens, so nothing has to escape such cells, as docs/security-checklist.md
//! says.

use crate::dependencies;
use crate::tree::{CRATES, product_text, source_files, without_comments};

/// Names of table formats, and beginnings of them.
const FORMATS: [&str; 4] = ["csv", "tsv", "xls", "spreadsheet"];

/// Lines outside of the parsers that name a table format, each with the reason. Before code that writes one is listed
/// here, it has to escape formulas, with a test.
const NAMED: &[(&str, &str)] = &[(
    "docent eval queries.jsonl --qrels qrels.tsv",
    "an example of a file that is read",
)];

fn names_a_format(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    let mut words = line.split(|c: char| !c.is_ascii_alphanumeric());
    words.any(|word| FORMATS.iter().any(|format| word.starts_with(format)))
}

#[test]
fn nothing_writes_a_table_that_a_spreadsheet_opens() {
    let mut named = Vec::new();
    for name in CRATES.iter().filter(|name| **name != "ingest") {
        for file in source_files(name) {
            let text = without_comments(&product_text(&file.text));
            let lines = text.lines().map(str::trim);
            named.extend(lines.filter(|line| names_a_format(line)).map(str::to_owned));
        }
    }
    let expected: Vec<_> = NAMED.iter().map(|(line, _)| (*line).to_owned()).collect();
    assert_eq!(named, expected);
    // The parsers read tables, and use nothing that could write one.
    for file in source_files("ingest") {
        let text = without_comments(&product_text(&file.text));
        let mut lines = text.lines().filter(|line| names_a_format(line));
        let writer = lines.find(|line| line.contains("Write"));
        assert_eq!(writer, None, "{}", file.name);
    }
    let libraries = ["csv", "rust_xlsxwriter", "umya-spreadsheet", "xlsxwriter"];
    for (name, dependencies) in dependencies() {
        let mut libraries = libraries.iter();
        let found = libraries.find(|library| dependencies.contains(**library));
        assert_eq!(found, None, "a dependency of {name}");
    }
}
