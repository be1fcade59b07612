//! An order-independent digest of a set of documents, so that two sets are compared without listing them.

use std::fmt;

use super::digest::digest;

/// The number of documents and the wrapping sum of their digests. Adding and removing a document is O(1), and
/// the order does not matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SetDigest {
    pub documents: u64,
    sum: u128,
}

impl SetDigest {
    pub(super) fn add(&mut self, id: &str, row: (&str, &str)) {
        self.documents = self.documents.wrapping_add(1);
        self.sum = self.sum.wrapping_add(digest([id, row.0, row.1]));
    }

    pub(super) fn remove(&mut self, id: &str, row: (&str, &str)) {
        self.documents = self.documents.wrapping_sub(1);
        self.sum = self.sum.wrapping_sub(digest([id, row.0, row.1]));
    }

    /// Parses the text form that a commit carries, as `Display` wrote it.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (documents, sum) = text.split_once(' ')?;
        Some(Self {
            documents: documents.parse().ok()?,
            sum: u128::from_str_radix(sum, 16).ok()?,
        })
    }
}

impl fmt::Display for SetDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:032x}", self.documents, self.sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_does_not_matter_and_every_part_does() {
        let of = |rows: &[(&str, &str, &str)]| {
            let mut digest = SetDigest::default();
            for (id, source, hash) in rows {
                digest.add(id, (source, hash));
            }
            digest
        };
        let (a, b) = (("a", "x", "1"), ("b", "y", "2"));
        assert_eq!(of(&[a, b]), of(&[b, a]));
        for other in [
            ("c", "y", "2"),
            ("b", "z", "2"),
            ("b", "y", "3"),
            ("by", "", "2"),
        ] {
            assert_ne!(of(&[a, b]), of(&[a, other]));
        }
        assert_ne!(of(&[a]), of(&[a, a]));
        let mut less = of(&[a, b]);
        less.remove("b", ("y", "2"));
        assert_eq!(less, of(&[a]));
        assert_eq!(SetDigest::parse(&less.to_string()), Some(less));
        assert_eq!(SetDigest::parse("1"), None);
        assert_eq!(SetDigest::parse("one 0"), None);
    }
}
