//! Makes the documents findable by their meaning while the server answers.

use std::time::Duration;

use docent_search::{EngineStatus, PartState};
use tokio_util::sync::CancellationToken;

use super::folder_sync::SyncContext;
use crate::output::{self, ProgressReporter};

/// How many documents are settled at a time. Between two times the server can be stopped.
const AT_ONCE: usize = 8_192;

/// How long to wait after a failure, such as of a model behind an address, at first and at most.
const FIRST_WAIT: Duration = Duration::from_secs(2);
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// Settles until nothing is left, something else `is_due`, or the server stops. A failure is tried
/// again, later each time.
pub(super) async fn embed_all(
    parts: &SyncContext,
    stop: &CancellationToken,
    is_due: impl Fn() -> bool,
) {
    let has_model = |status: EngineStatus| status.vectors != PartState::Absent;
    if !parts.knowledge.engine.status().await.is_ok_and(has_model) {
        return;
    }
    let mut progress = ProgressReporter::lines("embedding");
    let mut wait = FIRST_WAIT;
    while !stop.is_cancelled() && !is_due() {
        match parts.knowledge.engine.embed_pending(AT_ONCE).await {
            Ok(settled) => {
                parts.refresh_status().await;
                let total = settled.done + settled.left;
                progress.at(size(settled.done), size(total));
                if settled.left == 0 {
                    return;
                }
                wait = FIRST_WAIT;
            }
            Err(error) => {
                let text = format!("some documents are not yet found by meaning: {error}");
                output::warn(&text, Some(error.hint()));
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep(wait) => {}
                }
                wait = (wait * 2).min(LONGEST_WAIT);
            }
        }
    }
}

fn size(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
