//! The pages about the architecture compared with the tree: every path, name, test and number on them is real.

use std::collections::{BTreeMap, BTreeSet};

use http::StatusCode;

use crate::tree::{CRATES, files, read, root, source_files};

/// A page that is compared with the tree. It has to have a minimum of each thing that is compared: fewer mean that its
/// form has changed, and that the tests no longer find them.
struct ArchitecturePage {
    name: &'static str,
    min_paths: usize,
    min_constants: usize,
    min_names: usize,
    min_tests: usize,
    /// Words of prose, in which every number has to be a constant; zero for a page that is not checked for that.
    min_words: usize,
}

const PAGES: &[ArchitecturePage] = &[
    ArchitecturePage {
        name: "ARCHITECTURE.md",
        min_paths: 40,
        min_constants: 15,
        min_names: 15,
        min_tests: 0,
        min_words: 1_000,
    },
    ArchitecturePage {
        name: "docs/kit-internals.md",
        min_paths: 15,
        min_constants: 5,
        min_names: 10,
        min_tests: 0,
        min_words: 500,
    },
    ArchitecturePage {
        name: INVARIANTS,
        min_paths: 8,
        min_constants: 0,
        min_names: 4,
        min_tests: 15,
        min_words: 250,
    },
    ArchitecturePage {
        name: GLOSSARY,
        min_paths: 60,
        min_constants: 4,
        min_names: 60,
        min_tests: 0,
        min_words: 0,
    },
];

const INVARIANTS: &str = "docs/invariants.md";
const GLOSSARY: &str = "docs/glossary.md";

/// Where a path begins that these pages name.
const FOLDERS: &[&str] = &[
    "crates/",
    "examples/",
    "conformance/",
    "bench/",
    "deploy/",
    "docs/",
    "fuzz/",
    "release/",
    "widgets/",
    ".ci/",
    "./",
];

/// The revisions of the protocol, whose names are dates.
const REVISIONS: &[&str] = &[
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
    "2026-07-28",
];

fn page(name: &str) -> String {
    read(&root().join(name))
}

/// A page without its fenced blocks of code.
fn without_blocks(text: &str) -> String {
    let outside = text.split("\n```").step_by(2);
    outside.collect::<Vec<_>>().join("\n")
}

/// The texts in backticks of a page.
fn code_spans(text: &str) -> Vec<String> {
    let text = without_blocks(text);
    assert_eq!(
        text.matches('`').count() % 2,
        0,
        "a backtick on the page has no partner"
    );
    let spans = text.split('`').skip(1).step_by(2);
    spans.map(str::to_owned).collect()
}

/// The words of a text, as far as they can be identifiers.
fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
}

fn is_identifier(text: &str) -> bool {
    identifiers(text).eq([text]) && !text.starts_with(|c: char| c.is_ascii_digit())
}

/// The words of the sources of all crates.
fn source_words() -> BTreeSet<String> {
    let files = CRATES.iter().flat_map(|name| source_files(name));
    let mut words = BTreeSet::new();
    for file in files {
        words.extend(identifiers(&file.text).map(str::to_owned));
    }
    words
}

/// Every path in backticks exists.
#[test]
fn paths_named_in_the_architecture_exist() {
    for ArchitecturePage {
        name, min_paths, ..
    } in PAGES
    {
        let spans = code_spans(&page(name));
        let is_path = |span: &&String| {
            !span.contains(char::is_whitespace) && FOLDERS.iter().any(|f| span.starts_with(f))
        };
        let paths: Vec<_> = spans.iter().filter(is_path).collect();
        for path in &paths {
            assert!(root().join(path).exists(), "{name} names `{path}`");
        }
        assert!(
            paths.len() >= *min_paths,
            "{name} has only {} paths: has it changed its form?",
            paths.len()
        );
    }
}

/// What stands in backticks as `NAME = value`.
fn claims(text: &str) -> Vec<(String, String)> {
    let spans = code_spans(text);
    let claim = |span: &String| {
        let (name, value) = span.split_once(" = ")?;
        let is_constant = is_identifier(name) && name.to_ascii_uppercase() == name;
        is_constant.then(|| (name.to_owned(), normalized(value)))
    };
    spans.iter().filter_map(claim).collect()
}

