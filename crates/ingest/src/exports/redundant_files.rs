//! Redundant files in exports: files that repeat other files or belong to the exporting program are not
//! indexed. Examples are the second table of a Notion database, the files that Zotero keeps beside a library,
//! the list beside Apple notes, and style sheets.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};

use super::notion;

/// The Zotero database, and the internal files and folders beside it.
const ZOTERO_DATABASE: &str = "zotero.sqlite";
const ZOTERO_INTERNAL: &[&str] = &[
    "cache",
    "locate",
    "logs",
    "pipes",
    "styles",
    "tmp",
    "translators",
    "zotero.sqlite-journal",
    "zotero.sqlite-shm",
    "zotero.sqlite-wal",
    "zotero.sqlite.bak",
    "zotero.sqlite.1.bak",
];

/// The list that Apple Notes exports beside a folder of notes: titles without content.
pub(crate) const APPLE_LIST: &str = "Notes Details.csv";
const APPLE_FOLDER: &str = "Notes";

/// The style sheet folder of a Confluence space export, and the names beside it by which it is recognized.
const STYLES: &str = "styles";
const BESIDE_STYLES: [&str; 2] = ["index.html", "images"];

/// The names in one folder, and a check whether a subfolder contains Markdown pages.
pub(crate) struct ExportFolder<'n, F: Fn(&str) -> bool> {
    pub names: &'n BTreeSet<OsString>,
    pub has_pages: F,
}

impl<F: Fn(&str) -> bool> ExportFolder<'_, F> {
    /// Whether one of these names is redundant and is left out of the listing.
    pub(crate) fn is_redundant(&self, name: &OsStr) -> bool {
        let Some(name) = name.to_str() else {
            return false;
        };
        let has = |name: &str| self.names.contains(OsStr::new(name));
        (ZOTERO_INTERNAL.contains(&name) && has(ZOTERO_DATABASE))
            || (name == APPLE_LIST && has(APPLE_FOLDER))
            || (name == STYLES && BESIDE_STYLES.iter().all(|beside| has(beside)))
            || is_redundant_table(name, has, &self.has_pages)
    }
}

/// Whether a CSV file repeats a Notion database that is exported elsewhere. Notion writes a database as
/// `Tasks 1f0c….csv`, again with all rows as `Tasks 1f0c…_all.csv`, and once more as one page per row in a
/// folder `Tasks` or `Tasks 1f0c…`.
pub(crate) fn is_redundant_table(
    name: &str,
    has: impl Fn(&str) -> bool,
    has_pages: impl Fn(&str) -> bool,
) -> bool {
    let Some(stem) = name.strip_suffix(".csv") else {
        return false;
    };
    let Some((words, _)) = notion::name_and_id(stem) else {
        return false;
    };
    let plain = stem.strip_suffix("_all").unwrap_or(stem);
    let is_view = plain == stem && has(&format!("{stem}_all.csv"));
    is_view || has_pages(plain) || has_pages(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "1f0c9e2b7d5a4c3e8b6f0a1d2c3b4e5f";

    fn clutter(names: &[&str], pages: &[&str]) -> Vec<String> {
        let names: BTreeSet<OsString> = names.iter().map(OsString::from).collect();
        let folder = ExportFolder {
            names: &names,
            has_pages: |name: &str| pages.contains(&name),
        };
        let found = names.iter().filter(|name| folder.is_redundant(name));
        found
            .map(|name| name.to_string_lossy().into_owned())
            .collect()
    }

    #[test]
    fn tables_of_notion_are_read_once() {
        let (view, all) = (format!("Tasks {ID}.csv"), format!("Tasks {ID}_all.csv"));
        let plain = format!("Tasks {ID}");
        assert_eq!(clutter(&[&view, &all], &[]), [view.as_str()]);
        assert_eq!(clutter(&[&view], &[]), Vec::<String>::new());
        assert_eq!(
            clutter(&[&view, &all], &[&plain]),
            [view.clone(), all.clone()]
        );
        assert_eq!(clutter(&[&view, &all], &["Tasks"]), [view, all]);
        assert_eq!(
            clutter(&["Tasks.csv", "Tasks_all.csv"], &["Tasks"]),
            Vec::<String>::new()
        );
    }

    #[test]
    fn programs_of_zotero_are_no_documents() {
        let names = [
            "zotero.sqlite",
            "storage",
            "translators",
            "zotero.sqlite.bak",
        ];
        assert_eq!(clutter(&names, &[]), ["translators", "zotero.sqlite.bak"]);
        assert_eq!(
            clutter(&["translators", "styles"], &[]),
            Vec::<String>::new()
        );
    }

    #[test]
    fn style_sheets_of_a_space_are_no_documents() {
        let space = ["attachments", "images", "index.html", "styles"];
        assert_eq!(clutter(&space, &[]), ["styles"]);
        assert_eq!(
            clutter(&["index.html", "styles"], &[]),
            Vec::<String>::new()
        );
    }

    #[test]
    fn the_list_beside_apples_notes_is_left_out() {
        assert_eq!(
            clutter(&["Notes", "Notes Details.csv"], &[]),
            ["Notes Details.csv"]
        );
        assert_eq!(clutter(&["Notes Details.csv"], &[]), Vec::<String>::new());
    }
}
