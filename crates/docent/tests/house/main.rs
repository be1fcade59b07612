//! Tests of the source tree itself: the invariants of docs/invariants.md that can be read off the files.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::too_many_lines,
    reason = "what stands beside a test fails with it, and a table is as long as it is"
)]

mod architecture;
mod modules;
mod names;
mod tree;
mod written_tables;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use serde_json::Value;

use self::tree::{CRATES, files, metadata, product_text, read, root};

/// Normal dependencies of each crate of ours.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let metadata = metadata(&["--no-deps"]);
    let packages = metadata["packages"].as_array().unwrap();
    let normal = |package: &Value| {
        let all = package["dependencies"].as_array().unwrap();
        all.iter()
            .filter(|d| d["kind"].is_null())
            .map(|d| text(&d["name"]))
            .collect()
    };
    packages
        .iter()
        .map(|package| (text(&package["name"]), normal(package)))
        .collect()
}

#[test]
fn crates_depend_on_each_other_only_as_planned() {
    let allowed = BTreeMap::from([
        (
            "docent-search",
            vec!["docent-atomic-file", "docent-unicode"],
        ),
        ("docent-ingest", vec!["docent-search", "docent-unicode"]),
        ("docent-mcp", vec!["docent-atomic-file", "docent-unicode"]),
        (
            "docent-oauth",
            vec!["docent-atomic-file", "docent-mcp", "docent-unicode"],
        ),
        ("docent-check", vec![]),
        ("docent-memory", vec![]),
        ("docent-unicode", vec![]),
        ("docent-atomic-file", vec![]),
        (
            "docent",
            vec![
                "docent-atomic-file",
                "docent-check",
                "docent-ingest",
                "docent-mcp",
                "docent-memory",
                "docent-oauth",
                "docent-search",
                "docent-unicode",
            ],
        ),
    ]);
    let found = dependencies();
    assert_eq!(
        found.keys().collect::<Vec<_>>(),
        allowed.keys().collect::<Vec<_>>()
    );
    assert_eq!(found.len(), CRATES.len());
    for (name, dependencies) in &found {
        let ours: Vec<_> = dependencies
            .iter()
            .filter(|d| d.starts_with("docent"))
            .collect();
        assert_eq!(
            ours,
            allowed[name.as_str()].iter().collect::<Vec<_>>(),
            "{name}"
        );
    }
}

#[test]
fn each_library_has_one_home() {
    let homes = [
        ("tantivy", "docent-search"),
        ("axum", "docent-mcp"),
        ("hyper", "docent-mcp"),
        ("argon2", "docent-oauth"),
        ("clap", "docent"),
    ];
    let found = dependencies();
    for (library, home) in homes {
        let users = found
            .iter()
            .filter(|(_, all)| all.contains(library))
            .map(|(name, _)| name);
        let users: Vec<_> = users.collect();
        assert!(
            users.iter().all(|user| *user == home),
            "{library} is {home}'s, used by {users:?}"
        );
    }
}

/// Packages that a server with the stdio transport alone may build. Each line of `cargo tree` counts once.
const MAX_STDIO_PACKAGES: usize = 90;

#[test]
fn a_kit_with_stdio_alone_has_few_dependencies() {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "-p", "docent-mcp"])
        .args(["--no-default-features", "--features", "stdio"])
        .args(["-e", "normal,build", "--prefix", "none"])
        .current_dir(root())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let tree = String::from_utf8(output.stdout).unwrap();
    let packages: BTreeSet<_> = tree.lines().collect();
    assert!(packages.len() > 20, "{tree}");
    assert!(
        packages.len() <= MAX_STDIO_PACKAGES,
        "{} packages, {MAX_STDIO_PACKAGES} may be: {packages:?}",
        packages.len()
    );
    let heavy = ["axum ", "hyper ", "ring ", "ureq "];
    let found = packages
        .iter()
        .find(|one| heavy.iter().any(|name| one.starts_with(name)));
    assert!(found.is_none(), "{found:?}");
}

