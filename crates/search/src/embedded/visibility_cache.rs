//! A reader into what of one generation this reader may know of: which documents, in which languages,
//! with which fields.
//!
//! Working that out reads lists of documents, so it is done once for a reader and a generation and kept
//! for the next question, within bounds. Where nothing is restricted nothing is worked out at all.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use tantivy::postings::TermInfo;
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{
    DocSet, InvertedIndexReader, Searcher, SegmentReader, TERMINATED, TantivyError, Term,
};

use super::candidate_set::{self, SegmentedDocSet};
use super::doc_bitset::DocBitSet;
use super::listing;
use super::schema::{IndexFields, LANGUAGE, READERS, RESTRICTED};
use super::snapshot::{IndexSnapshot, count_alive};
use crate::analysis::Language;
use crate::catalog::Catalog;
use crate::reader_identity::{Principal, ReaderIdentity};
use crate::vectors;

/// How many readers are kept, and the bytes of what they see.
const MAX_VISIBILITY_CACHES: usize = 1_024;
const MAX_VISIBILITY_BYTES: usize = 64 * 1024 * 1024;

/// What one reader may know of.
pub(super) struct ReaderVisibility {
    /// The documents; nothing when they are all there are.
    seen: Option<VisibleDocuments>,
    /// Their languages, those of most documents first.
    pub languages: Vec<Language>,
    /// Their fields, once somebody has asked.
    catalog: Mutex<Option<Arc<Catalog>>>,
}

/// The same set as words and as vectors are asked for it.
struct VisibleDocuments {
    documents: Arc<SegmentedDocSet>,
    ordinals: vectors::OrdinalSet,
}

impl ReaderVisibility {
    fn new(languages: Vec<Language>, seen: Option<VisibleDocuments>) -> Arc<Self> {
        Arc::new(Self {
            seen,
            languages,
            catalog: Mutex::default(),
        })
    }

    /// The documents; nothing when they are all there are.
    pub(super) fn documents(&self) -> Option<&Arc<SegmentedDocSet>> {
        self.seen.as_ref().map(|seen| &seen.documents)
    }

    /// A set of documents as vectors are asked for it. That of the whole sight is at hand.
    pub(super) fn with_ordinals<T>(
        &self,
        snapshot: &IndexSnapshot,
        allowed: Option<&SegmentedDocSet>,
        work: impl FnOnce(Option<&vectors::OrdinalSet>) -> T,
    ) -> T {
        match (allowed, &self.seen) {
            (None, _) => work(None),
            (Some(allowed), Some(seen)) if std::ptr::eq(allowed, &raw const *seen.documents) => {
                work(Some(&seen.ordinals))
            }
            (Some(allowed), _) => work(Some(&ordinals(snapshot, allowed))),
        }
    }

    /// How many documents have a term. Where all are seen, those that are gone may be counted too.
    pub(super) fn frequency(&self, searcher: &Searcher, term: &Term) -> tantivy::Result<u64> {
        let Some(seen) = self.documents() else {
            return searcher.doc_freq(term);
        };
        let mut count = 0;
        for (segment, bits) in searcher.segment_readers().iter().zip(seen.segments()) {
            let index = segment.inverted_index(term.field())?;
            if let Some(info) = index.get_term_info(term)? {
                count += count_in_set(&index, &info, bits)?;
            }
        }
        Ok(count)
    }

    /// The fields of the documents, worked out once.
    pub(super) fn catalog(
        &self,
        snapshot: &IndexSnapshot,
        fields: &IndexFields,
    ) -> tantivy::Result<Arc<Catalog>> {
        let mut kept = self.catalog.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(catalog) = kept.as_ref() {
            return Ok(catalog.clone());
        }
        let seen = self.documents().map(Arc::as_ref);
        let catalog = Arc::new(listing::catalog(snapshot, fields, seen)?);
        *kept = Some(catalog.clone());
        Ok(catalog)
    }

    fn bytes(&self) -> usize {
        // A bit for each document, as words and as vectors have it.
        let seen = self.documents();
        size_of::<Self>() + seen.map_or(0, |documents| documents.bytes() * 2)
    }
}

/// What every reader of one generation may know of.
pub(super) struct VisibilityCache {
    /// What there is.
    all: Arc<ReaderVisibility>,
    /// Whether that is not for everyone.
    is_restricted: bool,
    kept: Mutex<VisibilityCacheState>,
}

