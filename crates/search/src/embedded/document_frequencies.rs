//! Document frequencies for BM25, shared between the stems of one word.
//!
//! In a corpus of several languages one word has several stems. Each of them alone would look rare, and a
//! document in the smaller language would rank too high merely because its stem is rare. Counted together
//! they are as frequent as the word itself.

use std::collections::HashMap;

use tantivy::query::Bm25StatisticsProvider;
use tantivy::schema::Field;
use tantivy::{Searcher, Term};

use super::schema::IndexFields;
use super::snapshot::IndexSnapshot;
use crate::analysis::QueryTerm;

/// The collection statistics that tantivy's BM25 is computed with.
pub(super) struct SharedDocFrequencies<'s> {
    searcher: &'s Searcher,
    /// The summed document frequency of each term that is one stem of several.
    shared: HashMap<Term, u64>,
}

impl<'s> SharedDocFrequencies<'s> {
    pub(super) fn of(
        snapshot: &'s IndexSnapshot,
        fields: &IndexFields,
        terms: &[&QueryTerm],
    ) -> tantivy::Result<Self> {
        let searcher = &snapshot.searcher;
        let most = searcher.total_num_docs()?;
        let mut shared = HashMap::new();
        for term in terms.iter().filter(|term| term.forms.len() > 1) {
            for field in [fields.body, fields.title] {
                let forms = term.forms.iter();
                let forms: Vec<_> = forms
                    .map(|form| Term::from_field_text(field, form))
                    .collect();
                let mut documents = 0;
                for form in &forms {
                    documents += searcher.doc_freq(form)?;
                }
                // A document with two of the stems was counted twice, so the sum is capped.
                let documents = documents.min(most);
                for form in forms {
                    let known = shared.entry(form).or_insert(0);
                    *known = documents.max(*known);
                }
            }
        }
        Ok(Self { searcher, shared })
    }

    /// The document frequency that a term shares with the other stems of its word; `None` for a word with one
    /// stem.
    pub(super) fn shared_frequency(&self, term: &Term) -> Option<u64> {
        self.shared.get(term).copied()
    }
}

impl Bm25StatisticsProvider for SharedDocFrequencies<'_> {
    fn total_num_tokens(&self, field: Field) -> tantivy::Result<u64> {
        self.searcher.total_num_tokens(field)
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        self.searcher.total_num_docs()
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        match self.shared_frequency(term) {
            Some(documents) => Ok(documents),
            None => self.searcher.doc_freq(term),
        }
    }
}
