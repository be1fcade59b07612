//! Parses the start of a Markdown file into fields and readers, as indexing does. A document whose reader field is
//! present is readable for the names in it or for nobody, never for everyone, and the field is not among the other
//! fields.
//!
//! The first byte chooses what the rest is: a whole file, the value of the field in YAML or in TOML, or the text before
//! the fence.

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

struct Folder {
    source: FolderSource,
    entry: FileEntry,
    file: PathBuf,
}

static FOLDER: LazyLock<Folder> = LazyLock::new(|| {
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
    Folder {
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
        b'Y' => closed(&[b"---\nallowed: ", rest, b"\n---\nbody\n"].concat()),
        b'T' => closed(&[b"+++\nallowed = ", rest, b"\n+++\nbody\n"].concat()),
        b'B' => {
            let blank: String = String::from_utf8_lossy(rest)
                .chars()
                .filter(|c| c.is_whitespace())
                .collect();
            closed(format!("{blank}---\nallowed: hr\n---\nbody\n").as_bytes());
        }
        b'J' => names(rest),
        _ => documents(rest).iter().for_each(well_formed),
    }
});

/// The field is written, so every document of the file is for somebody named or for nobody.
fn closed(file: &[u8]) {
    for document in &documents(file) {
        well_formed(document);
        assert_ne!(document.readers, ReaderField::Absent);
    }
}

/// A list of plain words is read as another reader of JSON, which YAML contains, reads it.
fn names(list: &[u8]) {
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

fn well_formed(document: &ParsedDocument) {
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
