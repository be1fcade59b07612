//! Brings the index in step with the folder while the server answers, and tells everybody who
//! should know: `/readyz`, listening clients and the person at the terminal.

use std::path::PathBuf;
use std::sync::Arc;

use docent_mcp::App;
use docent_search::Status;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::super::index::{complaints, summary};
use super::changes::Changes;
use super::{Desk, settle};
use crate::app::OVERVIEW;
use crate::corpus::{self, Report, Seen, Watch};
use crate::knowledge::Knowledge;
use crate::output::{self, Progress};
use crate::problem::Problem;
use crate::settings::Settings;
use crate::standing::{Standing, Sync};

/// The most problems that are said one by one; `docent index` says all of them.
const MAX_COMPLAINTS: usize = 10;

/// What a sync has to tell.
#[derive(Clone)]
pub(super) struct Parts {
    pub(super) knowledge: Arc<Knowledge>,
    pub(super) app: App,
    pub(super) standing: Arc<Standing>,
}

/// Keeps the index in step on a thread where reading files keeps nobody waiting, until the server stops.
pub(super) fn start(desk: &Desk, parts: Parts, stop: CancellationToken) -> JoinHandle<()> {
    let keeper = Keeper {
        folder: desk.folder.clone(),
        index: desk.place.existing().to_owned(),
        settings: desk.settings.clone(),
        parts,
        stop,
    };
    let runtime = Handle::current();
    tokio::task::spawn_blocking(move || runtime.block_on(keeper.keep()))
}

/// Keeps one folder and its index in step.
struct Keeper {
    folder: PathBuf,
    index: PathBuf,
    settings: Settings,
    parts: Parts,
    stop: CancellationToken,
}

impl Keeper {
    async fn keep(self) {
        // Watched from the beginning, so that nothing that happens during the first look is missed.
        let changes = self
            .settings
            .watch
            .then(|| Changes::of(&self.folder, &self.index));
        let mut seen = Seen::default();
        let mut is_first = true;
        loop {
            let outcome = self.look(&mut seen).await;
            let folder = self.folder.display().to_string();
            self.parts.tell(outcome, &folder, is_first).await;
            is_first = false;
            let is_due = || changes.as_ref().is_some_and(Changes::are_due);
            settle::all(&self.parts, &self.stop, is_due).await;
            let Some(changes) = &changes else {
                return;
            };
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = changes.next() => {}
            }
        }
    }

    async fn look(&self, seen: &mut Seen) -> Result<Report, Problem> {
        let mut watch = Told {
            parts: &self.parts,
            stop: self.stop.clone(),
            progress: Progress::lines("indexing"),
            batches: 0,
        };
        let engine = self.parts.knowledge.engine.clone();
        let way = self.settings.way();
        corpus::sync(&self.folder, engine.as_ref(), way, seen, &mut watch).await
    }
}

impl Parts {
    /// Tells how a look at the folder ended. A later one that found nothing new has nothing to say.
    async fn tell(&self, outcome: Result<Report, Problem>, folder: &str, is_first: bool) {
        self.count().await;
        match outcome {
            Ok(report) if report.stopped => {}
            Ok(report) => {
                self.standing.sync(Sync::Done);
                if is_first || report.indexed + report.removed > 0 {
                    say(&report, self.knowledge.documents(), folder);
                }
            }
            Err(problem) => {
                self.standing.sync(Sync::Failed);
                output::say("the folder could not be indexed; what was indexed before is served");
                output::problem(&problem);
            }
        }
    }

    /// Notes how the engine is.
    pub(super) async fn note(&self) {
        match self.knowledge.engine.status().await {
            Ok(status) => self.standing.engine(status),
            Err(error) => tracing::warn!(%error, "the engine does not say how it is"),
        }
    }

    /// Counts again, and tells clients when what they were told is no longer true.
    async fn count(&self) {
        self.note().await;
        if self.knowledge.count().await.unwrap_or(false) {
            let changes = self.app.changes();
            changes.tools();
            changes.resource(OVERVIEW);
        }
    }
}

fn say(report: &Report, documents: u64, folder: &str) {
    for line in complaints(report, MAX_COMPLAINTS) {
        output::say(&line);
    }
    output::say(&summary(report, documents));
    if documents == 0 {
        let hint = "put documents into it and start again; docs/formats.md says what is read";
        output::warn(&format!("there are no documents in `{folder}`"), Some(hint));
    }
}

/// Passes on what happens during a sync.
struct Told<'a> {
    parts: &'a Parts,
    stop: CancellationToken,
    progress: Progress,
    batches: usize,
}

impl Watch for Told<'_> {
    fn at(&mut self, done: usize, total: usize) {
        self.parts.standing.sync(Sync::Running { done, total });
        self.progress.at(done, total);
    }

    fn applied(&mut self, status: Status) {
        self.parts.standing.engine(status);
        self.batches += 1;
        // The tools tell about what is there already. Looking at all fields takes longer the more
        // there is, so that it is done after the first batch, the second, the fourth and so on.
        if self.batches.is_power_of_two() {
            let parts = self.parts.clone();
            tokio::spawn(async move { parts.count().await });
        }
    }

    fn stop(&self) -> bool {
        self.stop.is_cancelled()
    }
}