/// A value in one form, whether it was copied from a page or from a source: without separators of digits, with `10 s`
/// for `Duration::from_secs(10)` and `512 MiB` for `512 * 1024 * 1024`.
fn normalized(value: &str) -> String {
    let value: String = value.chars().filter(|c| !c.is_whitespace()).collect();
    let value = value.replace('_', "");
    for (constructor, unit) in [("secs", "s"), ("millis", "ms")] {
        let prefix = format!("Duration::from{constructor}(");
        if let Some(number) = value.strip_prefix(&prefix) {
            return format!("{}{unit}", number.trim_end_matches(')'));
        }
    }
    for (product, unit) in [
        ("*1024*1024", "MiB"),
        ("*MIB", "MiB"),
        ("*1024", "KiB"),
        ("*KIB", "KiB"),
    ] {
        if let Some(number) = value.strip_suffix(product) {
            return format!("{number}{unit}");
        }
    }
    let suffixes = [
        "usize", "u64", "u32", "u16", "u8", "i64", "i32", "f32", "f64",
    ];
    let bare = suffixes
        .iter()
        .find_map(|suffix| value.strip_suffix(suffix));
    bare.unwrap_or(&value).to_owned()
}

/// The values of all constants in the sources by name, each with the file that has it; a name may have several.
fn constants() -> BTreeMap<String, BTreeMap<String, String>> {
    let mut found: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for file in CRATES.iter().flat_map(|name| source_files(name)) {
        for (at, keyword) in file.text.match_indices("const ") {
            let rest = &file.text[at + keyword.len()..];
            let Some((name, rest)) = rest.split_once(':') else {
                continue;
            };
            let declaration = rest.split_once(';').map_or(rest, |(one, _)| one);
            if let Some((_, value)) = declaration.split_once('=').filter(|_| is_identifier(name)) {
                let values = found.entry(name.to_owned()).or_default();
                values.insert(normalized(value), file.name.clone());
            }
        }
    }
    found
}

/// Every `NAME = value` in backticks is what the constant of that name says, wherever there is one.
#[test]
fn numbers_in_the_architecture_are_those_of_constants() {
    let constants = constants();
    for ArchitecturePage {
        name,
        min_constants,
        ..
    } in PAGES
    {
        let claims = claims(&page(name));
        for (constant, value) in &claims {
            let values = constants.get(constant).unwrap_or_else(|| {
                panic!("{name} names the constant `{constant}`, and there is none")
            });
            assert!(
                values.len() == 1 && values.contains_key(value),
                "{name} says that `{constant}` is {value}; the code says {values:?}"
            );
        }
        assert!(
            claims.len() >= *min_constants,
            "{name} has only {} numbers: has it changed its form?",
            claims.len()
        );
    }
}

/// The text of a page that a reader takes for prose: no blocks, no code, no targets of links, no numbers of rows.
fn prose(text: &str) -> String {
    let mut prose = String::new();
    for line in without_blocks(text).lines() {
        let line = without_row_number(line);
        let outside: Vec<_> = line.split('`').step_by(2).collect();
        let outside = outside.join(" ");
        let mut rest = outside.as_str();
        while let Some((before, target)) = rest.split_once("](") {
            prose.push_str(before);
            rest = target.split_once(')').map_or("", |(_, after)| after);
        }
        prose.push_str(rest);
        prose.push('\n');
    }
    prose
}

/// A line without the number of its item or of its row in a table.
fn without_row_number(line: &str) -> &str {
    let digits =
        |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let start = if line.starts_with("| ") { 2 } else { 0 };
    let number = digits(&line[start..]);
    let rest = &line[start + number..];
    let is_number = number > 0 && (rest.starts_with(" |") || start == 0 && rest.starts_with(". "));
    if is_number { rest } else { line }
}

/// The numbers in a text that nothing vouches for: no revision, no version in Cargo.lock, no RFC and no HTTP status.
fn loose_numbers(text: &str, versions: &BTreeSet<(String, String)>) -> Vec<String> {
    let mut loose = Vec::new();
    let mut before = "";
    for word in prose(text).split_whitespace() {
        let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        let is_version = versions.contains(&(before.to_owned(), word.to_owned()));
        let is_rfc = before == "RFC" && word.parse::<u16>().is_ok();
        let status = word
            .parse()
            .ok()
            .and_then(|code| StatusCode::from_u16(code).ok());
        let is_status = before == "HTTP" && status.is_some_and(|s| s.canonical_reason().is_some());
        // A word that begins with a letter is a name, such as BM25.
        let is_name = word.starts_with(|c: char| c.is_ascii_alphabetic());
        let has_digit = word.chars().any(|c| c.is_ascii_digit());
        if has_digit && !(is_name || is_version || is_rfc || is_status || REVISIONS.contains(&word))
        {
            loose.push(format!("{before} {word}"));
        }
        before = word;
    }
    loose
}

/// The names and versions of all packages in Cargo.lock.
fn locked_versions() -> BTreeSet<(String, String)> {
    let lock: toml::Table = page("Cargo.lock").parse().unwrap();
    let text = |package: &toml::Value, key: &str| package[key].as_str().unwrap().to_owned();
    let packages = lock["package"].as_array().unwrap().iter();
    packages
        .map(|one| (text(one, "name"), text(one, "version")))
        .collect()
}

