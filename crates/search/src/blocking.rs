//! Bounded pool for blocking work, so that it does not run on async threads and cannot exhaust the blocking pool.
//!
//! A task on tokio's blocking pool cannot be cancelled and outlives a caller that disconnects. Without a limit of
//! our own the pool grows to its 512 threads: clients that asked and disconnected at once kept 505 of them busy. So
//! every task acquires a semaphore permit before it starts and holds it until it ends, whether or not anybody still
//! waits. A caller that leaves earlier gives up its place in the queue, and its task never starts. This is our
//! backpressure.

use std::num::NonZero;
use std::sync::Arc;
use std::thread::available_parallelism;

use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

use crate::error::SearchError;

/// Concurrent tasks per processor: while one waits for the disk, the other computes. More would only slow each
/// other down.
const PER_PROCESSOR: usize = 2;
/// The fewest concurrent tasks, so that on a small machine one long search does not block everybody.
const MIN_TASKS: usize = 4;
/// Concurrent tasks that wait for another machine and hardly compute: as many as a server processes requests by
/// default, so that no caller queues here. The limit for computing tasks would be wrong for them: a slow cluster would
/// fill it with calls that use no processor.
const NETWORK_TASKS: usize = 256;

/// The queue a task goes to; tasks of different lanes do not wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Runs on the calling thread, because a round trip to another thread would take longer.
    InPlace,
    /// Work for a query, for which a caller is waiting.
    Answer,
    /// Background work: indexing, embedding, leases.
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

/// The blocking pools of one engine. Answers and maintenance have permits of their own, so that neither starves the
/// other.
#[derive(Debug)]
pub(crate) struct EnginePools {
    answers: BlockingPool,
    maintenance: BlockingPool,
}

impl EnginePools {
    /// Pools for an engine that computes or reads files.
    pub(crate) fn for_processors() -> Self {
        Self {
            answers: BlockingPool::for_processors(),
            maintenance: BlockingPool::for_processors(),
        }
    }

    /// Pools for an engine whose answers wait for another machine.
    pub(crate) fn for_network() -> Self {
        Self {
            answers: BlockingPool::with_tasks(NETWORK_TASKS),
            ..Self::for_processors()
        }
    }

    /// Runs a task in its lane, or on this thread when there is no async runtime.
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

/// A bounded share of the runtime's blocking pool.
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

    /// Runs a task as soon as it gets a permit, inside the caller's tracing span.
    async fn run<T: Send + 'static>(
        &self,
        runtime: &Handle,
        work: impl FnOnce() -> Result<T, SearchError> + Send + 'static,
    ) -> Result<T, SearchError> {
        let permits = Arc::clone(&self.permits);
        let permit = permits.acquire_owned().await.map_err(SearchError::engine)?;
        let span = tracing::Span::current();
        let task = runtime.spawn_blocking(move || {
            // Moved into the task: it is released when the work ends, not when the caller leaves.
            let _permit = permit;
            span.in_scope(work)
        });
        let _abandoned = AbortOnDrop(task.abort_handle());
        task.await.map_err(SearchError::engine)?
    }
}

/// Aborts the task when its caller leaves. A task that has not started leaves the queue; one that runs finishes.
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
        // Only the task whose caller stayed has run.
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
