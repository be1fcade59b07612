//! Stores an edited configuration file of an MCP client: atomically, by rename, with a backup beside it, and with
//! optimistic concurrency, so that changes of another program are never overwritten.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use docent_atomic_file::{FileAccess, StagedFile};

use super::config_edit::{ConfigEdit, EditRefusal};
use crate::cli_error::CliError;

/// Maximum size of a configuration file. Claude Code's grows to a few megabytes.
const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// Number of attempts if another program changes the file during the edit.
const TRIES: usize = 3;
/// Suffix of the backup file.
const BACKUP: &str = ".docent-backup";

/// What an edit did to the file, and where the backup is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EditOutcome {
    /// The change as the report shows it: `added`, `changed`, `removed` or `unchanged`.
    pub what: &'static str,
    pub backup: Option<PathBuf>,
}

/// Applies an edit to a file, which is created if it does not exist.
pub(crate) fn edit(
    file: &Path,
    change: impl Fn(&str) -> Result<ConfigEdit, EditRefusal>,
) -> Result<EditOutcome, CliError> {
    // Follows symbolic links, so that settings which are linked from a repository stay linked.
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    for _ in 0..TRIES {
        let before = read(&file)?;
        let text = before.as_deref().unwrap_or_default();
        let (what, after) = match change(text).map_err(|refusal| refusal_error(&file, refusal))? {
            ConfigEdit::None => {
                return Ok(EditOutcome {
                    what: "unchanged",
                    backup: None,
                });
            }
            ConfigEdit::Added(after) => ("added", after),
            ConfigEdit::Changed(after) => ("changed", after),
            ConfigEdit::Removed(after) => ("removed", after),
        };
        let staged = stage(&file, &after)?;
        if read(&file)? != before {
            continue;
        }
        let backup = before.is_some().then(|| sibling_path(&file, BACKUP));
        let swapped = match &backup {
            Some(backup) => std::fs::copy(&file, backup).map(drop),
            None => Ok(()),
        };
        return match swapped.and_then(|()| staged.replace()) {
            Ok(()) => Ok(EditOutcome { what, backup }),
            Err(error) => Err(CliError::io("write", &file, error)),
        };
    }
    Err(CliError::failed(format!(
        "`{}` keeps changing during the edit",
        file.display()
    ))
    .hint("close the client that writes it and try again"))
}

fn refusal_error(file: &Path, refusal: EditRefusal) -> CliError {
    let shown = file.display();
    match refusal {
        EditRefusal::Unfit(why) => CliError::failed(format!("`{shown}` {why}")).hint(
            "it was not changed; fix it, or add the entry by hand as shown without `--write`",
        ),
        EditRefusal::Taken(there) => CliError::usage(format!(
            "`{shown}` has another server of that name: `{there}`"
        ))
        .hint("choose another name with `--name`, or replace it with `--force`"),
    }
}

/// Reads a file; `None` if it does not exist.
pub(crate) fn read(file: &Path) -> Result<Option<String>, CliError> {
    let opened = match File::open(file) {
        Ok(opened) => opened,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(CliError::io("read", file, error)),
    };
    let mut text = String::new();
    opened
        .take(MAX_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(|error| CliError::io("read", file, error).hint("it was not changed"))?;
    if text.len() as u64 > MAX_BYTES {
        let message = format!("`{}` has more than {MAX_BYTES} bytes", file.display());
        return Err(CliError::failed(message).hint("it was not changed"));
    }
    Ok(Some(text))
}

/// Writes the new text beside the target, with the permissions of the old file, which may be private.
fn stage(file: &Path, text: &str) -> Result<StagedFile, CliError> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).map_err(|error| CliError::io("make", folder, error))?;
    }
    StagedFile::new(file, text.as_bytes(), FileAccess::LikeTarget)
        .map_err(|error| CliError::io("write", file, error))
}

fn sibling_path(file: &Path, end: &str) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(end);
    file.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_made_and_then_kept_beside_the_new_one() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("deep/er/mcp.json");
        let done = edit(&file, |text| Ok(ConfigEdit::Added(format!("{text}a")))).unwrap();
        assert_eq!(
            done,
            EditOutcome {
                what: "added",
                backup: None
            }
        );
        let done = edit(&file, |text| Ok(ConfigEdit::Changed(format!("{text}b")))).unwrap();
        let backup = file
            .canonicalize()
            .unwrap()
            .with_file_name("mcp.json.docent-backup");
        assert_eq!(done.backup.as_deref(), Some(backup.as_path()));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "ab");
        assert_eq!(std::fs::read_to_string(&backup).unwrap(), "a");
        assert_eq!(
            names(file.parent().unwrap()),
            ["mcp.json", "mcp.json.docent-backup"]
        );
    }

    #[test]
    fn a_refused_edit_touches_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("mcp.json");
        std::fs::write(&file, "{").unwrap();
        let problem = edit(&file, |_| Err(EditRefusal::Unfit("is odd".to_owned()))).unwrap_err();
        assert!(problem.message.ends_with("mcp.json` is odd"), "{problem}");
        assert_eq!(problem.exit, 1);
        assert!(problem.hint.unwrap().starts_with("it was not changed"));
        let problem = edit(&file, |_| Err(EditRefusal::Taken("x".to_owned()))).unwrap_err();
        assert_eq!(problem.exit, 2);
        edit(&file, |_| Ok(ConfigEdit::None)).unwrap();
        assert_eq!(
            (
                std::fs::read_to_string(&file).unwrap().as_str(),
                names(dir.path()).len()
            ),
            ("{", 1)
        );
    }

    /// A write by another program between our read and our rename is not lost.
    #[test]
    fn a_concurrent_change_of_the_file_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("mcp.json");
        std::fs::write(&file, "1").unwrap();
        let done = edit(&file, |text| {
            if text == "1" {
                std::fs::write(&file, "2").unwrap();
            }
            Ok(ConfigEdit::Changed(format!("{text}!")))
        });
        assert_eq!(done.unwrap().what, "changed");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "2!");
        let restless = edit(&file, |text| {
            std::fs::write(&file, format!("{text}x")).unwrap();
            Ok(ConfigEdit::Changed("gone".to_owned()))
        });
        assert!(
            restless
                .unwrap_err()
                .message
                .ends_with("keeps changing during the edit")
        );
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "2!xxx");
        assert_eq!(names(dir.path()), ["mcp.json", "mcp.json.docent-backup"]);
    }

    #[cfg(unix)]
    #[test]
    fn links_and_permissions_stay() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("real.json"), dir.path().join("link.json"));
        std::fs::write(&file, "{}").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        edit(&link, |_| Ok(ConfigEdit::Changed("new".to_owned()))).unwrap();
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "new");
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&file), 0o600);
        assert_eq!(mode(&dir.path().join("real.json.docent-backup")), 0o600);
    }

    #[test]
    fn a_file_ends_at_its_bound() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("mcp.json");
        let sparse = |bytes| File::create(&file).unwrap().set_len(bytes).unwrap();
        sparse(MAX_BYTES + 1);
        assert!(read(&file).unwrap_err().message.contains("67108864 bytes"));
        sparse(MAX_BYTES);
        assert!(read(&file).is_ok());
    }
}
