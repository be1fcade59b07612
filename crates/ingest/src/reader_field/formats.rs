//! Property tests: any value of the reader field, in every format that has fields, is either a list of
//! readers or closes the document. Only a document without the field says nothing about its readers.

use std::io::{Cursor, Write as _};

use proptest::prelude::*;
use serde_json::json;

use super::parquet_sample::{parquet_file, parquet_list, parquet_row};
use super::property_files::TEXTS;
use super::xls_sample::xls;
use super::xlsx_sample::xlsx;
use super::*;
use crate::error::IngestError;
use crate::formats::package::PACKAGES;
use crate::formats::{FORMATS, detect};
use crate::limits::Limits;
use crate::options::IngestOptions;
use crate::parser::folder_context::FolderContext;
use crate::parser::{HEAD_BYTES, ParsedFile};

/// Parses a file with `allowed` as the reader field.
pub(super) fn parse(path: &str, bytes: &[u8]) -> Result<ParsedFile, IngestError> {
    parse_with_field("allowed", path, bytes)
}

/// Parses a file with this name of the reader field.
pub(super) fn parse_with_field(
    field: &str,
    path: &str,
    bytes: &[u8],
) -> Result<ParsedFile, IngestError> {
    let options = IngestOptions {
        readers: vec![ReaderFieldName {
            name: field.to_owned(),
            under: None,
        }],
        ..IngestOptions::default()
    };
    let head = bytes.get(..HEAD_BYTES.min(bytes.len())).unwrap();
    let (stem, extension) = path.rsplit_once('.').unwrap();
    (detect(head, extension).unwrap().parse)(&ParserInput {
        id: path,
        path,
        stem,
        bytes,
        sha256: "",
        limits: &Limits::default(),
        options: &options,
        folder_context: &FolderContext::NONE,
        ids: crate::parser::IdPass::Own,
        sink: None,
    })
}

/// The documents of a file of which nothing was skipped.
pub(super) fn read(path: &str, bytes: &[u8]) -> Vec<ParsedDocument> {
    let parsed = parse(path, bytes);
    let parsed = parsed.unwrap_or_else(|reason| panic!("{path}: {reason}"));
    assert!(parsed.skipped.is_empty(), "{path}: {:?}", parsed.skipped);
    parsed.documents
}

/// Writes a file with one document that has this value in the field, or no such field.
type SampleWriter = fn(Option<&Raw>) -> Vec<u8>;

fn with(before: &str, field: Option<String>, after: &str) -> Vec<u8> {
    format!("{before}{}{after}", field.unwrap_or_default()).into_bytes()
}

/// Formats whose fields can hold any JSON value.
const RICH: &[(&str, SampleWriter)] = &[
    ("a.md", |raw| {
        let field = raw.map(|raw| format!("allowed: {raw}\n"));
        with("---\ntitle: T\n", field, "---\nwords\n")
    }),
    ("a.jsonl", |raw| {
        let field = raw.map(|raw| format!(",\"allowed\":{raw}"));
        with("{\"id\":\"1\",\"text\":\"words\"", field, "}\n")
    }),
    ("list.json", |raw| {
        let field = raw.map(|raw| format!(",\"Allowed\":{raw}"));
        with("[{\"id\":\"1\",\"text\":\"words\"", field, "}]")
    }),
    ("one.json", |raw| {
        let field = raw.map(|raw| format!(",\"allowed \":{raw}"));
        with("{\"title\":\"T\",\"note\":\"words\"", field, "}")
    }),
    ("a.geojson", |raw| {
        let field = raw.map(|raw| format!(",\"allowed\":{raw}"));
        let before = "{\"type\":\"FeatureCollection\",\"features\":[{\"type\":\"Feature\",\"properties\":{\"name\":\"words\"";
        with(before, field, "},\"geometry\":null}]}")
    }),
    ("a.ipynb", |raw| {
        let field = raw.map(|raw| format!("\"allowed\":{raw}"));
        let after = "},\"cells\":[{\"cell_type\":\"markdown\",\"source\":\"words\"}]}";
        with("{\"nbformat\":4,\"metadata\":{", field, after)
    }),
];

pub(super) fn text(raw: Option<&Raw>) -> Option<String> {
    raw.map(|raw| raw.as_str().unwrap_or_default().to_owned())
}

/// Text escaped for XML content and attributes.
pub(super) fn escaped(text: &str) -> String {
    let escape = |c: char| match c {
        c if c.is_ascii_alphanumeric() || " ,;@:-".contains(c) => c.to_string(),
        c => format!("&#{};", u32::from(c)),
    };
    text.chars().map(escape).collect()
}

