//! Cached facts about a document's text: language, word count and anchors. Computing them takes longer than everything
//! else about an answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use docent_search::{DocId, Document, TextAnchors};

use super::result_members;

/// The capacity of the cache. It is cleared when it is full, which is simpler than LRU eviction and good enough: few
/// documents are read again and again.
const MAX_KEPT: usize = 256;

/// The computed facts about one text.
#[derive(Debug)]
pub(crate) struct TextFacts {
    /// The language code, when detection is certain.
    pub(crate) language: Option<&'static str>,
    /// The number of words, separated by white space.
    pub(crate) words: usize,
    /// The anchors of the text: its pages or headings.
    pub(crate) anchors: TextAnchors,
}

impl TextFacts {
    pub(super) fn of(document: &Document) -> Self {
        Self {
            language: document.language(),
            words: result_members::words(&document.text),
            anchors: TextAnchors::until(&document.text, document.text.len()),
        }
    }
}

/// The cache, keyed by document id. An entry is valid for one document in memory, which it holds by a weak reference:
/// after the engine has evicted or replaced the document, the facts are computed again.
#[derive(Debug, Default)]
pub(crate) struct TextFactsCache(Mutex<HashMap<DocId, CachedFacts>>);

type CachedFacts = (Weak<Document>, Arc<TextFacts>);

impl TextFactsCache {
    /// Returns the facts about a document, computed at most once while the engine keeps it in memory.
    pub(crate) fn of(&self, document: &Arc<Document>) -> Arc<TextFacts> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lock().get(&document.id).and_then(|(of, facts)| {
            let is_same = std::ptr::eq(of.as_ptr(), Arc::as_ptr(document));
            is_same.then(|| facts.clone())
        });
        if let Some(facts) = known {
            return facts;
        }
        // Computed without the lock, so that a long text does not block other readers.
        let facts = Arc::new(TextFacts::of(document));
        let mut cache = lock();
        if cache.len() >= MAX_KEPT {
            cache.clear();
        }
        let entry = (Arc::downgrade(document), facts.clone());
        cache.insert(document.id.clone(), entry);
        facts
    }
}

#[cfg(test)]
mod tests {
    use docent_search::AllowedReaders;

    use super::*;

    fn document(id: usize, text: &str) -> Arc<Document> {
        Arc::new(Document {
            id: DocId::parse(&format!("d{id}")).unwrap(),
            title: String::new(),
            text: text.to_owned(),
            url: None,
            date: None,
            fields: Vec::new(),
            source: String::new(),
            hash: String::new(),
            readers: AllowedReaders::Everyone,
        })
    }

    #[test]
    fn facts_are_those_of_this_very_document() {
        let cache = TextFactsCache::default();
        let first = document(1, "one two");
        assert_eq!(cache.of(&first).words, 2);
        assert!(Arc::ptr_eq(&cache.of(&first), &cache.of(&first)));
        // Another document under the same id, as after a change of the file.
        assert_eq!(cache.of(&document(1, "one two three")).words, 3);
        assert_eq!(cache.of(&first).words, 2);
    }

    #[test]
    fn a_full_cache_is_cleared() {
        let cache = TextFactsCache::default();
        let all: Vec<_> = (0..=MAX_KEPT).map(|id| document(id, "x")).collect();
        let held = || cache.0.lock().unwrap().len();
        for one in all.iter().take(MAX_KEPT) {
            cache.of(one);
        }
        assert_eq!(held(), MAX_KEPT);
        cache.of(all.last().unwrap());
        assert_eq!(held(), 1);
    }
}