/// A number in the text would be a claim that no test compares with the code.
#[test]
fn no_number_in_the_architecture_stands_alone() {
    let versions = locked_versions();
    assert!(versions.len() > 50, "only {} packages", versions.len());
    for ArchitecturePage {
        name, min_words, ..
    } in PAGES.iter().filter(|page| page.min_words > 0)
    {
        let text = page(name);
        let words = prose(&text).split_whitespace().count();
        assert!(
            words >= *min_words,
            "{name} has only {words} words of prose: has it changed its form?"
        );
        let loose = loose_numbers(&text, &versions);
        assert!(
            loose.is_empty(),
            "{name}: write `NAME = value`, as its constant says, in place of: {loose:?}"
        );
        // A number in backticks needs its name too. Codes of JSON-RPC errors are negative, so they are not meant.
        for span in code_spans(&text) {
            let is_bare = span.starts_with(|c: char| c.is_ascii_digit());
            assert!(!is_bare, "{name}: `{span}` has no name");
        }
    }
}

/// Types, functions and tests in backticks are in the code.
#[test]
fn names_in_the_architecture_are_in_the_code() {
    let words = source_words();
    let tests: String = files("crates/*.rs").iter().map(|path| read(path)).collect();
    for ArchitecturePage {
        name,
        min_names,
        min_tests,
        ..
    } in PAGES.iter().filter(|page| page.name != GLOSSARY)
    {
        let (mut names_found, mut tests_found) = (0, 0);
        for span in &code_spans(&page(name)) {
            let path = span.split("::");
            if !path.clone().all(is_identifier) {
                continue;
            }
            let is_test = span.matches('_').count() >= 3 && span.to_ascii_lowercase() == *span;
            if is_test {
                assert!(
                    tests.contains(&format!("fn {span}(")),
                    "{name}: no test is called `{span}`"
                );
                tests_found += 1;
            } else {
                for part in path {
                    assert!(
                        words.contains(part),
                        "{name}: `{part}` is nowhere in the sources"
                    );
                }
                names_found += 1;
            }
        }
        assert!(
            names_found >= *min_names && tests_found >= *min_tests,
            "{name} has only {names_found} names and {tests_found} tests: has it changed its form?"
        );
    }
}

/// Every invariant names a test.
#[test]
fn invariants_name_their_tests() {
    let text = page(INVARIANTS);
    let (_, section) = text.split_once("## Properties and their tests").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let rows: Vec<_> = section
        .lines()
        .filter(|l| l.starts_with("| "))
        .skip(1)
        .collect();
    assert!(rows.len() >= 10, "{}", rows.len());
    for row in rows {
        let held_by = row.split('|').nth(2).unwrap();
        assert!(!code_spans(held_by).is_empty(), "no test in: {row}");
    }
}

/// The terms of the glossary that are names are names in the code.
#[test]
fn terms_of_the_glossary_are_in_the_code() {
    let words = source_words();
    let mut known = 0;
    for line in page(GLOSSARY).lines().filter(|l| l.starts_with("| ")) {
        let term = line.split('|').nth(1).unwrap();
        for name in code_spans(term) {
            assert!(
                words.contains(&name),
                "the glossary has `{name}`, and no source has"
            );
            known += 1;
        }
    }
    assert!(
        known >= 60,
        "only {known} names: has the page changed its form?"
    );
}

#[test]
fn values_are_compared_in_one_form() {
    for (page, source) in [
        ("1_024", "1_024"),
        ("1024", "1_024u64"),
        ("10 s", "Duration::from_secs(10)"),
        ("300 ms", "Duration::from_millis(300)"),
        ("512 MiB", "512 * 1024 * 1024"),
        ("16 KiB", "16 * KIB"),
        ("0.35", " 0.35"),
    ] {
        assert_eq!(normalized(page), normalized(source), "{page}");
    }
    assert_ne!(normalized("10 s"), normalized("Duration::from_millis(10)"));
    assert_ne!(normalized("16"), normalized("16.0"));
}

#[test]
fn loose_numbers_are_found() {
    let versions = BTreeSet::from([("tantivy".to_owned(), "3.8.0".to_owned())]);
    let loose = |text: &str| loose_numbers(text, &versions).len();
    for fine in [
        "1. BM25 and SHA-256, of 2025-03-26",
        "| 3 | HTTP 405, as RFC 7591 says |",
        "tantivy 3.8.0 and `LEASE_TIMEOUT = 10 s`",
        "see [durability](docs/durability.md#2-parts)",
        "text\n```\n17\n```\n",
    ] {
        assert_eq!(loose(fine), 0, "{fine}");
    }
    for claim in [
        "the best 200 by BM25",
        "tantivy 3.7.0",
        "HTTP 999",
        "| 3 | 4 |",
        "since 2025-03-27",
        "10s",
        "[the best 50](docs/a.md)",
    ] {
        assert_eq!(loose(claim), 1, "{claim}");
    }
}
