//! Tables of Notion databases: which rows have a page of their own, and whether the table says who may read
//! them.
//!
//! Notion exports a database as a table and as a folder with one page for each row. Where the pages repeat
//! all rows, the table is left out. A page omits the properties that have no value, so only the table shows
//! whether a page without readers lacks the property or has an empty one.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io::Read as _;

use cap_fs_ext::{DirExt as _, FollowSymlinks, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::fs::{Dir, OpenOptions};

use crate::error::IngestError;
use crate::exports::notion;
use crate::limits::Limits;
use crate::reader_field::{ParsedDocument, ReaderFault, ReaderField, ReaderKeys};
use crate::records::csv;
use crate::records::reader_column::names_readers;

/// The largest table that is compared with its pages. A larger one is indexed besides them.
const MAX_TABLE_BYTES: u64 = 16 * 1024 * 1024;

/// The most pages of one database that are compared with its table.
const MAX_PAGES: usize = 100_000;

/// Notion truncates long titles in file names. A title matches a shorter file name from this length on.
const MIN_TRUNCATED_CHARS: usize = 20;

/// No system has longer file names.
const MAX_NAME_CHARS: usize = 256;

/// The fault of a page without the reader field whose database has it: the property is empty, and Notion
/// omits empty properties.
pub(crate) const NO_PROPERTY: ReaderFault = ReaderFault::Empty;

/// The table of a database as far as it concerns the pages beside it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct NotionTable {
    /// The titles of the rows, as letters.
    titles: Vec<String>,
    /// Whether a cell of it is the name of the reader field.
    pub names_readers: bool,
}

impl NotionTable {
    /// Reads a table. A damaged one is an error, because some of its rows are unknown.
    pub(crate) fn read(
        bytes: &[u8],
        limits: &Limits,
        readers: &ReaderKeys,
    ) -> Result<Self, IngestError> {
        let mut table = Self::default();
        let mut is_header = true;
        csv::visit_rows(&mut &*bytes, limits, readers, &mut |cells| {
            table.names_readers |= names_readers(cells, readers);
            let is_blank = cells.iter().all(|cell| cell.trim().is_empty());
            if !std::mem::take(&mut is_header) && !is_blank {
                // The first column is the title of the page.
                let title = cells.first().copied().unwrap_or_default();
                table.titles.push(notion::letters(title));
            }
        })?;
        Ok(table)
    }

    /// Whether the pages with these file names, without extension, repeat every row.
    pub(crate) fn has_page_for_each_row<'p>(&self, pages: impl Iterator<Item = &'p str>) -> bool {
        let mut left: BTreeMap<String, usize> = BTreeMap::new();
        for page in pages {
            let name = notion::name_and_id(page).map_or(page, |(name, _)| name);
            *left.entry(notion::letters(name)).or_default() += 1;
        }
        let (named, unnamed): (Vec<_>, Vec<_>) =
            self.titles.iter().partition(|title| !title.is_empty());
        // Pages whose whole title is their name go first, so that no longer title takes them.
        let named = named.into_iter().filter(|title| !take(&mut left, title));
        let truncated: Vec<_> = named.collect();
        let is_found = |title: &&String| {
            let ends = title.char_indices().map(|(at, _)| at);
            let ends: Vec<_> = ends
                .take(MAX_NAME_CHARS)
                .skip(MIN_TRUNCATED_CHARS)
                .collect();
            let mut starts = ends.iter().rev().filter_map(|at| title.get(..*at));
            starts.any(|name| take(&mut left, name))
        };
        let are_found = truncated.iter().all(is_found);
        // A row without a title has a page with a title that Notion makes up, such as "Untitled".
        are_found && unnamed.len() <= left.values().sum()
    }
}

/// Takes one page with this name, if there is one left.
fn take(left: &mut BTreeMap<String, usize>, name: &str) -> bool {
    match left.get_mut(name) {
        Some(count) if *count > 0 => {
            *count -= 1;
            true
        }
        _ => false,
    }
}

/// The names that the folder with the pages of a table may have, if the file name is that of a table.
pub(crate) fn page_folders(file: &str) -> Option<[&str; 2]> {
    let stem = file.strip_suffix(".csv")?;
    let (words, _) = notion::name_and_id(stem)?;
    Some([stem.strip_suffix("_all").unwrap_or(stem), words])
}

