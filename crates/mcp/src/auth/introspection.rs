//! Opaque tokens: the issuer is asked what they are worth (RFC 7662), and its word is kept for a minute.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::web::{Fetch, Form};
use super::{Caller, Denied, claims, token};

/// How long the issuer's word counts. Somebody who was signed out there is out here by then.
pub(crate) const KEPT: Duration = Duration::from_secs(60);
/// The most tokens whose worth is remembered.
pub(crate) const MAX_REMEMBERED: usize = 10_000;
/// The most questions to the issuer at once; whoever comes on top is told to come back.
pub(crate) const MAX_ASKED: usize = 16;
/// The longest opaque token.
pub(crate) const MAX_OPAQUE_BYTES: usize = 4 * 1024;

/// Asks one issuer about tokens.
pub(crate) struct Introspection {
    endpoint: String,
    authorization: String,
    web: Arc<dyn Fetch>,
    asking: Semaphore,
    remembered: Mutex<HashMap<[u8; 32], (Instant, Word)>>,
}

/// What the issuer said of a token.
type Word = Result<Arc<Map<String, Value>>, Denied>;

impl Introspection {
    pub(crate) fn new(endpoint: &str, client: &str, secret: &str, web: Arc<dyn Fetch>) -> Self {
        let pair = format!("{}:{}", form_encoded(client), form_encoded(secret));
        Self {
            endpoint: endpoint.to_owned(),
            authorization: format!("Basic {}", STANDARD.encode(pair)),
            web,
            asking: Semaphore::new(MAX_ASKED),
            remembered: Mutex::default(),
        }
    }

    /// Who the issuer says the owner of a token is.
    pub(crate) async fn identify(
        &self,
        issuer: &str,
        opaque: &str,
        audiences: &BTreeSet<String>,
        now: u64,
    ) -> Result<Caller, Denied> {
        let plain = opaque.bytes().all(|byte| matches!(byte, b'!'..=b'~'));
        if opaque.len() > MAX_OPAQUE_BYTES || !plain {
            return Err(Denied::Bad("the token is not one"));
        }
        let claims = self.word(opaque).await?;
        let named = claims.get("iss");
        if named.is_some_and(|named| named.as_str() != Some(issuer)) {
            return Err(Denied::Bad("the issuer of the token is not one of ours"));
        }
        token::believable(&claims, audiences, now)?;
        token::known(issuer, claims.as_ref().clone())
    }

    async fn word(&self, opaque: &str) -> Word {
        let name: [u8; 32] = Sha256::digest(opaque).into();
        if let Some((_, word)) = self
            .remembered()
            .get(&name)
            .filter(|(at, _)| at.elapsed() < KEPT)
        {
            return word.clone();
        }
        let Ok(_permit) = self.asking.try_acquire() else {
            return Err(Denied::Unready);
        };
        let form = Form {
            authorization: Some(self.authorization.clone()),
            body: format!(
                "token={}&token_type_hint=access_token",
                form_encoded(opaque)
            ),
        };
        let answered = self.web.post(self.endpoint.clone(), form).await;
        let answer = answered.ok().and_then(|bytes| claims::parse(&bytes));
        // Only an answer is remembered: an issuer that is down may be up at the next question.
        let Some(claims) = answer else {
            return Err(Denied::Unready);
        };
        let word = if claims.get("active") == Some(&Value::Bool(true)) {
            Ok(Arc::new(claims))
        } else {
            Err(Denied::Bad("the token does not count, or no longer"))
        };
        let mut remembered = self.remembered();
        if remembered.len() >= MAX_REMEMBERED {
            remembered.retain(|_, (at, _)| at.elapsed() < KEPT);
        }
        if remembered.len() < MAX_REMEMBERED {
            remembered.insert(name, (Instant::now(), word.clone()));
        }
        word
    }

    fn remembered(&self) -> std::sync::MutexGuard<'_, HashMap<[u8; 32], (Instant, Word)>> {
        self.remembered
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
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
