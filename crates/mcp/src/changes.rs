//! Word that a list or a resource has changed, from the app to every client that listens.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::broadcast;

/// What changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
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
pub struct Changes {
    word: broadcast::Sender<Change>,
    tools: Arc<AtomicU64>,
}

impl Changes {
    pub(crate) fn new() -> Self {
        Self {
            word: broadcast::Sender::new(QUEUE),
            tools: Arc::default(),
        }
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Change> {
        self.word.subscribe()
    }

    /// Counts the changes of the tools, so that a list made before one is known to be old.
    pub(crate) fn tools_version(&self) -> u64 {
        self.tools.load(Ordering::Acquire)
    }

    /// The tools, or what they say about themselves, changed.
    pub fn tools(&self) {
        self.tools.fetch_add(1, Ordering::Release);
        self.send(Change::Tools);
    }

    /// The prompts changed.
    pub fn prompts(&self) {
        self.send(Change::Prompts);
    }

    /// The list of resources changed.
    pub fn resources(&self) {
        self.send(Change::Resources);
    }

    /// The content of one resource changed.
    pub fn resource(&self, uri: impl Into<String>) {
        self.send(Change::Resource(uri.into()));
    }

    fn send(&self, change: Change) {
        // Nobody listening is the usual case, not a failure.
        let _ = self.word.send(change);
    }
}
