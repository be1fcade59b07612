//! Folder walk: lists the files below a root, sorted by id. Links are never followed and hidden names are
//! skipped.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use cap_fs_ext::DirExt as _;
use cap_std::fs::Dir;

use crate::error::bounded_report::BoundedReport;
use crate::error::{IngestError, SkippedItem};
use crate::exports::{apple_notes, redundant_files};
use crate::folder::file_entry::FileEntry;
use crate::folder::file_filter::{FileFilter, IgnoreStack};
use crate::limits::Limits;
use crate::parser::folder_context::FolderContext;
use crate::reader_field::{ReaderFieldName, ReaderKeys};
use crate::records::notion_table::NotionTables;
use crate::source_path::{SourcePath, stem_and_extension};

/// The settings folder of Obsidian. The folder that contains it, with everything below, is a vault of notes.
const VAULT: &str = ".obsidian";

/// The files below a root, sorted by id, and what was left out of the list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FolderListing {
    /// The files that were found, sorted by id.
    pub entries: Vec<FileEntry>,
    /// What was skipped, with the reasons.
    pub skipped: Vec<SkippedItem>,
    /// How many names were ignored by rule: hidden names, `docent.toml` and the README at the root (which
    /// describes the folder to people), and redundant files of exports.
    pub ignored: u64,
    /// How many names settings or ignore files excluded; an excluded folder counts as one.
    pub excluded: u64,
}

pub(crate) fn list_folder(
    root: &Dir,
    limits: &Limits,
    filter: &FileFilter,
    readers: &[ReaderFieldName],
) -> FolderListing {
    let mut walk = FolderWalker {
        limits,
        readers: ReaderKeys::for_any_path(readers),
        ignore_stack: IgnoreStack::new(filter),
        left: limits.max_files,
        entries: Vec::new(),
        skipped: BoundedReport::new(limits.max_reported),
        ignored: 0,
        excluded: 0,
        vault: false,
        days: BTreeMap::new(),
        restricted: BTreeSet::new(),
    };
    walk.folder(root, Path::new(""), 0);
    walk.entries.sort_by(|a, b| a.id().cmp(b.id()));
    let mut skipped = walk.skipped.finish("");
    skipped.sort_by(|a, b| a.path.cmp(&b.path));
    FolderListing {
        entries: walk.entries,
        skipped,
        ignored: walk.ignored,
        excluded: walk.excluded,
    }
}

/// The state of a walk. `left` is the number of names that may still be taken. It is charged when a folder is
/// read and not when a name is visited, so that the names pending at all levels together stay within the
/// limit. `vault` and `days` describe the current folder: whether it belongs to an Obsidian vault, and the
/// creation dates of its Apple notes. `restricted` has the folders with the pages of a Notion database that
/// has the reader field.
struct FolderWalker<'a> {
    limits: &'a Limits,
    readers: ReaderKeys,
    ignore_stack: IgnoreStack<'a>,
    left: usize,
    entries: Vec<FileEntry>,
    skipped: BoundedReport<SkippedItem>,
    ignored: u64,
    excluded: u64,
    vault: bool,
    days: BTreeMap<String, String>,
    restricted: BTreeSet<PathBuf>,
}

