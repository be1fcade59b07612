//! An issuer's keys, fetched when they are needed and kept while they are good.
//!
//! One fetch at a time, and none within half a minute of the last, however many tokens name a key that
//! is not there. Keys are fetched anew after five minutes, so that one that was withdrawn is refused within
//! ten. While the issuer cannot be reached, the keys that are here count for an hour.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::jwk::{JsonWebKeySet, VerificationKey};
use super::outbound_http::HttpFetch;
use super::{AuthRejection, discovery, strict_json};

/// How long keys count without a question.
pub(crate) const FRESH: Duration = Duration::from_secs(300);
/// How long they count while the issuer cannot be reached.
pub(crate) const STALE: Duration = Duration::from_secs(3_600);
/// The shortest time between two fetches.
pub(crate) const COOLDOWN: Duration = Duration::from_secs(30);

/// How long the metadata and the keys may take together.
const PATIENCE: Duration = Duration::from_secs(10);

/// The keys of an issuer elsewhere.
pub(crate) struct JwksCache {
    issuer: String,
    /// Where the keys are, if that was set; else it is discovered.
    jwks_uri: Option<String>,
    web: Arc<dyn HttpFetch>,
    /// The shortest time between two fetches.
    pub(crate) cooldown: Duration,
    state: Mutex<JwksCacheState>,
    flight: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Default)]
struct JwksCacheState {
    keys: Option<(Instant, Arc<JsonWebKeySet>)>,
    tried: Option<Instant>,
}

impl JwksCache {
    pub(crate) fn new(issuer: &str, jwks_uri: Option<String>, web: Arc<dyn HttpFetch>) -> Self {
        Self {
            issuer: issuer.to_owned(),
            jwks_uri,
            web,
            cooldown: COOLDOWN,
            state: Mutex::default(),
            flight: Arc::default(),
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, JwksCacheState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The keys that count, if they are younger than this.
    fn keys_younger_than(&self, than: Duration) -> Option<Arc<JsonWebKeySet>> {
        let state = self.state();
        let (since, keys) = state.keys.as_ref()?;
        (since.elapsed() < than).then(|| keys.clone())
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.keys_younger_than(STALE).is_some()
    }

    /// The key that a token names.
    pub(crate) async fn key(
        self: &Arc<Self>,
        kid: Option<&str>,
    ) -> Result<VerificationKey, AuthRejection> {
        let find = |keys: Arc<JsonWebKeySet>| keys.find(kid).cloned();
        if let Some(key) = self.keys_younger_than(FRESH).and_then(find) {
            return Ok(key);
        }
        // While somebody else waits for the issuer, keys that are not fresh any more are good enough.
        if self.flight.try_lock().is_err()
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

    /// Fetches the keys unless somebody just has; waits for whoever is at it.
    pub(crate) async fn refresh(self: &Arc<Self>) {
        let flight = self.flight.clone().lock_owned().await;
        let rested = self
            .state()
            .tried
            .is_none_or(|tried| tried.elapsed() >= self.cooldown);
        if !rested {
            return;
        }
        let keyring = self.clone();
        // A task of its own: a caller who hangs up would end the fetch before it is noted, and the next one would
        // begin another. Callers who hang up in a row would ask the issuer without bound and never get its keys.
        let fetching = tokio::spawn(async move {
            let _flight = flight;
            keyring.fetch_and_keep().await;
        });
        let _ = fetching.await;
    }

    async fn fetch_and_keep(&self) {
        let fetched = tokio::time::timeout(PATIENCE, self.fetch()).await;
        let fetched = fetched.unwrap_or_else(|_| Err("it takes too long".to_owned()));
        let mut state = self.state();
        let now = Instant::now();
        state.tried = Some(now);
        match fetched {
            Ok(keys) => state.keys = Some((now, Arc::new(keys))),
            Err(why) => tracing::warn!(issuer = %self.issuer, %why, "no keys came from the issuer"),
        }
    }

    async fn fetch(&self) -> Result<JsonWebKeySet, String> {
        let url = match &self.jwks_uri {
            Some(url) => url.clone(),
            None => {
                let metadata = discovery::metadata(&self.issuer, self.web.as_ref()).await?;
                discovery::endpoint_url(&metadata, "jwks_uri")
                    .ok_or("its metadata does not say where the keys are")?
            }
        };
        let bytes = self.web.get(url).await.map_err(|error| error.to_string())?;
        let jwks = strict_json::parse(&bytes).ok_or("its keys are not JSON")?;
        JsonWebKeySet::parse(&Value::Object(jwks)).map_err(str::to_owned)
    }

    /// When to fetch next, for whoever keeps the keys fresh.
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
