//! Bytes into their SHA-256, written in hexadecimal.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// A sum as it is written.
pub(crate) fn hex(sum: &[u8]) -> String {
    let mut hex = String::with_capacity(2 * sum.len());
    for byte in sum {
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
