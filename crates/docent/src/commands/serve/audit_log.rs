//! Opens the audit log of a server, unless it would be indexed as a document.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::CommandContext;
use crate::audit::AuditLog;
use crate::cli_error::CliError;

/// Opens the configured audit log. A log inside the documents folder is refused: everybody could search it.
pub(super) fn open(context: &CommandContext) -> Result<Option<Arc<AuditLog>>, CliError> {
    let settings = &context.settings.audit;
    let Some(file) = &settings.file else {
        return Ok(None);
    };
    let place = place(file)?;
    if is_indexed_path(&place, &context.folder) {
        let message = format!(
            "`audit.file` is inside the documents folder: `{}`",
            file.display()
        );
        let hint = "everybody could search it; choose a path outside of the folder";
        return Err(CliError::usage(message).hint(hint));
    }
    AuditLog::open(&place, settings).map(|audit| Some(Arc::new(audit)))
}

/// Canonical path of the file, so that a symbolic link cannot hide that it is inside the documents folder.
fn place(file: &Path) -> Result<PathBuf, CliError> {
    let folder = file.parent().filter(|folder| *folder != Path::new(""));
    let folder = folder.unwrap_or(Path::new("."));
    let folder = folder
        .canonicalize()
        .map_err(|error| CliError::io("use", folder, error))?;
    Ok(folder.join(file.file_name().unwrap_or_default()))
}

/// Whether a path would be indexed as a document. Hidden files and folders are not.
fn is_indexed_path(file: &Path, documents: &Path) -> bool {
    let Ok(below) = file.strip_prefix(documents) else {
        return false;
    };
    let is_hidden = |part: Component<'_>| {
        let name = part.as_os_str().to_string_lossy();
        name.starts_with('.')
    };
    !below.components().any(is_hidden)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_no_document() {
        for (file, is_refused) in [
            ("/docs/audit.jsonl", true),
            ("/docs/a/audit.jsonl", true),
            ("/docs/.docent/audit.jsonl", false),
            ("/docs/.audit.jsonl", false),
            ("/docs2/audit.jsonl", false),
            ("/var/log/audit.jsonl", false),
        ] {
            assert_eq!(
                is_indexed_path(Path::new(file), Path::new("/docs")),
                is_refused,
                "{file}"
            );
        }
    }
}
