//! Runs several requests to the cluster in parallel, so that together they take about as long as one of them.

use std::thread::ScopedJoinHandle;

use crate::error::SearchError;

/// How many threads share the requests of one call.
const MAX_PARALLEL: usize = 8;

/// Runs two closures in parallel and returns both results.
pub(super) fn join<A: Send, B: Send>(
    first: impl FnOnce() -> Result<A, SearchError> + Send,
    second: impl FnOnce() -> Result<B, SearchError> + Send,
) -> (Result<A, SearchError>, Result<B, SearchError>) {
    std::thread::scope(|scope| {
        let second = scope.spawn(second);
        let first = first();
        (first, join_thread(second))
    })
}

/// Maps a closure over all items in parallel; the results keep the items' order.
pub(super) fn map_parallel<T: Sync, A: Send>(
    all: &[T],
    work: impl Fn(&T) -> Result<A, SearchError> + Sync,
) -> Result<Vec<A>, SearchError> {
    let work = &work;
    std::thread::scope(|scope| {
        let parts = all.chunks(all.len().div_ceil(MAX_PARALLEL).max(1));
        let parts = parts.map(|part| scope.spawn(|| part.iter().map(work).collect()));
        let parts: Vec<ScopedJoinHandle<'_, Result<Vec<A>, SearchError>>> = parts.collect();
        let answers = parts
            .into_iter()
            .map(join_thread)
            .collect::<Result<Vec<_>, _>>()?;
        Ok(answers.into_iter().flatten().collect())
    })
}

fn join_thread<A>(work: ScopedJoinHandle<'_, Result<A, SearchError>>) -> Result<A, SearchError> {
    let early = |_| Err(SearchError::engine("a search thread panicked"));
    work.join().unwrap_or_else(early)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_asked_and_answers_keep_their_order() {
        for count in [0, 1, MAX_PARALLEL - 1, MAX_PARALLEL, MAX_PARALLEL + 1, 100] {
            let all: Vec<usize> = (0..count).collect();
            let answers = map_parallel(&all, |n| Ok(n * 2)).unwrap();
            let expected: Vec<usize> = all.iter().map(|n| n * 2).collect();
            assert_eq!(answers, expected);
        }
    }

    #[test]
    fn one_failure_is_the_answer() {
        let failing = |n: &usize| match n {
            7 => Err(SearchError::engine("seven")),
            n => Ok(*n),
        };
        let all: Vec<usize> = (0..20).collect();
        assert!(map_parallel(&all, failing).is_err());
        assert_eq!(map_parallel(&all[..7], failing).unwrap().len(), 7);
    }
}
