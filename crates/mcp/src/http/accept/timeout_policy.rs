//! The timeout policy: decides from the state of a connection and the time whether it continues, closes after its
//! response, or is cut.

use std::sync::Arc;
use std::time::Duration;

use super::connection_state::{CloseCommand, ConnectionPhase, ConnectionSnapshot, ConnectionState};
use crate::byte_budget::{ConnectionShare, ConnectionShares};
use crate::limits::HttpLimits;

/// The accept loop's view of one connection. `finishing` is when it was first told to close.
#[derive(Debug)]
pub(super) struct ConnectionMonitor {
    connection: Arc<ConnectionState>,
    opened_at: u64,
    finishing: Option<u64>,
    shares: ConnectionShares,
    unread: UnreadProgress,
    evicted: bool,
}

/// How fast the client reads its pending responses: bytes that wait, bytes ever taken, and when it last took any or
/// had nothing to take.
#[derive(Debug, Clone, Copy, Default)]
struct UnreadProgress {
    waiting: usize,
    taken: u64,
    since: u64,
    progress: Progress,
}

/// When the client last read enough to count as progress, and the total it has to reach before it counts again.
#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    at: u64,
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
            // Progress means a sixteenth of what waits, with a minimum so that a byte now and then does not count.
            let due = (waiting / 16).max(LEAST_TAKEN).min(waiting);
            self.progress = Progress {
                at: now,
                next: taken.saturating_add(due as u64),
            };
        }
        (self.waiting, self.taken) = (waiting, taken);
    }

    /// Returns for how long the client has read too little; `None` if nothing waits.
    fn stalled(&self, now: u64) -> Option<u64> {
        (self.waiting > 0).then(|| now.saturating_sub(self.progress.at))
    }
}

/// The fewest bytes that count as progress. If fewer wait, all of them do. A client that reads one byte a second never
/// stalls by the clock, and would hold its responses for hours; with a minimum it has to read at a speed that ends some
/// time.
const LEAST_TAKEN: usize = 2 * 1024;

impl ConnectionMonitor {
    pub(super) fn new(connection: Arc<ConnectionState>, shares: ConnectionShares) -> Self {
        let opened_at = connection.created_at();
        Self {
            connection,
            opened_at,
            finishing: None,
            shares,
            unread: UnreadProgress::default(),
            evicted: false,
        }
    }

    /// Returns the unread responses and for how long the client has read too little of them.
    pub(super) fn stalled(&mut self, now: u64) -> Option<StallInfo> {
        self.unread.observe(&self.shares.answers, now);
        let for_millis = self.unread.stalled(now)?;
        let bytes = self.unread.waiting;
        Some(StallInfo { for_millis, bytes })
    }

    /// Returns the bytes of an incomplete request head and since when it has been arriving. `None` for a connection
    /// that has sent a request before and nothing of the next.
    pub(super) fn headless(&self, now: u64) -> Option<StallInfo> {
        let state = self.connection.snapshot();
        let headless = !state.busy && state.phase != ConnectionPhase::Idle;
        headless.then(|| StallInfo {
            for_millis: now.saturating_sub(state.since),
            bytes: self.shares.bodies.held(),
        })
    }

    pub(super) fn is_cut(&self) -> bool {
        self.connection.order() == CloseCommand::Cut
    }

    /// Cuts the connection now, to make room for others.
    pub(super) fn evict(&mut self) {
        self.evicted = true;
        self.connection.command(CloseCommand::Cut);
    }

    pub(super) fn is_evicted(&self) -> bool {
        self.evicted
    }

    /// Evaluates the policy and sends the resulting command.
    pub(super) fn check(&mut self, policy: &TimeoutPolicy, now: u64) {
        let mut state = self.connection.snapshot();
        self.unread.observe(&self.shares.answers, now);
        if self.unread.waiting > 0 {
            // What was handed to the kernel is still on its way.
            state.since = state.since.max(self.unread.since);
        }
        let order = policy.evaluate(&state, self, now);
        if order >= CloseCommand::Finish && self.finishing.is_none() {
            self.finishing = Some(now);
        }
        self.connection.command(order);
    }
}

/// What a connection holds, and for how long it has made no progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StallInfo {
    pub(super) for_millis: u64,
    pub(super) bytes: usize,
}

/// The limits in milliseconds, and the conditions that tighten them: few free slots (`crowded`), unread responses
/// above half of their budget (`strained`), requests above half of theirs (`flooded`), or shutdown (`closing`).
///
/// `tick` is the resolution of the timestamps. It is added to every limit, so that none expires early. `evict_after`
/// is the stall time after which unread responses can be evicted while something waits for room.
#[derive(Debug, Clone)]
pub(super) struct TimeoutPolicy {
    first_byte: u64,
    headers: u64,
    idle: u64,
    stall: u64,
    unread: u64,
    strained_period: u64,
    pub(super) evict_after: u64,
    age: u64,
    linger: u64,
    tick: u64,
    closing: Option<u64>,
    pub(super) crowded: bool,
    pub(super) strained: bool,
    pub(super) flooded: bool,
}