/// A zip package of these parts.
pub(crate) fn zipped<T: AsRef<str>>(parts: &[(&str, T)]) -> Vec<u8> {
    let mut out = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in parts {
        let options = zip::write::SimpleFileOptions::default();
        out.start_file(*name, options).unwrap();
        out.write_all(content.as_ref().as_bytes()).unwrap();
    }
    out.finish().unwrap().into_inner()
}

pub(super) const OFFICE: &str =
    "http://schemas.openxmlformats.org/officeDocument/2006/relationships";

pub(super) fn relations(kind: &str, target: &str) -> String {
    format!(
        "<Relationships><Relationship Id=\"rId1\" Type=\"{OFFICE}/{kind}\" Target=\"{target}\"/></Relationships>"
    )
}

pub(super) fn types(part: &str, kind: &str) -> (&'static str, String) {
    let kind = format!("application/vnd.openxmlformats-officedocument.{kind}.main+xml");
    let types = format!("<Types><Override PartName=\"/{part}\" ContentType=\"{kind}\"/></Types>");
    ("[Content_Types].xml", types)
}

fn docx(raw: Option<&Raw>) -> Vec<u8> {
    let property = text(raw).map(|value| {
        format!(
            "<property name=\"Allowed\"><lpwstr>{}</lpwstr></property>",
            escaped(&value)
        )
    });
    let own = format!("<Properties>{}</Properties>", property.unwrap_or_default());
    zipped(&[
        types("word/document.xml", "wordprocessingml"),
        (
            "_rels/.rels",
            relations("officeDocument", "word/document.xml"),
        ),
        (
            "word/document.xml",
            "<document><body><p><r><t>words</t></r></p></body></document>".to_owned(),
        ),
        ("docProps/custom.xml", own),
    ])
}

fn odt(raw: Option<&Raw>) -> Vec<u8> {
    let property = text(raw).map(|value| {
        format!(
            "<meta:user-defined meta:name=\"allowed\">{}</meta:user-defined>",
            escaped(&value)
        )
    });
    zipped(&[
        ("mimetype", "application/vnd.oasis.opendocument.text".to_owned()),
        (
            "content.xml",
            "<office:document-content><office:body><text:p>words</text:p></office:body></office:document-content>".to_owned(),
        ),
        ("meta.xml", format!("<office:meta>{}</office:meta>", property.unwrap_or_default())),
    ])
}

fn sqlite(raw: Option<&Raw>) -> Vec<u8> {
    let mut connection = rusqlite::Connection::open_in_memory().unwrap();
    let (column, place) = raw.map_or(("", ""), |_| (", allowed TEXT", ", ?1"));
    connection
        .execute_batch(&format!("CREATE TABLE t (text TEXT{column})"))
        .unwrap();
    let insert = format!("INSERT INTO t VALUES ('words'{place})");
    match text(raw) {
        Some(value) => connection.execute(&insert, [value]).unwrap(),
        None => connection.execute(&insert, []).unwrap(),
    };
    connection.serialize("main").unwrap().to_vec()
}

const READERS_COLUMN: &str = "OPTIONAL BYTE_ARRAY allowed (UTF8);";

/// Formats whose fields hold text only.
const PLAIN: &[(&str, SampleWriter)] = &[
    ("a.csv", |raw| {
        let quoted = |text: String| format!("\"{}\"", text.replace('"', "\"\""));
        let head = raw.map_or("", |_| ",allowed");
        let cell = text(raw).map(|text| format!(",{}", quoted(text)));
        with(&format!("id,text{head}\n1,words"), cell, "\n")
    }),
    ("a.tsv", |raw| {
        let flat = |text: String| text.replace(['\t', '\n', '\r', '"'], " ");
        let head = raw.map_or("", |_| "\tAllowed");
        let cell = text(raw).map(|text| format!("\t{}", flat(text)));
        with(&format!("id\ttext{head}\n1\twords"), cell, "\n")
    }),
    ("a.html", |raw| {
        let meta =
            text(raw).map(|text| format!("<meta name=\"Allowed\" content=\"{}\">", escaped(&text)));
        with(
            "<html><head>",
            meta,
            "</head><body><p>words</p></body></html>",
        )
    }),
    ("a.bib", |raw| {
        let plain = |c: char| {
            if c.is_alphanumeric() || ",;@: ".contains(c) {
                c
            } else {
                ' '
            }
        };
        let field = text(raw).map(|text| {
            format!(
                ", allowed = {{{}}}",
                text.chars().map(plain).collect::<String>()
            )
        });
        with("@article{k, title = {words}", field, "}\n")
    }),
    ("a.xlsx", xlsx),
    ("a.xls", xls),
    ("a.docx", docx),
    ("a.odt", odt),
    ("a.db", sqlite),
    ("a.parquet", |raw| match text(raw) {
        Some(value) => parquet_row(READERS_COLUMN, Some(&value)),
        None => parquet_row("", None),
    }),
];

