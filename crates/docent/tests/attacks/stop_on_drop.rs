//! The end of threads that go on until a flag is set.

use std::sync::atomic::{AtomicBool, Ordering};

/// Sets its flag when it goes, also where the test panics: a scope joins its threads before it lets a panic out, and
/// would join one that waits for the flag for ever. It is made before the first thread of the scope.
pub(crate) struct StopOnDrop<'a>(pub(crate) &'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