/// Time limit for a request head, and for the silence before one, while few connection slots or little memory for
/// requests is left. A client that has something to say says it in a fraction of that; an attacker has to open
/// connections several times as often to hold as many.
const HEAD_LIMIT_UNDER_LOAD: u64 = 2_000;

impl TimeoutPolicy {
    pub(super) fn new(limits: &HttpLimits) -> Self {
        let working = limits.body.saturating_add(limits.handler);
        let longest_wait = working.max(limits.sse_keep_alive.saturating_mul(2));
        let mut policy = Self {
            first_byte: millis(limits.first_byte),
            headers: millis(limits.headers),
            idle: millis(limits.idle),
            stall: millis(limits.stall.max(longest_wait)),
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
            policy.first_byte,
            policy.headers,
            policy.idle,
            policy.stall,
            policy.unread,
            policy.strained_period,
            policy.age,
        ];
        let shortest = all.into_iter().min().unwrap_or_default();
        // The linger is left out, because it matters only during shutdown, when the checks are more frequent. An
        // eighth of the shortest limit keeps the error small; twice a second is enough.
        policy.tick = (shortest / 8).clamp(5, 500);
        policy
    }

    /// Starts the shutdown. The loop checks at this interval from now on, so limits that start now are more exact.
    pub(super) fn begin_closing(&mut self, now: u64, tick: Duration) {
        self.closing = Some(now);
        self.tick = millis(tick);
    }

    /// Returns how often the loop should check the connections.
    pub(super) fn tick(&self) -> Duration {
        Duration::from_millis(self.tick)
    }

    fn has_elapsed(&self, since: u64, limit: u64, now: u64) -> bool {
        now.saturating_sub(since) >= limit.saturating_add(self.tick)
    }

    fn evaluate(
        &self,
        state: &ConnectionSnapshot,
        monitor: &ConnectionMonitor,
        now: u64,
    ) -> CloseCommand {
        let leaving = self.closing_since(monitor, now);
        if self.must_cut(state, monitor, leaving, now) {
            CloseCommand::Cut
        } else if self.must_finish(state, leaving, now) {
            CloseCommand::Finish
        } else if leaving.is_some() {
            CloseCommand::Last
        } else {
            CloseCommand::Carry
        }
    }

    /// Returns since when the connection has to close, because of its age or a shutdown.
    fn closing_since(&self, monitor: &ConnectionMonitor, now: u64) -> Option<u64> {
        let aged = || {
            self.has_elapsed(monitor.opened_at, self.age, now)
                .then(|| monitor.opened_at.saturating_add(self.age))
        };
        self.closing.or_else(aged)
    }