/// Formats without properties, so that only the rules of folders and the default apply to their documents.
const WITHOUT_PROPERTIES: &[&str] = &["pdf", "code", "text", "eml", "mbox", "tar", "gzip"];

#[test]
fn every_format_has_a_sample_or_no_properties() {
    let samples = RICH.iter().chain(PLAIN).map(|(path, write)| {
        let bytes = write(None);
        let head = bytes.get(..HEAD_BYTES.min(bytes.len())).unwrap();
        let (_, extension) = path.rsplit_once('.').unwrap();
        detect(head, extension).unwrap().name
    });
    let covered: Vec<_> = samples.chain(WITHOUT_PROPERTIES.iter().copied()).collect();
    for format in FORMATS {
        let name = format.name;
        assert!(
            covered.contains(&name),
            "no sample of `{name}` with a reader field"
        );
    }
    let any_name = RICH.iter().chain(PLAIN).map(|(path, _)| *path);
    let samples = any_name.chain(TEXTS.iter().map(|(_, path, _)| *path));
    let samples: Vec<_> = samples.filter_map(|path| path.rsplit_once('.')).collect();
    // Presentations have the parser of texts, whose sample is `a.odt`.
    for package in PACKAGES.iter().filter(|package| package.name != "odp") {
        let mut extensions = samples.iter().map(|(_, extension)| extension);
        let is_covered = extensions.any(|extension| package.extensions.contains(extension));
        assert!(is_covered, "no sample of `{}`", package.name);
    }
}

/// Whether a value is what the documentation calls a list of readers.
pub(super) fn is_well_formed(raw: &Raw) -> bool {
    let is_name = |text: &str| {
        let text = clean_line(text);
        !text.is_empty() && text.len() <= MAX_PRINCIPAL_BYTES
    };
    match raw {
        Raw::String(text) => {
            let names: Vec<_> = text.split([',', ';']).map(clean_line).collect();
            let names: Vec<_> = names.iter().filter(|name| !name.is_empty()).collect();
            !names.is_empty()
                && names.len() <= MAX_READERS
                && names.iter().all(|name| is_name(name))
        }
        Raw::Array(items) => {
            let texts: Option<Vec<_>> = items.iter().map(Raw::as_str).collect();
            texts.is_some_and(|texts| {
                !texts.is_empty() && texts.len() <= MAX_READERS && texts.into_iter().all(is_name)
            })
        }
        _ => false,
    }
}

fn check_readers(path: &str, bytes: &[u8], expect: Option<bool>) {
    let documents = read(path, bytes);
    assert_eq!(documents.len(), 1, "{path}");
    let document = documents.first().unwrap();
    let found = match &document.readers {
        ReaderField::Absent => None,
        ReaderField::Malformed(_) => Some(false),
        ReaderField::Present(_) => Some(true),
    };
    let shown = String::from_utf8_lossy(bytes);
    assert_eq!(found, expect, "{path}: {:?} {shown}", document.readers);
    let names = document.fields.iter().map(|(name, _)| name.to_lowercase());
    let leaks: Vec<_> = names.filter(|name| name.contains("allowed")).collect();
    assert!(leaks.is_empty(), "{path}: {leaks:?}");
    assert!(
        !document.text.to_lowercase().contains("allowed"),
        "{path}: {}",
        document.text
    );
}

#[test]
fn a_document_without_the_field_says_nothing() {
    for (path, write) in RICH.iter().chain(PLAIN) {
        check_readers(path, &write(None), None);
    }
}

#[test]
fn empty_cells_and_properties_are_there() {
    for (path, write) in RICH.iter().chain(PLAIN) {
        check_readers(path, &write(Some(&json!(""))), Some(false));
        check_readers(path, &write(Some(&json!("hr, finance"))), Some(true));
    }
    check_readers("a.csv", b"text,allowed\nwords\n", Some(false));
    check_readers(
        "a.csv",
        b"text,allowed,allowed\nwords,hr,everyone\n",
        Some(false),
    );
    check_readers(
        "a.html",
        b"<html><head><meta name=allowed></head><body>words</body></html>",
        Some(false),
    );
    check_readers("a.parquet", &parquet_row(READERS_COLUMN, None), Some(false));
    let no_text = "OPTIONAL BYTE_ARRAY allowed;";
    check_readers(
        "a.parquet",
        &parquet_row(no_text, Some("h\0r")),
        Some(false),
    );
    let nested = "OPTIONAL group allowed { OPTIONAL BYTE_ARRAY groups (UTF8); }";
    check_readers("a.parquet", &parquet_row(nested, None), Some(false));
    let list =
        |items: &[&str]| -> Vec<_> { items.iter().map(|text| Some((*text).to_owned())).collect() };
    check_readers(
        "a.parquet",
        &parquet_list(Some(&list(&["hr", "board"]))),
        Some(true),
    );
    for items in [
        None,
        Some(vec![]),
        Some(vec![None]),
        Some(list(&["hr", ""])),
    ] {
        check_readers("a.parquet", &parquet_list(items.as_deref()), Some(false));
    }
    let repeated = "REPEATED BYTE_ARRAY allowed (UTF8);";
    check_readers(
        "a.parquet",
        &parquet_file(repeated, vec!["hr".into()], &[1], &[0]),
        Some(true),
    );
    check_readers(
        "a.parquet",
        &parquet_file(repeated, vec![], &[0], &[0]),
        Some(false),
    );
}

