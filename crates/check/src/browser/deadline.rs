//! The deadline of a mounted widget.
//!
//! A widget can send any message repeatedly. So each stage is entered once, and no message extends a deadline twice: a
//! mount takes at most `LOAD + HANDSHAKE + SHOW` (24.8 seconds), and never longer than the time left for all mounts.

use std::time::{Duration, Instant};

/// The time limits for loading, for the `ui/initialize` handshake, and for rendering the result. The first two stages
/// end early when the widget is done. The values are ours, since hosts publish none.
const LOAD: Duration = Duration::from_secs(20);
const HANDSHAKE: Duration = Duration::from_secs(4);
const SHOW: Duration = Duration::from_millis(800);

/// The stage that a widget has reached; stages only advance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
enum Stage {
    Loading,
    Handshake,
    Showing,
}

/// The deadline of one mount: `end` is that of the stage, `latest` that of all mounts together.
#[derive(Debug, Clone, Copy)]
pub(super) struct MountDeadline {
    stage: Stage,
    end: Instant,
    latest: Instant,
}

impl MountDeadline {
    pub(super) fn new(now: Instant, latest: Instant) -> Self {
        Self {
            stage: Stage::Loading,
            end: now + LOAD,
            latest,
        }
    }

    pub(super) fn end(&self) -> Instant {
        self.end.min(self.latest)
    }

    /// Whether the time for all mounts cuts the current stage short.
    pub(super) fn is_cut(&self) -> bool {
        self.latest < self.end
    }

    /// Advances to the stage that a message begins. No message returns to an earlier stage or restarts the same one.
    pub(super) fn advance(&mut self, message: &str, now: Instant) {
        let (stage, time) = match message {
            "loaded" => (Stage::Handshake, HANDSHAKE),
            "ui/notifications/initialized" => (Stage::Showing, SHOW),
            _ => return,
        };
        if stage > self.stage {
            self.stage = stage;
            self.end = now + time;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOADED: &str = "loaded";
    const READY: &str = "ui/notifications/initialized";
    const TICK: Duration = Duration::from_millis(100);

    /// Simulates a widget that repeats these messages, one each tick, and returns how long it is observed.
    fn watched(messages: &[&str], all: Duration) -> Duration {
        let begin = Instant::now();
        let mut deadline = MountDeadline::new(begin, begin + all);
        let mut now = begin;
        for message in messages.iter().cycle() {
            if now >= deadline.end() {
                break;
            }
            deadline.advance(message, now);
            now += TICK;
        }
        now - begin
    }

    #[test]
    fn messages_that_repeat_move_no_deadline() {
        let long = Duration::from_secs(120);
        assert_eq!(watched(&["anything"], long), LOAD);
        assert_eq!(watched(&[LOADED], long), HANDSHAKE);
        assert_eq!(watched(&[READY], long), SHOW);
        assert_eq!(watched(&[LOADED, READY], long), TICK + SHOW);
        assert_eq!(watched(&[READY, LOADED], long), SHOW);
    }

    #[test]
    fn a_mount_ends_with_the_time_of_all() {
        let short = Duration::from_secs(1);
        assert_eq!(watched(&["anything"], short), short);
        assert_eq!(watched(&[LOADED], short), short);
        assert_eq!(watched(&[READY], short), SHOW);
        let now = Instant::now();
        assert!(MountDeadline::new(now, now + short).is_cut());
        assert!(!MountDeadline::new(now, now + LOAD).is_cut());
    }
}
