//! Any bytes under any name: never a panic, never more than the limits, nothing hidden in what comes out.

use docent_ingest::{Limits, clean};
use docent_search::{Document, Value};
use proptest::prelude::*;

use crate::{Folder, find};

/// Small bounds, so that small inputs reach them.
fn limits() -> Limits {
    Limits {
        max_file_bytes: 600,
        max_text_chars: 300,
        max_records: 6,
        max_line_bytes: 120,
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

/// Pieces of the formats in any order, with noise between them.
fn soup() -> impl Strategy<Value = Vec<u8>> {
    let pieces: Vec<&'static [u8]> = vec![
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
        b"\xFF\xFE",
        b"\xEF\xBB\xBF",
        b"\0",
        b"\xE2\x80\xAE",
        b"\xE2\x80\x8D",
        b"\xC3",
        b"\xE9",
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
        b"%PDF-1.7\n",
        b"1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj ",
        b"2 0 obj<</Type/Pages/Kids[3 0 R 2 0 R]>>endobj ",
        b"3 0 obj<</Type/Page/Contents 4 0 R/MediaBox[0 0 9 9]>>endobj ",
        b"4 0 obj<</Length 30>>stream\n",
        b"BT /F 9 Tf (words) Tj ET ",
        b"endstream endobj trailer<</Root 1 0 R>>",
        b"PK\x03\x04",
        b"PK\x01\x02",
        b"PK\x05\x06",
        b"a very long value indeed, longer than allowed",
    ];
    let piece = prop_oneof![
        6 => prop::sample::select(pieces).prop_map(<[u8]>::to_vec),
        1 => prop::collection::vec(any::<u8>(), 0..8),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

fn check_document(document: &Document, limits: &Limits) {
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
            Value::Text(text) | Value::Date(text) => vec![text.clone()],
            Value::List(list) => list.clone(),
            Value::Number(_) | Value::Bool(_) => Vec::new(),
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
    // A page break is the one control character that a text may hold.
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
        extension in prop::sample::select(vec!["md", "txt", "jsonl", "ndjson", "", "pdf", "html", "xhtml", "docx", "epub"]),
    ) {
        let folder = Folder::new();
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
                prop_assert_eq!(&document.source, &name);
            }
        }
    }
}
