//! Fails closed on documents that were indexed under other permissions: they may be readable where today's rules
//! forbid it, so they are withdrawn from the index before anything is answered from them.
//!
//! Only the process that writes to the index can withdraw them. Others wait for it, and refuse to serve if it does not.

use std::time::{Duration, Instant};

use docent_search::Engine;

use super::{CommandContext, OpenedIndex};
use crate::cli_error::CliError;
use crate::corpus;
use crate::display_text::pluralize;
use crate::document_transform::DocumentTransform;
use crate::output;

/// How long a start waits for the process that holds the writer lease. A dead one loses it after ten seconds, so a
/// server that was killed and restarted with stricter rules takes over within this time.
const TAKEOVER_TIMEOUT: Duration = Duration::from_secs(15);
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// How often a running server tries to withdraw documents until it stops rather than answer from them.
const WITHDRAW_ATTEMPTS: u32 = 3;
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Withdraws outdated documents before a server answers its first request, or refuses to start. Returns whether this
/// process is the writer and has done so.
pub(super) async fn withdraw_at_start(
    context: &CommandContext,
    index: &OpenedIndex,
) -> Result<bool, CliError> {
    let (engine, transform) = (index.engine.as_ref(), context.settings.document_transform());
    let deadline = Instant::now() + TAKEOVER_TIMEOUT;
    loop {
        if !index.read_only && engine.acquire_leadership().await? {
            withdraw(engine, &transform).await?;
            return Ok(true);
        }
        let count = corpus::count_stale(engine, &transform).await?;
        if count == 0 {
            return Ok(false);
        }
        if index.read_only || Instant::now() >= deadline {
            let documents = pluralize(count as u64, "document");
            let message = format!("{documents} in the index were made under other permissions");
            let hint = "wait until the process that keeps the index has read them again, stop that process, or index with `docent index`";
            return Err(CliError::failed(message).hint(hint));
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Withdraws outdated documents while a server runs: after its rules have changed, or after it became the writer. An
/// error means that the server must stop.
pub(super) async fn withdraw_or_stop(
    engine: &dyn Engine,
    transform: &DocumentTransform,
) -> Result<(), CliError> {
    let mut attempt = 1;
    loop {
        match withdraw(engine, transform).await {
            Ok(()) => return Ok(()),
            Err(error) if attempt >= WITHDRAW_ATTEMPTS => {
                let message = "documents made under other permissions cannot be withdrawn, so the server stops";
                let hint = "once the index can be written again, start the server again";
                return Err(CliError::failed(message).because(error).hint(hint));
            }
            Err(error) => output::error(&error),
        }
        attempt += 1;
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
}

async fn withdraw(engine: &dyn Engine, transform: &DocumentTransform) -> Result<(), CliError> {
    let count = corpus::remove_stale(engine, transform).await?;
    if count > 0 {
        let documents = pluralize(count as u64, "document");
        output::say(&format!(
            "{documents} were indexed under other permissions and are read again first"
        ));
    }
    Ok(())
}
