//! Golden tests: each file in `tests/data/<format>/` is compared with the `.json` next to it, which states
//! what it becomes.

use std::path::Path;

use docent_ingest::{FileEntry, FileReadOutcome, FolderSource, IngestError, Limits};
use docent_search::{Document, DocumentValue};
use serde_json::{Value as Json, json};

fn check(format: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(format);
    let source = FolderSource::open(&folder, Limits::default()).unwrap();
    let listing = source.list();
    let paths: Vec<_> = listing.entries.iter().map(FileEntry::path).collect();
    // An expectation is named after the whole name of its input, followed by `.json`.
    let is_expected = |path: &str| {
        let input = path.strip_suffix(".json");
        input.is_some_and(|input| paths.contains(&input))
    };
    let inputs: Vec<_> = listing
        .entries
        .iter()
        .filter(|entry| !is_expected(entry.path()))
        .collect();
    assert!(!inputs.is_empty(), "no golden files for {format}");
    for entry in inputs {
        let expectation = folder.join(format!("{}.json", entry.path()));
        let expected = std::fs::read(&expectation);
        let expected: Json =
            serde_json::from_slice(&expected.unwrap_or_default()).unwrap_or(Json::Null);
        let found = shown(source.read(entry));
        let text = serde_json::to_string_pretty(&found).unwrap();
        // Writes the expectation for a new input, to be reviewed with care.
        if expected.is_null() && std::env::var_os("DOCENT_WRITE_GOLDEN").is_some() {
            std::fs::write(&expectation, format!("{text}\n")).unwrap();
            continue;
        }
        assert_eq!(
            found,
            expected,
            "{}/{} became\n{text}",
            format,
            entry.path()
        );
    }
}

/// Folders below `tests/data` that hold no golden files: the scripts that write them, and exports of other programs,
/// which `exports.rs` checks.
const OTHER_FOLDERS: &[&str] = &["make", "elsewhere"];

#[test]
fn every_golden_file_becomes_what_is_written_beside_it() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut checked = 0;
    for entry in std::fs::read_dir(data).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if entry.path().is_dir() && !OTHER_FOLDERS.contains(&name.as_str()) {
            check(&name);
            checked += 1;
        }
    }
    assert!(checked >= 18, "only {checked} folders of golden files");
}

pub(crate) fn shown(read: Result<FileReadOutcome, IngestError>) -> Json {
    let reading = match read {
        Ok(reading) => reading,
        Err(reason) => return json!({"skipped": reason.code()}),
    };
    let problem =
        |line: Option<u64>, reason: &IngestError| json!([line, reason.code(), reason.to_string()]);
    json!({
        "documents": reading.documents.iter().map(|one| document(one)).collect::<Vec<_>>(),
        "skipped": reading.skipped.iter().map(|s| problem(s.line, &s.reason)).collect::<Vec<_>>(),
        "warnings": reading.warnings.iter().map(|w| problem(w.line, &w.reason)).collect::<Vec<_>>(),
    })
}

fn document(document: &Document) -> Json {
    let fields: Vec<_> = document
        .fields
        .iter()
        .map(|(name, field)| json!([name, value(field)]))
        .collect();
    json!({
        "id": document.id.as_str(),
        "title": document.title,
        "text": document.text,
        "url": document.url,
        "date": document.date,
        "fields": fields,
        "source": document.source,
    })
}

/// A value that keeps its type, so that the text `5` and the number 5 differ.
fn value(value: &DocumentValue) -> Json {
    match value {
        DocumentValue::Text(text) => json!(text),
        DocumentValue::Number(number) => json!(number),
        DocumentValue::Bool(flag) => json!(flag),
        DocumentValue::Date(day) => json!({"day": day}),
        DocumentValue::List(values) => json!(values),
    }
}
