//! File selection: include and exclude patterns from the settings, and ignore files (`.gitignore`,
//! `.docentignore`) in the folder itself.

use std::io::Read as _;
use std::path::Path;

use cap_std::fs::Dir;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::error::IngestError;

/// The ignore files, which apply to the folder they lie in and below. The second takes precedence over the
/// first.
pub const IGNORE_FILES: [&str; 2] = [".gitignore", ".docentignore"];

/// The most bytes of one ignore file that are read.
const MAX_FILE_BYTES: u64 = 64 * 1024;

/// The most patterns of one setting or one ignore file. The patterns of a folder and of those above it are tested for
/// every name below, so their number decides how long a scan of the folder takes.
const MAX_PATTERNS: usize = 1_000;

/// Selects the files of a folder that are indexed, by include and exclude patterns and by ignore files.
#[derive(Clone, Debug)]
pub struct FileFilter {
    include: Option<Gitignore>,
    exclude: Gitignore,
    gitignore: bool,
}

impl Default for FileFilter {
    fn default() -> Self {
        Self {
            include: None,
            exclude: Gitignore::empty(),
            gitignore: true,
        }
    }
}

impl FileFilter {
    /// Creates a filter that selects the files which match one of `include` (all files if it is empty) and
    /// none of `exclude`. Patterns use the syntax of `.gitignore`. With `gitignore` the `.gitignore` files of
    /// the folder apply as well.
    ///
    /// # Errors
    /// Returns the invalid pattern and the reason, also when there are too many patterns.
    pub fn new(
        include: &[String],
        exclude: &[String],
        gitignore: bool,
    ) -> Result<Self, (String, String)> {
        let included = matcher(include)?;
        Ok(Self {
            include: (!include.is_empty()).then_some(included),
            exclude: matcher(exclude)?,
            gitignore,
        })
    }

    /// The names of the ignore files that apply.
    fn ignore_file_names(&self) -> &'static [&'static str] {
        let [_, own] = &IGNORE_FILES;
        if self.gitignore {
            &IGNORE_FILES
        } else {
            std::slice::from_ref(own)
        }
    }

    /// Whether the settings exclude a path.
    fn excludes(&self, path: &Path, is_dir: bool) -> bool {
        // A folder is always entered, since it may contain files that are included.
        let is_included = |include: &Gitignore| is_dir || include.matched(path, false).is_ignore();
        self.exclude.matched(path, is_dir).is_ignore()
            || !self.include.as_ref().is_none_or(is_included)
    }
}

fn matcher(patterns: &[String]) -> Result<Gitignore, (String, String)> {
    let mut builder = GitignoreBuilder::new("");
    if let Some(pattern) = patterns.get(MAX_PATTERNS) {
        let limit = format!("more than {MAX_PATTERNS} patterns");
        return Err((pattern.clone(), limit));
    }
    for pattern in patterns {
        let invalid = |error: ignore::Error| (pattern.clone(), error.to_string());
        builder.add_line(None, pattern).map_err(invalid)?;
    }
    let all = || patterns.join(", ");
    builder.build().map_err(|error| (all(), error.to_string()))
}

/// The stack of ignore rules from the root to the current folder, with one level of rule lists per folder.
pub(crate) struct IgnoreStack<'c> {
    filter: &'c FileFilter,
    folders: Vec<Vec<Gitignore>>,
}

impl<'c> IgnoreStack<'c> {
    pub(crate) fn new(filter: &'c FileFilter) -> Self {
        Self {
            filter,
            folders: Vec::new(),
        }
    }

    /// Enters a folder and loads its ignore files. Returns those that cannot be used, with the reason.
    pub(crate) fn enter(&mut self, dir: &Dir, relative: &Path) -> Vec<(&'static str, IngestError)> {
        let (mut rules, mut bad) = (Vec::new(), Vec::new());
        for name in self.filter.ignore_file_names() {
            match read_ignore_file(dir, name).and_then(|text| {
                text.map(|text| parse_ignore_file(&text, relative))
                    .transpose()
            }) {
                Ok(found) => rules.extend(found),
                Err(reason) => bad.push((*name, reason)),
            }
        }
        self.folders.push(rules);
        bad
    }

    pub(crate) fn leave(&mut self) {
        self.folders.pop();
    }

