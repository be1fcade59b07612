//! Folder watching: the real server while files are written, replaced, renamed and removed.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::json;

use crate::process::{ServerProcess, TestDir, until};

/// The ids of the results of a search, without the pseudo result about the search.
fn found(server: &ServerProcess, query: &str) -> Vec<String> {
    let found = server.call("search", &json!({"query": query}));
    let results = found["structuredContent"]["results"].as_array().unwrap();
    let ids = results.iter().map(|one| one["id"].as_str().unwrap());
    ids.filter(|id| !id.starts_with("docent:"))
        .map(str::to_owned)
        .collect()
}

fn wait_for(server: &ServerProcess, query: &str, ids: &[&str]) {
    let same = || (found(server, query) == ids).then_some(());
    until(same).unwrap_or_else(|| {
        panic!(
            "{query}: {:?}, not {ids:?}: {}",
            found(server, query),
            server.log()
        )
    });
}

/// Starts a server with lexical search only, so that a search finds exactly the documents with the word.
fn serve(dir: &TestDir, more: &[&str]) -> ServerProcess {
    dir.write("docs/docent.toml", "search.mode = \"lexical\"\n");
    let args: Vec<_> = ["docs"].iter().chain(more).copied().collect();
    let server = ServerProcess::start(dir, &args);
    server.wait_until_synced();
    server
}

#[test]
fn changes_in_the_folder_appear_in_search() {
    let dir = TestDir::small();
    let server = serve(&dir, &[]);
    dir.write("docs/new/one.md", "A lantern burns.");
    wait_for(&server, "lantern", &["new/one.md"]);
    dir.write("docs/new/one.md", "A beacon burns.");
    wait_for(&server, "beacon", &["new/one.md"]);
    wait_for(&server, "lantern", &[]);
    let path = |name: &str| dir.path().join("docs").join(name);
    // Atomic save, as editors do: a new file is renamed over the old one.
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
fn a_folder_that_is_not_watched_is_scanned_once() {
    let dir = TestDir::small();
    let server = serve(&dir, &["--no-watch"]);
    dir.write("docs/one.md", "A lantern burns.");
    dir.write("docs/ferry.md", "A beacon burns.");
    // An absence cannot be awaited, so this sleeps longer than the watcher would need.
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    assert_eq!(found(&server, "lantern"), [""; 0]);
    drop(server);
    let server = ServerProcess::start(&dir, &["docs", "--no-watch"]);
    server.wait_until_synced();
    assert_eq!(found(&server, "lantern"), ["one.md"]);
}

#[test]
fn an_empty_folder_gets_a_hint_that_works() {
    let dir = TestDir::new();
    dir.write("docs/.hidden", "");
    let server = serve(&dir, &[]);
    server.wait_for(
        "hint: put documents into it, and they are indexed within seconds; docs/formats.md",
    );
    dir.write("docs/one.md", "A lantern burns.");
    wait_for(&server, "lantern", &["one.md"]);
    dir.remove("docs/one.md");
    drop(server);
    let server = serve(&dir, &["--no-watch"]);
    server.wait_for("hint: put documents into it and restart the server; docs/formats.md");
}

/// Seeded linear congruential generator, so that every run makes the same operations.
struct SeededRandom(u64);

impl SeededRandom {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// Number of file operations, and of server starts that they are spread over.
const OPERATIONS: usize = 10_000;
const STARTS: usize = 6;

/// Folder of files under random operations. Each written file gets a word that was never used before, so that a search
/// for it must find this version of this file.
struct ChangingFolder {
    docs: PathBuf,
    random: SeededRandom,
    files: BTreeMap<String, String>,
    word: usize,
}

impl ChangingFolder {
    fn operate(&mut self) {
        let name = format!("d{}/f{}.md", self.random.below(4), self.random.below(12));
        match self.random.below(100) {
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
        if self.random.below(3) == 0 {
            // Atomic save through a temporary file, as editors do.
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
        let other = format!("d{}/g{}.md", self.random.below(4), self.random.below(12));
        if let Some(text) = self.files.remove(name) {
            fs::create_dir_all(self.docs.join(&other).parent().unwrap()).unwrap();
            fs::rename(self.docs.join(name), self.docs.join(&other)).unwrap();
            self.files.insert(other, text);
        }
    }

    fn move_folder(&mut self) {
        let from = format!("d{}/", self.random.below(4));
        let to = format!("m{}-{}/", self.word, self.random.below(1_000));
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
    let dir = TestDir::new();
    let docs = dir.path().join("docs");
    fs::create_dir_all(&docs).unwrap();
    let mut folder_state = ChangingFolder {
        docs,
        random: SeededRandom(7),
        files: BTreeMap::new(),
        word: 0,
    };
    for start in 0..STARTS {
        let server = serve(&dir, &[]);
        for operation in 0..OPERATIONS.div_ceil(STARTS) {
            folder_state.operate();
            if operation % 40 == 0 {
                // Gives the watcher time, so that it sees the folder in many states.
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
        }
        // Every other server is killed before it has seen the last changes.
        if start % 2 == 0 {
            continue;
        }
        let files = &folder_state.files;
        let same = || {
            let (_, ready) = server.http("GET", "/readyz", None);
            (ready["documents"] == files.len() && ready["sync"]["state"] == "done").then_some(())
        };
        until(same).unwrap_or_else(|| panic!("the index was never synchronized: {}", server.log()));
        for (name, text) in files {
            wait_for(&server, text, &[name]);
        }
    }
    assert!(
        folder_state.files.len() > 20,
        "{}",
        folder_state.files.len()
    );
}
