//! Several questions to the cluster at once: answers take about as long as one of them.

use std::thread::ScopedJoinHandle;

use crate::error::Error;

/// How many of many questions are asked at the same time.
const AT_ONCE: usize = 8;

/// Does two things at once.
pub(super) fn both<A: Send, B: Send>(
    first: impl FnOnce() -> Result<A, Error> + Send,
    second: impl FnOnce() -> Result<B, Error> + Send,
) -> (Result<A, Error>, Result<B, Error>) {
    std::thread::scope(|scope| {
        let second = scope.spawn(second);
        let first = first();
        (first, ended(second))
    })
}

/// What is answered about each of these, in their order.
pub(super) fn each<T: Sync, A: Send>(
    all: &[T],
    ask: impl Fn(&T) -> Result<A, Error> + Sync,
) -> Result<Vec<A>, Error> {
    let ask = &ask;
    std::thread::scope(|scope| {
        let parts = all.chunks(all.len().div_ceil(AT_ONCE).max(1));
        let parts = parts.map(|part| scope.spawn(|| part.iter().map(ask).collect()));
        let parts: Vec<ScopedJoinHandle<'_, Result<Vec<A>, Error>>> = parts.collect();
        let answers = parts
            .into_iter()
            .map(ended)
            .collect::<Result<Vec<_>, _>>()?;
        Ok(answers.into_iter().flatten().collect())
    })
}

fn ended<A>(work: ScopedJoinHandle<'_, Result<A, Error>>) -> Result<A, Error> {
    let early = |_| Err(Error::engine("a search ended early"));
    work.join().unwrap_or_else(early)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_asked_and_answers_keep_their_order() {
        for count in [0, 1, AT_ONCE - 1, AT_ONCE, AT_ONCE + 1, 100] {
            let all: Vec<usize> = (0..count).collect();
            let answers = each(&all, |n| Ok(n * 2)).unwrap();
            let expected: Vec<usize> = all.iter().map(|n| n * 2).collect();
            assert_eq!(answers, expected);
        }
    }

    #[test]
    fn one_failure_is_the_answer() {
        let failing = |n: &usize| match n {
            7 => Err(Error::engine("seven")),
            n => Ok(*n),
        };
        let all: Vec<usize> = (0..20).collect();
        assert!(each(&all, failing).is_err());
        assert_eq!(each(&all[..7], failing).unwrap().len(), 7);
    }
}
