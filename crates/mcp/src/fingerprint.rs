//! Fingerprints of texts: short hashes that differ when the texts do.

use sha2::{Digest as _, Sha256};

/// Returns the first bytes of the SHA-256 of a text in hexadecimal.
pub(crate) fn fingerprint(text: &[u8], bytes: usize) -> String {
    Sha256::digest(text)
        .iter()
        .take(bytes)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
