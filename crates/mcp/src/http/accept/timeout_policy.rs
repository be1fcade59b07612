//! Turns the state of a connection and the time into an order: go on, finish, or be cut.

use std::sync::Arc;
use std::time::Duration;

use super::connection_state::{CloseCommand, ConnectionPhase, ConnectionSnapshot, ConnectionState};
use crate::http::byte_budget::{ConnectionShare, ConnectionShares};
use crate::http::limits::HttpLimits;

/// The accept loop's side of one connection.
#[derive(Debug)]
pub(super) struct ConnectionMonitor {
    pulse: Arc<ConnectionState>,
    born: u64,
    finishing: Option<u64>,
    shares: ConnectionShares,
    unread: UnreadProgress,
    evicted: bool,
}

/// How the peer takes the answers that wait for it.
#[derive(Debug, Clone, Copy, Default)]
struct UnreadProgress {
    /// Bytes that wait, and bytes that it ever took.
    waiting: usize,
    taken: u64,
    /// When it last took some, or had nothing to take.
    since: u64,
    progress: Progress,
}

/// The last time when the peer had taken enough to count.
#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    at: u64,
    /// What it ever has to take before it counts again.
    next: u64,
}

impl UnreadProgress {
    fn observe(&mut self, share: &ConnectionShare, now: u64) {
        let (waiting, taken) = (share.held(), share.taken());
        let idle = waiting == 0 || self.waiting == 0;
        if idle || taken != self.taken {
            self.since = now;
        }
        if idle || taken >= self.progress.next {
            // A sixteenth of what waits, and enough that a byte now and then does not count.
            let due = (waiting / 16).max(LEAST_TAKEN).min(waiting);
            self.progress = Progress {
                at: now,
                next: taken.saturating_add(due as u64),
            };
        }
        (self.waiting, self.taken) = (waiting, taken);
    }

    /// For how long it has taken too little of what waits for it; nothing when nothing waits.
    fn stalled(&self, now: u64) -> Option<u64> {
        (self.waiting > 0).then(|| now.saturating_sub(self.progress.at))
    }
}

/// Bytes that a peer has to take before it counts as progress, if so many wait.
const LEAST_TAKEN: usize = 2 * 1024;

impl ConnectionMonitor {
    pub(super) fn new(pulse: Arc<ConnectionState>, shares: ConnectionShares) -> Self {
        let born = pulse.created_at();
        Self {
            pulse,
            born,
            finishing: None,
            shares,
            unread: UnreadProgress::default(),
            evicted: false,
        }
    }

    /// Answers that wait for the peer, and for how long it has taken too little of them.
    pub(super) fn stalled(&mut self, now: u64) -> Option<Stalled> {
        self.unread.observe(&self.shares.answers, now);
        let for_millis = self.unread.stalled(now)?;
        let bytes = self.unread.waiting;
        Some(Stalled { for_millis, bytes })
    }

    /// What it holds of a request whose head has not come whole, and since when it has been coming; nothing for a
    /// connection that has sent a request and no part of the next.
    pub(super) fn headless(&self, now: u64) -> Option<Stalled> {
        let state = self.pulse.snapshot();
        let headless = !state.busy && state.phase != ConnectionPhase::Idle;
        headless.then(|| Stalled {
            for_millis: now.saturating_sub(state.since),
            bytes: self.shares.bodies.held(),
        })
    }

    pub(super) fn is_cut(&self) -> bool {
        self.pulse.order() == CloseCommand::Cut
    }

    /// Ends the connection now, to make room for others.
    pub(super) fn evict(&mut self) {
        self.evicted = true;
        self.pulse.command(CloseCommand::Cut);
    }

    pub(super) fn is_evicted(&self) -> bool {
        self.evicted
    }

    /// Judges the connection and gives it its order.
    pub(super) fn check(&mut self, rules: &TimeoutPolicy, now: u64) {
        let mut state = self.pulse.snapshot();
        self.unread.observe(&self.shares.answers, now);
        if self.unread.waiting > 0 {
            // What was handed over is still on its way.
            state.since = state.since.max(self.unread.since);
        }
        let order = rules.evaluate(&state, self, now);
        if order >= CloseCommand::Finish && self.finishing.is_none() {
            self.finishing = Some(now);
        }
        self.pulse.command(order);
    }
}

/// What a connection holds without making progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stalled {
    pub(super) for_millis: u64,
    pub(super) bytes: usize,
}

