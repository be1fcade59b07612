//! File filter settings: include and exclude patterns in `.gitignore` syntax.

use docent_ingest::FileFilter;

use super::setting_value::{InvalidSetting, SettingValue};

/// Settings of the file filter: include patterns, exclude patterns, and whether `.gitignore` files apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileFilterSettings {
    /// Only files that match one of these patterns are read; an empty list matches all.
    pub include: Vec<String>,
    /// Files and folders that match one of these patterns are skipped.
    pub exclude: Vec<String>,
    /// Whether files that a `.gitignore` names are skipped.
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
    /// Compiles the patterns. They were validated when the settings were parsed, so this cannot fail for parsed
    /// settings.
    #[must_use]
    pub fn choice(&self) -> FileFilter {
        FileFilter::new(&self.include, &self.exclude, self.gitignore).unwrap_or_default()
    }
}

/// Parses and validates a list of `.gitignore` patterns.
pub(super) fn patterns(given: &SettingValue) -> Result<Vec<String>, InvalidSetting> {
    let patterns = given.list()?;
    let wrong = |(pattern, reason): (String, String)| {
        given.invalid(
            format!("has an invalid pattern, `{pattern}`: {reason}"),
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
