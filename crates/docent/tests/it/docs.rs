//! The documentation against the tree and the program: links resolve, every page is in the table of contents, and the
//! generated reference pages are current.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use crate::process::{ServerProcess, TestDir};

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().unwrap()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The pages of the site, by path relative to the root of the repository.
fn pages() -> BTreeMap<String, String> {
    let mut pages = BTreeMap::new();
    for folder in ["docs", "docs/guides"] {
        for entry in std::fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "md") {
                let name = path.file_name().unwrap().to_string_lossy();
                pages.insert(format!("{folder}/{name}"), read(&path));
            }
        }
    }
    pages
}

/// Removes code blocks and inline code, in which brackets are no links.
fn prose(text: &str) -> String {
    let mut out = String::new();
    let mut in_block = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        } else if !in_block {
            let outside = line.split('`').step_by(2);
            out.push_str(&outside.collect::<Vec<_>>().join("`"));
            out.push('\n');
        }
    }
    out
}

/// Finds the targets of links and pictures in a page.
fn links(text: &str) -> Vec<String> {
    let text = prose(text);
    let targets = text.split("](").skip(1).filter_map(|rest| {
        let (target, _) = rest.split_once(')')?;
        Some(target.to_owned())
    });
    targets.collect()
}

/// Derives the anchors of a page from its headings, as Markdown renderers do.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut in_block = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        }
        let Some(words) = line.strip_prefix('#').filter(|_| !in_block) else {
            continue;
        };
        let words = words.trim_start_matches('#').trim().to_lowercase();
        let kept = words.chars().filter_map(|c| match c {
            ' ' => Some('-'),
            c if c.is_alphanumeric() || "-_".contains(c) => Some(c),
            _ => None,
        });
        found.insert(kept.collect());
    }
    found
}

/// Resolves a link target relative to its page, including `..`.
fn resolved(page: &str, target: &str) -> String {
    let folder = Path::new(page).parent().unwrap();
    let mut parts: Vec<String> = Vec::new();
    for part in folder.join(target).components() {
        match part {
            Component::ParentDir => {
                parts.pop();
            }
            part => parts.push(part.as_os_str().to_string_lossy().into_owned()),
        }
    }
    parts.join("/")
}

#[test]
fn no_link_leads_nowhere() {
    let pages = pages();
    let mut all = pages.clone();
    for name in [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "CHANGELOG.md",
    ] {
        all.insert(name.to_owned(), read(&root().join(name)));
    }
    let mut followed = 0;
    for (page, text) in &all {
        for link in links(text) {
            if link.starts_with("http://") || link.starts_with("https://") {
                continue;
            }
            followed += 1;
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = if path.is_empty() {
                page.clone()
            } else {
                resolved(page, path)
            };
            assert!(
                root().join(&target).exists(),
                "broken link in {page}: `{link}`"
            );
            // The site contains only the pages below docs/, so their relative links must stay there.
            assert!(
                !page.starts_with("docs/") || target.starts_with("docs/"),
                "{page} leaves the site for `{link}`"
            );
            if !anchor.is_empty() {
                let there = anchors(all.get(&target).map_or("", String::as_str));
                assert!(
                    there.contains(anchor),
                    "{page} leads to `{link}`; there are {there:?}"
                );
            }
        }
    }
    assert!(
        followed > 120,
        "only {followed} links were found: has the link syntax changed?"
    );
}

#[test]
fn every_page_is_in_the_table_of_contents() {
    let summary = read(&root().join("docs/SUMMARY.md"));
    let listed: Vec<_> = links(&summary)
        .iter()
        .map(|link| format!("docs/{link}"))
        .collect();
    let pages: BTreeSet<_> = pages()
        .into_keys()
        .filter(|page| page != "docs/SUMMARY.md")
        .collect();
    let unique: BTreeSet<_> = listed.iter().cloned().collect();
    assert_eq!(unique, pages);
    assert_eq!(unique.len(), listed.len(), "a page is listed twice");
    let book: toml::Table = read(&root().join("book.toml")).parse().unwrap();
    assert_eq!(book["book"]["src"].as_str(), Some("docs"));
    let front = read(&root().join("docs/front.md"));
    let picture = links(&front)
        .into_iter()
        .find(|link| link.starts_with("pictures/"))
        .unwrap();
    let size = std::fs::metadata(root().join("docs").join(picture))
        .unwrap()
        .len();
    assert!(
        (20_000..150_000).contains(&size),
        "the picture has {size} bytes"
    );
}