/// The limits in milliseconds, with what changes them: a crowd, or shutdown.
#[derive(Debug, Clone)]
pub(super) struct TimeoutPolicy {
    first_byte: u64,
    headers: u64,
    idle: u64,
    stall: u64,
    unread: u64,
    strained_period: u64,
    /// From which age on unread answers can be evicted while somebody waits for room.
    pub(super) evict_after: u64,
    age: u64,
    linger: u64,
    /// How coarse the stamps are. Added to every wait, so that none ends early.
    tick: u64,
    /// Since when we are shutting down.
    closing: Option<u64>,
    /// Whether few slots are left.
    pub(super) crowded: bool,
    /// Whether unread answers take half of their budget.
    pub(super) strained: bool,
    /// Whether requests on their way take half of theirs.
    pub(super) flooded: bool,
}

/// What a head may take, and the silence before it, when connections or the memory for requests run out.
const HURRIED_HEAD: u64 = 2_000;

impl TimeoutPolicy {
    pub(super) fn new(limits: &HttpLimits) -> Self {
        let working = limits.body.saturating_add(limits.handler);
        let patience = working.max(limits.sse_keep_alive.saturating_mul(2));
        let mut rules = Self {
            first_byte: millis(limits.first_byte),
            headers: millis(limits.headers),
            idle: millis(limits.idle),
            stall: millis(limits.stall.max(patience)),
            unread: millis(limits.unread),
            strained_period: millis(limits.unread_strained),
            evict_after: millis(limits.unread_full),
            age: millis(limits.age),
            linger: millis(limits.linger),
            tick: 0,
            closing: None,
            crowded: false,
            strained: false,
            flooded: false,
        };
        let all = [
            rules.first_byte,
            rules.headers,
            rules.idle,
            rules.stall,
            rules.unread,
            rules.strained_period,
            rules.age,
        ];
        let shortest = all.into_iter().min().unwrap_or_default();
        // Without the linger, which matters only in shutdown, where the rounds are quicker.
        // An eighth of the shortest wait keeps the error small; twice a second is enough.
        rules.tick = (shortest / 8).clamp(5, 500);
        rules
    }

    /// From now on connections should go. The loop looks this often then, so waits that begin now
    /// are judged more exactly.
    pub(super) fn begin_closing(&mut self, now: u64, tick: Duration) {
        self.closing = Some(now);
        self.tick = millis(tick);
    }

    /// How often the loop should look.
    pub(super) fn tick(&self) -> Duration {
        Duration::from_millis(self.tick)
    }

    fn has_elapsed(&self, since: u64, limit: u64, now: u64) -> bool {
        now.saturating_sub(since) >= limit.saturating_add(self.tick)
    }

    fn evaluate(
        &self,
        state: &ConnectionSnapshot,
        watch: &ConnectionMonitor,
        now: u64,
    ) -> CloseCommand {
        let leaving = self.closing_since(watch, now);
        if self.must_cut(state, watch, leaving, now) {
            CloseCommand::Cut
        } else if self.must_finish(state, leaving, now) {
            CloseCommand::Finish
        } else if leaving.is_some() {
            CloseCommand::Last
        } else {
            CloseCommand::Carry
        }
    }

    /// Since when the connection should go, whatever it does.
    fn closing_since(&self, watch: &ConnectionMonitor, now: u64) -> Option<u64> {
        let aged = || {
            self.has_elapsed(watch.born, self.age, now)
                .then(|| watch.born.saturating_add(self.age))
        };
        self.closing.or_else(aged)
    }

    /// A limit on a head, or on the silence before one.
    fn hurried(&self, limit: u64) -> u64 {
        if self.crowded || self.flooded {
            limit.min(HURRIED_HEAD)
        } else {
            limit
        }
    }

    fn has_lingered(&self, since: u64, now: u64) -> bool {
        self.has_elapsed(since, self.linger, now)
    }

    fn must_cut(
        &self,
        state: &ConnectionSnapshot,
        watch: &ConnectionMonitor,
        leaving: Option<u64>,
        now: u64,
    ) -> bool {
        let unread = &watch.unread;
        if unread.waiting > 0 && self.has_elapsed(unread.since, self.unread, now) {
            return true;
        }
        let stalled = unread.stalled(now);
        if self.strained && stalled.is_some_and(|stalled| stalled >= self.strained_period) {
            return true;
        }
        if state.busy {
            return self.has_elapsed(state.since, self.stall, now);
        }
        match state.phase {
            ConnectionPhase::Fresh => {
                self.has_elapsed(state.since, self.hurried(self.first_byte), now)
                    || leaving.is_some_and(|since| self.has_lingered(since, now))
            }
            ConnectionPhase::Head => self.has_elapsed(state.since, self.hurried(self.headers), now),
            // It was told to finish and has nothing left to answer, but the peer does not take
            // what is buffered or does not play its part in an HTTP/2 goodbye.
            ConnectionPhase::Idle => {
                let told = watch.finishing.map(|told| told.max(state.since));
                told.is_some_and(|told| self.has_elapsed(told, self.headers, now))
            }
        }
    }

