//! Names and comments: no type name twice in a crate, no comment that only repeats a name.

use std::collections::BTreeMap;

use crate::tree::{SourceFile, packages, read, root, source_files};

/// Type names that one crate may use more than once, each with the reason. The list only shrinks.
const SHARED_TYPE_NAMES: &[(&str, &str, &str)] = &[(
    "docent",
    "OsSignals",
    "one for Unix and one for other systems; a build has only one of them",
)];

/// The shortest doc comment of a private item that can say more than its name does.
const MIN_COMMENT_WORDS: usize = 5;

/// The name of the type that a line declares.
fn declared_type(line: &str) -> Option<&str> {
    let mut rest = line.trim_start();
    let is_nested = rest.len() < line.len();
    if let Some(after) = rest.strip_prefix("pub") {
        rest = match after.strip_prefix('(') {
            Some(scope) => scope.split_once(')')?.1,
            None => after,
        };
    }
    let (keyword, rest) = rest.trim_start().split_once(' ')?;
    // An indented `type` is an associated type, whose name a trait chose.
    let declares =
        matches!(keyword, "struct" | "enum" | "trait" | "union") || keyword == "type" && !is_nested;
    let end = rest
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(rest.len());
    let name = &rest[..end];
    (declares && name.starts_with(|c: char| c.is_ascii_uppercase())).then_some(name)
}

#[test]
fn no_crate_declares_a_type_name_twice() {
    let mut wrong = Vec::new();
    let mut total = 0;
    for (name, files) in packages() {
        let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for file in files {
            for (at, line) in file.text.lines().enumerate() {
                if let Some(found) = declared_type(line) {
                    let place = format!("{}:{}", file.name, at + 1);
                    places.entry(found.to_owned()).or_default().push(place);
                }
            }
        }
        total += places.len();
        let allowed = |found: &str| {
            SHARED_TYPE_NAMES
                .iter()
                .any(|(at, shared, _)| *at == name && *shared == found)
        };
        for (found, places) in &places {
            if places.len() > 1 && !allowed(found) {
                wrong.push(format!(
                    "{name}: `{found}` is declared at {}",
                    places.join(", ")
                ));
            }
        }
        for (_, shared, _) in SHARED_TYPE_NAMES.iter().filter(|(at, ..)| *at == name) {
            let count = places.get(*shared).map_or(0, Vec::len);
            assert!(
                count > 1,
                "{name}: `{shared}` is unique now; take it off the list"
            );
        }
    }
    assert!(total > 1_000, "only {total} types found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A run of `///` lines and the line of code that it documents.
struct DocComment<'a> {
    line: usize,
    words: usize,
    item: &'a str,
}

fn doc_comments(text: &str) -> Vec<DocComment<'_>> {
    let mut found = Vec::new();
    let (mut start, mut words) = (0, 0);
    // Lines of an attribute that is still open, such as a `#[cfg_attr(` over several lines.
    let mut open_brackets = 0_usize;
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(comment) = line.strip_prefix("///") {
            if words == 0 {
                start = at + 1;
            }
            words += comment.split_whitespace().count();
            continue;
        }
        if open_brackets > 0 || line.starts_with("#[") {
            open_brackets += line.matches('[').count();
            open_brackets = open_brackets.saturating_sub(line.matches(']').count());
            continue;
        }
        if words > 0 {
            found.push(DocComment {
                line: start,
                words,
                item: line,
            });
            words = 0;
        }
    }
    found
}

/// Ranges of lines whose doc comments are shown to users: help of the command line and descriptions in schemas.
fn shown_to_users(file: &SourceFile) -> Vec<std::ops::Range<usize>> {
    let derives = ["Args", "Parser", "Subcommand", "ValueEnum", "JsonSchema"];
    let lines: Vec<_> = file.text.lines().collect();
    let mut ranges = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let shown = lines[at].starts_with("#[derive(")
            && derives.iter().any(|derive| lines[at].contains(derive));
        if shown {
            // The comment of the type itself stands above its derive.
            let above = lines[..at]
                .iter()
                .rev()
                .take_while(|line| line.starts_with("///"))
                .count();
            let end = lines[at..]
                .iter()
                .position(|line| *line == "}" || line.ends_with(';'))
                .map_or(lines.len(), |n| at + n);
            ranges.push(at - above..end + 1);
            at = end;
        }
        at += 1;
    }
    ranges
}

#[test]
fn comments_of_private_items_say_more_than_the_name() {
    let mut wrong = Vec::new();
    for (_, files) in packages() {
        for file in files {
            let shown = shown_to_users(&file);
            for comment in doc_comments(&file.text) {
                let is_public = comment.item.starts_with("pub ");
                let is_shown = shown
                    .iter()
                    .any(|range| range.contains(&(comment.line - 1)));
                if !is_public && !is_shown && comment.words < MIN_COMMENT_WORDS {
                    wrong.push(format!(
                        "{}:{} before `{}`",
                        file.name, comment.line, comment.item
                    ));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "doc comments under {MIN_COMMENT_WORDS} words:\n{}",
        wrong.join("\n")
    );
}

/// The lists of equivalent mutants name files and functions of the authentication code. A line that matches nothing would
/// end a run of the mutation tester with an error, hours after it was started.
#[test]
fn equivalent_mutants_are_in_functions_that_exist() {
    let mut count = 0;
    for (name, folder) in [("mcp", "/src/auth/"), ("oauth", "/src/")] {
        let mut sources = source_files(name);
        sources.retain(|file| file.name.contains(folder));
        let list = read(&root().join(format!("bench/mutants/equivalent/{name}.txt")));
        let lines = list
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        for line in lines {
            let mut parts = line.split(" | ");
            let (file, function) = (parts.next().unwrap(), parts.next().unwrap());
            let name = function.rsplit("::").next().unwrap();
            let declaration = format!("fn {name}");
            let is_there = |source: &SourceFile| {
                source.name.ends_with(&format!("/{file}")) && source.text.contains(&declaration)
            };
            assert!(sources.iter().any(is_there), "{line}");
            count += 1;
        }
    }
    assert!(
        count > 10,
        "only {count} lines: has the list changed its form?"
    );
}

#[test]
fn declared_types_are_told_from_other_lines() {
    assert_eq!(
        declared_type("pub(crate) struct SearchHit<'a> {"),
        Some("SearchHit")
    );
    assert_eq!(declared_type("    enum Inner {"), Some("Inner"));
    assert_eq!(declared_type("type Rows = Vec<u8>;"), Some("Rows"));
    assert_eq!(declared_type("    type Output = String;"), None);
    assert_eq!(declared_type("// struct Commented"), None);
    assert_eq!(declared_type("let structure = 1;"), None);
}

#[test]
fn doc_comments_are_counted_with_the_item_behind_their_attributes() {
    let found = doc_comments(
        "/// One two\n/// three.\n#[cfg_attr(\n    test,\n    derive(Debug)\n)]\nfn x() {}\n",
    );
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].line, found[0].words, found[0].item),
        (1, 3, "fn x() {}")
    );
}
