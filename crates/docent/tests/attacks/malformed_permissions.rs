//! Malformed reader fields: documents whose field is present but names no valid reader fail closed. Nobody can read
//! them through any tool or page, and nothing reveals that they exist.

use std::fmt::Write as _;

use serde_json::json;

use crate::hidden_field::{assert_field_is_hidden, heard};
use crate::process::{ServerProcess, TestDir};

pub(crate) const RULES: &str = "[permissions]\ndefault = \"everyone\"\nfield = \"allowed\"\n";

/// Words alone, so that the words of a question that no document has do not change the order of its results.
const LEXICAL: &str = "[search]\nmode = \"lexical\"\n";

/// A word that every document of these tests contains.
pub(crate) const WORD: &str = "quillfish";

/// A reader of a document that everyone may read. No answer may contain the name.
pub(crate) const NAMED: &str = "krakencrew";

/// Front matter of notes that no anonymous caller may read; each becomes a file.
#[rustfmt::skip]
const NOTES: &[(&str, &str)] = &[
    ("empty-list", "---\nallowed: []\n---\n"),
    ("empty-text", "---\nallowed: \"\"\n---\n"),
    ("blank-text", "---\nallowed: \"  \"\n---\n"),
    ("null", "---\nallowed:\n---\n"),
    ("tilde", "---\nallowed: ~\n---\n"),
    ("nulls", "---\nallowed: [null, \"\"]\n---\n"),
    ("null-beside", "---\nallowed: [everyone, null]\n---\n"),
    ("number", "---\nallowed: 7\n---\n"),
    ("flag", "---\nallowed: true\n---\n"),
    ("inner-list", "---\nallowed: [[everyone]]\n---\n"),
    ("toml-list", "+++\nallowed = []\n+++\n"),
    ("toml-table", "+++\n[allowed]\ngroups = [\"hr\"]\n+++\n"),
    ("map", "---\nallowed: {groups: [hr]}\n---\n"),
    ("empty-map", "---\nallowed: {}\n---\n"),
    ("dotted", "---\nallowed.groups: [everyone]\n---\n"),
    ("broken", "---\nallowed: [hr\n---\n"),
    ("broken-elsewhere", "---\ntitle: a: b\nallowed: [hr]\n---\n"),
    ("broken-toml", "+++\nallowed = [\"hr\"\n+++\n"),
    ("unclosed", "---\nallowed: [hr]\n"),
    ("unclosed-prose", "---\nsome prose\nallowed: [hr]\n"),
    ("blank-line", "\n---\nallowed: [hr]\n---\n"),
    ("blanks", "  \t\n ---\nallowed: [hr]\n---\n"),
    ("mark-and-blank", "\u{FEFF}\n---\nallowed: [hr]\n---\n"),
    ("long-fence", "-----\nallowed: [hr]\n-----\n"),
    ("prose-first", "---\nsome prose\nallowed: [hr]\n---\n"),
    ("json", "{\"allowed\": [\"hr\"]}\n"),
    ("twice", "---\nallowed: [hr]\nallowed: [everyone]\n---\n"),
    ("twice-first", "---\nallowed: [everyone]\nallowed: [hr]\n---\n"),
    ("two-cases", "---\nAllowed: [hr]\nallowed: [everyone]\n---\n"),
    ("alias", "---\nstaff: &staff [hr]\nallowed: *staff\n---\n"),
    ("no-name", "---\nallowed: [everyone, \"group:\"]\n---\n"),
    ("nobody", "---\nallowed: nobody\n---\n"),
    ("case", "---\nALLOWED: [hr]\n---\n"),
    ("hr", "---\nallowed: [hr]\n---\n"),
];

/// `NOTES` and those with generated, oversized front matter.
fn closed_notes() -> Vec<(&'static str, String)> {
    let fields: String = (0..70).map(|n| format!("f{n}: {n}\n")).collect();
    let names: Vec<_> = (0..257).map(|n| format!("g{n}")).collect();
    let (long, longer) = ("x".repeat(600), "x".repeat(70_000));
    let mut notes = vec![
        (
            "past-the-limit",
            format!("---\n{fields}allowed: [hr]\n---\n"),
        ),
        ("too-long", format!("---\n# {longer}\nallowed: [hr]\n---\n")),
        (
            "too-many",
            format!("---\nallowed: [{}]\n---\n", names.join(", ")),
        ),
        (
            "long-name",
            format!("---\nallowed: [everyone, {long}]\n---\n"),
        ),
    ];
    notes.extend(NOTES.iter().map(|(name, text)| (*name, (*text).to_owned())));
    notes
}

