//! Unit tests of archive parsing: archives are built in memory and unpacked without the sandbox.

use std::io::{Cursor, Write as _};

use ::zip::ZipWriter;
use ::zip::write::SimpleFileOptions;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;
use crate::limits::Limits;
use crate::options::IngestOptions;
use crate::parser::folder_context::FolderContext;

fn zipped(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        writer
            .start_file(*name, SimpleFileOptions::default())
            .unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn tarred(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, *content).unwrap();
    }
    builder.into_inner().unwrap()
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

static NO_OPTIONS: IngestOptions = IngestOptions::NONE;

fn input<'a>(path: &'a str, bytes: &'a [u8], limits: &'a Limits) -> ParserInput<'a> {
    ParserInput {
        id: path,
        path,
        stem: path.rsplit_once('.').map_or(path, |(stem, _)| stem),
        bytes,
        sha256: "",
        limits,
        options: &NO_OPTIONS,
        folder_context: &FolderContext::NONE,
        sink: None,
        ids: crate::parser::IdPass::Own,
    }
}

/// Renders each document as `id=text` and each skipped member as `path:code`.
fn read(path: &str, bytes: &[u8], limits: &Limits) -> Vec<String> {
    let input = input(path, bytes, limits);
    let parsed = match detect_archive_kind(bytes).map(|kind| open(&input, kind)) {
        Some(Ok(parsed)) => parsed,
        Some(Err(reason)) => return vec![reason.code().to_owned()],
        None => return vec!["no archive".to_owned()],
    };
    let documents = parsed.documents.iter().map(|d| {
        assert_eq!(d.source, d.id.as_str());
        format!("{}={}", d.id, d.text)
    });
    let skipped = parsed
        .skipped
        .iter()
        .map(|s| format!("{}:{}", s.path, s.reason.code()));
    documents.chain(skipped).collect()
}

fn check(path: &str, bytes: &[u8], expect: &[&str]) {
    assert_eq!(read(path, bytes, &Limits::default()), expect, "{path}");
}

const FILES: &[(&str, &[u8])] = &[
    ("notes/a.md", b"one"),
    ("b.txt", b"two"),
    ("c.png", b"\x89PNG"),
    ("../d.txt", b"out"),
    (".git/e.txt", b"hidden"),
];

#[test]
fn members_are_read_as_files_below_the_archive() {
    check(
        "a.zip",
        &zipped(FILES),
        &[
            "a.zip/notes/a.md=one",
            "a.zip/b.txt=two",
            "a.zip/c.png:unsupported",
            "a.zip/../d.txt:bad-name",
        ],
    );
    let inside = &FILES[..3];
    let expect = |path: &str| {
        [
            format!("{path}/notes/a.md=one"),
            format!("{path}/b.txt=two"),
            format!("{path}/c.png:unsupported"),
        ]
    };
    let tar = tarred(inside);
    assert_eq!(read("a.tar", &tar, &Limits::default()), expect("a.tar"));
    assert_eq!(
        read("a.tgz", &gzipped(&tar), &Limits::default()),
        expect("a.tgz")
    );
    check("b.txt.gz", &gzipped(b"two"), &["b.txt.gz/b.txt=two"]);
    check(
        "b.md.gz",
        &[gzipped(b"on"), gzipped(b"e")].concat(),
        &["b.md.gz/b.md=one"],
    );
}

#[test]
fn archives_in_archives_are_read_to_their_depth() {
    let mut bytes = zipped(&[("x.txt", b"deep")]);
    for _ in 0..3 {
        bytes = zipped(&[("i.zip", &bytes)]);
    }
    check("a.zip", &bytes, &["a.zip/i.zip/i.zip/i.zip/x.txt=deep"]);
    let over = zipped(&[("i.zip", &bytes), ("y.txt", b"near")]);
    check(
        "a.zip",
        &over,
        &[
            "a.zip/y.txt=near",
            "a.zip/i.zip/i.zip/i.zip/i.zip:too-much-inside",
        ],
    );
}

