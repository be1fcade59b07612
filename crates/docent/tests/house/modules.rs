//! The module graph: top-level modules of a crate that need each other form no large knot.

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::{CRATES, product_text, source_files, without_comments};

/// A strongly connected component may have this many modules before it needs a place on the list.
const MAX_CYCLE: usize = 5;

/// Crates whose modules form a larger cycle: how many modules, and why. The numbers only shrink.
const KNOWN_CYCLES: &[(&str, usize, &str)] = &[
    (
        "ingest",
        43,
        "parsers call the format list for files inside archives, and the list names every parser",
    ),
    (
        "mcp",
        23,
        "the app knows transports, authentication and dispatch, and each of them knows the app",
    ),
    (
        "docent",
        10,
        "settings are types of the modules that they configure, and those read other settings",
    ),
];

type Graph = BTreeMap<String, BTreeSet<String>>;

/// Which top-level modules of a crate name which others by `crate::…`.
fn module_graph(name: &str) -> Graph {
    let mut graph = Graph::new();
    for file in source_files(name) {
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
        let known = KNOWN_CYCLES.iter().find(|(at, ..)| at == name);
        let most = known.map_or(MAX_CYCLE, |(_, most, _)| *most);
        let all = cycle.join(", ");
        assert!(
            cycle.len() <= most,
            "{name}: {} modules need each other, {most} may: {all}",
            cycle.len()
        );
        if known.is_some() {
            assert_eq!(
                cycle.len(),
                most,
                "{name}: the cycle has shrunk; lower its number on the list"
            );
        }
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
