//! The terms of the index as a dictionary to look slips up in.

use std::collections::BTreeMap;

use tantivy::{TantivyError, Term};

use super::schema::Fields;
use super::snapshot::Snapshot;
use crate::spelling::{Dictionary, MAX_COMPARED};

pub(super) struct Words<'s> {
    pub snapshot: &'s Snapshot,
    pub fields: &'s Fields,
}

impl Dictionary for Words<'_> {
    type Error = TantivyError;

    fn knows(&self, term: &str) -> tantivy::Result<bool> {
        let term = Term::from_field_text(self.fields.body, term);
        for segment in self.snapshot.searcher.segment_readers() {
            if segment.inverted_index(self.fields.body)?.doc_freq(&term)? > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn beginning_with(&self, first: char) -> tantivy::Result<BTreeMap<String, u64>> {
        let mut found: BTreeMap<String, u64> = BTreeMap::new();
        let start = first.to_string();
        for segment in self.snapshot.searcher.segment_readers() {
            let index = segment.inverted_index(self.fields.body)?;
            let mut stream = index.terms().range().ge(start.as_bytes()).into_stream()?;
            while stream.advance() && found.len() < MAX_COMPARED {
                if !stream.key().starts_with(start.as_bytes()) {
                    break;
                }
                if let Ok(term) = std::str::from_utf8(stream.key()) {
                    *found.entry(term.to_owned()).or_default() +=
                        u64::from(stream.value().doc_freq);
                }
            }
        }
        Ok(found)
    }
}
