//! Reader of a memory-mapped segment. Opening verifies the checksum and every invariant that searches rely on.

use std::io::ErrorKind;
use std::ops::Range;
use std::path::Path;

use super::manifest::SegmentEntry;
use super::mapped_file::MappedFile;
use super::quantization::RabitqGroup;
use super::segment_layout::{GROUP, SUM_BYTES, SegmentHeader, SegmentLayout};
use crate::error::SearchError;

/// A row in int8 codes, borrowed from a segment or from a batch that is being written.
#[derive(Clone, Copy)]
pub(super) struct VectorRow<'r> {
    pub codes: &'r [i8],
    pub scale: f32,
    /// The start and the end of the passage in its document's text, in bytes.
    pub place: [u32; 2],
}

/// Random access to rows by index, so that segments are written alike from a batch and from other segments.
pub(super) trait RowReader {
    fn row(&self, at: usize) -> Option<VectorRow<'_>>;
}

/// An immutable segment file that passed every check.
pub(super) struct VectorSegment {
    pub entry: SegmentEntry,
    map: MappedFile,
    pub layout: SegmentLayout,
}

impl VectorSegment {
    /// Opens the segment that the manifest describes by `entry`, and verifies its length, checksum, header and order.
    pub(super) fn open(dir: &Path, entry: SegmentEntry, model: u64) -> Result<Self, SearchError> {
        let path = dir.join(entry.file_name());
        let corrupt =
            |what: &str| SearchError::corrupt(dir, format!("`{}` {what}", entry.file_name()));
        let map = MappedFile::open(&path).map_err(|source| match source.kind() {
            ErrorKind::NotFound => corrupt("is missing"),
            _ => SearchError::io(&path, source),
        })?;
        let bytes = map.bytes();
        if bytes.len() as u64 != entry.bytes {
            return Err(corrupt("does not have the expected length"));
        }
        let (content, sum) = bytes
            .split_last_chunk::<SUM_BYTES>()
            .ok_or_else(|| corrupt("is truncated"))?;
        let found = crc32fast::hash(content);
        if found != u32::from_ne_bytes(*sum) || found != entry.sum {
            return Err(corrupt("has a checksum that does not match"));
        }
        let header =
            SegmentHeader::from_bytes(content).ok_or_else(|| corrupt("is not a segment file"))?;
        let layout = SegmentLayout::new(&header)
            .ok_or_else(|| corrupt("exceeds the limits of a segment"))?;
        if header.model != model || layout.file_bytes() != bytes.len() {
            return Err(corrupt("belongs to another model or has another layout"));
        }
        let segment = Self { entry, map, layout };
        if segment.is_in_order() {
            Ok(segment)
        } else {
            Err(corrupt("has keys or rows out of order"))
        }
    }

    /// Checks the invariants of a search: keys ascend, and rows belong to one document after the other.
    fn is_in_order(&self) -> bool {
        let (keys, ends) = (self.keys(), self.ends());
        let last = ends.last().map_or(0, |end| *end as usize);
        keys.len() == self.layout.documents
            && ends.len() == self.layout.documents
            && keys.is_sorted_by(|left, right| left < right)
            && ends.is_sorted()
            && last == self.layout.rows
    }

    /// The keys of the documents in ascending order.
    pub(super) fn keys(&self) -> &[u128] {
        self.map.numbers(&self.layout.keys)
    }

    /// The end of the rows of each document, exclusive.
    pub(super) fn ends(&self) -> &[u32] {
        self.map.numbers(&self.layout.ends)
    }

    /// The rows of the document at an index among the keys.
    pub(super) fn rows_of(&self, document: usize) -> Range<usize> {
        let ends = self.ends();
        let end = |at: usize| ends.get(at).map_or(0, |end| *end as usize);
        let start = document.checked_sub(1).map_or(0, end);
        start..end(document)
    }

    /// The rows of the document that a row belongs to.
    pub(super) fn rows_around(&self, row: usize) -> Range<usize> {
        self.rows_of(self.ends().partition_point(|end| *end as usize <= row))
    }

    /// The centroid of all rows, which the one-bit codes are relative to.
    pub(super) fn mean(&self) -> &[f32] {
        self.map.numbers(&self.layout.mean)
    }

    /// The RaBitQ one-bit codes of a group of 64 rows.
    pub(super) fn group(&self, at: usize) -> Option<RabitqGroup<'_>> {
        let layout = &self.layout;
        let start = layout.groups.start + at * layout.group;
        let tail = start + layout.stride / 8 * GROUP;
        let end = start + layout.group;
        let (factors, offsets) = self
            .map
            .numbers::<f32>(&(tail..end))
            .split_first_chunk::<GROUP>()?;
        Some(RabitqGroup {
            words: self.map.numbers(&(start..tail)),
            factors,
            offsets: offsets.first_chunk()?,
        })
    }
}

/// The int8 codes and the scales of all rows. A search takes these slices out of the mapping once, because it reads
/// rows more often than anything else.
pub(super) struct ScalarCodes<'s> {
    codes: &'s [i8],
    scales: &'s [f32],
    stride: usize,
}

impl<'s> ScalarCodes<'s> {
    #[inline]
    pub(super) fn row(&self, at: usize) -> Option<(&'s [i8], f32)> {
        let (codes, scales) = self.rows(at..at + 1)?;
        Some((codes, *scales.first()?))
    }

    /// The codes of consecutive rows, and as many scales.
    #[inline]
    pub(super) fn rows(&self, rows: Range<usize>) -> Option<(&'s [i8], &'s [f32])> {
        let codes = rows.start * self.stride..rows.end * self.stride;
        Some((self.codes.get(codes)?, self.scales.get(rows)?))
    }
}

impl VectorSegment {
    #[inline]
    pub(super) fn all_codes(&self) -> ScalarCodes<'_> {
        let layout = &self.layout;
        ScalarCodes {
            codes: self.map.numbers(&layout.codes),
            scales: self.map.numbers(&layout.scales),
            stride: layout.stride,
        }
    }
}

impl RowReader for VectorSegment {
    fn row(&self, at: usize) -> Option<VectorRow<'_>> {
        let (codes, scale) = self.all_codes().row(at)?;
        let places = self.map.numbers::<u32>(&self.layout.places);
        Some(VectorRow {
            codes,
            scale,
            place: *places.as_chunks::<2>().0.get(at)?,
        })
    }
}
