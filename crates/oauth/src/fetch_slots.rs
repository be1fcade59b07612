//! Concurrency limits for fetching client ID metadata documents, in total and by host, so that slow hosts
//! delay nobody else.
//!
//! Anybody who calls `/authorize` can name a document, so unknown hosts share one pool. Known hosts, through whose
//! clients a user has logged in, have a separate pool, which an attacker cannot fill, whatever hosts the
//! requests name.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The maximum number of known hosts. The least recently used is evicted; each login counts as a use.
pub(crate) const MAX_KNOWN_HOSTS: usize = 256;

/// Concurrency limits: of each single host, of all unknown hosts together, and of all known hosts together.
#[derive(Debug)]
pub(crate) struct SlotLimits {
    pub(crate) each_host: usize,
    pub(crate) unknown: usize,
    pub(crate) known: usize,
}

/// The limits of documents that are being fetched.
pub(crate) const FETCHES: SlotLimits = SlotLimits {
    each_host: 2,
    unknown: 32,
    known: 16,
};

/// The limits of requests that wait for a document. Each of them occupies one of the concurrent requests
/// that the sign-in pages may have, so all of them together stay below that number, and slow hosts leave
/// room for other logins.
pub(crate) const WAITS: SlotLimits = SlotLimits {
    each_host: 16,
    unknown: 32,
    known: 16,
};

/// The slots in use, for fetches or for waiting requests.
pub(crate) struct FetchSlots {
    limits: &'static SlotLimits,
    counts: Mutex<SlotCounts>,
}

#[derive(Default)]
struct SlotCounts {
    by_host: HashMap<String, usize>,
    unknown: usize,
    known: usize,
    /// The known hosts in the order of their last use, the most recent at the end.
    known_hosts: VecDeque<String>,
}

/// A slot for one host, released when it is dropped.
pub(crate) struct FetchSlot {
    slots: Arc<FetchSlots>,
    host: String,
    is_known: bool,
}

impl FetchSlots {
    pub(crate) fn new(limits: &'static SlotLimits) -> Arc<Self> {
        let counts = Mutex::default();
        Arc::new(Self { limits, counts })
    }

    fn counts(&self) -> MutexGuard<'_, SlotCounts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a slot for a host, unless its own limit or its pool is exhausted.
    pub(crate) fn take(self: &Arc<Self>, host: &str) -> Option<FetchSlot> {
        let mut guard = self.counts();
        let counts = &mut *guard;
        let is_known = counts.known_hosts.iter().any(|known| known == host);
        let (pool, most) = if is_known {
            (&mut counts.known, self.limits.known)
        } else {
            (&mut counts.unknown, self.limits.unknown)
        };
        let of_host = counts.by_host.get(host).copied().unwrap_or_default();
        if *pool >= most || of_host >= self.limits.each_host {
            return None;
        }
        *pool += 1;
        counts.by_host.insert(host.to_owned(), of_host + 1);
        Some(FetchSlot {
            slots: self.clone(),
            host: host.to_owned(),
            is_known,
        })
    }

    /// Marks a host as known, because a user has logged in through one of its clients.
    pub(crate) fn mark_known(&self, host: &str) {
        let mut counts = self.counts();
        counts.known_hosts.retain(|known| known != host);
        if counts.known_hosts.len() >= MAX_KNOWN_HOSTS {
            counts.known_hosts.pop_front();
        }
        counts.known_hosts.push_back(host.to_owned());
    }
}

impl Drop for FetchSlot {
    fn drop(&mut self) {
        let mut guard = self.slots.counts();
        let counts = &mut *guard;
        let pool = if self.is_known {
            &mut counts.known
        } else {
            &mut counts.unknown
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
    fn a_host_has_two_and_unknown_hosts_have_a_pool() {
        let slots = FetchSlots::new(&FETCHES);
        let one: Vec<_> = (0..3).map(|_| slots.take("slow.example")).collect();
        assert_eq!(one.iter().flatten().count(), FETCHES.each_host);
        let others: Vec<_> = (0..FETCHES.unknown).map(|n| slots.take(&host(n))).collect();
        assert_eq!(
            others.iter().flatten().count(),
            FETCHES.unknown - FETCHES.each_host
        );
        drop(one);
        assert!(slots.take(&host(FETCHES.unknown)).is_some());
        drop(others);
        let counts = slots.counts();
        assert_eq!((counts.unknown, counts.by_host.len()), (0, 0));
    }

    #[test]
    fn unknown_hosts_leave_room_for_hosts_that_somebody_signed_in_through() {
        let slots = FetchSlots::new(&FETCHES);
        slots.mark_known("app.example");
        let all: Vec<_> = (0..FETCHES.unknown).map(|n| slots.take(&host(n))).collect();
        assert!(all.iter().all(Option::is_some));
        assert!(slots.take("another.example").is_none());
        let two = [slots.take("app.example"), slots.take("app.example")];
        assert!(two.iter().all(Option::is_some));
        assert!(slots.take("app.example").is_none(), "the host's own bound");
    }

    #[test]
    fn those_who_wait_leave_places_free() {
        let places = docent_mcp::http::limits::HttpLimits::default().sign_in_in_flight;
        assert!(WAITS.unknown + WAITS.known < places);
        const { assert!(WAITS.each_host < WAITS.unknown, "one host is not all") };
    }

    #[test]
    fn known_hosts_have_a_bound_and_the_longest_unused_leaves() {
        let slots = FetchSlots::new(&FETCHES);
        for n in 0..MAX_KNOWN_HOSTS {
            slots.mark_known(&host(n));
        }
        slots.mark_known(&host(0));
        slots.mark_known("one more");
        let counts = slots.counts();
        assert_eq!(counts.known_hosts.len(), MAX_KNOWN_HOSTS);
        assert!(counts.known_hosts.contains(&host(0)));
        assert!(!counts.known_hosts.contains(&host(1)));
    }
}
