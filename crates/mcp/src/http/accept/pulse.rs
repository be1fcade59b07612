//! Turns what happens on one connection into a word that the accept loop can judge.
//!
//! The connection's own task writes a coarse time stamp here when something changes, which costs
//! an atomic store; the accept loop looks at all connections now and then, and orders those that
//! overstayed to finish or cuts them. So no request arms a timer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::task::AtomicWaker;

use super::wire::Findings;
use crate::http::limits::Limits;

/// Milliseconds since serving began, as of the last look.
#[derive(Debug)]
pub(super) struct Clock {
    start: Instant,
    now: AtomicU64,
}

impl Clock {
    pub(super) fn new() -> Self {
        Self {
            start: Instant::now(),
            now: AtomicU64::new(0),
        }
    }

    /// Reads the real clock and keeps what it said.
    pub(super) fn refresh(&self) -> u64 {
        let now = millis(self.start.elapsed());
        self.now.store(now, Ordering::Relaxed);
        now
    }

    fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }
}

/// What a connection without a request in flight is waiting for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Its first byte.
    Fresh,
    /// The rest of a request head.
    Head,
    /// The next request.
    Idle,
}

/// What the accept loop wants of a connection. Later ones are stronger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Order {
    /// Go on.
    Carry,
    /// Close after the next answer.
    Last,
    /// Answer what is in flight, then close.
    Finish,
    /// Close now.
    Cut,
}

/// The state of one connection, shared by its task and the accept loop.
#[derive(Debug)]
pub(super) struct Pulse {
    clock: Arc<Clock>,
    waker: AtomicWaker,
    in_flight: AtomicU32,
    /// Time stamp and phase in one word, so that the loop never pairs a new phase with an old
    /// stamp.
    word: AtomicU64,
    order: AtomicU8,
    multiplexed: AtomicBool,
    /// How many requests began.
    requests: AtomicU32,
    /// The first request to refuse, and the first to close after; [`NONE`] for none.
    ambiguous: AtomicU32,
    last: AtomicU32,
}

const NONE: u32 = u32::MAX;

impl Pulse {
    pub(super) fn new(clock: Arc<Clock>) -> Self {
        let word = AtomicU64::new(pack(Phase::Fresh, clock.refresh()));
        Self {
            clock,
            waker: AtomicWaker::new(),
            in_flight: AtomicU32::new(0),
            word,
            order: AtomicU8::new(Order::Carry as u8),
            multiplexed: AtomicBool::new(false),
            requests: AtomicU32::new(0),
            ambiguous: AtomicU32::new(NONE),
            last: AtomicU32::new(NONE),
        }
    }

    pub(super) fn waker(&self) -> &AtomicWaker {
        &self.waker
    }

    pub(super) fn order(&self) -> Order {
        match self.order.load(Ordering::Acquire) {
            0 => Order::Carry,
            1 => Order::Last,
            2 => Order::Finish,
            _ => Order::Cut,
        }
    }

    /// True while a request head is on its way: closing now would lose a request.
    pub(super) fn is_mid_head(&self) -> bool {
        let state = self.look();
        !state.busy && state.phase == Phase::Head
    }

    /// Bytes of a request head came in.
    pub(super) fn heard(&self) {
        // HTTP/2 frames come between requests too, so there only requests count as a sign of
        // life once the first one was seen.
        if self.in_flight.load(Ordering::Relaxed) > 0 || self.multiplexed.load(Ordering::Relaxed) {
            return;
        }
        if unpack(self.word.load(Ordering::Relaxed)).0 != Phase::Head {
            self.stamp(Phase::Head);
        }
    }

    /// Keeps what was found in the heads so far.
    pub(super) fn note(&self, findings: Findings) {
        self.ambiguous
            .store(findings.ambiguous.unwrap_or(NONE), Ordering::Relaxed);
        self.last
            .store(findings.last.unwrap_or(NONE), Ordering::Relaxed);
    }

    fn stamp(&self, phase: Phase) {
        self.word
            .store(pack(phase, self.clock.now()), Ordering::Release);
    }

    fn look(&self) -> State {
        // The order matters: the stamp of the last answer is stored before the count falls.
        let busy = self.in_flight.load(Ordering::Acquire) > 0;
        let (phase, since) = unpack(self.word.load(Ordering::Acquire));
        State {
            busy,
            phase,
            since,
            multiplexed: self.multiplexed.load(Ordering::Relaxed),
        }
    }

    fn command(&self, order: Order) {
        if self.order() < order {
            self.order.store(order as u8, Ordering::Release);
            self.waker.wake();
        }
    }
}

/// One request in flight, from the end of its head to the end of its answer.
#[derive(Debug)]
pub(super) struct Busy {
    pulse: Arc<Pulse>,
    number: u32,
}

