//! A consistent snapshot of a vector store for searches: segments, the owner of each row, and the live rows.

use std::ops::Range;
use std::sync::Arc;

use super::kernels::DistanceKernels;
use super::live_documents::{LiveDocuments, NO_OWNER};
use super::ordinal_set::OrdinalSet;
use super::random_rotation::RandomRotation;
use super::segment_layout::GROUP;
use super::vector_segment::VectorSegment;
use super::vector_store::VectorStore;

/// A filter that allows at most one in this many documents is selective. Then looking up the rows of each allowed
/// document is faster than testing every row of the index; with more documents, the lookups jump through memory more
/// than the scan reads in order.
const SELECTIVE_SHARE: usize = 16;

/// A snapshot of the vectors of one generation. A search sees the same rows from beginning to end, because segments are
/// immutable and stay mapped for as long as a view holds them, whatever the store appends or merges later.
pub struct VectorView {
    pub(super) dims: usize,
    pub(super) parts: Vec<SegmentView>,
    pub(super) rotation: Arc<RandomRotation>,
    pub(super) kernels: DistanceKernels,
    missing: Vec<u32>,
    rows: usize,
    locations: Vec<DocumentLocation>,
}

/// The segment of a live document, and its place among the keys of that segment. Views keep them sorted by ordinal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct DocumentLocation {
    ordinal: u32,
    part: u32,
    document: u32,
}

/// A segment with the owners of its rows.
pub(super) struct SegmentView {
    pub segment: Arc<VectorSegment>,
    /// The ordinal of the document of each row, or [`NO_OWNER`].
    pub owners: Vec<u32>,
    /// A bitmap of the rows whose document is live.
    pub live: Vec<u64>,
    /// The number of rows in the segments before this one.
    pub before: usize,
}

impl VectorView {
    /// Takes a snapshot of what `store` has for the documents in `live`.
    pub fn new(store: &VectorStore, live: &LiveDocuments) -> Self {
        let (owners, missing) = live.owners(store.segments());
        let locations = document_locations(&owners);
        let segments = store.segments().iter().zip(owners);
        let mut before = 0;
        let parts: Vec<_> = segments
            .map(|(segment, owners)| {
                let part = SegmentView::new(segment.clone(), &owners, before);
                before += part.owners.len();
                part
            })
            .collect();
        let words = parts.iter().flat_map(|part| &part.live);
        Self {
            dims: store.model().dims(),
            rows: words.map(|word| word.count_ones() as usize).sum(),
            parts,
            rotation: store.rotation.clone(),
            kernels: store.kernels,
            missing,
            locations,
        }
    }

    /// The ordinals of the live documents that have no vectors yet.
    pub fn missing(&self) -> &[u32] {
        &self.missing
    }

    /// Whether a live document has been embedded. It may have no vectors all the same, when none of its passages is in
    /// a language of the model.
    pub fn is_embedded(&self, ordinal: u32) -> bool {
        self.rows_of(ordinal).is_some()
    }

    /// The number of vectors of live documents.
    pub fn rows(&self) -> usize {
        self.rows
    }
}

/// The locations of all live documents, sorted by ordinal.
fn document_locations(owners: &[Vec<u32>]) -> Vec<DocumentLocation> {
    let mut locations = Vec::new();
    for (part, owners) in (0..).zip(owners) {
        let live = (0..).zip(owners).filter(|(_, owner)| **owner != NO_OWNER);
        locations.extend(live.map(|(document, owner)| DocumentLocation {
            ordinal: *owner,
            part,
            document,
        }));
    }
    locations.sort_unstable();
    locations
}

impl SegmentView {
    fn new(segment: Arc<VectorSegment>, owners: &[u32], before: usize) -> Self {
        let mut rows = Vec::with_capacity(segment.layout.rows);
        for (owner, end) in owners.iter().zip(segment.ends()) {
            rows.resize(*end as usize, *owner);
        }
        let live = mask(&rows, |owner| u64::from(owner != NO_OWNER));
        Self {
            segment,
            owners: rows,
            live,
            before,
        }
    }

