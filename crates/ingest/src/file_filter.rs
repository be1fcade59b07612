//! Names into those that belong to a corpus: what the owner includes and excludes, and what the ignore files in
//! the folder itself leave out.

use std::io::Read as _;
use std::path::Path;

use cap_std::fs::Dir;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::error::IngestError;

/// The files whose patterns hold for the folder they lie in; the second wins over the first.
pub const IGNORE_FILES: [&str; 2] = [".gitignore", ".docentignore"];

/// The most bytes of an ignore file.
const MAX_FILE_BYTES: u64 = 64 * 1024;

/// The most patterns of one list or file.
const MAX_PATTERNS: usize = 1_000;

/// Which files of a folder are wanted.
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
    /// Wants the files that match one of `include`, unless that is empty, and none that match one of `exclude`.
    /// Patterns are written as in a `.gitignore`. With `gitignore` such files count too.
    ///
    /// # Errors
    /// With the pattern that is none and what is wrong with it, or when there are too many.
    pub fn new(
        include: &[String],
        exclude: &[String],
        gitignore: bool,
    ) -> Result<Self, (String, String)> {
        let all = matcher(include)?;
        Ok(Self {
            include: (!include.is_empty()).then_some(all),
            exclude: matcher(exclude)?,
            gitignore,
        })
    }

    /// The names of a folder's ignore files that count.
    fn ignore_file_names(&self) -> &'static [&'static str] {
        let [_, own] = &IGNORE_FILES;
        if self.gitignore {
            &IGNORE_FILES
        } else {
            std::slice::from_ref(own)
        }
    }

    /// Whether settings leave a path out.
    fn excludes(&self, path: &Path, is_dir: bool) -> bool {
        // A folder may hold what is included, so it is always looked into.
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
        let wrong = |error: ignore::Error| (pattern.clone(), error.to_string());
        builder.add_line(None, pattern).map_err(wrong)?;
    }
    let all = || patterns.join(", ");
    builder.build().map_err(|error| (all(), error.to_string()))
}

/// What holds on the way from the root to the folder at hand.
pub(crate) struct IgnoreStack<'c> {
    choice: &'c FileFilter,
    /// One list for each folder on the way, often empty.
    folders: Vec<Vec<Gitignore>>,
}

impl<'c> IgnoreStack<'c> {
    pub(crate) fn new(choice: &'c FileFilter) -> Self {
        Self {
            choice,
            folders: Vec::new(),
        }
    }

    /// Enters a folder. The ignore files that cannot be used are named with the reason.
    pub(crate) fn enter(&mut self, dir: &Dir, relative: &Path) -> Vec<(&'static str, IngestError)> {
        let (mut rules, mut bad) = (Vec::new(), Vec::new());
        for name in self.choice.ignore_file_names() {
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

    /// Whether a path is not wanted. The nearest rule that knows it decides.
    pub(crate) fn is_excluded(&self, path: &Path, is_dir: bool) -> bool {
        if self.choice.excludes(path, is_dir) {
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

/// The text of an ignore file, if the folder has one.
fn read_ignore_file(dir: &Dir, name: &str) -> Result<Option<String>, IngestError> {
    // A link could lead out of the folder, and a pipe would never end.
    if !dir
        .symlink_metadata(name)
        .is_ok_and(|found| found.is_file())
    {
        return Ok(None);
    }
    let failed = |error: std::io::Error| crate::folder_walk::from_io_error(&error);
    let file = dir.open(name).map_err(failed)?;
    let mut text = Vec::new();
    let size = file.take(MAX_FILE_BYTES + 1).read_to_end(&mut text);
    if size.map_err(failed)? as u64 > MAX_FILE_BYTES {
        return Err(IngestError::IgnoreFileTooLong);
    }
    Ok(Some(String::from_utf8_lossy(&text).into_owned()))
}

/// The patterns of an ignore file. Lines that are none are passed over, as git does.
fn parse_ignore_file(text: &str, relative: &Path) -> Result<Gitignore, IngestError> {
    let lines = || text.lines().filter(|line| !line.trim().is_empty());
    if lines().nth(MAX_PATTERNS).is_some() {
        return Err(IngestError::IgnoreFileTooLong);
    }
    let mut builder = GitignoreBuilder::new(relative);
    for line in lines() {
        let _ = builder.add_line(None, line);
    }
    // Short patterns can still ask for more than a matcher may take.
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
        // A line that is no pattern costs only itself.
        let rules = parse_ignore_file("[z-a]\n*.log\n", Path::new("x")).unwrap();
        assert!(rules.matched("x/y/a.log", false).is_ignore());
    }
}