#[test]
fn a_bomb_ends_when_the_budget_is_spent() {
    let zeros = vec![b' '; 3_000_000];
    let bytes = zipped(&[
        ("a.txt", b"good"),
        ("bomb.txt", &zeros),
        ("z.txt", b"never"),
    ]);
    check(
        "a.zip",
        &bytes,
        &["a.zip/a.txt=good", "a.zip:too-much-inside"],
    );
    check("b.gz", &gzipped(&zeros), &["too-much-inside"]);
    check(
        "b.tgz",
        &gzipped(&tarred(&[("b.txt", &zeros)])),
        &["too-much-inside"],
    );
    let nested = zipped(&[
        ("i.zip", &zipped(&[("b.txt", &zeros)])),
        ("z.txt", b"never"),
    ]);
    check("a.zip", &nested, &["too-much-inside"]);
}

#[test]
fn members_and_their_sizes_end_at_their_bounds() {
    let limits = Limits {
        max_members: 2,
        max_file_bytes: 3,
        ..Limits::default()
    };
    let two: &[(&str, &[u8])] = &[("a.txt", b"123"), ("b.txt", b"1234")];
    let expect = ["x/a.txt=123", "x/b.txt:too-large"];
    assert_eq!(read("x", &zipped(two), &limits), expect);
    assert_eq!(read("x", &tarred(two), &limits), expect);
    let three = [two, &[("c.txt", b"1")]].concat();
    let expect = ["x/a.txt=123", "x/b.txt:too-large", "x:too-much-inside"];
    assert_eq!(read("x", &zipped(&three), &limits), expect);
    assert_eq!(read("x", &tarred(&three), &limits), expect);
}

#[test]
fn links_and_devices_are_left_out() {
    let mut builder = tar::Builder::new(tarred(&[]).split_off(1_024));
    for (name, kind) in [
        ("link.txt", tar::EntryType::Symlink),
        ("hard.txt", tar::EntryType::Link),
        ("pipe.txt", tar::EntryType::Fifo),
    ] {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(0);
        builder
            .append_link(&mut header, name, "/etc/passwd")
            .unwrap();
    }
    let bytes = builder.into_inner().unwrap();
    check(
        "a.tar",
        &bytes,
        &[
            "a.tar/link.txt:link",
            "a.tar/hard.txt:link",
            "a.tar/pipe.txt:special",
        ],
    );
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    writer
        .add_symlink("l.txt", "/etc/passwd", SimpleFileOptions::default())
        .unwrap();
    check(
        "a.zip",
        &writer.finish().unwrap().into_inner(),
        &["a.zip/l.txt:link"],
    );
}

#[test]
fn a_damaged_archive_loses_only_its_damaged_files() {
    let whole = zipped(&[("a.txt", b"good"), ("b.txt", b"good")]);
    check(
        "a.zip",
        whole.get(..whole.len() - 30).unwrap(),
        &["damaged"],
    );
    check("a.zip", &zipped(&[]), &["empty"]);
    let tar = tarred(&[("a.txt", b"good"), ("b.txt", &[b'x'; 2_000])]);
    check(
        "a.tar",
        tar.get(..2_000).unwrap(),
        &["a.tar/a.txt=good", "a.tar/b.txt:damaged", "a.tar:damaged"],
    );
    let packed = gzipped(b"some words to pack");
    check(
        "a.gz",
        packed.get(..packed.len() - 12).unwrap(),
        &["damaged"],
    );
}

#[test]
fn documents_that_are_zips_are_no_archives() {
    let docx = zipped(&[
        ("[Content_Types].xml", b"<Types/>"),
        ("word/document.xml", b"<w/>"),
    ]);
    assert!(!is_plain_zip(&docx));
    let limits = Limits::default();
    let refused = zip(&input("a.docx", &docx, &limits)).map(|_| ());
    assert_eq!(refused.map_err(|reason| reason.code()), Err("unsupported"));
    check(
        "a.zip",
        &zipped(&[("a.docx", &docx)]),
        &["a.zip/a.docx:unsupported"],
    );
}
