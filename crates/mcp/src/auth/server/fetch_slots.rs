//! How many client documents are fetched at once, by host, so that hosts that answer slowly keep nobody else waiting.
//!
//! Whoever reaches `/authorize` names a document, so hosts of strangers share one pool. A host through whose clients
//! somebody has signed in here has a pool apart: strangers cannot fill it, whatever they name.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Of one host at once.
pub(crate) const EACH_HOST: usize = 2;
/// Of all hosts that nobody signed in through.
pub(crate) const STRANGERS: usize = 32;
/// Of all hosts that somebody signed in through.
pub(crate) const TRUSTED: usize = 16;
/// The most hosts that are remembered as such. A host in use is remembered anew at each sign-in.
pub(crate) const MAX_TRUSTED_HOSTS: usize = 256;

/// The fetches that are under way.
#[derive(Default)]
pub(crate) struct FetchSlots(Mutex<SlotCounts>);

#[derive(Default)]
struct SlotCounts {
    by_host: HashMap<String, usize>,
    strangers: usize,
    trusted: usize,
    /// The last to be trusted is at the end.
    trusted_hosts: VecDeque<String>,
}

/// The right to fetch one document, until it is dropped.
pub(crate) struct FetchSlot {
    slots: Arc<FetchSlots>,
    host: String,
    is_trusted: bool,
}

impl FetchSlots {
    fn counts(&self) -> MutexGuard<'_, SlotCounts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A slot for a host, if it has one left.
    pub(crate) fn take(self: &Arc<Self>, host: &str) -> Option<FetchSlot> {
        let mut guard = self.counts();
        let counts = &mut *guard;
        let is_trusted = counts.trusted_hosts.iter().any(|known| known == host);
        let (pool, most) = if is_trusted {
            (&mut counts.trusted, TRUSTED)
        } else {
            (&mut counts.strangers, STRANGERS)
        };
        let of_host = counts.by_host.get(host).copied().unwrap_or_default();
        if *pool >= most || of_host >= EACH_HOST {
            return None;
        }
        *pool += 1;
        counts.by_host.insert(host.to_owned(), of_host + 1);
        Some(FetchSlot {
            slots: self.clone(),
            host: host.to_owned(),
            is_trusted,
        })
    }

    /// Somebody signed in through a client of this host.
    pub(crate) fn trust(&self, host: &str) {
        let mut counts = self.counts();
        counts.trusted_hosts.retain(|known| known != host);
        if counts.trusted_hosts.len() >= MAX_TRUSTED_HOSTS {
            counts.trusted_hosts.pop_front();
        }
        counts.trusted_hosts.push_back(host.to_owned());
    }
}

impl Drop for FetchSlot {
    fn drop(&mut self) {
        let mut guard = self.slots.counts();
        let counts = &mut *guard;
        let pool = if self.is_trusted {
            &mut counts.trusted
        } else {
            &mut counts.strangers
        };
        *pool = pool.saturating_sub(1);
        match counts.by_host.get_mut(&self.host) {
            Some(count) if *count > 1 => *count -= 1,
            _ => {
                counts.by_host.remove(&self.host);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(n: usize) -> String {
        format!("h{n}.example")
    }

    #[test]
    fn a_host_has_two_and_strangers_have_a_pool() {
        let slots = Arc::new(FetchSlots::default());
        let one: Vec<_> = (0..3).map(|_| slots.take("slow.example")).collect();
        assert_eq!(one.iter().flatten().count(), EACH_HOST);
        let others: Vec<_> = (0..STRANGERS).map(|n| slots.take(&host(n))).collect();
        assert_eq!(others.iter().flatten().count(), STRANGERS - EACH_HOST);
        drop(one);
        assert!(slots.take(&host(STRANGERS)).is_some());
        drop(others);
        let counts = slots.counts();
        assert_eq!((counts.strangers, counts.by_host.len()), (0, 0));
    }

    #[test]
    fn strangers_leave_room_for_hosts_that_somebody_signed_in_through() {
        let slots = Arc::new(FetchSlots::default());
        slots.trust("app.example");
        let all: Vec<_> = (0..STRANGERS).map(|n| slots.take(&host(n))).collect();
        assert!(all.iter().all(Option::is_some));
        assert!(slots.take("another.example").is_none());
        let two = [slots.take("app.example"), slots.take("app.example")];
        assert!(two.iter().all(Option::is_some));
        assert!(slots.take("app.example").is_none(), "the host's own bound");
    }

    #[test]
    fn trusted_hosts_have_a_bound_and_the_longest_unused_leaves() {
        let slots = Arc::new(FetchSlots::default());
        for n in 0..MAX_TRUSTED_HOSTS {
            slots.trust(&host(n));
        }
        slots.trust(&host(0));
        slots.trust("one more");
        let counts = slots.counts();
        assert_eq!(counts.trusted_hosts.len(), MAX_TRUSTED_HOSTS);
        assert!(counts.trusted_hosts.contains(&host(0)));
        assert!(!counts.trusted_hosts.contains(&host(1)));
    }
}
