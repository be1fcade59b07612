//! Background sync: keeps the index up to date with the folder while the server answers, and notifies `/readyz`,
//! subscribed clients and the terminal.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use docent_mcp::App;
use docent_search::EngineStatus;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::super::index::{save_losses, summary};
use super::super::problem_lines::problem_lines;
use super::folder_watcher::FolderWatcher;
use super::{CommandContext, embed_pending, stale_permissions};
use crate::app::OVERVIEW;
use crate::cli_error::CliError;
use crate::corpus::{self, FileStateCache, SyncObserver, SyncReport};
use crate::knowledge_base::KnowledgeBase;
use crate::output::{self, ProgressReporter};
use crate::readiness::{Readiness, SyncState};
use crate::settings::{FILE, Settings, SettingsReloader};

/// Maximum number of problems to print after a sync; `docent index` prints all of them.
const MAX_PROBLEMS: usize = 10;

/// Delay before a failed sync, or a failed attempt to become the writer, is retried.
const RETRY: Duration = Duration::from_secs(10);

/// What a sync updates and notifies: the knowledge base, the app with its subscribers, and the readiness.
#[derive(Clone)]
pub(super) struct SyncContext {
    pub(super) knowledge: Arc<KnowledgeBase>,
    pub(super) app: App,
    pub(super) readiness: Arc<Readiness>,
}

/// Starts the sync loop on a blocking thread, where reading files delays no request. It runs until the server stops; an
/// error is the reason for which it had to stop. `is_writer` says that this process is the writer and has already
/// withdrawn documents with outdated permissions.
pub(super) fn start(
    context: &CommandContext,
    sync: SyncContext,
    is_writer: bool,
    stop: CancellationToken,
) -> JoinHandle<Result<(), CliError>> {
    let syncer = FolderSyncer {
        folder: context.folder.clone(),
        index: context.index_location.existing().to_owned(),
        settings: context.settings.clone(),
        reload: SettingsReloader::new(&context.folder, context.flags.clone()),
        sync,
        are_permissions_current: is_writer,
        stop,
    };
    let runtime = Handle::current();
    tokio::task::spawn_blocking(move || runtime.block_on(syncer.run()))
}

/// The sync loop of one folder and its index.
struct FolderSyncer {
    folder: PathBuf,
    index: PathBuf,
    settings: Settings,
    reload: SettingsReloader,
    sync: SyncContext,
    /// Whether no document in the index was made under other permissions. Unknown whenever another process wrote to
    /// the index, and after the permissions have changed.
    are_permissions_current: bool,
    stop: CancellationToken,
}

