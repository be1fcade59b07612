//! Checks of the documents folder: unreadable files, the number of folders to watch, and modification times in the
//! future, which point to a wrong clock.

use std::path::Path;
use std::time::{Duration, SystemTime};

use super::DoctorFinding;

use crate::display_text::pluralize;

/// Maximum number of entries to scan: enough to find problems, few enough for a large folder.
const MAX_ENTRIES: usize = 100_000;
/// Maximum depth of the scan below the folder.
const MAX_DEPTH: usize = 64;
/// Tolerated clock skew. Clocks of file servers differ by seconds, so more than this is a problem.
const MAX_CLOCK_SKEW: Duration = Duration::from_secs(300);

/// Counts from a walk through the folder, with the first path of each problem as an example.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct FolderScan {
    pub files: usize,
    pub folders: usize,
    /// Number of entries that this user cannot read, and the first of them.
    pub shut: usize,
    pub first_shut: Option<String>,
    /// Number of files with a modification time in the future, and the first of them.
    pub ahead: usize,
    pub first_ahead: Option<String>,
    /// Whether the scan stopped at its limit.
    pub more: bool,
}

/// Walks a folder without opening files. Hidden entries and symbolic links are skipped, as in indexing.
pub(crate) fn scan(folder: &Path, now: SystemTime) -> FolderScan {
    scan_within(folder, now, MAX_ENTRIES)
}

fn scan_within(folder: &Path, now: SystemTime, most: usize) -> FolderScan {
    let mut scan = FolderScan::default();
    let mut waiting = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = waiting.pop() {
        scan.folders += 1;
        let Ok(entries) = std::fs::read_dir(&folder) else {
            count_path(&mut scan.shut, &mut scan.first_shut, &folder);
            continue;
        };
        for entry in entries.flatten() {
            if scan.files + scan.folders >= most {
                scan.more = true;
                return scan;
            }
            let path = entry.path();
            let hidden = entry.file_name().to_string_lossy().starts_with('.');
            let Ok(meta) = entry.metadata() else { continue };
            if hidden || meta.is_symlink() {
                continue;
            }
            if meta.is_dir() && depth < MAX_DEPTH {
                waiting.push((path, depth + 1));
            } else if meta.is_file() {
                scan.files += 1;
                if !is_readable(&path) {
                    count_path(&mut scan.shut, &mut scan.first_shut, &path);
                }
                if meta
                    .modified()
                    .is_ok_and(|time| time > now + MAX_CLOCK_SKEW)
                {
                    count_path(&mut scan.ahead, &mut scan.first_ahead, &path);
                }
            }
        }
    }
    scan
}

fn count_path(count: &mut usize, first: &mut Option<String>, path: &Path) {
    *count += 1;
    first.get_or_insert_with(|| path.display().to_string());
}

#[cfg(unix)]
fn is_readable(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::READ_OK).is_ok()
}

#[cfg(not(unix))]
fn is_readable(_path: &Path) -> bool {
    true
}

/// Turns a scan into findings about the folder and the clock.
pub(crate) fn findings(folder: &Path, scan: &FolderScan) -> Vec<DoctorFinding> {
    let more = if scan.more { "at least " } else { "" };
    let shown = folder.display();
    let mut found = Vec::new();
    let files = pluralize(scan.files as u64, "file");
    if scan.files == 0 {
        found.push(DoctorFinding::warning(
            "folder",
            format!("`{shown}` contains no files"),
            "put documents into it, or name another folder",
        ));
    } else {
        found.push(DoctorFinding::good(
            "folder",
            format!("{more}{files} in `{shown}`"),
        ));
    }
    if let Some(first) = &scan.first_shut {
        let says = format!("{} of it cannot be read, such as `{first}`", scan.shut);
        found.push(DoctorFinding::warning(
            "folder",
            says,
            format!(
                "let this user read it: `chmod -R u+rX {}`",
                crate::connect::setup_steps::shell_quote(&shown.to_string())
            ),
        ));
    }
    found.push(match &scan.first_ahead {
        Some(first) => DoctorFinding::warning(
            "clock",
            format!("{} with a modification time in the future, such as `{first}`", pluralize(scan.ahead as u64, "file")),
            "set the clock of this machine, or of the machine that wrote the files: `timedatectl set-ntp true`",
        ),
        None => DoctorFinding::good("clock", "no file has a modification time in the future"),
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_counts_and_finds_files_from_the_future() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("a/.hidden")).unwrap();
        std::fs::write(dir.path().join("a/one.md"), "x").unwrap();
        std::fs::write(dir.path().join(".two.md"), "x").unwrap();
        let now = SystemTime::now();
        let walked = scan(dir.path(), now);
        assert_eq!(
            (walked.files, walked.folders, walked.ahead, walked.shut),
            (1, 2, 0, 0)
        );
        // For a clock that is an hour slow, the file comes from the future.
        let walked = scan(dir.path(), now - Duration::from_secs(3_600));
        assert_eq!(walked.ahead, 1);
        let found = findings(dir.path(), &walked);
        assert!(
            found.iter().any(|f| f.about == "clock" && f.hint.is_some()),
            "{found:?}"
        );
        let gone = scan(&dir.path().join("nowhere"), now);
        assert_eq!(gone.shut, 1);
    }

    #[test]
    fn a_walk_ends_at_its_bound() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let within = |most| scan_within(dir.path(), SystemTime::now(), most);
        assert_eq!((within(4).files, within(4).more), (3, false));
        assert_eq!((within(3).files, within(3).more), (2, true));
    }
}
