//! Redundant files in exports: files that repeat other files or belong to the exporting program are not
//! indexed. Examples are the files that Zotero keeps beside a library, the list beside Apple notes, and style
//! sheets. Tables of Notion are compared with their pages, in [`notion_table`](crate::records::notion_table).

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};

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

/// The names in one folder.
pub(crate) struct ExportFolder<'n> {
    pub names: &'n BTreeSet<OsString>,
}

impl ExportFolder<'_> {
    /// Whether one of these names is redundant and is left out of the listing.
    pub(crate) fn is_redundant(&self, name: &OsStr) -> bool {
        let Some(name) = name.to_str() else {
            return false;
        };
        let has = |name: &str| self.names.contains(OsStr::new(name));
        (ZOTERO_INTERNAL.contains(&name) && has(ZOTERO_DATABASE))
            || (name == APPLE_LIST && has(APPLE_FOLDER))
            || (name == STYLES && BESIDE_STYLES.iter().all(|beside| has(beside)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clutter(names: &[&str]) -> Vec<String> {
        let names: BTreeSet<OsString> = names.iter().map(OsString::from).collect();
        let folder = ExportFolder { names: &names };
        let found = names.iter().filter(|name| folder.is_redundant(name));
        found
            .map(|name| name.to_string_lossy().into_owned())
            .collect()
    }

    #[test]
    fn programs_of_zotero_are_no_documents() {
        let names = [
            "zotero.sqlite",
            "storage",
            "translators",
            "zotero.sqlite.bak",
        ];
        assert_eq!(clutter(&names), ["translators", "zotero.sqlite.bak"]);
        assert_eq!(clutter(&["translators", "styles"]), Vec::<String>::new());
    }

    #[test]
    fn style_sheets_of_a_space_are_no_documents() {
        let space = ["attachments", "images", "index.html", "styles"];
        assert_eq!(clutter(&space), ["styles"]);
        assert_eq!(clutter(&["index.html", "styles"]), Vec::<String>::new());
    }

    #[test]
    fn the_list_beside_apples_notes_is_left_out() {
        assert_eq!(
            clutter(&["Notes", "Notes Details.csv"]),
            ["Notes Details.csv"]
        );
        assert_eq!(clutter(&["Notes Details.csv"]), Vec::<String>::new());
    }
}
