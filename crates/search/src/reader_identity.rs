//! Who reads, and who may read a document, into yes or no: [`Reader::sees`] is the one rule that every
//! engine keeps in all its answers.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use crate::document::Document;
use crate::error::SearchError;

/// The most bytes of a principal. The longest address of mail has 254, and a word stands before it.
pub const MAX_PRINCIPAL_BYTES: usize = 512;

/// The most principals that one document may name. Who needs more needs a group.
pub const MAX_READERS: usize = 256;

/// The most principals of one reader that count. Directories put some hundreds of groups into a token.
pub const MAX_PRINCIPALS: usize = 1_024;

/// Something that a reader holds and a document asks for, such as `group:finance` or
/// `email:ada@example.com`: 1 to [`MAX_PRINCIPAL_BYTES`] bytes without control characters. Two are the
/// same when their bytes are.
///
/// Cloning is cheap: the text is shared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Principal(Arc<str>);

impl Principal {
    /// Reads a principal, or says why `text` cannot be one.
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

    /// The principal as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Who may read a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AllowedReaders {
    /// Whoever asks.
    #[default]
    Everyone,
    /// Who holds one of these, at most [`MAX_READERS`]; nobody but the owner where there is none.
    Only(BTreeSet<Principal>),
}

impl AllowedReaders {
    /// Who is named.
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

/// Who is reading. Nothing is searched or fetched without one, so that what a reader may see is
/// decided in one place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReaderIdentity(IdentityKind);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum IdentityKind {
    /// Holds nothing when it is anyone at all.
    Holder(Arc<BTreeSet<Principal>>),
    Owner,
}

impl ReaderIdentity {
    /// A reader who sees what everyone sees.
    pub fn everyone() -> Self {
        Self(IdentityKind::Holder(Arc::default()))
    }

    /// A reader who also sees what is for one of these. The first [`MAX_PRINCIPALS`] in their order
    /// count, so that a crowd of them shows less and never more.
    pub fn holder(principals: impl IntoIterator<Item = Principal>) -> Self {
        let mut held: BTreeSet<_> = principals.into_iter().collect();
        if let Some(first) = held.iter().nth(MAX_PRINCIPALS).cloned() {
            held.split_off(&first);
        }
        Self(IdentityKind::Holder(Arc::new(held)))
    }

    /// The one whose documents they are, who sees all of them.
    pub fn owner() -> Self {
        Self(IdentityKind::Owner)
    }

    /// Whether this reader may know of a document.
    pub fn can_see(&self, document: &Document) -> bool {
        match (&self.0, &document.readers) {
            (IdentityKind::Owner, _) | (IdentityKind::Holder(_), AllowedReaders::Everyone) => true,
            (IdentityKind::Holder(held), AllowedReaders::Only(readers)) => {
                !held.is_disjoint(readers)
            }
        }
    }

    /// What the reader holds; nothing for the owner, who needs nothing.
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
            let seen = documents
                .each_ref()
                .map(|document| reader.can_see(document));
            assert_eq!(seen, expected, "{reader:?}");
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
    fn a_crowd_of_principals_is_cut() {
        let name = |n: usize| format!("group:{n:05}");
        let of = |count: usize| ReaderIdentity::holder((0..count).map(|n| principal(&name(n))));
        let last = only(&[&name(MAX_PRINCIPALS - 1)]);
        let beyond = only(&[&name(MAX_PRINCIPALS)]);
        assert!(of(MAX_PRINCIPALS).can_see(&last));
        assert!(of(MAX_PRINCIPALS + 1).can_see(&last));
        assert!(!of(MAX_PRINCIPALS + 1).can_see(&beyond));
    }
}
