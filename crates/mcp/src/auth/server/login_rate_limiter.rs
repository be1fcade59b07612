//! How often a password may be guessed: by the name that is tried, since all the world can come from one
//! address and one person from many.
//!
//! A browser in which that name signed in before has a counter of its own, so that guesses elsewhere do not keep its
//! owner waiting. All such browsers of a name share one more, so that many cookies are not many times the guesses.

use std::time::Duration;

use tokio::time::Instant;

use super::device::DeviceId;
use super::rate_limit::RateLimiter;

/// Wrong passwords in a row before one has to wait.
const AT_ONCE: u32 = 10;
/// How long each one more has to wait.
const EACH: Duration = Duration::from_secs(30);
/// Passwords, right or wrong, in all known browsers of one name, and how long each one more has to wait.
const DEVICES_AT_ONCE: u32 = 30;
const DEVICES_EACH: Duration = Duration::from_secs(2);
/// Counters, in one mebibyte. To keep all of them empty, and so everybody out, takes 2,184 guesses a second, which is
/// far more than the password hash lets through.
const SLOTS: usize = 65_536;
/// The same for known browsers. Only who has signed in can draw from these.
const DEVICE_SLOTS: usize = 16_384;

/// Counts wrong passwords. In memory alone: a restart forgives a few guesses.
pub(crate) struct LoginRateLimiter {
    names: RateLimiter,
    devices: RateLimiter,
    device_names: RateLimiter,
}

impl Default for LoginRateLimiter {
    fn default() -> Self {
        Self {
            names: RateLimiter::new(SLOTS, AT_ONCE, EACH),
            devices: RateLimiter::new(DEVICE_SLOTS, AT_ONCE, EACH),
            device_names: RateLimiter::new(DEVICE_SLOTS, DEVICES_AT_ONCE, DEVICES_EACH),
        }
    }
}

impl LoginRateLimiter {
    /// Takes one guess at a name's password, in a known browser or anywhere, or says how long to wait. It counts
    /// before the password is looked at, so that guesses at the same time count too.
    pub(crate) fn take(
        &self,
        name: &str,
        device: Option<&DeviceId>,
        now: Instant,
    ) -> Result<(), Duration> {
        let Some(device) = device else {
            return self.names.take(&name, now);
        };
        self.devices.take(&(name, device), now)?;
        let taken = self.device_names.take(&name, now);
        if taken.is_err() {
            self.devices.give_back(&(name, device));
        }
        taken
    }

    /// The right password was given: this guess was none. Those before it still count, because names may share a
    /// counter, and nobody's own password wins back guesses at somebody else's.
    pub(crate) fn refund(&self, name: &str, device: Option<&DeviceId>) {
        match device {
            None => self.names.give_back(&name),
            Some(device) => self.devices.give_back(&(name, device)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::crypto::HmacSigner;
    use super::super::device;
    use super::*;

    /// A browser in which `name` signed in.
    fn browser(name: &str) -> DeviceId {
        let seal = HmacSigner::new(b"one");
        let cookie = device::remembered(&seal, None, name, 0).unwrap();
        device::known(&seal, Some(&cookie), name, 0).unwrap()
    }

    #[tokio::test]
    async fn the_eleventh_guess_waits_and_others_do_not() {
        let (throttle, now) = (LoginRateLimiter::default(), Instant::now());
        assert!((0..10).all(|_| throttle.take("anna", None, now).is_ok()));
        assert_eq!(throttle.take("anna", None, now), Err(EACH));
        assert!(throttle.take("nils", None, now).is_ok());
        let later = now + EACH;
        assert!(throttle.take("anna", None, later).is_ok());
        assert!(throttle.take("anna", None, later).is_err());
    }

    #[tokio::test]
    async fn the_right_password_does_not_count_and_wins_nothing_back() {
        let home = browser("anna");
        for (device, tries) in [(None, 100), (Some(&home), 20)] {
            let (throttle, now) = (LoginRateLimiter::default(), Instant::now());
            for _ in 0..tries {
                throttle.take("anna", device, now).unwrap();
                throttle.refund("anna", device);
            }
            for _ in 0..9 {
                throttle.take("anna", device, now).unwrap();
            }
            throttle.take("anna", device, now).unwrap();
            throttle.refund("anna", device);
            let now = now + DEVICES_EACH;
            assert!(throttle.take("anna", device, now).is_ok());
            assert!(throttle.take("anna", device, now).is_err());
        }
    }

    #[tokio::test]
    async fn no_flood_of_names_wins_back_a_guess_at_one() {
        let (throttle, now) = (LoginRateLimiter::default(), Instant::now());
        while throttle.take("anna", None, now).is_ok() {}
        // Enough for a map of any bound: twenty thousand names that used up all they have.
        for n in 0..20_000 {
            let name = format!("user{n}");
            while throttle.take(&name, None, now).is_ok() {}
        }
        assert!(throttle.take("anna", None, now).is_err());
        let almost = now + EACH - Duration::from_millis(1);
        assert!(throttle.take("anna", None, almost).is_err());
    }

    #[tokio::test]
    async fn guesses_elsewhere_do_not_count_in_a_known_browser_nor_the_other_way() {
        let (throttle, now) = (LoginRateLimiter::default(), Instant::now());
        let (home, work) = (browser("anna"), browser("anna"));
        while throttle.take("anna", None, now).is_ok() {}
        assert!((0..10).all(|_| throttle.take("anna", Some(&home), now).is_ok()));
        assert_eq!(throttle.take("anna", Some(&home), now), Err(EACH));
        assert!(throttle.take("anna", Some(&work), now).is_ok());
        let (throttle, home) = (LoginRateLimiter::default(), browser("nils"));
        while throttle.take("nils", Some(&home), now).is_ok() {}
        assert!(throttle.take("nils", None, now).is_ok());
    }

    #[tokio::test]
    async fn many_browsers_of_a_name_have_a_bound_together() {
        let (throttle, now) = (LoginRateLimiter::default(), Instant::now());
        let browsers: Vec<_> = (0..50).map(|_| browser("anna")).collect();
        let guessed = |now: Instant| {
            let all = browsers.iter().cycle().take(500);
            all.filter(|device| throttle.take("anna", Some(device), now).is_ok())
                .count()
        };
        assert_eq!(guessed(now), 30);
        assert_eq!(guessed(now + DEVICES_EACH), 1);
        assert!(throttle.take("nils", Some(&browser("nils")), now).is_ok());
    }
}
