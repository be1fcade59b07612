//! The names in a folder into those that only repeat others or belong to a program, and are no documents: the
//! second table of a Notion database, what Zotero keeps beside a library, the list beside Apple's notes, style sheets.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};

use super::notion;

/// Zotero's database, and what lies beside it that nobody wrote to be read.
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

/// The list of notes that Apple puts beside their folder: titles without texts.
pub(crate) const APPLE_LIST: &str = "Notes Details.csv";
const APPLE_FOLDER: &str = "Notes";

/// The style sheets of a space that Confluence exported, and what lies beside them.
const STYLES: &str = "styles";
const BESIDE_STYLES: [&str; 2] = ["index.html", "images"];

/// The names of a folder, and whether a folder in it has pages.
pub(crate) struct ExportFolder<'n, F: Fn(&str) -> bool> {
    pub names: &'n BTreeSet<OsString>,
    pub has_pages: F,
}

impl<F: Fn(&str) -> bool> ExportFolder<'_, F> {
    /// Whether a name among these is clutter.
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

/// Whether a table of Notion's is there twice: as `Tasks 1f0c….csv` and, with all its rows, as `Tasks 1f0c…_all.csv`,
/// and once more as a page for each row in a folder `Tasks` or `Tasks 1f0c…`.
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
