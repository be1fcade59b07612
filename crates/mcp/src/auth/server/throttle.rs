//! How often a password may be guessed: by the name that is tried, since all the world can come from one
//! address and one person from many.

use std::time::Duration;

use tokio::time::Instant;

use super::rate_limit::RateLimiter;

/// Wrong passwords in a row before one has to wait.
const AT_ONCE: u32 = 10;
/// How long each one more has to wait.
const EACH: Duration = Duration::from_secs(30);
/// Counters, in one mebibyte. To keep all of them empty, and so everybody out, takes 2,184 guesses a second, which is
/// far more than the password hash lets through.
const SLOTS: usize = 65_536;

/// Counts wrong passwords. In memory alone: a restart forgives a few guesses.
pub(crate) struct Throttle(RateLimiter);

impl Default for Throttle {
    fn default() -> Self {
        Self(RateLimiter::new(SLOTS, AT_ONCE, EACH))
    }
}

impl Throttle {
    /// Takes one guess at a name's password, or says how long to wait. It counts before the password is
    /// looked at, so that guesses at the same time count too.
    pub(crate) fn take(&self, name: &str, now: Instant) -> Result<(), Duration> {
        self.0.take(&name, now)
    }

    /// The right password was given: this guess was none. Those before it still count, because names may share a
    /// counter, and nobody's own password wins back guesses at somebody else's.
    pub(crate) fn forgive(&self, name: &str) {
        self.0.give_back(&name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_eleventh_guess_waits_and_others_do_not() {
        let (throttle, now) = (Throttle::default(), Instant::now());
        assert!((0..10).all(|_| throttle.take("anna", now).is_ok()));
        assert_eq!(throttle.take("anna", now), Err(EACH));
        assert!(throttle.take("nils", now).is_ok());
        let later = now + EACH;
        assert!(throttle.take("anna", later).is_ok());
        assert!(throttle.take("anna", later).is_err());
    }

    #[tokio::test]
    async fn the_right_password_does_not_count_and_wins_nothing_back() {
        let (throttle, now) = (Throttle::default(), Instant::now());
        for _ in 0..100 {
            throttle.take("anna", now).unwrap();
            throttle.forgive("anna");
        }
        for _ in 0..9 {
            throttle.take("anna", now).unwrap();
        }
        throttle.take("anna", now).unwrap();
        throttle.forgive("anna");
        assert!(throttle.take("anna", now).is_ok());
        assert!(throttle.take("anna", now).is_err());
    }

    #[tokio::test]
    async fn no_flood_of_names_wins_back_a_guess_at_one() {
        let (throttle, now) = (Throttle::default(), Instant::now());
        while throttle.take("anna", now).is_ok() {}
        // Enough for a map of any bound: twenty thousand names that used up all they have.
        for n in 0..20_000 {
            let name = format!("user{n}");
            while throttle.take(&name, now).is_ok() {}
        }
        assert!(throttle.take("anna", now).is_err());
        let almost = now + EACH - Duration::from_millis(1);
        assert!(throttle.take("anna", almost).is_err());
    }
}
