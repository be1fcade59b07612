//! Each folder in `tests/data/elsewhere`, as other programs export it, against the `.json` of its name, which says what
//! all its files must become.

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
    let beside = data.join(format!("{name}.json"));
    let expected = std::fs::read(&beside).unwrap_or_default();
    let expected: Json = serde_json::from_slice(&expected).unwrap_or(Json::Null);
    let text = serde_json::to_string_pretty(&found).unwrap();
    // To write what a new folder becomes, and then to read it with care.
    if expected.is_null() && std::env::var_os("DOCENT_WRITE_GOLDEN").is_some() {
        std::fs::write(&beside, format!("{text}\n")).unwrap();
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
