//! An LRU cache of query vectors, so that a repeated question costs no run of the embedding model.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::SearchError;

/// The capacity in entries: the repeated questions of a busy day.
const MAX_ENTRIES: usize = 2_048;
/// The capacity in bytes, for the texts, the values and the bookkeeping together.
const MAX_BYTES: usize = 8 * 1024 * 1024;
/// Longer questions are not cached: they are unlikely to be asked again. They are pasted texts rather than typed
/// questions, and a few of them would take the place of the short ones that people and widgets repeat.
const MAX_TEXT_BYTES: usize = 1_024;
/// The approximate overhead of an entry in the two maps, besides its text and its value.
const ENTRY_BYTES: usize = 160;

/// An LRU cache from the text of a question to the value that the model computed for it. `size` tells how many bytes
/// a value takes, so that eviction can keep the total within [`MAX_BYTES`]. Failures are not cached, because they may
/// not happen again.
pub(crate) struct QueryCache<V> {
    size: fn(&V) -> usize,
    state: Mutex<QueryCacheState<V>>,
}

impl<V> QueryCache<V> {
    pub(crate) fn new(size: fn(&V) -> usize) -> Self {
        Self {
            size,
            state: Mutex::new(QueryCacheState {
                entries: HashMap::new(),
                order: BTreeMap::new(),
                clock: 0,
                bytes: 0,
            }),
        }
    }

    /// Whether the value of a question is cached. This counts as a use of the entry.
    pub(crate) fn contains(&self, text: &str) -> bool {
        self.lookup(text).is_some()
    }

    /// Returns the cached value of a question, or computes it with `make` and caches it.
    ///
    /// The lock is not held while the model runs. Two callers that miss on the same question at once both run the
    /// model, which costs less than making every other question wait.
    pub(crate) fn get(
        &self,
        text: &str,
        make: impl FnOnce() -> Result<V, SearchError>,
    ) -> Result<Arc<V>, SearchError> {
        if let Some(cached) = self.lookup(text) {
            return Ok(cached);
        }
        let value = Arc::new(make()?);
        if text.len() <= MAX_TEXT_BYTES {
            let size = text.len() + (self.size)(&value) + ENTRY_BYTES;
            self.lock_state().insert(Arc::from(text), &value, size);
        }
        Ok(value)
    }

    fn lookup(&self, text: &str) -> Option<Arc<V>> {
        self.lock_state().lookup(text)
    }

    /// Locks the state, even when a thread panicked with the lock held: every step leaves the state consistent.
    fn lock_state(&self) -> std::sync::MutexGuard<'_, QueryCacheState<V>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The entries, and the order in which they are evicted. `clock` counts uses; `order` maps the time of each entry's
/// last use to its text, so the first one is the least recently used. `bytes` is the size of all entries.
struct QueryCacheState<V> {
    entries: HashMap<Arc<str>, QueryCacheEntry<V>>,
    order: BTreeMap<u64, Arc<str>>,
    clock: u64,
    bytes: usize,
}

struct QueryCacheEntry<V> {
    value: Arc<V>,
    size: usize,
    last_used: u64,
}

impl<V> QueryCacheState<V> {
    fn lookup(&mut self, text: &str) -> Option<Arc<V>> {
        let entry = self.entries.get_mut(text)?;
        self.clock += 1;
        if let Some(text) = self.order.remove(&entry.last_used) {
            self.order.insert(self.clock, text);
        }
        entry.last_used = self.clock;
        Some(Arc::clone(&entry.value))
    }

