//! Cryptographic helpers: random secrets, digests, and HMAC signatures over values that this server sends
//! out and gets back.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use ring::rand::SecureRandom as _;
use ring::{hmac, rand};
use sha2::{Digest as _, Sha256};

/// The size of a random secret: 256 bits.
pub(crate) const SECRET_BYTES: usize = 32;

/// The operating system's random number generator failed.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("no random bytes from the operating system")]
pub(crate) struct RandomnessError;

/// Random bytes from the operating system.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], RandomnessError> {
    let mut bytes = [0; N];
    rand::SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| RandomnessError)?;
    Ok(bytes)
}

/// Encodes bytes in base64url, which is safe in a URL, a cookie and a header.
pub(crate) fn encode(bytes: &[u8]) -> String {
    BASE64.encode(bytes)
}

/// Decodes base64url; `None` for any other text.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    BASE64.decode(text).ok()
}

/// A new random secret in base64url.
pub(crate) fn secret() -> Result<String, RandomnessError> {
    random::<SECRET_BYTES>().map(|bytes| encode(&bytes))
}

/// The digest under which a secret is stored: enough to recognise it, useless to whoever reads the disk. A
/// plain SHA-256 suffices for 256 random bits.
pub(crate) fn digest(text: &str) -> String {
    encode(&Sha256::digest(text.as_bytes()))
}

/// Compares two texts in constant time.
pub(crate) fn constant_time_eq(a: &str, b: &str) -> bool {
    // Digests have equal length, and how far two of them agree reveals nothing about the texts.
    Sha256::digest(a.as_bytes()) == Sha256::digest(b.as_bytes())
}

/// HMAC-SHA256 signatures with domain separation: a MAC made for one `purpose` is not valid for another.
pub(crate) struct HmacSigner(hmac::Key);

impl HmacSigner {
    pub(crate) fn new(secret: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    /// The MAC over `parts`, in this order and with unambiguous boundaries.
    pub(crate) fn sign(&self, purpose: &str, parts: &[&str]) -> String {
        encode(hmac::sign(&self.0, &length_prefixed(purpose, parts)).as_ref())
    }

    /// Verifies the MAC over exactly these parts, in constant time.
    pub(crate) fn verify(&self, purpose: &str, parts: &[&str], mac: &str) -> bool {
        decode(mac).is_some_and(|mac| {
            hmac::verify(&self.0, &length_prefixed(purpose, parts), &mac).is_ok()
        })
    }
}

/// Prefixes each part with its length, so that no two lists of parts give the same message.
fn length_prefixed(purpose: &str, parts: &[&str]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in std::iter::once(&purpose).chain(parts) {
        bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
        bytes.extend_from_slice(part.as_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_holds_for_what_it_was_made_for_and_nothing_else() {
        let (ours, theirs) = (HmacSigner::new(b"one"), HmacSigner::new(b"two"));
        let mac = ours.sign("form", &["ab", "c"]);
        assert!(ours.verify("form", &["ab", "c"], &mac));
        assert!(!ours.verify("form", &["a", "bc"], &mac));
        assert!(!ours.verify("login", &["ab", "c"], &mac));
        assert!(!ours.verify("form", &["ab", "c"], "!"));
        assert!(!ours.verify("form", &["ab", "c"], ""));
        assert!(!theirs.verify("form", &["ab", "c"], &mac));
    }

    #[test]
    fn secrets_are_long_and_never_the_same() {
        let (a, b) = (secret().unwrap(), secret().unwrap());
        assert_eq!(decode(&a).unwrap().len(), SECRET_BYTES);
        assert_ne!(a, b);
        assert_ne!(digest(&a), digest(&b));
        assert!(constant_time_eq(&a, &a.clone()) && !constant_time_eq(&a, &b));
    }
}
