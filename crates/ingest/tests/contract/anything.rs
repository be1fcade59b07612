//! Property tests: any bytes under any name never cause a panic, never exceed the limits, and never yield
//! hidden characters.

use docent_ingest::{Limits, clean};
use docent_search::{Document, DocumentValue};
use proptest::prelude::*;

use crate::{TestFolder, find};

/// Small limits, so that small inputs reach them.
pub(crate) fn limits() -> Limits {
    Limits {
        max_file_bytes: 600,
        max_stream_bytes: 600,
        max_text_chars: 300,
        max_records: 6,
        max_line_bytes: 120,
        max_columns: 5,
        max_front_matter_bytes: 120,
        max_fields: 4,
        max_field_depth: 2,
        max_name_chars: 8,
        max_value_chars: 10,
        max_list_values: 3,
        max_title_chars: 12,
        max_url_chars: 30,
        max_reported: 3,
        ..Limits::default()
    }
}

/// Fragments of which files of all formats consist.
const PIECES: &[&[u8]] = &[
    b"---\n",
    b"+++\n",
    b"...\n",
    b"title: x\n",
    b"title = 'x'\n",
    b"a: [1, 2, 3, 4]\n",
    b"date: 2024-03-12\n",
    b"url: https://a.example/\n",
    b"m: {n: {o: {p: 1}}}\n",
    b"&a ",
    b"*a\n",
    b"# heading\n",
    b"```\n",
    b"text ",
    b"{\"id\":1,\"text\":\"x\"}\n",
    b"{\"id\":\"a\"",
    b",\"k\":",
    b"[",
    b"]",
    b"}",
    b"{",
    b"\n",
    b"\r\n",
    b"a,b,c\n1,2,3\n",
    b"id;name\n",
    b"\"",
    b",",
    b";",
    b"\t",
    b"|",
    b"12/03/2024,",
    b"1.234,5;",
    b"+/v8",
    b"{\"items\":[{\"text\":\"x\"},",
    b"{\"type\":\"FeatureCollection\",\"features\":[{\"geometry\":{\"coordinates\":[1,2]}}",
    b"{\"nbformat\":4,\"cells\":[{\"cell_type\":\"code\",\"source\":[\"x\"]}",
    b"]}",
    b"#!/bin/sh\n",
    b"PK\x03\x04",
    b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1",
    b"SQLite format 3\0",
    b"PAR1",
    b"\xFF\xFE",
    b"\xEF\xBB\xBF",
    b"\0",
    b"\xE2\x80\xAE",
    b"\xE2\x80\x8D",
    b"\xC3",
    b"\xE9",
    b"From: a@b.example\n",
    b"Date: Tue, 12 Mar 2024 10:30:00 +0000\n",
    b"Message-ID: <1@b.example>\n",
    b"Subject: =?utf-8?q?=E2=80=AE?=\n",
    b"From a@b.example Tue Mar 12 10:30:00 2024\n",
    b"Content-Type: multipart/mixed; boundary=b\n",
    b"Content-Type: message/rfc822\n\n",
    b"Content-Transfer-Encoding: base64\n",
    b"--b\n",
    b"<p>&amp;",
    b"PK\x03\x04",
    b"PK\x05\x06",
    b"\x1F\x8B\x08\0",
    b"<!doctype html>",
    b"<html><title>t</title>",
    b"<p>",
    b"<table><tr><td>",
    b"<ul><li>",
    b"<main>",
    b"<nav hidden>",
    b"</p></main></table>",
    b"<pre>",
    b"<h1>",
    b"<meta name=date content=2024-03-12>",
    b"<link rel=canonical href=https://a.example/>",
    b"<svg/><!--",
    b"&#x202E;&shy;&#12;",
    b"a very long value indeed, longer than allowed",
];

/// Random sequences of fragments with noise between them.
fn soup() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        6 => prop::sample::select(PIECES).prop_map(<[u8]>::to_vec),
        1 => prop::collection::vec(any::<u8>(), 0..8),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

pub(crate) fn check_document(document: &Document, limits: &Limits) {
    let chars = |text: &str| text.chars().count();
    assert!(chars(&document.title) <= limits.max_title_chars && !document.name().is_empty());
    assert!(chars(&document.text) <= limits.max_text_chars);
    assert!(document.fields.len() <= limits.max_fields);
    assert!(
        document
            .url
            .as_ref()
            .is_none_or(|url| url.starts_with("http") && chars(url) <= limits.max_url_chars)
    );
    assert!(document.date.as_ref().is_none_or(|day| day.len() == 10));
    assert_eq!(document.hash.len(), 64);
    let mut texts = vec![document.title.clone(), document.id.to_string()];
    for (name, value) in &document.fields {
        assert!(chars(name) <= limits.max_name_chars && !name.is_empty());
        let values = match value {
            DocumentValue::Text(text) | DocumentValue::Date(text) => vec![text.clone()],
            DocumentValue::List(list) => list.clone(),
            DocumentValue::Number(_) | DocumentValue::Bool(_) => Vec::new(),
        };
        assert!(values.len() <= limits.max_list_values);
        assert!(
            values
                .iter()
                .all(|value| chars(value) <= limits.max_value_chars)
        );
        texts.push(name.clone());
        texts.extend(values);
    }
    // A page break is the only control character that a text may contain.
    let pages = document.text.split('\u{C}').map(str::to_owned);
    for text in texts.into_iter().chain(pages) {
        assert_eq!(clean(&text), text, "something hidden came out");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]
    #[test]
    fn any_bytes_as_any_format(
        bytes in prop_oneof![4 => soup(), 1 => prop::collection::vec(any::<u8>(), 0..700)],
        extension in prop::sample::select(vec![
            "md", "txt", "jsonl", "ndjson", "", "pdf", "csv", "tsv", "json", "geojson", "ipynb", "rs", "xlsx", "db",
            "eml", "mbox", "zip", "tar", "gz", "html", "xhtml", "docx",
        ]),
    ) {
        let folder = TestFolder::new();
        let name = if extension.is_empty() { "f".to_owned() } else { format!("f.{extension}") };
        folder.write(&name, &bytes);
        let limits = limits();
        let source = folder.source(limits.clone());
        let entry = find(&source.list(), &name);
        let read = source.read(&entry);
        prop_assert_eq!(&source.read(&entry), &read);
        if let Ok(reading) = read {
            prop_assert!(bytes.len() <= 600);
            prop_assert!(reading.documents.len() <= limits.max_records);
            prop_assert!(reading.skipped.len() <= limits.max_reported + 1);
            prop_assert!(reading.warnings.len() <= limits.max_reported + 1);
            for document in &reading.documents {
                check_document(document, &limits);
                let inside = document.source.strip_prefix(&name);
                prop_assert!(inside.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')));
            }
        }
    }
}