#[test]
fn domain_types_are_not_serializable() {
    for name in ["document.rs", "query.rs", "hit.rs"] {
        let text = read(&root().join("crates/search/src").join(name));
        assert!(
            !text.contains("Serialize") && !text.contains("serde"),
            "{name}"
        );
    }
}

#[test]
fn a_caller_is_made_in_one_place() {
    for path in files("crates/mcp/src")
        .iter()
        .filter(|path| !path.ends_with("auth/caller.rs"))
    {
        let text = read(path);
        let makes = text.contains("Caller(CallerKind") || text.contains("struct Caller(");
        assert!(!makes, "{}", path.display());
    }
}

#[test]
fn files_are_short_and_say_what_they_do() {
    let mut wrong = Vec::new();
    for path in files("*.rs") {
        let text = read(&path);
        let name = path.strip_prefix(root()).unwrap().display().to_string();
        let lines = product_text(&text).lines().count();
        if lines > 500 {
            wrong.push(format!("{name} has {lines} lines, the limit is 500"));
        }
        // The programs that the guides show, to the letter, are included where an inner comment cannot stand.
        let is_quoted = name.starts_with("crates/mcp/examples/guides/");
        if !text.starts_with("//!") && !is_quoted {
            wrong.push(format!("{name} does not open with what it is"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn names_are_nouns_that_a_user_knows() {
    let empty = [
        "util", "utils", "common", "helpers", "misc", "types", "manager", "core", "macros",
    ];
    for path in files("crates") {
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        assert!(!empty.contains(&stem.as_str()), "{}", path.display());
    }
}

#[test]
fn the_readme_has_exactly_two_commands_at_its_top() {
    let text = read(&root().join("README.md"));
    let fence = text.split("```").nth(1).expect("a fenced block");
    let commands: Vec<_> = fence
        .lines()
        .skip(1)
        .filter(|line| !line.trim().is_empty())
        .collect();
    assert_eq!(commands.len(), 2, "{commands:?}");
    assert!(commands.iter().any(|command| command.starts_with("./test")));
    assert!(read(&root().join(".ci/run")).contains("/test"));
}

/// Licences and bans of deny.toml, checked against what is really linked.
#[test]
fn licences_and_bans_hold() {
    let rules: toml::Value = toml::from_str(&read(&root().join("deny.toml"))).unwrap();
    let strings = |value: &toml::Value| -> Vec<String> {
        let name = |entry: &toml::Value| {
            entry
                .get("name")
                .unwrap_or(entry)
                .as_str()
                .map(str::to_owned)
        };
        value.as_array().unwrap().iter().filter_map(name).collect()
    };
    let (allow, deny) = (
        strings(&rules["licenses"]["allow"]),
        strings(&rules["bans"]["deny"]),
    );
    let metadata = metadata(&[]);
    let linked = linked(&metadata);
    let packages = metadata["packages"].as_array().unwrap();
    for package in packages
        .iter()
        .filter(|p| linked.contains(p["id"].as_str().unwrap()))
    {
        let name = package["name"].as_str().unwrap();
        assert!(
            !deny.iter().any(|banned| banned == name),
            "`{name}` is banned in deny.toml"
        );
        let licence = package["license"].as_str().unwrap_or_default();
        assert!(
            permitted(licence, &allow),
            "`{name}` has licence `{licence}`"
        );
    }
}

/// The ids of all packages that end up in a build, tools of the tests left out.
fn linked(metadata: &Value) -> BTreeSet<String> {
    let nodes = metadata["resolve"]["nodes"].as_array().unwrap();
    let by_id: BTreeMap<_, _> = nodes
        .iter()
        .map(|n| (n["id"].as_str().unwrap(), n))
        .collect();
    let members = metadata["workspace_members"].as_array().unwrap();
    let mut waiting: Vec<&str> = members.iter().map(|id| id.as_str().unwrap()).collect();
    let mut linked = BTreeSet::new();
    while let Some(id) = waiting.pop() {
        if !linked.insert(id.to_owned()) {
            continue;
        }
        for dependency in by_id[id]["deps"].as_array().unwrap() {
            let kinds = dependency["dep_kinds"].as_array().unwrap();
            if kinds.iter().any(|kind| kind["kind"] != "dev") {
                waiting.push(dependency["pkg"].as_str().unwrap());
            }
        }
    }
    assert!(linked.len() > 50, "only {} packages found", linked.len());
    linked
}

/// True when some choice of the `OR`s is allowed in all its `AND`s.
fn permitted(expression: &str, allow: &[String]) -> bool {
    let plain = expression.replace('/', " OR ").replace(['(', ')'], " ");
    let allowed = |one: &str| allow.iter().any(|licence| licence == one.trim());
    plain
        .split(" AND ")
        .all(|part| part.split(" OR ").any(allowed))
}

/// The product speaks of the product alone.
#[test]
fn no_development_artifacts_are_in_the_tree() {
    // Spelled in halves so that this file does not find itself.
    let words = [
        ["sub", "agent"],
        ["/wo", "rk/"],
        ["static.crates", ".io"],
        ["registry.npm", "js"],
        ["pypi", ".org"],
        ["deb.deb", "ian"],
    ];
    for path in files(".") {
        let Ok(text) = fs::read_to_string(&path) else {
            continue;
        };
        for word in words.map(|halves| halves.concat()) {
            assert!(!text.contains(&word), "{} says `{word}`", path.display());
        }
    }
}

#[test]
fn the_example_corpus_is_what_it_claims() {
    let speeches = files("examples/parliament/speeches");
    assert_eq!(speeches.len(), 64);
    let keys = [
        "title",
        "speaker",
        "party",
        "chamber",
        "electorate",
        "state",
        "date",
        "reference",
        "topic_tags",
    ];
    let mut titles = BTreeSet::new();
    for path in speeches {
        let (text, name) = (read(&path), path.display());
        let parts = text
            .strip_prefix("---\n")
            .and_then(|rest| rest.split_once("\n---\n"));
        let (head, body) = parts.unwrap_or_else(|| panic!("{name} has no front matter"));
        for key in keys {
            let stands = head
                .lines()
                .any(|line| line.starts_with(&format!("{key}: ")));
            assert!(stands, "{name} lacks {key}");
        }
        let words = body.split_whitespace().count();
        assert!((300..=1_500).contains(&words), "{name} has {words} words");
        assert!(
            titles.insert(head.lines().next().unwrap().to_owned()),
            "{name}"
        );
    }
}

/// The security checklist names tests, and each of them is there.
#[test]
fn the_security_checklist_names_tests_that_exist() {
    let page = read(&root().join("docs/security-checklist.md"));
    let code: String = files("*.rs").iter().map(|path| read(path)).collect();
    let is_name = |text: &&str| {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        text.chars().all(plain) && text.contains('_')
    };
    // What the chapter has on levels 1 and 2, each once.
    let items: Vec<_> = [(1, 1..=3), (2, 1..=7), (3, 1..=4), (4, 1..=7), (4, 9..=9)]
        .into_iter()
        .flat_map(|(part, items)| items.map(move |item| format!("10.{part}.{item}")))
        .collect();
    let rows = page.lines().filter(|line| line.starts_with("| 10."));
    let listed: Vec<_> = rows
        .map(|line| line.split('|').nth(1).unwrap().trim())
        .collect();
    assert_eq!(listed, items);
    let mut named = 0;
    for line in page.lines().filter(|line| line.starts_with("| 10.")) {
        let held = line.split('|').nth(4).unwrap();
        for name in held.split('`').skip(1).step_by(2).filter(is_name) {
            assert!(
                code.contains(&format!("fn {name}(")),
                "no test is called `{name}`"
            );
            named += 1;
        }
    }
    assert!(named >= 25, "{named}");
}
