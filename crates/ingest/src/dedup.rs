//! Deduplication of document ids across a corpus: the first document that claims an id keeps it.

use std::collections::HashMap;

use docent_search::DocId;

use crate::error::IngestError;
use crate::limits::Limits;

/// The claimed ids of a corpus and the source of each. Claims must be made in the order of a listing, which
/// is sorted; then the same document wins on every run.
#[derive(Debug)]
pub struct IdDeduplicator {
    holders: HashMap<DocId, usize>,
    /// Source names, which ids refer to by index. Documents of one source arrive together, so that each name
    /// is stored about once and not once per id.
    sources: Vec<String>,
    limit: usize,
}

impl IdDeduplicator {
    /// Creates an empty set of ids that holds at most `max_documents` of them.
    pub fn new(limits: &Limits) -> Self {
        Self {
            holders: HashMap::new(),
            sources: Vec::new(),
            limit: limits.max_documents,
        }
    }

    /// Whether no document has claimed this id so far.
    pub fn is_free(&self, id: &DocId) -> bool {
        !self.holders.contains_key(id)
    }

    /// Claims an id for a document of `source`; fails with the source that holds it already.
    pub fn claim(&mut self, id: &DocId, source: &str) -> Result<(), IngestError> {
        if let Some(&holder) = self.holders.get(id) {
            let first = self.sources.get(holder).cloned().unwrap_or_default();
            return Err(IngestError::DuplicateId {
                id: id.to_string(),
                first,
            });
        }
        if self.holders.len() >= self.limit {
            return Err(IngestError::TooManyDocuments { limit: self.limit });
        }
        if self.sources.last().is_none_or(|last| last != source) {
            self.sources.push(source.to_owned());
        }
        self.holders.insert(id.clone(), self.sources.len() - 1);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_keeps_the_id_and_the_bound_holds() {
        let mut dedup = IdDeduplicator::new(&Limits {
            max_documents: 3,
            ..Limits::default()
        });
        let id = |text| DocId::parse(text).unwrap();
        assert_eq!(dedup.claim(&id("1"), "a.jsonl"), Ok(()));
        assert_eq!(dedup.claim(&id("2"), "a.jsonl"), Ok(()));
        assert_eq!(dedup.claim(&id("3"), "b.jsonl"), Ok(()));
        let duplicate = |id: &str, first: &str| {
            Err(IngestError::DuplicateId {
                id: id.into(),
                first: first.into(),
            })
        };
        assert_eq!(dedup.claim(&id("2"), "b.jsonl"), duplicate("2", "a.jsonl"));
        assert_eq!(dedup.claim(&id("3"), "b.jsonl"), duplicate("3", "b.jsonl"));
        assert_eq!(
            dedup.claim(&id("4"), "c.md"),
            Err(IngestError::TooManyDocuments { limit: 3 })
        );
    }
}
