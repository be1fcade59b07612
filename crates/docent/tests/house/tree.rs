//! The tree as git sees it: files, their text, and what Cargo says about the workspace.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Every crate of the workspace, by its folder.
pub(crate) const CRATES: &[&str] = &[
    "atomic-file",
    "check",
    "docent",
    "ingest",
    "mcp",
    "memory",
    "oauth",
    "search",
    "unicode",
];

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// Files that git tracks or would track, by a pattern of git's.
pub(crate) fn files(pattern: &str) -> Vec<PathBuf> {
    let list = Command::new("git")
        .args([
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
            pattern,
        ])
        .current_dir(root())
        .output()
        .expect("git is needed for this test");
    assert!(list.status.success());
    let names = String::from_utf8(list.stdout).unwrap();
    names
        .lines()
        .map(|name| root().join(name))
        .filter(|path| path.is_file())
        .collect()
}

pub(crate) fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A source file by its path from the root, with its text.
pub(crate) struct SourceFile {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// Folders with the sources of packages outside the workspace. Nothing in them is part of the product, but their names
/// and comments follow the same rules.
const TOOL_FOLDERS: &[&str] = &["bench/src", "bench/mutants/src", "fuzz/fuzz_targets"];

/// The Rust files in the `src` folder of a crate.
pub(crate) fn source_files(name: &str) -> Vec<SourceFile> {
    files_below(&format!("crates/{name}/src"))
}

/// The sources of all crates and of the packages outside the workspace, each with its name or folder.
pub(crate) fn packages() -> Vec<(&'static str, Vec<SourceFile>)> {
    let crates = CRATES.iter().map(|name| (*name, source_files(name)));
    let tools = TOOL_FOLDERS
        .iter()
        .map(|folder| (*folder, files_below(folder)));
    let packages: Vec<_> = crates.chain(tools).collect();
    for (name, files) in &packages {
        assert!(!files.is_empty(), "no source file in {name}");
    }
    packages
}

fn files_below(folder: &str) -> Vec<SourceFile> {
    let root = root();
    let paths = files(&format!("{folder}/*.rs"));
    let read = |path: PathBuf| SourceFile {
        name: path.strip_prefix(&root).unwrap().display().to_string(),
        text: read(&path),
    };
    paths.into_iter().map(read).collect()
}

/// A file without the items behind `#[cfg(test)]`. The tree is formatted, so an item ends at the first line that is
/// indented like its beginning and closes it.
pub(crate) fn product_text(text: &str) -> String {
    let mut lines = text.lines();
    let mut product = String::with_capacity(text.len());
    while let Some(line) = lines.next() {
        if line.trim() != "#[cfg(test)]" {
            product.push_str(line);
            product.push('\n');
            continue;
        }
        let indentation = line.len() - line.trim_start().len();
        let ends_item = |line: &str| {
            let is_same_depth = line.len() - line.trim_start().len() == indentation;
            let is_attribute = line.trim_start().starts_with(['#', '/']);
            is_same_depth && !is_attribute && line.ends_with([';', '}', ','])
        };
        lines.by_ref().find(|line| ends_item(line));
    }
    product
}

/// A text without its comments, as far as they begin a line or stand behind a space.
pub(crate) fn without_comments(text: &str) -> String {
    let code = text.lines().map(|line| {
        let line = line.trim_start();
        let end = if line.starts_with("//") {
            0
        } else {
            line.find(" // ").unwrap_or(line.len())
        };
        &line[..end]
    });
    code.collect::<Vec<_>>().join("\n")
}

#[test]
fn product_text_has_every_item_but_those_of_tests() {
    let text = "\
mod a;
#[cfg(test)]
mod tests;
#[cfg(test)]
use std::{
    fmt,
    io,
};
impl A {
    #[cfg(test)]
    /// One.
    #[allow(dead_code)]
    fn one() {
        two();
    }
    fn three() {}
}
struct B {
    #[cfg(test)]
    four: u8,
    five: u8,
}
#[cfg(test)]
mod more {
    fn six() {}
}
fn seven() {}
";
    let expected = "\
mod a;
impl A {
    fn three() {}
}
struct B {
    five: u8,
}
fn seven() {}
";
    assert_eq!(product_text(text), expected);
}

#[test]
fn comments_are_not_code() {
    let text = "//! crate::a\nuse b; // crate::c\n    /// crate::d\nlet url = \"http://e\";";
    assert_eq!(
        without_comments(text),
        "\nuse b;\n\nlet url = \"http://e\";"
    );
}

pub(crate) fn metadata(arguments: &[&str]) -> Value {
    // Only what this machine builds: the rest may not have been downloaded.
    let version = Command::new("rustc").arg("-vV").output().unwrap();
    let version = String::from_utf8(version.stdout).unwrap();
    let host = version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .unwrap();
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--locked",
            "--filter-platform",
            host,
        ])
        .args(arguments)
        .current_dir(root())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}
