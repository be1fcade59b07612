//! What narrows a query (its reader, its filter, its phrases, what it leaves out) into the set of
//! documents that may be found.

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

/// The documents that may be found, by segment.
pub(super) struct SegmentedDocSet(Vec<DocBitSet>);

impl SegmentedDocSet {
    /// Those of each segment.
    pub(super) fn new(segments: Vec<DocBitSet>) -> Self {
        Self(segments)
    }

    /// Those of each segment.
    pub(super) fn segments(&self) -> &[DocBitSet] {
        &self.0
    }

    /// The bytes they take.
    pub(super) fn bytes(&self) -> usize {
        self.0.iter().map(DocBitSet::bytes).sum()
    }

    /// Those of one segment.
    pub(super) fn segment(&self, ordinal: u32) -> Option<&DocBitSet> {
        self.0.get(ordinal as usize)
    }

    /// How many there are.
    pub(super) fn count(&self) -> u64 {
        self.0.iter().map(|bits| u64::from(bits.count())).sum()
    }

    /// All of them, in the order of their addresses.
    pub(super) fn iter(&self) -> impl Iterator<Item = DocAddress> {
        let segments = (0..).zip(&self.0);
        segments
            .flat_map(|(ordinal, bits)| bits.iter().map(move |doc| DocAddress::new(ordinal, doc)))
    }

    /// Whether this one is among them.
    pub(super) fn contains(&self, ordinal: u32, doc: u32) -> bool {
        self.segment(ordinal).is_some_and(|bits| bits.contains(doc))
    }
}

/// Works out what a query allows of what its reader sees; nothing when that is everything.
pub(super) fn allowed_documents(
    (snapshot, sight): (&IndexSnapshot, &ReaderVisibility),
    fields: &IndexFields,
    query: &Query,
    asked: &AnalyzedQuery,
) -> tantivy::Result<Option<Arc<SegmentedDocSet>>> {
    let seen = sight.documents();
    if !query.is_filtered() {
        return Ok(seen.cloned());
    }
    let mut sets = Vec::new();
    for (ordinal, segment) in (0..).zip(snapshot.searcher.segment_readers()) {
        let mut set = SegmentFilter { segment, fields }.all_of(query.filter.as_ref(), asked)?;
        if let Some(seen) = seen {
            match seen.segment(ordinal) {
                Some(seen) => set.intersect(seen),
                None => set = DocBitSet::none(segment.max_doc()),
            }
        }
        sets.push(set);
    }
    Ok(Some(Arc::new(SegmentedDocSet(sets))))
}

/// The documents that hold at least one word of a query and are allowed; all that are allowed, for
/// a query without words.
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

/// The documents of a segment that are not gone.
pub(super) fn alive_documents(segment: &SegmentReader) -> DocBitSet {
    let Some(alive) = segment.alive_bitset() else {
        return DocBitSet::all(segment.max_doc());
    };
    let mut bits = DocBitSet::none(segment.max_doc());
    alive.iter_alive().for_each(|doc| bits.insert(doc));
    bits
}

/// Takes all of a list into a set.
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
    fn all_of(&self, filter: Option<&Filter>, asked: &AnalyzedQuery) -> tantivy::Result<DocBitSet> {
        let mut set = alive_documents(self.segment);
        if let Some(filter) = filter {
            set.intersect(&self.filter(filter)?);
        }
        for phrase in &asked.phrases {
            set.intersect(&self.phrase(phrase)?);
        }
        for phrase in &asked.excluded {
            let mut without = self.phrase(phrase)?;
            without.invert();
            set.intersect(&without);
        }
        Ok(set)
    }

    /// A filter is as deep as the grammar or a tool made it, which is a few levels.
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

    /// Takes in the documents of every term within a stretch of them.
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

    /// The documents that have these terms side by side, as one of the languages has them.
    fn phrase(&self, terms: &[QueryTerm]) -> tantivy::Result<DocBitSet> {
        let mut set = DocBitSet::none(self.segment.max_doc());
        let terms: Vec<&QueryTerm> = terms.iter().collect();
        for reading in language_variants(&terms) {
            self.add_phrase(&terms, &reading, &mut set)?;
        }
        Ok(set)
    }

    fn add_phrase(
        &self,
        terms: &[&QueryTerm],
        reading: &[&str],
        set: &mut DocBitSet,
    ) -> tantivy::Result<()> {
        let first = terms.first().map_or(0, |term| term.position);
        let places: Vec<_> = terms
            .iter()
            .zip(reading)
            .map(|(term, form)| {
                let text = Term::from_field_text(self.fields.body, form);
                (term.position.saturating_sub(first), text)
            })
            .collect();
        let node: Box<dyn Node> = match places.as_slice() {
            [] => return Ok(()),
            [(_, term)] => Box::new(TermQuery::new(term.clone(), IndexRecordOption::Basic)),
            _ => Box::new(PhraseQuery::new_with_offset(places)),
        };
        let schema = self.segment.schema();
        let weight = node.weight(EnableScoring::disabled_from_schema(schema))?;
        let mut scorer = weight.scorer(self.segment, 1.0)?;
        collect_into(scorer.as_mut(), set);
        Ok(())
    }
}
