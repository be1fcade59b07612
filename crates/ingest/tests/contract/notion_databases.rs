//! Databases of Notion exports: no row of a table is lost because other rows have pages, and no page is open
//! because it omits an empty property that names its readers.

use std::io::{Cursor, Write as _};
use std::path::Path;

use docent_ingest::{
    FolderSource, IngestOptions, Limits, ParsedDocument, ReaderField, ReaderFieldName,
};

const ID: &str = "1f0c9e2b7d5a4c3e8b6f0a1d2c3b4e5f";
const TABLE: &str = "Name,Allowed\nOne,hr\nTwo,\n";

/// The members of an export with this table and a page for each title.
fn export(table: &str, pages: &[(&str, &str)]) -> Vec<(String, Vec<u8>)> {
    let pages = pages.iter().map(|(title, property)| {
        let text = format!("# {title}\n\n{property}Status: x\n\nwords\n");
        (format!("Tasks/{title} {ID}.md"), text.into_bytes())
    });
    let table = (format!("Tasks {ID}_all.csv"), table.into());
    [table].into_iter().chain(pages).collect()
}

fn folder(members: &[(String, Vec<u8>)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, bytes) in members {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    dir
}

fn zip(members: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut out = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in members {
        let options = zip::write::SimpleFileOptions::default();
        out.start_file(name.as_str(), options).unwrap();
        out.write_all(bytes).unwrap();
    }
    out.finish().unwrap().into_inner()
}

fn tar(members: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut out = tar::Builder::new(Vec::new());
    for (name, bytes) in members {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_cksum();
        out.append_data(&mut header, name, bytes.as_slice())
            .unwrap();
    }
    out.into_inner().unwrap()
}

fn documents(dir: &Path, field: Option<&str>) -> Vec<ParsedDocument> {
    let readers = field.map(|name| ReaderFieldName {
        name: name.to_owned(),
        under: None,
    });
    let source = FolderSource::open(dir, Limits::default()).unwrap();
    let source = source.with_options(IngestOptions {
        readers: readers.into_iter().collect(),
        ..IngestOptions::default()
    });
    let listing = source.list();
    let read = listing
        .entries
        .iter()
        .map(|entry| source.read(entry).unwrap());
    read.flat_map(|read| read.documents).collect()
}

/// Each document as its title and its readers: `-` if absent, `!` and the fault if malformed.
fn readers(dir: &Path, field: Option<&str>) -> Vec<String> {
    let show = |one: ParsedDocument| {
        let readers = match &one.readers {
            ReaderField::Absent => "-".to_owned(),
            ReaderField::Malformed(fault) => format!("!{}", fault.code()),
            ReaderField::Present(value) => value.to_string(),
        };
        format!("{} {readers}", one.document.title)
    };
    let mut shown: Vec<_> = documents(dir, field).into_iter().map(show).collect();
    shown.sort();
    shown
}

/// Checks an export as a folder, and in archives of every kind. A tar archive also has the rows of the table,
/// because it is read in one pass.
fn check(members: &[(String, Vec<u8>)], field: Option<&str>, expect: &[&str], in_tar: &[&str]) {
    let dir = folder(members);
    assert_eq!(readers(dir.path(), field), expect);
    let (table, pages) = members.split_at(1);
    let parts = [
        ("Part-1.zip".to_owned(), zip(table)),
        ("Part-2.zip".to_owned(), zip(pages)),
    ];
    let mut reversed = members.to_vec();
    reversed.reverse();
    for (name, bytes, expect) in [
        ("a.zip", zip(members), expect),
        ("a.zip", zip(&reversed), expect),
        ("a.zip", zip(&parts), in_tar),
        ("a.tar", tar(members), in_tar),
        ("a.tar", tar(&reversed), in_tar),
    ] {
        let dir = folder(&[(name.to_owned(), bytes)]);
        assert_eq!(readers(dir.path(), field), expect, "{name}");
    }
}

#[test]
fn a_page_without_the_property_of_its_database_is_closed() {
    let pages = [("One", "Allowed: hr\n"), ("Two", "")];
    let members = export(TABLE, &pages);
    check(
        &members,
        Some("allowed"),
        &["One hr", "Two !empty"],
        &["One hr", "One hr", "Two !empty", "Two !empty"],
    );
    // Nothing is closed without the field, or if it is another one.
    let rows = ["One -", "One -", "Two -", "Two -"];
    check(&members, None, &["One -", "Two -"], &rows);
    check(&members, Some("readers"), &["One -", "Two -"], &rows);
}

#[test]
fn a_database_without_the_property_closes_nothing() {
    check(
        &export("Name,Status\nOne,x\n", &[("One", "")]),
        Some("allowed"),
        &["One -"],
        &["One -", "One -"],
    );
}

#[test]
fn pages_below_a_row_are_no_rows() {
    let mut members = export(TABLE, &[("One", ""), ("Two", "")]);
    members.push((
        format!("Tasks/One {ID}/Sub {ID}.md"),
        b"# Sub\n\nx\n".to_vec(),
    ));
    members.push((format!("Other {ID}.md"), b"# Other\n\nx\n".to_vec()));
    let dir = folder(&members);
    assert_eq!(
        readers(dir.path(), Some("allowed")),
        ["One !empty", "Other -", "Sub -", "Two !empty"]
    );
}

#[test]
fn a_row_without_a_page_is_indexed() {
    let members = export(TABLE, &[("One", "Allowed: hr\n")]);
    let rows = ["One hr", "One hr", "Two !empty"];
    check(&members, Some("allowed"), &rows, &rows);
    let dir = folder(&members);
    assert_eq!(readers(dir.path(), None), ["One -", "One -", "Two -"]);
}

#[test]
fn a_table_that_cannot_be_read_closes_its_pages() {
    let members = export("Name,Status\nOne,\"x\nTwo,y\n", &[("One", ""), ("Two", "")]);
    let dir = folder(&members);
    let found = readers(dir.path(), Some("allowed"));
    assert!(found.contains(&"One !empty".to_owned()), "{found:?}");
    let dir = folder(&[("a.zip".to_owned(), zip(&members))]);
    let found = readers(dir.path(), Some("allowed"));
    assert!(found.contains(&"One !empty".to_owned()), "{found:?}");
}