/// Whether a table repeats some rows of the same database that another file has completely: Notion writes
/// `Tasks 1f0c….csv`, and all rows as `Tasks 1f0c…_all.csv`.
pub(crate) fn is_view(file: &str, has: impl Fn(&str) -> bool) -> bool {
    let stem = file.strip_suffix(".csv");
    let is_table = stem.is_some_and(|stem| notion::name_and_id(stem).is_some());
    is_table && stem.is_some_and(|stem| !stem.ends_with("_all") && has(&format!("{stem}_all.csv")))
}

/// The tables in one folder that their pages repeat, and the folders with the pages of a database that has
/// the reader field.
#[derive(Debug, Default)]
pub(crate) struct NotionTables {
    pub repeated: BTreeSet<OsString>,
    pub restricted: BTreeSet<OsString>,
}

impl NotionTables {
    /// Compares the tables in a folder with the pages beside them.
    pub(crate) fn in_folder(
        dir: &Dir,
        names: &BTreeSet<OsString>,
        limits: &Limits,
        readers: &ReaderKeys,
    ) -> Self {
        let mut found = Self::default();
        let has = |name: &str| names.contains(OsStr::new(name));
        let tables = names.iter().filter_map(|name| name.to_str());
        for table in tables {
            let Some(folders) = page_folders(table) else {
                continue;
            };
            let folders: BTreeSet<_> = folders.into_iter().filter(|name| has(name)).collect();
            let pages = pages_in(dir, &folders);
            let is_view = is_view(table, has);
            if is_view {
                found.repeated.insert(table.into());
            }
            if pages.is_empty() || (is_view && !readers.is_configured()) {
                continue;
            }
            let content = read_table(dir, table);
            let content = content.and_then(|bytes| NotionTable::read(&bytes, limits, readers).ok());
            let is_repeated = |table: &NotionTable| {
                pages.len() <= MAX_PAGES
                    && table.has_page_for_each_row(pages.iter().map(String::as_str))
            };
            if content.as_ref().is_some_and(is_repeated) {
                found.repeated.insert(table.into());
            }
            // A table that cannot be read may have the field.
            if readers.is_configured() && content.is_none_or(|table| table.names_readers) {
                found
                    .restricted
                    .extend(folders.into_iter().map(OsString::from));
            }
        }
        found
    }
}

/// The file names of the Markdown pages in these folders, without extension.
fn pages_in(dir: &Dir, folders: &BTreeSet<&str>) -> Vec<String> {
    let folders = folders
        .iter()
        .filter_map(|name| dir.open_dir_nofollow(name).ok());
    let entries = folders.filter_map(|below| below.entries().ok()).flatten();
    let names = entries.flatten().map(|entry| entry.file_name());
    let pages = names.filter_map(|name| Some(name.to_str()?.strip_suffix(".md")?.to_owned()));
    pages.take(MAX_PAGES + 1).collect()
}

/// The content of a table; `None` if it cannot be read or is too large.
fn read_table(dir: &Dir, name: &str) -> Option<Vec<u8>> {
    let mut options = OpenOptions::new();
    options.read(true).nonblock(true).follow(FollowSymlinks::No);
    let file = dir.open_with(name, &options).ok()?;
    let mut bytes = Vec::new();
    let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
    let read = is_file.then(|| file.take(MAX_TABLE_BYTES + 1).read_to_end(&mut bytes));
    let is_whole = bytes.len() as u64 <= MAX_TABLE_BYTES;
    (matches!(read, Some(Ok(_))) && is_whole).then_some(bytes)
}

/// The databases of one archive whose pages are restricted. Their tables may come after the pages, so the
/// pages are closed at the end.
#[derive(Debug, Default)]
pub(crate) struct RestrictedPages {
    /// The folders of the pages, with a slash at their end.
    folders: BTreeSet<String>,
}

impl RestrictedPages {
    /// Notes the table at this path, unless it certainly lacks the reader field.
    pub(crate) fn add_table(&mut self, path: &str, table: Option<&NotionTable>) {
        let (folder, file) = split_path(path);
        if table.is_some_and(|table| !table.names_readers) {
            return;
        }
        for pages in page_folders(file).into_iter().flatten() {
            self.folders
                .insert(without_archives(&format!("{folder}{pages}/")));
        }
    }

