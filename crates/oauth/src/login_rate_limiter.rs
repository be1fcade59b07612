//! Login rate limiter: token buckets for wrong passwords, keyed by the user name, because an attack may
//! come from many addresses and one proxy may send many users.
//!
//! A browser with a device cookie for that name has a bucket of its own, so that guessing elsewhere does
//! not lock out the name's owner. All such browsers of one name also share a bucket, so that many cookies
//! do not multiply the guesses.

use std::time::Duration;

use tokio::time::Instant;

use super::device::DeviceId;
use super::rate_limiter::RateLimiter;

/// The number of wrong passwords in a row before the rate limit applies. People mistype a password some times and then
/// try their others. For an attacker, ten guesses and two a minute after them are nothing against a password of ten
/// characters.
const BURST: u32 = 10;
/// The time after which one more guess is allowed.
const PERIOD: Duration = Duration::from_secs(30);
/// The burst and period that all known browsers of one name share. Successful logins count here too, because each of
/// them can get another device cookie: without a common limit, an attacker who once knew a password could collect
/// cookies to guess the next one with.
const DEVICES_BURST: u32 = 30;
const DEVICES_PERIOD: Duration = Duration::from_secs(2);
/// The number of buckets, which take 1 MiB. Keeping all of them empty, and so every user out, takes 2,184
/// guesses a second, which is far more than the password hashing lets through.
const SLOTS: usize = 65_536;
/// The number of buckets for known browsers. Only who has logged in before can draw from these.
const DEVICE_SLOTS: usize = 16_384;

/// Rate limits for logins. They are in memory only; a restart resets them, which forgives a few guesses.
pub(crate) struct LoginRateLimiter {
    names: RateLimiter,
    devices: RateLimiter,
    device_names: RateLimiter,
}

impl Default for LoginRateLimiter {
    fn default() -> Self {
        Self {
            names: RateLimiter::new(SLOTS, BURST, PERIOD),
            devices: RateLimiter::new(DEVICE_SLOTS, BURST, PERIOD),
            device_names: RateLimiter::new(DEVICE_SLOTS, DEVICES_BURST, DEVICES_PERIOD),
        }
    }
}

impl LoginRateLimiter {
    /// Takes one guess at the password of `name`, from a known device or any other, or returns the time to
    /// wait. It counts before the password is checked, so that concurrent guesses count too.
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

    /// Returns the token of a login with the right password, which was no guess. Earlier guesses still
    /// count, because names may share a bucket: an attacker's login to their own account must not refill
    /// another name's bucket.
    pub(crate) fn refund(&self, name: &str, device: Option<&DeviceId>) {
        match device {
            None => self.names.give_back(&name),
            Some(device) => self.devices.give_back(&(name, device)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto::HmacSigner;
    use crate::device;

    /// The id of a browser in which `name` has logged in.
    fn browser(name: &str) -> DeviceId {
        let signer = HmacSigner::new(b"one");
        let cookie = device::remembered(&signer, None, name, 0).unwrap();
        device::known(&signer, Some(&cookie), name, 0).unwrap()
    }

    #[tokio::test]
    async fn the_eleventh_guess_waits_and_others_do_not() {
        let (limiter, now) = (LoginRateLimiter::default(), Instant::now());
        assert!((0..10).all(|_| limiter.take("anna", None, now).is_ok()));
        assert_eq!(limiter.take("anna", None, now), Err(PERIOD));
        assert!(limiter.take("nils", None, now).is_ok());
        let later = now + PERIOD;
        assert!(limiter.take("anna", None, later).is_ok());
        assert!(limiter.take("anna", None, later).is_err());
    }

    #[tokio::test]
    async fn the_right_password_does_not_count_and_wins_nothing_back() {
        let home = browser("anna");
        for (device, tries) in [(None, 100), (Some(&home), 20)] {
            let (limiter, now) = (LoginRateLimiter::default(), Instant::now());
            for _ in 0..tries {
                limiter.take("anna", device, now).unwrap();
                limiter.refund("anna", device);
            }
            for _ in 0..9 {
                limiter.take("anna", device, now).unwrap();
            }
            limiter.take("anna", device, now).unwrap();
            limiter.refund("anna", device);
            let now = now + DEVICES_PERIOD;
            assert!(limiter.take("anna", device, now).is_ok());
            assert!(limiter.take("anna", device, now).is_err());
        }
    }

    #[tokio::test]
    async fn no_flood_of_names_wins_back_a_guess_at_one() {
        let (limiter, now) = (LoginRateLimiter::default(), Instant::now());
        while limiter.take("anna", None, now).is_ok() {}
        // More names than a bounded map would hold: 20,000, each with an empty bucket.
        for n in 0..20_000 {
            let name = format!("user{n}");
            while limiter.take(&name, None, now).is_ok() {}
        }
        assert!(limiter.take("anna", None, now).is_err());
        let almost = now + PERIOD - Duration::from_millis(1);
        assert!(limiter.take("anna", None, almost).is_err());
    }

    #[tokio::test]
    async fn guesses_elsewhere_do_not_count_in_a_known_browser_nor_the_other_way() {
        let (limiter, now) = (LoginRateLimiter::default(), Instant::now());
        let (home, work) = (browser("anna"), browser("anna"));
        while limiter.take("anna", None, now).is_ok() {}
        assert!((0..10).all(|_| limiter.take("anna", Some(&home), now).is_ok()));
        assert_eq!(limiter.take("anna", Some(&home), now), Err(PERIOD));
        assert!(limiter.take("anna", Some(&work), now).is_ok());
        let (limiter, home) = (LoginRateLimiter::default(), browser("nils"));
        while limiter.take("nils", Some(&home), now).is_ok() {}
        assert!(limiter.take("nils", None, now).is_ok());
    }

    #[tokio::test]
    async fn many_browsers_of_a_name_have_a_bound_together() {
        let (limiter, now) = (LoginRateLimiter::default(), Instant::now());
        let browsers: Vec<_> = (0..50).map(|_| browser("anna")).collect();
        let guessed = |now: Instant| {
            let all = browsers.iter().cycle().take(500);
            all.filter(|device| limiter.take("anna", Some(device), now).is_ok())
                .count()
        };
        assert_eq!(guessed(now), 30);
        assert_eq!(guessed(now + DEVICES_PERIOD), 1);
        assert!(limiter.take("nils", Some(&browser("nils")), now).is_ok());
    }
}
