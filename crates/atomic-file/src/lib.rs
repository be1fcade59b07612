//! Atomic and durable replacement of files: write a temporary file beside the target, sync it, rename it over the
//! target, sync the folder.
//!
//! Whoever reads the target meanwhile sees the old content or the new one. After a crash or a power failure it holds one
//! of the two as well. A failure leaves the target as it was, and no temporary file.
//!
//! ```
//! use docent_atomic_file::{FileAccess, replace};
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("keys.json");
//! replace(&path, b"{}", FileAccess::Private)?;
//! assert_eq!(std::fs::read(&path)?, b"{}");
//! # Ok::<(), std::io::Error>(())
//! ```

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

/// How many names are tried for the temporary file. They are random, so the first is nearly always free.
const MAX_NAMES: usize = 8;

/// How the names of temporary files end.
const PART_ENDING: &str = ".part";

/// Who may open the new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileAccess {
    /// Whoever the process's umask allows.
    Default,
    /// The owner alone (mode 0600), from the first moment on. Windows has no such mode.
    Private,
    /// Whoever may open the target now; like [`FileAccess::Default`] if there is none.
    LikeTarget,
}

/// Replaces the content of a file, or creates it. A symbolic link at this path is replaced, not followed.
///
/// # Errors
/// If the file cannot be written or renamed. The target is unchanged then.
pub fn replace(target: &Path, content: &[u8], access: FileAccess) -> io::Result<()> {
    StagedFile::new(target, content, access)?.replace()
}

/// Creates a file with its whole content, and never replaces one.
///
/// # Errors
/// [`ErrorKind::AlreadyExists`] if there is a file already, and whatever prevents the file from being written.
pub fn create(target: &Path, content: &[u8], access: FileAccess) -> io::Result<()> {
    StagedFile::new(target, content, access)?.create()
}

/// New content beside a file, complete and synced, that does not count yet. Dropping it removes it.
///
/// For callers that have something to check between writing and renaming.
#[derive(Debug)]
pub struct StagedFile {
    target: PathBuf,
    part: PathBuf,
    /// Whether the temporary file still has to be removed.
    is_left: bool,
}

impl StagedFile {
    /// Writes and syncs the content under a temporary name in the folder of `target`.
    ///
    /// # Errors
    /// If the file cannot be written; nothing of it is left then.
    pub fn new(target: &Path, content: &[u8], access: FileAccess) -> io::Result<Self> {
        let (part, mut file) = create_part(target, access)?;
        let staged = Self {
            target: target.to_owned(),
            part,
            is_left: true,
        };
        if access == FileAccess::LikeTarget
            && let Ok(old) = fs::metadata(target)
        {
            file.set_permissions(old.permissions())?;
        }
        file.write_all(content)?;
        file.sync_all()?;
        Ok(staged)
    }

    /// Renames it over the target.
    ///
    /// # Errors
    /// If it cannot be renamed, or the rename cannot be synced.
    pub fn replace(mut self) -> io::Result<()> {
        fs::rename(&self.part, &self.target)?;
        self.is_left = false;
        sync_where_possible(folder_of(&self.target))
    }

    /// Gives it the name of the target, unless there is a file of this name.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] if there is one, and whatever prevents the link or its sync.
    pub fn create(self) -> io::Result<()> {
        // Unlike a rename, a hard link fails if the name is taken. The temporary name goes with `self`.
        fs::hard_link(&self.part, &self.target)?;
        sync_where_possible(folder_of(&self.target))
    }
}

impl Drop for StagedFile {
    fn drop(&mut self) {
        if self.is_left {
            // Ignored: what a failure leaves behind is a temporary file that nothing reads.
            let _ = fs::remove_file(&self.part);
        }
    }
}

