//! What was read from the cluster lately and cannot have changed since.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::analysis::Language;
use crate::catalog::Catalog;
use crate::document::Document;
use crate::reader_identity::ReaderIdentity;
use crate::snippet::DisplayDocument;
use crate::term_positions::TermPositions;

/// How many bytes of documents are kept.
const MAX_DOCUMENT_BYTES: usize = 64 * 1024 * 1024;

/// Of how many terms it is kept how frequent they are.
const MAX_TERMS: usize = 100_000;

/// How many catalogs are kept, one for each reader, and lists of languages.
const MAX_READERS: usize = 64;

/// A document with what is needed to show it and to look into it.
pub(super) struct CachedVersion {
    pub mapped: DisplayDocument,
    body: OnceLock<TermPositions>,
}

impl CachedVersion {
    pub(super) fn new(document: Document) -> Self {
        Self {
            mapped: DisplayDocument::new(document),
            body: OnceLock::new(),
        }
    }

    /// Where its terms stand, worked out once.
    pub(super) fn body(&self) -> &TermPositions {
        self.body
            .get_or_init(|| TermPositions::of(&self.mapped.document, self.mapped.language).1)
    }

    /// About how many bytes it takes, with its terms.
    fn bytes(&self) -> usize {
        let text = self.mapped.document.bytes();
        self.mapped.bytes() + text.saturating_mul(2)
    }
}

/// Everything that is kept.
#[derive(Default)]
pub(super) struct ClusterCaches {
    pub documents: VersionCache,
    pub frequencies: GenerationCache<u32, u64>,
    /// Whether a reader sees a document with a term, where some documents are not for all.
    pub seen: GenerationCache<(ReaderIdentity, u32), bool>,
    pub languages: GenerationCache<ReaderIdentity, Vec<Language>>,
    pub catalogs: GenerationCache<ReaderIdentity, Arc<Catalog>>,
}

/// Documents by the names of their versions.
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
        let mut shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shelf.clock += 1;
        let now = shelf.clock;
        let (known, asked) = shelf.entries.get_mut(version)?;
        *asked = now;
        Some(known.clone())
    }

    pub(super) fn put(&self, version: String, known: &Arc<CachedVersion>) {
        let bytes = known.bytes();
        if bytes > MAX_DOCUMENT_BYTES {
            return;
        }
        let mut shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if shelf.bytes + bytes > MAX_DOCUMENT_BYTES {
            shelf.evict_half();
        }
        shelf.clock += 1;
        let now = shelf.clock;
        shelf.bytes += bytes;
        if let Some((gone, _)) = shelf.entries.insert(version, (known.clone(), now)) {
            shelf.bytes -= gone.bytes();
        }
    }
}

impl VersionCacheState {
    /// Lets go of what was not asked for longest.
    fn evict_half(&mut self) {
        let mut asked: Vec<u64> = self.entries.values().map(|(_, asked)| *asked).collect();
        asked.sort_unstable();
        let middle = asked.get(asked.len() / 2).copied().unwrap_or_default();
        self.entries.retain(|_, (_, asked)| *asked > middle);
        self.bytes = self.entries.values().map(|(known, _)| known.bytes()).sum();
        if self.bytes > MAX_DOCUMENT_BYTES / 2 {
            self.entries.clear();
            self.bytes = 0;
        }
    }
}

/// What holds for one generation.
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

    /// Keeps a value; a full table begins anew.
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
    pub(super) fn keep(&self, generation: u64, of: (ReaderIdentity, u32), is_seen: bool) {
        self.put(generation, of, is_seen, MAX_TERMS);
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
    fn what_holds_for_a_generation_is_forgotten_with_it() {
        let kept: GenerationCache<u32, u64> = GenerationCache::default();
        kept.put(1, 7, 70, 2);
        assert_eq!((kept.get(1, &7), kept.get(2, &7)), (Some(70), None));
        kept.put(1, 8, 80, 2);
        kept.put(1, 9, 90, 2);
        assert_eq!((kept.get(1, &7), kept.get(1, &9)), (None, Some(90)));
    }
}
