//! Token introspection (RFC 7662) for opaque access tokens: the issuer validates each token, and its answer is
//! cached for a minute.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::outbound_http::{FormPost, HttpFetch};
use super::{AuthRejection, Caller, jwt, strict_json};

/// The cache's time to live. A token that was revoked at the issuer stops working here within this time.
pub(crate) const CACHE_TTL: Duration = Duration::from_secs(60);
/// The capacity of the cache, separately for active and for inactive tokens.
pub(crate) const MAX_CACHED: usize = 10_000;
/// The maximum number of requests in flight for tokens that are not cached as active. Beyond it callers get
/// a 503 with `Retry-After`.
pub(crate) const MAX_IN_FLIGHT: usize = 16;
/// The same for tokens that were active at the last introspection. A pool of its own, so that a flood of
/// made-up tokens cannot lock out callers who have signed in.
pub(crate) const MAX_RECHECKS_IN_FLIGHT: usize = 16;
/// The maximum length of an token token that is sent to the issuer.
pub(crate) const MAX_OPAQUE_BYTES: usize = 4 * 1024;

/// The introspection client of one issuer, with a cache and two pools that limit requests in flight.
pub(crate) struct TokenIntrospector {
    endpoint: String,
    authorization: String,
    fetcher: Arc<dyn HttpFetch>,
    first_checks: Arc<Semaphore>,
    rechecks: Arc<Semaphore>,
    cache: Arc<Mutex<IntrospectionCache>>,
}

/// Cached introspection results, by the token's SHA-256 digest. Active and inactive tokens have separate
/// capacities, so that a flood of made-up tokens cannot evict good ones.
#[derive(Default)]
struct IntrospectionCache {
    active: HashMap<[u8; 32], (Instant, IntrospectedClaims)>,
    inactive: HashMap<[u8; 32], Instant>,
}

impl IntrospectionCache {
    /// The cached result for a token, if it has not expired.
    fn cached(&self, digest: &[u8; 32]) -> Option<IntrospectionResult> {
        if let Some((at, claims)) = self.active.get(digest)
            && at.elapsed() < CACHE_TTL
        {
            return Some(Ok(claims.clone()));
        }
        let at = self.inactive.get(digest)?;
        (at.elapsed() < CACHE_TTL).then_some(Err(INACTIVE))
    }

    fn keep(&mut self, digest: [u8; 32], result: &IntrospectionResult) {
        let now = Instant::now();
        match result {
            Ok(claims) => {
                evict_expired(&mut self.active, |(at, _)| *at);
                self.inactive.remove(&digest);
                if self.active.len() < MAX_CACHED {
                    self.active.insert(digest, (now, claims.clone()));
                }
            }
            Err(_) => {
                evict_expired(&mut self.inactive, |at| *at);
                self.active.remove(&digest);
                if self.inactive.len() < MAX_CACHED {
                    self.inactive.insert(digest, now);
                }
            }
        }
    }
}

/// Evicts expired entries from a map that has reached its capacity.
fn evict_expired<V>(map: &mut HashMap<[u8; 32], V>, at: impl Fn(&V) -> Instant) {
    if map.len() >= MAX_CACHED {
        map.retain(|_, value| at(value).elapsed() < CACHE_TTL);
    }
}

const INACTIVE: AuthRejection = AuthRejection::Bad("the token is not active");

type IntrospectedClaims = Arc<Map<String, Value>>;

/// The issuer's answer for one token.
type IntrospectionResult = Result<IntrospectedClaims, AuthRejection>;

impl TokenIntrospector {
    pub(crate) fn new(
        endpoint: &str,
        client: &str,
        secret: &str,
        fetcher: Arc<dyn HttpFetch>,
    ) -> Self {
        let pair = format!("{}:{}", form_encoded(client), form_encoded(secret));
        Self {
            endpoint: endpoint.to_owned(),
            authorization: format!("Basic {}", STANDARD.encode(pair)),
            fetcher,
            first_checks: Arc::new(Semaphore::new(MAX_IN_FLIGHT)),
            rechecks: Arc::new(Semaphore::new(MAX_RECHECKS_IN_FLIGHT)),
            cache: Arc::default(),
        }
    }

    /// Introspects a token and validates the returned claims like those of a JWT.
    pub(crate) async fn verify(
        &self,
        issuer: &str,
        token: &str,
        audiences: &BTreeSet<String>,
        now: u64,
    ) -> Result<Caller, AuthRejection> {
        let plain = token.bytes().all(|byte| matches!(byte, b'!'..=b'~'));
        if token.len() > MAX_OPAQUE_BYTES || !plain {
            return Err(AuthRejection::Bad("the token is malformed"));
        }
        let claims = self.introspect(token).await?;
        let token_issuer = claims.get("iss");
        if token_issuer.is_some_and(|token_issuer| token_issuer.as_str() != Some(issuer)) {
            return Err(AuthRejection::Bad("the token is from an untrusted issuer"));
        }
        jwt::check_claims(&claims, audiences, now)?;
        jwt::caller_from_claims(issuer, claims.as_ref().clone())
    }

    async fn introspect(&self, token: &str) -> IntrospectionResult {
        let digest: [u8; 32] = Sha256::digest(token).into();
        let known_active = {
            let cache = lock_cache(&self.cache);
            if let Some(result) = cache.cached(&digest) {
                return result;
            }
            cache.active.contains_key(&digest)
        };
        let pool = if known_active {
            &self.rechecks
        } else {
            &self.first_checks
        };
        let Ok(permit) = pool.clone().try_acquire_owned() else {
            return Err(AuthRejection::Unready);
        };
        let form = FormPost {
            authorization: Some(self.authorization.clone()),
            body: format!("token={}&token_type_hint=access_token", form_encoded(token)),
        };
        let answered = self.fetcher.post(self.endpoint.clone(), form);
        let cache = self.cache.clone();
        // Spawned as a task of its own, because a request to the issuer goes on when the caller
        // disconnects. The permit has to be held until it ends, or callers who disconnect at once could
        // exceed the limit on requests in flight.
        let request = tokio::spawn(async move {
            let _permit = permit;
            let result = parse_response(answered.await.ok())?;
            lock_cache(&cache).keep(digest, &result);
            result
        });
        request.await.unwrap_or(Err(AuthRejection::Unready))
    }

    #[cfg(test)]
    fn cache(&self) -> MutexGuard<'_, IntrospectionCache> {
        lock_cache(&self.cache)
    }
}

/// Parses an introspection response. Only a response is cached: an issuer that is down may be up at the
/// next request.
fn parse_response(answer: Option<Vec<u8>>) -> Result<IntrospectionResult, AuthRejection> {
    let answer = answer.and_then(|bytes| strict_json::parse(&bytes));
    let claims = answer.ok_or(AuthRejection::Unready)?;
    if claims.get("active") == Some(&Value::Bool(true)) {
        Ok(Ok(Arc::new(claims)))
    } else {
        Ok(Err(INACTIVE))
    }
}

fn lock_cache(cache: &Mutex<IntrospectionCache>) -> MutexGuard<'_, IntrospectionCache> {
    cache.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Percent-encodes a text for a form body or for HTTP Basic client authentication (RFC 6749, section
/// 2.3.1).
fn form_encoded(text: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests;
