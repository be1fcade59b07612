//! The module graph: top-level modules of a crate that need each other form no large knot.

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::{CRATES, SourceFile, product_text, source_files, without_comments};

/// A strongly connected component may have this many modules. Small ones are pairs such as a request and its response;
/// what needs more is a layer that uses the one above it.
const MAX_CYCLE: usize = 5;

type Graph = BTreeMap<String, BTreeSet<String>>;

/// The modules that a file declares behind `#[cfg(test)]`, as paths without `.rs`.
fn test_modules(file: &SourceFile) -> Vec<String> {
    let path = file.name.trim_end_matches(".rs");
    let (parent, stem) = path.rsplit_once('/').unwrap();
    let folder = match stem {
        "lib" | "main" | "mod" => parent,
        _ => path,
    };
    let lines: Vec<&str> = file.text.lines().map(str::trim).collect();
    let mut found = Vec::new();
    for (at, _) in lines
        .iter()
        .enumerate()
        .filter(|(_, line)| line.starts_with("#[cfg(") && line.contains("test"))
    {
        let item = lines[at + 1..]
            .iter()
            .find(|line| !line.starts_with(['#', '/']));
        let module = item.and_then(|line| line.split("mod ").nth(1)?.strip_suffix(';'));
        found.extend(module.map(|module| format!("{folder}/{module}")));
    }
    found
}

/// The files of a crate that are in the program, not only in its tests.
fn product_files(name: &str) -> Vec<SourceFile> {
    let mut files = source_files(name);
    let tests: Vec<_> = files.iter().flat_map(test_modules).collect();
    files.retain(|file| {
        let path = file.name.trim_end_matches(".rs");
        let is_in = |module: &String| {
            let rest = path.strip_prefix(module.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        !tests.iter().any(is_in)
    });
    files
}

/// Which top-level modules of a crate name which others by `crate::…`.
fn module_graph(name: &str) -> Graph {
    let mut graph = Graph::new();
    for file in product_files(name) {
        let inside = file.name.split("/src/").nth(1).unwrap();
        let module = inside.split('/').next().unwrap().trim_end_matches(".rs");
        if matches!(module, "lib" | "main") {
            continue;
        }
        let used = used_modules(&without_comments(&product_text(&file.text)));
        graph.entry(module.to_owned()).or_default().extend(used);
    }
    let modules: BTreeSet<_> = graph.keys().cloned().collect();
    for (module, used) in &mut graph {
        used.retain(|other| other != module && modules.contains(other));
    }
    graph
}

/// The first names of all paths that begin with `crate::`, those in braces too.
fn used_modules(text: &str) -> Vec<String> {
    let identifier = |text: &str| {
        let end = text
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(text.len());
        text[..end].to_owned()
    };
    let mut found = Vec::new();
    for (at, path) in text.match_indices("crate::") {
        let rest = &text[at + path.len()..];
        let Some(list) = rest.strip_prefix('{') else {
            found.push(identifier(rest));
            continue;
        };
        let (mut depth, mut start) = (1, 0);
        for (at, c) in list.char_indices() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            if depth == 0 || depth == 1 && c == ',' {
                found.push(identifier(list[start..at].trim_start()));
                start = at + 1;
            }
            if depth == 0 {
                break;
            }
        }
    }
    found
}

/// Every module that can be reached from one.
fn reachable<'a>(graph: &'a Graph, from: &'a str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut waiting = vec![from];
    while let Some(module) = waiting.pop() {
        for next in graph.get(module).into_iter().flatten() {
            if reached.insert(next.as_str()) {
                waiting.push(next);
            }
        }
    }
    reached
}

/// The largest set of modules that all reach each other.
fn largest_cycle(graph: &Graph) -> Vec<&str> {
    let reached: BTreeMap<_, _> = graph
        .keys()
        .map(|module| (module.as_str(), reachable(graph, module)))
        .collect();
    let cycles = reached.iter().map(|(module, others)| {
        let mutual = |other: &&&str| reached[**other].contains(module);
        others.iter().filter(mutual).copied().collect::<Vec<_>>()
    });
    cycles.max_by_key(Vec::len).unwrap_or_default()
}

#[test]
fn modules_form_no_large_cycle() {
    for name in CRATES {
        let graph = module_graph(name);
        let cycle = largest_cycle(&graph);
        assert!(
            cycle.len() <= MAX_CYCLE,
            "{name}: {} modules need each other, {MAX_CYCLE} may: {}",
            cycle.len(),
            cycle.join(", ")
        );
    }
}

#[test]
fn cycles_are_found_through_lists_of_imports() {
    let edges = |text: &str| used_modules(text).into_iter().collect();
    let graph = Graph::from([
        ("a".to_owned(), edges("use crate::{b::{X, Y}, c};")),
        ("b".to_owned(), edges("crate::a::call()")),
        ("c".to_owned(), edges("use std::fmt;")),
    ]);
    assert_eq!(largest_cycle(&graph), ["a", "b"]);
}

#[test]
fn files_of_tests_are_no_part_of_the_graph() {
    let file = |name: &str, text: &str| SourceFile {
        name: name.to_owned(),
        text: text.to_owned(),
    };
    let text = "mod a;\n#[cfg(test)]\n#[path = \"x.rs\"]\npub(crate) mod b;\n#[cfg(test)]\nmod c {\n}\nmod d;";
    assert_eq!(
        test_modules(&file("crates/x/src/parser.rs", text)),
        ["crates/x/src/parser/b"]
    );
    assert_eq!(
        test_modules(&file("crates/x/src/parser/mod.rs", text)),
        ["crates/x/src/parser/b"]
    );
    let names: Vec<_> = product_files("ingest")
        .into_iter()
        .map(|file| file.name)
        .collect();
    assert!(names.contains(&"crates/ingest/src/parser.rs".to_owned()));
    assert!(!names.contains(&"crates/ingest/src/error/tests.rs".to_owned()));
}
