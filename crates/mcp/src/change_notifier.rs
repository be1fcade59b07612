//! Change notifications from the app to every client that listens with `subscriptions/listen`.
//!
//! They go through a bounded broadcast channel, so a slow listener can delay neither the app nor the other listeners.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::broadcast;

/// A change that clients can subscribe to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ChangeEvent {
    Tools,
    Prompts,
    Resources,
    Resource(String),
}

/// Capacity of the channel. A listener that falls further behind is disconnected instead of fed from an unbounded
/// queue. It loses nothing: a change only says that something is new, and the listener reads the current state when it
/// connects again.
const QUEUE: usize = 64;

/// Handle with which a program announces changes of its app. All clones notify the same listeners.
///
/// ```rust
/// use docent_mcp::App;
///
/// let app = App::builder("tides", "1.0.0").build()?;
/// let changes = app.changes();
/// changes.tools(); // clients list the tools again
/// changes.resource("docs://tides/today"); // clients read this resource again
/// # Ok::<(), docent_mcp::BuildError>(())
/// ```
#[derive(Debug, Clone)]
pub struct ChangeNotifier {
    sender: broadcast::Sender<ChangeEvent>,
    tools: Arc<AtomicU64>,
}

impl ChangeNotifier {
    pub(crate) fn new() -> Self {
        Self {
            sender: broadcast::Sender::new(QUEUE),
            tools: Arc::default(),
        }
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<ChangeEvent> {
        self.sender.subscribe()
    }

    /// Version counter of the tools, by which a cached list is known to be stale.
    pub(crate) fn tools_version(&self) -> u64 {
        self.tools.load(Ordering::Acquire)
    }

    /// Announces that tools were added or removed, or that a descriptor changed.
    pub fn tools(&self) {
        self.tools.fetch_add(1, Ordering::Release);
        self.send(ChangeEvent::Tools);
    }

    /// Announces that the list of prompts changed.
    pub fn prompts(&self) {
        self.send(ChangeEvent::Prompts);
    }

    /// Announces that the list of resources changed.
    pub fn resources(&self) {
        self.send(ChangeEvent::Resources);
    }

    /// Announces that the content of the resource at `uri` changed.
    pub fn resource(&self, uri: impl Into<String>) {
        self.send(ChangeEvent::Resource(uri.into()));
    }

    fn send(&self, change: ChangeEvent) {
        // An error means that nobody listens, which is the usual case.
        let _ = self.sender.send(change);
    }
}