impl FolderSyncer {
    async fn run(mut self) -> Result<(), CliError> {
        // Watches before the first scan, so that no change during it is missed.
        let changes = self
            .settings
            .watch
            .then(|| FolderWatcher::watch(&self.folder, &self.index));
        let mut cache = FileStateCache::default();
        let mut is_first = true;
        loop {
            if !self.leads().await {
                self.are_permissions_current = false;
                tokio::select! {
                    () = self.stop.cancelled() => return Ok(()),
                    () = tokio::time::sleep(RETRY) => continue,
                }
            }
            self.withdraw_stale().await?;
            let outcome = self.sync_once(&mut cache).await;
            if let Ok(report) = &outcome {
                save_losses(report, &self.index);
            }
            let is_failed = outcome.is_err();
            if self.sync.report_outcome(outcome, is_first).await
                && self.sync.knowledge.documents() == 0
            {
                self.warn_empty();
            }
            is_first = false;
            let is_due = || changes.as_ref().is_some_and(FolderWatcher::has_changes);
            embed_pending::embed_all(&self.sync, &self.stop, is_due).await;
            let next = async {
                match &changes {
                    Some(changes) => changes.wait_for_change().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.stop.cancelled() => return Ok(()),
                () = next => {}
                // Retry: a full disk may have space again, and an unmounted folder may be back.
                () = tokio::time::sleep(RETRY), if is_failed => {}
            }
            if self.reload() {
                cache = FileStateCache::default();
                self.are_permissions_current = false;
            }
        }
    }

    /// Withdraws documents made under other permissions, once each time that there may be some. If that fails, the
    /// server stops: it must not answer from them.
    async fn withdraw_stale(&mut self) -> Result<(), CliError> {
        if self.are_permissions_current {
            return Ok(());
        }
        let engine = self.sync.knowledge.engine.as_ref();
        let transform = self.settings.document_transform();
        let withdrawn = stale_permissions::withdraw_or_stop(engine, &transform).await;
        if withdrawn.is_err() {
            self.stop.cancel();
        }
        self.are_permissions_current = true;
        withdrawn
    }

    /// Whether this process is the leader, which writes the index. A follower only publishes the leader's changes, and
    /// takes over when the leader's lease expires.
    async fn leads(&self) -> bool {
        match self.sync.knowledge.engine.acquire_leadership().await {
            Ok(true) => true,
            Ok(false) => {
                self.sync.readiness.set_sync(SyncState::ReadOnly);
                self.sync.refresh_counts().await;
                false
            }
            Err(error) => {
                output::error(&error.into());
                false
            }
        }
    }

    /// Reloads the settings file if it changed, applies the live settings and reports those that need a restart.
    /// Returns true if all files have to be processed again.
    fn reload(&mut self) -> bool {
        let reloaded = match self.reload.poll(std::env::vars_os().collect()) {
            Ok(Some(reloaded)) => reloaded,
            Ok(None) => return false,
            Err(problem) => {
                let text = format!(
                    "{FILE} is invalid, keeping the current settings: {}",
                    problem.chain()
                );
                output::warn(&text, problem.hint.as_deref());
                return false;
            }
        };
        if !reloaded.live.is_empty() {
            output::say(&format!(
                "{FILE} changed: applied {}",
                quoted_keys(&reloaded.live)
            ));
        }
        if !reloaded.waiting.is_empty() {
            output::say(&format!(
                "{FILE} changed: restart to apply {}",
                quoted_keys(&reloaded.waiting)
            ));
        }
        let new = reloaded.settings;
        self.sync.knowledge.set_url_template(new.documents_url);
        self.settings.ingest = new.ingest;
        self.settings.formats = new.formats;
        self.settings.fields = new.fields;
        self.sync
            .knowledge
            .set_claim_mapping(new.permissions.claims.clone());
        self.settings.permissions = new.permissions;
        reloaded.remakes
    }

    fn warn_empty(&self) {
        let text = format!("there are no documents in `{}`", self.folder.display());
        let cure = if self.settings.watch {
            "put documents into it, and they are indexed within seconds"
        } else {
            "put documents into it and restart the server"
        };
        let hint = format!("{cure}; docs/formats.md lists the supported formats");
        output::warn(&text, Some(&hint));
    }

    async fn sync_once(&self, cache: &mut FileStateCache) -> Result<SyncReport, CliError> {
        let mut reporter = SyncReporter {
            sync: &self.sync,
            stop: self.stop.clone(),
            progress: ProgressReporter::lines("indexing"),
            batches: 0,
        };
        let engine = self.sync.knowledge.engine.clone();
        let options = self.settings.sync_options();
        corpus::sync(&self.folder, engine.as_ref(), options, cache, &mut reporter).await
    }
}

impl SyncContext {
    /// Reports the outcome of a sync. After the first one, a sync without changes prints nothing. Returns true if a
    /// report was printed.
    async fn report_outcome(&self, outcome: Result<SyncReport, CliError>, is_first: bool) -> bool {
        self.refresh_counts().await;
        match outcome {
            Ok(report) if report.stopped => false,
            Ok(report) => {
                self.readiness.set_sync(SyncState::Done);
                let is_news = is_first || report.indexed + report.removed > 0;
                if is_news {
                    print_report(&report, self.knowledge.documents());
                }
                is_news
            }
            Err(problem) => {
                self.readiness.set_sync(SyncState::Failed);
                output::say("indexing failed; the previous state of the index is still served");
                output::error(&problem);
                false
            }
        }
    }

    /// Copies the status of the engine into the readiness.
    pub(super) async fn refresh_status(&self) {
        match self.knowledge.engine.status().await {
            Ok(status) => self.readiness.set_status(status),
            Err(error) => tracing::warn!(%error, "cannot read the status of the engine"),
        }
    }

    /// Refreshes the counts, and notifies subscribed clients if the tool descriptions have changed.
    async fn refresh_counts(&self) {
        self.refresh_status().await;
        if self.knowledge.refresh_counts().await.unwrap_or(false) {
            let changes = self.app.changes();
            changes.tools();
            changes.resource(OVERVIEW);
        }
    }
}

fn quoted_keys(keys: &[String]) -> String {
    let keys: Vec<_> = keys.iter().map(|key| format!("`{key}`")).collect();
    keys.join(", ")
}

fn print_report(report: &SyncReport, documents: u64) {
    for line in problem_lines(report, MAX_PROBLEMS) {
        output::say(&line);
    }
    output::say(&summary(report, documents));
}

/// Observer of a running sync: forwards progress to the readiness and the terminal.
struct SyncReporter<'a> {
    sync: &'a SyncContext,
    stop: CancellationToken,
    progress: ProgressReporter,
    batches: usize,
}

impl SyncObserver for SyncReporter<'_> {
    fn at(&mut self, done: usize, total: usize) {
        self.sync
            .readiness
            .set_sync(SyncState::Running { done, total });
        self.progress.at(done, total);
    }

    fn applied(&mut self, status: EngineStatus) {
        self.sync.readiness.set_status(status);
        self.batches += 1;
        // Tool descriptions reflect what is indexed so far. Refreshing takes time proportional to the index, so it runs
        // after batches 1, 2, 4, 8 and so on, which keeps the total cost linear.
        if self.batches.is_power_of_two() {
            let sync = self.sync.clone();
            tokio::spawn(async move { sync.refresh_counts().await });
        }
    }

    fn stop(&self) -> bool {
        self.stop.is_cancelled()
    }
}
