//! The index of a folder: is there one, is it whole, of which version, who writes to it, and can it be written.

use std::path::Path;

use docent_search::{Embedded, Engine as _, Error, is_kept};

use super::Finding;
use crate::connect::steps::quoted;
use crate::knowledge::counted;

/// What can be said about the index in a folder.
pub(crate) async fn findings(dir: &Path, folder: &Path) -> Vec<Finding> {
    let mut found = vec![state(dir, folder).await];
    if is_kept(dir) {
        found.push(Finding::good(
            "index",
            "a running docent keeps it up to date",
        ));
    }
    if let Some(finding) = unwritable(dir) {
        found.push(finding);
    }
    found
}

async fn state(dir: &Path, folder: &Path) -> Finding {
    let again = format!(
        "`docent index {}` mends it",
        quoted(&folder.display().to_string())
    );
    let shown = dir.display();
    // Read only: opening for writing would mend at once, and nobody asked for that.
    let engine = match Embedded::open_read_only(dir, None) {
        Ok(engine) => engine,
        Err(Error::Missing { .. }) => {
            return Finding::warning(
                "index",
                format!("there is none yet in `{shown}`"),
                format!(
                    "`docent serve` makes it, or `docent index {}`",
                    quoted(&folder.display().to_string())
                ),
            );
        }
        Err(error @ Error::Format { .. }) => {
            return Finding::warning(
                "index",
                error.to_string(),
                format!("it is made again beside it: {again}"),
            );
        }
        Err(error) => return Finding::wrong("index", error.to_string(), again),
    };
    if let Some(what) = engine.damaged().first() {
        return Finding::wrong("index", format!("a part is damaged: {what}"), again);
    }
    match engine.status().await {
        Ok(status) => Finding::good(
            "index",
            format!(
                "whole, with {} in `{shown}`",
                counted(status.documents, "document")
            ),
        ),
        Err(error) => Finding::wrong("index", error.to_string(), again),
    }
}

/// Whether the place of the index, or where it would be made, can be written to.
fn unwritable(dir: &Path) -> Option<Finding> {
    let place = dir.ancestors().find(|place| place.exists())?;
    if is_writable(place) {
        return None;
    }
    Some(Finding::warning(
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
