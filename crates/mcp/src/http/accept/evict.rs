//! Eviction: which connections to cut when slots or memory run out, longest without progress first.
//!
//! Refusing new connections instead would let an attacker starve everybody, because holding one unread response or
//! one byte of a request head costs nothing. A client that reads and sends makes progress all the time, so it is
//! evicted only if all others are newer.

use std::collections::HashMap;
use std::hash::Hash;

use super::timeout_policy::{ConnectionMonitor, StallInfo, TimeoutPolicy};
use crate::byte_budget::ByteBudget;

/// Factor on the minimum stall time while a budget is nearly spent but nothing waits for room. Nobody is harmed yet, so
/// only clients that are certainly stuck are cut. Once somebody waits, a short stall is enough.
const RELAXED_STALL_FACTOR: u64 = 10;
/// How long a request head may be in transit, in milliseconds, before its connection can be evicted for its memory. A
/// head arrives in one or two packets; within this time even those of a slow mobile link do, so only clients that
/// trickle are cut.
const HEAD_GRACE: u64 = 250;

/// Evicts connections with unread responses until enough bytes are about to be freed. Returns how many.
pub(super) fn evict_unread<K: Hash + Eq>(
    monitors: &mut HashMap<K, ConnectionMonitor>,
    budget: &ByteBudget,
    policy: &TimeoutPolicy,
    now: u64,
) -> usize {
    let least = if budget.wait_queue().is_contended() {
        policy.evict_after
    } else {
        policy.evict_after.saturating_mul(RELAXED_STALL_FACTOR)
    };
    let stalled = |monitor: &mut ConnectionMonitor| monitor.stalled(now);
    cut_oldest(monitors, stalled, least, budget.eviction_goal())
}

/// Evicts connections with incomplete request heads until enough bytes are about to be freed. Returns how many.
pub(super) fn evict_heads<K: Hash + Eq>(
    monitors: &mut HashMap<K, ConnectionMonitor>,
    budget: &ByteBudget,
    now: u64,
) -> usize {
    let stalled =
        |monitor: &mut ConnectionMonitor| monitor.headless(now).filter(|stalled| stalled.bytes > 0);
    cut_oldest(monitors, stalled, HEAD_GRACE, budget.eviction_goal())
}

/// Evicts up to `count` connections that have not sent a whole request head, longest waiting first.
pub(super) fn evict_headless<K: Hash + Eq>(
    monitors: &mut HashMap<K, ConnectionMonitor>,
    count: usize,
    now: u64,
) -> usize {
    let slot = |stalled| StallInfo {
        bytes: 1,
        ..stalled
    };
    let stalled = |monitor: &mut ConnectionMonitor| {
        let headless = monitor.headless(now).filter(|_| !monitor.is_cut());
        headless.map(slot)
    };
    cut_oldest(monitors, stalled, 0, count)
}