    fn must_finish(&self, state: &ConnectionSnapshot, leaving: Option<u64>, now: u64) -> bool {
        if let Some(since) = leaving {
            // On HTTP/1 the next request may be on its way, so an idle connection lingers.
            let quiet = !state.busy && self.has_lingered(since.max(state.since), now);
            return state.multiplexed || quiet;
        }
        // When slots run out, those who wait for nothing give theirs up sooner.
        let idle = if self.crowded {
            self.idle.min(self.first_byte)
        } else {
            self.idle
        };
        !state.busy
            && state.phase == ConnectionPhase::Idle
            && self.has_elapsed(state.since, idle, now)
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::connection_state::{CoarseClock, RequestInFlight};
    use super::*;
    use crate::http::byte_budget::{ByteReservation, ServerBudgets};

    const SECOND: u64 = 1000;

    fn rules(closing: Option<u64>) -> TimeoutPolicy {
        TimeoutPolicy {
            closing,
            ..TimeoutPolicy::new(&HttpLimits::default())
        }
    }

    fn watch(finishing: Option<u64>) -> ConnectionMonitor {
        ConnectionMonitor {
            finishing,
            ..ConnectionMonitor::new(
                Arc::new(ConnectionState::new(Arc::new(CoarseClock::new()))),
                ServerBudgets::new(&HttpLimits::default()).connection(),
            )
        }
    }

    fn state(busy: bool, phase: ConnectionPhase) -> ConnectionSnapshot {
        ConnectionSnapshot {
            busy,
            phase,
            since: 0,
            multiplexed: false,
        }
    }

    /// The order just before and at the end of a wait that began at zero.
    fn turns(
        state: &ConnectionSnapshot,
        rules: &TimeoutPolicy,
        watch: &ConnectionMonitor,
        after: u64,
    ) -> (CloseCommand, CloseCommand) {
        let end = after + rules.tick;
        (
            rules.evaluate(state, watch, end - 1),
            rules.evaluate(state, watch, end),
        )
    }

    #[test]
    fn every_wait_has_its_end() {
        use CloseCommand::{Carry, Cut, Finish, Last};
        let rows = [
            (
                "silent",
                state(false, ConnectionPhase::Fresh),
                None,
                None,
                5 * SECOND,
                (Carry, Cut),
            ),
            (
                "half a head",
                state(false, ConnectionPhase::Head),
                None,
                None,
                10 * SECOND,
                (Carry, Cut),
            ),
            (
                "idle",
                state(false, ConnectionPhase::Idle),
                None,
                None,
                60 * SECOND,
                (Carry, Finish),
            ),
            (
                "stuck",
                state(true, ConnectionPhase::Idle),
                None,
                None,
                60 * SECOND,
                (Carry, Cut),
            ),
            (
                "no goodbye",
                state(false, ConnectionPhase::Idle),
                Some(0),
                None,
                10 * SECOND,
                (Carry, Cut),
            ),
            (
                "silent at the end",
                state(false, ConnectionPhase::Fresh),
                None,
                Some(0),
                500,
                (Last, Cut),
            ),
            (
                "idle at the end",
                state(false, ConnectionPhase::Idle),
                None,
                Some(0),
                500,
                (Last, Finish),
            ),
        ];
        for (name, state, finishing, closing, after, expect) in rows {
            let turns = turns(&state, &rules(closing), &watch(finishing), after);
            assert_eq!(turns, expect, "{name}");
        }
    }

    #[test]
    fn at_the_end_multiplexed_connections_finish_and_busy_ones_answer_a_last_time() {
        let rules = rules(Some(0));
        assert_eq!(
            rules.evaluate(&state(true, ConnectionPhase::Idle), &watch(None), 0),
            CloseCommand::Last
        );
        let multiplexed = ConnectionSnapshot {
            multiplexed: true,
            ..state(false, ConnectionPhase::Idle)
        };
        assert_eq!(
            rules.evaluate(&multiplexed, &watch(None), 0),
            CloseCommand::Finish
        );
    }

    #[test]
    fn an_old_connection_goes_when_it_is_quiet() {
        let (rules, age) = (rules(None), 600 * SECOND);
        let active = |since: u64| ConnectionSnapshot {
            since,
            ..state(false, ConnectionPhase::Idle)
        };
        assert_eq!(
            rules.evaluate(&active(age - 1), &watch(None), age),
            CloseCommand::Carry
        );
        let past = age + rules.tick;
        assert_eq!(
            rules.evaluate(&active(past), &watch(None), past),
            CloseCommand::Last
        );
        assert_eq!(
            rules.evaluate(&active(past), &watch(None), past + SECOND),
            CloseCommand::Finish
        );
    }

    #[test]
    fn slower_work_may_stall_longer() {
        let stall = |limits: HttpLimits| TimeoutPolicy::new(&limits).stall;
        let second = Duration::from_secs(1);
        assert_eq!(stall(HttpLimits::default()), 60 * SECOND);
        assert_eq!(
            stall(HttpLimits {
                handler: 300 * second,
                ..HttpLimits::default()
            }),
            315 * SECOND
        );
        assert_eq!(
            stall(HttpLimits {
                sse_keep_alive: 50 * second,
                ..HttpLimits::default()
            }),
            100 * SECOND
        );
        assert_eq!(
            stall(HttpLimits {
                handler: Duration::MAX,
                ..HttpLimits::default()
            }),
            u64::MAX
        );
    }

    #[test]
    fn a_crowd_shortens_idling_and_heads() {
        let rules = TimeoutPolicy {
            crowded: true,
            ..rules(None)
        };
        for phase in [ConnectionPhase::Fresh, ConnectionPhase::Head] {
            let head = turns(&state(false, phase), &rules, &watch(None), 2 * SECOND);
            assert_eq!(head, (CloseCommand::Carry, CloseCommand::Cut));
        }
        let idle = turns(
            &state(false, ConnectionPhase::Idle),
            &rules,
            &watch(None),
            5 * SECOND,
        );
        assert_eq!(idle, (CloseCommand::Carry, CloseCommand::Finish));
        let busy = turns(
            &state(true, ConnectionPhase::Idle),
            &rules,
            &watch(None),
            5 * SECOND,
        );
        assert_eq!(busy, (CloseCommand::Carry, CloseCommand::Carry));
    }

    #[test]
    fn heads_hurry_when_the_memory_for_requests_runs_out() {
        let rules = TimeoutPolicy {
            flooded: true,
            ..rules(None)
        };
        let head = turns(
            &state(false, ConnectionPhase::Head),
            &rules,
            &watch(None),
            2 * SECOND,
        );
        assert_eq!(head, (CloseCommand::Carry, CloseCommand::Cut));
        let idle = turns(
            &state(false, ConnectionPhase::Idle),
            &rules,
            &watch(None),
            5 * SECOND,
        );
        assert_eq!(idle, (CloseCommand::Carry, CloseCommand::Carry));
    }

    /// A connection for which so many bytes have waited since zero.
    fn unread(waiting: usize) -> (ConnectionMonitor, ByteReservation) {
        let shares = ServerBudgets::new(&HttpLimits::default()).connection();
        let counted = shares.answers.reserve(waiting, None).unwrap();
        let pulse = Arc::new(ConnectionState::new(Arc::new(CoarseClock::new())));
        // A request that was answered.
        drop(RequestInFlight::begin(&pulse, false));
        let mut watch = ConnectionMonitor::new(pulse, shares);
        watch.check(&rules(None), 0);
        (watch, counted)
    }

    fn order_at(watch: &mut ConnectionMonitor, strained: bool, now: u64) -> CloseCommand {
        let rules = TimeoutPolicy {
            strained,
            ..rules(None)
        };
        watch.check(&rules, now);
        watch.pulse.order()
    }

    #[test]
    fn what_nobody_takes_is_cut_and_any_progress_begins_anew() {
        let tick = rules(None).tick;
        let (mut watch, _counted) = unread(1);
        assert!(order_at(&mut watch, false, 30 * SECOND + tick - 1) < CloseCommand::Cut);
        assert_eq!(
            order_at(&mut watch, false, 30 * SECOND + tick),
            CloseCommand::Cut
        );

        let (mut watch, _counted) = unread(1_000_000);
        for round in 1..20 {
            watch.shares.answers.record_taken(1);
            assert!(order_at(&mut watch, false, round * 29 * SECOND) < CloseCommand::Cut);
        }
    }

    #[test]
    fn under_strain_what_waits_has_to_leave_at_a_rate() {
        // A sixteenth of what waited, at least 2 KiB, at most all of it.
        for (waiting, due) in [(160_000, 10_000), (20_000, 2_048), (1_000, 1_000)] {
            for (taken, expected) in [(due, false), (due - 1, true)] {
                let (mut watch, _counted) = unread(waiting);
                watch.shares.answers.record_taken(taken);
                let cut = order_at(&mut watch, true, 2 * SECOND) == CloseCommand::Cut;
                assert_eq!(cut, expected, "{taken} of {waiting}");
            }
            let (mut watch, _counted) = unread(waiting);
            assert!(
                order_at(&mut watch, true, 2 * SECOND - 1) < CloseCommand::Cut,
                "too soon"
            );
            assert!(
                order_at(&mut watch, false, 2 * SECOND) < CloseCommand::Cut,
                "no strain"
            );
        }
    }
}
