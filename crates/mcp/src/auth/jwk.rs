//! JSON Web Keys (RFC 7517): parses an issuer's key set and verifies signatures with it.

use std::sync::{Arc, PoisonError, RwLock};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey};
use serde_json::Value;

use super::AuthError;

/// The maximum number of keys of one issuer. Providers publish two to ten. A token without a `kid` is tried with the
/// only key, and one with a `kid` is looked up, so a longer list is a mistake or an attack on memory.
pub(crate) const MAX_KEYS: usize = 100;
/// The maximum length of a key id (`kid`).
pub(crate) const MAX_KID_BYTES: usize = 256;
/// The accepted RSA modulus sizes in bytes: 2,048 to 8,192 bits. Shorter keys can be broken. Verifying with longer ones
/// takes so much time that an issuer with such a key would slow down every request.
const RSA_BYTES: std::ops::RangeInclusive<usize> = 256..=1_024;

/// A JWS signature algorithm (RFC 7518, RFC 8037). Only asymmetric ones: with a shared secret, whoever can
/// verify a token can also forge one.
///
/// ```rust
/// use docent_mcp::SignatureAlgorithm;
///
/// assert_eq!(SignatureAlgorithm::parse("EdDSA"), Some(SignatureAlgorithm::EdDsa));
/// assert_eq!(SignatureAlgorithm::parse("HS256"), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignatureAlgorithm {
    /// RSASSA-PKCS1-v1_5 with SHA-256, the default of most providers.
    Rs256,
    /// RSASSA-PKCS1-v1_5 with SHA-384, accepted only if configured.
    Rs384,
    /// RSASSA-PKCS1-v1_5 with SHA-512, accepted only if configured.
    Rs512,
    /// RSASSA-PSS with SHA-256 and MGF1.
    Ps256,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// ECDSA on P-384 with SHA-384, accepted only if configured.
    Es384,
    /// Ed25519 signatures (EdDSA, RFC 8037).
    EdDsa,
}

impl SignatureAlgorithm {
    /// The algorithms that are accepted by default, one of each family.
    pub const USUAL: [Self; 4] = [Self::Rs256, Self::Ps256, Self::Es256, Self::EdDsa];
    const ALL: [Self; 7] = [
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
        Self::Ps256,
        Self::Es256,
        Self::Es384,
        Self::EdDsa,
    ];

    /// Parses the value of `alg`, which is case-sensitive.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name() == name)
    }

    /// The algorithm's name in the header member `alg`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Rs384 => "RS384",
            Self::Rs512 => "RS512",
            Self::Ps256 => "PS256",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::EdDsa => "EdDSA",
        }
    }
}

/// A public key that verifies signatures; it never signs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VerificationKey {
    pub(crate) kid: Option<String>,
    /// The only algorithm that the key may be used with, if the issuer set `alg`.
    algorithm: Option<SignatureAlgorithm>,
    material: KeyMaterial,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum KeyMaterial {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

impl VerificationKey {
    /// Parses a signing key. `None` for keys of another use or type, which issuers publish in the same set.
    fn parse(jwk: &Value) -> Option<Self> {
        let text = |name: &str| jwk.get(name).and_then(Value::as_str);
        if jwk
            .get("use")
            .is_some_and(|usage| usage.as_str() != Some("sig"))
        {
            return None;
        }
        let operations = jwk.get("key_ops").and_then(Value::as_array);
        if operations.is_some_and(|all| !all.iter().any(|op| op == "verify")) {
            return None;
        }
        let algorithm = match jwk.get("alg") {
            None => None,
            Some(name) => Some(SignatureAlgorithm::parse(name.as_str()?)?),
        };
        let kid = match jwk.get("kid") {
            None => None,
            Some(kid) => Some(kid.as_str().filter(|kid| is_kid(kid))?.to_owned()),
        };
        let bytes = |name: &str| URL_SAFE_NO_PAD.decode(text(name)?).ok();
        let material = match (text("kty")?, text("crv")) {
            ("RSA", _) => rsa(bytes("n")?, bytes("e")?)?,
            ("EC", Some("P-256")) => KeyMaterial::P256(point(&bytes("x")?, &bytes("y")?, 32)?),
            ("EC", Some("P-384")) => KeyMaterial::P384(point(&bytes("x")?, &bytes("y")?, 48)?),
            ("OKP", Some("Ed25519")) => KeyMaterial::Ed25519(bytes("x").filter(|x| x.len() == 32)?),
            _ => return None,
        };
        Some(Self {
            kid,
            algorithm,
            material,
        })
    }

    /// Verifies a signature over `message`. The algorithm must fit the key's type and its `alg`, which
    /// prevents algorithm confusion.
    pub(crate) fn verifies(
        &self,
        algorithm: SignatureAlgorithm,
        message: &[u8],
        signature: &[u8],
    ) -> bool {
        if self.algorithm.is_some_and(|only| only != algorithm) {
            return false;
        }
        let plain = |algorithm_impl: &'static dyn signature::VerificationAlgorithm, key: &[u8]| {
            UnparsedPublicKey::new(algorithm_impl, key).verify(message, signature)
        };
        let verified = match (&self.material, algorithm) {
            (KeyMaterial::Rsa { n, e }, algorithm) => {
                let algorithm_impl = match algorithm {
                    SignatureAlgorithm::Rs256 => &signature::RSA_PKCS1_2048_8192_SHA256,
                    SignatureAlgorithm::Rs384 => &signature::RSA_PKCS1_2048_8192_SHA384,
                    SignatureAlgorithm::Rs512 => &signature::RSA_PKCS1_2048_8192_SHA512,
                    SignatureAlgorithm::Ps256 => &signature::RSA_PSS_2048_8192_SHA256,
                    SignatureAlgorithm::Es256
                    | SignatureAlgorithm::Es384
                    | SignatureAlgorithm::EdDsa => return false,
                };
                RsaPublicKeyComponents { n, e }.verify(algorithm_impl, message, signature)
            }
            (KeyMaterial::P256(key), SignatureAlgorithm::Es256) => {
                plain(&signature::ECDSA_P256_SHA256_FIXED, key)
            }
            (KeyMaterial::P384(key), SignatureAlgorithm::Es384) => {
                plain(&signature::ECDSA_P384_SHA384_FIXED, key)
            }
            (KeyMaterial::Ed25519(key), SignatureAlgorithm::EdDsa) => {
                plain(&signature::ED25519, key)
            }
            _ => return false,
        };
        verified.is_ok()
    }
}