#[test]
fn empty_and_malformed_values_of_typed_formats_close_the_document() {
    check_readers(
        "a.md",
        b"+++\n[allowed]\ngroups = [\"hr\"]\n+++\nwords\n",
        Some(false),
    );
    check_readers("a.md", b"+++\n[[allowed]]\n+++\nwords\n", Some(false));
    check_readers(
        "a.md",
        b"+++\nallowed = 2024-03-12\n+++\nwords\n",
        Some(true),
    );
    for value in ["NULL", "x'00'", "7", "0.5", "''"] {
        let mut connection = rusqlite::Connection::open_in_memory().unwrap();
        let sql = format!(
            "CREATE TABLE t (text, allowed BOOLEAN); INSERT INTO t VALUES ('words', {value})"
        );
        connection.execute_batch(&sql).unwrap();
        let bytes = connection.serialize("main").unwrap().to_vec();
        check_readers("a.db", &bytes, Some(false));
    }
    let damaged = zipped(&[
        types("word/document.xml", "wordprocessingml"),
        (
            "_rels/.rels",
            relations("officeDocument", "word/document.xml"),
        ),
        (
            "word/document.xml",
            "<document><body><p><r><t>words</t></r></p></body></document>".to_owned(),
        ),
        (
            "docProps/custom.xml",
            "<Properties><property name=\"allowed\"".to_owned(),
        ),
    ]);
    check_readers("a.docx", &damaged, Some(false));
}

fn any_json() -> impl Strategy<Value = Raw> {
    let leaf = prop_oneof![
        Just(Raw::Null),
        any::<bool>().prop_map(Raw::from),
        any::<i32>().prop_map(Raw::from),
        any_text().prop_map(Raw::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Raw::from),
            prop::collection::vec(any_text().prop_map(Raw::from), 0..4).prop_map(Raw::from),
            prop::collection::btree_map("[a-z]{0,3}", inner, 0..3)
                .prop_map(|map| Raw::Object(map.into_iter().collect())),
        ]
    })
}

pub(super) fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        "[ ,;\t]{0,3}",
        "[a-z]{1,4}(, ?[a-z@:]{0,3}){0,2}",
        "[\\PC]{0,6}",
    ]
}

/// A value as TOML writes it. It has no null, so nulls are left out.
fn toml_of(raw: &Raw) -> Option<toml::Value> {
    Some(match raw {
        Raw::Null => return None,
        Raw::Bool(flag) => (*flag).into(),
        Raw::Number(number) => number.as_i64()?.into(),
        Raw::String(text) => text.as_str().into(),
        Raw::Array(items) => items.iter().filter_map(toml_of).collect::<Vec<_>>().into(),
        Raw::Object(map) => {
            let entries = map
                .iter()
                .filter_map(|(key, raw)| Some((key.clone(), toml_of(raw)?)));
            toml::Value::Table(entries.collect())
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn any_value_is_a_list_of_readers_or_nobody(raw in any_json()) {
        for (path, write) in RICH {
            check_readers(path, &write(Some(&raw)), Some(is_well_formed(&raw)));
        }
    }

    #[test]
    fn any_value_in_toml_is_a_list_of_readers_or_nobody(raw in any_json()) {
        if let Some(value) = toml_of(&raw) {
            let text = format!("+++\ntitle = \"T\"\nallowed = {value}\n+++\nwords\n");
            let raw = serde_json::to_value(&value).unwrap();
            check_readers("a.md", text.as_bytes(), Some(is_well_formed(&raw)));
        }
    }

    #[test]
    fn any_list_column_is_a_list_of_readers_or_nobody(
        items in prop::option::of(prop::collection::vec(prop::option::of(any_text()), 0..4)),
    ) {
        check_readers("a.parquet", &parquet_list(items.as_deref()), Some(is_well_formed(&json!(items))));
    }

    #[test]
    fn any_text_is_a_list_of_readers_or_nobody(text in "[ a-zA-Z,;@:]{0,9}") {
        let raw = Raw::String(text);
        for (path, write) in PLAIN {
            check_readers(path, &write(Some(&raw)), Some(is_well_formed(&raw)));
        }
    }
}
