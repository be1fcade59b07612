//! A folder into the place where its index lives.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy as _;
use sha2::{Digest as _, Sha256};

use crate::cli_error::CliError;

/// The folder beside the documents that holds what we write.
const OURS: &str = ".docent";

/// Where the index of a folder may live.
#[derive(Debug)]
pub(crate) struct IndexLocation {
    /// Beside the documents, or where the settings say.
    first: PathBuf,
    /// In the user's cache, for folders that cannot be written to.
    second: Option<PathBuf>,
}

impl IndexLocation {
    /// The places for a folder, given by its absolute path.
    pub(crate) fn new(folder: &Path, set: Option<&Path>, cache: Option<PathBuf>) -> Self {
        if let Some(set) = set {
            return Self {
                first: set.to_owned(),
                second: None,
            };
        }
        let second = cache.map(|cache| cache.join("docent").join(digest(folder)).join("index"));
        Self {
            first: folder.join(OURS).join("index"),
            second,
        }
    }

    /// The place of an index that is there; the first place when there is none.
    pub(crate) fn existing(&self) -> &Path {
        let second = self
            .second
            .as_deref()
            .filter(|second| second.is_dir() && !self.first.is_dir());
        second.unwrap_or(&self.first)
    }

    /// The place of the index, made if necessary.
    pub(crate) fn create(&self) -> Result<&Path, CliError> {
        let existing = self.existing();
        if existing.is_dir() {
            return Ok(existing);
        }
        match (create_dir(&self.first), &self.second) {
            (Ok(()), _) => Ok(&self.first),
            (Err(error), Some(second)) if is_refusal(error.kind()) => {
                create_dir(second).map_err(|error| create_error(second, error))?;
                Ok(second)
            }
            (Err(error), _) => Err(create_error(&self.first, error)),
        }
    }
}

/// Where the sign-in of a folder keeps its state: beside the documents, and never in a cache, which may be emptied.
pub(crate) fn sign_in(folder: &Path) -> PathBuf {
    folder.join(OURS).join("sign-in")
}

/// Makes what is around the state of the sign-in; the folder itself is made by whoever writes to it, for its
/// owner alone.
pub(crate) fn create_parent(dir: &Path) -> Result<(), CliError> {
    let Some(parent) = dir.parent() else {
        return Ok(());
    };
    let made = std::fs::create_dir_all(parent).and_then(|()| write_gitignore(dir));
    made.map_err(|error| {
        CliError::io("make the folder of the sign-in", dir, error)
            .hint("choose another one with `auth.dir` in docent.toml")
    })
}

/// The user's cache, where the system has such a place.
pub(crate) fn cache() -> Option<PathBuf> {
    etcetera::choose_base_strategy()
        .ok()
        .map(|base| base.cache_dir())
}

fn create_dir(dir: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(dir)?;
    write_gitignore(dir)
}

fn write_gitignore(dir: &Path) -> std::io::Result<()> {
    let ours = dir
        .parent()
        .filter(|parent| parent.file_name().is_some_and(|name| name == OURS));
    if let Some(ours) = ours {
        // An index is made from the documents, and the rest is secret: nobody wants either in version control.
        std::fs::write(ours.join(".gitignore"), "*\n")?;
    }
    Ok(())
}

fn is_refusal(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem
    )
}

fn create_error(dir: &Path, error: std::io::Error) -> CliError {
    CliError::io("make the index folder", dir, error).hint("choose another one with `--index`")
}

/// A short name for a path that no other path has.
fn digest(path: &Path) -> String {
    let digest = Sha256::digest(path.as_os_str().as_encoded_bytes());
    digest
        .iter()
        .take(12)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_lies_beside_the_documents_and_out_of_version_control() {
        let dir = tempfile::tempdir().unwrap();
        let place = IndexLocation::new(dir.path(), None, None);
        assert_eq!(place.create().unwrap(), dir.path().join(".docent/index"));
        assert_eq!(
            std::fs::read_to_string(dir.path().join(".docent/.gitignore")).unwrap(),
            "*\n"
        );
        assert_eq!(place.existing(), dir.path().join(".docent/index"));
    }

    #[test]
    fn settings_choose_the_place() {
        let dir = tempfile::tempdir().unwrap();
        let chosen = dir.path().join("elsewhere");
        let place = IndexLocation::new(dir.path(), Some(&chosen), Some(dir.path().join("cache")));
        assert_eq!(place.create().unwrap(), chosen);
        assert!(!dir.path().join(".docent").exists());
    }

    /// A folder whose place is blocked by a file gives an error, because another place would hide
    /// the fault.
    #[test]
    fn a_blocked_place_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(OURS), "").unwrap();
        let cache = dir.path().join("cache");
        let problem = IndexLocation::new(dir.path(), None, Some(cache))
            .create()
            .unwrap_err();
        assert!(
            problem.message.starts_with("cannot make the index folder"),
            "{problem}"
        );
    }

    /// Nobody may make folders in `/sys/kernel`, not even root.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_folder_that_cannot_be_written_to_has_its_index_in_the_cache() {
        let dir = tempfile::tempdir().unwrap();
        let place = IndexLocation::new(Path::new("/sys/kernel"), None, Some(dir.path().to_owned()));
        let made = place.create().unwrap();
        assert!(
            made.starts_with(dir.path().join("docent")),
            "{}",
            made.display()
        );
        assert!(made.is_dir());
        let nowhere = IndexLocation::new(Path::new("/sys/kernel"), None, None)
            .create()
            .unwrap_err();
        assert_eq!(
            nowhere.hint.as_deref(),
            Some("choose another one with `--index`")
        );
    }

    #[test]
    fn an_index_in_the_cache_is_found_again() {
        let dir = tempfile::tempdir().unwrap();
        let place = IndexLocation::new(
            &dir.path().join("docs"),
            None,
            Some(dir.path().join("cache")),
        );
        let second = place.second.clone().unwrap();
        assert_ne!(place.existing(), second);
        create_dir(&second).unwrap();
        assert_eq!(place.existing(), second);
        assert!(!second.parent().unwrap().join(".gitignore").exists());
    }
}
