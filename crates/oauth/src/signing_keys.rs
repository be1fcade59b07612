//! Signing keys (ES256) of the authorization server, with rotation: a new key every 30 days.

use std::sync::{PoisonError, RwLock};

use docent_mcp::LocalKeys;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING as ES256, EcdsaKeyPair, KeyPair as _};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::crypto::{self, RandomnessError};
use super::store::{AuthStore, KEYS, StoreError, StoreTransaction};

/// How long a key signs tokens: 30 days, in seconds. Rotation limits what a key that leaked unnoticed is good for.
/// Tokens live for minutes and old keys stay published for days, so no client notices a rotation.
const SIGNING_PERIOD: u64 = 30 * 86_400;
/// How long a key stays in the published key set after its last signature, in seconds: far beyond the lifetime of any
/// token. A key that vanished earlier would make tokens invalid that were signed just before the rotation.
const PUBLISHED_PERIOD: u64 = 2 * 86_400;
/// The maximum number of stored keys. There are more than two only when the clock jumps.
const MAX_KEYS: usize = 8;

/// The row name of the HMAC secret, next to the signing keys.
const SECRET: &str = "secret";

#[derive(Serialize, Deserialize)]
struct SigningKeyRow {
    made: u64,
    /// The private key, PKCS#8 in base64url.
    private: String,
}

struct SigningKey {
    id: String,
    made: u64,
    pair: EcdsaKeyPair,
}

/// The signing keys, newest first. The first one signs; the others only verify.
pub(crate) struct SigningKeys {
    store: AuthStore,
    /// The public keys, shared with the issuer that verifies tokens in this process.
    public: LocalKeys,
    keys: RwLock<Vec<SigningKey>>,
    random: SystemRandom,
}

/// Why a token could not be signed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SigningKeyError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    NoRandomness(#[from] RandomnessError),
    #[error("corrupt signing key in the sign-in store")]
    Damaged,
}

impl SigningKeys {
    /// Loads the keys, and creates one if none may sign any more.
    pub(crate) fn open(
        store: AuthStore,
        public: LocalKeys,
        now: u64,
    ) -> Result<Self, SigningKeyError> {
        let keys = Self {
            store,
            public,
            keys: RwLock::default(),
            random: SystemRandom::new(),
        };
        keys.renew(now)?;
        Ok(keys)
    }

    /// Signs a JWT with the header `typ`, and rotates the key first if it is due.
    pub(crate) fn sign(
        &self,
        typ: &str,
        claims: &Value,
        now: u64,
    ) -> Result<String, SigningKeyError> {
        if !self.has_signing_key(now) {
            self.renew(now)?;
        }
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        let key = keys.first().ok_or(SigningKeyError::Damaged)?;
        let header = json!({"alg": "ES256", "typ": typ, "kid": key.id});
        let text = format!(
            "{}.{}",
            crypto::encode(header.to_string().as_bytes()),
            crypto::encode(claims.to_string().as_bytes())
        );
        let signature = key
            .pair
            .sign(&self.random, text.as_bytes())
            .map_err(|_| RandomnessError)?;
        Ok(format!("{text}.{}", crypto::encode(signature.as_ref())))
    }

    /// The public keys as a JSON Web Key Set (RFC 7517).
    pub(crate) fn jwks(&self) -> Value {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        key_set(&keys)
    }

    /// The public keys for verifying tokens in this process.
    pub(crate) const fn public(&self) -> &LocalKeys {
        &self.public
    }

    fn has_signing_key(&self, now: u64) -> bool {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        keys.first().is_some_and(|key| key.may_sign(now))
    }

    fn renew(&self, now: u64) -> Result<(), SigningKeyError> {
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        if keys.first().is_some_and(|key| key.may_sign(now)) {
            return Ok(());
        }
        let rows = self.store.change(|rows| renewed(rows, now))?;
        let mut read = Vec::new();
        for (id, row) in rows {
            let private = crypto::decode(&row.private).ok_or(SigningKeyError::Damaged)?;
            let pair = EcdsaKeyPair::from_pkcs8(&ES256, &private, &self.random)
                .map_err(|_| SigningKeyError::Damaged)?;
            let made = row.made;
            read.push(SigningKey { id, made, pair });
        }
        self.public
            .replace(&key_set(&read))
            .map_err(|_| SigningKeyError::Damaged)?;
        *keys = read;
        Ok(())
    }
}

impl SigningKey {
    const fn may_sign(&self, now: u64) -> bool {
        // A key from the future means that the clock went back. It keeps signing, or each start would add
        // another key.
        now < self.made.saturating_add(SIGNING_PERIOD)
    }

