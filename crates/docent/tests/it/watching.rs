//! The real server while its folder changes.

use std::collections::BTreeMap;
use std::fs;

use serde_json::json;

use crate::process::{Dir, Server, until};

/// The ids that a search finds.
fn found(server: &Server, query: &str) -> Vec<String> {
    let found = server.call("search", &json!({"query": query}));
    let results = found["structuredContent"]["results"].as_array().unwrap();
    let ids = results.iter().map(|one| one["id"].as_str().unwrap());
    ids.filter(|id| !id.starts_with("docent:"))
        .map(str::to_owned)
        .collect()
}

fn wait_for(server: &Server, query: &str, ids: &[&str]) {
    let same = || (found(server, query) == ids).then_some(());
    until(same).unwrap_or_else(|| {
        panic!(
            "{query}: {:?}, not {ids:?}: {}",
            found(server, query),
            server.said()
        )
    });
}

/// Words alone, so that what is found is what holds the word.
fn serve(dir: &Dir, more: &[&str]) -> Server {
    dir.write("docs/docent.toml", "search.mode = \"lexical\"\n");
    let args: Vec<_> = ["docs"].iter().chain(more).copied().collect();
    let server = Server::start(dir, &args);
    server.wait_until_synced();
    server
}

#[test]
fn what_changes_in_the_folder_changes_in_the_answers() {
    let dir = Dir::small();
    let server = serve(&dir, &[]);
    dir.write("docs/new/one.md", "A lantern burns.");
    wait_for(&server, "lantern", &["new/one.md"]);
    dir.write("docs/new/one.md", "A beacon burns.");
    wait_for(&server, "beacon", &["new/one.md"]);
    wait_for(&server, "lantern", &[]);
    let path = |name: &str| dir.path().join("docs").join(name);
    // As editors save: a new file takes the place of the old one.
    dir.write("docs/.tmp", "A torch burns.");
    fs::rename(path(".tmp"), path("new/one.md")).unwrap();
    wait_for(&server, "torch", &["new/one.md"]);
    fs::rename(path("new"), path("old")).unwrap();
    wait_for(&server, "torch", &["old/one.md"]);
    fs::remove_dir_all(path("old")).unwrap();
    wait_for(&server, "torch", &[]);
    wait_for(&server, "ferry", &["ferry.md"]);
}

#[test]
fn a_folder_that_is_not_watched_is_looked_at_once() {
    let dir = Dir::small();
    let server = serve(&dir, &["--no-watch"]);
    dir.write("docs/one.md", "A lantern burns.");
    dir.write("docs/ferry.md", "A beacon burns.");
    // Longer than a change would need; what is not there cannot be waited for.
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    assert_eq!(found(&server, "lantern"), [""; 0]);
    drop(server);
    let server = Server::start(&dir, &["docs", "--no-watch"]);
    server.wait_until_synced();
    assert_eq!(found(&server, "lantern"), ["one.md"]);
}

#[test]
fn an_empty_folder_is_told_with_a_cure_that_works() {
    let dir = Dir::new();
    dir.write("docs/.hidden", "");
    let server = serve(&dir, &[]);
    server.wait_for("hint: put documents into it, and they are found; docs/formats.md");
    dir.write("docs/one.md", "A lantern burns.");
    wait_for(&server, "lantern", &["one.md"]);
    dir.remove("docs/one.md");
    drop(server);
    let server = serve(&dir, &["--no-watch"]);
    server.wait_for("hint: put documents into it and start again; docs/formats.md");
}

/// A small seeded generator: the same operations on every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

#[test]
fn after_any_operations_and_restarts_the_index_is_the_folder() {
    let dir = Dir::new();
    let docs = dir.path().join("docs");
    fs::create_dir_all(&docs).unwrap();
    let mut dice = Dice(7);
    // What each file says; each text has a word that no other ever had.
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    let mut word = 0;
    for round in 0..4 {
        let server = serve(&dir, &[]);
        for _ in 0..150 {
            let name = format!("d{}/f{}.md", dice.below(4), dice.below(12));
            let path = docs.join(&name);
            match dice.below(10) {
                0..6 => {
                    word += 1;
                    let text = format!("wort{word}x");
                    dir.write(&format!("docs/{name}"), &text);
                    files.insert(name, text);
                }
                6..8 => {
                    if files.remove(&name).is_some() {
                        fs::remove_file(path).unwrap();
                    }
                }
                8 => {
                    let other = format!("d{}/g{}.md", dice.below(4), dice.below(12));
                    if let Some(text) = files.remove(&name) {
                        fs::create_dir_all(docs.join(&other).parent().unwrap()).unwrap();
                        fs::rename(path, docs.join(&other)).unwrap();
                        files.insert(other, text);
                    }
                }
                _ => {
                    let (from, to) = (dice.below(4), format!("m{word}-{}", dice.below(1_000)));
                    let start = format!("d{from}/");
                    let moved: Vec<_> = files
                        .keys()
                        .filter(|name| name.starts_with(&start))
                        .cloned()
                        .collect();
                    if !moved.is_empty() {
                        fs::rename(docs.join(format!("d{from}")), docs.join(&to)).unwrap();
                    }
                    for name in moved {
                        let text = files.remove(&name).unwrap();
                        files.insert(name.replace(&start, &format!("{to}/")), text);
                    }
                }
            }
        }
        // Half of the rounds end before the server has seen what happened last.
        if round % 2 == 0 {
            continue;
        }
        let same = || {
            let (_, ready) = server.http("GET", "/readyz", None);
            (ready["documents"] == files.len() && ready["sync"]["state"] == "done").then_some(())
        };
        until(same).unwrap_or_else(|| panic!("never in step: {}", server.said()));
        for (name, text) in &files {
            wait_for(&server, text, &[name]);
        }
    }
    assert!(files.len() > 20, "{}", files.len());
}
