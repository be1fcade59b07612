//! Documents that were shown lately, kept ready to be shown again.

use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;
use tantivy::index::SegmentId;

use crate::snippet::DisplayDocument;

/// A place in a segment. What stands there never changes, so an entry outlives generations and
/// cannot be stale.
pub(super) type SegmentDocAddress = (SegmentId, u32);

/// A bounded number of bytes of documents; the ones not asked for longest go first.
pub(super) struct DocumentCache {
    most_bytes: usize,
    state: Mutex<DocumentCacheState>,
}

#[derive(Default)]
struct DocumentCacheState {
    /// Places are numbered by the index, so nobody can choose them.
    entries: FxHashMap<SegmentDocAddress, DocumentCacheEntry>,
    bytes: usize,
    /// Counts the times something was asked for.
    clock: u64,
}

struct DocumentCacheEntry {
    mapped: Arc<DisplayDocument>,
    bytes: usize,
    last_asked: u64,
}

impl DocumentCache {
    pub(super) fn new(most_bytes: usize) -> Self {
        Self {
            most_bytes,
            state: Mutex::default(),
        }
    }

    pub(super) fn get(&self, place: SegmentDocAddress) -> Option<Arc<DisplayDocument>> {
        let mut shelf = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        shelf.clock += 1;
        let now = shelf.clock;
        let entry = shelf.entries.get_mut(&place)?;
        entry.last_asked = now;
        Some(entry.mapped.clone())
    }

    pub(super) fn put(&self, place: SegmentDocAddress, mapped: &Arc<DisplayDocument>) {
        let bytes = mapped.bytes();
        if bytes > self.most_bytes {
            return;
        }
        let mut shelf = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if shelf.bytes + bytes > self.most_bytes {
            shelf.evict_to((self.most_bytes - bytes).min(self.most_bytes / 2));
        }
        shelf.clock += 1;
        let entry = DocumentCacheEntry {
            mapped: mapped.clone(),
            bytes,
            last_asked: shelf.clock,
        };
        shelf.bytes += bytes;
        if let Some(replaced) = shelf.entries.insert(place, entry) {
            shelf.bytes -= replaced.bytes;
        }
    }
}

impl DocumentCacheState {
    /// Lets go of what was not asked for longest. Half of it goes at a time, so that looking for
    /// it is paid by all that is put in afterwards.
    fn evict_to(&mut self, most_bytes: usize) {
        let mut oldest: Vec<(u64, SegmentDocAddress)> = self
            .entries
            .iter()
            .map(|(place, entry)| (entry.last_asked, *place))
            .collect();
        oldest.sort_unstable_by_key(|(last_asked, _)| *last_asked);
        for (_, place) in oldest {
            if self.bytes <= most_bytes {
                return;
            }
            if let Some(gone) = self.entries.remove(&place) {
                self.bytes -= gone.bytes;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::tests::plain;

    fn mapped(text: &str) -> Arc<DisplayDocument> {
        Arc::new(DisplayDocument::new(plain(text)))
    }

    #[test]
    fn never_more_bytes_than_allowed_and_the_oldest_go() {
        let one = mapped("some words");
        let cache = DocumentCache::new(one.bytes() * 10);
        let segment = SegmentId::generate_random();
        for doc in 0..1_000 {
            cache.put((segment, doc), &one);
            assert!(cache.get((segment, 0)).is_some(), "asked for every time");
            assert!(cache.state.lock().unwrap().bytes <= cache.most_bytes);
        }
        assert!(cache.get((segment, 999)).is_some());
        assert!(cache.get((segment, 500)).is_none());
    }

    #[test]
    fn the_same_place_counts_once() {
        let one = mapped("some words");
        let cache = DocumentCache::new(one.bytes() * 10);
        let place = (SegmentId::generate_random(), 1);
        for _ in 0..100 {
            cache.put(place, &one);
        }
        assert_eq!(cache.state.lock().unwrap().bytes, one.bytes());
    }

    #[test]
    fn what_is_larger_than_the_cache_is_not_kept() {
        let one = mapped("some words");
        let cache = DocumentCache::new(one.bytes() - 1);
        let place = (SegmentId::generate_random(), 1);
        cache.put(place, &one);
        assert!(cache.get(place).is_none());
    }
}
