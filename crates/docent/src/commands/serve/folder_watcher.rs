//! Watches a folder for changes and debounces them into scans.
//!
//! File system events are only hints that something changed, never what: they can be wrong, late or lost. A scan of the
//! whole folder finds the changes, soon after an event, and every ten minutes without one.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use docent_ingest::IGNORE_FILES;
use notify::{Config, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use crate::output;

/// Debounce time: how long no event must arrive before a scan, because programs write a file in several steps.
const DEBOUNCE: Duration = Duration::from_millis(300);

/// Maximum debounce time if events do not stop.
const MAX_DEBOUNCE: Duration = Duration::from_secs(2);

/// Scan interval without events, because an event may have been lost.
const SCAN_INTERVAL: Duration = Duration::from_secs(600);

/// Polling interval if the folder cannot be watched.
const POLL_INTERVAL: Duration = Duration::from_secs(30);

/// Debounced change notifications of one folder. The watcher is kept only because dropping it ends the notifications.
pub(super) struct FolderWatcher {
    signal: Arc<ChangeSignal>,
    interval: Duration,
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
    /// Starts watching a folder, except for the index in it. Falls back to polling if that fails.
    pub(super) fn watch(folder: &Path, index: &Path) -> Self {
        let signal = Arc::new(ChangeSignal::default());
        let notifier = signal.clone();
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let index = index.canonicalize().unwrap_or_else(|_| index.to_owned());
        let root = folder.clone();
        let handler = move |event: notify::Result<Event>| {
            if is_relevant(&event, &root, &index) {
                notifier.notify();
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
                signal,
                interval: SCAN_INTERVAL,
                _watcher: Some(watcher),
            },
            Err(error) => {
                let text = format!("the folder cannot be watched: {error}");
                let hint = format!(
                    "polling it every {} seconds instead",
                    POLL_INTERVAL.as_secs()
                );
                output::warn(&text, Some(&hint));
                Self {
                    signal,
                    interval: POLL_INTERVAL,
                    _watcher: None,
                }
            }
        }
    }

    /// Whether something has changed since the last scan.
    pub(super) fn has_changes(&self) -> bool {
        self.signal.is_due.load(Ordering::Acquire)
    }

    /// Waits until the next scan is due: debounced after an event, or after the scan interval.
    pub(super) async fn wait_for_change(&self) {
        let _ = timeout(self.interval, self.signal.woken.notified()).await;
        let quiet = async {
            while timeout(DEBOUNCE, self.signal.woken.notified())
                .await
                .is_ok()
            {}
        };
        tokio::select! {
            () = quiet => {}
            () = sleep(MAX_DEBOUNCE) => {}
        }
        self.signal.is_due.store(false, Ordering::Release);
    }
}

/// Whether an event can affect the index. Reads, changes of the index itself and hidden files cannot, except for ignore
/// files.
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
    // A change of an ignore file can include or exclude the files around it.
    let is_rules = |path: &Path| {
        let name = path.file_name();
        name.is_some_and(|name| IGNORE_FILES.iter().any(|known| name == *known))
            && path.parent().is_some_and(|folder| !is_hidden(folder))
    };
    let matters = |path: &PathBuf| !path.starts_with(index) && (!is_hidden(path) || is_rules(path));
    // An event without a path reports an overflow: events were lost.
    event.paths.is_empty() || event.paths.iter().any(matters)
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
            signal: Arc::default(),
            interval: SCAN_INTERVAL,
            _watcher: None,
        };
        assert!(!changes.has_changes());
        changes.signal.notify();
        changes.signal.notify();
        assert!(changes.has_changes());
        changes.wait_for_change().await;
        assert!(!changes.has_changes());
        // Without an event, the next scan comes after the interval.
        let start = tokio::time::Instant::now();
        changes.wait_for_change().await;
        assert!(start.elapsed() >= SCAN_INTERVAL);
    }
}