/// The marker of a note by its readers: the group `hr`, or nobody.
fn mark(name: &str) -> &'static str {
    match name {
        "hr" | "case" | "past-the-limit" | "alias" => "hr",
        _ => "closed",
    }
}

/// JSON values of the field, none of which names a valid reader.
const CLOSED_VALUES: &[&str] = &[
    "[]",
    "\"\"",
    "\" \"",
    "null",
    "[null]",
    "[null,\"\"]",
    "[\"everyone\",7]",
    "{}",
    "7",
    "true",
    "{\"groups\":[\"hr\"]}",
    "[\"everyone\",{\"a\":1}]",
    "[[\"everyone\"]]",
    "\",;\"",
    "\"everyone\",\"allowed\":\"hr\"",
    "[],\"allowed\":\"everyone\"",
    "[],\"Allowed\":\"everyone\"",
];

fn lines() -> String {
    let mut text = String::new();
    for (n, value) in CLOSED_VALUES.iter().enumerate() {
        let line =
            format!(r#"{{"id":"line-{n}","text":"{WORD} closed-line-{n}","allowed":{value}}}"#);
        writeln!(text, "{line}").unwrap();
    }
    let fields: String = (0..70).map(|n| format!("\"f{n}\":{n},")).collect();
    let text_of = |name: &str| format!("\"id\":\"{name}\",\"text\":\"{WORD} {name}\"");
    writeln!(
        text,
        "{{{fields}{},\"allowed\":[\"hr\"]}}",
        text_of("hr-far")
    )
    .unwrap();
    writeln!(text, "{{{}}}", text_of("open-line")).unwrap();
    writeln!(text, "{{{},\"allowed\":[\"hr\"]}}", text_of("hr-line")).unwrap();
    text
}

fn tables(dir: &TestDir) {
    let rows = |rows: &[&str]| rows.join("\n");
    let text = |name: &str| format!("{WORD} {name}");
    dir.write(
        "docs/short.csv",
        &rows(&[
            "id,text,allowed",
            &format!("cell-1,{},", text("closed-cell")),
            &format!("cell-2,{}", text("closed-short")),
            &format!("cell-3,{},hr", text("hr-cell")),
            &format!("cell-4,{},everyone", text("open-cell")),
        ]),
    );
    dir.write(
        "docs/twice.csv",
        &rows(&[
            "id,text,allowed,allowed",
            &format!("twice-1,{},hr,everyone", text("closed-header")),
            &format!("twice-2,{},everyone,everyone", text("closed-header")),
        ]),
    );
    dir.write(
        "docs/one.csv",
        &rows(&["text,Allowed ", &format!("{},", text("closed-one"))]),
    );
    let wide: Vec<_> = (0..70).map(|n| format!("f{n}")).collect();
    let cells: Vec<_> = (0..70).map(|n| n.to_string()).collect();
    dir.write(
        "docs/wide.tsv",
        &rows(&[
            &format!("{}\ttext\tallowed", wide.join("\t")),
            &format!("{}\t{}\thr", cells.join("\t"), text("hr-wide")),
            &format!("{}\t{}\t", cells.join("\t"), text("closed-wide")),
        ]),
    );
    dir.write(
        "docs/plain.csv",
        &rows(&["id,text,kind", &format!("plain-1,{},x", text("open-table"))]),
    );
    dir.write(
        "docs/object.json",
        &format!("{{\"title\":\"closed-object\",\"note\":\"{WORD} closed-object\",\"allowed\":{{\"groups\":[\"hr\"]}}}}"),
    );
    dir.write(
        "docs/page.html",
        &format!("<html><head><title>p</title><meta name=\"allowed\" content=\"\"></head><body>{WORD} closed-page</body></html>"),
    );
    dir.write(
        "docs/book.ipynb",
        &format!("{{\"nbformat\":4,\"metadata\":{{\"allowed\":null}},\"cells\":[{{\"cell_type\":\"markdown\",\"source\":\"{WORD} closed-book\"}}]}}"),
    );
}

pub(crate) fn folder(rules: &str) -> TestDir {
    let dir = TestDir::new();
    dir.write("docs/docent.toml", rules);
    for (name, head) in closed_notes() {
        let mark = mark(name);
        dir.write(
            &format!("docs/{mark}-{name}.md"),
            &format!("{head}\n{WORD} {mark}-{name}\n"),
        );
    }
    dir.write(
        "docs/open.md",
        &format!("---\ntitle: T\n---\n{WORD} open-note\n"),
    );
    dir.write("docs/open-bare.md", &format!("{WORD} open-bare\n"));
    dir.write(
        "docs/open-named.md",
        &format!("---\nallowed: [everyone, {NAMED}]\n---\n{WORD} open-named\n"),
    );
    dir.write("docs/lines.jsonl", &lines());
    tables(&dir);
    dir
}

/// The context of the first of these markers that leaked into an answer.
fn leak(all: &str, marks: &[&str]) -> Option<String> {
    let at = marks.iter().find_map(|mark| all.find(mark))?;
    let before = all.get(..at)?.chars().rev().take(80).count();
    Some(
        all.chars()
            .skip(all.get(..at)?.chars().count() - before)
            .take(200)
            .collect(),
    )
}

fn ids() -> Vec<String> {
    let mut ids: Vec<_> = closed_notes()
        .iter()
        .map(|(name, _)| format!("{}-{name}.md", mark(name)))
        .collect();
    ids.extend((0..CLOSED_VALUES.len()).map(|n| format!("line-{n}")));
    let others = [
        "hr-far",
        "cell-1",
        "cell-2",
        "twice-1",
        "twice-2",
        "one.csv#L2",
        "wide.tsv#L2",
        "wide.tsv#L3",
        "object.json",
        "page.html",
        "book.ipynb",
        "hr-line",
        "cell-3",
    ];
    ids.extend(others.map(str::to_owned));
    ids
}

/// The answer to a `fetch`, with the requested id replaced, so that answers can be compared.
fn fetched(server: &ServerProcess, id: &str) -> String {
    let answer = server.call("fetch", &json!({"id": id}));
    answer.to_string().replace(id, "ID")
}

#[test]
fn documents_without_valid_readers_are_not_found() {
    let dir = folder(&format!("{RULES}{LEXICAL}"));
    let server = ServerProcess::start(&dir, &["docs", "--no-watch"]);
    server.wait_until_synced();
    let all = heard(&server, "");
    for mark in [
        "open-note",
        "open-bare",
        "open-named",
        "open-line",
        "open-cell",
        "open-table",
    ] {
        assert!(all.contains(mark), "{mark} is missing: {all}");
    }
    assert_eq!(leak(&all, &["closed-", "hr-", "allowed", NAMED]), None);
    assert_field_is_hidden(&server, "");
    let absent = fetched(&server, "no-such-document");
    let (status, _, page) = server.page("/d/no-such-document");
    for id in ids() {
        assert_eq!(fetched(&server, &id), absent, "{id}");
        let path = format!("/d/{}", id.replace('#', "%23"));
        let found = server.page(&path);
        assert_eq!(
            (found.0, found.2.replace(&id, "no-such-document")),
            (status, page.clone()),
            "{id}"
        );
    }
}

#[test]
fn doctor_names_a_file_once_and_counts_its_documents() {
    let dir = TestDir::new();
    dir.write("docs/docent.toml", RULES);
    dir.write(
        "docs/rows.csv",
        "id,text,allowed\n1,a,\n2,b,\n3,c,hr\n4,d,\n",
    );
    let indexed = dir.run(&["index", "docs"]);
    assert_eq!(indexed.code, Some(0), "{indexed:?}");
    let doctor = dir.run(&["doctor", "docs"]);
    let named = "nobody may read 3 documents of `rows.csv`: the field `allowed` ";
    assert_eq!(doctor.stdout.matches(named).count(), 1, "{}", doctor.stdout);
    assert!(
        !doctor.stdout.contains("more document"),
        "{}",
        doctor.stdout
    );
}

#[test]
fn doctor_names_a_hundred_files_and_counts_the_others() {
    let dir = TestDir::new();
    dir.write("docs/docent.toml", RULES);
    for n in 0..101 {
        dir.write(&format!("docs/{n:03}.md"), "---\nallowed: []\n---\nx\n");
    }
    let indexed = dir.run(&["index", "docs"]);
    assert_eq!(indexed.code, Some(0), "{indexed:?}");
    let text = dir.run(&["doctor", "docs"]).stdout;
    assert!(text.contains("nobody may read `099.md`"), "{text}");
    assert!(!text.contains("`100.md`"), "{text}");
    for named in [
        "nobody may read 1 more document",
        "docent permissions list --unreadable --path ",
    ] {
        assert!(text.contains(named), "{named}: {text}");
    }
    let list = dir.run(&["permissions", "list", "--unreadable", "--path", "docs"]);
    assert!(list.stdout.contains("100.md (100.md): nobody"), "{list:?}");
}

/// Every file is named, with what is wrong and the fix.
fn assert_doctor_names_every_file(dir: &TestDir) {
    let doctor = dir.run(&["doctor", "docs"]);
    let notes = closed_notes();
    let is_well_formed = |name: &&str| *name == "nobody" || mark(name) == "hr";
    let names = notes.iter().map(|(name, _)| *name);
    let files = names.filter(|name| !is_well_formed(name));
    let files = files.map(|name| format!("`closed-{name}.md`: the field `allowed` "));
    let others = [
        "one.csv",
        "twice.csv",
        "lines.jsonl",
        "object.json",
        "page.html",
        "book.ipynb",
    ];
    for named in files.chain(others.map(|name| format!("`{name}`: the field `allowed` "))) {
        assert!(doctor.stdout.contains(&named), "{named}: {}", doctor.stdout);
    }
    let readers = doctor.stdout.split("nobody may read ").skip(1);
    for finding in readers {
        let hint = finding.lines().nth(1).unwrap_or_default();
        assert!(hint.trim_start().starts_with("hint: "), "{finding}");
    }
    assert!(
        !doctor.stdout.contains("more document"),
        "{}",
        doctor.stdout
    );
}

#[test]
fn named_readers_read_their_documents_and_the_owner_gets_a_report() {
    let rules = format!("{RULES}{LEXICAL}[auth]\napi_keys = true\nrequired = false\n");
    let dir = folder(&rules);
    let made = dir.run(&[
        "key",
        "add",
        "reader",
        "--claim",
        "groups=hr",
        "--path",
        "docs",
    ]);
    assert_eq!(made.code, Some(0), "{made:?}");
    let key = format!("Authorization: Bearer {}\r\n", made.stdout.trim());
    let indexed = dir.run(&["index", "docs"]);
    assert_eq!(indexed.code, Some(0), "{indexed:?}");
    assert!(
        indexed.stdout.contains("that nobody may read"),
        "{}",
        indexed.stdout
    );
    for named in [
        "closed-empty-list.md: nobody may read it, because `allowed` is empty",
        "closed-broken.md: nobody may read it, because `allowed` may stand in front matter",
        "short.csv",
        "lines.jsonl",
    ] {
        assert!(
            indexed.stderr.contains(named),
            "{named}: {}",
            indexed.stderr
        );
    }
    // The warnings are repeated although no file has changed.
    let again = dir.run(&["index", "docs"]);
    assert!(
        again.stderr.contains("closed-empty-list.md"),
        "{}",
        again.stderr
    );
    assert_doctor_names_every_file(&dir);
    let server = ServerProcess::start(&dir, &["docs", "--no-watch"]);
    server.wait_until_synced();
    let all = heard(&server, &key);
    for mark in [
        "hr-line",
        "hr-cell",
        "hr-hr",
        "hr-case",
        "hr-far",
        "hr-wide",
        "hr-past-the-limit",
        "open-note",
    ] {
        assert!(all.contains(mark), "{mark} is missing: {all}");
    }
    assert_eq!(leak(&all, &["closed-", "allowed", NAMED]), None);
    assert_field_is_hidden(&server, &key);
    let anonymous = heard(&server, "");
    assert!(anonymous.contains("open-note"), "{anonymous}");
    assert_eq!(
        leak(&anonymous, &["closed-", "hr-", "allowed", NAMED]),
        None
    );
}

#[test]
fn an_index_of_before_the_rule_opens_nothing() {
    let dir = folder("");
    assert_eq!(dir.run(&["index", "docs"]).code, Some(0));
    dir.write("docs/docent.toml", RULES);
    let doctor = dir.run(&["doctor", "docs"]);
    assert!(
        doctor.stdout.contains("indexed under other rules"),
        "{}",
        doctor.stdout
    );
    // Queried immediately, while the first sync still runs.
    let server = ServerProcess::start(&dir, &["docs", "--no-watch"]);
    let first = heard(&server, "");
    assert!(
        !first.contains("closed-") && !first.contains("hr-"),
        "{first}"
    );
    server.wait_until_synced();
    let all = heard(&server, "");
    assert!(all.contains("open-note"), "{all}");
    assert!(
        !all.contains("closed-") && !all.contains("allowed"),
        "{all}"
    );
}