impl FolderWalker<'_> {
    /// Walks one folder. Recurses once per level; `max_depth` bounds the levels.
    fn folder(&mut self, dir: &Dir, relative: &Path, depth: usize) {
        let outer_vault = self.vault;
        let names = match self.names(dir, relative) {
            Ok(names) => names,
            Err(error) => {
                self.vault = outer_vault;
                return self.skip(relative, IngestError::from_io(&error));
            }
        };
        let folder = redundant_files::ExportFolder { names: &names };
        let tables = NotionTables::in_folder(dir, &names, self.limits, &self.readers);
        let restricted = tables.restricted.iter().map(|name| relative.join(name));
        self.restricted.extend(restricted);
        for (name, reason) in self.ignore_stack.enter(dir, relative) {
            self.skip(&relative.join(name), reason);
        }
        let has_note_list = folder.is_redundant(OsStr::new(redundant_files::APPLE_LIST))
            && names.contains(OsStr::new(redundant_files::APPLE_LIST));
        let outer_days = has_note_list.then(|| std::mem::replace(&mut self.days, note_dates(dir)));
        for name in &names {
            if folder.is_redundant(name) || tables.repeated.contains(name) {
                self.ignored += 1;
            } else {
                self.visit(dir, &relative.join(name), name, depth);
            }
        }
        self.ignore_stack.leave();
        self.vault = outer_vault;
        if let Some(days) = outer_days {
            self.days = days;
        }
    }

    /// The smallest names of a folder, as many as may still be taken. The selection does not depend on the
    /// order in which the system returns names, and no folder can exhaust the memory.
    fn names(&mut self, dir: &Dir, relative: &Path) -> std::io::Result<BTreeSet<OsString>> {
        let mut names = BTreeSet::new();
        let mut is_full = false;
        for entry in dir.entries()? {
            let name = entry?.file_name();
            if is_ignored(&name, relative) {
                self.vault |= name == VAULT;
                self.ignored += 1;
                continue;
            }
            names.insert(name);
            if names.len() > self.left {
                names.pop_last();
                is_full = true;
            }
        }
        self.left -= names.len();
        if is_full {
            self.skip(
                relative,
                IngestError::TooManyFiles {
                    limit: self.limits.max_files,
                },
            );
        }
        Ok(names)
    }

    fn visit(&mut self, dir: &Dir, relative: &Path, name: &OsStr, depth: usize) {
        if relative.as_os_str().len() > self.limits.max_path_bytes {
            let limit = self.limits.max_path_bytes;
            return self.skip(relative, IngestError::PathTooLong { limit });
        }
        // This is the metadata of the link itself, not of its target.
        let metadata = match dir.symlink_metadata(name) {
            Ok(metadata) => metadata,
            Err(error) => return self.skip(relative, IngestError::from_io(&error)),
        };
        if self.ignore_stack.is_excluded(relative, metadata.is_dir()) {
            self.excluded += 1;
        } else if metadata.is_symlink() {
            self.skip(relative, IngestError::Link);
        } else if metadata.is_dir() {
            self.enter(dir, relative, name, depth);
        } else if metadata.is_file() {
            self.entries.push(FileEntry {
                place: SourcePath::new(relative),
                size: metadata.len(),
                modified: metadata
                    .modified()
                    .ok()
                    .map(cap_std::time::SystemTime::into_std),
                folder_context: self.folder_context(relative),
            });
        } else {
            self.skip(relative, IngestError::Special);
        }
    }

    fn folder_context(&self, relative: &Path) -> FolderContext {
        let (stem, _) = stem_and_extension(relative);
        FolderContext {
            vault: self.vault,
            day: self.days.get(&stem).cloned(),
            is_restricted_page: relative
                .parent()
                .is_some_and(|folder| self.restricted.contains(folder)),
        }
    }

    fn enter(&mut self, dir: &Dir, relative: &Path, name: &OsStr, depth: usize) {
        if depth >= self.limits.max_depth {
            let limit = self.limits.max_depth;
            return self.skip(relative, IngestError::TooDeep { limit });
        }
        match dir.open_dir_nofollow(name) {
            Ok(below) => self.folder(&below, relative, depth + 1),
            Err(error) => self.skip(relative, IngestError::from_io(&error)),
        }
    }

    fn skip(&mut self, relative: &Path, reason: IngestError) {
        let path = SourcePath::new(relative).printable;
        self.skipped.push(SkippedItem {
            path,
            line: None,
            reason,
        });
    }
}

/// The creation dates from the list of an Apple Notes export; empty if it cannot be read.
fn note_dates(dir: &Dir) -> BTreeMap<String, String> {
    let mut text = String::new();
    let is_file = |dir: &Dir| {
        dir.symlink_metadata(redundant_files::APPLE_LIST)
            .is_ok_and(|m| m.is_file())
    };
    let read = is_file(dir)
        .then(|| dir.open(redundant_files::APPLE_LIST))
        .and_then(Result::ok);
    match read.map(|file| {
        file.take(apple_notes::MAX_LIST_BYTES)
            .read_to_string(&mut text)
    }) {
        Some(Ok(_)) => apple_notes::creation_dates(&text),
        _ => BTreeMap::new(),
    }
}

/// Whether a name is never listed: hidden names at every level, the index folder `.docent` among them, and at
/// the root the settings file and the README. A README further down belongs to the documents.
fn is_ignored(name: &OsStr, folder: &Path) -> bool {
    let bytes = name.as_encoded_bytes();
    let at_root = folder.as_os_str().is_empty();
    bytes.starts_with(b".") || (at_root && (bytes == b"docent.toml" || is_readme(bytes)))
}

fn is_readme(name: &[u8]) -> bool {
    let Some((head, rest)) = name.split_at_checked(6) else {
        return false;
    };
    head.eq_ignore_ascii_case(b"readme") && rest.first().is_none_or(|next| b"._-".contains(next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_readme_of_the_root_is_ignored() {
        let ignored = |name: &str, folder: &str| is_ignored(OsStr::new(name), Path::new(folder));
        for name in [
            "README",
            "README.md",
            "readme.txt",
            "Readme-de.md",
            "docent.toml",
            ".docent",
            ".git",
        ] {
            assert!(ignored(name, ""), "{name}");
        }
        for name in ["readmeter.md", "read", "docent.toml.md", "a.md"] {
            assert!(!ignored(name, ""), "{name}");
        }
        assert!(!ignored("README.md", "speeches"));
        assert!(!ignored("docent.toml", "speeches"));
        assert!(ignored(".hidden.md", "speeches"));
    }
}
