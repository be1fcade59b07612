//! The live documents of a generation, and which of them owns each row of the vector segments. Rows without an owner
//! are dead: no search returns them.

use std::sync::Arc;

use super::vector_segment::VectorSegment;

/// The owner of dead rows, which belong to no live document. No document can have this ordinal.
pub(super) const NO_OWNER: u32 = u32::MAX;

/// The documents of one generation: their keys, and the ordinals by which the caller identifies them. They are sorted
/// by key, as segments are, so that both can be merged in one pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveDocuments {
    documents: Vec<(u128, u32)>,
}

impl LiveDocuments {
    /// Takes the documents in any order. Of two with the same key the one with the lower ordinal is kept; a document
    /// with the ordinal [`u32::MAX`] is left out.
    pub fn new(mut documents: Vec<(u128, u32)>) -> Self {
        documents.retain(|(_, ordinal)| *ordinal != NO_OWNER);
        documents.sort_unstable();
        documents.dedup_by_key(|(key, _)| *key);
        Self { documents }
    }

    /// All documents that are in any of the segments, for merges before the live ones are known.
    pub(super) fn everything(segments: &[Arc<VectorSegment>]) -> Self {
        let keys = segments.iter().flat_map(|segment| segment.keys());
        Self::new(keys.copied().zip(0..).collect())
    }

    /// The number of live documents, embedded or not.
    pub fn len(&self) -> usize {
        self.documents.len()
    }

    /// Whether the generation has no documents.
    pub fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    /// For each segment, the ordinal of each of its documents, or [`NO_OWNER`] if it is dead; and the ordinals of the
    /// documents that are in no segment. Segments are passed oldest first. Of a document that is in several of them,
    /// only the newest version is live.
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

    /// Intersects two sorted lists in one pass. Galloping search skips runs of documents of which the segment has none.
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

/// The number of documents at the beginning with a key below `key`, by galloping (exponential) search.
fn galloping_search(documents: &[(u128, u32)], key: u128) -> usize {
    let is_below = |at: usize| documents.get(at).is_some_and(|(live, _)| *live < key);
    let mut bound = 1;
    while is_below(bound - 1) {
        bound *= 2;
    }
    let (from, to) = (bound / 2, (bound - 1).min(documents.len()));
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
