//! Caches what each reader may see of one generation: documents, languages and catalog.
//!
//! Computing that reads posting lists, so it is done once for each reader and generation, and kept within
//! bounds with LRU eviction. Where no document is restricted, nothing is computed at all.

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

/// The bounds of the cache: how many readers, and how many bytes for what they see. Both are needed: on a small index
/// the entries are tiny and only their number grows, on a large one a thousand bitsets would not fit in memory.
const MAX_VISIBILITY_CACHES: usize = 1_024;
const MAX_VISIBILITY_BYTES: usize = 64 * 1024 * 1024;

/// What one reader may see of a generation. The catalog is computed on first use.
pub(super) struct ReaderVisibility {
    /// The visible documents; `None` when all of them are visible.
    seen: Option<VisibleDocuments>,
    /// Their languages, the most frequent first.
    pub languages: Vec<Language>,
    catalog: Mutex<Option<Arc<Catalog>>>,
}

/// The same set of documents for both halves of the search: as bits by segment, and as ordinals for the
/// vectors.
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

    /// The visible documents; `None` when all of them are visible.
    pub(super) fn documents(&self) -> Option<&Arc<SegmentedDocSet>> {
        self.seen.as_ref().map(|seen| &seen.documents)
    }

    /// Passes a set of documents to `work` as ordinals. For the set of all visible documents these are
    /// precomputed.
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

    /// The document frequency of a term among visible documents. Where all are visible, deleted ones may be
    /// counted too.
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

    /// The catalog of the visible documents' fields, computed once.
    pub(super) fn catalog(
        &self,
        snapshot: &IndexSnapshot,
        fields: &IndexFields,
    ) -> tantivy::Result<Arc<Catalog>> {
        let mut cached = self.catalog.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(catalog) = cached.as_ref() {
            return Ok(catalog.clone());
        }
        let seen = self.documents().map(Arc::as_ref);
        let catalog = Arc::new(listing::catalog(snapshot, fields, seen)?);
        *cached = Some(catalog.clone());
        Ok(catalog)
    }

    fn bytes(&self) -> usize {
        // One bit for each document, in both representations.
        let seen = self.documents();
        size_of::<Self>() + seen.map_or(0, |documents| documents.bytes() * 2)
    }
}

/// The cache of what every reader may see of one generation.
pub(super) struct VisibilityCache {
    /// What a reader sees who may see everything.
    all: Arc<ReaderVisibility>,
    /// Whether any document is restricted; where none is, all readers share `all`.
    is_restricted: bool,
    state: Mutex<VisibilityCacheState>,
}