fn rsa(n: Vec<u8>, e: Vec<u8>) -> Option<KeyMaterial> {
    // Some issuers write a leading zero byte, which RFC 7518 forbids and the verifier refuses.
    let n = match n.strip_prefix(&[0]) {
        Some(rest) => rest.to_vec(),
        None => n,
    };
    (RSA_BYTES.contains(&n.len()) && e.len() <= 8).then_some(KeyMaterial::Rsa { n, e })
}

/// The uncompressed encoding of a curve point: the byte 4 and then both coordinates in full length.
fn point(x: &[u8], y: &[u8], size: usize) -> Option<Vec<u8>> {
    (x.len() == size && y.len() == size).then(|| [&[4], x, y].concat())
}

/// True for a usable key id: not empty, of bounded length, and without control characters.
pub(crate) fn is_kid(kid: &str) -> bool {
    (1..=MAX_KID_BYTES).contains(&kid.len()) && !kid.chars().any(char::is_control)
}

/// An issuer's key set (JWKS) at one point in time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct JsonWebKeySet(Vec<VerificationKey>);

impl JsonWebKeySet {
    /// Parses a published key set and skips keys that we cannot use. A set without a usable key is an
    /// error, and so is a `kid` that names two keys.
    pub(crate) fn parse(jwks: &Value) -> Result<Self, &'static str> {
        let listed = jwks
            .get("keys")
            .and_then(Value::as_array)
            .ok_or("there is no list `keys`")?;
        if listed.len() > MAX_KEYS {
            return Err("there are too many keys");
        }
        let keys: Vec<VerificationKey> = listed.iter().filter_map(VerificationKey::parse).collect();
        if keys.is_empty() {
            return Err("none of the keys can check a signature");
        }
        let named = keys.iter().filter_map(|key| key.kid.as_deref());
        let mut seen = std::collections::BTreeSet::new();
        if !named.into_iter().all(|kid| seen.insert(kid)) {
            return Err("two keys have one name");
        }
        Ok(Self(keys))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The key with this `kid`. A token without a `kid` is verified only when the set has a single key.
    pub(crate) fn find(&self, kid: Option<&str>) -> Option<&VerificationKey> {
        match (kid, self.0.as_slice()) {
            (Some(kid), keys) => keys.iter().find(|key| key.kid.as_deref() == Some(kid)),
            (None, [only]) => Some(only),
            (None, _) => None,
        }
    }
}

/// The keys of an issuer in this process. Clones share them, so that [`replace`](Self::replace) takes
/// effect for all.
///
/// ```rust
/// use docent_mcp::LocalKeys;
///
/// let keys = LocalKeys::default();
/// keys.replace(&serde_json::json!({"keys": [{
///     "kty": "OKP", "crv": "Ed25519", "kid": "2026-11", "alg": "EdDSA", "use": "sig",
///     "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
/// }]}))?;
/// assert!(keys.replace(&serde_json::json!({"keys": []})).is_err());
/// # Ok::<(), docent_mcp::AuthError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct LocalKeys(Arc<RwLock<Arc<JsonWebKeySet>>>);

impl LocalKeys {
    /// Replaces the key set (RFC 7517). To rotate keys, publish the old and the new one together until the
    /// last token of the old key has expired.
    ///
    /// # Errors
    /// When no key in the set can be used; the previous keys stay in effect.
    pub fn replace(&self, jwks: &Value) -> Result<(), AuthError> {
        let keys = Arc::new(JsonWebKeySet::parse(jwks).map_err(AuthError::Keys)?);
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = keys;
        Ok(())
    }

    pub(crate) fn get(&self) -> Arc<JsonWebKeySet> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.get().is_empty()
    }
}

#[cfg(test)]
mod tests;