    fn public_jwk(&self) -> Option<Value> {
        // The uncompressed point: the byte 4, then both coordinates.
        let point = self.pair.public_key().as_ref();
        let (x, y) = point.strip_prefix(&[4])?.split_at_checked(32)?;
        Some(json!({
            "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256",
            "kid": self.id, "x": crypto::encode(x), "y": crypto::encode(y),
        }))
    }
}

fn key_set(keys: &[SigningKey]) -> Value {
    let key_set: Vec<_> = keys.iter().filter_map(SigningKey::public_jwk).collect();
    json!({ "keys": key_set })
}

/// The keys that are still published, newest first, with a new one if the newest may no longer sign. Older
/// ones are deleted.
fn renewed(rows: &StoreTransaction, now: u64) -> Result<Vec<(String, SigningKeyRow)>, StoreError> {
    let mut kept: Vec<(String, SigningKeyRow)> = Vec::new();
    for (id, value) in rows.all::<Value>(KEYS)? {
        if id == SECRET {
            continue;
        }
        let row: SigningKeyRow = serde_json::from_value(value)?;
        if now >= row.made.saturating_add(SIGNING_PERIOD + PUBLISHED_PERIOD) {
            rows.remove(KEYS, &id)?;
        } else {
            kept.push((id, row));
        }
    }
    kept.sort_by_key(|(_, row)| std::cmp::Reverse(row.made));
    let signs = kept
        .first()
        .is_some_and(|(_, row)| now < row.made.saturating_add(SIGNING_PERIOD));
    if !signs {
        let pair = EcdsaKeyPair::generate_pkcs8(&ES256, &SystemRandom::new())
            .map_err(|_| RandomnessError)?;
        let id = crypto::encode(&crypto::random::<9>()?);
        let row = SigningKeyRow {
            made: now,
            private: crypto::encode(pair.as_ref()),
        };
        rows.put(KEYS, &id, &row)?;
        kept.insert(0, (id, row));
    }
    for (id, _) in kept.drain(MAX_KEYS.min(kept.len())..) {
        rows.remove(KEYS, &id)?;
    }
    Ok(kept)
}

/// Loads the HMAC secret, which is created once.
pub(crate) fn secret(store: &AuthStore) -> Result<Vec<u8>, SigningKeyError> {
    let text = store.change(|rows| {
        if let Some(text) = rows.get::<String>(KEYS, SECRET)? {
            return Ok(text);
        }
        let text = crypto::secret()?;
        rows.put(KEYS, SECRET, &text)?;
        Ok(text)
    })?;
    crypto::decode(&text).ok_or(SigningKeyError::Damaged)
}

