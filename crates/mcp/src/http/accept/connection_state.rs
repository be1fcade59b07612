//! Turns what happens on one connection into a word that the accept loop can judge.
//!
//! The connection's own task writes a coarse time stamp here when something changes, which costs
//! an atomic store; the accept loop looks at all connections now and then. So no request arms a
//! timer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

use futures::task::AtomicWaker;

use super::framing::FramingFindings;

/// Milliseconds since serving began, as of the last look.
#[derive(Debug)]
pub(super) struct CoarseClock {
    start: Instant,
    now: AtomicU64,
}

impl CoarseClock {
    pub(super) fn new() -> Self {
        Self {
            start: Instant::now(),
            now: AtomicU64::new(0),
        }
    }

    /// Reads the real clock and keeps what it said.
    pub(super) fn refresh(&self) -> u64 {
        let now = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.now.store(now, Ordering::Relaxed);
        now
    }

    /// The time of the last look.
    pub(super) fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }
}

/// What a connection without a request in flight is waiting for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionPhase {
    /// Its first byte.
    Fresh,
    /// The rest of a request head.
    Head,
    /// The next request.
    Idle,
}

/// What the accept loop wants of a connection. Later ones are stronger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CloseCommand {
    /// Go on.
    Carry,
    /// Close after the next answer, and say so in it.
    Last,
    /// Close as soon as nothing is in flight.
    Finish,
    /// Close now.
    Cut,
}

/// The state of one connection, shared by its task and the accept loop.
#[derive(Debug)]
pub(super) struct ConnectionState {
    clock: Arc<CoarseClock>,
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

impl ConnectionState {
    pub(super) fn new(clock: Arc<CoarseClock>) -> Self {
        let word = AtomicU64::new(pack(ConnectionPhase::Fresh, clock.refresh()));
        Self {
            clock,
            waker: AtomicWaker::new(),
            in_flight: AtomicU32::new(0),
            word,
            order: AtomicU8::new(CloseCommand::Carry as u8),
            multiplexed: AtomicBool::new(false),
            requests: AtomicU32::new(0),
            ambiguous: AtomicU32::new(NONE),
            last: AtomicU32::new(NONE),
        }
    }

    pub(super) fn waker(&self) -> &AtomicWaker {
        &self.waker
    }

    pub(super) fn order(&self) -> CloseCommand {
        match self.order.load(Ordering::Acquire) {
            0 => CloseCommand::Carry,
            1 => CloseCommand::Last,
            2 => CloseCommand::Finish,
            _ => CloseCommand::Cut,
        }
    }

    /// When the connection began, while it is still fresh.
    pub(super) fn created_at(&self) -> u64 {
        unpack(self.word.load(Ordering::Relaxed)).1
    }

    /// Whether hyper may be told to close under this order without losing a request.
    ///
    /// Only the connection's own task may ask, because the accept loop's picture is a moment old.
    pub(super) fn may_close(&self, order: CloseCommand) -> bool {
        let state = self.snapshot();
        match order {
            CloseCommand::Carry => false,
            // An HTTP/2 goodbye loses nothing that is on its way.
            CloseCommand::Last => state.multiplexed,
            // On HTTP/1 hyper closes at once when nothing is in flight, and after the answer when
            // something is. A head on its way would be lost, and so would the request that a peer
            // sends after an answer that did not say it is the last.
            CloseCommand::Finish | CloseCommand::Cut => {
                state.multiplexed || (!state.busy && state.phase != ConnectionPhase::Head)
            }
        }
    }

    /// Bytes of a request head came in.
    pub(super) fn note_head_bytes(&self) {
        // HTTP/2 frames come between requests too, so there only requests count as a sign of
        // life once the first one was seen.
        if self.in_flight.load(Ordering::Relaxed) > 0 || self.multiplexed.load(Ordering::Relaxed) {
            return;
        }
        if unpack(self.word.load(Ordering::Relaxed)).0 != ConnectionPhase::Head {
            self.stamp(ConnectionPhase::Head);
        }
    }