#[derive(Default)]
struct VisibilityCacheState {
    entries: HashMap<ReaderIdentity, (Arc<ReaderVisibility>, u64)>,
    bytes: usize,
    /// A logical clock that ticks with every access, for LRU eviction.
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
            state: Mutex::default(),
        })
    }

    /// What a reader may see, from the cache or computed now.
    pub(super) fn for_reader(
        &self,
        reader: &ReaderIdentity,
        snapshot: &IndexSnapshot,
    ) -> tantivy::Result<Arc<ReaderVisibility>> {
        let Some(principals) = reader.principals().filter(|_| self.is_restricted) else {
            return Ok(self.all.clone());
        };
        if let Some(visibility) = self.lock().get(reader) {
            return Ok(visibility);
        }
        // Computed without the lock: nobody waits for it, and computing it twice does no harm.
        let visibility = compute_visibility(snapshot, principals)?;
        self.lock().put(reader, &visibility);
        Ok(visibility)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VisibilityCacheState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl VisibilityCacheState {
    fn get(&mut self, reader: &ReaderIdentity) -> Option<Arc<ReaderVisibility>> {
        self.clock += 1;
        let (visibility, last_used) = self.entries.get_mut(reader)?;
        *last_used = self.clock;
        Some(visibility.clone())
    }

    fn put(&mut self, reader: &ReaderIdentity, visibility: &Arc<ReaderVisibility>) {
        let bytes = visibility.bytes();
        if bytes > MAX_VISIBILITY_BYTES {
            return;
        }
        if self.entries.len() >= MAX_VISIBILITY_CACHES || self.bytes + bytes > MAX_VISIBILITY_BYTES
        {
            self.evict_half(bytes);
        }
        self.clock += 1;
        let entry = (visibility.clone(), self.clock);
        self.bytes += bytes;
        if let Some((replaced, _)) = self.entries.insert(reader.clone(), entry) {
            self.bytes -= replaced.bytes();
        }
    }

    /// Evicts the least recently used entries until half of the cache and `room` bytes are free.
    fn evict_half(&mut self, room: usize) {
        let mut oldest: Vec<_> = self
            .entries
            .iter()
            .map(|(_, (_, oldest_use))| *oldest_use)
            .collect();
        oldest.sort_unstable();
        for oldest_use in oldest {
            let is_room = self.bytes + room <= MAX_VISIBILITY_BYTES;
            if is_room
                && self.bytes <= MAX_VISIBILITY_BYTES / 2
                && self.entries.len() <= MAX_VISIBILITY_CACHES / 2
            {
                return;
            }
            let mut freed = 0;
            self.entries.retain(|_, (visibility, last_used)| {
                if *last_used == oldest_use {
                    freed += visibility.bytes();
                }
                *last_used != oldest_use
            });
            self.bytes -= freed;
        }
    }
}

/// Computes visibility: the documents that are unrestricted, or readable by one of these principals.
fn compute_visibility(
    snapshot: &IndexSnapshot,
    principals: &BTreeSet<Principal>,
) -> tantivy::Result<Arc<ReaderVisibility>> {
    let searcher = &snapshot.searcher;
    let field = searcher.schema().get_field(READERS)?;
    let mut sets = Vec::new();
    for segment in searcher.segment_readers() {
        let index = segment.inverted_index(field)?;
        let mut forbidden = with_terms(&index, field, [RESTRICTED].into_iter(), segment)?;
        let names = principals.iter().map(Principal::as_str);
        forbidden.subtract(&with_terms(&index, field, names, segment)?);
        let mut set = candidate_set::alive_documents(segment);
        set.subtract(&forbidden);
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

/// The languages of some documents, or of all that are alive.
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
                // A language whose last document was deleted must not be analysed for any more.
                (None, Some(_)) => count_alive(segment, &index, &info)?,
            };
            counts.push((language, documents));
        }
    }
    Ok(Language::by_document_count(counts))
}

/// How many documents of a set contain a term.
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

    fn visibility(documents: u32) -> Arc<ReaderVisibility> {
        let seen = VisibleDocuments {
            documents: Arc::new(SegmentedDocSet::new(vec![DocBitSet::none(documents)])),
            ordinals: vectors::OrdinalSet::new(documents),
        };
        ReaderVisibility::new(Vec::new(), Some(seen))
    }

    #[test]
    fn never_more_readers_than_allowed_and_the_oldest_go() {
        let (mut cache, one) = (VisibilityCacheState::default(), visibility(64));
        for n in 0..MAX_VISIBILITY_CACHES + 1 {
            cache.put(&reader(n), &one);
            assert!(cache.get(&reader(0)).is_some(), "asked for every time");
            assert!(cache.entries.len() <= MAX_VISIBILITY_CACHES);
            assert_eq!(cache.bytes, cache.entries.len() * one.bytes());
        }
        assert!(cache.get(&reader(MAX_VISIBILITY_CACHES)).is_some());
        assert!(cache.get(&reader(1)).is_none());
    }

    #[test]
    fn never_more_bytes_than_allowed() {
        let mut cache = VisibilityCacheState::default();
        // Three of these fit into the bound, four do not.
        let large = visibility(u32::try_from(MAX_VISIBILITY_BYTES).unwrap() + 64);
        for n in 0..8 {
            cache.put(&reader(n), &large);
            assert!(cache.bytes <= MAX_VISIBILITY_BYTES && cache.get(&reader(n)).is_some());
        }
        let huge = visibility(u32::MAX);
        cache.put(&reader(9), &huge);
        assert!(cache.get(&reader(9)).is_none());
        for _ in 0..4 {
            cache.put(&reader(7), &large);
        }
        let sum: usize = cache
            .entries
            .values()
            .map(|(visibility, _)| visibility.bytes())
            .sum();
        assert_eq!(cache.bytes, sum);
    }
}
