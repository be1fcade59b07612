//! Where calls are written down, and whether they may be.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::CommandContext;
use crate::audit::AuditLog;
use crate::cli_error::CliError;

/// The log that settings ask for.
pub(super) fn open(desk: &CommandContext) -> Result<Option<Arc<AuditLog>>, CliError> {
    let wish = &desk.settings.audit;
    let Some(file) = &wish.file else {
        return Ok(None);
    };
    let place = place(file)?;
    if is_indexed_path(&place, &desk.folder) {
        let message = format!(
            "`audit.file` lies among the documents: `{}`",
            file.display()
        );
        let hint = "everybody could search it; choose a place outside of the folder";
        return Err(CliError::usage(message).hint(hint));
    }
    AuditLog::open(&place, wish).map(|audit| Some(Arc::new(audit)))
}

/// The file in its folder, which has to be there, without links.
fn place(file: &Path) -> Result<PathBuf, CliError> {
    let folder = file.parent().filter(|folder| *folder != Path::new(""));
    let folder = folder.unwrap_or(Path::new("."));
    let folder = folder
        .canonicalize()
        .map_err(|error| CliError::io("use", folder, error))?;
    Ok(folder.join(file.file_name().unwrap_or_default()))
}

/// Whether a file would be read as a document. What begins with a point is not.
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
