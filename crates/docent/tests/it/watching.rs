//! The real server while its folder changes.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

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

/// How many operations, and between how many starts of the server.
const OPERATIONS: usize = 10_000;
const STARTS: usize = 6;

/// A folder of files, each with a word that no other ever had, and what is done to it.
struct World {
    docs: PathBuf,
    dice: Dice,
    files: BTreeMap<String, String>,
    word: usize,
}

impl World {
    fn operate(&mut self) {
        let name = format!("d{}/f{}.md", self.dice.below(4), self.dice.below(12));
        match self.dice.below(100) {
            0..55 => self.write(name),
            55..80 => self.remove(&name),
            80..94 => self.rename(&name),
            94..98 => self.move_folder(),
            _ => self.remove_folder(),
        }
    }

    fn write(&mut self, name: String) {
        self.word += 1;
        let text = format!("wort{}x", self.word);
        let path = self.docs.join(&name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        if self.dice.below(3) == 0 {
            // As editors save.
            let beside = path.with_extension("tmp~");
            fs::write(&beside, &text).unwrap();
            fs::rename(beside, path).unwrap();
        } else {
            fs::write(path, &text).unwrap();
        }
        self.files.insert(name, text);
    }

    fn remove(&mut self, name: &str) {
        if self.files.remove(name).is_some() {
            fs::remove_file(self.docs.join(name)).unwrap();
        }
    }

    fn rename(&mut self, name: &str) {
        let other = format!("d{}/g{}.md", self.dice.below(4), self.dice.below(12));
        if let Some(text) = self.files.remove(name) {
            fs::create_dir_all(self.docs.join(&other).parent().unwrap()).unwrap();
            fs::rename(self.docs.join(name), self.docs.join(&other)).unwrap();
            self.files.insert(other, text);
        }
    }

    fn move_folder(&mut self) {
        let from = format!("d{}/", self.dice.below(4));
        let to = format!("m{}-{}/", self.word, self.dice.below(1_000));
        let moved = self.below(&from);
        if !moved.is_empty() {
            fs::rename(self.docs.join(&from), self.docs.join(&to)).unwrap();
        }
        for name in moved {
            let text = self.files.remove(&name).unwrap();
            self.files.insert(name.replace(&from, &to), text);
        }
    }

    fn remove_folder(&mut self) {
        let some = self.files.keys().find(|name| name.starts_with('m'));
        let Some((folder, _)) = some.and_then(|name| name.split_once('/')) else {
            return;
        };
        let folder = format!("{folder}/");
        fs::remove_dir_all(self.docs.join(&folder)).unwrap();
        for name in self.below(&folder) {
            self.files.remove(&name);
        }
    }

    fn below(&self, folder: &str) -> Vec<String> {
        let names = self.files.keys();
        let below = names.filter(|name| name.starts_with(folder));
        below.cloned().collect()
    }
}

#[test]
fn after_any_operations_and_restarts_the_index_is_the_folder() {
    let dir = Dir::new();
    let docs = dir.path().join("docs");
    fs::create_dir_all(&docs).unwrap();
    let mut world = World {
        docs,
        dice: Dice(7),
        files: BTreeMap::new(),
        word: 0,
    };
    for start in 0..STARTS {
        let server = serve(&dir, &[]);
        for operation in 0..OPERATIONS.div_ceil(STARTS) {
            world.operate();
            if operation % 40 == 0 {
                // So that the server meets the folder in many states.
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
        }
        // Half of the servers end before they have seen what happened last, one of them by force.
        if start % 2 == 0 {
            continue;
        }
        let files = &world.files;
        let same = || {
            let (_, ready) = server.http("GET", "/readyz", None);
            (ready["documents"] == files.len() && ready["sync"]["state"] == "done").then_some(())
        };
        until(same).unwrap_or_else(|| panic!("never in step: {}", server.said()));
        for (name, text) in files {
            wait_for(&server, text, &[name]);
        }
    }
    assert!(world.files.len() > 20, "{}", world.files.len());
}
