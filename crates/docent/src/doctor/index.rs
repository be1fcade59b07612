//! Checks of the index: whether it exists, its checksums and format version, its writer, lost files, permissions, and
//! whether its folder is writable.

use std::path::Path;

use docent_search::{EmbeddedEngine, Engine, SearchError, is_index_locked};

use super::DoctorFinding;
use crate::cli_error::CliError;
use crate::connect::setup_steps::shell_quote;
use crate::corpus::{self, UnreadableDocuments};
use crate::display_text::pluralize;
use crate::loss_report::LossReport;
use crate::settings::Settings;

/// Maximum number of losses with a finding of their own.
const MAX_LOSSES: usize = 10;

/// Maximum number of files with a finding of their own because nobody may read their documents. Their owner has to
/// correct each of them, so they are named as long as the report can still be read.
const MAX_NAMED: usize = 100;

/// Runs all checks of the index in `dir`, which belongs to the documents in `folder`.
pub(crate) async fn findings(dir: &Path, folder: &Path, settings: &Settings) -> Vec<DoctorFinding> {
    let mut found = vec![state(dir, folder).await];
    found.extend(losses(dir, folder));
    found.extend(readers(dir, folder, settings).await);
    if is_index_locked(dir) {
        found.push(DoctorFinding::good(
            "index",
            "a running docent keeps it up to date",
        ));
    }
    if let Some(finding) = unwritable(dir) {
        found.push(finding);
    }
    found
}

/// Checks permissions in the index: documents that nobody may read because their field is malformed, and documents that
/// were indexed under other rules. Skipped if everyone may read everything.
async fn readers(dir: &Path, folder: &Path, settings: &Settings) -> Vec<DoctorFinding> {
    let transform = settings.document_transform();
    if !transform.has_restrictions() {
        return Vec::new();
    }
    let engine = match open(dir, settings) {
        Ok(engine) => engine,
        // An index in a folder that cannot be opened has its own finding already.
        Err(_) if !settings.engine.is_shared() => return Vec::new(),
        Err(error) => {
            let says = format!(
                "the permissions in the index cannot be checked: {}",
                error.chain()
            );
            return vec![DoctorFinding::warning(
                "readers",
                says,
                error.hint.unwrap_or_default(),
            )];
        }
    };
    let shown = shell_quote(&folder.display().to_string());
    let mut found = unreadable(engine.as_ref(), &shown, settings).await;
    match corpus::count_stale(engine.as_ref(), &transform).await {
        Ok(0) if found.is_empty() => {
            let says = "all documents are indexed under the current rules";
            found.push(DoctorFinding::good("readers", says));
        }
        Ok(0) | Err(_) => {}
        Ok(count) => {
            let documents = pluralize(count as u64, "document");
            found.push(DoctorFinding::warning(
                "readers",
                format!("{documents} in the index were indexed under other rules"),
                format!("reindex them with `docent index {shown}`"),
            ));
        }
    }
    found
}

/// Opens the index for reading, wherever the settings keep it.
fn open(dir: &Path, settings: &Settings) -> Result<Box<dyn Engine>, CliError> {
    if settings.engine.is_shared() {
        return Ok(Box::new(settings.engine.open_read_only(None)?));
    }
    Ok(Box::new(EmbeddedEngine::open_read_only(dir, None)?))
}

/// The documents that nobody may read because of their own field: each file with what is wrong and how to fix it, and
/// beyond the limit how many more documents there are.
async fn unreadable(engine: &dyn Engine, shown: &str, settings: &Settings) -> Vec<DoctorFinding> {
    let closed = match UnreadableDocuments::of(engine, MAX_NAMED).await {
        Ok(closed) => closed,
        Err(error) => {
            let says = format!("unreadable documents cannot be listed: {}", error.chain());
            return vec![DoctorFinding::warning(
                "readers",
                says,
                error.hint.unwrap_or_default(),
            )];
        }
    };
    let field = settings.permissions.field.clone().unwrap_or_default();
    let named = closed.files.iter().map(|file| {
        let documents = match file.documents {
            1 => String::new(),
            more => format!("{more} documents of "),
        };
        let says = format!(
            "nobody may read {documents}`{}`: the field `{field}` {}",
            file.source, file.fault
        );
        DoctorFinding::warning("readers", says, file.fault.hint())
    });
    let mut found: Vec<_> = named.collect();
    let named: usize = closed.files.iter().map(|file| file.documents).sum();
    let more = closed.count.saturating_sub(named);
    if more > 0 {
        found.push(DoctorFinding::warning(
            "readers",
            format!(
                "nobody may read {}",
                pluralize(more as u64, "more document")
            ),
            format!("list them with `docent permissions list --unreadable --path {shown}`"),
        ));
    }
    found
}

