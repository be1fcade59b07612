//! How long a mounted widget is watched.
//!
//! A widget can send any message again and again. So each stage is entered once, and no message can move its deadline
//! twice: a mount takes at most `LOAD + GREET + SHOW`, and never longer than the time that is left to all mounts.

use std::time::{Duration, Instant};

/// How long a widget may take to be loaded, then to greet its host, and then to show what it got. The first two
/// end early when it does; hosts publish no times.
const LOAD: Duration = Duration::from_secs(20);
const GREET: Duration = Duration::from_secs(4);
const SHOW: Duration = Duration::from_millis(800);

/// What a widget has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
enum Stage {
    Loading,
    Greeting,
    Showing,
}

/// The deadline of one mount.
#[derive(Debug, Clone, Copy)]
pub(super) struct MountDeadline {
    stage: Stage,
    end: Instant,
    /// When the time for all mounts is over.
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

    /// When to stop watching.
    pub(super) fn end(&self) -> Instant {
        self.end.min(self.latest)
    }

    /// Whether the time for all mounts ends before the widget had its own.
    pub(super) fn is_cut(&self) -> bool {
        self.latest < self.end
    }

    /// A message of the widget may begin the next stage; none begins an earlier one, or the same one again.
    pub(super) fn heard(&mut self, message: &str, now: Instant) {
        let (stage, time) = match message {
            "loaded" => (Stage::Greeting, GREET),
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

    /// How long a widget is watched that sends these messages in turn, one each tick, for as long as it is watched.
    fn watched(messages: &[&str], all: Duration) -> Duration {
        let begin = Instant::now();
        let mut deadline = MountDeadline::new(begin, begin + all);
        let mut now = begin;
        for message in messages.iter().cycle() {
            if now >= deadline.end() {
                break;
            }
            deadline.heard(message, now);
            now += TICK;
        }
        now - begin
    }

    #[test]
    fn messages_that_repeat_move_no_deadline() {
        let long = Duration::from_secs(120);
        assert_eq!(watched(&["anything"], long), LOAD);
        assert_eq!(watched(&[LOADED], long), GREET);
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
