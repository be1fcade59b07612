//! A store and the live documents into something that can be searched.

use std::ops::Range;
use std::sync::Arc;

use super::kernels::DistanceKernels;
use super::live_documents::{LiveDocuments, NO_OWNER};
use super::ordinal_set::OrdinalSet;
use super::random_rotation::RandomRotation;
use super::segment_layout::GROUP;
use super::vector_segment::VectorSegment;
use super::vector_store::VectorStore;

/// One in so many documents or fewer are few.
const FEW: usize = 16;

/// The vectors of one generation, as one answer sees them from beginning to end. What happens to
/// the store later does not reach it.
pub struct VectorView {
    pub(super) dims: usize,
    pub(super) parts: Vec<SegmentView>,
    pub(super) rotation: Arc<RandomRotation>,
    pub(super) kernels: DistanceKernels,
    missing: Vec<u32>,
    rows: usize,
    /// By ordinal, ascending.
    locations: Vec<DocumentLocation>,
}

/// Where a document is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct DocumentLocation {
    ordinal: u32,
    part: u32,
    document: u32,
}

/// One segment and whose its rows are.
pub(super) struct SegmentView {
    pub segment: Arc<VectorSegment>,
    /// The ordinal of each row's document.
    pub owners: Vec<u32>,
    /// One bit for each row, set when its document is live.
    pub live: Vec<u64>,
    /// How many rows the parts before it have.
    pub before: usize,
}

impl VectorView {
    /// Sees what is in `store` for the documents that are in `live`.
    pub fn new(store: &VectorStore, live: &LiveDocuments) -> Self {
        let (owners, missing) = live.owners(store.segments());
        let homes = document_locations(&owners);
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
            locations: homes,
        }
    }

    /// The ordinals of the live documents that have no vectors yet.
    pub fn missing(&self) -> &[u32] {
        &self.missing
    }

    /// Whether the vectors of a live document are made, be it none because no passage is in a language that the
    /// model knows.
    pub fn is_embedded(&self, ordinal: u32) -> bool {
        self.rows_of(ordinal).is_some()
    }

    /// How many vectors belong to live documents.
    pub fn rows(&self) -> usize {
        self.rows
    }
}

/// The live documents with a place, by their ordinals.
fn document_locations(owners: &[Vec<u32>]) -> Vec<DocumentLocation> {
    let mut homes = Vec::new();
    for (part, owners) in (0..).zip(owners) {
        let live = (0..).zip(owners).filter(|(_, owner)| **owner != NO_OWNER);
        homes.extend(live.map(|(document, owner)| DocumentLocation {
            ordinal: *owner,
            part,
            document,
        }));
    }
    homes.sort_unstable();
    homes
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

/// A stretch of rows of one part. It begins and ends between two documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RowRange {
    pub part: usize,
    pub rows: Range<usize>,
}

impl VectorView {
    /// The rows of a document. Nothing when it is not live or has no vectors.
    pub(super) fn rows_of(&self, ordinal: u32) -> Option<RowRange> {
        let is_it = |home: &&DocumentLocation| home.ordinal == ordinal;
        // Where every document has its vectors, each stands at its own ordinal.
        let guess = self.locations.get(ordinal as usize).filter(is_it);
        let home = guess.or_else(|| {
            let at = self
                .locations
                .binary_search_by_key(&ordinal, |home| home.ordinal);
            self.locations.get(at.ok()?)
        })?;
        let part = home.part as usize;
        let rows = self
            .parts
            .get(part)?
            .segment
            .rows_of(home.document as usize);
        Some(RowRange { part, rows })
    }

    /// Whether so few are allowed that going to each is faster than asking for each row.
    pub(super) fn is_selective(&self, allowed: &OrdinalSet) -> bool {
        allowed.count() <= self.locations.len() / FEW
    }

    /// For each part one bit for each row, set when its document is live and allowed.
    pub(super) fn masks(&self, allowed: &OrdinalSet) -> Vec<Vec<u64>> {
        if !self.is_selective(allowed) {
            let mask = |part: &SegmentView| mask(&part.owners, |owner| allowed.bit(owner));
            return self.parts.iter().map(mask).collect();
        }
        let empty = |part: &SegmentView| vec![0; part.live.len()];
        let mut masks: Vec<_> = self.parts.iter().map(empty).collect();
        for stretch in allowed.iter().filter_map(|ordinal| self.rows_of(ordinal)) {
            let Some(mask) = masks.get_mut(stretch.part) else {
                continue;
            };
            for row in stretch.rows {
                if let Some(word) = mask.get_mut(row / GROUP) {
                    *word |= 1 << (row % GROUP);
                }
            }
        }
        masks
    }

    /// All rows, cut into about `count` equal shares for as many threads.
    pub(super) fn partition(&self, count: usize) -> Vec<Vec<RowRange>> {
        let all: usize = self.parts.iter().map(|part| part.owners.len()).sum();
        let each = all.div_ceil(count.max(1)).max(1);
        let mut shares = vec![Vec::new()];
        let mut room = each;
        for (part, rows) in self.parts.iter().map(|part| part.owners.len()).enumerate() {
            let mut start = 0;
            while start < rows {
                let end = self.cut(part, start, room);
                let stretch = RowRange {
                    part,
                    rows: start..end,
                };
                room = room.saturating_sub(end - start);
                if let Some(share) = shares.last_mut() {
                    share.push(stretch);
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

    /// The end of the document that row `start + room` would cut in two.
    fn cut(&self, part: usize, start: usize, room: usize) -> usize {
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
