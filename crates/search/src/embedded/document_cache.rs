//! An LRU cache of displayable documents.

use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;
use tantivy::index::SegmentId;

use crate::snippet::DisplayDocument;

/// The address of a document: its segment and its number there. Segments are immutable, so an entry stays
/// valid across generations and cannot be stale.
pub(super) type SegmentDocAddress = (SegmentId, u32);

/// The cache, bounded by bytes. The least recently used documents are evicted first.
pub(super) struct DocumentCache {
    max_bytes: usize,
    state: Mutex<DocumentCacheState>,
}

#[derive(Default)]
struct DocumentCacheState {
    /// A fast hash suffices: addresses are assigned by the index, so nobody can choose them to collide.
    entries: FxHashMap<SegmentDocAddress, DocumentCacheEntry>,
    bytes: usize,
    /// A logical clock that ticks with every access, for LRU eviction.
    clock: u64,
}

struct DocumentCacheEntry {
    mapped: Arc<DisplayDocument>,
    bytes: usize,
    last_used: u64,
}

impl DocumentCache {
    pub(super) fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            state: Mutex::default(),
        }
    }

    pub(super) fn get(&self, address: SegmentDocAddress) -> Option<Arc<DisplayDocument>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.clock += 1;
        let now = state.clock;
        let entry = state.entries.get_mut(&address)?;
        entry.last_used = now;
        Some(entry.mapped.clone())
    }

    pub(super) fn put(&self, address: SegmentDocAddress, mapped: &Arc<DisplayDocument>) {
        let bytes = mapped.bytes();
        if bytes > self.max_bytes {
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.bytes + bytes > self.max_bytes {
            state.evict_to((self.max_bytes - bytes).min(self.max_bytes / 2));
        }
        state.clock += 1;
        let entry = DocumentCacheEntry {
            mapped: mapped.clone(),
            bytes,
            last_used: state.clock,
        };
        state.bytes += bytes;
        if let Some(replaced) = state.entries.insert(address, entry) {
            state.bytes -= replaced.bytes;
        }
    }
}

impl DocumentCacheState {
    /// Evicts the least recently used documents. Half of the cache goes at a time, so that the cost of
    /// sorting is spread over all that is put in afterwards.
    fn evict_to(&mut self, max_bytes: usize) {
        let mut oldest: Vec<(u64, SegmentDocAddress)> = self
            .entries
            .iter()
            .map(|(address, entry)| (entry.last_used, *address))
            .collect();
        oldest.sort_unstable_by_key(|(last_used, _)| *last_used);
        for (_, address) in oldest {
            if self.bytes <= max_bytes {
                return;
            }
            if let Some(gone) = self.entries.remove(&address) {
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
            assert!(cache.state.lock().unwrap().bytes <= cache.max_bytes);
        }
        assert!(cache.get((segment, 999)).is_some());
        assert!(cache.get((segment, 500)).is_none());
    }

    #[test]
    fn the_same_place_counts_once() {
        let one = mapped("some words");
        let cache = DocumentCache::new(one.bytes() * 10);
        let address = (SegmentId::generate_random(), 1);
        for _ in 0..100 {
            cache.put(address, &one);
        }
        assert_eq!(cache.state.lock().unwrap().bytes, one.bytes());
    }

    #[test]
    fn documents_larger_than_the_cache_are_not_cached() {
        let one = mapped("some words");
        let cache = DocumentCache::new(one.bytes() - 1);
        let address = (SegmentId::generate_random(), 1);
        cache.put(address, &one);
        assert!(cache.get(address).is_none());
    }
}
