//! Randomness, digests and seals: texts that only this server can have made, and that nobody changed.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use ring::rand::SecureRandom as _;
use ring::{hmac, rand};
use sha2::{Digest as _, Sha256};

/// Bytes of a secret that nobody can guess.
pub(crate) const SECRET_BYTES: usize = 32;

/// The system gave no randomness.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the system gives no random numbers")]
pub(crate) struct RandomnessError;

/// Fresh random bytes.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], RandomnessError> {
    let mut bytes = [0; N];
    rand::SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| RandomnessError)?;
    Ok(bytes)
}

/// Bytes as they can stand in an address, a cookie and a header.
pub(crate) fn encode(bytes: &[u8]) -> String {
    BASE64.encode(bytes)
}

/// The reverse of [`encode`]; nothing for any other text.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    BASE64.decode(text).ok()
}

/// A fresh secret as text.
pub(crate) fn secret() -> Result<String, RandomnessError> {
    random::<SECRET_BYTES>().map(|bytes| encode(&bytes))
}

/// What is kept of a secret: enough to know it again, useless to whoever reads the disk.
pub(crate) fn digest(text: &str) -> String {
    encode(&Sha256::digest(text.as_bytes()))
}

/// True when both texts are the same, in the same time for all that differ.
pub(crate) fn constant_time_eq(a: &str, b: &str) -> bool {
    // Digests have one length, and how long two of them agree tells nothing about the texts.
    Sha256::digest(a.as_bytes()) == Sha256::digest(b.as_bytes())
}

/// Seals texts for a purpose, so that a seal made for one cannot serve another.
pub(crate) struct HmacSigner(hmac::Key);

impl HmacSigner {
    pub(crate) fn new(secret: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    /// The seal over `parts`, in this order and with these borders.
    pub(crate) fn sign(&self, purpose: &str, parts: &[&str]) -> String {
        encode(hmac::sign(&self.0, &length_prefixed(purpose, parts)).as_ref())
    }

    /// True for the seal over exactly these.
    pub(crate) fn verify(&self, purpose: &str, parts: &[&str], seal: &str) -> bool {
        decode(seal).is_some_and(|seal| {
            hmac::verify(&self.0, &length_prefixed(purpose, parts), &seal).is_ok()
        })
    }
}

/// Each part with its length before it, so that no two lists of parts read alike.
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
        let seal = ours.sign("form", &["ab", "c"]);
        assert!(ours.verify("form", &["ab", "c"], &seal));
        assert!(!ours.verify("form", &["a", "bc"], &seal));
        assert!(!ours.verify("login", &["ab", "c"], &seal));
        assert!(!ours.verify("form", &["ab", "c"], "!"));
        assert!(!ours.verify("form", &["ab", "c"], ""));
        assert!(!theirs.verify("form", &["ab", "c"], &seal));
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
