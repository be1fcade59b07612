//! The index of a folder: is there one, is it whole, of which version, who writes to it, and can it be written.

use std::path::Path;

use docent_search::{EmbeddedEngine, Engine as _, SearchError, is_index_locked};

use super::DoctorFinding;
use crate::connect::setup_steps::shell_quote;
use crate::corpus::{self, UnreadableDocuments};
use crate::knowledge_base::pluralize;
use crate::loss_report::LossReport;
use crate::settings::Settings;

/// The most losses that are named one by one.
const MOST_LOSSES: usize = 10;

/// The most documents that one finding names.
const MAX_NAMED: usize = 3;

/// What can be said about the index in a folder.
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

/// Whether documents stand as the rules about readers want them, where not everyone may read everything.
async fn readers(dir: &Path, folder: &Path, settings: &Settings) -> Vec<DoctorFinding> {
    let shape = settings.document_transform();
    let mut found = Vec::new();
    if !shape.has_restrictions() {
        return found;
    }
    // What is wrong with an index that cannot be opened has been said.
    let Ok(engine) = EmbeddedEngine::open_read_only(dir, None) else {
        return found;
    };
    let shown = shell_quote(&folder.display().to_string());
    if let Ok(closed) = UnreadableDocuments::of(&engine, MAX_NAMED).await
        && closed.count > 0
    {
        let field = settings.permissions.field.clone().unwrap_or_default();
        let named = closed.first.iter();
        let named: Vec<_> = named
            .map(|one| format!("`{}` (the field `{field}` {})", one.source, one.fault()))
            .collect();
        let count = pluralize(closed.count as u64, "document");
        let says = format!("nobody may read {count}, such as {}", named.join(", "));
        let cures = closed.first.first().map(|one| one.fault().hint());
        let cure = cures.unwrap_or_default();
        let hint =
            format!("{cure}; `docent permissions list --unreadable --path {shown}` names all");
        found.push(DoctorFinding::warning("readers", says, hint));
    }
    match corpus::count_stale(&engine, &shape).await {
        Ok(0) if found.is_empty() => {
            let says = "every document stands as the rules want it";
            found.push(DoctorFinding::good("readers", says));
        }
        Ok(0) | Err(_) => {}
        Ok(count) => {
            let documents = pluralize(count as u64, "document");
            found.push(DoctorFinding::warning(
                "readers",
                format!("{documents} in the index were made under other rules"),
                format!("`docent index {shown}` reads them again"),
            ));
        }
    }
    found
}

async fn state(dir: &Path, folder: &Path) -> DoctorFinding {
    let again = format!(
        "`docent index {}` mends it",
        shell_quote(&folder.display().to_string())
    );
    let shown = dir.display();
    // Read only: opening for writing would mend at once, and nobody asked for that.
    let engine = match EmbeddedEngine::open_read_only(dir, None) {
        Ok(engine) => engine,
        Err(SearchError::Missing { .. }) => {
            return DoctorFinding::warning(
                "index",
                format!("there is none yet in `{shown}`"),
                format!(
                    "`docent serve` makes it, or `docent index {}`",
                    shell_quote(&folder.display().to_string())
                ),
            );
        }
        Err(error @ SearchError::Format { .. }) => {
            return DoctorFinding::warning(
                "index",
                error.to_string(),
                format!("it is made again beside it: {again}"),
            );
        }
        Err(error) => return DoctorFinding::wrong("index", error.to_string(), again),
    };
    if let Some(what) = engine.quarantined().first() {
        return DoctorFinding::wrong("index", format!("a part is damaged: {what}"), again);
    }
    match engine.status().await {
        Ok(status) => DoctorFinding::good(
            "index",
            format!(
                "whole, with {} in `{shown}`",
                pluralize(status.documents, "document")
            ),
        ),
        Err(error) => DoctorFinding::wrong("index", error.to_string(), again),
    }
}

/// What the last sync could not index, each of the first few by its name.
fn losses(dir: &Path, folder: &Path) -> Vec<DoctorFinding> {
    let again = format!(
        "`docent index {}`",
        shell_quote(&folder.display().to_string())
    );
    let losses = match LossReport::load(dir) {
        Ok(None) => return Vec::new(),
        Ok(Some(losses)) => losses,
        Err(error) => {
            let says = format!("what was lost is noted in a file that cannot be read: {error}");
            return vec![DoctorFinding::warning(
                "losses",
                says,
                format!("write it anew: {again}"),
            )];
        }
    };
    let shown = losses.listed.iter().take(MOST_LOSSES);
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
            format!("{more} more of its rows or files are not indexed"),
            format!("{again} lists them"),
        ));
    }
    found
}

/// Whether the place of the index, or where it would be made, can be written to.
fn unwritable(dir: &Path) -> Option<DoctorFinding> {
    let place = dir.ancestors().find(|place| place.exists())?;
    if is_writable(place) {
        return None;
    }
    Some(DoctorFinding::warning(
        "index",
        format!(
            "`{}` cannot be written to, so the index cannot be kept up to date there",
            place.display()
        ),
        "choose a place that can, with `--index`",
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