async fn state(dir: &Path, folder: &Path) -> DoctorFinding {
    let rebuild = format!(
        "rebuild it with `docent index {}`",
        shell_quote(&folder.display().to_string())
    );
    let shown = dir.display();
    // Read-only, because opening for writing would repair the index, and the doctor changes nothing.
    let engine = match EmbeddedEngine::open_read_only(dir, None) {
        Ok(engine) => engine,
        Err(SearchError::Missing { .. }) => {
            return DoctorFinding::warning(
                "index",
                format!("there is no index in `{shown}` yet"),
                format!(
                    "create it with `docent serve` or `docent index {}`",
                    shell_quote(&folder.display().to_string())
                ),
            );
        }
        Err(error @ SearchError::Format { .. }) => {
            return DoctorFinding::warning(
                "index",
                error.to_string(),
                format!("a new index is built beside it: {rebuild}"),
            );
        }
        Err(error) => return DoctorFinding::wrong("index", error.to_string(), rebuild),
    };
    if let Some(what) = engine.quarantined().first() {
        return DoctorFinding::wrong("index", format!("corrupt index segment: {what}"), rebuild);
    }
    match engine.status().await {
        Ok(status) => DoctorFinding::good(
            "index",
            format!(
                "intact, with {} in `{shown}`",
                pluralize(status.documents, "document")
            ),
        ),
        Err(error) => DoctorFinding::wrong("index", error.to_string(), rebuild),
    }
}

/// Findings from the loss report: rows and files that the last sync could not index.
fn losses(dir: &Path, folder: &Path) -> Vec<DoctorFinding> {
    let command = format!(
        "`docent index {}`",
        shell_quote(&folder.display().to_string())
    );
    let losses = match LossReport::load(dir) {
        Ok(None) => return Vec::new(),
        Ok(Some(losses)) => losses,
        Err(error) => {
            let says = format!("the loss report cannot be read: {error}");
            return vec![DoctorFinding::warning(
                "losses",
                says,
                format!("write a new one with {command}"),
            )];
        }
    };
    let shown = losses.listed.iter().take(MAX_LOSSES);
    let mut found: Vec<_> = shown
        .map(|loss| {
            let at = match loss.line {
                Some(line) => format!("{}:{line}", loss.path),
                None => loss.path.clone(),
            };
            DoctorFinding::wrong(
                "losses",
                format!("`{at}` is not indexed: {}", loss.message),
                loss.hint.clone(),
            )
        })
        .collect();
    let more = losses.lost.saturating_sub(found.len() as u64);
    if more > 0 {
        found.push(DoctorFinding::wrong(
            "losses",
            format!("{more} more rows or files are not indexed"),
            format!("list them with {command}"),
        ));
    }
    found
}

/// Checks write access to the index folder, or to its nearest existing parent.
fn unwritable(dir: &Path) -> Option<DoctorFinding> {
    let place = dir.ancestors().find(|place| place.exists())?;
    if is_writable(place) {
        return None;
    }
    Some(DoctorFinding::warning(
        "index",
        format!(
            "`{}` is not writable, so the index there cannot be updated",
            place.display()
        ),
        "choose a writable folder with `--index`",
    ))
}

#[cfg(unix)]
fn is_writable(place: &Path) -> bool {
    rustix::fs::access(place, rustix::fs::Access::WRITE_OK).is_ok()
}

#[cfg(not(unix))]
fn is_writable(place: &Path) -> bool {
    std::fs::metadata(place).is_ok_and(|meta| !meta.permissions().readonly())
}
