//! Fuzzes the reader field in the front matter of Markdown files. If the field is present, a document is readable by
//! the principals in it or by nobody, but never by everyone, and the field is not among the document's other fields.
//!
//! The first byte selects the role of the rest: a whole file, the value of the field in YAML (`Y`), TOML (`T`) or JSON
//! (`J`), or white space before the fence (`B`).

#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use docent_ingest::{
    FileEntry, FolderSource, IngestOptions, Limits, ParsedDocument, ReaderField, ReaderFieldName,
};
use docent_search::{DocumentValue, MAX_PRINCIPAL_BYTES, MAX_READERS};
use libfuzzer_sys::fuzz_target;

const FIELD: &str = "allowed";

/// A folder with one file, which each input replaces.
struct FuzzFolder {
    source: FolderSource,
    entry: FileEntry,
    file: PathBuf,
}

static FOLDER: LazyLock<FuzzFolder> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("docent-fuzz-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("note.md");
    fs::write(&file, "x").unwrap();
    let readers = vec![ReaderFieldName {
        name: FIELD.to_owned(),
        under: None,
    }];
    let source = FolderSource::open(&folder, Limits::default()).unwrap();
    let source = source.with_options(IngestOptions {
        readers,
        ..IngestOptions::default()
    });
    let entry = source.list().entries.remove(0);
    FuzzFolder {
        source,
        entry,
        file,
    }
});

fuzz_target!(|bytes: &[u8]| {
    let Some((&kind, rest)) = bytes.split_first() else {
        return;
    };
    match kind {
        b'Y' => check_restricted(&[b"---\nallowed: ", rest, b"\n---\nbody\n"].concat()),
        b'T' => check_restricted(&[b"+++\nallowed = ", rest, b"\n+++\nbody\n"].concat()),
        b'B' => {
            let blank: String = String::from_utf8_lossy(rest)
                .chars()
                .filter(|c| c.is_whitespace())
                .collect();
            check_restricted(format!("{blank}---\nallowed: hr\n---\nbody\n").as_bytes());
        }
        b'J' => check_json_list(rest),
        _ => documents(rest).iter().for_each(check_document),
    }
});

/// Checks that no document of a file with the field is readable by everyone.
fn check_restricted(file: &[u8]) {
    for document in &documents(file) {
        check_document(document);
        assert_ne!(document.readers, ReaderField::Absent);
    }
}

/// Checks that a JSON list of plain words, which is also YAML, gives the readers that a JSON parser reads.
fn check_json_list(list: &[u8]) {
    let Ok(names) = serde_json::from_slice::<Vec<String>>(list) else {
        return;
    };
    let is_plain = |name: &String| {
        (1..=MAX_PRINCIPAL_BYTES).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_lowercase())
    };
    if !(1..=MAX_READERS).contains(&names.len()) || !names.iter().all(is_plain) {
        return;
    }
    let text = serde_json::to_string(&names).unwrap();
    let all = documents(format!("---\ntitle: t\n{FIELD}: {text}\n---\nbody\n").as_bytes());
    assert_eq!(all.len(), 1);
    assert_eq!(
        all[0].readers,
        ReaderField::Present(DocumentValue::List(names))
    );
}

fn documents(file: &[u8]) -> Vec<ParsedDocument> {
    let folder = &*FOLDER;
    fs::write(&folder.file, file).unwrap();
    let reading = folder.source.read(&folder.entry);
    reading.map_or_else(|_| Vec::new(), |reading| reading.documents)
}

fn check_document(document: &ParsedDocument) {
    for (name, _) in &document.fields {
        let name = name.trim().to_lowercase();
        assert!(name != FIELD && !name.starts_with("allowed."), "{name:?}");
    }
    let named: Vec<&str> = match &document.readers {
        ReaderField::Absent | ReaderField::Malformed(_) => return,
        ReaderField::Present(DocumentValue::Text(text)) => text
            .split([',', ';'])
            .map(str::trim)
            .filter(|name| !name.is_empty())
            .collect(),
        ReaderField::Present(DocumentValue::List(list)) => {
            list.iter().map(String::as_str).collect()
        }
        ReaderField::Present(other) => panic!("{other:?} names readers"),
    };
    assert!((1..=MAX_READERS).contains(&named.len()));
    for name in named {
        assert!(!name.trim().is_empty());
        assert!(name.len() <= MAX_PRINCIPAL_BYTES);
    }
}
