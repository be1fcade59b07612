//! Opaque tokens: the issuer is asked what they are worth (RFC 7662), and its word is kept for a minute.

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

/// How long the issuer's word counts. Somebody who was signed out there is out here by then.
pub(crate) const KEPT: Duration = Duration::from_secs(60);
/// The most tokens that counted, and the most that did not, whose worth is remembered.
pub(crate) const MAX_REMEMBERED: usize = 10_000;
/// The most questions to the issuer at once about tokens that nobody knows; whoever comes on top is told to come back.
pub(crate) const MAX_ASKED: usize = 16;
/// The same about tokens that counted when the issuer was last asked, so that a flood of made-up tokens locks out nobody
/// who has signed in.
pub(crate) const MAX_ASKED_AGAIN: usize = 16;
/// The longest opaque token.
pub(crate) const MAX_OPAQUE_BYTES: usize = 4 * 1024;

/// Asks one issuer about tokens.
pub(crate) struct TokenIntrospector {
    endpoint: String,
    authorization: String,
    web: Arc<dyn HttpFetch>,
    asking: Arc<Semaphore>,
    asking_again: Arc<Semaphore>,
    remembered: Arc<Mutex<IntrospectionCache>>,
}

/// What was said of tokens, by the hash of the token. What counted and what did not have room of their own.
#[derive(Default)]
struct IntrospectionCache {
    good: HashMap<[u8; 32], (Instant, IntrospectedClaims)>,
    bad: HashMap<[u8; 32], Instant>,
}

impl IntrospectionCache {
    /// What still counts of what was said.
    fn cached(&self, name: &[u8; 32]) -> Option<IntrospectionResult> {
        if let Some((at, claims)) = self.good.get(name)
            && at.elapsed() < KEPT
        {
            return Some(Ok(claims.clone()));
        }
        let at = self.bad.get(name)?;
        (at.elapsed() < KEPT).then_some(Err(NOT_GOOD))
    }

    fn keep(&mut self, name: [u8; 32], word: &IntrospectionResult) {
        let now = Instant::now();
        match word {
            Ok(claims) => {
                evict_expired(&mut self.good, |(at, _)| *at);
                self.bad.remove(&name);
                if self.good.len() < MAX_REMEMBERED {
                    self.good.insert(name, (now, claims.clone()));
                }
            }
            Err(_) => {
                evict_expired(&mut self.bad, |at| *at);
                self.good.remove(&name);
                if self.bad.len() < MAX_REMEMBERED {
                    self.bad.insert(name, now);
                }
            }
        }
    }
}

/// Drops what is too old from a map that is full.
fn evict_expired<V>(map: &mut HashMap<[u8; 32], V>, at: impl Fn(&V) -> Instant) {
    if map.len() >= MAX_REMEMBERED {
        map.retain(|_, value| at(value).elapsed() < KEPT);
    }
}

const NOT_GOOD: AuthRejection = AuthRejection::Bad("the token does not count, or no longer");

type IntrospectedClaims = Arc<Map<String, Value>>;

/// What the issuer said of a token.
type IntrospectionResult = Result<IntrospectedClaims, AuthRejection>;

impl TokenIntrospector {
    pub(crate) fn new(endpoint: &str, client: &str, secret: &str, web: Arc<dyn HttpFetch>) -> Self {
        let pair = format!("{}:{}", form_encoded(client), form_encoded(secret));
        Self {
            endpoint: endpoint.to_owned(),
            authorization: format!("Basic {}", STANDARD.encode(pair)),
            web,
            asking: Arc::new(Semaphore::new(MAX_ASKED)),
            asking_again: Arc::new(Semaphore::new(MAX_ASKED_AGAIN)),
            remembered: Arc::default(),
        }
    }

    /// Who the issuer says the owner of a token is.
    pub(crate) async fn identify(
        &self,
        issuer: &str,
        opaque: &str,
        audiences: &BTreeSet<String>,
        now: u64,
    ) -> Result<Caller, AuthRejection> {
        let plain = opaque.bytes().all(|byte| matches!(byte, b'!'..=b'~'));
        if opaque.len() > MAX_OPAQUE_BYTES || !plain {
            return Err(AuthRejection::Bad("the token is not one"));
        }
        let claims = self.introspect(opaque).await?;
        let named = claims.get("iss");
        if named.is_some_and(|named| named.as_str() != Some(issuer)) {
            return Err(AuthRejection::Bad(
                "the issuer of the token is not one of ours",
            ));
        }
        jwt::check_claims(&claims, audiences, now)?;
        jwt::caller_from_claims(issuer, claims.as_ref().clone())
    }

    async fn introspect(&self, opaque: &str) -> IntrospectionResult {
        let name: [u8; 32] = Sha256::digest(opaque).into();
        let counted = {
            let remembered = lock_cache(&self.remembered);
            if let Some(word) = remembered.cached(&name) {
                return word;
            }
            remembered.good.contains_key(&name)
        };
        let pool = if counted {
            &self.asking_again
        } else {
            &self.asking
        };
        let Ok(permit) = pool.clone().try_acquire_owned() else {
            return Err(AuthRejection::Unready);
        };
        let form = FormPost {
            authorization: Some(self.authorization.clone()),
            body: format!(
                "token={}&token_type_hint=access_token",
                form_encoded(opaque)
            ),
        };
        let answered = self.web.post(self.endpoint.clone(), form);
        let remembered = self.remembered.clone();
        // A task of its own: a request to the issuer goes on when the caller hangs up, so its permit has to be held as
        // long, or callers who hang up at once could ask without bound.
        let question = tokio::spawn(async move {
            let _permit = permit;
            let word = parse_response(answered.await.ok())?;
            lock_cache(&remembered).keep(name, &word);
            word
        });
        question.await.unwrap_or(Err(AuthRejection::Unready))
    }

    #[cfg(test)]
    fn remembered(&self) -> MutexGuard<'_, IntrospectionCache> {
        lock_cache(&self.remembered)
    }
}

/// What an answer of the issuer says. Only an answer is remembered: an issuer that is down may be up at the next
/// question.
fn parse_response(answer: Option<Vec<u8>>) -> Result<IntrospectionResult, AuthRejection> {
    let answer = answer.and_then(|bytes| strict_json::parse(&bytes));
    let claims = answer.ok_or(AuthRejection::Unready)?;
    if claims.get("active") == Some(&Value::Bool(true)) {
        Ok(Ok(Arc::new(claims)))
    } else {
        Ok(Err(NOT_GOOD))
    }
}

fn lock_cache(remembered: &Mutex<IntrospectionCache>) -> MutexGuard<'_, IntrospectionCache> {
    remembered.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A text as it can stand in a form.
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
