//! Which files of the folder are wanted: patterns as in a `.gitignore`.

use docent_ingest::FileFilter;

use super::setting_value::{InvalidSetting, SettingValue};

/// What is included, what is excluded, and whether ignore files in the folder count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileFilterSettings {
    /// Only files that match one of these, unless there are none.
    pub include: Vec<String>,
    /// No file or folder that matches one of these.
    pub exclude: Vec<String>,
    /// Whether what a `.gitignore` names is left out.
    pub gitignore: bool,
}

impl Default for FileFilterSettings {
    fn default() -> Self {
        Self {
            include: Vec::new(),
            exclude: Vec::new(),
            gitignore: true,
        }
    }
}

impl FileFilterSettings {
    /// The patterns, ready to be asked. Each list was found good when it was read.
    #[must_use]
    pub fn choice(&self) -> FileFilter {
        FileFilter::new(&self.include, &self.exclude, self.gitignore).unwrap_or_default()
    }
}

/// A list of patterns.
pub(super) fn patterns(given: &SettingValue) -> Result<Vec<String>, InvalidSetting> {
    let patterns = given.list()?;
    let wrong = |(pattern, reason): (String, String)| {
        given.invalid(
            format!("has a pattern that is none, `{pattern}`: {reason}"),
            "write patterns as in a .gitignore, such as `drafts/` or `**/*.tmp`",
        )
    };
    FileFilter::new(&[], &patterns, true).map_err(wrong)?;
    Ok(patterns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_that_is_none_is_named() {
        let given = SettingValue::List(vec!["*.md".to_owned(), "[z-a]".to_owned()]);
        assert!(patterns(&given).unwrap_err().what.contains("`[z-a]`"));
        let good = SettingValue::Text("drafts/, *.tmp".to_owned());
        assert_eq!(patterns(&good).unwrap(), ["drafts/", "*.tmp"]);
    }
}