    pub(super) fn owner(&self, row: usize) -> u32 {
        self.owners.get(row).copied().unwrap_or(NO_OWNER)
    }
}

fn mask(owners: &[u32], bit: impl Fn(u32) -> u64) -> Vec<u64> {
    let word = |owners: &[u32]| {
        let bits = owners.iter().enumerate();
        bits.fold(0, |word, (at, owner)| word | bit(*owner) << at)
    };
    owners.chunks(GROUP).map(word).collect()
}

/// A range of rows of one segment. It never splits the rows of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RowRange {
    pub part: usize,
    pub rows: Range<usize>,
}

impl VectorView {
    /// The rows of a document; `None` if it is not live or has not been embedded.
    pub(super) fn rows_of(&self, ordinal: u32) -> Option<RowRange> {
        let is_match = |location: &&DocumentLocation| location.ordinal == ordinal;
        // Once all documents are embedded, the location of each is at the index of its ordinal.
        let guess = self.locations.get(ordinal as usize).filter(is_match);
        let location = guess.or_else(|| {
            let at = self
                .locations
                .binary_search_by_key(&ordinal, |location| location.ordinal);
            self.locations.get(at.ok()?)
        })?;
        let part = location.part as usize;
        let rows = self
            .parts
            .get(part)?
            .segment
            .rows_of(location.document as usize);
        Some(RowRange { part, rows })
    }

    /// Whether a filter allows so few documents that visiting each is faster than checking every row.
    pub(super) fn is_selective(&self, allowed: &OrdinalSet) -> bool {
        allowed.count() <= self.locations.len() / SELECTIVE_SHARE
    }

    /// For each segment, a bitmap of the rows whose document is live and allowed.
    pub(super) fn masks(&self, allowed: &OrdinalSet) -> Vec<Vec<u64>> {
        if !self.is_selective(allowed) {
            let mask = |part: &SegmentView| mask(&part.owners, |owner| allowed.bit(owner));
            return self.parts.iter().map(mask).collect();
        }
        let empty = |part: &SegmentView| vec![0; part.live.len()];
        let mut masks: Vec<_> = self.parts.iter().map(empty).collect();
        for range in allowed.iter().filter_map(|ordinal| self.rows_of(ordinal)) {
            let Some(mask) = masks.get_mut(range.part) else {
                continue;
            };
            for row in range.rows {
                if let Some(word) = mask.get_mut(row / GROUP) {
                    *word |= 1 << (row % GROUP);
                }
            }
        }
        masks
    }

    /// Partitions all rows into about `count` equal shares, one for each thread, without splitting a document.
    pub(super) fn partition(&self, count: usize) -> Vec<Vec<RowRange>> {
        let all: usize = self.parts.iter().map(|part| part.owners.len()).sum();
        let each = all.div_ceil(count.max(1)).max(1);
        let mut shares = vec![Vec::new()];
        let mut room = each;
        for (part, rows) in self.parts.iter().map(|part| part.owners.len()).enumerate() {
            let mut start = 0;
            while start < rows {
                let end = self.align_to_document(part, start, room);
                let range = RowRange {
                    part,
                    rows: start..end,
                };
                room = room.saturating_sub(end - start);
                if let Some(share) = shares.last_mut() {
                    share.push(range);
                }
                if room == 0 {
                    shares.push(Vec::new());
                    room = each;
                }
                start = end;
            }
        }
        shares.retain(|share| !share.is_empty());
        shares
    }

    /// The end of a range of `room` rows, moved behind the document that it would split.
    fn align_to_document(&self, part: usize, start: usize, room: usize) -> usize {
        let Some(part) = self.parts.get(part) else {
            return start + room;
        };
        let last = start + room - 1;
        if last >= part.owners.len() {
            part.owners.len()
        } else {
            part.segment.rows_around(last).end
        }
    }
}
