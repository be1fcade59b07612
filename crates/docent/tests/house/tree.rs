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

/// The Rust files in the `src` folder of a crate.
pub(crate) fn source_files(name: &str) -> Vec<SourceFile> {
    let root = root();
    let paths = files(&format!("crates/{name}/src/*.rs"));
    let read = |path: PathBuf| SourceFile {
        name: path.strip_prefix(&root).unwrap().display().to_string(),
        text: read(&path),
    };
    paths.into_iter().map(read).collect()
}

/// A file without its tests, which stand at its end.
pub(crate) fn product_text(text: &str) -> &str {
    let end = text.match_indices("#[cfg(test)]").find(|(at, _)| {
        let start = text[..*at].rfind('\n').map_or(0, |at| at + 1);
        text[start..*at].trim().is_empty() && text[*at..].lines().next() == Some("#[cfg(test)]")
    });
    end.map_or(text, |(at, _)| &text[..at])
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
