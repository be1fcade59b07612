//! Tests for files whose reader field is where a parser may overlook it. None of their documents may end up
//! without one: the field is either read or malformed.

use super::formats::{parse, read};
use super::*;
use crate::clean::clean;

/// The id of each document with its readers: the names, `!code` for a fault, or `-` if the field is absent.
fn readers(path: &str, text: &str) -> Vec<String> {
    let show = |document: &ParsedDocument| {
        let readers = match &document.readers {
            ReaderField::Absent => "-".to_owned(),
            ReaderField::Malformed(fault) => format!("!{}", fault.code()),
            ReaderField::Present(value) => value.to_string(),
        };
        format!("{} {readers}", document.id)
    };
    let parsed = parse(path, text.as_bytes());
    let parsed = parsed.unwrap_or_else(|reason| panic!("{path}: {reason}: {text}"));
    parsed.documents.iter().map(show).collect()
}

fn check(path: &str, text: &str, expect: &[&str]) {
    assert_eq!(readers(path, text), expect, "{path}: {}", clean(text));
}

/// Asserts that every document of the file has the field.
fn check_closed(path: &str, text: &str) {
    let readers = readers(path, text);
    assert!(!readers.is_empty(), "{path}: {text}");
    let is_open = |readers: &String| readers.ends_with(" -");
    assert!(!readers.iter().any(is_open), "{path}: {readers:?}: {text}");
}

fn check_absent(path: &str, text: &str) {
    let documents = read(path, text.as_bytes());
    let readers: Vec<_> = documents.iter().map(|one| &one.readers).collect();
    assert_eq!(readers, [&ReaderField::Absent], "{path}: {text}");
}

#[test]
fn names_are_told_apart_without_quotes() {
    for header in [
        "\"\"\"allowed\"\"\"",
        "'allowed'",
        "`Allowed`",
        "“allowed”",
        "ａllowed",
    ] {
        check(
            "a.csv",
            &format!("id,text,{header}\n1,secretword,hr\n"),
            &["1 hr"],
        );
    }
    check(
        "a.jsonl",
        r#"{"id":"1","text":"x","'allowed'":"hr"}"#,
        &["1 hr"],
    );
}

