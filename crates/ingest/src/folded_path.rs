//! Compares paths of files with folders from the settings.
//!
//! Comparison ignores case and Unicode normalization form. Some file systems ignore them too, and a rule about who may
//! read a folder must hold for every spelling that leads to the folder.

use unicode_normalization::UnicodeNormalization as _;

/// The separators of path segments; `#` separates a file from an item inside it.
pub const PATH_SEPARATORS: [char; 2] = ['/', '#'];

/// A path without the differences of spelling that file systems may ignore, for comparison only.
#[must_use]
pub fn fold_path(path: &str) -> String {
    if path.is_ascii() {
        return path.to_ascii_lowercase();
    }
    // Lowercasing can decompose an accented letter, so the result is normalized once more.
    path.nfc().flat_map(char::to_lowercase).nfc().collect()
}

/// Whether a path lies in a folder, or in an archive of that name; without a folder, every path does.
#[must_use]
pub fn is_under(path: &str, folder: Option<&str>) -> bool {
    let Some(folder) = folder else {
        return true;
    };
    let path = fold_path(path);
    let rest = path.strip_prefix(fold_path(folder).as_str());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(PATH_SEPARATORS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_folder_is_the_folder() {
        for (path, folder, is_inside) in [
            ("hr/a.md", "hr", true),
            ("HR/a.md", "hr", true),
            ("hr/a.md", "Hr", true),
            ("hr.zip#a.md", "hr.zip", true),
            ("hr", "hr", true),
            ("hrx/a.md", "hr", false),
            ("a/hr/b.md", "hr", false),
            ("ca\u{301}s/a.md", "c\u{e1}s", true),
            ("C\u{c1}S/a.md", "ca\u{301}s", true),
            ("STRASSE/a.md", "stra\u{df}e", false),
        ] {
            assert_eq!(is_under(path, Some(folder)), is_inside, "{path} {folder}");
        }
        assert!(is_under("a.md", None));
    }
}
