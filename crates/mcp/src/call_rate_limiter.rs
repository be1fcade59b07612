//! Rate limit for tool calls: one token bucket per caller. The dispatcher enforces it.
//!
//! The key is the verified caller, or else the pseudonym that the host gives its user. It is never the IP address,
//! because all users of a host share a few. This is fairness among the users of honest hosts: a client that invents
//! pseudonyms gets past it, and is bounded by the limits on connections and requests in flight.
//!
//! The authorization server of `docent-oauth` has token buckets of its own for logins and registrations: tables of fixed
//! size without eviction, because there the keys are an attacker's choice.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::auth::Caller;
use crate::client_hints::Pseudonym;

/// Maximum number of buckets. A bucket that is full again, after a minute without calls, carries no information and is
/// evicted first. So a table that overflows remembers those who call most, and they are the ones whom the limit is for.
const MAX_CALLERS: usize = 10_000;

/// The token buckets of one process. Replicas do not share them, so the effective limit grows with their number.
///
/// `per_minute` is both the refill rate and the capacity of a bucket. 0 turns the rate limit off.
pub(crate) struct CallRateLimiter {
    per_minute: u32,
    buckets: Mutex<HashMap<RateLimitKey, TokenBucket>>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum RateLimitKey {
    Caller(String),
    Subject(Pseudonym),
}

/// A token bucket: `left` tokens at the time `at`. It is refilled lazily, when it is next used.
struct TokenBucket {
    left: f64,
    at: Instant,
}

impl CallRateLimiter {
    pub(crate) fn new(per_minute: u32) -> Self {
        Self {
            per_minute,
            buckets: Mutex::default(),
        }
    }

    /// Takes one token of the caller's bucket, or returns how long to wait for the next one. A caller without a name
    /// is not counted.
    pub(crate) fn take(
        &self,
        caller: &Caller,
        subject: impl FnOnce() -> Option<Pseudonym>,
        now: Instant,
    ) -> Result<(), Duration> {
        if self.per_minute == 0 {
            return Ok(());
        }
        let verified = caller.key().map(|key| RateLimitKey::Caller(key.to_owned()));
        let Some(key) = verified.or_else(|| subject().map(RateLimitKey::Subject)) else {
            return Ok(());
        };
        let most = f64::from(self.per_minute);
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MAX_CALLERS && !buckets.contains_key(&key) {
            evict_buckets(&mut buckets, most, now);
        }
        let bucket = buckets.entry(key).or_insert(TokenBucket {
            left: most,
            at: now,
        });
        bucket.left = bucket.left_at(most, now);
        bucket.at = now;
        if bucket.left < 1.0 {
            return Err(Duration::from_secs_f64((1.0 - bucket.left) * 60.0 / most));
        }
        bucket.left -= 1.0;
        Ok(())
    }
}

impl TokenBucket {
    fn left_at(&self, most: f64, now: Instant) -> f64 {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        (self.left + passed * most / 60.0).min(most)
    }
}

/// Evicts buckets to make room. Full buckets are dropped first; if that is not enough, the fuller half goes too, so
/// that the greediest callers stay limited.
fn evict_buckets(buckets: &mut HashMap<RateLimitKey, TokenBucket>, most: f64, now: Instant) {
    buckets.retain(|_, bucket| bucket.left_at(most, now) < most);
    if buckets.len() < MAX_CALLERS {
        return;
    }
    let mut left: Vec<f64> = buckets
        .values()
        .map(|bucket| bucket.left_at(most, now))
        .collect();
    let half = left.len() / 2;
    let (_, &mut middle, _) = left.select_nth_unstable_by(half, f64::total_cmp);
    buckets.retain(|_, bucket| bucket.left_at(most, now) < middle);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client_hints::subject;

    fn named(name: &str) -> Option<Pseudonym> {
        subject(&serde_json::json!({"openai/subject": name}).to_string())
    }

    fn takes(rates: &CallRateLimiter, name: &str, now: Instant) -> bool {
        rates
            .take(&Caller::anonymous(), || named(name), now)
            .is_ok()
    }

    #[tokio::test]
    async fn each_subject_has_a_minute_of_its_own() {
        let (rates, start) = (CallRateLimiter::new(60), Instant::now());
        assert!((0..60).all(|_| takes(&rates, "a", start)));
        let wait = rates
            .take(&Caller::anonymous(), || named("a"), start)
            .unwrap_err();
        assert_eq!(wait, Duration::from_secs(1));
        assert!(
            takes(&rates, "b", start),
            "another's calls count against nobody else"
        );
        assert!(!takes(&rates, "a", start + Duration::from_millis(900)));
        assert!(takes(&rates, "a", start + Duration::from_millis(2_000)));
    }

    #[tokio::test]
    async fn without_a_name_or_a_rate_nobody_is_counted() {
        let now = Instant::now();
        let rates = CallRateLimiter::new(1);
        assert!((0..10).all(|_| rates.take(&Caller::anonymous(), || None, now).is_ok()));
        let none = CallRateLimiter::new(0);
        assert!((0..10).all(|_| takes(&none, "a", now)));
    }

    #[tokio::test]
    async fn somebody_verified_is_counted_whatever_the_host_says() {
        let (rates, now) = (CallRateLimiter::new(2), Instant::now());
        let caller = |subject: &str| {
            Caller::verified("i", subject, None, Default::default(), Default::default())
        };
        let takes =
            |subject: &str, hint: &str| rates.take(&caller(subject), || named(hint), now).is_ok();
        assert!(takes("a", "x") && takes("a", "y"));
        assert!(
            !takes("a", "z"),
            "a verified caller has one limit, whatever pseudonym the host sends"
        );
        assert!(takes("b", "x"));
    }

    #[tokio::test]
    async fn the_memory_has_a_bound_and_the_greedy_stay_in_it() {
        let (rates, now) = (CallRateLimiter::new(2), Instant::now());
        assert!(takes(&rates, "greedy", now) && takes(&rates, "greedy", now));
        for n in 0..MAX_CALLERS + 1 {
            assert!(takes(&rates, &n.to_string(), now));
        }
        assert!(rates.buckets.lock().unwrap().len() <= MAX_CALLERS);
        assert!(!takes(&rates, "greedy", now));
    }
}
