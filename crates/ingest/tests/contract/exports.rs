//! Golden tests of exports from other programs: each folder in `tests/data/elsewhere` is compared with the
//! `.json` of the same name, which states what all its files become.

use std::path::Path;

use docent_ingest::{FolderSource, Limits};
use serde_json::{Map, Value as Json, json};

use super::golden::shown;

fn check(name: &str) {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/elsewhere");
    let source = FolderSource::open(data.join(name), Limits::default()).unwrap();
    let listing = source.list();
    let files: Map<String, Json> = listing
        .entries
        .iter()
        .map(|entry| (entry.path().to_owned(), shown(source.read(entry))))
        .collect();
    let found = json!({"files": files, "ignored": listing.ignored});
    let expectation = data.join(format!("{name}.json"));
    let expected = std::fs::read(&expectation).unwrap_or_default();
    let expected: Json = serde_json::from_slice(&expected).unwrap_or(Json::Null);
    let text = serde_json::to_string_pretty(&found).unwrap();
    // Writes the expectation for a new folder, to be reviewed with care.
    if expected.is_null() && std::env::var_os("DOCENT_WRITE_GOLDEN").is_some() {
        std::fs::write(&expectation, format!("{text}\n")).unwrap();
        return;
    }
    assert_eq!(found, expected, "{name} became\n{text}");
}

#[test]
fn an_obsidian_vault() {
    check("vault");
}

#[test]
fn a_notion_export() {
    check("notion");
}

#[test]
fn a_confluence_export() {
    check("confluence");
}

#[test]
fn exported_apple_notes() {
    check("apple-notes");
}

#[test]
fn a_zotero_library() {
    check("zotero");
}
