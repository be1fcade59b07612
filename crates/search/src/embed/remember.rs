//! Questions asked before into the vectors they got then, so that a repeated search costs no model.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use crate::embedder::Embedder;
use crate::error::Error;
use crate::fuse::Scale;

/// The most questions that are remembered: a busy day's worth of repeated ones.
const MAX_ENTRIES: usize = 2_048;
/// The most bytes that questions, vectors and their keeping may take together.
const MAX_BYTES: usize = 8 * 1024 * 1024;
/// A longer question is unlikely to come again, and is not remembered.
const MAX_TEXT_BYTES: usize = 1_024;
/// What the two maps need for an entry besides the text and the vector, roughly.
const ENTRY_BYTES: usize = 160;

/// An embedder that asks the one inside only for questions it does not remember.
///
/// Passages pass through: each is embedded once anyway. A failure is not remembered.
pub struct Remembering {
    inner: Arc<dyn Embedder>,
    memory: Mutex<Memory>,
}

impl Remembering {
    /// Puts a memory in front of an embedder.
    pub fn new(inner: Arc<dyn Embedder>) -> Self {
        Self {
            inner,
            memory: Mutex::new(Memory::default()),
        }
    }
}

impl Embedder for Remembering {
    fn fingerprint(&self) -> &str {
        self.inner.fingerprint()
    }

    fn dimensions(&self) -> usize {
        self.inner.dimensions()
    }

    fn scale(&self) -> Scale {
        self.inner.scale()
    }

    fn passages(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Error> {
        self.inner.passages(texts)
    }

    fn recall(&self, text: &str) -> Option<Vec<f32>> {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let known = memory.recall(text).map(|vector| vector.to_vec());
        drop(memory);
        known.or_else(|| self.inner.recall(text))
    }

    fn query(&self, text: &str) -> Result<Vec<f32>, Error> {
        if text.len() > MAX_TEXT_BYTES {
            return self.inner.query(text);
        }
        // A memory whose last user panicked is still a memory: every step leaves it whole.
        let known = {
            let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
            memory.recall(text)
        };
        if let Some(vector) = known {
            return Ok(vector.to_vec());
        }
        // Nobody else waits while the model works; two who ask the same at once both pay for it.
        let vector = self.inner.query(text)?;
        let kept = Arc::from(vector.as_slice());
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        memory.keep(Arc::from(text), kept);
        Ok(vector)
    }
}

/// Questions with their vectors, the least recently asked first to go.
#[derive(Default)]
struct Memory {
    entries: HashMap<Arc<str>, Entry>,
    /// Which question was asked when, oldest first.
    order: BTreeMap<u64, Arc<str>>,
    clock: u64,
    bytes: usize,
}

struct Entry {
    vector: Arc<[f32]>,
    asked: u64,
}

impl Memory {
    fn recall(&mut self, text: &str) -> Option<Arc<[f32]>> {
        let entry = self.entries.get_mut(text)?;
        self.clock += 1;
        if let Some(text) = self.order.remove(&entry.asked) {
            self.order.insert(self.clock, text);
        }
        entry.asked = self.clock;
        Some(Arc::clone(&entry.vector))
    }

