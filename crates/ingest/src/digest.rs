//! SHA-256 checksums in lower-case hexadecimal, by which changed content is detected.

pub(crate) mod hashing_reader;

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Encodes the bytes of a checksum in lower-case hexadecimal.
pub(crate) fn hex(digest: &[u8]) -> String {
    let mut hex = String::with_capacity(2 * digest.len());
    for byte in digest {
        // Writing into a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_standard_example_holds() {
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(super::sha256(b"abc"), abc);
    }
}
