//! Permits for clients that listen for changes (`subscriptions/listen`).
//!
//! A listener stays open for hours without work, so it does not count as a request in flight: a few dozen would use
//! up that limit. Listener permits are shared by a dynamic threshold, like the byte budgets. A verified caller may
//! hold half of what is still free, so nobody takes them all, and no list of greedy callers is needed. A connection
//! that carries many messages has a limit of its own in addition.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::answer_error::INTERNAL_ERROR;
use crate::auth::Caller;
use crate::rpc::RpcError;

/// A verified caller may hold one part in this many of the free permits. As with bytes, half of what is left stays for
/// others, so a host that opens a listener for each of its users cannot keep out the next host.
const CALLER_PART: usize = 2;

/// The listener permits of one server, counted in total and per verified caller.
#[derive(Debug)]
pub(crate) struct ListenerPermits {
    total: usize,
    taken: Mutex<ListenerCounts>,
}

#[derive(Debug, Default)]
struct ListenerCounts {
    all: usize,
    of_callers: HashMap<String, usize>,
}

/// A listener permit, which is returned when this is dropped.
#[derive(Debug)]
pub(crate) struct ListenerPermit {
    permits: Arc<ListenerPermits>,
    caller: Option<String>,
    _own: Option<OwnedSemaphorePermit>,
}

impl ListenerPermits {
    pub(crate) fn new(total: usize) -> Arc<Self> {
        Arc::new(Self {
            total,
            taken: Mutex::default(),
        })
    }

    /// Takes a permit for this caller, and one of the connection's `own` if it has a limit.
    pub(crate) fn take(
        self: &Arc<Self>,
        caller: &Caller,
        own: Option<&Arc<Semaphore>>,
    ) -> Result<ListenerPermit, RpcError> {
        let own = match own.map(|own| Arc::clone(own).try_acquire_owned()) {
            None => None,
            Some(Ok(permit)) => Some(permit),
            Some(Err(_)) => {
                return Err(refused(
                    "this connection has too many listeners",
                    "cancel one of them, or ask for all changes in one",
                ));
            }
        };
        let caller = caller.key().map(str::to_owned);
        let mut taken = self.lock();
        let free = self.total.saturating_sub(taken.all);
        if free == 0 {
            return Err(refused(
                "too many clients are listening; try again later",
                "list again from time to time instead",
            ));
        }
        if let Some(caller) = &caller {
            let held = taken.of_callers.get(caller).copied().unwrap_or_default();
            if held >= (free / CALLER_PART).max(1) {
                return Err(refused(
                    "this caller has too many listeners",
                    "end those that are no longer read, or try again later",
                ));
            }
            taken.of_callers.insert(caller.clone(), held + 1);
        }
        taken.all += 1;
        Ok(ListenerPermit {
            permits: Arc::clone(self),
            caller,
            _own: own,
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, ListenerCounts> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ListenerPermit {
    fn drop(&mut self) {
        let mut taken = self.permits.lock();
        taken.all = taken.all.saturating_sub(1);
        let Some(caller) = self.caller.take() else {
            return;
        };
        match taken.of_callers.get_mut(&caller) {
            Some(held) if *held > 1 => *held -= 1,
            _ => drop(taken.of_callers.remove(&caller)),
        }
    }
}

fn refused(message: &'static str, hint: &str) -> RpcError {
    RpcError::new(INTERNAL_ERROR, message).with_data(json!({"hint": hint}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(subject: &str) -> Caller {
        Caller::verified("i", subject, None, Default::default(), Default::default())
    }

    #[test]
    fn a_caller_has_half_of_what_is_free_and_gives_it_back() {
        let permits = ListenerPermits::new(9);
        let take = |caller: &Caller| permits.take(caller, None).ok();
        let greedy: Vec<_> = (0..9).map_while(|_| take(&known("a"))).collect();
        assert_eq!(greedy.len(), 3);
        assert!(take(&known("a")).is_none());
        let other = take(&known("b"));
        assert!(other.is_some());
        // Anonymous callers take the rest.
        let nobody: Vec<_> = (0..9).map_while(|_| take(&Caller::anonymous())).collect();
        assert_eq!(nobody.len(), 5);
        drop((greedy, other, nobody));
        let taken = permits.lock();
        assert_eq!((taken.all, taken.of_callers.len()), (0, 0));
    }

    #[test]
    fn a_connection_has_its_own_bound_and_a_refusal_takes_nothing() {
        let permits = ListenerPermits::new(9);
        let own = Arc::new(Semaphore::new(2));
        let take = || permits.take(&Caller::anonymous(), Some(&own));
        let first = take().unwrap();
        let _second = take().unwrap();
        assert!(take().unwrap_err().message.contains("connection"));
        assert_eq!(permits.lock().all, 2);
        drop(first);
        assert!(take().is_ok());
        let none = ListenerPermits::new(0);
        assert!(none.take(&Caller::anonymous(), Some(&own)).is_err());
        assert_eq!(own.available_permits(), 1);
    }
}
