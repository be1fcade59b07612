//! What a document's text tells about itself, worked out once and kept for the next who asks: it takes longer
//! than everything else about an answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use docent_search::{DocId, Document, TextAnchors};

use super::result_members;

/// How many documents are remembered; one more, and all are forgotten. Few are read again and again.
const MAX_KEPT: usize = 256;

/// What a text tells.
#[derive(Debug)]
pub(crate) struct TextFacts {
    /// The code of its language, where that is plain.
    pub(crate) language: Option<&'static str>,
    /// How many words it has.
    pub(crate) words: usize,
    /// Its pages or headings.
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

/// The facts that were asked for lately. They belong to one document in memory: when the engine lets go of it,
/// or has another in its place, they are worked out again.
#[derive(Debug, Default)]
pub(crate) struct TextFactsCache(Mutex<HashMap<DocId, CachedFacts>>);

type CachedFacts = (Weak<Document>, Arc<TextFacts>);

impl TextFactsCache {
    /// The facts about a document.
    pub(crate) fn of(&self, document: &Arc<Document>) -> Arc<TextFacts> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lock().get(&document.id).and_then(|(of, facts)| {
            let is_it = std::ptr::eq(of.as_ptr(), Arc::as_ptr(document));
            is_it.then(|| facts.clone())
        });
        if let Some(facts) = known {
            return facts;
        }
        // Without the lock: a long text must not hold up the others.
        let facts = Arc::new(TextFacts::of(document));
        let mut kept = lock();
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        let entry = (Arc::downgrade(document), facts.clone());
        kept.insert(document.id.clone(), entry);
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
        let kept = TextFactsCache::default();
        let first = document(1, "one two");
        assert_eq!(kept.of(&first).words, 2);
        assert!(Arc::ptr_eq(&kept.of(&first), &kept.of(&first)));
        // Another in its place, as after a change of the file.
        assert_eq!(kept.of(&document(1, "one two three")).words, 3);
        assert_eq!(kept.of(&first).words, 2);
    }

    #[test]
    fn they_end_at_their_bound() {
        let kept = TextFactsCache::default();
        let all: Vec<_> = (0..=MAX_KEPT).map(|id| document(id, "x")).collect();
        let held = || kept.0.lock().unwrap().len();
        for one in all.iter().take(MAX_KEPT) {
            kept.of(one);
        }
        assert_eq!(held(), MAX_KEPT);
        kept.of(all.last().unwrap());
        assert_eq!(held(), 1);
    }
}