impl Busy {
    pub(super) fn begin(pulse: &Arc<Pulse>, multiplexed: bool) -> Self {
        pulse.in_flight.fetch_add(1, Ordering::AcqRel);
        pulse.stamp(Phase::Idle);
        if multiplexed {
            pulse.multiplexed.store(true, Ordering::Relaxed);
        }
        let number = pulse.requests.fetch_add(1, Ordering::Relaxed);
        Self {
            pulse: Arc::clone(pulse),
            number,
        }
    }

    /// A part of the answer went out.
    pub(super) fn moved(&self) {
        self.pulse.stamp(Phase::Idle);
    }

    /// True when this answer should be the last one of its connection.
    pub(super) fn is_last(&self) -> bool {
        self.pulse.order() >= Order::Last
            || self.number >= self.pulse.last.load(Ordering::Relaxed)
            || self.is_ambiguous()
    }

    /// True when another reader of the same bytes could see a different request.
    pub(super) fn is_ambiguous(&self) -> bool {
        self.number >= self.pulse.ambiguous.load(Ordering::Relaxed)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.pulse.stamp(Phase::Idle);
        self.pulse.in_flight.fetch_sub(1, Ordering::AcqRel);
    }
}

#[derive(Debug, Clone, Copy)]
struct State {
    busy: bool,
    phase: Phase,
    since: u64,
    multiplexed: bool,
}

/// The accept loop's side of one connection.
#[derive(Debug)]
pub(super) struct Watch {
    pulse: Arc<Pulse>,
    born: u64,
    finishing: Option<u64>,
}

impl Watch {
    pub(super) fn new(pulse: Arc<Pulse>) -> Self {
        let born = pulse.clock.now();
        Self {
            pulse,
            born,
            finishing: None,
        }
    }

    /// Judges the connection and gives it its order.
    pub(super) fn attend(&mut self, rules: &Rules, now: u64) {
        let state = self.pulse.look();
        let order = rules.judge(&state, self, now);
        if order >= Order::Finish && self.finishing.is_none() {
            self.finishing = Some(now);
        }
        self.pulse.command(order);
    }
}

/// The limits in milliseconds, with what changes them: a crowd, or shutdown.
#[derive(Debug, Clone)]
pub(super) struct Rules {
    first_byte: u64,
    headers: u64,
    idle: u64,
    stall: u64,
    age: u64,
    linger: u64,
    /// How coarse the stamps are. Added to every wait, so that none ends early.
    tick: u64,
    /// Since when we are shutting down.
    pub(super) closing: Option<u64>,
    /// Whether few slots are left.
    pub(super) crowded: bool,
}

impl Rules {
    pub(super) fn new(limits: &Limits) -> Self {
        let mut rules = Self {
            first_byte: millis(limits.first_byte),
            headers: millis(limits.headers),
            idle: millis(limits.idle),
            stall: millis(limits.stall),
            age: millis(limits.age),
            linger: millis(limits.linger),
            tick: 0,
            closing: None,
            crowded: false,
        };
        let all = [
            rules.first_byte,
            rules.headers,
            rules.idle,
            rules.stall,
            rules.age,
        ];
        let shortest = all.into_iter().min().unwrap_or_default();
        // Without the linger, which matters only in shutdown, where the rounds are quicker.
        // An eighth of the shortest wait keeps the error small; twice a second is enough.
        rules.tick = (shortest / 8).clamp(5, 500);
        rules
    }

    /// How often the loop should look.
    pub(super) fn tick(&self) -> Duration {
        Duration::from_millis(self.tick)
    }

    fn over(&self, since: u64, limit: u64, now: u64) -> bool {
        now.saturating_sub(since) >= limit.saturating_add(self.tick)
    }

    fn judge(&self, state: &State, watch: &Watch, now: u64) -> Order {
        let leaving = self.leaving(watch, now);
        if self.must_cut(state, watch, leaving, now) {
            Order::Cut
        } else if self.must_finish(state, leaving, now) {
            Order::Finish
        } else if leaving.is_some() {
            Order::Last
        } else {
            Order::Carry
        }
    }

    /// Since when the connection should go, whatever it does.
    fn leaving(&self, watch: &Watch, now: u64) -> Option<u64> {
        let aged = || {
            self.over(watch.born, self.age, now)
                .then(|| watch.born.saturating_add(self.age))
        };
        self.closing.or_else(aged)
    }

    fn lingered(&self, since: u64, now: u64) -> bool {
        self.over(since, self.linger, now)
    }

    fn must_cut(&self, state: &State, watch: &Watch, leaving: Option<u64>, now: u64) -> bool {
        if state.busy {
            return self.over(state.since, self.stall, now);
        }
        match state.phase {
            Phase::Fresh => {
                self.over(state.since, self.first_byte, now)
                    || leaving.is_some_and(|since| self.lingered(since, now))
            }
            Phase::Head => self.over(state.since, self.headers, now),
            // It was told to finish and has nothing left to answer, but the peer does not take
            // what is buffered or does not play its part in an HTTP/2 goodbye.
            Phase::Idle => {
                let told = watch.finishing.map(|told| told.max(state.since));
                told.is_some_and(|told| self.over(told, self.headers, now))
            }
        }
    }

