//! The candidate set of a query: the documents that its reader, filters, phrases and exclusions allow.

use std::ops::Range;
use std::sync::Arc;

use tantivy::query::{EnableScoring, PhraseQuery, Query as Node, TermQuery};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocAddress, DocSet, SegmentReader, TERMINATED, Term};

use super::doc_bitset::DocBitSet;
use super::schema::IndexFields;
use super::snapshot::IndexSnapshot;
use super::visibility_cache::ReaderVisibility;
use crate::analysis::{QueryTerm, language_variants};
use crate::facet_terms;
use crate::filter::Filter;
use crate::query::{AnalyzedQuery, Query};

/// A set of documents as one bitset for each segment.
pub(super) struct SegmentedDocSet(Vec<DocBitSet>);

impl SegmentedDocSet {
    /// Wraps one bitset for each segment, in the order of the segments.
    pub(super) fn new(segments: Vec<DocBitSet>) -> Self {
        Self(segments)
    }

    /// The bitsets, in the order of the segments.
    pub(super) fn segments(&self) -> &[DocBitSet] {
        &self.0
    }

    /// The size of all bitsets in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.0.iter().map(DocBitSet::bytes).sum()
    }

    /// The bitset of one segment.
    pub(super) fn segment(&self, ordinal: u32) -> Option<&DocBitSet> {
        self.0.get(ordinal as usize)
    }

    /// The number of documents in the set.
    pub(super) fn count(&self) -> u64 {
        self.0.iter().map(|bits| u64::from(bits.count())).sum()
    }

    /// All documents of the set, in the order of their addresses.
    pub(super) fn iter(&self) -> impl Iterator<Item = DocAddress> {
        let segments = (0..).zip(&self.0);
        segments
            .flat_map(|(ordinal, bits)| bits.iter().map(move |doc| DocAddress::new(ordinal, doc)))
    }

    /// Whether the set contains this document.
    pub(super) fn contains(&self, ordinal: u32, doc: u32) -> bool {
        self.segment(ordinal).is_some_and(|bits| bits.contains(doc))
    }
}

/// The documents that a query allows among those its reader may see; `None` when that is all documents.
pub(super) fn allowed_documents(
    snapshot: &IndexSnapshot,
    visibility: &ReaderVisibility,
    fields: &IndexFields,
    query: &Query,
    analyzed: &AnalyzedQuery,
) -> tantivy::Result<Option<Arc<SegmentedDocSet>>> {
    let visible = visibility.documents();
    if !query.is_filtered() {
        return Ok(visible.cloned());
    }
    let mut sets = Vec::new();
    for (ordinal, segment) in (0..).zip(snapshot.searcher.segment_readers()) {
        let mut set = SegmentFilter { segment, fields }.all_of(query.filter.as_ref(), analyzed)?;
        if let Some(visible) = visible {
            match visible.segment(ordinal) {
                Some(visible) => set.intersect(visible),
                None => set = DocBitSet::none(segment.max_doc()),
            }
        }
        sets.push(set);
    }
    Ok(Some(Arc::new(SegmentedDocSet(sets))))
}

/// The documents that contain at least one term of a query and are allowed; all allowed documents for a query
/// without terms.
pub(super) fn matching(
    snapshot: &IndexSnapshot,
    fields: &IndexFields,
    terms: &[&str],
    allowed: Option<&SegmentedDocSet>,
) -> tantivy::Result<SegmentedDocSet> {
    let mut sets = Vec::new();
    for (ordinal, segment) in (0..).zip(snapshot.searcher.segment_readers()) {
        let mut set = if terms.is_empty() {
            alive_documents(segment)
        } else {
            let mut set = DocBitSet::none(segment.max_doc());
            let index = segment.inverted_index(fields.body)?;
            for term in terms {
                let term = Term::from_field_text(fields.body, term);
                if let Some(mut postings) = index.read_postings(&term, IndexRecordOption::Basic)? {
                    collect_into(&mut postings, &mut set);
                }
            }
            set.intersect(&alive_documents(segment));
            set
        };
        if let Some(allowed) = allowed.and_then(|allowed| allowed.segment(ordinal)) {
            set.intersect(allowed);
        }
        sets.push(set);
    }
    Ok(SegmentedDocSet(sets))
}