/// Creates the temporary file, which must not exist: so no link that somebody planted there is followed.
fn create_part(target: &Path, access: FileAccess) -> io::Result<(PathBuf, File)> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if access == FileAccess::Private {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    #[cfg(not(unix))]
    let _ = access;
    let Some(name) = target.file_name() else {
        return Err(io::Error::from(ErrorKind::InvalidInput));
    };
    let mut taken = io::Error::from(ErrorKind::AlreadyExists);
    for _ in 0..MAX_NAMES {
        let mut part = OsString::from(".");
        part.push(name);
        part.push(format!(".{:016x}{PART_ENDING}", random()));
        let part = target.with_file_name(part);
        match options.open(&part) {
            Ok(file) => return Ok((part, file)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => taken = error,
            Err(error) => return Err(error),
        }
    }
    Err(taken)
}

/// A random number from the keys of the standard library's hash tables, which differ from process to process and from
/// call to call. It need not be unpredictable, since no existing file is ever opened.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

fn folder_of(file: &Path) -> &Path {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Whether a file name is one of those that temporary files of the target called `target` have. A process that was
/// killed leaves such a file behind. Whoever is the only writer of the target may remove it.
///
/// ```
/// assert!(docent_atomic_file::is_temporary(".keys.json.0123456789abcdef.part", "keys.json"));
/// assert!(!docent_atomic_file::is_temporary("keys.json", "keys.json"));
/// ```
#[must_use]
pub fn is_temporary(name: &str, target: &str) -> bool {
    let name = name
        .strip_prefix('.')
        .and_then(|rest| rest.strip_prefix(target))
        .and_then(|rest| rest.strip_prefix('.'));
    name.and_then(|rest| rest.strip_suffix(PART_ENDING))
        .is_some_and(|digits| digits.len() == 16 && digits.chars().all(|c| c.is_ascii_hexdigit()))
}

/// Syncs a folder (fsync), so that the names in it survive a power failure.
///
/// # Errors
/// If the folder cannot be opened or synced. Some file systems cannot sync a folder at all.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    // Windows cannot open a folder as a file, and needs no sync for names.
    if cfg!(unix) {
        File::open(folder)?.sync_all()
    } else {
        Ok(())
    }
}

/// Like [`sync_folder`], but succeeds where syncing is impossible: some file systems cannot sync a folder, and a folder
/// that may be written need not be readable. Neither is a reason to report a failure for a file that is in its place.
fn sync_where_possible(folder: &Path) -> io::Result<()> {
    match sync_folder(folder) {
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::InvalidInput | ErrorKind::Unsupported | ErrorKind::PermissionDenied
            ) =>
        {
            Ok(())
        }
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = names
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn content_is_created_and_replaced_and_nothing_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        for (content, access) in [
            (&b"one"[..], FileAccess::Default),
            (b"", FileAccess::Private),
            (b"three", FileAccess::LikeTarget),
        ] {
            replace(&path, content, access).unwrap();
            assert_eq!(fs::read(&path).unwrap(), content);
            assert_eq!(names(folder.path()), ["a.json"]);
        }
    }

    #[test]
    fn a_file_is_created_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        create(&path, b"first", FileAccess::Private).unwrap();
        let second = create(&path, b"second", FileAccess::Private).unwrap_err();
        assert_eq!(second.kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(names(folder.path()), ["a"]);
    }

    #[test]
    fn a_failure_leaves_the_target_and_no_temporary_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::create_dir(&path).unwrap();
        fs::write(path.join("b"), "kept").unwrap();
        assert!(replace(&path, b"new", FileAccess::Default).is_err());
        assert!(create(&path, b"new", FileAccess::Default).is_err());
        assert_eq!(names(folder.path()), ["a"]);
        assert_eq!(names(&path), ["b"]);
        let absent = folder.path().join("absent/a");
        let error = replace(&absent, b"new", FileAccess::Default).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        let nameless = replace(Path::new("/"), b"new", FileAccess::Default).unwrap_err();
        assert_eq!(nameless.kind(), ErrorKind::InvalidInput);
    }

    #[test]
    fn a_staged_file_changes_nothing_and_is_deleted_unless_it_replaces_the_target() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "old").unwrap();
        let staged = StagedFile::new(&path, b"new", FileAccess::Default).unwrap();
        assert_eq!(names(folder.path()).len(), 2);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        drop(staged);
        assert_eq!(names(folder.path()), ["a"]);
        let staged = StagedFile::new(&path, b"new", FileAccess::Default).unwrap();
        staged.replace().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(folder.path()), ["a"]);
    }

    #[test]
    fn temporary_files_are_recognized_by_their_names() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        let staged = StagedFile::new(&path, b"new", FileAccess::Default).unwrap();
        let present = names(folder.path());
        assert!(is_temporary(&present[0], "a.json"), "{present:?}");
        staged.replace().unwrap();
        let others = [
            "a.json",
            ".a.json",
            ".a.json.part",
            ".a.json.0123456789abcdef",
            ".a.json.0123456789abcde.part",
            ".a.json.0123456789abcdeg.part",
            ".b.json.0123456789abcdef.part",
            "a.json.0123456789abcdef.part",
        ];
        for other in others {
            assert!(!is_temporary(other, "a.json"), "{other}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn modes_are_private_or_those_of_the_old_file() {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        replace(&path, b"1", FileAccess::Private).unwrap();
        assert_eq!(mode(), 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        replace(&path, b"2", FileAccess::LikeTarget).unwrap();
        assert_eq!(mode(), 0o640);
        replace(&path, b"3", FileAccess::Private).unwrap();
        assert_eq!(mode(), 0o600);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_replaced_and_what_it_points_to_is_not_touched() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("a"), folder.path().join("other"));
        fs::write(&other, "other").unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        replace(&path, b"new", FileAccess::LikeTarget).unwrap();
        assert_eq!(fs::read(&other).unwrap(), b"other");
        assert!(!path.symlink_metadata().unwrap().is_symlink());
    }
}
