//! A snapshot: one generation of the index, as one answer sees it from beginning to end.

#[cfg(test)]
use std::sync::atomic::{AtomicUsize, Ordering as Memory};
use std::sync::{Arc, OnceLock};

use tantivy::columnar::{Column, StrColumn};
use tantivy::postings::TermInfo;
use tantivy::schema::IndexRecordOption;
use tantivy::{
    DocAddress, DocSet, Index, IndexReader, InvertedIndexReader, Searcher, SegmentReader,
    TERMINATED, TantivyError, Term,
};

use super::id_order::IdOrder;
use super::schema::{DAY, HASH, ID, IndexFields, KEY, SOURCE};
use super::semantic_index::VectorViews;
use super::visibility_cache::{ReaderVisibility, VisibilityCache};
use super::writer::CommitPayload;
use crate::document::DocId;
use crate::engine::{Generation, InventoryEntryRef};
use crate::reader_identity::ReaderIdentity;
use crate::vectors::LiveDocuments;

/// How often opening is retried because another process committed meanwhile.
const MAX_RELOADS: usize = 8;

#[derive(Clone)]
/// One generation with everything that is computed once for it. `columns` are opened once, because opening a
/// column costs more than a search.
pub(super) struct IndexSnapshot {
    pub searcher: Searcher,
    pub generation: Generation,
    columns: Arc<FastFieldColumns>,
    visibility: Arc<VisibilityCache>,
    /// The vectors of its documents; `None` without an embedding model.
    pub vectors: Option<Arc<VectorViews>>,
}

/// The columns (fast fields) that are read without touching stored documents, by segment.
struct FastFieldColumns {
    ids: Vec<StrColumn>,
    days: Vec<Column<i64>>,
    /// The two halves of the key under which a document's vectors are stored.
    keys: Vec<[Column<u64>; 2]>,
    /// The ordinal of the first document of each segment. Ordinals count documents over all segments.
    bases: Vec<u32>,
    /// The global order of ids, computed once a page far from the first is requested.
    id_order: OnceLock<Option<IdOrder>>,
    #[cfg(test)]
    id_lookups: AtomicUsize,
}

impl FastFieldColumns {
    fn of(searcher: &Searcher) -> tantivy::Result<Self> {
        let segments = searcher.segment_readers();
        let numbers = |segment: &SegmentReader, name| segment.fast_fields().u64(name);
        let key = |segment| Ok([numbers(segment, KEY[0])?, numbers(segment, KEY[1])?]);
        let mut next = 0;
        let base = |segment: &SegmentReader| {
            let base = next;
            next += segment.max_doc();
            base
        };
        Ok(Self {
            ids: columns(searcher, ID)?,
            days: segments
                .iter()
                .map(|segment| segment.fast_fields().i64(DAY))
                .collect::<tantivy::Result<_>>()?,
            keys: segments.iter().map(key).collect::<tantivy::Result<_>>()?,
            bases: segments.iter().map(base).collect(),
            id_order: OnceLock::new(),
            #[cfg(test)]
            id_lookups: AtomicUsize::new(0),
        })
    }
}

impl IndexSnapshot {
    /// Opens the newest generation. Retried when a commit of another process comes in between, so that
    /// generation and searcher belong together.
    pub(super) fn newest(index: &Index, reader: &IndexReader) -> tantivy::Result<Self> {
        for _ in 0..MAX_RELOADS {
            let generation = CommitPayload::last(index)?.generation;
            reader.reload()?;
            if CommitPayload::last(index)?.generation == generation {
                let searcher = reader.searcher();
                return Ok(Self {
                    columns: Arc::new(FastFieldColumns::of(&searcher)?),
                    visibility: Arc::new(VisibilityCache::of(&searcher)?),
                    searcher,
                    generation,
                    vectors: None,
                });
            }
        }
        Err(TantivyError::InternalError(
            "the index is committed to faster than it can be opened".to_owned(),
        ))
    }

    /// What a reader may see of this generation.
    pub(super) fn visibility(
        &self,
        reader: &ReaderIdentity,
    ) -> tantivy::Result<Arc<ReaderVisibility>> {
        self.visibility.for_reader(reader, self)
    }

    /// Looks up the address of a document by its id.
    pub(super) fn find(
        &self,
        id: &DocId,
        fields: &IndexFields,
    ) -> tantivy::Result<Option<DocAddress>> {
        let term = Term::from_field_text(fields.id, id.as_str());
        for (ordinal, segment) in (0..).zip(self.searcher.segment_readers()) {
            let ids = segment.inverted_index(fields.id)?;
            let Some(mut postings) = ids.read_postings(&term, IndexRecordOption::Basic)? else {
                continue;
            };
            while postings.doc() != TERMINATED {
                if !segment.is_deleted(postings.doc()) {
                    return Ok(Some(DocAddress::new(ordinal, postings.doc())));
                }
                postings.advance();
            }
        }
        Ok(None)
    }

    /// The rank of a document's id among the ids of its segment.
    pub(super) fn id_rank(&self, at: DocAddress) -> u64 {
        let column = self.columns.ids.get(at.segment_ord as usize);
        column
            .and_then(|ids| ids.ords().first(at.doc_id))
            .unwrap_or(u64::MAX)
    }

    /// Computes the global order of ids, so that many ties are broken without reading ids.
    pub(super) fn order_ids(&self) {
        let ids = &self.columns.ids;
        if ids.len() > 1 {
            self.columns.id_order.get_or_init(|| IdOrder::of(ids).ok());
        }
    }

