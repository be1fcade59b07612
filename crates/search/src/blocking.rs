//! Blocking work off the async threads, with a bound on how much of it runs at once.
//!
//! A task on tokio's blocking pool cannot be stopped, and it outlives the caller who hung up. Without a bound of its own
//! the pool grows to its 512 threads: callers who ask and leave at once had 505 of them at work. So every task takes a
//! permit before it starts and keeps it until it ends, whether or not anybody still waits. Whoever leaves before that
//! gives up the place in the queue, and the work never starts.

use std::num::NonZero;
use std::sync::Arc;
use std::thread::available_parallelism;

use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

use crate::error::SearchError;

/// Tasks for each processor: while one waits for the disk, another computes. More would only slow each other down.
const PER_PROCESSOR: usize = 2;
/// Tasks at once on a small machine, so that one long search does not make everybody wait.
const MIN_TASKS: usize = 4;
/// Tasks at once that wait for another machine and hardly compute: as many as a server works on requests by default, so
/// that no caller who stays has to queue here.
const NETWORK_TASKS: usize = 256;

/// Which work waits for which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// So short that the way to another thread and back takes longer.
    InPlace,
    /// Somebody waits for the answer.
    Answer,
    /// Nobody asked for it: indexing, vectors, leases.
    Maintenance,
}

impl Lane {
    pub(crate) const fn answer(is_short: bool) -> Self {
        if is_short {
            Self::InPlace
        } else {
            Self::Answer
        }
    }
}

/// The blocking work of one engine. Answers and maintenance have permits of their own, so that neither waits for the
/// other.
#[derive(Debug)]
pub(crate) struct EnginePools {
    answers: BlockingPool,
    maintenance: BlockingPool,
}

impl EnginePools {
    /// For an engine that computes or reads files.
    pub(crate) fn for_processors() -> Self {
        Self {
            answers: BlockingPool::for_processors(),
            maintenance: BlockingPool::for_processors(),
        }
    }

    /// For an engine whose answers wait for another machine.
    pub(crate) fn for_network() -> Self {
        Self {
            answers: BlockingPool::with_tasks(NETWORK_TASKS),
            ..Self::for_processors()
        }
    }

    /// Runs work where it keeps nobody waiting; right here outside of a runtime.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        lane: Lane,
        work: impl FnOnce() -> Result<T, SearchError> + Send + 'static,
    ) -> Result<T, SearchError> {
        let pool = match lane {
            Lane::InPlace => return work(),
            Lane::Answer => &self.answers,
            Lane::Maintenance => &self.maintenance,
        };
        match Handle::try_current() {
            Ok(runtime) => pool.run(&runtime, work).await,
            Err(_) => work(),
        }
    }
}

/// A bounded part of the runtime's blocking pool.
#[derive(Debug)]
struct BlockingPool {
    permits: Arc<Semaphore>,
}

impl BlockingPool {
    fn for_processors() -> Self {
        let processors = available_parallelism().map_or(1, NonZero::get);
        Self::with_tasks((PER_PROCESSOR * processors).max(MIN_TASKS))
    }

    fn with_tasks(tasks: usize) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(tasks)),
        }
    }

    /// Runs work as soon as there is a permit for it, in the span of whoever asks.
    async fn run<T: Send + 'static>(
        &self,
        runtime: &Handle,
        work: impl FnOnce() -> Result<T, SearchError> + Send + 'static,
    ) -> Result<T, SearchError> {
        let permits = Arc::clone(&self.permits);
        let permit = permits.acquire_owned().await.map_err(SearchError::engine)?;
        let span = tracing::Span::current();
        let task = runtime.spawn_blocking(move || {
            // Moved in here: it is given back when the work ends, not when the caller leaves.
            let _permit = permit;
            span.in_scope(work)
        });
        let _abandoned = AbortOnDrop(task.abort_handle());
        task.await.map_err(SearchError::engine)?
    }
}

/// Takes a task that has not started out of the queue when its caller leaves; one that has started goes on.
struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn no_machine_is_too_small() {
        let pool = BlockingPool::for_processors();
        assert!(pool.permits.available_permits() >= MIN_TASKS);
    }

    #[tokio::test]
    async fn work_whose_caller_left_keeps_its_permit_and_what_waited_never_starts() {
        let pool = BlockingPool::with_tasks(1);
        let runtime = Handle::current();
        let (release, gate) = mpsc::channel::<()>();
        let (started, has_started) = tokio::sync::oneshot::channel();
        let started_later = Arc::new(AtomicUsize::new(0));
        let work = |count: &Arc<AtomicUsize>| {
            let count = Arc::clone(count);
            move || Ok(count.fetch_add(1, Ordering::SeqCst))
        };

        let mut first = pool
            .run(&runtime, move || {
                let _ = started.send(());
                let _ = gate.recv();
                Ok(())
            })
            .boxed();
        assert!(first.as_mut().now_or_never().is_none());
        has_started.await.unwrap();
        drop(first);
        let mut second = pool.run(&runtime, work(&started_later)).boxed();
        let mut third = pool.run(&runtime, work(&started_later)).boxed();
        for waiting in [&mut second, &mut third] {
            assert!(waiting.as_mut().now_or_never().is_none());
        }
        assert_eq!(pool.permits.available_permits(), 0);
        drop(second);
        release.send(()).unwrap();
        // Only the one who stayed was worked for.
        assert_eq!(third.await.unwrap(), 0);
        assert_eq!(started_later.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn work_that_panics_gives_its_permit_back() {
        let pool = BlockingPool::with_tasks(1);
        let runtime = Handle::current();
        let failed = pool.run(&runtime, || -> Result<(), SearchError> {
            panic!("work went wrong")
        });
        assert!(failed.await.is_err());
        assert!(pool.run(&runtime, || Ok(1)).await.is_ok());
    }
}