    fn keep(&mut self, text: Arc<str>, vector: Arc<[f32]>) {
        let size = size(&text, &vector);
        if size > MAX_BYTES || self.entries.contains_key(&text) {
            return;
        }
        while self.entries.len() >= MAX_ENTRIES || self.bytes + size > MAX_BYTES {
            let Some((_, oldest)) = self.order.pop_first() else {
                return;
            };
            if let Some(entry) = self.entries.remove(&oldest) {
                self.bytes = self
                    .bytes
                    .saturating_sub(self::size(&oldest, &entry.vector));
            }
        }
        self.clock += 1;
        self.bytes += size;
        self.order.insert(self.clock, Arc::clone(&text));
        let asked = self.clock;
        self.entries.insert(text, Entry { vector, asked });
    }
}

fn size(text: &str, vector: &[f32]) -> usize {
    text.len() + size_of_val(vector) + ENTRY_BYTES
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Counts how often it is asked; the vector tells the question's length.
    struct Counting {
        asked: AtomicUsize,
        width: usize,
    }

    impl Embedder for Counting {
        fn fingerprint(&self) -> &str {
            "counting"
        }

        fn dimensions(&self) -> usize {
            self.width
        }

        fn passages(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Error> {
            texts.iter().map(|text| self.query(text)).collect()
        }

        fn query(&self, text: &str) -> Result<Vec<f32>, Error> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            if text == "fail" {
                return Err(Error::engine("no"));
            }
            Ok(vec![text.len() as f32; self.width])
        }
    }

    fn counting(width: usize) -> (Arc<Counting>, Remembering) {
        let inner = Arc::new(Counting {
            asked: AtomicUsize::new(0),
            width,
        });
        let outer = Remembering::new(Arc::clone(&inner) as Arc<dyn Embedder>);
        (inner, outer)
    }

    fn asked(inner: &Counting) -> usize {
        inner.asked.load(Ordering::Relaxed)
    }

    #[test]
    fn a_repeated_question_costs_nothing() {
        let (inner, outer) = counting(2);
        assert_eq!(outer.query("why").unwrap(), [3.0, 3.0]);
        assert_eq!(outer.query("why").unwrap(), [3.0, 3.0]);
        assert_eq!(asked(&inner), 1);
        outer.query("how?").unwrap();
        assert_eq!(asked(&inner), 2);
        assert_eq!((outer.fingerprint(), outer.dimensions()), ("counting", 2));
    }

    #[test]
    fn failures_and_passages_are_not_remembered() {
        let (inner, outer) = counting(2);
        assert!(outer.query("fail").is_err());
        assert!(outer.query("fail").is_err());
        outer.passages(&["a"]).unwrap();
        outer.passages(&["a"]).unwrap();
        assert_eq!(asked(&inner), 4);
    }

    #[test]
    fn the_least_recently_asked_question_goes_first() {
        let (inner, outer) = counting(1);
        for at in 0..MAX_ENTRIES {
            outer.query(&at.to_string()).unwrap();
        }
        outer.query("0").unwrap();
        assert_eq!(asked(&inner), MAX_ENTRIES);
        outer.query("one more").unwrap();
        assert_eq!(outer.memory.lock().unwrap().entries.len(), MAX_ENTRIES);
        outer.query("0").unwrap();
        assert_eq!(asked(&inner), MAX_ENTRIES + 1);
        outer.query("1").unwrap();
        assert_eq!(asked(&inner), MAX_ENTRIES + 2);
    }

    #[test]
    fn the_memory_stays_within_its_bytes() {
        // Four entries fill it to the last byte, and one byte more makes one of them go.
        let width = (MAX_BYTES / 4 - ENTRY_BYTES - 4) / size_of::<f32>();
        let (inner, outer) = counting(width);
        for text in ["aaaa", "bbbb", "cccc", "dddd"] {
            outer.query(text).unwrap();
        }
        assert_eq!(outer.memory.lock().unwrap().bytes, MAX_BYTES);
        outer.query("aaaa").unwrap();
        assert_eq!(asked(&inner), 4);
        outer.query("eeeee").unwrap();
        let memory = outer.memory.lock().unwrap();
        assert!(memory.bytes <= MAX_BYTES);
        assert_eq!(memory.entries.len(), 3);
        assert_eq!(memory.entries.len(), memory.order.len());
        assert!(memory.entries.contains_key("aaaa"));
    }

    #[test]
    fn what_is_larger_than_the_memory_is_not_kept() {
        let (inner, outer) = counting(MAX_BYTES / size_of::<f32>());
        outer.query("a").unwrap();
        outer.query("a").unwrap();
        assert_eq!(asked(&inner), 2);
        assert_eq!(outer.memory.lock().unwrap().bytes, 0);
    }

    #[test]
    fn a_question_over_the_limit_is_answered_and_forgotten() {
        let (inner, outer) = counting(1);
        let longest = "x".repeat(MAX_TEXT_BYTES);
        let longer = "x".repeat(MAX_TEXT_BYTES + 1);
        for text in [&longest, &longest, &longer, &longer] {
            outer.query(text).unwrap();
        }
        assert_eq!(asked(&inner), 3);
    }

    #[test]
    fn many_threads_get_the_same_answers() {
        let (inner, outer) = counting(1);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for at in 0..100 {
                        let text = "x".repeat(at % 10);
                        assert_eq!(outer.query(&text).unwrap(), [(at % 10) as f32]);
                    }
                });
            }
        });
        assert!((10..=40).contains(&asked(&inner)));
    }
}