    /// Shortens a limit on a request head, or on the silence before one, under load.
    fn limit_under_load(&self, limit: u64) -> u64 {
        if self.crowded || self.flooded {
            limit.min(HEAD_LIMIT_UNDER_LOAD)
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
        monitor: &ConnectionMonitor,
        leaving: Option<u64>,
        now: u64,
    ) -> bool {
        let unread = &monitor.unread;
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
                self.has_elapsed(state.since, self.limit_under_load(self.first_byte), now)
                    || leaving.is_some_and(|since| self.has_lingered(since, now))
            }
            ConnectionPhase::Head => {
                self.has_elapsed(state.since, self.limit_under_load(self.headers), now)
            }
            // It was told to close and has nothing left to answer, but the client does not read what is buffered or
            // does not complete an HTTP/2 shutdown.
            ConnectionPhase::Idle => {
                let closing = monitor.finishing.map(|since| since.max(state.since));
                closing.is_some_and(|since| self.has_elapsed(since, self.headers, now))
            }
        }
    }

    fn must_finish(&self, state: &ConnectionSnapshot, leaving: Option<u64>, now: u64) -> bool {
        if let Some(since) = leaving {
            // On HTTP/1 the next request may be in transit, so an idle connection lingers.
            let quiet = !state.busy && self.has_lingered(since.max(state.since), now);
            return state.multiplexed || quiet;
        }
        // When slots run out, idle connections are closed sooner.
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
    use crate::byte_budget::{ByteReservation, ServerBudgets};

    const SECOND: u64 = 1000;

    fn policy(closing: Option<u64>) -> TimeoutPolicy {
        TimeoutPolicy {
            closing,
            ..TimeoutPolicy::new(&HttpLimits::default())
        }
    }

    fn monitor(finishing: Option<u64>) -> ConnectionMonitor {
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

    /// Returns the commands just before and at the end of a limit that started at zero.
    fn turns(
        state: &ConnectionSnapshot,
        policy: &TimeoutPolicy,
        monitor: &ConnectionMonitor,
        after: u64,
    ) -> (CloseCommand, CloseCommand) {
        let end = after + policy.tick;
        (
            policy.evaluate(state, monitor, end - 1),
            policy.evaluate(state, monitor, end),
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
            let turns = turns(&state, &policy(closing), &monitor(finishing), after);
            assert_eq!(turns, expect, "{name}");
        }
    }

    #[test]
    fn at_the_end_multiplexed_connections_finish_and_busy_ones_answer_a_last_time() {
        let policy = policy(Some(0));
        assert_eq!(
            policy.evaluate(&state(true, ConnectionPhase::Idle), &monitor(None), 0),
            CloseCommand::Last
        );
        let multiplexed = ConnectionSnapshot {
            multiplexed: true,
            ..state(false, ConnectionPhase::Idle)
        };
        assert_eq!(
            policy.evaluate(&multiplexed, &monitor(None), 0),
            CloseCommand::Finish
        );
    }

    #[test]
    fn an_old_connection_goes_when_it_is_quiet() {
        let (policy, age) = (policy(None), 600 * SECOND);
        let active = |since: u64| ConnectionSnapshot {
            since,
            ..state(false, ConnectionPhase::Idle)
        };
        assert_eq!(
            policy.evaluate(&active(age - 1), &monitor(None), age),
            CloseCommand::Carry
        );
        let past = age + policy.tick;
        assert_eq!(
            policy.evaluate(&active(past), &monitor(None), past),
            CloseCommand::Last
        );
        assert_eq!(
            policy.evaluate(&active(past), &monitor(None), past + SECOND),
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
        let policy = TimeoutPolicy {
            crowded: true,
            ..policy(None)
        };
        for phase in [ConnectionPhase::Fresh, ConnectionPhase::Head] {
            let head = turns(&state(false, phase), &policy, &monitor(None), 2 * SECOND);
            assert_eq!(head, (CloseCommand::Carry, CloseCommand::Cut));
        }
        let idle = turns(
            &state(false, ConnectionPhase::Idle),
            &policy,
            &monitor(None),
            5 * SECOND,
        );
        assert_eq!(idle, (CloseCommand::Carry, CloseCommand::Finish));
        let busy = turns(
            &state(true, ConnectionPhase::Idle),
            &policy,
            &monitor(None),
            5 * SECOND,
        );
        assert_eq!(busy, (CloseCommand::Carry, CloseCommand::Carry));
    }

    #[test]
    fn heads_hurry_when_the_memory_for_requests_runs_out() {
        let policy = TimeoutPolicy {
            flooded: true,
            ..policy(None)
        };
        let head = turns(
            &state(false, ConnectionPhase::Head),
            &policy,
            &monitor(None),
            2 * SECOND,
        );
        assert_eq!(head, (CloseCommand::Carry, CloseCommand::Cut));
        let idle = turns(
            &state(false, ConnectionPhase::Idle),
            &policy,
            &monitor(None),
            5 * SECOND,
        );
        assert_eq!(idle, (CloseCommand::Carry, CloseCommand::Carry));
    }

    /// A connection with so many bytes unread since time zero.
    fn unread(waiting: usize) -> (ConnectionMonitor, ByteReservation) {
        let shares = ServerBudgets::new(&HttpLimits::default()).connection();
        let counted = shares.answers.reserve(waiting, None).unwrap();
        let connection = Arc::new(ConnectionState::new(Arc::new(CoarseClock::new())));
        // The connection has answered one request.
        drop(RequestInFlight::begin(&connection, false));
        let mut monitor = ConnectionMonitor::new(connection, shares);
        monitor.check(&policy(None), 0);
        (monitor, counted)
    }

    fn order_at(monitor: &mut ConnectionMonitor, strained: bool, now: u64) -> CloseCommand {
        let policy = TimeoutPolicy {
            strained,
            ..policy(None)
        };
        monitor.check(&policy, now);
        monitor.connection.order()
    }

    #[test]
    fn an_unread_response_is_cut_and_progress_restarts_the_timeout() {
        let tick = policy(None).tick;
        let (mut monitor, _counted) = unread(1);
        assert!(order_at(&mut monitor, false, 30 * SECOND + tick - 1) < CloseCommand::Cut);
        assert_eq!(
            order_at(&mut monitor, false, 30 * SECOND + tick),
            CloseCommand::Cut
        );

        let (mut monitor, _counted) = unread(1_000_000);
        for round in 1..20 {
            monitor.shares.answers.record_taken(1);
            assert!(order_at(&mut monitor, false, round * 29 * SECOND) < CloseCommand::Cut);
        }
    }

    #[test]
    fn under_strain_what_waits_has_to_leave_at_a_rate() {
        // Progress is a sixteenth of what waits: at least 2 KiB, at most all of it.
        for (waiting, due) in [(160_000, 10_000), (20_000, 2_048), (1_000, 1_000)] {
            for (taken, expected) in [(due, false), (due - 1, true)] {
                let (mut monitor, _counted) = unread(waiting);
                monitor.shares.answers.record_taken(taken);
                let cut = order_at(&mut monitor, true, 2 * SECOND) == CloseCommand::Cut;
                assert_eq!(cut, expected, "{taken} of {waiting}");
            }
            let (mut monitor, _counted) = unread(waiting);
            assert!(
                order_at(&mut monitor, true, 2 * SECOND - 1) < CloseCommand::Cut,
                "too soon"
            );
            assert!(
                order_at(&mut monitor, false, 2 * SECOND) < CloseCommand::Cut,
                "no strain"
            );
        }
    }
}
