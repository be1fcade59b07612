//! Word that a list or a resource has changed, from the app to every client that listens.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::broadcast;

/// What changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ChangeEvent {
    Tools,
    Prompts,
    Resources,
    Resource(String),
}

/// A listener that falls this far behind is cut off rather than fed from an endless queue.
const QUEUE: usize = 64;

/// A handle with which the app's owner says that something changed. Clones speak to the same
/// listeners.
#[derive(Debug, Clone)]
pub struct ChangeNotifier {
    word: broadcast::Sender<ChangeEvent>,
    tools: Arc<AtomicU64>,
}

impl ChangeNotifier {
    pub(crate) fn new() -> Self {
        Self {
            word: broadcast::Sender::new(QUEUE),
            tools: Arc::default(),
        }
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<ChangeEvent> {
        self.word.subscribe()
    }

    /// Counts the changes of the tools, so that a list made before one is known to be old.
    pub(crate) fn tools_version(&self) -> u64 {
        self.tools.load(Ordering::Acquire)
    }

    /// The tools, or what they say about themselves, changed.
    pub fn tools(&self) {
        self.tools.fetch_add(1, Ordering::Release);
        self.send(ChangeEvent::Tools);
    }

    /// The prompts changed.
    pub fn prompts(&self) {
        self.send(ChangeEvent::Prompts);
    }

    /// The list of resources changed.
    pub fn resources(&self) {
        self.send(ChangeEvent::Resources);
    }

    /// The content of one resource changed.
    pub fn resource(&self, uri: impl Into<String>) {
        self.send(ChangeEvent::Resource(uri.into()));
    }

    fn send(&self, change: ChangeEvent) {
        // Nobody listening is the usual case, not a failure.
        let _ = self.word.send(change);
    }
}
