//! The state of one connection, shared by its task and the accept loop.
//!
//! The task stores a coarse timestamp at every change, which costs one atomic store, and the loop checks all
//! connections periodically. So no request has to arm a timer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

use futures::task::AtomicWaker;

use super::framing::FramingFindings;

/// A coarse clock: milliseconds since the server started, as of the last check.
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

    /// Reads the system clock and stores the result.
    pub(super) fn refresh(&self) -> u64 {
        let now = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.now.store(now, Ordering::Relaxed);
        now
    }

    /// Returns the time of the last refresh.
    pub(super) fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }
}

/// What a connection without a request in flight is waiting for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionPhase {
    /// Nothing was received yet; the first byte is awaited.
    Fresh,
    /// Part of a request head was received.
    Head,
    /// The last request is answered, and the next one is awaited.
    Idle,
}

/// A command of the accept loop to a connection, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CloseCommand {
    /// The connection may continue as usual.
    Carry,
    /// Close after the next response, and announce that in it.
    Last,
    /// Close as soon as no request is in flight.
    Finish,
    /// Close immediately, whatever is in flight.
    Cut,
}

/// The shared state of one connection.
///
/// `word` packs timestamp and phase into one atomic, so that the loop never pairs a new phase with an old timestamp.
/// `ambiguous` is the number of the first request to refuse, and `last` of the first one to close after; [`NONE`]
/// stands for neither.
#[derive(Debug)]
pub(super) struct ConnectionState {
    clock: Arc<CoarseClock>,
    waker: AtomicWaker,
    in_flight: AtomicU32,
    word: AtomicU64,
    order: AtomicU8,
    multiplexed: AtomicBool,
    requests: AtomicU32,
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

    /// Returns when the connection was accepted. Valid only while it is fresh.
    pub(super) fn created_at(&self) -> u64 {
        unpack(self.word.load(Ordering::Relaxed)).1
    }

    /// Whether hyper can close the connection under this command without losing a request.
    ///
    /// Only the task of the connection may ask, because what the accept loop sees is slightly out of date.
    pub(super) fn may_close(&self, order: CloseCommand) -> bool {
        let state = self.snapshot();
        match order {
            CloseCommand::Carry => false,
            // An HTTP/2 GOAWAY loses no request in transit.
            CloseCommand::Last => state.multiplexed,
            // On HTTP/1 hyper closes at once if nothing is in flight, or else after the response. That would lose a
            // partly received head, and a request that the client sends after a response that did not announce the
            // close.
            CloseCommand::Finish | CloseCommand::Cut => {
                state.multiplexed || (!state.busy && state.phase != ConnectionPhase::Head)
            }
        }
    }

    /// Records that bytes of a request head arrived.
    pub(super) fn note_head_bytes(&self) {
        // HTTP/2 sends frames between requests too, so once it is recognized only requests count as activity.
        if self.in_flight.load(Ordering::Relaxed) > 0 || self.multiplexed.load(Ordering::Relaxed) {
            return;
        }
        if unpack(self.word.load(Ordering::Relaxed)).0 != ConnectionPhase::Head {
            self.stamp(ConnectionPhase::Head);
        }
    }

    /// Records the start of a TLS handshake, which may take as long as a request head.
    pub(super) fn note_tls_handshake(&self) {
        self.stamp(ConnectionPhase::Head);
    }

    /// Records the end of the TLS handshake.
    pub(super) fn note_handshake_done(&self) {
        self.stamp(ConnectionPhase::Fresh);
    }

    /// Stores what the framing scanner found in the heads so far.
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

    /// Returns the state that the timeout policy evaluates.
    pub(super) fn snapshot(&self) -> ConnectionSnapshot {
        // The order matters: the timestamp of the last response is stored before the count drops.
        let busy = self.in_flight.load(Ordering::Acquire) > 0;
        let (phase, since) = unpack(self.word.load(Ordering::Acquire));
        ConnectionSnapshot {
            busy,
            phase,
            since,
            multiplexed: self.multiplexed.load(Ordering::Relaxed),
        }
    }

    /// Sends a command, unless a stronger one was sent already.
    pub(super) fn command(&self, order: CloseCommand) {
        if self.order() < order {
            self.order.store(order as u8, Ordering::Release);
            self.waker.wake();
        }
    }
}

/// A request in flight, from the end of its head to the end of its response.
#[derive(Debug)]
pub(super) struct RequestInFlight {
    state: Arc<ConnectionState>,
    number: u32,
}

impl RequestInFlight {
    pub(super) fn begin(state: &Arc<ConnectionState>, multiplexed: bool) -> Self {
        state.in_flight.fetch_add(1, Ordering::AcqRel);
        state.stamp(ConnectionPhase::Idle);
        if multiplexed {
            state.multiplexed.store(true, Ordering::Relaxed);
        }
        let number = state.requests.fetch_add(1, Ordering::Relaxed);
        Self {
            state: Arc::clone(state),
            number,
        }
    }

    /// Records that a part of the response was sent.
    pub(super) fn note_progress(&self) {
        self.state.stamp(ConnectionPhase::Idle);
    }

    /// Whether this response should be the last one on its connection.
    pub(super) fn is_last(&self) -> bool {
        self.state.order() >= CloseCommand::Last
            || self.number >= self.state.last.load(Ordering::Relaxed)
            || self.is_ambiguous()
    }

    /// Whether another parser could read a different request from the same bytes (request smuggling).
    pub(super) fn is_ambiguous(&self) -> bool {
        self.number >= self.state.ambiguous.load(Ordering::Relaxed)
    }
}

impl Drop for RequestInFlight {
    fn drop(&mut self) {
        self.state.stamp(ConnectionPhase::Idle);
        self.state.in_flight.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A snapshot of a connection. `since` is when it last changed phase or sent part of a response; `multiplexed` is
/// HTTP/2.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConnectionSnapshot {
    pub(super) busy: bool,
    pub(super) phase: ConnectionPhase,
    pub(super) since: u64,
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