    /// Closes the pages without readers of their own.
    pub(crate) fn close(&self, documents: &mut [ParsedDocument]) {
        for document in documents {
            let (folder, file) = split_path(&document.document.source);
            if file.ends_with(".md")
                && document.readers == ReaderField::Absent
                && self.folders.contains(&without_archives(folder))
            {
                document.readers = ReaderField::Malformed(NO_PROPERTY);
            }
        }
    }
}

/// A path as its folder, with a slash at its end, and the name of the file.
pub(crate) fn split_path(path: &str) -> (&str, &str) {
    path.rfind('/')
        .map_or(("", path), |at| path.split_at(at + 1))
}

/// A folder without the names of the archives around it. A large export is an archive of several archives,
/// and a table may be in another one than its pages.
fn without_archives(folder: &str) -> String {
    let parts = folder.split_inclusive('/');
    let is_archive = |part: &&str| part.to_ascii_lowercase().ends_with(".zip/");
    parts.filter(|part| !is_archive(part)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "1f0c9e2b7d5a4c3e8b6f0a1d2c3b4e5f";

    fn has_all(rows: &[&str], pages: &[&str]) -> bool {
        let quoted = rows.iter().map(|row| format!("\"{row}\",x\n"));
        let text = format!("\u{FEFF}Name,Status\n{}", quoted.collect::<String>());
        let readers = ReaderKeys::default();
        let table = NotionTable::read(text.as_bytes(), &Limits::default(), &readers).unwrap();
        let pages: Vec<_> = pages.iter().map(|name| format!("{name} {ID}")).collect();
        table.has_page_for_each_row(pages.iter().map(String::as_str))
    }

    #[test]
    fn each_row_needs_a_page_of_its_own() {
        assert!(has_all(&["One", "Two"], &["One", "Two", "Three"]));
        assert!(has_all(&["Who pays: us?"], &["Who pays us"]));
        assert!(has_all(&["One", "One"], &["One", "One"]));
        assert!(has_all(&[], &[]));
        assert!(!has_all(&["One", "Two"], &["One"]));
        assert!(!has_all(&["One", "One"], &["One", "Two"]));
        assert!(!has_all(&["One"], &["One more"]));
        // Two lines of one cell.
        assert!(has_all(&["One\nline"], &["One line"]));
    }

    #[test]
    fn long_titles_match_their_beginning() {
        let long = "The winter timetable of the northern ferries";
        let start = "The winter timetable of the";
        assert!(has_all(&[long], &[start]));
        assert!(has_all(&[long, start], &[start, start]));
        assert!(has_all(&[start, long], &[long, start]));
        assert!(!has_all(&[long], &["The winter"]));
        assert!(!has_all(&[start], &[long]));
    }

    #[test]
    fn a_row_without_title_has_any_page() {
        assert!(has_all(&["", "One"], &["One", "Untitled"]));
        assert!(has_all(&["🔒"], &["Unbenannt"]));
        assert!(!has_all(&["", "One"], &["One"]));
    }

    #[test]
    fn a_damaged_table_is_unknown() {
        let readers = ReaderKeys::default();
        let read = |text: &str| NotionTable::read(text.as_bytes(), &Limits::default(), &readers);
        assert!(read("Name,Status\nOne,\"x\nTwo,y\n").is_err());
        assert!(read("Name,Status\nOne,x\n").is_ok());
    }

    #[test]
    fn views_and_folders_are_known_by_name() {
        let all = format!("Tasks {ID}_all.csv");
        let view = format!("Tasks {ID}.csv");
        let plain = format!("Tasks {ID}");
        assert_eq!(page_folders(&all), Some([plain.as_str(), "Tasks"]));
        assert_eq!(page_folders(&view), Some([plain.as_str(), "Tasks"]));
        assert_eq!(page_folders("Tasks.csv"), None);
        assert!(is_view(&view, |name| name == all));
        assert!(!is_view(&view, |_| false));
        assert!(!is_view(&all, |_| true));
        assert!(!is_view("Tasks.csv", |_| true));
    }
}
