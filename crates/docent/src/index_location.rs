//! Location of the index: beside the documents, or in the user's cache directory if that folder is read-only.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy as _;
use sha2::{Digest as _, Sha256};

use crate::cli_error::CliError;

/// Folder inside the documents folder for all files that docent writes.
const OURS: &str = ".docent";

/// Candidate locations for the index of a folder, in order of preference. The fallback in the user's cache exists only
/// if no location is configured.
#[derive(Debug)]
pub(crate) struct IndexLocation {
    preferred: PathBuf,
    fallback: Option<PathBuf>,
}

impl IndexLocation {
    /// Determines the locations for a folder, given by its absolute path.
    pub(crate) fn new(folder: &Path, configured: Option<&Path>, cache: Option<PathBuf>) -> Self {
        if let Some(configured) = configured {
            return Self {
                preferred: configured.to_owned(),
                fallback: None,
            };
        }
        let fallback = cache.map(|cache| cache.join("docent").join(digest(folder)).join("index"));
        Self {
            preferred: folder.join(OURS).join("index"),
            fallback,
        }
    }

    /// The location of the existing index, or the preferred location if there is none.
    pub(crate) fn existing(&self) -> &Path {
        let fallback = self
            .fallback
            .as_deref()
            .filter(|fallback| fallback.is_dir() && !self.preferred.is_dir());
        fallback.unwrap_or(&self.preferred)
    }

    /// Returns the location of the index and creates the folder if necessary.
    pub(crate) fn create(&self) -> Result<&Path, CliError> {
        let existing = self.existing();
        if existing.is_dir() {
            return Ok(existing);
        }
        match (create_dir(&self.preferred), &self.fallback) {
            (Ok(()), _) => Ok(&self.preferred),
            (Err(error), Some(fallback)) if is_refusal(error.kind()) => {
                create_dir(fallback).map_err(|error| create_error(fallback, error))?;
                Ok(fallback)
            }
            (Err(error), _) => Err(create_error(&self.preferred, error)),
        }
    }
}

/// State directory of the built-in sign-in. It is beside the documents and never in a cache, which may be cleared at
/// any time: losing it would delete all users.
pub(crate) fn sign_in(folder: &Path) -> PathBuf {
    folder.join(OURS).join("sign-in")
}

/// Creates the parent of the sign-in state directory. The directory itself is created by its writer, with permissions
/// for the owner only.
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

/// The user's cache directory, if the platform has one.
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
        // The index is derived data and the sign-in state is secret, so neither belongs in version control.
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

/// Hash of a path as a unique directory name: the first 12 bytes of its SHA-256 in hexadecimal.
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
        let location = IndexLocation::new(dir.path(), None, None);
        assert_eq!(location.create().unwrap(), dir.path().join(".docent/index"));
        assert_eq!(
            std::fs::read_to_string(dir.path().join(".docent/.gitignore")).unwrap(),
            "*\n"
        );
        assert_eq!(location.existing(), dir.path().join(".docent/index"));
    }

    #[test]
    fn settings_choose_the_place() {
        let dir = tempfile::tempdir().unwrap();
        let chosen = dir.path().join("elsewhere");
        let location =
            IndexLocation::new(dir.path(), Some(&chosen), Some(dir.path().join("cache")));
        assert_eq!(location.create().unwrap(), chosen);
        assert!(!dir.path().join(".docent").exists());
    }

    /// If a file blocks the location, that is an error: falling back to the cache would hide the fault.
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

    /// Not even root may create folders in `/sys/kernel`, so it stands for a read-only folder.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_folder_that_cannot_be_written_to_has_its_index_in_the_cache() {
        let dir = tempfile::tempdir().unwrap();
        let location =
            IndexLocation::new(Path::new("/sys/kernel"), None, Some(dir.path().to_owned()));
        let made = location.create().unwrap();
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
        let location = IndexLocation::new(
            &dir.path().join("docs"),
            None,
            Some(dir.path().join("cache")),
        );
        let fallback = location.fallback.clone().unwrap();
        assert_ne!(location.existing(), fallback);
        create_dir(&fallback).unwrap();
        assert_eq!(location.existing(), fallback);
        assert!(!fallback.parent().unwrap().join(".gitignore").exists());
    }
}