/// docs/tools.md is generated from `tools/list`, one section for each tool. `DOCENT_WRITE_DOCS=1` rewrites it.
#[test]
fn the_page_of_tools_is_fresh() {
    let dir = TestDir::small();
    dir.write(
        "docs/docent.toml",
        "title = \"your documents\"\n[record]\nname = \"read_record\"\n[model]\nname = \"none\"\n",
    );
    let server = ServerProcess::start(&dir, &["docs"]);
    server.wait_until_synced();
    let listed = server.mcp("tools/list", &serde_json::json!({}));
    let mut page = String::from(
        "# Tools\n\n\
         This page shows what `tools/list` returns for a small folder of three documents whose only field is `speaker`. A test\n\
         compares it with the program. Your own fields take the place of that one. `read_record` is there because `record.name`\n\
         names it; by default there is no such tool. To name, choose and leave out tools, see\n\
         [settings.md](settings.md#search-tools).\n",
    );
    for tool in listed["tools"].as_array().unwrap() {
        page.push_str(&section(tool));
    }
    let path = root().join("docs/tools.md");
    if std::env::var_os("DOCENT_WRITE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    assert!(
        read(&path) == page,
        "docs/tools.md is out of date; rewrite it with DOCENT_WRITE_DOCS=1:\n{page}"
    );
}

fn section(tool: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().replace('|', "\\|");
    let (name, title) = (text(&tool["name"]), text(&tool["title"]));
    let mut out = format!(
        "\n## `{name}`\n\n*{title}.* {}\n",
        text(&tool["description"])
    );
    for (heading, schema) in [
        ("parameter", &tool["inputSchema"]),
        ("result member", &tool["outputSchema"]),
    ] {
        let Some(members) = schema["properties"]
            .as_object()
            .filter(|members| !members.is_empty())
        else {
            continue;
        };
        let needed = schema["required"].as_array().cloned().unwrap_or_default();
        out.push_str(&format!(
            "\n| {heading} | type | required | description |\n|---|---|---|---|\n"
        ));
        for (member, about) in members {
            let needed = if needed.iter().any(|name| name == member) {
                "yes"
            } else {
                ""
            };
            out.push_str(&format!(
                "| `{member}` | {} | {needed} | {} |\n",
                kind(about),
                text(&about["description"])
            ));
        }
    }
    let hints = tool["annotations"].as_object().unwrap();
    let on: Vec<_> = hints
        .iter()
        .filter(|(_, hint)| **hint == true)
        .map(|(name, _)| format!("`{name}`"))
        .collect();
    out.push_str(&format!("\nHints: {}.\n", on.join(", ")));
    out
}

fn kind(schema: &Value) -> String {
    match &schema["type"] {
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => kinds
            .iter()
            .filter_map(Value::as_str)
            .collect::<Vec<_>>()
            .join(" or "),
        _ => "any".to_owned(),
    }
}

/// Every metric of `/metrics` is documented, and no other is.
#[test]
fn every_metric_is_explained() {
    let page = read(&root().join("docs/guides/operating.md"));
    let explained: BTreeSet<_> = page
        .lines()
        .filter(|line| line.starts_with("| `docent_") || line.starts_with("| `process_"))
        .flat_map(|line| {
            line.split('|')
                .nth(1)
                .unwrap()
                .split('`')
                .skip(1)
                .step_by(2)
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .map(|name| name.split('{').next().unwrap().to_owned())
        .collect();
    let dir = TestDir::small();
    let mut command = dir.serve(&["docs", "--metrics", "127.0.0.1:0"]);
    command.env("DOCENT_TELEMETRY_OTLP_ENDPOINT", "http://127.0.0.1:9");
    let server = ServerProcess::of(command);
    let address = server.metrics();
    let numbers = crate::metered::get(&address, "/metrics", &address);
    let shown: BTreeSet<_> = numbers
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        .map(|line| line.split(' ').next().unwrap().to_owned())
        .collect();
    assert!(shown.len() >= 9, "{numbers}");
    // Metrics of cluster nodes appear only on a server with a cluster, so their names are read from the source.
    let of_clusters = read(&root().join("crates/docent/src/metrics/cluster_traffic.rs"));
    let of_clusters = of_clusters.split('"').filter(|text| {
        let name = text.strip_prefix("docent_engine_");
        name.is_some_and(|name| name.bytes().all(|b| b == b'_' || b.is_ascii_lowercase()))
    });
    let all: BTreeSet<_> = of_clusters.map(str::to_owned).chain(shown).collect();
    assert_eq!(all, explained);
}
