//! Whom to cut when room runs out: the connections that have gone without progress for longest.
//!
//! Refusing newcomers would let cheap attackers starve everybody: connections that hold one unread answer, or one byte
//! of a head, cost them nothing. Whoever reads and sends makes progress all the time, so the oldest without any are
//! never theirs unless all are.

use std::collections::HashMap;
use std::hash::Hash;

use super::timeout_policy::{ConnectionMonitor, Stalled, TimeoutPolicy};
use crate::http::byte_budget::ByteBudget;

/// How much older a connection has to be where its budget is nearly spent, but nobody waits for room.
const UNHURRIED: u64 = 10;
/// For how long a head may be on its way before its connection can be evicted for its bytes.
const HEAD_GRACE: u64 = 250;

/// Cuts connections whose answers nobody reads, until enough bytes are on their way to be free. Says how many.
pub(super) fn unread<K: Hash + Eq>(
    watches: &mut HashMap<K, ConnectionMonitor>,
    budget: &ByteBudget,
    rules: &TimeoutPolicy,
    now: u64,
) -> usize {
    let least = if budget.pressure().is_urgent() {
        rules.evict_after
    } else {
        rules.evict_after.saturating_mul(UNHURRIED)
    };
    let stalled = |watch: &mut ConnectionMonitor| watch.stalled(now);
    cut_oldest(watches, stalled, least, budget.eviction_goal())
}

/// Cuts connections that hold bytes of heads that do not end, until enough bytes are on their way to be free.
pub(super) fn heads<K: Hash + Eq>(
    watches: &mut HashMap<K, ConnectionMonitor>,
    budget: &ByteBudget,
    now: u64,
) -> usize {
    let stalled =
        |watch: &mut ConnectionMonitor| watch.headless(now).filter(|stalled| stalled.bytes > 0);
    cut_oldest(watches, stalled, HEAD_GRACE, budget.eviction_goal())
}

/// Cuts so many connections that have not sent a whole request head, those that have waited longest first.
pub(super) fn headless<K: Hash + Eq>(
    watches: &mut HashMap<K, ConnectionMonitor>,
    count: usize,
    now: u64,
) -> usize {
    let slot = |stalled| Stalled {
        bytes: 1,
        ..stalled
    };
    let stalled = |watch: &mut ConnectionMonitor| {
        let headless = watch.headless(now).filter(|_| !watch.is_cut());
        headless.map(slot)
    };
    cut_oldest(watches, stalled, 0, count)
}

