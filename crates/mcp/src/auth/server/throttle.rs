//! How often a password may be guessed: by the name that is tried, since all the world can come from one
//! address and one person from many.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::seal;

/// Wrong passwords in a row before one has to wait.
const AT_ONCE: f64 = 10.0;
/// How long each one more has to wait.
const EACH: Duration = Duration::from_secs(30);
/// Names that are remembered.
const MAX_NAMES: usize = 10_000;

/// Counts wrong passwords. In memory alone: a restart forgives a few guesses.
#[derive(Default)]
pub(crate) struct Throttle(Mutex<HashMap<String, Tried>>);

struct Tried {
    left: f64,
    at: Instant,
}

impl Tried {
    fn left_at(&self, now: Instant) -> f64 {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        (self.left + passed / EACH.as_secs_f64()).min(AT_ONCE)
    }
}

impl Throttle {
    /// Takes one guess at a name's password, or says how long to wait. It counts before the password is
    /// looked at, so that guesses at the same time count too.
    pub(crate) fn take(&self, name: &str, now: Instant) -> Result<(), Duration> {
        let key = key(name);
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if names.len() >= MAX_NAMES && !names.contains_key(&key) {
            forget(&mut names, now);
        }
        let tried = names.entry(key).or_insert(Tried {
            left: AT_ONCE,
            at: now,
        });
        tried.left = tried.left_at(now);
        tried.at = now;
        if tried.left < 1.0 {
            return Err(EACH.mul_f64(1.0 - tried.left));
        }
        tried.left -= 1.0;
        Ok(())
    }

    /// The right password was given.
    pub(crate) fn forgive(&self, name: &str) {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.remove(&key(name));
    }
}

/// Names of any length take the same room.
fn key(name: &str) -> String {
    seal::digest(name)
}

/// Makes room: first for those who have everything left, then for the half that has most.
fn forget(names: &mut HashMap<String, Tried>, now: Instant) {
    names.retain(|_, tried| tried.left_at(now) < AT_ONCE);
    if names.len() < MAX_NAMES {
        return;
    }
    let mut left: Vec<f64> = names.values().map(|tried| tried.left_at(now)).collect();
    let half = left.len() / 2;
    let (_, &mut middle, _) = left.select_nth_unstable_by(half, f64::total_cmp);
    names.retain(|_, tried| tried.left_at(now) < middle);
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
        assert!(
            throttle
                .take("anna", now + EACH - Duration::from_secs(1))
                .is_err()
        );
        let later = now + EACH + Duration::from_secs(1);
        assert!(throttle.take("anna", later).is_ok());
        assert!(throttle.take("anna", later).is_err());
    }

    #[tokio::test]
    async fn half_of_the_wait_is_half_of_it() {
        let (throttle, now) = (Throttle::default(), Instant::now());
        while throttle.take("anna", now).is_ok() {}
        assert_eq!(throttle.take("anna", now + EACH / 2), Err(EACH / 2));
        assert_eq!(throttle.take("anna", now + EACH), Ok(()));
        // However long somebody stays away, ten guesses are all there are.
        let later = now + EACH * 1_000;
        assert_eq!(
            (0..20)
                .filter(|_| throttle.take("anna", later).is_ok())
                .count(),
            10
        );
    }

    fn names(throttle: &Throttle) -> usize {
        throttle.0.lock().unwrap().len()
    }

    #[tokio::test]
    async fn room_is_made_by_those_who_have_everything_left() {
        let (throttle, now) = (Throttle::default(), Instant::now());
        for n in 0..MAX_NAMES {
            throttle.take(&n.to_string(), now).unwrap();
        }
        // Somebody who is known needs no room.
        throttle.take("0", now + EACH).unwrap();
        assert_eq!(names(&throttle), MAX_NAMES);
        throttle.take("one more", now + EACH).unwrap();
        assert_eq!(names(&throttle), 2);
    }

    #[tokio::test]
    async fn whoever_has_less_left_stays_while_others_have_everything() {
        let (throttle, now) = (Throttle::default(), Instant::now());
        for n in 0..MAX_NAMES {
            let late = if n < 6_000 { EACH } else { Duration::ZERO };
            throttle.take(&n.to_string(), now + late).unwrap();
        }
        throttle.take("one more", now + EACH).unwrap();
        assert_eq!(names(&throttle), 6_001);
    }

    #[tokio::test]
    async fn where_nobody_has_the_half_that_has_most_makes_room() {
        let (throttle, now) = (Throttle::default(), Instant::now());
        for n in 0..MAX_NAMES {
            throttle.take(&n.to_string(), now).unwrap();
            if n % 2 == 0 {
                throttle.take(&n.to_string(), now).unwrap();
            }
        }
        throttle.take("one more", now).unwrap();
        assert_eq!(names(&throttle), MAX_NAMES / 2 + 1);
        let left = |name: &str| throttle.0.lock().unwrap().contains_key(&key(name));
        assert!(left("0") && !left("1") && left("one more"));
    }

    #[tokio::test]
    async fn the_right_password_ends_the_wait() {
        let (throttle, now) = (Throttle::default(), Instant::now());
        while throttle.take("anna", now).is_ok() {}
        throttle.forgive("anna");
        assert!(throttle.take("anna", now).is_ok());
    }

    #[tokio::test]
    async fn a_flood_of_names_does_not_wash_away_the_one_under_attack() {
        let (throttle, now) = (Throttle::default(), Instant::now());
        while throttle.take("anna", now).is_ok() {}
        for n in 0..=MAX_NAMES {
            assert!(throttle.take(&n.to_string(), now).is_ok());
        }
        assert!(throttle.0.lock().unwrap().len() <= MAX_NAMES);
        assert!(throttle.take("anna", now).is_err());
    }
}