#[derive(Default)]
struct VisibilityCacheState {
    sights: HashMap<ReaderIdentity, (Arc<ReaderVisibility>, u64)>,
    bytes: usize,
    /// Counts the times somebody asked.
    clock: u64,
}

impl VisibilityCache {
    pub(super) fn of(searcher: &Searcher) -> tantivy::Result<Self> {
        let mark = Term::from_field_text(searcher.schema().get_field(READERS)?, RESTRICTED);
        let mut is_restricted = false;
        for segment in searcher.segment_readers() {
            let index = segment.inverted_index(mark.field())?;
            if let Some(info) = index.get_term_info(&mark)? {
                is_restricted |= count_alive(segment, &index, &info)? > 0;
            }
        }
        Ok(Self {
            all: ReaderVisibility::new(languages(searcher, None)?, None),
            is_restricted,
            kept: Mutex::default(),
        })
    }

    /// What a reader may know of.
    pub(super) fn for_reader(
        &self,
        reader: &ReaderIdentity,
        snapshot: &IndexSnapshot,
    ) -> tantivy::Result<Arc<ReaderVisibility>> {
        let Some(held) = reader.principals().filter(|_| self.is_restricted) else {
            return Ok(self.all.clone());
        };
        if let Some(sight) = self.lock().get(reader) {
            return Ok(sight);
        }
        // Worked out without the lock: nobody else waits for it, and twice the same is the same.
        let sight = compute_visibility(snapshot, held)?;
        self.lock().put(reader, &sight);
        Ok(sight)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VisibilityCacheState> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl VisibilityCacheState {
    fn get(&mut self, reader: &ReaderIdentity) -> Option<Arc<ReaderVisibility>> {
        self.clock += 1;
        let (sight, last_asked) = self.sights.get_mut(reader)?;
        *last_asked = self.clock;
        Some(sight.clone())
    }

    fn put(&mut self, reader: &ReaderIdentity, sight: &Arc<ReaderVisibility>) {
        let bytes = sight.bytes();
        if bytes > MAX_VISIBILITY_BYTES {
            return;
        }
        if self.sights.len() >= MAX_VISIBILITY_CACHES || self.bytes + bytes > MAX_VISIBILITY_BYTES {
            self.evict_half(bytes);
        }
        self.clock += 1;
        let entry = (sight.clone(), self.clock);
        self.bytes += bytes;
        if let Some((replaced, _)) = self.sights.insert(reader.clone(), entry) {
            self.bytes -= replaced.bytes();
        }
    }

    /// Lets go of those not asked for longest, so that half of everything and `room` bytes are free.
    fn evict_half(&mut self, room: usize) {
        let mut oldest: Vec<_> = self.sights.iter().map(|(_, (_, last))| *last).collect();
        oldest.sort_unstable();
        for last in oldest {
            let is_room = self.bytes + room <= MAX_VISIBILITY_BYTES;
            if is_room
                && self.bytes <= MAX_VISIBILITY_BYTES / 2
                && self.sights.len() <= MAX_VISIBILITY_CACHES / 2
            {
                return;
            }
            let mut gone = 0;
            self.sights.retain(|_, (sight, asked)| {
                if *asked == last {
                    gone += sight.bytes();
                }
                *asked != last
            });
            self.bytes -= gone;
        }
    }
}

/// The documents that are for everyone or for the holder of one of these.
fn compute_visibility(
    snapshot: &IndexSnapshot,
    held: &BTreeSet<Principal>,
) -> tantivy::Result<Arc<ReaderVisibility>> {
    let searcher = &snapshot.searcher;
    let field = searcher.schema().get_field(READERS)?;
    let mut sets = Vec::new();
    for segment in searcher.segment_readers() {
        let index = segment.inverted_index(field)?;
        let mut closed = with_terms(&index, field, [RESTRICTED].into_iter(), segment)?;
        let names = held.iter().map(Principal::as_str);
        closed.subtract(&with_terms(&index, field, names, segment)?);
        let mut set = candidate_set::alive_documents(segment);
        set.subtract(&closed);
        sets.push(set);
    }
    let documents = SegmentedDocSet::new(sets);
    if documents.count() == searcher.num_docs() {
        return Ok(ReaderVisibility::new(languages(searcher, None)?, None));
    }
    let seen = VisibleDocuments {
        ordinals: ordinals(snapshot, &documents),
        documents: Arc::new(documents),
    };
    let languages = languages(searcher, Some(&seen.documents))?;
    Ok(ReaderVisibility::new(languages, Some(seen)))
}

fn with_terms<'t>(
    index: &InvertedIndexReader,
    field: Field,
    terms: impl Iterator<Item = &'t str>,
    segment: &SegmentReader,
) -> tantivy::Result<DocBitSet> {
    let mut set = DocBitSet::none(segment.max_doc());
    for term in terms {
        let term = Term::from_field_text(field, term);
        if let Some(mut postings) = index.read_postings(&term, IndexRecordOption::Basic)? {
            candidate_set::collect_into(&mut postings, &mut set);
        }
    }
    Ok(set)
}

fn ordinals(snapshot: &IndexSnapshot, documents: &SegmentedDocSet) -> vectors::OrdinalSet {
    let mut set = vectors::OrdinalSet::new(snapshot.ordinals());
    documents
        .iter()
        .for_each(|at| set.insert(snapshot.ordinal(at)));
    set
}

/// The languages of some documents, or of all that are not gone.
fn languages(
    searcher: &Searcher,
    seen: Option<&SegmentedDocSet>,
) -> tantivy::Result<Vec<Language>> {
    let field = searcher.schema().get_field(LANGUAGE)?;
    let mut counts = Vec::new();
    for (ordinal, segment) in (0..).zip(searcher.segment_readers()) {
        let index = segment.inverted_index(field)?;
        let seen = seen.map(|seen| seen.segment(ordinal));
        for language in Language::ALL {
            let term = Term::from_field_text(field, language.code());
            let Some(info) = index.get_term_info(&term)? else {
                continue;
            };
            let documents = match (seen, segment.alive_bitset()) {
                (Some(seen), _) => match seen {
                    Some(bits) => count_in_set(&index, &info, bits)?,
                    None => 0,
                },
                (None, None) => u64::from(info.doc_freq),
                // A language whose last document is gone is no longer asked for.
                (None, Some(_)) => count_alive(segment, &index, &info)?,
            };
            counts.push((language, documents));
        }
    }
    Ok(Language::by_document_count(counts))
}

/// How many documents of a set have a term.
pub(super) fn count_in_set(
    index: &InvertedIndexReader,
    term: &TermInfo,
    set: &DocBitSet,
) -> Result<u64, TantivyError> {
    let mut postings = index.read_postings_from_terminfo(term, IndexRecordOption::Basic)?;
    let mut count = 0;
    while postings.doc() != TERMINATED {
        count += u64::from(set.contains(postings.doc()));
        postings.advance();
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(n: usize) -> ReaderIdentity {
        ReaderIdentity::holder([Principal::parse(&format!("group:{n}")).unwrap()])
    }

    fn sight(documents: u32) -> Arc<ReaderVisibility> {
        let seen = VisibleDocuments {
            documents: Arc::new(SegmentedDocSet::new(vec![DocBitSet::none(documents)])),
            ordinals: vectors::OrdinalSet::new(documents),
        };
        ReaderVisibility::new(Vec::new(), Some(seen))
    }

    #[test]
    fn never_more_readers_than_allowed_and_the_oldest_go() {
        let (mut kept, one) = (VisibilityCacheState::default(), sight(64));
        for n in 0..MAX_VISIBILITY_CACHES + 1 {
            kept.put(&reader(n), &one);
            assert!(kept.get(&reader(0)).is_some(), "asked for every time");
            assert!(kept.sights.len() <= MAX_VISIBILITY_CACHES);
            assert_eq!(kept.bytes, kept.sights.len() * one.bytes());
        }
        assert!(kept.get(&reader(MAX_VISIBILITY_CACHES)).is_some());
        assert!(kept.get(&reader(1)).is_none());
    }

    #[test]
    fn never_more_bytes_than_allowed() {
        let mut kept = VisibilityCacheState::default();
        // Three of these are less than the bound, four are more.
        let large = sight(u32::try_from(MAX_VISIBILITY_BYTES).unwrap() + 64);
        for n in 0..8 {
            kept.put(&reader(n), &large);
            assert!(kept.bytes <= MAX_VISIBILITY_BYTES && kept.get(&reader(n)).is_some());
        }
        let huge = sight(u32::MAX);
        kept.put(&reader(9), &huge);
        assert!(kept.get(&reader(9)).is_none());
        for _ in 0..4 {
            kept.put(&reader(7), &large);
        }
        let sum: usize = kept.sights.values().map(|(sight, _)| sight.bytes()).sum();
        assert_eq!(kept.bytes, sum);
    }
}
