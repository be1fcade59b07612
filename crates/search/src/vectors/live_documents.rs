//! Which documents there are, and whose each row therefore is.

use std::sync::Arc;

use super::vector_segment::VectorSegment;

/// The owner of rows that belong to no live document. No document can have this ordinal.
pub(super) const NO_OWNER: u32 = u32::MAX;

/// The documents of one generation: their keys, and the ordinals by which the caller knows them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveDocuments {
    /// By key, ascending.
    documents: Vec<(u128, u32)>,
}

impl LiveDocuments {
    /// Takes the documents in any order. Of two with the same key one is kept; one with the
    /// ordinal [`u32::MAX`] is left out.
    pub fn new(mut documents: Vec<(u128, u32)>) -> Self {
        documents.retain(|(_, ordinal)| *ordinal != NO_OWNER);
        documents.sort_unstable();
        documents.dedup_by_key(|(key, _)| *key);
        Self { documents }
    }

    /// Everything that is in any of the segments.
    pub(super) fn everything(segments: &[Arc<VectorSegment>]) -> Self {
        let keys = segments.iter().flat_map(|segment| segment.keys());
        Self::new(keys.copied().zip(0..).collect())
    }

    /// How many documents there are.
    pub fn len(&self) -> usize {
        self.documents.len()
    }

    /// Whether there are no documents.
    pub fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    /// For each segment, the ordinal of each of its documents, or [`NOBODY`]; and the ordinals of
    /// the documents that are in no segment. Of a document that is in several segments only the
    /// newest counts. The segments are given oldest first.
    pub(super) fn owners(&self, segments: &[Arc<VectorSegment>]) -> (Vec<Vec<u32>>, Vec<u32>) {
        let mut is_found = vec![false; self.documents.len()];
        let newest_first = segments.iter().rev();
        let mut owners: Vec<_> = newest_first
            .map(|segment| self.assign_owners(segment.keys(), &mut is_found))
            .collect();
        owners.reverse();
        let missing = self.documents.iter().zip(is_found);
        let missing = missing.filter(|(_, is_found)| !is_found);
        (owners, missing.map(|((_, ordinal), _)| *ordinal).collect())
    }

    /// Both lists ascend, so one walk along the two finds what is in both. It leaps over stretches
    /// of documents of which the segment has none.
    fn assign_owners(&self, keys: &[u128], is_found: &mut [bool]) -> Vec<u32> {
        let mut owners = Vec::with_capacity(keys.len());
        let mut at = 0;
        for key in keys {
            at += galloping_search(self.documents.get(at..).unwrap_or_default(), *key);
            let owner = match (self.documents.get(at), is_found.get_mut(at)) {
                (Some((live, ordinal)), Some(is_found)) if live == key && !*is_found => {
                    *is_found = true;
                    *ordinal
                }
                _ => NO_OWNER,
            };
            owners.push(owner);
        }
        owners
    }
}

/// How many documents at the beginning are below `key`. Looks near the beginning first.
fn galloping_search(documents: &[(u128, u32)], key: u128) -> usize {
    let is_below = |at: usize| documents.get(at).is_some_and(|(live, _)| *live < key);
    let mut reach = 1;
    while is_below(reach - 1) {
        reach *= 2;
    }
    let (from, to) = (reach / 2, (reach - 1).min(documents.len()));
    let between = documents.get(from..to).unwrap_or_default();
    from + between.partition_point(|(live, _)| *live < key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaping_finds_the_first_that_is_not_below() {
        let documents: Vec<_> = (0..50).map(|at| (at * 2, 0)).collect();
        for key in 0..120 {
            let expected = documents.partition_point(|(live, _)| *live < key);
            assert_eq!(galloping_search(&documents, key), expected, "{key}");
        }
        assert_eq!(galloping_search(&[], 1), 0);
    }

    #[test]
    fn each_document_has_one_owner() {
        let live = LiveDocuments::new(vec![(9, 1), (4, 0), (4, 7), (7, u32::MAX), (1, 2)]);
        assert_eq!(live.len(), 3);
        let mut is_found = [false; 3];
        let owners = live.assign_owners(&[0, 4, 7, 9, 10], &mut is_found);
        assert_eq!(owners, [NO_OWNER, 0, NO_OWNER, 1, NO_OWNER]);
        let owners = live.assign_owners(&[1, 9], &mut is_found);
        assert_eq!(owners, [2, NO_OWNER]);
        assert!(!live.is_empty() && LiveDocuments::default().is_empty());
    }
}