#[test]
fn a_wrapper_speaks_for_its_records() {
    let record = r#"[{"id":"w1","text":"secretword"},{"id":"w2","text":"x","allowed":"board"}]"#;
    for text in [
        format!(r#"{{"allowed":["hr"],"items":{record}}}"#),
        format!(r#"{{"data":{record},"Allowed":["hr"]}}"#),
        format!(r#"{{"allowed":["hr"],"response":{{"docs":{record}}}}}"#),
        format!(r#"{{"response":{{"docs":{record},"allowed":["hr"]}}}}"#),
        format!(r#"{{"chapters":{record},"allowed":"hr"}}"#),
    ] {
        check("a.json", &text, &["w1 hr", "w2 board"]);
    }
    for (text, fault) in [
        (format!(r#"{{"allowed":[],"items":{record}}}"#), "empty"),
        (
            format!(r#"{{"allowed":"a","Allowed":"b","items":{record}}}"#),
            "repeated",
        ),
        (
            format!(r#"{{"allowed":"a","response":{{"docs":{record},"allowed":"b"}}}}"#),
            "repeated",
        ),
        (
            format!(r#"{{"meta":{{"allowed":"hr"}},"items":{record}}}"#),
            "misplaced",
        ),
        (
            format!(r#"{{"meta":[[{{"allowed":"hr"}}]],"items":{record}}}"#),
            "misplaced",
        ),
    ] {
        let first = format!("w1 !{fault}");
        check("a.json", &text, &[&first, "w2 board"]);
    }
    check(
        "a.json",
        &format!(r#"{{"items":{record}}}"#),
        &["w1 -", "w2 board"],
    );
}

#[test]
fn records_among_other_things_are_records() {
    let record = r#"{"id":"1","text":"secretword","allowed":["hr"]}"#;
    check("a.json", &format!("[null,{record}]"), &["1 hr"]);
    check("a.json", &format!(r#"["x",{record}]"#), &["1 hr"]);
    check("a.json", &format!(r#"[7,["y"],{record}]"#), &["1 hr"]);
    check(
        "a.json",
        &format!(r#"{{"docs":[{record}],"items":[{record}]}}"#),
        &["a.json#docs/1 hr", "a.json#items/1 hr"],
    );
}

#[test]
fn a_field_inside_of_a_document_closes_it() {
    let inner = r#"{"text":"secretword","allowed":["hr"]}"#;
    for text in [
        format!("[[{inner}]]"),
        format!(r#"{{"title":"T","parts":[{inner}]}}"#),
        format!(r#"{{"docA":{inner},"docB":{{"text":"x"}}}}"#),
        format!(r#"{{"title":"T","allowed":["staff"],"parts":[{inner}]}}"#),
        format!(r#"{{"a":[{inner}],"b":[{inner}]}}"#),
        format!(r#"[{{"title":"T","parts":[{inner}]}}]"#),
        format!(r#"[{{"title":"T","meta":{inner},"meta":{{}}}}]"#),
    ] {
        check_closed("a.json", &text);
    }
    check_closed("a.jsonl", &format!(r#"{{"title":"T","part":{inner}}}"#));
    check_closed(
        "a.md",
        "---\ntitle: T\naccess:\n  allowed: [hr]\n---\nsecretword\n",
    );
}

#[test]
fn features_never_lose_their_field() {
    let collection = |feature: &str, more: &str| {
        format!(r#"{{"type":"FeatureCollection","features":[{feature}]{more}}}"#)
    };
    let own = r#""properties":{"id":"f","name":"secretword","allowed":["hr"]}"#;
    let plain = r#"{"type":"Feature","properties":{"id":"f","name":"secretword"}}"#;
    for more in [
        r#""geometry":7"#,
        r#""geometry":{"type":5}"#,
        r#""geometry":{"type":"Point","coordinates":{}}"#,
        r#""id":{}"#,
    ] {
        let feature = format!(r#"{{"type":"Feature",{own},{more}}}"#);
        check_closed("a.geojson", &collection(&feature, ""));
        check_closed("a.geojson", &feature);
    }
    for feature in [
        format!(r#"{{"type":"Feature",{own},"properties":{{"id":"f"}}}}"#),
        format!(r#"{{"type":"Feature","properties":{{"id":"f"}},{own}}}"#),
        r#"{"type":"Feature","id":"f","properties":[{"allowed":"hr"}],"geometry":{"type":"Point"}}"#.to_owned(),
        r#"{"type":"Feature","properties":{"id":"f","x":{"allowed":"hr"}}}"#.to_owned(),
        r#"{"type":"Feature","properties":{"id":"f"},"x":{"allowed":"hr"}}"#.to_owned(),
        r#"{"type":"Feature","properties":{"id":"f","allowed":"hr"},"allowed":"everyone"}"#.to_owned(),
    ] {
        let readers = readers("a.geojson", &collection(&feature, ""));
        assert!(matches!(readers.as_slice(), [one] if one.starts_with("f !")), "{readers:?}: {feature}");
    }
    check(
        "a.geojson",
        &format!(r#"{{"type":"Feature",{own}}}"#),
        &["f hr"],
    );
    check(
        "a.geojson",
        &collection(plain, r#","allowed":["hr"]"#),
        &["f hr"],
    );
    check(
        "a.geojson",
        &collection(plain, r#","properties":{"allowed":"hr"}"#),
        &["f hr"],
    );
    check("a.geojson", &collection(plain, ""), &["f -"]);
    let upper = collection(&format!(r#"{{"Type":"Feature",{own}}}"#), "");
    check(
        "a.geojson",
        &upper.replace("\"type\"", "\"Type\""),
        &["f hr"],
    );
}

#[test]
fn notebooks_never_lose_their_field() {
    let with = |metadata: &str, cell: &str| {
        format!(
            r#"{{"nbformat":4,{metadata},"cells":[{{"cell_type":"raw","source":"{cell}"}},{{"cell_type":"markdown","source":"secretword"}}]}}"#
        )
    };
    for metadata in [
        r#""metadata":[{"allowed":"hr"}]"#,
        r#""metadata":{"docent":{"allowed":"hr"}}"#,
        r#""metadata":{"allowed":"hr"},"Metadata":{"allowed":"hr"}"#,
    ] {
        let readers = readers("a.ipynb", &with(metadata, "x"));
        assert!(
            readers.iter().all(|one| one.contains(" !")),
            "{readers:?}: {metadata}"
        );
    }
    check(
        "a.ipynb",
        &with(r#""Metadata":{"allowed":"hr"}"#, "x"),
        &["a.ipynb hr"],
    );
    let cell = r"---\nallowed: hr\n---\n";
    check("a.ipynb", &with(r#""metadata":{}"#, cell), &["a.ipynb hr"]);
    check(
        "a.ipynb",
        &with(r#""metadata":{"allowed":"hr"}"#, cell),
        &["a.ipynb !repeated"],
    );
    let broken = r"***\nallowed: hr\n***\n";
    check(
        "a.ipynb",
        &with(r#""metadata":{}"#, broken),
        &["a.ipynb !front-matter"],
    );
    check(
        "a.ipynb",
        &with(r#""metadata":{}"#, "Allowed: dogs"),
        &["a.ipynb -"],
    );
}

#[test]
#[allow(clippy::too_many_lines, reason = "a table is as long as its cases")]
fn front_matter_in_another_place_closes_a_text() {
    let long = "prose ".repeat(11_000);
    let long = format!("---\n{long}\nallowed: [hr]\n---\nsecretword\n");
    let header = format!(
        "Title: x\n{}Allowed: hr\n\nsecretword\n",
        "More: prose\n".repeat(6_000)
    );
    let export = format!(
        "export const a = {{\n{}  allowed: 'hr'\n}}\nx\n",
        "  b: 'prose',\n".repeat(6_000)
    );
    let notes = [
        "<!-- markdownlint-disable -->\n---\nallowed: [hr]\n---\nsecretword\n",
        "# Title\n\n---\nallowed: [hr]\n---\nsecretword\n",
        "Title\n---\nallowed: [hr]\n---\nsecretword\n",
        "Title\n---\n\nallowed: [hr]\n---\nsecretword\n",
        "%YAML 1.2\n---\nallowed: [hr]\n---\nsecretword\n",
        "---\ntitle: x\n---\nallowed: [hr]\n---\nsecretword\n",
        "---\ntitle: x\n---\n\nowner: y\nallowed: [hr]\n\nsecretword\n",
        "---\ntitle: x\n...\nallowed: [hr]\nsecretword\n",
        "---\nprose\n---\nallowed: [hr]\n---\nsecretword\n",
        "———\nallowed: [hr]\n———\nsecretword\n",
        "—\nallowed: [hr]\n—\nsecretword\n",
        "--\nallowed: [hr]\n--\nsecretword\n",
        "***\nallowed: [hr]\n***\nsecretword\n",
        "***\n{title: x, allowed: [hr]}\n***\nsecretword\n",
        "===\nallowed: [hr]\n===\nsecretword\n",
        "~~~\nallowed: [hr]\n~~~\nsecretword\n",
        "~~~yaml\nallowed: [hr]\n~~~\nsecretword\n",
        "<!-- x -->\n```yaml\nallowed: [hr]\n```\nsecretword\n",
        "- - -\nallowed: [hr]\n- - -\nsecretword\n",
        "\\---\nallowed: [hr]\n\\---\nsecretword\n",
        "> ---\n> allowed: [hr]\n> ---\nsecretword\n",
        "<!--\nallowed: [hr]\n-->\nsecretword\n",
        "<!-- allowed: [hr] -->\nsecretword\n",
        "# Title\n\nwords\n\n<!-- owner: x; allowed: hr -->\n",
        "[//]: # (allowed: hr)\n\nsecretword\n",
        "...\nallowed: [hr]\n---\nsecretword\n",
        "allowed: [hr]\n---\nsecretword\n",
        "title: x\n\"Allowed\": hr\n---\nsecretword\n",
        "***\n- Allowed: hr\n***\nsecretword\n",
        "***\n**Allowed:** hr\n***\nsecretword\n",
        "***\n**Allowed**: hr\n***\nsecretword\n",
        "***\n1. ａllowed＝hr\n***\nsecretword\n",
        ":allowed: hr\n\nsecretword\n",
        "= Title\n:Allowed: hr\n\nsecretword\n",
        "#+TITLE: x\n#+ALLOWED: hr\n\nsecretword\n",
        "Title: x\nAllowed: hr\n\nsecretword\n",
        "Allowed: hr\nTitle: x\n\nsecretword\n",
        "\n\nTitle: x\nALLOWED : hr\nsecretword\n",
        "Title: x\nSummary: a\n    long one\nTags:\n- a\n- b\nAllowed: hr\n\nsecretword\n",
        "<!-- x -->\nTitle: x\nAllowed: hr\n\nsecretword\n",
        "**Author:** Ada\n**Allowed:** hr\n\nsecretword\n",
        "\"title\": x\n\"allowed\": hr\n\nsecretword\n",
        &header,
        "export const metadata = {\n  title: 'x',\n  allowed: ['hr'],\n}\n\n# Title\n\nsecretword\n",
        "import { A } from 'a'\n\nexport const metadata = {\n\n  'allowed': 'hr',\n}\n\nsecretword\n",
        "# Title\n\nexport const metadata = { title: 'x', allowed: ['hr'] }\n\nsecretword\n",
        "export const metadata =\n{ allowed: ['hr'] }\n\nsecretword\n",
        "export const metadata: Metadata = {\n  access: {\n    x: 1,\n  },\n  title: '}}}',\n  allowed: 'hr',\n}\nsecretword\n",
        "export const metadata = {\naccess: {\nx: 1\n},\nallowed: 'hr'\n}\nsecretword\n",
        "export const metadata = {\n  // don't }\n  title: `}\n}`,\n\n  allowed: 'hr',\n}\nsecretword\n",
        "export const metadata = {\n  title: 'it\\'s }',\n\n  allowed: 'hr',\n}\nsecretword\n",
        "export default {\n  allowed: 'hr',\n}\n\nsecretword\n",
        "export const allowed = ['hr']\n\nsecretword\n",
        "export let metadata = {\n  title: 'x',\n  allowed: ['hr'],\nsecretword\n",
        &export,
        &long,
    ];
    for note in notes {
        check_closed("a.md", note);
        if !note.starts_with("---\ntitle") {
            check_closed("a.txt", note);
        }
    }
    let page = "<html><body><p>secretword</p></body></html>\n";
    check_closed(
        "a.html",
        &format!("<!-- x -->\n---\nallowed: [hr]\n---\n{page}"),
    );
    check_closed("a.html", &format!("<!--\nallowed: [hr]\n-->\n{page}"));
    check_closed("a.rst", "Title\n=====\n\n:allowed: hr\n\nsecretword\n");
    check_closed("a.adoc", "= Title\n:allowed: hr\n\nsecretword\n");
    check_closed("a.org", "#+ALLOWED: hr\nsecretword\n");
}

#[test]
fn sentences_are_no_front_matter() {
    for note in [
        "Allowed: dogs on a leash\n",
        "# Park\n\nAllowed: dogs on a leash\n\n- Allowed: cats\n",
        "Park\n====\n\nAllowed: dogs on a leash\n",
        "<!-- toc -->\n# Park\n\nAllowed: dogs on a leash\n",
        "# Park\n\nSome words.\n\n```yaml\nallowed: [hr]\n```\n\nAllowed: dogs\n",
        "# Park\n\nWords.\n\n---\n\n```yaml\nallowed: [hr]\n```\n\nDogs are not allowed.\n",
        "---\ntitle: x\n---\n\nWords.\n\nAllowed: dogs\n",
        "---\ntitle: x\n---\n\n# Park\n\n---\n\nDogs are allowed: they know.\n",
        "***\nDogs are allowed. All of them.\n",
        "***\nallowed_by: x\ndisallowed: y\n***\n",
        "Title: x\nOwner: y\n\nAllowed: dogs\n",
        "Title: x\n\nAllowed: dogs\n",
        "# Park\nOwner: x\nAllowed: dogs\n",
        "Dogs are welcome here.\nAllowed: dogs\nOwner: x\n",
        "See https://park.example\nAllowed: dogs\n",
        "export const metadata = {\n  title: 'x',\n}\n\nAllowed: dogs\n",
        "export const answer = 42\n\nAllowed: dogs\n",
        "export const a = {\n  b: 1 }\n\nAllowed: dogs\n",
        "export const a =\n  42\n\nAllowed: dogs\n",
        "export { a } from 'a'\n\nAllowed: dogs\n",
        "exports are good.\nAllowed: dogs\n",
        "# Park\n\n```js\nexport const a = {\n  allowed: true,\n}\n```\n",
        "# Park\n\n    export const a = {\n      allowed: true,\n    }\n",
    ] {
        check_absent("a.md", note);
    }
    check_absent("a.txt", "Allowed: dogs on a leash\n");
    check_absent("a.rst", "Title\n=====\n\nAllowed: dogs, and :ref:`cats`\n");
}

#[test]
fn data_and_code_that_name_readers_are_closed() {
    for (path, text) in [
        ("a.yaml", "title: x\nallowed: [hr]\n"),
        ("a.yaml", "---\ntitle: x\nmeta:\n  - allowed: [hr]\n"),
        ("a.yml", "{title: x, \"allowed\": [hr]}\n"),
        ("a.toml", "title = 1\nallowed = [\"hr\"]\n"),
        ("a.ini", "[docent]\nAllowed = hr\n"),
        ("a.vue", "---\nallowed: hr\n---\n<template/>\n"),
        ("a.svelte", "<!--\nallowed: hr\n-->\n<p/>\n"),
        ("a.py", "---\nallowed: [hr]\n---\nx = 1\n"),
    ] {
        check_closed(path, text);
    }
    check_absent("a.yaml", "allowed_hosts: [x]\n# what is allowed\n");
    check_absent("a.py", "# ---\nallowed = [1]\n");
    check_absent("a.py", "x = 1\n---\nallowed = [1]\n");
}

#[test]
fn pages_of_notion_never_lose_their_property() {
    const ID: &str = "1f0c9e2b7d5a4c3e8b6f0a1d2c3b4e5f";
    let path = |name: &str| format!("{name} {ID}.md");
    for (name, text) in [
        ("🔒", "# 🔒\n\nAllowed: hr\n\nsecretword\n"),
        ("Plan", "# Other\n\nAllowed: hr\n\nsecretword\n"),
        ("Plan", "# \n\nAllowed: hr\n\nsecretword\n"),
        ("Plan", "Allowed: hr\n\nsecretword\n"),
        (
            "Plan",
            "# Plan\n\nStatus: Done\nAllowed: hr\n\nsecretword\n",
        ),
        ("Plan", "# Plan\nAllowed: hr\nsecretword\n"),
    ] {
        let path = path(name);
        let readers = readers(&path, text);
        assert!(
            matches!(readers.as_slice(), [one] if one.ends_with(" hr")),
            "{readers:?}: {text}"
        );
    }
    for text in [
        "# Plan\n\nNotes: one\n\ntwo\nAllowed: hr\n\nsecretword\n",
        "# Plan\n\n- Allowed: hr\n\nsecretword\n",
        "# Plan\n\n**Allowed:** hr\n\nsecretword\n",
    ] {
        let readers = readers(&path("Plan"), text);
        assert!(
            readers.iter().all(|one| one.contains(" !")),
            "{readers:?}: {text}"
        );
    }
    check_absent(
        &path("Plan"),
        "# Plan\n\nStatus: Done\n\n## Park\n\nAllowed: dogs\n",
    );
    let page = |rows: &str| {
        format!(
            "<html><body><article><table class=\"properties\"><tbody>{rows}</tbody></table><p>secretword</p></article></body></html>"
        )
    };
    let row = "<tr class=\"property-row\"><th><span class=\"icon\"><svg></svg></span>Allowed</th><td>hr</td></tr>";
    check("a.html", &page(row), &["a.html hr"]);
    let values = "<tr><th>Allowed</th><td><span class=\"selected-value\">hr</span><span class=\"selected-value\">board</span></td></tr>";
    check("a.html", &page(values), &["a.html ,hr,board"]);
    check(
        "a.html",
        &page("<tr><th>Allowed</th><td></td></tr>"),
        &["a.html !empty"],
    );
    check("a.html", &page(&row.repeat(2)), &["a.html !repeated"]);
    check(
        "a.html",
        &page("<tr><th>Status</th><td>Allowed</td></tr>"),
        &["a.html -"],
    );
}

#[test]
fn metas_are_seen_whatever_is_around_them() {
    let meta = "<meta name=\"allowed\" content=\"hr\">";
    let page =
        |head: &str| format!("<html><head>{head}</head><body><p>secretword</p></body></html>");
    for head in [
        "<meta name=\"\" property=\"allowed\" content=\"hr\">",
        "<meta name=\"robots\" property=\"allowed\" content=\"hr\">",
        meta,
    ] {
        check("a.html", &page(head), &["a.html hr"]);
    }
    for head in [
        format!("<noscript>{meta}</noscript>"),
        "<noscript><META Property = 'Allowed' content=x></noscript>".to_owned(),
        format!("<!-- {meta} -->"),
        format!("<script>document.write('{meta}')</script>"),
    ] {
        check("a.html", &page(&head), &["a.html !misplaced"]);
    }
    check_closed(
        "a.html",
        &format!("<html><head><title>T{meta}</head><body>secretword"),
    );
    check(
        "a.html",
        &page("<meta name=robots content=allowed>"),
        &["a.html -"],
    );
}
