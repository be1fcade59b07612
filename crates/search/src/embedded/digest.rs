//! A 128-bit digest of several texts.

use sha2::{Digest as _, Sha256};

/// The first half of the SHA-256 of the texts.
pub(super) fn digest(parts: [&str; 3]) -> u128 {
    let mut hash = Sha256::new();
    for part in parts {
        // Lengths come first, so that no two different splits of the same bytes collide.
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    let bytes = hash.finalize();
    bytes
        .iter()
        .take(16)
        .fold(0, |number, byte| number << 8 | u128::from(*byte))
}
