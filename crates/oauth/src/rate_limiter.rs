//! Rate limiter: token buckets in a table of fixed size, keyed by a hash with a random secret.
//!
//! A map of buckets would need a bound, and a bound needs eviction. Whoever can make up keys could then
//! evict the bucket under attack, which would be full again. Here nothing is evicted: two keys in one slot
//! share its tokens, so a flood of keys can only make the limit stricter, and without the hash's secret
//! nobody can aim at a slot.
//!
//! It limits logins and registrations. The calls of tools have token buckets of their own, in
//! `call_rate_limiter.rs`: one for each caller, with eviction.

use std::hash::{BuildHasher as _, Hash, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Token buckets with a capacity of `burst` tokens that gain one token per `period`.
pub(crate) struct RateLimiter {
    hasher: RandomState,
    burst: u32,
    period: Duration,
    /// The time at which each bucket will be full again (generic cell rate algorithm, GCRA); `None` means
    /// full.
    full_at: Mutex<Vec<Option<Instant>>>,
}

impl RateLimiter {
    pub(crate) fn new(slots: usize, burst: u32, period: Duration) -> Self {
        Self {
            hasher: RandomState::new(),
            burst,
            period,
            full_at: Mutex::new(vec![None; slots.max(1)]),
        }
    }

    /// Takes one token from the bucket of `key`, or returns the time until there is one.
    pub(crate) fn take(&self, key: &impl Hash, now: Instant) -> Result<(), Duration> {
        let taken = self.change(key, |full_at| {
            let full = full_at.map_or(now, |at| at.max(now)) + self.period;
            let most = now + self.period * self.burst;
            if full > most {
                return Err(full - most);
            }
            *full_at = Some(full);
            Ok(())
        });
        taken.unwrap_or(Err(self.period))
    }

    /// Returns one taken token to the bucket of `key`.
    pub(crate) fn give_back(&self, key: &impl Hash) {
        self.change(key, |full_at| {
            *full_at = full_at.and_then(|at| at.checked_sub(self.period));
        });
    }

    fn change<T>(
        &self,
        key: &impl Hash,
        change: impl FnOnce(&mut Option<Instant>) -> T,
    ) -> Option<T> {
        let hash = self.hasher.hash_one(key);
        let mut slots = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = usize::try_from(hash % slots.len() as u64).unwrap_or_default();
        slots.get_mut(slot).map(change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn a_burst_then_one_each_period() {
        let (limiter, now) = (RateLimiter::new(1_024, 10, PERIOD), Instant::now());
        assert!((0..10).all(|_| limiter.take(&"anna", now).is_ok()));
        assert_eq!(limiter.take(&"anna", now), Err(PERIOD));
        assert_eq!(limiter.take(&"anna", now + PERIOD / 2), Err(PERIOD / 2));
        assert_eq!(limiter.take(&"anna", now + PERIOD), Ok(()));
        assert_eq!(limiter.take(&"anna", now + PERIOD), Err(PERIOD));
        // However long a key stays idle, its bucket never holds more than the burst.
        let later = now + PERIOD * 1_000;
        let taken = (0..20).filter(|_| limiter.take(&"anna", later).is_ok());
        assert_eq!(taken.count(), 10);
    }

    #[tokio::test]
    async fn a_returned_token_can_be_taken_again_but_never_exceeds_the_burst() {
        let (limiter, now) = (RateLimiter::new(1_024, 2, PERIOD), Instant::now());
        limiter.give_back(&"anna");
        assert!(limiter.take(&"anna", now).is_ok() && limiter.take(&"anna", now).is_ok());
        limiter.give_back(&"anna");
        assert!(limiter.take(&"anna", now).is_ok());
        assert!(limiter.take(&"anna", now).is_err());
        for _ in 0..5 {
            limiter.give_back(&"anna");
        }
        assert!(limiter.take(&"anna", now).is_ok() && limiter.take(&"anna", now).is_ok());
        assert!(limiter.take(&"anna", now).is_err());
    }

    #[tokio::test]
    async fn the_table_has_a_fixed_size_and_keys_that_share_a_slot_share_its_tokens() {
        let (limiter, now) = (RateLimiter::new(1, 3, PERIOD), Instant::now());
        for key in 0..3 {
            assert!(limiter.take(&key, now).is_ok());
        }
        assert!(limiter.take(&"one more", now).is_err());
        assert_eq!(limiter.full_at.lock().unwrap().len(), 1);
    }
}