    /// The rank of a document's id among all ids, where the global order was computed.
    pub(super) fn global_id_rank(&self, at: DocAddress, in_segment: u64) -> Option<u32> {
        let order = self.columns.id_order.get()?.as_ref()?;
        order.rank(at, in_segment)
    }

    /// How many ids were read from the dictionary so far.
    #[cfg(test)]
    pub(super) fn id_lookups(&self) -> usize {
        self.columns.id_lookups.load(Memory::SeqCst)
    }

    /// The day of a document as the number `YYYYMMDD`.
    pub(super) fn day(&self, at: DocAddress) -> Option<i64> {
        self.columns
            .days
            .get(at.segment_ord as usize)?
            .first(at.doc_id)
    }

    /// The ordinal of a document among all, deleted ones included.
    pub(super) fn ordinal(&self, at: DocAddress) -> u32 {
        let base = self.columns.bases.get(at.segment_ord as usize);
        base.map_or(u32::MAX, |base| base.saturating_add(at.doc_id))
    }

    /// The address of the document with this ordinal.
    pub(super) fn address(&self, ordinal: u32) -> Option<DocAddress> {
        let bases = &self.columns.bases;
        let segment = bases
            .partition_point(|base| *base <= ordinal)
            .checked_sub(1)?;
        let doc = ordinal - bases.get(segment)?;
        Some(DocAddress::new(u32::try_from(segment).ok()?, doc))
    }

    /// The number of ordinals, deleted documents included.
    pub(super) fn ordinals(&self) -> u32 {
        let segments = self.searcher.segment_readers().iter();
        segments.map(SegmentReader::max_doc).sum()
    }

    /// The live documents by the keys under which their vectors are stored.
    pub(super) fn live_documents(&self) -> LiveDocuments {
        let mut live = Vec::with_capacity(self.searcher.num_docs() as usize);
        let segments = self.searcher.segment_readers().iter();
        for ((segment, [high, low]), base) in
            segments.zip(&self.columns.keys).zip(&self.columns.bases)
        {
            for doc in segment.doc_ids_alive() {
                if let (Some(high), Some(low)) = (high.first(doc), low.first(doc)) {
                    live.push((u128::from(high) << 64 | u128::from(low), base + doc));
                }
            }
        }
        LiveDocuments::new(live)
    }

    /// The id of a document, without reading the stored document.
    pub(super) fn id(&self, at: DocAddress) -> String {
        #[cfg(test)]
        self.columns.id_lookups.fetch_add(1, Memory::SeqCst);
        let mut id = String::new();
        if let Some(column) = self.columns.ids.get(at.segment_ord as usize) {
            // An id that cannot be read sorts first, which is still a total order.
            let _ = column.ord_to_str(self.id_rank(at), &mut id);
        }
        id
    }

    /// Visits every live document, in no particular order.
    pub(super) fn visit_inventory(
        &self,
        each: &mut dyn FnMut(InventoryEntryRef<'_>),
    ) -> tantivy::Result<()> {
        let sources = columns(&self.searcher, SOURCE)?;
        let hashes = columns(&self.searcher, HASH)?;
        let segments = self.searcher.segment_readers().iter();
        for (((segment, ids), sources), hashes) in
            segments.zip(&self.columns.ids).zip(&sources).zip(&hashes)
        {
            let (ids, sources, hashes) = (
                StringColumnReader::of(ids)?,
                StringColumnReader::of(sources)?,
                StringColumnReader::of(hashes)?,
            );
            for doc in segment.doc_ids_alive() {
                each(InventoryEntryRef {
                    id: ids.get(doc),
                    source: sources.get(doc),
                    hash: hashes.get(doc),
                });
            }
        }
        Ok(())
    }
}

/// How many live documents contain a term. Deleted ones stay in posting lists as tombstones until a merge.
pub(super) fn count_alive(
    segment: &SegmentReader,
    index: &InvertedIndexReader,
    term: &TermInfo,
) -> tantivy::Result<u64> {
    let mut postings = index.read_postings_from_terminfo(term, IndexRecordOption::Basic)?;
    let mut count = 0;
    while postings.doc() != TERMINATED {
        count += u64::from(!segment.is_deleted(postings.doc()));
        postings.advance();
    }
    Ok(count)
}

fn columns(searcher: &Searcher, name: &str) -> tantivy::Result<Vec<StrColumn>> {
    let missing = || TantivyError::InternalError(format!("the column `{name}` is missing"));
    let segments = searcher.segment_readers().iter();
    segments
        .map(|segment| segment.fast_fields().str(name)?.ok_or_else(missing))
        .collect()
}

/// A string column read front to back, which is many times faster than one row after the other. All its
/// values are in one string, since there may be millions of short ones.
struct StringColumnReader<'c> {
    column: &'c StrColumn,
    text: String,
    ends: Vec<usize>,
}

impl<'c> StringColumnReader<'c> {
    fn of(column: &'c StrColumn) -> tantivy::Result<Self> {
        let (mut text, mut ends) = (String::new(), Vec::new());
        let mut stream = column.dictionary().stream()?;
        while stream.advance() {
            text.push_str(&String::from_utf8_lossy(stream.key()));
            ends.push(text.len());
        }
        Ok(Self { column, text, ends })
    }

    fn get(&self, doc: u32) -> &str {
        let rank = self.column.ords().first(doc);
        let text = rank.and_then(|rank| {
            let rank = usize::try_from(rank).ok()?;
            let start = rank
                .checked_sub(1)
                .map_or(Some(&0), |above| self.ends.get(above))?;
            self.text.get(*start..*self.ends.get(rank)?)
        });
        text.unwrap_or_default()
    }
}
