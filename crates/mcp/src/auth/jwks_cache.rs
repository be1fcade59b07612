//! Cache for an issuer's key set (JWKS), with single-flight fetches.
//!
//! One fetch runs at a time, and none within 30 seconds of the last, however many tokens have an unknown
//! `kid`. Keys are fetched again after five minutes, so that a withdrawn key is refused within ten. While
//! the issuer is unreachable, the cached keys stay valid for an hour (stale on error).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::jwk::{JsonWebKeySet, VerificationKey};
use super::outbound_http::HttpFetch;
use super::{AuthRejection, discovery, strict_json};

/// How long cached keys are used without a refresh. It bounds how long a key that the issuer has withdrawn is still
/// accepted. A refresh runs in the background before the time is over, so that no request waits for it.
pub(crate) const FRESH: Duration = Duration::from_secs(300);
/// How long cached keys are used while the issuer is unreachable. An issuer that is down for a moment must not lock
/// everybody out. But a withdrawn key must not stay valid for as long as somebody can keep us from reaching the issuer.
pub(crate) const STALE: Duration = Duration::from_secs(3_600);
/// The shortest time between two fetches: the rate limit for tokens with an unknown `kid`. Anybody can make such a
/// token, so without a limit every request could send another one to the issuer, which would block us in the end.
pub(crate) const COOLDOWN: Duration = Duration::from_secs(30);

/// The timeout of a whole refresh, for the metadata and the key set together. It is two requests, each with its own
/// timeout. Requests with an unknown key wait for the refresh, so it has to end before they give up.
const REFRESH_TIMEOUT: Duration = Duration::from_secs(10);

/// The cached key set of a remote issuer. `fetch_lock` makes fetches single-flight: whoever holds it
/// fetches, everybody else waits for it or uses stale keys.
pub(crate) struct JwksCache {
    issuer: String,
    /// The configured URL of the key set; `None` to discover it from the issuer's metadata.
    jwks_uri: Option<String>,
    fetcher: Arc<dyn HttpFetch>,
    /// The shortest time between two fetches, [`COOLDOWN`] unless configured.
    pub(crate) cooldown: Duration,
    state: Mutex<JwksCacheState>,
    fetch_lock: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Default)]
struct JwksCacheState {
    keys: Option<(Instant, Arc<JsonWebKeySet>)>,
    tried_at: Option<Instant>,
}

impl JwksCache {
    pub(crate) fn new(issuer: &str, jwks_uri: Option<String>, fetcher: Arc<dyn HttpFetch>) -> Self {
        Self {
            issuer: issuer.to_owned(),
            jwks_uri,
            fetcher,
            cooldown: COOLDOWN,
            state: Mutex::default(),
            fetch_lock: Arc::default(),
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, JwksCacheState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The cached keys, if they are younger than `max_age`.
    fn keys_younger_than(&self, max_age: Duration) -> Option<Arc<JsonWebKeySet>> {
        let state = self.state();
        let (since, keys) = state.keys.as_ref()?;
        (since.elapsed() < max_age).then(|| keys.clone())
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.keys_younger_than(STALE).is_some()
    }

    /// The key with this `kid`, fetched if the cache has no fresh key of that name.
    pub(crate) async fn key(
        self: &Arc<Self>,
        kid: Option<&str>,
    ) -> Result<VerificationKey, AuthRejection> {
        let find = |keys: Arc<JsonWebKeySet>| keys.find(kid).cloned();
        if let Some(key) = self.keys_younger_than(FRESH).and_then(find) {
            return Ok(key);
        }
        // While another request fetches the keys, a stale key is good enough.
        if self.fetch_lock.try_lock().is_err()
            && let Some(key) = self.keys_younger_than(STALE).and_then(find)
        {
            return Ok(key);
        }
        self.refresh().await;
        match self.keys_younger_than(STALE) {
            None => Err(AuthRejection::Unready),
            Some(keys) => find(keys).ok_or(AuthRejection::Bad("the key of the token is not known")),
        }
    }

    /// Fetches the key set, unless the last attempt is younger than the cooldown. A fetch in flight is awaited instead
    /// of repeated.
    pub(crate) async fn refresh(self: &Arc<Self>) {
        let fetch_lock = self.fetch_lock.clone().lock_owned().await;
        let cooled_down = self
            .state()
            .tried_at
            .is_none_or(|tried_at| tried_at.elapsed() >= self.cooldown);
        if !cooled_down {
            return;
        }
        let cache = self.clone();
        // Spawned as a task of its own: if a caller who disconnects ended the fetch before its time was
        // noted, the next one would start another. A row of such callers would send unlimited requests to
        // the issuer and never get its keys.
        let fetching = tokio::spawn(async move {
            let _fetch_lock = fetch_lock;
            cache.fetch_and_keep().await;
        });
        let _ = fetching.await;
    }

    async fn fetch_and_keep(&self) {
        let fetched = tokio::time::timeout(REFRESH_TIMEOUT, self.fetch()).await;
        let fetched = fetched.unwrap_or_else(|_| Err("the request timed out".to_owned()));
        let mut state = self.state();
        let now = Instant::now();
        state.tried_at = Some(now);
        match fetched {
            Ok(keys) => state.keys = Some((now, Arc::new(keys))),
            Err(why) => {
                tracing::warn!(issuer = %self.issuer, %why, "cannot fetch the issuer's keys");
            }
        }
    }

    async fn fetch(&self) -> Result<JsonWebKeySet, String> {
        let url = match &self.jwks_uri {
            Some(url) => url.clone(),
            None => {
                let metadata = discovery::metadata(&self.issuer, self.fetcher.as_ref()).await?;
                discovery::endpoint_url(&metadata, "jwks_uri")
                    .ok_or("its metadata does not say where the keys are")?
            }
        };
        let bytes = self
            .fetcher
            .get(url)
            .await
            .map_err(|error| error.to_string())?;
        let jwks = strict_json::parse(&bytes).ok_or("its keys are not JSON")?;
        JsonWebKeySet::parse(&Value::Object(jwks)).map_err(str::to_owned)
    }

    /// The time until the next refresh in the background: before the keys go stale, or after a cooldown
    /// when there are none.
    pub(crate) fn next_refresh(&self) -> Duration {
        if self.keys_younger_than(FRESH).is_some() {
            FRESH.saturating_sub(self.cooldown)
        } else {
            self.cooldown
        }
    }
}

#[cfg(test)]
mod tests;
