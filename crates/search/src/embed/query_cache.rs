//! Questions asked before into what was made of them then, so that a repeated search costs no model.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::SearchError;

/// The most questions that are remembered: a busy day's worth of repeated ones.
const MAX_ENTRIES: usize = 2_048;
/// The most bytes that questions, what was made of them and their keeping may take together.
const MAX_BYTES: usize = 8 * 1024 * 1024;
/// A longer question is unlikely to come again, and is not remembered.
const MAX_TEXT_BYTES: usize = 1_024;
/// What the two maps need for an entry besides the text and what was made of it, roughly.
const ENTRY_BYTES: usize = 160;

/// What was made of the questions asked last. A failure is not remembered.
pub(crate) struct QueryCache<V> {
    /// How many bytes one of them takes.
    size: fn(&V) -> usize,
    state: Mutex<QueryCacheState<V>>,
}

impl<V> QueryCache<V> {
    /// An empty memory.
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

    /// Whether this was asked before.
    pub(crate) fn contains(&self, text: &str) -> bool {
        self.lookup(text).is_some()
    }

    /// What was made of a question, or is made of it now.
    pub(crate) fn get(
        &self,
        text: &str,
        make: impl FnOnce() -> Result<V, SearchError>,
    ) -> Result<Arc<V>, SearchError> {
        if let Some(known) = self.lookup(text) {
            return Ok(known);
        }
        // Nobody else waits while the model works; two who ask the same at once both pay for it.
        let made = Arc::new(make()?);
        if text.len() <= MAX_TEXT_BYTES {
            let size = text.len() + (self.size)(&made) + ENTRY_BYTES;
            self.lock_state().insert(Arc::from(text), &made, size);
        }
        Ok(made)
    }

    fn lookup(&self, text: &str) -> Option<Arc<V>> {
        self.lock_state().lookup(text)
    }

    /// A memory whose last user panicked is still a memory: every step leaves it whole.
    fn lock_state(&self) -> std::sync::MutexGuard<'_, QueryCacheState<V>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Questions, the least recently asked first to go.
struct QueryCacheState<V> {
    entries: HashMap<Arc<str>, QueryCacheEntry<V>>,
    /// Which question was asked when, oldest first.
    order: BTreeMap<u64, Arc<str>>,
    clock: u64,
    bytes: usize,
}

struct QueryCacheEntry<V> {
    made: Arc<V>,
    size: usize,
    asked: u64,
}

impl<V> QueryCacheState<V> {
    fn lookup(&mut self, text: &str) -> Option<Arc<V>> {
        let entry = self.entries.get_mut(text)?;
        self.clock += 1;
        if let Some(text) = self.order.remove(&entry.asked) {
            self.order.insert(self.clock, text);
        }
        entry.asked = self.clock;
        Some(Arc::clone(&entry.made))
    }

    fn insert(&mut self, text: Arc<str>, made: &Arc<V>, size: usize) {
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
            made: Arc::clone(made),
            size,
            asked: self.clock,
        };
        self.entries.insert(text, entry);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Counts how often something had to be made; that tells the question's length.
    struct CountingEmbedder {
        asked: AtomicUsize,
        width: usize,
        state: QueryCache<Vec<f32>>,
    }

    impl CountingEmbedder {
        fn new(width: usize) -> Self {
            Self {
                asked: AtomicUsize::new(0),
                width,
                state: QueryCache::new(|made| made.len() * size_of::<f32>()),
            }
        }

        fn query(&self, text: &str) -> Result<Arc<Vec<f32>>, SearchError> {
            self.state.get(text, || {
                self.asked.fetch_add(1, Ordering::Relaxed);
                if text == "fail" {
                    return Err(SearchError::engine("no"));
                }
                Ok(vec![text.len() as f32; self.width])
            })
        }

        fn asked(&self) -> usize {
            self.asked.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn a_repeated_question_costs_nothing() {
        let outer = CountingEmbedder::new(2);
        assert_eq!(*outer.query("why").unwrap(), [3.0, 3.0]);
        assert_eq!(*outer.query("why").unwrap(), [3.0, 3.0]);
        assert_eq!(outer.asked(), 1);
        outer.query("how?").unwrap();
        assert_eq!(outer.asked(), 2);
        assert!(outer.state.contains("why") && !outer.state.contains("who"));
    }

    #[test]
    fn failures_are_not_remembered() {
        let outer = CountingEmbedder::new(2);
        assert!(outer.query("fail").is_err());
        assert!(outer.query("fail").is_err());
        assert_eq!(outer.asked(), 2);
    }

    #[test]
    fn the_least_recently_asked_question_goes_first() {
        let outer = CountingEmbedder::new(1);
        for at in 0..MAX_ENTRIES {
            outer.query(&at.to_string()).unwrap();
        }
        outer.query("0").unwrap();
        assert_eq!(outer.asked(), MAX_ENTRIES);
        outer.query("one more").unwrap();
        assert_eq!(outer.state.lock_state().entries.len(), MAX_ENTRIES);
        outer.query("0").unwrap();
        assert_eq!(outer.asked(), MAX_ENTRIES + 1);
        outer.query("1").unwrap();
        assert_eq!(outer.asked(), MAX_ENTRIES + 2);
    }

    #[test]
    fn the_memory_stays_within_its_bytes() {
        // Four entries fill it to the last byte, and one byte more makes one of them go.
        let width = (MAX_BYTES / 4 - ENTRY_BYTES - 4) / size_of::<f32>();
        let outer = CountingEmbedder::new(width);
        for text in ["aaaa", "bbbb", "cccc", "dddd"] {
            outer.query(text).unwrap();
        }
        assert_eq!(outer.state.lock_state().bytes, MAX_BYTES);
        outer.query("aaaa").unwrap();
        assert_eq!(outer.asked(), 4);
        outer.query("eeeee").unwrap();
        let memory = outer.state.lock_state();
        assert!(memory.bytes <= MAX_BYTES);
        assert_eq!(memory.entries.len(), 3);
        assert_eq!(memory.entries.len(), memory.order.len());
        assert!(memory.entries.contains_key("aaaa"));
    }

    #[test]
    fn what_is_larger_than_the_memory_is_not_kept() {
        let outer = CountingEmbedder::new(MAX_BYTES / size_of::<f32>());
        outer.query("a").unwrap();
        outer.query("a").unwrap();
        assert_eq!(outer.asked(), 2);
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
        assert_eq!(outer.asked(), 3);
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
        assert!((10..=40).contains(&outer.asked()));
    }
}
