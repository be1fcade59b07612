//! File format of a segment: its header, and the byte range of each section, computed from the counts in the header.
//!
//! Numbers are in native byte order, because the file is memory-mapped and read in place. The magic number reveals a
//! file from a machine with the other byte order.

use std::ops::Range;

use super::{MAX_BATCH_DOCUMENTS, MAX_DIMENSIONS, MAX_SEGMENT_ROWS};

/// The magic number at the start of every segment.
pub(super) const MAGIC: u64 = 0x3130_4345_5644_4344;

/// The format version. Raise it whenever segments written before would be misread.
pub(super) const FORMAT: u32 = 1;

/// The alignment of sections in bytes: the width of the widest SIMD register, and of a cache line.
pub(super) const ALIGN: usize = 64;

pub(super) const HEADER_BYTES: usize = ALIGN;

/// The length of the CRC-32 checksum at the end of the file.
pub(super) const SUM_BYTES: usize = 4;

/// How many rows share a group of one-bit codes: as many as a word of a row mask has bits.
pub(super) const GROUP: usize = 64;

/// The bytes of the factors and offsets, two floats for each row, that follow the codes of a group.
pub(super) const GROUP_TAIL: usize = 2 * GROUP * size_of::<f32>();

/// The most documents of a segment. It exceeds that of rows, because documents without passages have none.
pub(super) const MAX_SEGMENT_DOCUMENTS: usize = MAX_SEGMENT_ROWS + MAX_BATCH_DOCUMENTS;

/// The header at the start of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    pub dims: u32,
    pub documents: u32,
    pub rows: u32,
    /// The hash of the fingerprint of the model.
    pub model: u64,
}

impl SegmentHeader {
    pub(super) fn to_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        bytes.extend(MAGIC.to_ne_bytes());
        bytes.extend(self.model.to_ne_bytes());
        for number in [FORMAT, self.dims, self.documents, self.rows] {
            bytes.extend(number.to_ne_bytes());
        }
        bytes.resize(HEADER_BYTES, 0);
        bytes
    }

    /// Parses a header; `None` if magic number or format version are not ours.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (magic, rest) = bytes.split_first_chunk()?;
        let (model, rest) = rest.split_first_chunk()?;
        let (format, rest) = rest.split_first_chunk()?;
        let (dims, rest) = rest.split_first_chunk()?;
        let (documents, rest) = rest.split_first_chunk()?;
        let (rows, _) = rest.split_first_chunk()?;
        let is_ours = u64::from_ne_bytes(*magic) == MAGIC && u32::from_ne_bytes(*format) == FORMAT;
        is_ours.then_some(Self {
            dims: u32::from_ne_bytes(*dims),
            documents: u32::from_ne_bytes(*documents),
            rows: u32::from_ne_bytes(*rows),
            model: u64::from_ne_bytes(*model),
        })
    }
}

/// The byte ranges of the sections of a segment, in the order in which they follow each other in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SegmentLayout {
    pub dims: usize,
    /// The length of a row of int8 codes: the dimensions, padded with zeros to [`ALIGN`].
    pub stride: usize,
    pub documents: usize,
    pub rows: usize,
    /// The key of each document, in ascending order.
    pub keys: Range<usize>,
    /// The end of the rows of each document, exclusive.
    pub ends: Range<usize>,
    /// The start and the end of each passage in its document's text.
    pub places: Range<usize>,
    /// The quantization scale of each row of int8 codes.
    pub scales: Range<usize>,
    /// The centroid (mean) of all rows.
    pub mean: Range<usize>,
    /// The int8 codes of all rows.
    pub codes: Range<usize>,
    /// The RaBitQ one-bit codes of all rows, in groups.
    pub groups: Range<usize>,
    /// The length of one group in bytes.
    pub group: usize,
    /// The number of bytes that the checksum covers.
    pub summed: usize,
}

impl SegmentLayout {
    /// Computes the layout; `None` if a count exceeds its limit.
    pub(super) fn new(header: &SegmentHeader) -> Option<Self> {
        let dims = usize::try_from(header.dims).ok()?;
        let documents = usize::try_from(header.documents).ok()?;
        let rows = usize::try_from(header.rows).ok()?;
        if dims == 0
            || dims > MAX_DIMENSIONS
            || documents > MAX_SEGMENT_DOCUMENTS
            || rows > MAX_SEGMENT_ROWS
        {
            return None;
        }
        let stride = dims.next_multiple_of(ALIGN);
        let group = stride / 8 * GROUP + GROUP_TAIL;
        let mut at = HEADER_BYTES;
        let mut part = |count: usize, each: usize| {
            let start = at;
            let end = start.checked_add(count.checked_mul(each)?)?;
            at = end.checked_next_multiple_of(ALIGN)?;
            Some(start..end)
        };
        Some(Self {
            dims,
            stride,
            documents,
            rows,
            keys: part(documents, size_of::<u128>())?,
            ends: part(documents, size_of::<u32>())?,
            places: part(rows, 2 * size_of::<u32>())?,
            scales: part(rows, size_of::<f32>())?,
            mean: part(stride, size_of::<f32>())?,
            codes: part(rows, stride)?,
            groups: part(rows.div_ceil(GROUP), group)?,
            group,
            summed: at,
        })
    }

    /// The length of the whole file, checksum included.
    pub(super) fn file_bytes(&self) -> usize {
        self.summed.saturating_add(SUM_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: SegmentHeader = SegmentHeader {
        dims: 384,
        documents: 3,
        rows: 70,
        model: 7,
    };

    #[test]
    fn a_header_comes_back_as_it_was() {
        let mut bytes = HEADER.to_bytes();
        assert_eq!(bytes.len(), HEADER_BYTES);
        assert_eq!(SegmentHeader::from_bytes(&bytes), Some(HEADER));
        bytes[0] ^= 1;
        assert_eq!(SegmentHeader::from_bytes(&bytes), None);
        assert_eq!(SegmentHeader::from_bytes(&bytes[..20]), None);
    }

    #[test]
    fn parts_follow_each_other_on_their_boundaries() {
        let layout = SegmentLayout::new(&HEADER).unwrap();
        let parts = [
            &layout.keys,
            &layout.ends,
            &layout.places,
            &layout.scales,
            &layout.mean,
            &layout.codes,
            &layout.groups,
        ];
        let mut before = HEADER_BYTES;
        for part in parts {
            assert_eq!(part.start, before.next_multiple_of(ALIGN));
            before = part.end;
        }
        assert_eq!(layout.codes.len(), 70 * 384);
        assert_eq!(layout.groups.len(), 2 * (384 / 8 * 64 + 512));
        assert_eq!(layout.file_bytes(), before.next_multiple_of(ALIGN) + 4);
    }

    #[test]
    fn headers_over_the_limits_have_no_layout() {
        let most = SegmentHeader {
            dims: MAX_DIMENSIONS as u32,
            documents: MAX_SEGMENT_DOCUMENTS as u32,
            rows: MAX_SEGMENT_ROWS as u32,
            model: 0,
        };
        assert!(SegmentLayout::new(&most).is_some());
        let over = [
            SegmentHeader { dims: 0, ..most },
            SegmentHeader {
                dims: most.dims + 1,
                ..most
            },
            SegmentHeader {
                documents: most.documents + 1,
                ..most
            },
            SegmentHeader {
                rows: most.rows + 1,
                ..most
            },
        ];
        for header in over {
            assert_eq!(SegmentLayout::new(&header), None, "{header:?}");
        }
    }
}
