//! Each file in `tests/data/<format>/` against the `.json` beside it, which says what it must become.

use std::path::Path;

use docent_ingest::{Limits, Reading, Reason, Source};
use docent_search::{Document, Value};
use serde_json::{Value as Json, json};

fn check(format: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(format);
    let source = Source::open(&folder, Limits::default()).unwrap();
    let listing = source.list();
    let inputs: Vec<_> = listing
        .entries
        .iter()
        .filter(|entry| !entry.path().ends_with(".json"))
        .collect();
    assert!(!inputs.is_empty(), "no golden files for {format}");
    for entry in inputs {
        let expected = std::fs::read(folder.join(format!("{}.json", entry.path())));
        let expected: Json =
            serde_json::from_slice(&expected.unwrap_or_default()).unwrap_or(Json::Null);
        let found = shown(source.read(entry));
        let text = serde_json::to_string_pretty(&found).unwrap();
        assert_eq!(
            found,
            expected,
            "{}/{} became\n{text}",
            format,
            entry.path()
        );
    }
}

#[test]
fn markdown_files() {
    check("markdown");
}

#[test]
fn web_pages() {
    check("html");
}

#[test]
fn word_documents() {
    check("docx");
}

#[test]
fn presentations() {
    check("pptx");
}

#[test]
fn open_documents() {
    check("odt");
}

#[test]
fn books() {
    check("epub");
}

#[test]
fn pdf_files() {
    check("pdf");
}

#[test]
fn packages() {
    check("package");
}

#[test]
fn text_files() {
    check("text");
}

#[test]
fn record_files() {
    check("jsonl");
}

fn shown(read: Result<Reading, Reason>) -> Json {
    let reading = match read {
        Ok(reading) => reading,
        Err(reason) => return json!({"skipped": reason.code()}),
    };
    let problem =
        |line: Option<u64>, reason: &Reason| json!([line, reason.code(), reason.to_string()]);
    json!({
        "documents": reading.documents.iter().map(document).collect::<Vec<_>>(),
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

/// A value with its kind, so that the text `5` and the number 5 differ.
fn value(value: &Value) -> Json {
    match value {
        Value::Text(text) => json!(text),
        Value::Number(number) => json!(number),
        Value::Bool(flag) => json!(flag),
        Value::Date(day) => json!({"day": day}),
        Value::List(values) => json!(values),
    }
}