    /// Whether a path is excluded. The rule nearest to the path decides.
    pub(crate) fn is_excluded(&self, path: &Path, is_dir: bool) -> bool {
        if self.filter.excludes(path, is_dir) {
            return true;
        }
        let rules = self
            .folders
            .iter()
            .rev()
            .flat_map(|rules| rules.iter().rev());
        let mut verdicts = rules.map(|rules| rules.matched(path, is_dir));
        matches!(
            verdicts.find(|verdict| !verdict.is_none()),
            Some(Match::Ignore(_))
        )
    }
}

/// Reads an ignore file, if the folder has one.
fn read_ignore_file(dir: &Dir, name: &str) -> Result<Option<String>, IngestError> {
    // A link could lead out of the folder, and reading a pipe would block forever.
    if !dir
        .symlink_metadata(name)
        .is_ok_and(|found| found.is_file())
    {
        return Ok(None);
    }
    let failed = |error: std::io::Error| IngestError::from_io(&error);
    let file = dir.open(name).map_err(failed)?;
    let mut text = Vec::new();
    let size = file.take(MAX_FILE_BYTES + 1).read_to_end(&mut text);
    if size.map_err(failed)? as u64 > MAX_FILE_BYTES {
        return Err(IngestError::IgnoreFileTooLong);
    }
    Ok(Some(String::from_utf8_lossy(&text).into_owned()))
}

/// Parses an ignore file. Invalid lines are skipped, as git does.
fn parse_ignore_file(text: &str, relative: &Path) -> Result<Gitignore, IngestError> {
    let lines = || text.lines().filter(|line| !line.trim().is_empty());
    if lines().nth(MAX_PATTERNS).is_some() {
        return Err(IngestError::IgnoreFileTooLong);
    }
    let mut builder = GitignoreBuilder::new(relative);
    for line in lines() {
        let _ = builder.add_line(None, line);
    }
    // Even short patterns can compile to a matcher beyond its size limit.
    builder.build().map_err(|_| IngestError::IgnoreFileTooLong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(patterns: &[&str]) -> Vec<String> {
        patterns.iter().map(|&pattern| pattern.to_owned()).collect()
    }

    #[test]
    fn settings_decide_by_pattern() {
        let rows: [(&[&str], &[&str], &str, bool); 9] = [
            (&[], &[], "a.md", false),
            (&[], &["*.tmp"], "x/a.tmp", true),
            (&[], &["drafts/"], "x/drafts", true),
            (&[], &["/drafts/"], "x/drafts", false),
            (&[], &["*.md", "!keep.md"], "keep.md", false),
            (&["*.md"], &[], "a.pdf", true),
            (&["*.md"], &[], "x/a.md", false),
            (&["*.md"], &["x/**"], "x/a.md", true),
            (&["docs/**/*.md"], &[], "docs", false),
        ];
        for (include, exclude, path, out) in rows {
            let choice = FileFilter::new(&strings(include), &strings(exclude), true).unwrap();
            let is_dir = !path.contains('.');
            let rules = IgnoreStack::new(&choice);
            assert_eq!(
                rules.is_excluded(Path::new(path), is_dir),
                out,
                "{path} {exclude:?}"
            );
        }
    }

    #[test]
    fn a_list_ends_at_its_bound_and_a_bad_pattern_is_named() {
        let many = vec!["a".to_owned(); MAX_PATTERNS];
        assert!(FileFilter::new(&many, &many, true).is_ok());
        let over = vec!["a".to_owned(); MAX_PATTERNS + 1];
        assert!(FileFilter::new(&[], &over, true).is_err());
        let (pattern, _) = FileFilter::new(&strings(&["[z-a]"]), &[], true).unwrap_err();
        assert_eq!(pattern, "[z-a]");
    }

    #[test]
    fn ignore_files_end_at_their_bounds() {
        let lines = |count: usize| "a\n".repeat(count);
        assert!(parse_ignore_file(&lines(MAX_PATTERNS), Path::new("")).is_ok());
        assert_eq!(
            parse_ignore_file(&lines(MAX_PATTERNS + 1), Path::new(""))
                .unwrap_err()
                .code(),
            "ignore-file-too-long"
        );
        // An invalid line costs only itself.
        let rules = parse_ignore_file("[z-a]\n*.log\n", Path::new("x")).unwrap();
        assert!(rules.matched("x/y/a.log", false).is_ignore());
    }
}
