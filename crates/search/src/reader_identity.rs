//! Access control: the identity of a reader, the readers that a document allows, and the check between them.
//! [`ReaderIdentity::can_see`] is the one rule that every engine applies to all its answers.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use crate::document::Document;
use crate::error::SearchError;

/// The longest principal, in bytes. The longest email address has 254, and a prefix stands before it.
pub const MAX_PRINCIPAL_BYTES: usize = 512;

/// The most principals on the allowlist of one document. Whoever needs more needs a group.
pub const MAX_READERS: usize = 256;

/// The most principals of one reader that count. Directories put some hundreds of groups into a token.
pub const MAX_PRINCIPALS: usize = 1_024;

/// A principal: a user or group that a reader is and a document allows, such as `group:finance` or
/// `email:ada@example.com`. 1 to [`MAX_PRINCIPAL_BYTES`] bytes without control characters, compared byte by byte.
///
/// Cloning is cheap, because the text is shared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Principal(Arc<str>);

impl Principal {
    /// Parses a principal; the error says why `text` is none.
    pub fn parse(text: &str) -> Result<Self, SearchError> {
        let reason = if text.is_empty() {
            "it is empty"
        } else if text.len() > MAX_PRINCIPAL_BYTES {
            "it has more than 512 bytes"
        } else if text.chars().any(char::is_control) {
            "it holds a control character"
        } else {
            return Ok(Self(text.into()));
        };
        Err(SearchError::Principal { reason })
    }

    /// The principal as a string slice.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The allowlist of a document: who may read it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AllowedReaders {
    /// Every reader, without any restriction.
    #[default]
    Everyone,
    /// Readers with one of these principals, at most [`MAX_READERS`]; with none, only the owner.
    Only(BTreeSet<Principal>),
}

impl AllowedReaders {
    /// The principals on the allowlist.
    pub(crate) fn named(&self) -> impl Iterator<Item = &Principal> {
        let named = match self {
            Self::Everyone => None,
            Self::Only(principals) => Some(principals),
        };
        named.into_iter().flatten()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.named().map(|one| one.as_str().len()).sum()
    }
}

/// The identity of a reader. Every search and fetch needs one, so that access is decided in one place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReaderIdentity(IdentityKind);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum IdentityKind {
    /// A reader with these principals; an anonymous reader has none.
    Holder(Arc<BTreeSet<Principal>>),
    Owner,
}

impl ReaderIdentity {
    /// An anonymous reader, who sees what everyone may see.
    pub fn everyone() -> Self {
        Self(IdentityKind::Holder(Arc::default()))
    }

    /// A reader who also sees what is allowed for one of these principals. Only the first [`MAX_PRINCIPALS`] in
    /// their order count, so that too many of them show less and never more (fails closed).
    pub fn holder(principals: impl IntoIterator<Item = Principal>) -> Self {
        let mut held: BTreeSet<_> = principals.into_iter().collect();
        if let Some(first) = held.iter().nth(MAX_PRINCIPALS).cloned() {
            held.split_off(&first);
        }
        Self(IdentityKind::Holder(Arc::new(held)))
    }

    /// The owner of the documents, who sees all of them.
    pub fn owner() -> Self {
        Self(IdentityKind::Owner)
    }

    /// Whether this reader may know that a document exists.
    pub fn can_see(&self, document: &Document) -> bool {
        match (&self.0, &document.readers) {
            (IdentityKind::Owner, _) | (IdentityKind::Holder(_), AllowedReaders::Everyone) => true,
            (IdentityKind::Holder(held), AllowedReaders::Only(readers)) => {
                !held.is_disjoint(readers)
            }
        }
    }

    /// The principals of the reader; `None` for the owner, who needs none.
    pub(crate) fn principals(&self) -> Option<&BTreeSet<Principal>> {
        match &self.0 {
            IdentityKind::Owner => None,
            IdentityKind::Holder(held) => Some(held),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::tests::plain;

    fn principal(text: &str) -> Principal {
        Principal::parse(text).unwrap()
    }

    fn only(names: &[&str]) -> Document {
        Document {
            readers: AllowedReaders::Only(names.iter().map(|name| principal(name)).collect()),
            ..plain("")
        }
    }

    #[test]
    fn one_principal_in_common_is_enough_and_none_is_not() {
        let holder =
            |names: &[&str]| ReaderIdentity::holder(names.iter().map(|name| principal(name)));
        let cases = [
            (ReaderIdentity::everyone(), [true, false, false, false]),
            (holder(&[]), [true, false, false, false]),
            (holder(&["group:a"]), [true, true, false, false]),
            (holder(&["group:x", "group:b"]), [true, true, true, false]),
            (
                holder(&["group:A", "a", "group"]),
                [true, false, false, false],
            ),
            (ReaderIdentity::owner(), [true, true, true, true]),
        ];
        let documents = [
            plain(""),
            only(&["group:a", "group:b"]),
            only(&["group:b"]),
            only(&[]),
        ];
        for (reader, expected) in cases {
            let visible = documents
                .each_ref()
                .map(|document| reader.can_see(document));
            assert_eq!(visible, expected, "{reader:?}");
        }
        assert_eq!(holder(&[]), ReaderIdentity::everyone());
    }

    #[test]
    fn principals_have_bounds() {
        let longest = "x".repeat(MAX_PRINCIPAL_BYTES);
        for good in ["a", "group:Ä b", longest.as_str()] {
            assert_eq!(principal(good).as_str(), good);
        }
        let too_long = "x".repeat(MAX_PRINCIPAL_BYTES + 1);
        for bad in ["", "a\0", "a\nb", too_long.as_str()] {
            assert!(matches!(
                Principal::parse(bad),
                Err(SearchError::Principal { .. })
            ));
        }
    }

    #[test]
    fn principals_beyond_the_limit_do_not_count() {
        let name = |n: usize| format!("group:{n:05}");
        let of = |count: usize| ReaderIdentity::holder((0..count).map(|n| principal(&name(n))));
        let last = only(&[&name(MAX_PRINCIPALS - 1)]);
        let beyond = only(&[&name(MAX_PRINCIPALS)]);
        assert!(of(MAX_PRINCIPALS).can_see(&last));
        assert!(of(MAX_PRINCIPALS + 1).can_see(&last));
        assert!(!of(MAX_PRINCIPALS + 1).can_see(&beyond));
    }
}