    /// The peer greets us in TLS, which may take as long as a head.
    pub(super) fn note_tls_handshake(&self) {
        self.stamp(ConnectionPhase::Head);
    }

    /// It has, and may now say something.
    pub(super) fn note_handshake_done(&self) {
        self.stamp(ConnectionPhase::Fresh);
    }

    /// Keeps what was found in the heads so far.
    pub(super) fn note_findings(&self, findings: FramingFindings) {
        self.ambiguous
            .store(findings.ambiguous.unwrap_or(NONE), Ordering::Relaxed);
        self.last
            .store(findings.last.unwrap_or(NONE), Ordering::Relaxed);
    }

    fn stamp(&self, phase: ConnectionPhase) {
        self.word
            .store(pack(phase, self.clock.now()), Ordering::Release);
    }

    /// What there is to judge.
    pub(super) fn snapshot(&self) -> ConnectionSnapshot {
        // The order matters: the stamp of the last answer is stored before the count falls.
        let busy = self.in_flight.load(Ordering::Acquire) > 0;
        let (phase, since) = unpack(self.word.load(Ordering::Acquire));
        ConnectionSnapshot {
            busy,
            phase,
            since,
            multiplexed: self.multiplexed.load(Ordering::Relaxed),
        }
    }

    /// Gives an order, unless a stronger one stands.
    pub(super) fn command(&self, order: CloseCommand) {
        if self.order() < order {
            self.order.store(order as u8, Ordering::Release);
            self.waker.wake();
        }
    }
}

/// One request in flight, from the end of its head to the end of its answer.
#[derive(Debug)]
pub(super) struct RequestInFlight {
    pulse: Arc<ConnectionState>,
    number: u32,
}

impl RequestInFlight {
    pub(super) fn begin(pulse: &Arc<ConnectionState>, multiplexed: bool) -> Self {
        pulse.in_flight.fetch_add(1, Ordering::AcqRel);
        pulse.stamp(ConnectionPhase::Idle);
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
    pub(super) fn note_progress(&self) {
        self.pulse.stamp(ConnectionPhase::Idle);
    }

    /// True when this answer should be the last one of its connection.
    pub(super) fn is_last(&self) -> bool {
        self.pulse.order() >= CloseCommand::Last
            || self.number >= self.pulse.last.load(Ordering::Relaxed)
            || self.is_ambiguous()
    }

    /// True when another reader of the same bytes could see a different request.
    pub(super) fn is_ambiguous(&self) -> bool {
        self.number >= self.pulse.ambiguous.load(Ordering::Relaxed)
    }
}

impl Drop for RequestInFlight {
    fn drop(&mut self) {
        self.pulse.stamp(ConnectionPhase::Idle);
        self.pulse.in_flight.fetch_sub(1, Ordering::AcqRel);
    }
}

/// What the accept loop sees of a connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConnectionSnapshot {
    pub(super) busy: bool,
    pub(super) phase: ConnectionPhase,
    /// When it last changed, or last moved a part of an answer.
    pub(super) since: u64,
    /// Whether it speaks HTTP/2.
    pub(super) multiplexed: bool,
}

fn pack(phase: ConnectionPhase, since: u64) -> u64 {
    since << 2 | phase as u64
}

fn unpack(word: u64) -> (ConnectionPhase, u64) {
    let phase = match word & 3 {
        0 => ConnectionPhase::Fresh,
        1 => ConnectionPhase::Head,
        _ => ConnectionPhase::Idle,
    };
    (phase, word >> 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_keeps_its_phase() {
        for phase in [
            ConnectionPhase::Fresh,
            ConnectionPhase::Head,
            ConnectionPhase::Idle,
        ] {
            assert_eq!(unpack(pack(phase, 123_456_789)), (phase, 123_456_789));
        }
    }
}
