//! In-process caches of what was read from the cluster and cannot have changed since: versions of documents,
//! which are immutable, and values that hold for one generation.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::word_statistics::StatisticsCache;
use crate::analysis::{Language, detect};
use crate::catalog::Catalog;
use crate::document::Document;
use crate::reader_identity::ReaderIdentity;
use crate::snippet::DisplayDocument;
use crate::term_positions::TermPositions;

/// The size of the document cache in bytes, before eviction. A version of a document never changes, so an entry stays
/// valid for ever, and memory is the only reason to drop one.
const MAX_DOCUMENT_BYTES: usize = 64 * 1024 * 1024;

/// How many terms the cache of document frequencies holds. An entry is a few bytes and saves a request to the cluster.
/// A full cache is cleared as a whole, so the limit has to be far above the number of words that are asked for between
/// two commits.
const MAX_TERMS: usize = 100_000;

/// How many readers the caches of catalogs and of languages hold, one entry each.
const MAX_READERS: usize = 64;

/// A version of a document, with what is needed to show it and, computed on first use, the positions of its
/// terms.
pub(super) struct CachedVersion {
    pub document: Arc<Document>,
    display: OnceLock<DisplayDocument>,
    /// The positions in its title and in its body.
    positions: OnceLock<(TermPositions, TermPositions)>,
}

impl CachedVersion {
    pub(super) fn new(document: Document) -> Self {
        Self {
            document: Arc::new(document),
            display: OnceLock::new(),
            positions: OnceLock::new(),
        }
    }

    /// What is needed to show it, computed once: most candidates are scored and not shown.
    pub(super) fn display(&self) -> &DisplayDocument {
        self.display
            .get_or_init(|| DisplayDocument::new(self.document.clone()))
    }

    /// The term positions of the body, computed once.
    pub(super) fn body(&self) -> &TermPositions {
        &self.positions().1
    }

    /// The term positions of the title, computed with those of the body.
    pub(super) fn title(&self) -> &TermPositions {
        &self.positions().0
    }

    fn positions(&self) -> &(TermPositions, TermPositions) {
        self.positions.get_or_init(|| {
            let language = detect(&self.document.title, &self.document.text);
            TermPositions::of(&self.document, language)
        })
    }

    /// The approximate size in memory, with everything that is computed later: the text on one line, its term map
    /// and the term positions take about four times the text.
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.document.bytes().saturating_mul(5)
    }
}

/// All caches of an open index. `seen` is whether a reader sees a document with a term, which is needed only
/// where some documents are restricted: a spelling suggestion must not reveal a word of documents the reader may
/// not see.
#[derive(Default)]
pub(super) struct ClusterCaches {
    pub documents: VersionCache,
    pub statistics: StatisticsCache,
    pub frequencies: GenerationCache<u32, u64>,
    pub seen: GenerationCache<(ReaderIdentity, u32), bool>,
    pub languages: GenerationCache<ReaderIdentity, Vec<Language>>,
    pub catalogs: GenerationCache<ReaderIdentity, Arc<Catalog>>,
}

/// An LRU cache of documents by the names of their versions, bounded by bytes.
#[derive(Default)]
pub(super) struct VersionCache(Mutex<VersionCacheState>);

#[derive(Default)]
struct VersionCacheState {
    entries: HashMap<String, (Arc<CachedVersion>, u64)>,
    bytes: usize,
    clock: u64,
}

impl VersionCache {
    pub(super) fn get(&self, version: &str) -> Option<Arc<CachedVersion>> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.clock += 1;
        let now = state.clock;
        let (known, last_used) = state.entries.get_mut(version)?;
        *last_used = now;
        Some(known.clone())
    }

    pub(super) fn put(&self, version: String, known: &Arc<CachedVersion>) {
        let bytes = known.bytes();
        if bytes > MAX_DOCUMENT_BYTES {
            return;
        }
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.bytes + bytes > MAX_DOCUMENT_BYTES {
            state.evict_half();
        }
        state.clock += 1;
        let now = state.clock;
        state.bytes += bytes;
        if let Some((gone, _)) = state.entries.insert(version, (known.clone(), now)) {
            state.bytes -= gone.bytes();
        }
    }
}

impl VersionCacheState {
    /// Evicts the least recently used half, or everything where the other half is still too large. Halving keeps the
    /// cost of eviction small for each entry: finding the oldest one takes a pass over all of them, and this way a pass
    /// is worth many insertions.
    fn evict_half(&mut self) {
        let mut last_used: Vec<u64> = self.entries.values().map(|(_, used)| *used).collect();
        last_used.sort_unstable();
        let middle = last_used
            .get(last_used.len() / 2)
            .copied()
            .unwrap_or_default();
        self.entries.retain(|_, (_, used)| *used > middle);
        self.bytes = self.entries.values().map(|(known, _)| known.bytes()).sum();
        if self.bytes > MAX_DOCUMENT_BYTES / 2 {
            self.entries.clear();
            self.bytes = 0;
        }
    }
}

/// A map whose values hold for one generation only; the first value of another generation clears it.
pub(super) struct GenerationCache<K, V>(Mutex<(u64, HashMap<K, V>)>);

impl<K, V> Default for GenerationCache<K, V> {
    fn default() -> Self {
        Self(Mutex::new((0, HashMap::new())))
    }
}

impl<K: Eq + std::hash::Hash, V: Clone> GenerationCache<K, V> {
    pub(super) fn get(&self, generation: u64, key: &K) -> Option<V> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.1.get(key).filter(|_| kept.0 == generation).cloned()
    }

    /// Stores a value. A full map is cleared rather than evicted from: the next questions fill it again.
    pub(super) fn put(&self, generation: u64, key: K, value: V, most: usize) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.0 != generation || kept.1.len() >= most {
            *kept = (generation, HashMap::new());
        }
        kept.1.insert(key, value);
    }
}

impl GenerationCache<u32, u64> {
    pub(super) fn keep(&self, generation: u64, term: u32, documents: u64) {
        self.put(generation, term, documents, MAX_TERMS);
    }
}

impl GenerationCache<(ReaderIdentity, u32), bool> {
    pub(super) fn keep(&self, generation: u64, reader: ReaderIdentity, term: u32, is_seen: bool) {
        self.put(generation, (reader, term), is_seen, MAX_TERMS);
    }
}

impl<V: Clone> GenerationCache<ReaderIdentity, V> {
    pub(super) fn keep(&self, generation: u64, reader: ReaderIdentity, value: &V) {
        self.put(generation, reader, value.clone(), MAX_READERS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::tests::plain;

    #[test]
    fn documents_have_a_bound_and_the_newest_stay() {
        let documents = VersionCache::default();
        let text = "word ".repeat(100_000);
        for n in 0..200 {
            documents.put(n.to_string(), &Arc::new(CachedVersion::new(plain(&text))));
            assert!(documents.get(&n.to_string()).is_some());
            assert!(documents.0.lock().unwrap().bytes <= MAX_DOCUMENT_BYTES);
        }
        assert!(documents.get("0").is_none());
    }

    #[test]
    fn entries_of_an_older_generation_are_dropped() {
        let kept: GenerationCache<u32, u64> = GenerationCache::default();
        kept.put(1, 7, 70, 2);
        assert_eq!((kept.get(1, &7), kept.get(2, &7)), (Some(70), None));
        kept.put(1, 8, 80, 2);
        kept.put(1, 9, 90, 2);
        assert_eq!((kept.get(1, &7), kept.get(1, &9)), (None, Some(90)));
    }
}
