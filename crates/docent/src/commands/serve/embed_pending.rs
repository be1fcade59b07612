//! Background embedding: computes missing vectors while the server answers, in batches with retry and backoff.

use std::time::Duration;

use docent_search::{EngineStatus, PartState};
use tokio_util::sync::CancellationToken;

use super::folder_sync::SyncContext;
use crate::output::{self, ProgressReporter};

/// Batch size in documents. The server can stop between two batches.
const BATCH_SIZE: usize = 8_192;

/// Exponential backoff after a failure, such as of an embeddings endpoint: first and maximum delay.
const INITIAL_BACKOFF: Duration = Duration::from_secs(2);
const MAX_BACKOFF: Duration = Duration::from_secs(300);

/// Embeds pending documents until none is left, a sync `is_due`, or the server stops. Failures are retried with
/// exponential backoff.
pub(super) async fn embed_all(
    sync: &SyncContext,
    stop: &CancellationToken,
    is_due: impl Fn() -> bool,
) {
    let has_model = |status: EngineStatus| status.vectors != PartState::Absent;
    if !sync.knowledge.engine.status().await.is_ok_and(has_model) {
        return;
    }
    let mut progress = ProgressReporter::lines("embedding");
    let mut backoff = INITIAL_BACKOFF;
    while !stop.is_cancelled() && !is_due() {
        match sync.knowledge.engine.embed_pending(BATCH_SIZE).await {
            Ok(embedding) => {
                sync.refresh_status().await;
                let total = embedding.done + embedding.left;
                progress.at(size(embedding.done), size(total));
                if embedding.left == 0 {
                    return;
                }
                backoff = INITIAL_BACKOFF;
            }
            Err(error) => {
                let text = format!("embedding failed, retrying: {error}");
                output::warn(&text, Some(error.hint()));
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep(backoff) => {}
                }
                backoff = (backoff * 2).min(MAX_BACKOFF);
            }
        }
    }
}

fn size(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