/// The documents of a segment that are alive, that is, without a tombstone.
pub(super) fn alive_documents(segment: &SegmentReader) -> DocBitSet {
    let Some(alive) = segment.alive_bitset() else {
        return DocBitSet::all(segment.max_doc());
    };
    let mut bits = DocBitSet::none(segment.max_doc());
    alive.iter_alive().for_each(|doc| bits.insert(doc));
    bits
}

/// Adds all documents of a posting list or scorer to a set.
pub(super) fn collect_into(docs: &mut (impl DocSet + ?Sized), set: &mut DocBitSet) {
    let mut doc = docs.doc();
    while doc != TERMINATED {
        set.insert(doc);
        doc = docs.advance();
    }
}

struct SegmentFilter<'s> {
    segment: &'s SegmentReader,
    fields: &'s IndexFields,
}

impl SegmentFilter<'_> {
    fn all_of(
        &self,
        filter: Option<&Filter>,
        analyzed: &AnalyzedQuery,
    ) -> tantivy::Result<DocBitSet> {
        let mut set = alive_documents(self.segment);
        if let Some(filter) = filter {
            set.intersect(&self.filter(filter)?);
        }
        for phrase in &analyzed.phrases {
            set.intersect(&self.phrase(phrase)?);
        }
        for phrase in &analyzed.excluded {
            let mut without = self.phrase(phrase)?;
            without.invert();
            set.intersect(&without);
        }
        Ok(set)
    }

    /// The recursion is as deep as the filter, which its grammar limits to a few levels.
    fn filter(&self, filter: &Filter) -> tantivy::Result<DocBitSet> {
        let size = self.segment.max_doc();
        match filter {
            Filter::All(filters) => {
                let mut set = DocBitSet::all(size);
                for filter in filters {
                    set.intersect(&self.filter(filter)?);
                }
                Ok(set)
            }
            Filter::Any(filters) => {
                let mut set = DocBitSet::none(size);
                for filter in filters {
                    set.union(&self.filter(filter)?);
                }
                Ok(set)
            }
            Filter::Not(filter) => {
                let mut set = self.filter(filter)?;
                set.invert();
                Ok(set)
            }
            Filter::Field { name, test } => {
                let mut set = DocBitSet::none(size);
                for range in facet_terms::ranges(name, test) {
                    self.terms(&range, &mut set)?;
                }
                Ok(set)
            }
        }
    }

    /// Adds the documents of every term within a range of terms.
    fn terms(&self, range: &Range<String>, set: &mut DocBitSet) -> tantivy::Result<()> {
        let index = self.segment.inverted_index(self.fields.facets)?;
        let mut stream = index
            .terms()
            .range()
            .ge(range.start.as_bytes())
            .lt(range.end.as_bytes())
            .into_stream()?;
        while stream.advance() {
            let info = stream.value();
            let mut postings = index.read_postings_from_terminfo(info, IndexRecordOption::Basic)?;
            collect_into(&mut postings, set);
        }
        Ok(())
    }

    /// The documents in which these terms are adjacent, as any of the languages stems them.
    fn phrase(&self, terms: &[QueryTerm]) -> tantivy::Result<DocBitSet> {
        let mut set = DocBitSet::none(self.segment.max_doc());
        let terms: Vec<&QueryTerm> = terms.iter().collect();
        for variant in language_variants(&terms) {
            self.add_phrase(&terms, &variant, &mut set)?;
        }
        Ok(set)
    }

    fn add_phrase(
        &self,
        terms: &[&QueryTerm],
        variant: &[&str],
        set: &mut DocBitSet,
    ) -> tantivy::Result<()> {
        let first = terms.first().map_or(0, |term| term.position);
        let offsets: Vec<_> = terms
            .iter()
            .zip(variant)
            .map(|(term, form)| {
                let text = Term::from_field_text(self.fields.body, form);
                (term.position.saturating_sub(first), text)
            })
            .collect();
        let node: Box<dyn Node> = match offsets.as_slice() {
            [] => return Ok(()),
            [(_, term)] => Box::new(TermQuery::new(term.clone(), IndexRecordOption::Basic)),
            _ => Box::new(PhraseQuery::new_with_offset(offsets)),
        };
        let schema = self.segment.schema();
        let weight = node.weight(EnableScoring::disabled_from_schema(schema))?;
        let mut scorer = weight.scorer(self.segment, 1.0)?;
        collect_into(scorer.as_mut(), set);
        Ok(())
    }
}
