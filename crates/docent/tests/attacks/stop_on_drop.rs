//! A drop guard that stops the background threads of a test, even if the test panics.

use std::sync::atomic::{AtomicBool, Ordering};

/// Sets its flag on drop, also during a panic. A thread scope joins its threads before it propagates a panic, so
/// without this guard it would wait forever for a thread that runs until the flag is set. Create it before the first
/// thread.
pub(crate) struct StopOnDrop<'a>(pub(crate) &'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
