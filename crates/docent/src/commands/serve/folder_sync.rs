//! Brings the index in step with the folder while the server answers, and tells everybody who
//! should know: `/readyz`, listening clients and the person at the terminal.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use docent_mcp::App;
use docent_search::EngineStatus;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::super::index::{problem_lines, save_losses, summary};
use super::folder_watcher::FolderWatcher;
use super::{CommandContext, embed_pending, stale_permissions};
use crate::app::OVERVIEW;
use crate::cli_error::CliError;
use crate::corpus::{self, FileStateCache, SyncObserver, SyncReport};
use crate::knowledge_base::KnowledgeBase;
use crate::output::{self, ProgressReporter};
use crate::readiness::{Readiness, SyncState};
use crate::settings::{FILE, Settings, SettingsReloader};

/// The most problems that are said one by one; `docent index` says all of them.
const MAX_COMPLAINTS: usize = 10;

/// How long after a look that failed comes the next one, whether or not anything changed.
const RETRY: Duration = Duration::from_secs(10);

/// What a sync has to tell.
#[derive(Clone)]
pub(super) struct SyncContext {
    pub(super) knowledge: Arc<KnowledgeBase>,
    pub(super) app: App,
    pub(super) readiness: Arc<Readiness>,
}

/// Keeps the index in step on a thread where reading files keeps nobody waiting, until the server stops. An error is a
/// reason for which it had to stop. `is_writer` says that this process is the writer and has withdrawn what other
/// permissions left open.
pub(super) fn start(
    desk: &CommandContext,
    parts: SyncContext,
    is_writer: bool,
    stop: CancellationToken,
) -> JoinHandle<Result<(), CliError>> {
    let keeper = FolderSyncer {
        folder: desk.folder.clone(),
        index: desk.place.existing().to_owned(),
        settings: desk.settings.clone(),
        reload: SettingsReloader::new(&desk.folder, desk.flags.clone()),
        parts,
        are_permissions_current: is_writer,
        stop,
    };
    let runtime = Handle::current();
    tokio::task::spawn_blocking(move || runtime.block_on(keeper.run()))
}

/// Keeps one folder and its index in step.
struct FolderSyncer {
    folder: PathBuf,
    index: PathBuf,
    settings: Settings,
    reload: SettingsReloader,
    parts: SyncContext,
    /// Whether no document in the index was made under other permissions. Unknown whenever another process wrote to
    /// the index, and after the permissions have changed.
    are_permissions_current: bool,
    stop: CancellationToken,
}