#[cfg(test)]
mod tests {
    use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};

    use super::*;

    fn open(store: AuthStore, now: u64) -> Result<SigningKeys, SigningKeyError> {
        SigningKeys::open(store, LocalKeys::default(), now)
    }

    fn verify(jwks: &Value, token: &str) -> bool {
        let (text, signature) = token.rsplit_once('.').unwrap();
        let header: Value =
            serde_json::from_slice(&crypto::decode(token.split('.').next().unwrap()).unwrap())
                .unwrap();
        jwks["keys"].as_array().unwrap().iter().any(|key| {
            let part = |name: &str| crypto::decode(key[name].as_str().unwrap()).unwrap();
            let point = [vec![4], part("x"), part("y")].concat();
            key["kid"] == header["kid"]
                && UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
                    .verify(text.as_bytes(), &crypto::decode(signature).unwrap())
                    .is_ok()
        })
    }

    #[test]
    fn tokens_hold_across_a_restart_and_a_rotation() {
        let dir = tempfile::tempdir().unwrap();
        let store = AuthStore::open(dir.path()).unwrap();
        let secret_before = secret(&store).unwrap();
        let keys = open(store.clone(), 1000).unwrap();
        let old = keys.sign("at+jwt", &json!({"sub": "anna"}), 1000).unwrap();
        assert!(verify(&keys.jwks(), &old));
        let keys = open(store.clone(), 2000).unwrap();
        assert!(verify(&keys.jwks(), &old));
        assert_eq!(secret(&store).unwrap(), secret_before);

        let later = 1000 + SIGNING_PERIOD;
        let new = keys.sign("at+jwt", &json!({}), later).unwrap();
        assert_eq!(keys.jwks()["keys"].as_array().unwrap().len(), 2);
        assert!(verify(&keys.jwks(), &new) && verify(&keys.jwks(), &old));

        let keys = open(store, later + SIGNING_PERIOD + PUBLISHED_PERIOD).unwrap();
        assert_eq!(keys.jwks()["keys"].as_array().unwrap().len(), 1);
        assert!(!verify(&keys.jwks(), &old) && !verify(&keys.jwks(), &new));
    }

    #[test]
    fn the_newest_key_signs_to_its_last_second_and_is_shown_to_its_last() {
        let dir = tempfile::tempdir().unwrap();
        let store = AuthStore::open(dir.path()).unwrap();
        let keys = open(store.clone(), 1000).unwrap();
        let kid = |token: &str| {
            let header = crypto::decode(token.split('.').next().unwrap()).unwrap();
            serde_json::from_slice::<Value>(&header).unwrap()["kid"].clone()
        };
        let sign =
            |keys: &SigningKeys, now: u64| kid(&keys.sign("at+jwt", &json!({}), now).unwrap());
        let first = sign(&keys, 1000);
        assert_eq!(sign(&keys, 1000 + SIGNING_PERIOD - 1), first);
        let second = sign(&keys, 1000 + SIGNING_PERIOD);
        assert_ne!(second, first);
        // A clock that goes back does not rotate the key.
        assert_eq!(sign(&keys, 1), second);
        let key_set = |now: u64| {
            let keys = open(store.clone(), now).unwrap();
            keys.jwks()["keys"].as_array().unwrap().len()
        };
        assert_eq!(key_set(1000 + SIGNING_PERIOD + PUBLISHED_PERIOD - 1), 2);
        assert_eq!(key_set(1000 + SIGNING_PERIOD + PUBLISHED_PERIOD), 1);
        let rows = store.change(|rows| rows.count(KEYS)).unwrap();
        assert_eq!(rows, 1, "what is not published is not stored either");
    }

    #[test]
    fn every_server_has_a_secret_of_its_own() {
        let made = || {
            let dir = tempfile::tempdir().unwrap();
            let store = AuthStore::open(dir.path()).unwrap();
            let first = secret(&store).unwrap();
            assert_eq!(secret(&store).unwrap(), first);
            first
        };
        let (one, two) = (made(), made());
        assert!(one.len() == 32 && two.len() == 32 && one != two);
    }

    #[test]
    fn there_is_a_most_of_keys_and_the_oldest_go() {
        let dir = tempfile::tempdir().unwrap();
        let store = AuthStore::open(dir.path()).unwrap();
        let now = 100 * 86_400;
        store
            .change(|rows| {
                for n in 0..12 {
                    let pair = EcdsaKeyPair::generate_pkcs8(&ES256, &SystemRandom::new()).unwrap();
                    let row = SigningKeyRow {
                        made: now - SIGNING_PERIOD - n,
                        private: crypto::encode(pair.as_ref()),
                    };
                    // The oldest keys come first in key order.
                    rows.put(KEYS, &format!("k{:02}", 50 - n), &row)?;
                }
                Ok(())
            })
            .unwrap();
        let keys = open(store.clone(), now).unwrap();
        let jwks = keys.jwks();
        let all = jwks["keys"].as_array().unwrap();
        let ids: Vec<_> = all.iter().map(|key| key["kid"].as_str().unwrap()).collect();
        assert_eq!(ids[1..], ["k50", "k49", "k48", "k47", "k46", "k45", "k44"]);
        assert_eq!(store.change(|rows| rows.count(KEYS)).unwrap(), MAX_KEYS);
        let token = keys.sign("at+jwt", &json!({}), now).unwrap();
        assert!(verify(&jwks, &token));
    }

    #[test]
    fn a_key_that_is_damaged_is_told() {
        for private in ["!", "AAAA"] {
            let dir = tempfile::tempdir().unwrap();
            let store = AuthStore::open(dir.path()).unwrap();
            let row = SigningKeyRow {
                made: 1000,
                private: private.to_owned(),
            };
            store.change(|rows| rows.put(KEYS, "k", &row)).unwrap();
            assert!(matches!(open(store, 1000), Err(SigningKeyError::Damaged)));
        }
    }

    #[test]
    fn only_the_public_half_is_shown() {
        let dir = tempfile::tempdir().unwrap();
        let keys = open(AuthStore::open(dir.path()).unwrap(), 0).unwrap();
        let jwks = keys.jwks();
        let names: Vec<_> = jwks["keys"][0].as_object().unwrap().keys().collect();
        assert_eq!(names, ["kty", "crv", "use", "alg", "kid", "x", "y"]);
    }
}
