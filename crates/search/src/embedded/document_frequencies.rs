//! How many documents have a word, in whatever form.
//!
//! A corpus in several languages has one word under several stems. Each of them alone would look
//! rare where its language is, and a document in that language would win for being the only one of
//! its kind. Counted together they are as frequent as the word.

use std::collections::HashMap;

use tantivy::query::Bm25StatisticsProvider;
use tantivy::schema::Field;
use tantivy::{Searcher, Term};

use super::schema::IndexFields;
use super::snapshot::IndexSnapshot;
use crate::analysis::QueryTerm;

/// What tantivy is told about how frequent terms are.
pub(super) struct SharedDocFrequencies<'s> {
    searcher: &'s Searcher,
    /// The terms that are one form of several.
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
                // A document that has two of the forms was counted twice.
                let documents = documents.min(most);
                for form in forms {
                    let known = shared.entry(form).or_insert(0);
                    *known = documents.max(*known);
                }
            }
        }
        Ok(Self { searcher, shared })
    }

    /// How many documents have a term or another form of its word, for a term that is one form of several.
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