impl FolderSyncer {
    async fn run(mut self) -> Result<(), CliError> {
        // Watched from the beginning, so that nothing that happens during the first look is missed.
        let changes = self
            .settings
            .watch
            .then(|| FolderWatcher::watch(&self.folder, &self.index));
        let mut seen = FileStateCache::default();
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
            let outcome = self.sync_once(&mut seen).await;
            if let Ok(report) = &outcome {
                save_losses(report, &self.index);
            }
            let is_failed = outcome.is_err();
            if self.parts.report_outcome(outcome, is_first).await
                && self.parts.knowledge.documents() == 0
            {
                self.warn_empty();
            }
            is_first = false;
            let is_due = || changes.as_ref().is_some_and(FolderWatcher::has_changes);
            embed_pending::embed_all(&self.parts, &self.stop, is_due).await;
            let next = async {
                match &changes {
                    Some(changes) => changes.wait_for_change().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.stop.cancelled() => return Ok(()),
                () = next => {}
                // A disk that was full may have space again, a folder that was away may be back.
                () = tokio::time::sleep(RETRY), if is_failed => {}
            }
            if self.reload() {
                seen = FileStateCache::default();
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
        let engine = self.parts.knowledge.engine.as_ref();
        let transform = self.settings.document_transform();
        let withdrawn = stale_permissions::withdraw_or_stop(engine, &transform).await;
        if withdrawn.is_err() {
            self.stop.cancel();
        }
        self.are_permissions_current = true;
        withdrawn
    }

    /// Whether this process keeps the index. While another one does, this one only tells what that one has
    /// changed, and takes over when it ends.
    async fn leads(&self) -> bool {
        match self.parts.knowledge.engine.acquire_leadership().await {
            Ok(true) => true,
            Ok(false) => {
                self.parts.readiness.set_sync(SyncState::ReadOnly);
                self.parts.refresh_counts().await;
                false
            }
            Err(error) => {
                output::error(&error.into());
                false
            }
        }
    }

    /// Takes over what changed in the settings file, and says what could not be. True when documents have to
    /// be compared with their files as if nothing had been seen.
    fn reload(&mut self) -> bool {
        let reloaded = match self.reload.poll(std::env::vars_os().collect()) {
            Ok(Some(reloaded)) => reloaded,
            Ok(None) => return false,
            Err(problem) => {
                let text = format!(
                    "{FILE} cannot be used, so the settings stay: {}",
                    problem.chain()
                );
                output::warn(&text, problem.hint.as_deref());
                return false;
            }
        };
        if !reloaded.live.is_empty() {
            output::say(&format!(
                "{FILE} changed: {} from now on",
                quoted_keys(&reloaded.live)
            ));
        }
        if !reloaded.waiting.is_empty() {
            output::say(&format!(
                "{FILE} changed: {} from the next start on",
                quoted_keys(&reloaded.waiting)
            ));
        }
        let new = reloaded.settings;
        self.parts.knowledge.set_url_template(new.documents_url);
        self.settings.ingest = new.ingest;
        self.settings.formats = new.formats;
        self.settings.fields = new.fields;
        self.parts
            .knowledge
            .set_claim_mapping(new.permissions.claims.clone());
        self.settings.permissions = new.permissions;
        reloaded.remakes
    }

    fn warn_empty(&self) {
        let text = format!("there are no documents in `{}`", self.folder.display());
        let cure = if self.settings.watch {
            "put documents into it, and they are found"
        } else {
            "put documents into it and start again"
        };
        let hint = format!("{cure}; docs/formats.md says what is read");
        output::warn(&text, Some(&hint));
    }

    async fn sync_once(&self, seen: &mut FileStateCache) -> Result<SyncReport, CliError> {
        let mut watch = SyncReporter {
            parts: &self.parts,
            stop: self.stop.clone(),
            progress: ProgressReporter::lines("indexing"),
            batches: 0,
        };
        let engine = self.parts.knowledge.engine.clone();
        let way = self.settings.sync_options();
        corpus::sync(&self.folder, engine.as_ref(), way, seen, &mut watch).await
    }
}

impl SyncContext {
    /// Tells how a look at the folder ended. A later one that found nothing new has nothing to say; true
    /// when something was said about the documents.
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
                output::say("the folder could not be indexed; what was indexed before is served");
                output::error(&problem);
                false
            }
        }
    }

    /// Notes how the engine is.
    pub(super) async fn refresh_status(&self) {
        match self.knowledge.engine.status().await {
            Ok(status) => self.readiness.set_status(status),
            Err(error) => tracing::warn!(%error, "the engine does not say how it is"),
        }
    }

    /// Counts again, and tells clients when what they were told is no longer true.
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
    for line in problem_lines(report, MAX_COMPLAINTS) {
        output::say(&line);
    }
    output::say(&summary(report, documents));
}

/// Passes on what happens during a sync.
struct SyncReporter<'a> {
    parts: &'a SyncContext,
    stop: CancellationToken,
    progress: ProgressReporter,
    batches: usize,
}

impl SyncObserver for SyncReporter<'_> {
    fn at(&mut self, done: usize, total: usize) {
        self.parts
            .readiness
            .set_sync(SyncState::Running { done, total });
        self.progress.at(done, total);
    }

    fn applied(&mut self, status: EngineStatus) {
        self.parts.readiness.set_status(status);
        self.batches += 1;
        // The tools tell about what is there already. Looking at all fields takes longer the more
        // there is, so that it is done after the first batch, the second, the fourth and so on.
        if self.batches.is_power_of_two() {
            let parts = self.parts.clone();
            tokio::spawn(async move { parts.refresh_counts().await });
        }
    }

    fn stop(&self) -> bool {
        self.stop.is_cancelled()
    }
}
