//! Limits of formats that unpack, tested on golden files just within and just beyond them.

use std::path::Path;

use docent_ingest::{FolderSource, Limits};

fn code(file: &str, limits: Limits) -> Result<(), &'static str> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let (folder, name) = file.split_once('/').unwrap();
    let source = FolderSource::open(data.join(folder), limits).unwrap();
    let entry = crate::find(&source.list(), name);
    source
        .read(&entry)
        .map(drop)
        .map_err(|reason| reason.code())
}

#[test]
fn pages_end_at_their_bound() {
    let pages = |max_pages| Limits {
        max_pages,
        ..Limits::default()
    };
    assert_eq!(code("pdf/report.pdf", pages(3)), Ok(()));
    assert_eq!(code("pdf/report.pdf", pages(2)), Err("too-much-inside"));
}

#[test]
fn parts_end_at_their_bound() {
    let parts = |max_members| Limits {
        max_members,
        ..Limits::default()
    };
    assert_eq!(code("docx/slate.docx", parts(8)), Ok(()));
    assert_eq!(code("docx/slate.docx", parts(7)), Err("too-much-inside"));
}

#[test]
fn texts_end_at_their_bound() {
    for (file, chars) in [
        ("html/old_note.html", 67),
        ("docx/only_words.docx", 11),
        ("odt/harbour.odt", 164),
        ("epub/tides.epub", 68),
        ("pdf/form.pdf", 11),
    ] {
        let text = |max_text_chars| Limits {
            max_text_chars,
            ..Limits::default()
        };
        assert_eq!(code(file, text(chars)), Ok(()), "{file}");
        assert_eq!(code(file, text(chars - 1)), Err("text-too-long"), "{file}");
    }
}