    fn insert(&mut self, text: Arc<str>, value: &Arc<V>, size: usize) {
        if size > MAX_BYTES || self.entries.contains_key(&text) {
            return;
        }
        while self.entries.len() >= MAX_ENTRIES || self.bytes + size > MAX_BYTES {
            let Some((_, oldest)) = self.order.pop_first() else {
                return;
            };
            if let Some(entry) = self.entries.remove(&oldest) {
                self.bytes = self.bytes.saturating_sub(entry.size);
            }
        }
        self.clock += 1;
        self.bytes += size;
        self.order.insert(self.clock, Arc::clone(&text));
        let entry = QueryCacheEntry {
            value: Arc::clone(value),
            size,
            last_used: self.clock,
        };
        self.entries.insert(text, entry);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// An embedder that counts its calls. The numbers of its vectors are the length of the question.
    struct CountingEmbedder {
        calls: AtomicUsize,
        width: usize,
        state: QueryCache<Vec<f32>>,
    }

    impl CountingEmbedder {
        fn new(width: usize) -> Self {
            Self {
                calls: AtomicUsize::new(0),
                width,
                state: QueryCache::new(|vector| vector.len() * size_of::<f32>()),
            }
        }

        fn query(&self, text: &str) -> Result<Arc<Vec<f32>>, SearchError> {
            self.state.get(text, || {
                self.calls.fetch_add(1, Ordering::Relaxed);
                if text == "fail" {
                    return Err(SearchError::engine("no"));
                }
                Ok(vec![text.len() as f32; self.width])
            })
        }

        fn calls(&self) -> usize {
            self.calls.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn a_repeated_question_costs_nothing() {
        let outer = CountingEmbedder::new(2);
        assert_eq!(*outer.query("why").unwrap(), [3.0, 3.0]);
        assert_eq!(*outer.query("why").unwrap(), [3.0, 3.0]);
        assert_eq!(outer.calls(), 1);
        outer.query("how?").unwrap();
        assert_eq!(outer.calls(), 2);
        assert!(outer.state.contains("why") && !outer.state.contains("who"));
    }

    #[test]
    fn failures_are_not_remembered() {
        let outer = CountingEmbedder::new(2);
        assert!(outer.query("fail").is_err());
        assert!(outer.query("fail").is_err());
        assert_eq!(outer.calls(), 2);
    }

    #[test]
    fn the_least_recently_asked_question_goes_first() {
        let outer = CountingEmbedder::new(1);
        for at in 0..MAX_ENTRIES {
            outer.query(&at.to_string()).unwrap();
        }
        outer.query("0").unwrap();
        assert_eq!(outer.calls(), MAX_ENTRIES);
        outer.query("one more").unwrap();
        assert_eq!(outer.state.lock_state().entries.len(), MAX_ENTRIES);
        outer.query("0").unwrap();
        assert_eq!(outer.calls(), MAX_ENTRIES + 1);
        outer.query("1").unwrap();
        assert_eq!(outer.calls(), MAX_ENTRIES + 2);
    }

    #[test]
    fn the_memory_stays_within_its_bytes() {
        // Four entries fill the cache to the last byte; one byte more evicts one of them.
        let width = (MAX_BYTES / 4 - ENTRY_BYTES - 4) / size_of::<f32>();
        let outer = CountingEmbedder::new(width);
        for text in ["aaaa", "bbbb", "cccc", "dddd"] {
            outer.query(text).unwrap();
        }
        assert_eq!(outer.state.lock_state().bytes, MAX_BYTES);
        outer.query("aaaa").unwrap();
        assert_eq!(outer.calls(), 4);
        outer.query("eeeee").unwrap();
        let state = outer.state.lock_state();
        assert!(state.bytes <= MAX_BYTES);
        assert_eq!(state.entries.len(), 3);
        assert_eq!(state.entries.len(), state.order.len());
        assert!(state.entries.contains_key("aaaa"));
    }

    #[test]
    fn vectors_larger_than_the_cache_are_not_cached() {
        let outer = CountingEmbedder::new(MAX_BYTES / size_of::<f32>());
        outer.query("a").unwrap();
        outer.query("a").unwrap();
        assert_eq!(outer.calls(), 2);
        assert_eq!(outer.state.lock_state().bytes, 0);
    }

    #[test]
    fn a_question_over_the_limit_is_answered_and_forgotten() {
        let outer = CountingEmbedder::new(1);
        let longest = "x".repeat(MAX_TEXT_BYTES);
        let longer = "x".repeat(MAX_TEXT_BYTES + 1);
        for text in [&longest, &longest, &longer, &longer] {
            outer.query(text).unwrap();
        }
        assert_eq!(outer.calls(), 3);
    }

    #[test]
    fn many_threads_get_the_same_answers() {
        let outer = CountingEmbedder::new(1);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for at in 0..100 {
                        let text = "x".repeat(at % 10);
                        assert_eq!(*outer.query(&text).unwrap(), [(at % 10) as f32]);
                    }
                });
            }
        });
        assert!((10..=40).contains(&outer.calls()));
    }
}