/// Evicts the longest stalled connections until `goal` bytes are about to be freed. Connections that were evicted but
/// have not ended yet count towards the goal.
fn cut_oldest<K: Hash + Eq>(
    monitors: &mut HashMap<K, ConnectionMonitor>,
    mut stalled: impl FnMut(&mut ConnectionMonitor) -> Option<StallInfo>,
    least: u64,
    goal: usize,
) -> usize {
    if goal == 0 {
        return 0;
    }
    let mut leaving = 0usize;
    let mut candidates = Vec::new();
    for monitor in monitors.values_mut() {
        let Some(stalled) = stalled(monitor) else {
            continue;
        };
        if monitor.is_cut() {
            leaving = leaving.saturating_add(stalled.bytes);
        } else if stalled.for_millis >= least {
            candidates.push((stalled, monitor));
        }
    }
    // Among equals, those that hold most are evicted first, so that few have to go.
    candidates.sort_unstable_by_key(|(stalled, _)| (stalled.for_millis, stalled.bytes));
    let mut cut = 0;
    for (stalled, monitor) in candidates.into_iter().rev() {
        if leaving >= goal {
            break;
        }
        monitor.evict();
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
    use crate::byte_budget::{ByteReservation, ConnectionShares, ServerBudgets};
    use crate::limits::HttpLimits;

    const TOTAL: usize = 1_600_000;

    /// A server with numbered connections and an injected clock.
    struct World {
        budgets: ServerBudgets,
        policy: TimeoutPolicy,
        monitors: HashMap<usize, ConnectionMonitor>,
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
                policy: TimeoutPolicy::new(&limits),
                monitors: HashMap::new(),
                shares: Vec::new(),
                held: Vec::new(),
            }
        }

        /// Adds a connection, which has sent a request before or not.
        fn connect(&mut self, has_asked: bool) -> usize {
            let state = Arc::new(ConnectionState::new(Arc::new(CoarseClock::new())));
            if has_asked {
                drop(RequestInFlight::begin(&state, false));
            }
            let shares = self.budgets.connection();
            let number = self.shares.len();
            let monitor = ConnectionMonitor::new(state, shares.clone());
            self.monitors.insert(number, monitor);
            self.shares.push(shares);
            number
        }

        /// Adds a connection with so many bytes unread since `now`.
        fn unread(&mut self, bytes: usize, now: u64) -> usize {
            let number = self.connect(true);
            let held = self.shares[number].answers.reserve(bytes, None).unwrap();
            self.held.push(held);
            self.monitors.get_mut(&number).unwrap().stalled(now);
            number
        }

        fn evict_unread(&mut self, now: u64) -> Vec<usize> {
            evict_unread(
                &mut self.monitors,
                self.budgets.answers(),
                &self.policy,
                now,
            );
            self.cut()
        }

        fn cut(&self) -> Vec<usize> {
            let cut = self
                .monitors
                .iter()
                .filter(|(_, monitor)| monitor.is_evicted());
            let mut cut: Vec<usize> = cut.map(|(number, _)| *number).collect();
            cut.sort_unstable();
            cut
        }
    }

    /// The stall time in milliseconds after which a connection can be evicted while nothing waits for room.
    const STALE: u64 = 500;

    #[test]
    fn the_oldest_go_and_no_more_than_needed() {
        let mut world = World::new();
        for number in 0..8 {
            world.unread(TOTAL / 8, number);
        }
        // Eviction frees memory down to three quarters of the budget.
        assert_eq!(world.evict_unread(STALE + 10), [0, 1]);
        // Both are already closing, so no other connection is evicted.
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
                // All clients read one byte, except two that read whole responses.
                let taken = if number < 2 { TOTAL / 8 / 16 } else { 1 };
                shares.answers.record_taken(taken);
            }
            for monitor in world.monitors.values_mut() {
                monitor.stalled(round * 100);
            }
        }
        world.shares[0].answers.record_taken(TOTAL / 8 / 16);
        let cut = world.evict_unread(10_000 + STALE);
        assert_eq!(cut.len(), 2);
        assert!(cut.iter().all(|number| *number >= 2), "{cut:?}");
    }

    #[test]
    fn young_connections_are_evicted_only_if_another_one_waits() {
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
        assert!(world.evict_unread(world.policy.evict_after - 1).is_empty());
        // Three quarters of the budget, minus room for the newcomer.
        assert_eq!(world.evict_unread(world.policy.evict_after).len(), 3);
        assert!(!world.cut().contains(&newcomer));
    }

    #[test]
    fn slots_are_taken_from_those_without_a_whole_head() {
        let mut world = World::new();
        let asked = world.connect(true);
        let fresh = [world.connect(false), world.connect(false)];
        assert_eq!(evict_headless(&mut world.monitors, 1, 0), 1);
        assert_eq!(evict_headless(&mut world.monitors, 5, 0), 1);
        assert_eq!(world.cut(), fresh);
        assert!(!world.monitors[&asked].is_evicted());
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
        // The clock of a connection starts when it is accepted, just now.
        let later = 60_000;
        let requests = world.budgets.requests();
        assert_eq!(evict_heads(&mut world.monitors, requests, later), 2);
        assert!(world.cut().iter().all(|number| *number < 4), "not at work");
    }
}
