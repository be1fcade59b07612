//! Where the parts of an index lie in its folder, and which files were left by an older format.

use std::fs;
use std::path::{Path, PathBuf};

use super::checksums::is_segment_file;
use super::quarantine;

/// The format that this version writes and reads. It is raised whenever existing data would be misread:
/// another schema, another stored form, other terms for the same text. An index of another format stays
/// beside the new one until that is complete.
pub(super) const FORMAT: u32 = 5;

/// The prefix of the lexical index's folder; the format number follows.
const WORDS: &str = "words-";

/// The files of the last format that lay in the index folder itself.
const FILES_OF_OLD: [&str; 4] = [
    "meta.json",
    ".managed.json",
    "docent-index.json",
    "docent-meta.sum",
];

/// The folder of the lexical index, which also holds the ledger.
pub(super) fn words_folder(dir: &Path) -> PathBuf {
    dir.join(format!("{WORDS}{FORMAT}"))
}

/// The files and folders that other format versions left behind.
pub(super) fn leftovers(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else {
        return Vec::new();
    };
    let own = words_folder(dir);
    let is_left = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_number = |text: &str| text.parse::<u32>().is_ok();
        let is_words = name.strip_prefix(WORDS).is_some_and(is_number);
        let is_segment = is_segment_file(&name);
        *path != own
            && (is_words || (path.is_file() && (is_segment || FILES_OF_OLD.contains(&&*name))))
    };
    let paths = entries.flatten().map(|entry| entry.path());
    paths.filter(is_left).collect()
}

/// Removes what other format versions left behind. What cannot be removed now is tried again the next time.
pub(super) fn remove_leftovers(dir: &Path) {
    for path in leftovers(dir) {
        if let Err(error) = quarantine::remove(&path) {
            tracing::warn!(%error, path = %path.display(), "could not remove an older index");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_older_versions_wrote_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let segment = "0123456789abcdef0123456789abcdef";
        let old = [
            "meta.json".to_owned(),
            format!("{segment}.store"),
            format!("{segment}.12.del"),
        ];
        for name in old
            .iter()
            .map(String::as_str)
            .chain(["notes.txt", "words-x"])
        {
            fs::write(dir.path().join(name), "").unwrap();
        }
        for name in ["words-3", "words-99", "vectors", "words-5"] {
            fs::create_dir(dir.path().join(name)).unwrap();
            fs::write(dir.path().join(name).join("meta.json"), "").unwrap();
        }
        assert_eq!(leftovers(dir.path()).len(), 5);
        remove_leftovers(dir.path());
        let mut left: Vec<_> = fs::read_dir(dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, ["notes.txt", "vectors", "words-5", "words-x"]);
    }
}