    fn must_finish(&self, state: &State, leaving: Option<u64>, now: u64) -> bool {
        if let Some(since) = leaving {
            // An HTTP/2 goodbye loses nothing that is on its way. On HTTP/1 the next request may
            // be on its way, so an idle connection lingers.
            let quiet = self.lingered(since.max(state.since), now);
            return state.busy || state.multiplexed || quiet;
        }
        // When slots run out, those who wait for nothing give theirs up sooner.
        let idle = if self.crowded {
            self.idle.min(self.first_byte)
        } else {
            self.idle
        };
        !state.busy && state.phase == Phase::Idle && self.over(state.since, idle, now)
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn pack(phase: Phase, since: u64) -> u64 {
    since << 2 | phase as u64
}

fn unpack(word: u64) -> (Phase, u64) {
    let phase = match word & 3 {
        0 => Phase::Fresh,
        1 => Phase::Head,
        _ => Phase::Idle,
    };
    (phase, word >> 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1000;

    fn rules(closing: Option<u64>) -> Rules {
        Rules {
            closing,
            ..Rules::new(&Limits::default())
        }
    }

    fn watch(finishing: Option<u64>) -> Watch {
        Watch {
            finishing,
            ..Watch::new(Arc::new(Pulse::new(Arc::new(Clock::new()))))
        }
    }

    fn state(busy: bool, phase: Phase) -> State {
        State {
            busy,
            phase,
            since: 0,
            multiplexed: false,
        }
    }

    /// The order just before and at the end of a wait that began at zero.
    fn turns(state: &State, rules: &Rules, watch: &Watch, after: u64) -> (Order, Order) {
        let end = after + rules.tick;
        (
            rules.judge(state, watch, end - 1),
            rules.judge(state, watch, end),
        )
    }

    #[test]
    fn every_wait_has_its_end() {
        use Order::{Carry, Cut, Finish, Last};
        let rows = [
            (
                "silent",
                state(false, Phase::Fresh),
                None,
                None,
                5 * SECOND,
                (Carry, Cut),
            ),
            (
                "half a head",
                state(false, Phase::Head),
                None,
                None,
                10 * SECOND,
                (Carry, Cut),
            ),
            (
                "idle",
                state(false, Phase::Idle),
                None,
                None,
                60 * SECOND,
                (Carry, Finish),
            ),
            (
                "stuck",
                state(true, Phase::Idle),
                None,
                None,
                60 * SECOND,
                (Carry, Cut),
            ),
            (
                "no goodbye",
                state(false, Phase::Idle),
                Some(0),
                None,
                10 * SECOND,
                (Carry, Cut),
            ),
            (
                "silent at the end",
                state(false, Phase::Fresh),
                None,
                Some(0),
                500,
                (Last, Cut),
            ),
            (
                "idle at the end",
                state(false, Phase::Idle),
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
    fn at_the_end_busy_and_multiplexed_connections_finish_at_once() {
        let rules = rules(Some(0));
        assert_eq!(
            rules.judge(&state(true, Phase::Idle), &watch(None), 0),
            Order::Finish
        );
        let multiplexed = State {
            multiplexed: true,
            ..state(false, Phase::Idle)
        };
        assert_eq!(rules.judge(&multiplexed, &watch(None), 0), Order::Finish);
    }

    #[test]
    fn an_old_connection_goes_when_it_is_quiet() {
        let (rules, age) = (rules(None), 600 * SECOND);
        let active = |since: u64| State {
            since,
            ..state(false, Phase::Idle)
        };
        assert_eq!(
            rules.judge(&active(age - 1), &watch(None), age),
            Order::Carry
        );
        let past = age + rules.tick;
        assert_eq!(rules.judge(&active(past), &watch(None), past), Order::Last);
        assert_eq!(
            rules.judge(&active(past), &watch(None), past + SECOND),
            Order::Finish
        );
    }

    #[test]
    fn a_crowd_shortens_idling_only() {
        let rules = Rules {
            crowded: true,
            ..rules(None)
        };
        let idle = turns(&state(false, Phase::Idle), &rules, &watch(None), 5 * SECOND);
        assert_eq!(idle, (Order::Carry, Order::Finish));
        let busy = turns(&state(true, Phase::Idle), &rules, &watch(None), 5 * SECOND);
        assert_eq!(busy, (Order::Carry, Order::Carry));
    }

    #[test]
    fn a_stamp_keeps_its_phase() {
        for phase in [Phase::Fresh, Phase::Head, Phase::Idle] {
            assert_eq!(unpack(pack(phase, 123_456_789)), (phase, 123_456_789));
        }
    }
}
