//! What the system says about a folder into the moments at which it should be looked at again.
//!
//! What it says is taken as a hint that something changed, never as what: names can be wrong, late or
//! lost. A look at the whole folder finds out, soon after a hint, and now and then without one.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use docent_ingest::IGNORE_FILES;
use notify::{Config, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use crate::output;

/// How long nothing must have changed before a look: programs write a file in several steps.
const QUIET: Duration = Duration::from_millis(300);

/// The longest wait for quiet, where changes do not end.
const PATIENCE: Duration = Duration::from_secs(2);

/// How often the folder is looked at whatever the system says: a hint may have been lost.
const EVERY: Duration = Duration::from_secs(600);

/// The same where the system gives no hints.
const EVERY_UNWATCHED: Duration = Duration::from_secs(30);

/// Changes of one folder.
pub(super) struct FolderWatcher {
    hints: Arc<ChangeSignal>,
    every: Duration,
    /// Watches for as long as it is kept.
    _watcher: Option<RecommendedWatcher>,
}

#[derive(Default)]
struct ChangeSignal {
    is_due: AtomicBool,
    woken: Notify,
}

impl ChangeSignal {
    fn notify(&self) {
        self.is_due.store(true, Ordering::Release);
        self.woken.notify_one();
    }
}

impl FolderWatcher {
    /// Watches a folder, but not the index in it.
    pub(super) fn watch(folder: &Path, index: &Path) -> Self {
        let hints = Arc::new(ChangeSignal::default());
        let told = hints.clone();
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let index = index.canonicalize().unwrap_or_else(|_| index.to_owned());
        let root = folder.clone();
        let handler = move |event: notify::Result<Event>| {
            if is_relevant(&event, &root, &index) {
                told.notify();
            }
        };
        let watching =
            RecommendedWatcher::new(handler, Config::default().with_follow_symlinks(false))
                .and_then(|mut watcher| {
                    watcher.watch(&folder, RecursiveMode::Recursive)?;
                    Ok(watcher)
                });
        match watching {
            Ok(watcher) => Self {
                hints,
                every: EVERY,
                _watcher: Some(watcher),
            },
            Err(error) => {
                let text = format!("the folder cannot be watched: {error}");
                let hint = format!(
                    "it is looked at every {} seconds",
                    EVERY_UNWATCHED.as_secs()
                );
                output::warn(&text, Some(&hint));
                Self {
                    hints,
                    every: EVERY_UNWATCHED,
                    _watcher: None,
                }
            }
        }
    }

    /// Whether something has changed since the last look.
    pub(super) fn has_changes(&self) -> bool {
        self.hints.is_due.load(Ordering::Acquire)
    }

    /// Waits until the folder should be looked at again.
    pub(super) async fn wait_for_change(&self) {
        let _ = timeout(self.every, self.hints.woken.notified()).await;
        let quiet = async { while timeout(QUIET, self.hints.woken.notified()).await.is_ok() {} };
        tokio::select! {
            () = quiet => {}
            () = sleep(PATIENCE) => {}
        }
        self.hints.is_due.store(false, Ordering::Release);
    }
}

/// Whether an event can have changed what is to be found: not by reading, not in the index, and not in
/// what is hidden, ignore files apart.
fn is_relevant(event: &notify::Result<Event>, root: &Path, index: &Path) -> bool {
    let Ok(event) = event else {
        return true;
    };
    if matches!(event.kind, EventKind::Access(_)) {
        return false;
    }
    let is_hidden = |path: &Path| {
        let inside = path.strip_prefix(root).unwrap_or(path);
        let mut names = inside.components();
        names.any(|name| name.as_os_str().as_encoded_bytes().starts_with(b"."))
    };
    // What an ignore file says decides about the files around it.
    let is_rules = |path: &Path| {
        let name = path.file_name();
        name.is_some_and(|name| IGNORE_FILES.iter().any(|known| name == *known))
            && path.parent().is_some_and(|folder| !is_hidden(folder))
    };
    let counts = |path: &PathBuf| !path.starts_with(index) && (!is_hidden(path) || is_rules(path));
    // An event without a path says that some were lost.
    event.paths.is_empty() || event.paths.iter().any(counts)
}

#[cfg(test)]
mod tests {
    use notify::event::{AccessKind, CreateKind, ModifyKind};

    use super::*;

    #[test]
    fn only_what_can_be_found_matters() {
        let (root, index) = (Path::new("/notes"), Path::new("/notes/index"));
        let event = |kind, path: &str| Ok(Event::new(kind).add_path(path.into()));
        let create = EventKind::Create(CreateKind::File);
        let modify = EventKind::Modify(ModifyKind::Any);
        for (event, expected) in [
            (event(create, "/notes/a.md"), true),
            (event(modify, "/notes/b/c.md"), true),
            (
                event(EventKind::Access(AccessKind::Any), "/notes/a.md"),
                false,
            ),
            (event(modify, "/notes/index/x"), false),
            (event(modify, "/notes/.docent/x"), false),
            (event(modify, "/notes/.a.md.swp"), false),
            (event(modify, "/notes/b/.gitignore"), true),
            (event(modify, "/notes/.git/.gitignore"), false),
            (Ok(Event::new(EventKind::Other)), true),
            (Err(notify::Error::generic("lost")), true),
        ] {
            assert_eq!(is_relevant(&event, root, index), expected, "{event:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn many_hints_are_one_look() {
        let changes = FolderWatcher {
            hints: Arc::default(),
            every: EVERY,
            _watcher: None,
        };
        assert!(!changes.has_changes());
        changes.hints.notify();
        changes.hints.notify();
        assert!(changes.has_changes());
        changes.wait_for_change().await;
        assert!(!changes.has_changes());
        // Without a hint the next look comes after a while.
        let start = tokio::time::Instant::now();
        changes.wait_for_change().await;
        assert!(start.elapsed() >= EVERY);
    }
}