/// Cuts the connections that have stalled for longest until `goal` is reached. What was cut before and is not gone yet
/// counts too.
fn cut_oldest<K: Hash + Eq>(
    watches: &mut HashMap<K, ConnectionMonitor>,
    mut stalled: impl FnMut(&mut ConnectionMonitor) -> Option<Stalled>,
    least: u64,
    goal: usize,
) -> usize {
    if goal == 0 {
        return 0;
    }
    let mut leaving = 0usize;
    let mut candidates = Vec::new();
    for watch in watches.values_mut() {
        let Some(stalled) = stalled(watch) else {
            continue;
        };
        if watch.is_cut() {
            leaving = leaving.saturating_add(stalled.bytes);
        } else if stalled.for_millis >= least {
            candidates.push((stalled, watch));
        }
    }
    // Among equals those that hold most, so that few have to go.
    candidates.sort_unstable_by_key(|(stalled, _)| (stalled.for_millis, stalled.bytes));
    let mut cut = 0;
    for (stalled, watch) in candidates.into_iter().rev() {
        if leaving >= goal {
            break;
        }
        watch.evict();
        leaving = leaving.saturating_add(stalled.bytes);
        cut += 1;
    }
    cut
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures::FutureExt as _;

    use super::super::connection_state::{CoarseClock, ConnectionState, RequestInFlight};
    use super::*;
    use crate::http::byte_budget::{ByteReservation, ConnectionShares, ServerBudgets};
    use crate::http::limits::HttpLimits;

    const TOTAL: usize = 1_600_000;

    /// Connections by their number, the time injected.
    struct World {
        budgets: ServerBudgets,
        rules: TimeoutPolicy,
        watches: HashMap<usize, ConnectionMonitor>,
        shares: Vec<ConnectionShares>,
        held: Vec<ByteReservation>,
    }

    impl World {
        fn new() -> Self {
            let limits = HttpLimits {
                unread_bytes: TOTAL,
                request_bytes: TOTAL,
                ..HttpLimits::default()
            };
            Self {
                budgets: ServerBudgets::new(&limits),
                rules: TimeoutPolicy::new(&limits),
                watches: HashMap::new(),
                shares: Vec::new(),
                held: Vec::new(),
            }
        }

        /// One more connection; one that has sent a request, or not.
        fn connect(&mut self, has_asked: bool) -> usize {
            let pulse = Arc::new(ConnectionState::new(Arc::new(CoarseClock::new())));
            if has_asked {
                drop(RequestInFlight::begin(&pulse, false));
            }
            let shares = self.budgets.connection();
            let number = self.shares.len();
            let watch = ConnectionMonitor::new(pulse, shares.clone());
            self.watches.insert(number, watch);
            self.shares.push(shares);
            number
        }

        /// One more connection for which so many bytes have waited since `now`.
        fn unread(&mut self, bytes: usize, now: u64) -> usize {
            let number = self.connect(true);
            let held = self.shares[number].answers.reserve(bytes, None).unwrap();
            self.held.push(held);
            self.watches.get_mut(&number).unwrap().stalled(now);
            number
        }

        fn evict_unread(&mut self, now: u64) -> Vec<usize> {
            unread(&mut self.watches, self.budgets.answers(), &self.rules, now);
            self.cut()
        }

        fn cut(&self) -> Vec<usize> {
            let cut = self.watches.iter().filter(|(_, watch)| watch.is_evicted());
            let mut cut: Vec<usize> = cut.map(|(number, _)| *number).collect();
            cut.sort_unstable();
            cut
        }
    }

    /// When those who stalled can go, while nobody waits.
    const STALE: u64 = 500;

    #[test]
    fn the_oldest_go_and_no_more_than_needed() {
        let mut world = World::new();
        for number in 0..8 {
            world.unread(TOTAL / 8, number);
        }
        // Down to three quarters.
        assert_eq!(world.evict_unread(STALE + 10), [0, 1]);
        // They are on their way out, so nobody else has to go.
        assert_eq!(world.evict_unread(STALE + 20), [0, 1]);
    }

    #[test]
    fn below_seven_eighths_nobody_goes() {
        let mut world = World::new();
        for _ in 0..7 {
            world.unread(TOTAL / 8, 0);
        }
        assert!(world.evict_unread(1_000_000).is_empty());
    }

    #[test]
    fn progress_is_a_sixteenth_and_a_drip_is_none() {
        let mut world = World::new();
        for _ in 0..8 {
            world.unread(TOTAL / 8, 0);
        }
        for round in 1..=100 {
            for (number, shares) in world.shares.iter().enumerate() {
                // One byte each but for two, who take their answers.
                let taken = if number < 2 { TOTAL / 8 / 16 } else { 1 };
                shares.answers.record_taken(taken);
            }
            for watch in world.watches.values_mut() {
                watch.stalled(round * 100);
            }
        }
        world.shares[0].answers.record_taken(TOTAL / 8 / 16);
        let cut = world.evict_unread(10_000 + STALE);
        assert_eq!(cut.len(), 2);
        assert!(cut.iter().all(|number| *number >= 2), "{cut:?}");
    }

    #[test]
    fn whoever_is_young_goes_only_if_somebody_waits() {
        let mut world = World::new();
        for _ in 0..8 {
            world.unread(TOTAL / 8, 0);
        }
        assert!(world.evict_unread(STALE - 1).is_empty());
        let newcomer = world.connect(true);
        let share = Arc::clone(&world.shares[newcomer].answers);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        let _inside = runtime.enter();
        let mut waiting = Box::pin(share.reserve_evicting(TOTAL / 8, None));
        assert!(waiting.as_mut().now_or_never().is_none());
        assert!(world.evict_unread(world.rules.evict_after - 1).is_empty());
        // Three quarters with room for the newcomer.
        assert_eq!(world.evict_unread(world.rules.evict_after).len(), 3);
        assert!(!world.cut().contains(&newcomer));
    }

    #[test]
    fn slots_are_taken_from_those_without_a_whole_head() {
        let mut world = World::new();
        let asked = world.connect(true);
        let fresh = [world.connect(false), world.connect(false)];
        assert_eq!(headless(&mut world.watches, 1, 0), 1);
        assert_eq!(headless(&mut world.watches, 5, 0), 1);
        assert_eq!(world.cut(), fresh);
        assert!(!world.watches[&asked].is_evicted());
    }

    #[test]
    fn long_heads_go_when_the_memory_for_requests_is_spent() {
        let mut world = World::new();
        for has_asked in [false, true] {
            for _ in 0..4 {
                let number = world.connect(has_asked);
                let held = world.shares[number].bodies.reserve(TOTAL / 8, None);
                world.held.push(held.unwrap());
            }
        }
        // A clock starts with its connection, a moment ago.
        let later = 60_000;
        let requests = world.budgets.requests();
        assert_eq!(heads(&mut world.watches, requests, later), 2);
        assert!(world.cut().iter().all(|number| *number < 4), "not at work");
    }
}
