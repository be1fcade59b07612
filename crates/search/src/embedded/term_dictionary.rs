//! The terms of the index as a dictionary for spelling correction.

use std::collections::BTreeMap;

use tantivy::postings::TermInfo;
use tantivy::{InvertedIndexReader, SegmentReader, TantivyError, Term};

use super::candidate_set::SegmentedDocSet;
use super::schema::IndexFields;
use super::snapshot::{IndexSnapshot, count_alive};
use super::visibility_cache::count_in_set;
use crate::spelling::{MAX_COMPARED, SpellingDictionary};

pub(super) struct TermDictionary<'s> {
    /// A view of the index's terms; those of invisible documents do not count, so that corrections reveal
    /// nothing.
    pub snapshot: &'s IndexSnapshot,
    pub fields: &'s IndexFields,
    /// The documents whose terms count; `None` when all do.
    pub visible: Option<&'s SegmentedDocSet>,
}

impl SpellingDictionary for TermDictionary<'_> {
    type Error = TantivyError;

    fn contains_term(&self, term: &str) -> tantivy::Result<bool> {
        let term = Term::from_field_text(self.fields.body, term);
        for (ordinal, segment) in (0..).zip(self.snapshot.searcher.segment_readers()) {
            let index = segment.inverted_index(self.fields.body)?;
            if let Some(info) = index.get_term_info(&term)?
                && self.documents(ordinal, segment, &index, &info)? > 0
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn terms_starting_with(&self, first: char) -> tantivy::Result<BTreeMap<String, u64>> {
        let mut found: BTreeMap<String, u64> = BTreeMap::new();
        let start = first.to_string();
        for (ordinal, segment) in (0..).zip(self.snapshot.searcher.segment_readers()) {
            let index = segment.inverted_index(self.fields.body)?;
            let mut stream = index.terms().range().ge(start.as_bytes()).into_stream()?;
            while stream.advance() && found.len() < MAX_COMPARED {
                if !stream.key().starts_with(start.as_bytes()) {
                    break;
                }
                let documents = self.documents(ordinal, segment, &index, stream.value())?;
                if let Ok(term) = std::str::from_utf8(stream.key())
                    && documents > 0
                {
                    *found.entry(term.to_owned()).or_default() += documents;
                }
            }
        }
        Ok(found)
    }
}

impl TermDictionary<'_> {
    /// How many documents of a segment contain a term. Tombstones of deleted documents stay in posting lists
    /// until a merge, and are subtracted only where every document with the term may be deleted.
    fn documents(
        &self,
        ordinal: u32,
        segment: &SegmentReader,
        index: &InvertedIndexReader,
        term: &TermInfo,
    ) -> tantivy::Result<u64> {
        let may_all_be_deleted =
            segment.has_deletes() && term.doc_freq <= segment.num_deleted_docs();
        match self.visible {
            Some(visible) => match visible.segment(ordinal) {
                Some(bits) => count_in_set(index, term, bits),
                None => Ok(0),
            },
            None if may_all_be_deleted => count_alive(segment, index, term),
            None => Ok(u64::from(term.doc_freq)),
        }
    }
}
